"""What a group may ask of the machine: work on memory, and waits, arrivals and fences that order it.

Warp programs and emitted source are both run as iterators of these steps, one for each group. They are named tuples
rather than dataclasses because a check makes hundreds of thousands of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Cell: TypeAlias = tuple[str, int | None]
"""A register value of a group: its name, and its iteration counted over all tiles."""

IN_ORDER = frozenset({"tma_store", "wgmma", "tcgen05", "cp_async"})
"""Engines whose ops, where one group issued them, run and complete in the order of issue."""

DRAINED = frozenset({"tma_store", "wgmma", "cp_async"})
"""Engines for whose ops their own group can wait."""

ASYNC_PROXY = frozenset({"tma", "tma_store", "wgmma", "tcgen05"})
"""Engines that reach SMEM past the path of loads and stores, so that software's writes need a fence."""


class Label(NamedTuple):
    """Where a step comes from: group, what it does, source line, tile and iteration (``None``: outside the loop)."""

    group: str
    text: str
    source: str
    tile: int
    iteration: int | None

    def __str__(self) -> str:
        place = [] if self.iteration is None else [f"iteration {self.iteration}"]
        place += [f"tile {self.tile}"] if self.tile else []
        place += [f"group {self.group}"]
        return f"{self.text} ({', '.join(place)}{'; ' + self.source if self.source else ''})"


class Touch(NamedTuple):
    """Bytes ``start..end`` of a memory, reached as instance ``instance`` of ring ``ring``.

    ``lenient``: a read whose value may go unused (the accumulator of a product that may start from zero), so that it
    may find anything.
    """

    memory: str
    start: int
    end: int
    ring: str
    instance: int
    lenient: bool = False


class Action(NamedTuple):
    """Numbers: ``read`` fetches operands, ``write`` computes and stores; called once each, in this order."""

    read: Callable[[], None]
    write: Callable[[], None]


class Work(NamedTuple):
    """Work of an engine. ``signal``: the barrier copy to which it reports bytes when it is complete.

    ``uses``, ``gives``: registers that it touches, and that it fills asynchronously.
    """

    label: Label
    engine: str
    reads: tuple[Touch, ...] = ()
    writes: tuple[Touch, ...] = ()
    signal: tuple[int, int] | None = None
    uses: tuple[Cell, ...] = ()
    gives: tuple[Cell, ...] = ()
    action: Action | None = None


class Wait(NamedTuple):
    """Block until ``phase`` of a barrier copy is complete, as far as one parity bit tells."""

    label: Label
    barrier: int
    phase: int


class Arrive(NamedTuple):
    """One arrival at a barrier copy; ``bytes`` of asynchronous copies are expected besides.

    ``phase``: that for which it is made, ``None`` where the program does not say.
    """

    label: Label
    barrier: int
    phase: int | None
    bytes: int = 0


class Commit(NamedTuple):
    """One arrival at a barrier copy when all work given to the engine before is complete."""

    label: Label
    barrier: int
    phase: int | None
    engine: str


class Drain(NamedTuple):
    """Block until at most ``pending`` of the group's ops on the engine are incomplete (or have not read)."""

    label: Label
    engine: str
    pending: int
    reads_only: bool = False


class Fence(NamedTuple):
    """``async_shared``: publish SMEM writes to the engines; ``tmem_store``: wait for TMEM stores."""

    label: Label
    kind: str


class Join(NamedTuple):
    """Block until all other groups have ended, and know what they knew."""

    label: Label


Step: TypeAlias = Work | Wait | Arrive | Commit | Drain | Fence | Join


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierCopy:
    """An mbarrier: copy ``copy`` of barrier ``name``, complete after ``arrivals`` arrivals and the bytes expected."""

    name: str
    copy: int
    copies: int
    arrivals: int
    serves: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}[{self.copy}]" if self.copies > 1 else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What runs together on one SM: the steps of each group, by name, and the barriers between them."""

    groups: tuple[str, ...]
    barriers: tuple[BarrierCopy, ...]
    scripts: tuple[Iterable[Step], ...]
