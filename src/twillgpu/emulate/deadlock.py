"""Why groups cannot go on: who waits for which arrival, and who would have to make it."""

from __future__ import annotations

from collections.abc import Sequence

from twillgpu.emulate.mbarrier import Mbarrier
from twillgpu.emulate.record import Blocked, Deadlock
from twillgpu.emulate.steps import Arrive, BarrierCopy, Commit, Step, Wait, Work


def explain(
    groups: Sequence[str],
    barriers: Sequence[BarrierCopy],
    states: Sequence[Mbarrier],
    rest: Sequence[Sequence[Step]],
) -> Deadlock | None:
    """Return the groups that have steps left, each of which begins with a wait that does not pass, and the cycle
    among them; ``None`` where no group has any.
    """
    blocked = []
    for group, steps in zip(groups, rest, strict=True):
        if steps and isinstance(steps[0], Wait):
            wait = steps[0]
            blocked.append(
                _blocked(group, wait, barriers[wait.barrier], states[wait.barrier], _arrivers(groups, rest, wait))
            )
    if not blocked:
        return None
    return Deadlock(blocked=tuple(blocked), cycle=_cycle({group.group: group.needs for group in blocked}))


def _blocked(group: str, wait: Wait, copy: BarrierCopy, state: Mbarrier, arrivers: dict[str, str]) -> Blocked:
    what = f"{wait.label} for phase {wait.phase} of {copy}"
    if copy.serves:
        what += f", which serves {'; '.join(copy.serves)}"
    if state.complete > wait.phase + 1:
        return Blocked(group=group, waits=what, needs=(), why=f"phase {state.complete - 1} is complete already")
    lacks = f"phase {state.complete} has {copy.arrivals - state.missing} of {copy.arrivals} arrivals"
    if state.bytes:
        lacks += f" and waits for {state.bytes} bytes" if state.bytes > 0 else f" and {-state.bytes} bytes too many"
    others = "; ".join(f"{name} would arrive with {text}" for name, text in arrivers.items())
    return Blocked(
        group=group, waits=what, needs=tuple(arrivers), why=f"{lacks}; {others or 'nobody arrives any more'}"
    )


def _arrivers(groups: Sequence[str], rest: Sequence[Sequence[Step]], wait: Wait) -> dict[str, str]:
    """Return the groups that still have an arrival at the barrier copy, with the first one."""
    found: dict[str, str] = {}
    for group, steps in zip(groups, rest, strict=True):
        first = next((step for step in steps if _arrives(step, wait.barrier)), None)
        if first is not None:
            found[group] = str(first.label)
    return found


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
