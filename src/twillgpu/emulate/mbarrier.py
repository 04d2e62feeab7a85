"""The state of one mbarrier. Every run, symbolic, numeric or exhaustive, uses these functions and no others."""

from __future__ import annotations

from typing import NamedTuple


class Mbarrier(NamedTuple):
    """Phases complete so far, arrivals that the current phase lacks, and bytes that it still waits for.

    ``bytes`` is negative where copies delivered before they were announced, which hardware allows.
    """

    complete: int
    missing: int
    bytes: int


def fresh(arrivals: int) -> Mbarrier:
    """Return a barrier before its first phase."""
    return Mbarrier(0, arrivals, 0)


def overflows(state: Mbarrier) -> bool:
    """Whether one more arrival is one too many: all came, and the phase only waits for bytes."""
    return state.missing == 0


def arrived(state: Mbarrier, arrivals: int, expected: int = 0) -> Mbarrier:
    """Return the state after one arrival that announces ``expected`` bytes."""
    return _advanced(state.complete, max(0, state.missing - 1), state.bytes + expected, arrivals)


def delivered(state: Mbarrier, arrivals: int, count: int) -> Mbarrier:
    """Return the state after ``count`` bytes were delivered."""
    return _advanced(state.complete, state.missing, state.bytes - count, arrivals)


def passes(state: Mbarrier, phase: int) -> bool:
    """Whether a wait for ``phase`` passes: the parity of the phase in progress is not that of ``phase``."""
    return bool((state.complete ^ phase) & 1)


def _advanced(complete: int, missing: int, count: int, arrivals: int) -> Mbarrier:
    if missing == 0 and count == 0:
        return Mbarrier(complete + 1, arrivals, 0)
    return Mbarrier(complete, missing, count)
