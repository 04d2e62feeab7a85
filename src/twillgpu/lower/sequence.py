"""One iteration's instructions of a warp group, in order, and what they become as prologue, loop and epilogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from twillgpu.lower.record import Anchor, Drain, Engine, Execute, Instruction, Iteration


@dataclass(frozen=True, slots=True, kw_only=True)
class Observe:
    """Wait until op ``op`` of ``iteration`` is complete: a ``Drain`` whose ``pending`` is not known yet.

    ``reads_only``: it suffices that its operands have been read.
    """

    engine: Engine
    op: str
    iteration: Iteration
    reads_only: bool
    at_least: int = 0


Draft = Instruction | Observe


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Instructions of iteration i that a group executes in its stage ``stage``, at ``position`` of the period."""

    stage: int
    position: tuple[int, int, str]
    build: Callable[[Iteration], tuple[Draft, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions:
    """What a group executes for the loop."""

    stages: int
    prologue: tuple[Instruction, ...]
    loop: tuple[Instruction, ...]
    epilogue: tuple[Instruction, ...]
    outstanding: tuple[Engine, ...]
    """Engines that may have incomplete work after the loop."""


def expand(items: Iterable[Item], stages: int) -> Regions:
    """Return the three parts of a loop with ``stages`` local stages.

    Step t of the prologue (t = 0 .. stages - 2) executes stage s of iteration t - s, if there is such an iteration;
    the loop executes stage s of iteration t - s; step e of the epilogue executes the stages s > e of iteration
    trips + e - s, as far as the prologue has not.
    """
    ordered = sorted(items, key=lambda item: item.position)
    prologue = [
        guarded
        for step in range(stages - 1)
        for item in ordered
        if item.stage <= step
        for guarded in _at(item, "first", step - item.stage, step - item.stage + 1)
    ]
    loop = [draft for item in ordered for draft in _at(item, "loop", -item.stage, 0)]
    epilogue = [
        guarded
        for step in range(stages - 1)
        for item in ordered
        if item.stage > step
        for guarded in _at(item, "last", step - item.stage, stages - 1 - step)
    ]
    return _resolved(prologue, loop, epilogue, stages)


def shifted(iteration: Iteration, by: int) -> Iteration:
    """Return the iteration ``by`` later."""
    return replace(iteration, offset=iteration.offset + by)


def _at(item: Item, anchor: Anchor, offset: int, at_least: int) -> tuple[Draft, ...]:
    built = item.build(Iteration(anchor=anchor, offset=offset))
    return tuple(replace(draft, at_least=max(draft.at_least, at_least)) for draft in built)


@dataclass(slots=True, kw_only=True)
class _Trace:
    """What a group gave to its engines in one run, and the pending counts that its drains may have."""

    trips: int
    issued: dict[Engine, list[tuple[str, int]]]
    pending: dict[tuple[str, int], int]
    observed: dict[Engine, int]

    def run(self, region: str, drafts: list[Draft], step: int) -> None:
        for at, draft in enumerate(drafts):
            if draft.at_least > self.trips:
                continue
            if isinstance(draft, Execute) and draft.engine != "simt":
                self.issued.setdefault(draft.engine, []).append((draft.op, self.number(draft.iteration, step)))
            elif isinstance(draft, Observe):
                self.observe((region, at), draft, step)

    def observe(self, key: tuple[str, int], draft: Observe, step: int) -> None:
        sequence = self.issued.get(draft.engine, [])
        wanted = (draft.op, self.number(draft.iteration, step))
        if wanted in sequence:
            newer = len(sequence) - 1 - sequence.index(wanted)
            self.pending[key] = min(self.pending.get(key, newer), newer)
            self.observed[draft.engine] = max(self.observed.get(draft.engine, 0), len(sequence) - newer)

    def number(self, iteration: Iteration | None, step: int) -> int:
        if iteration is None:
            return -1
        start = {"first": 0, "loop": step, "last": self.trips}[iteration.anchor]
        return start + iteration.offset


def _resolved(prologue: list[Draft], loop: list[Draft], epilogue: list[Draft], stages: int) -> Regions:
    """Replace each ``Observe`` by a drain that is right for every trip count."""
    pending: dict[tuple[str, int], int] = {}
    outstanding: dict[Engine, None] = {}
    for trips in range(2 * stages + 3):
        trace = _Trace(trips=trips, issued={}, pending=pending, observed={})
        trace.run("prologue", prologue, 0)
        for step in range(stages - 1, trips):
            trace.run("loop", loop, step)
        trace.run("epilogue", epilogue, 0)
        for engine, sequence in trace.issued.items():
            if len(sequence) > trace.observed.get(engine, 0):
                outstanding[engine] = None
    return Regions(
        stages=stages,
        prologue=_drained("prologue", prologue, pending),
        loop=_drained("loop", loop, pending),
        epilogue=_drained("epilogue", epilogue, pending),
        outstanding=tuple(sorted(outstanding)),
    )


def _drained(region: str, drafts: list[Draft], pending: dict[tuple[str, int], int]) -> tuple[Instruction, ...]:
    result: list[Instruction] = []
    for at, draft in enumerate(drafts):
        if not isinstance(draft, Observe):
            result.append(draft)
        elif (region, at) in pending:
            drain = Drain(
                engine=draft.engine,
                pending=pending[region, at],
                reads_only=draft.reads_only,
                at_least=draft.at_least,
            )
            _append(result, drain)
    return tuple(result)


def _append(result: list[Instruction], drain: Drain) -> None:
    """Append a drain; of two in a row the stricter one stays."""
    last = result[-1] if result else None
    if isinstance(last, Drain) and replace(last, pending=0) == replace(drain, pending=0):
        result[-1] = replace(drain, pending=min(last.pending, drain.pending))
        return
    result.append(drain)
