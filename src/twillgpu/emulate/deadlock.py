"""Why groups cannot go on: who waits for which arrival, and who would have to make it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from twillgpu.emulate.mbarrier import Mbarrier
from twillgpu.emulate.record import Blocked, Deadlock
from twillgpu.emulate.steps import Arrive, BarrierCopy, Commit, Step, Wait, Work

Arrivers: TypeAlias = Callable[[Wait], dict[str, str]]
"""The groups from which an arrival at the barrier of a wait is to be expected, and which arrival."""


def explain(
    groups: Sequence[str],
    barriers: Sequence[BarrierCopy],
    states: Sequence[Mbarrier],
    waits: Sequence[Step | None],
    arrivers: Arrivers,
) -> Deadlock | None:
    """Return the groups that wait, and the cycle among them; ``None`` where every group is at its end.

    Args:
        groups: names.
        barriers: the barriers.
        states: how they stand.
        waits: the step at which each group stands, ``None`` at its end.
        arrivers: who would have to arrive.
    """
    blocked = [
        _blocked(group, wait, barriers[wait.barrier], states[wait.barrier], arrivers(wait))
        for group, wait in zip(groups, waits, strict=True)
        if isinstance(wait, Wait)
    ]
    if not blocked:
        return None
    return Deadlock(blocked=tuple(blocked), cycle=_cycle({group.group: group.needs for group in blocked}))


def arrivers_ahead(groups: Sequence[str], rest: Sequence[Sequence[Step]]) -> Arrivers:
    """Return who arrives, from what each group has still to do."""

    def find(wait: Wait) -> dict[str, str]:
        found = {}
        for group, steps in zip(groups, rest, strict=True):
            first = next((step for step in steps if _arrives(step, wait.barrier)), None)
            if first is not None:
                found[group] = f"would arrive with {first.label}"
        return found

    return find


def _blocked(group: str, wait: Wait, copy: BarrierCopy, state: Mbarrier, arrivers: dict[str, str]) -> Blocked:
    what = f"{wait.label} for phase {wait.phase} of {copy}"
    if copy.serves:
        what += f", which serves {'; '.join(copy.serves)}"
    if state.complete > wait.phase + 1:
        return Blocked(group=group, waits=what, needs=(), why=f"phase {state.complete - 1} is complete already")
    lacks = f"phase {state.complete} has {copy.arrivals - state.missing} of {copy.arrivals} arrivals"
    if state.bytes:
        lacks += f" and waits for {state.bytes} bytes" if state.bytes > 0 else f" and {-state.bytes} bytes too many"
    others = "; ".join(f"{name} {text}" for name, text in arrivers.items())
    return Blocked(
        group=group, waits=what, needs=tuple(arrivers), why=f"{lacks}; {others or 'nobody arrives any more'}"
    )


def _arrives(step: Step, barrier: int) -> bool:
    if isinstance(step, Work):
        return step.signal is not None and step.signal[0] == barrier
    return isinstance(step, Arrive | Commit) and step.barrier == barrier


def _cycle(needs: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the first cycle of the relation, empty where there is none."""
    for start in needs:
        path = [start]
        while True:
            following = next((name for name in needs.get(path[-1], ()) if name in needs), None)
            if following is None:
                break
            if following in path:
                return tuple(path[path.index(following) :])
            path.append(following)
    return ()
