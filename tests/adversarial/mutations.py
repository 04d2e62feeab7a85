"""Mistakes that compilers and people make in warp programs, each as a class of small changes to a good program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from twillgpu.lower.record import (
    Access,
    Arrive,
    Barrier,
    BarrierUse,
    Commit,
    Drain,
    Execute,
    ExpectBytes,
    Fence,
    Get,
    GroupProgram,
    Instance,
    Instruction,
    Put,
    Ring,
    Wait,
    WarpProgram,
)

PARTS = ("before", "prologue", "loop", "epilogue", "after")
Signal: TypeAlias = Wait | Arrive | ExpectBytes | Commit


class Mutant(NamedTuple):
    """A changed program: the class of the mistake, and where it was made."""

    kind: str
    where: str
    program: WarpProgram


class Place(NamedTuple):
    """An instruction of a program."""

    group: int
    part: str
    at: int


def mutants(good: WarpProgram) -> Iterator[Mutant]:
    """Yield every mutant of a program."""
    for place, one in places(good):
        where = f"{good.groups[place.group].name}.{place.part}[{place.at}] {describe(one)}"
        for kind, changed in _in_place(good, place, one):
            yield Mutant(kind, where, changed)
    for kind, where, changed in (*_everywhere(good), *_parts(good), *_barriers(good), *_rings(good)):
        yield Mutant(kind, where, changed)


def places(program: WarpProgram) -> Iterator[tuple[Place, Instruction]]:
    """Yield every instruction with its place."""
    for number, group in enumerate(program.groups):
        for part in PARTS:
            for index, one in enumerate(getattr(group, part)):
                yield Place(number, part, index), one


def describe(one: Instruction) -> str:
    """Return a few words for an instruction."""
    use = getattr(one, "use", None)
    if isinstance(use, BarrierUse):
        return f"{type(one).__name__} {use.barrier}"
    return f"{type(one).__name__} {getattr(one, 'op', getattr(one, 'value', ''))}".strip()


def spliced(program: WarpProgram, place: Place, removed: int, added: Sequence[Instruction]) -> WarpProgram:
    """Return a program with ``removed`` instructions from ``place`` on replaced."""
    group = program.groups[place.group]
    old: tuple[Instruction, ...] = getattr(group, place.part)
    new = (*old[: place.at], *added, *old[place.at + removed :])
    return _with_group(program, place.group, replace(group, **{place.part: new}))  # type: ignore[arg-type]


def _with_group(program: WarpProgram, number: int, group: GroupProgram) -> WarpProgram:
    groups = (*program.groups[:number], group, *program.groups[number + 1 :])
    return replace(program, groups=groups)


def _in_place(good: WarpProgram, place: Place, one: Instruction) -> Iterator[tuple[str, WarpProgram]]:
    name = {ExpectBytes: "expect", Execute: "op"}.get(type(one), type(one).__name__.lower())
    scalars = isinstance(one, Execute) and not one.op
    if not scalars:
        yield f"drop {name}", spliced(good, place, 1, ())
    if not isinstance(one, Execute | Drain | Fence):
        yield f"repeat {name}", spliced(good, place, 1, (one, one))
    for kind, other in _variants(good, one):
        yield kind, spliced(good, place, 1, (other,))
    if one.at_least:
        yield "guard removed", spliced(good, place, 1, (replace(one, at_least=0),))
        yield "guard one too high", spliced(good, place, 1, (replace(one, at_least=one.at_least + 1),))
    instructions: tuple[Instruction, ...] = getattr(good.groups[place.group], place.part)
    yield from _moved(good, place, instructions)


def _moved(
    good: WarpProgram, place: Place, instructions: tuple[Instruction, ...]
) -> Iterator[tuple[str, WarpProgram]]:
    one, after = instructions[place.at], instructions[place.at + 1 :]
    if after:
        yield "swap", spliced(good, place, 2, (after[0], one))
    early = {Arrive: "early release", Commit: "commit moved", ExpectBytes: "expect moved", Fence: "fence moved"}
    if type(one) in early:
        for steps in (2, 4):
            start = place.at - steps
            if start >= 0:
                between = instructions[start : place.at]
                yield early[type(one)], spliced(good, place._replace(at=start), steps + 1, (one, *between))
    late = {Wait: "late wait", Commit: "commit moved", Drain: "late drain"}
    if type(one) in late:
        for steps in (2, 4):
            if len(after) >= steps:
                yield late[type(one)], spliced(good, place, steps + 1, (*after[:steps], one))


def _variants(good: WarpProgram, one: Instruction) -> Iterator[tuple[str, Instruction]]:
    if isinstance(one, Wait | Arrive | ExpectBytes | Commit):
        yield from _signal_variants(good, one)
    if isinstance(one, Drain):
        yield "drain leaves one more", replace(one, pending=one.pending + 1)
        if one.engine == "tma_store":
            yield "drain of reads only", replace(one, reads_only=True)
    if isinstance(one, Put | Get):
        for lag in (-1, 1):
            yield "wrong slot", replace(one, access=_shifted(one.access, lag))
    if isinstance(one, Execute):
        yield from _execute_variants(good, one)


def _execute_variants(good: WarpProgram, one: Execute) -> Iterator[tuple[str, Instruction]]:
    for field in ("reads", "writes"):
        touched: tuple[Access, ...] = getattr(one, field)
        for index, access in enumerate(touched):
            for lag in (-1, 1):
                changed = (*touched[:index], _shifted(access, lag), *touched[index + 1 :])
                yield "wrong slot", replace(one, **{field: changed})  # type: ignore[arg-type]
    if one.completes is not None:
        others = [barrier for barrier in good.barriers if barrier.name != one.completes.barrier]
        for other in _alike(good, one.completes, others)[:1]:
            yield "wrong barrier", replace(one, completes=replace(one.completes, barrier=other.name))


def _signal_variants(good: WarpProgram, one: Signal) -> Iterator[tuple[str, Instruction]]:
    for lag in (-1, 1):
        instance = replace(one.use.instance, lag=one.use.instance.lag + lag)
        yield "wrong phase", replace(one, use=replace(one.use, instance=instance))
    others = [barrier for barrier in good.barriers if barrier.name != one.use.barrier]
    for other in _alike(good, one.use, others)[:2]:
        yield "wrong barrier", replace(one, use=replace(one.use, barrier=other.name))
    if isinstance(one, ExpectBytes):
        for count in (one.bytes // 2, 2 * one.bytes, 0):
            yield "wrong bytes", replace(one, bytes=count)


def _alike(good: WarpProgram, use: BarrierUse, others: list[Barrier]) -> list[Barrier]:
    scope = next(barrier.scope for barrier in good.barriers if barrier.name == use.barrier)
    return [barrier for barrier in others if barrier.scope == scope]


def _shifted(access: Access, lag: int) -> Access:
    return replace(access, instance=replace(access.instance, lag=access.instance.lag + lag))


def _everywhere(good: WarpProgram) -> Iterator[Mutant]:
    """Yield mutants that make one mistake in every part of a group: what a faulty compiler would do."""
    for number, group in enumerate(good.groups):
        signals = {one.use.barrier for part in PARTS for one in getattr(group, part) if isinstance(one, Wait)}
        for barrier in sorted(signals):
            for lag in (-1, 1):
                change = _lagged(barrier, lag)
                yield Mutant("wrong phase everywhere", f"{group.name} {barrier}", mapped(good, number, change))
            yield Mutant("value not waited for", f"{group.name} {barrier}", mapped(good, number, _without(barrier)))
        for kind, name in ((Fence, "no fences"), (Drain, "no drains")):
            if any(isinstance(one, kind) for part in PARTS for one in getattr(group, part)):
                yield Mutant(name, group.name, mapped(good, number, _unless(kind)))
        if group.stages > 1:
            yield Mutant("no guards", group.name, mapped(good, number, lambda one: replace(one, at_least=0)))


def mapped(program: WarpProgram, number: int, change: Callable[[Instruction], Instruction | None]) -> WarpProgram:
    """Return a program with every instruction of a group changed, or dropped where the change gives ``None``."""
    group = program.groups[number]
    parts = {
        part: tuple(other for one in getattr(group, part) if (other := change(one)) is not None) for part in PARTS
    }
    return _with_group(program, number, replace(group, **parts))  # type: ignore[arg-type]


def _lagged(barrier: str, lag: int) -> Callable[[Instruction], Instruction]:
    def change(one: Instruction) -> Instruction:
        if not isinstance(one, Wait) or one.use.barrier != barrier:
            return one
        instance: Instance = replace(one.use.instance, lag=one.use.instance.lag + lag)
        return replace(one, use=replace(one.use, instance=instance))

    return change


def _without(barrier: str) -> Callable[[Instruction], Instruction | None]:
    return lambda one: None if isinstance(one, Wait) and one.use.barrier == barrier else one


def _unless(kind: type) -> Callable[[Instruction], Instruction | None]:
    return lambda one: None if isinstance(one, kind) else one


def _parts(good: WarpProgram) -> Iterator[Mutant]:
    for number, group in enumerate(good.groups):
        for part in ("prologue", "epilogue", "after"):
            if getattr(group, part):
                empty = replace(group, **{part: ()})  # type: ignore[arg-type]
                yield Mutant(f"{part} dropped", group.name, _with_group(good, number, empty))
        yield Mutant(
            "stages one too few", group.name, _with_group(good, number, replace(group, stages=group.stages + 1))
        )
        if group.stages > 1:
            fewer = replace(group, stages=group.stages - 1)
            yield Mutant("stages one too many", group.name, _with_group(good, number, fewer))


def _barriers(good: WarpProgram) -> Iterator[Mutant]:
    for place, barrier in enumerate(good.barriers):

        def changed(other: Barrier | None, place: int = place) -> WarpProgram:
            rest = () if other is None else (other,)
            return replace(good, barriers=(*good.barriers[:place], *rest, *good.barriers[place + 1 :]))

        yield Mutant("wrong count", barrier.name, changed(replace(barrier, arrivals=barrier.arrivals + 1)))
        if barrier.arrivals > 1:
            yield Mutant("wrong count", barrier.name, changed(replace(barrier, arrivals=barrier.arrivals - 1)))
        yield Mutant("wrong copies", barrier.name, changed(replace(barrier, copies=barrier.copies + 1)))
        if barrier.copies > 1:
            yield Mutant("wrong copies", barrier.name, changed(replace(barrier, copies=barrier.copies - 1)))
        if any("reuse" in served or "next tile" in served for served in barrier.serves):
            dropped = changed(None)
            for number in range(len(good.groups)):
                dropped = mapped(dropped, number, _unsignalled(barrier.name))
            if barrier.name not in _completed(good):
                yield Mutant("missing anti edge", barrier.name, dropped)
        for number, group in enumerate(good.groups):
            if any(_waits_late(one, barrier.name) for part in PARTS for one in getattr(group, part)):
                without = mapped(good, number, lambda one, name=barrier.name: None if _waits_late(one, name) else one)  # type: ignore[misc]
                yield Mutant("missing anti edge", f"{group.name} {barrier.name}", without)


def _waits_late(one: Instruction, barrier: str) -> bool:
    return isinstance(one, Wait) and one.use.barrier == barrier and one.use.instance.lag > 0


def _completed(good: WarpProgram) -> set[str]:
    return {
        one.completes.barrier for _, one in places(good) if isinstance(one, Execute) and one.completes is not None
    }


def _unsignalled(barrier: str) -> Callable[[Instruction], Instruction | None]:
    def change(one: Instruction) -> Instruction | None:
        return None if isinstance(one, Signal) and one.use.barrier == barrier else one

    return change


def _rings(good: WarpProgram) -> Iterator[Mutant]:
    for place, ring in enumerate(good.rings):

        def changed(other: Ring, place: int = place) -> WarpProgram:
            return replace(good, rings=(*good.rings[:place], other, *good.rings[place + 1 :]))

        if ring.depth > 1:
            yield Mutant("depth minus one", ring.name, changed(replace(ring, depth=ring.depth - 1)))
        for other in good.rings:
            if other is not ring and other.memory == ring.memory:
                moved = replace(ring, offset_bytes=other.offset_bytes)
                yield Mutant("buffer over another", f"{ring.name} over {other.name}", changed(moved))
