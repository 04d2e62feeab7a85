"""The instructions of every step of the loop: waits and drains before it, fences and arrivals after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from twillgpu.graph.body import tile_bytes
from twillgpu.lower.flow import Needs, loaded_value
from twillgpu.lower.idle import Idle, idle_places
from twillgpu.lower.record import (
    Access,
    Arrive,
    BarrierUse,
    Commit,
    Execute,
    ExpectBytes,
    Fence,
    Get,
    Instance,
    Iteration,
    Put,
    Ring,
    Wait,
)
from twillgpu.lower.sequence import Draft, Item, Observe, Regions, expand, shifted
from twillgpu.lower.sheet import Sheet
from twillgpu.lower.steps import Step
from twillgpu.lower.storage import Touch, members_of
from twillgpu.lower.synchronise import LoopBarrier, Synchronised

_ASYNCHRONOUS = ("tma", "tma_store", "wgmma", "tcgen05")
"""Engines that see SMEM through the asynchronous proxy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSheet:
    """Everything that the instructions of the loop depend on.

    Attributes:
        sheet: the kernel and its schedule.
        plan: steps, places, barriers and drains.
        rings: rings of the loop by name.
        touches: what each step does to rings, by step.
        fixed: reads of fixed buffers, by graph op.
    """

    sheet: Sheet
    plan: Synchronised
    rings: dict[str, Ring]
    touches: dict[str, tuple[Touch, ...]]
    fixed: Mapping[str, tuple[Access, ...]]

    def step_position(self, name: str) -> tuple[int, tuple[int, int, str]]:
        """Return stage and position of a step, for sorting."""
        place = self.plan.arrangement.places[name]
        return place.stage, place.position

    def read_asynchronously(self, ring: str) -> bool:
        """Return whether an asynchronous engine reads the ring."""
        return any(
            touch.ring == ring and not touch.writes and self.plan.steps[touch.step].engine in _ASYNCHRONOUS
            for touches in self.touches.values()
            for touch in touches
        )


def loop_regions(loop: LoopSheet, group: int, needs: Needs) -> Regions:
    """Return what one group executes for the loop."""
    steps = [step for step in loop.plan.steps.values() if step.group == group]
    idle = idle_places(loop.sheet, group, needs, loop.plan.arrangement)
    inside: dict[str, Idle] = {one.head: one for one in idle if one.head}
    items = [_item(loop, step, inside.get(step.name)) for step in steps]
    items += [_idle_item(loop, one) for one in idle if not one.head]
    return expand(items, 1 + max((item.stage for item in items), default=0))


def _item(loop: LoopSheet, step: Step, idle: Idle | None) -> Item:
    place = loop.plan.arrangement.places[step.name]
    return Item(
        stage=place.stage,
        position=place.position,
        build=lambda iteration: tuple(_instructions(loop, step, idle, iteration)),
    )


def _idle_item(loop: LoopSheet, idle: Idle) -> Item:
    def build(iteration: Iteration) -> tuple[Draft, ...]:
        observed = (
            Observe(engine="wgmma", op=name, iteration=iteration, reads_only=False)
            for name in idle.observes
            if loop.sheet.engine(name) == "wgmma"
        )
        return (*observed, Execute(op="", members=idle.members, iteration=iteration))

    return Item(stage=idle.stage, position=idle.position, build=build)


def _instructions(loop: LoopSheet, step: Step, idle: Idle | None, iteration: Iteration) -> Iterator[Draft]:
    yield from _waits(loop, step, iteration)
    yield from _drains(loop, step, iteration)
    if idle is not None:
        yield Execute(op="", members=idle.members, iteration=iteration)
    yield from _expected(loop, step, iteration)
    yield from _work(loop, step, iteration)
    yield from _fences(loop, step)
    yield from _arrivals(loop, step, iteration)


def _waits(loop: LoopSheet, step: Step, iteration: Iteration) -> Iterator[Wait]:
    found: dict[Wait, None] = {}
    for barrier in loop.plan.barriers:
        for order in barrier.waits:
            if order.head != step.name:
                continue
            lag = order.distance
            if lag < 0 and iteration.anchor == "last" and iteration.offset - lag >= 0:
                continue
            at_least = iteration.offset - lag + 1 if lag < 0 and iteration.anchor == "first" else 0
            found[Wait(use=iteration_use(barrier.name, iteration, lag), at_least=at_least)] = None
    yield from found


def _drains(loop: LoopSheet, step: Step, iteration: Iteration) -> Iterator[Draft]:
    copies = False
    for order in loop.plan.drains:
        if order.head != step.name:
            continue
        engine = loop.plan.steps[order.tail].engine
        copies = copies or engine == "cp_async"
        reads_only = engine == "tma_store" and order.kind in ("anti", "reuse")
        yield Observe(
            engine=engine, op=order.tail, iteration=shifted(iteration, -order.distance), reads_only=reads_only
        )
    read = [touch.ring for touch in loop.touches.get(step.op, ()) if not touch.writes or step.kind == "drain"]
    written = [touch.ring for touch in loop.touches.get(step.op, ()) if touch.writes]
    needed = step.engine in _ASYNCHRONOUS and read
    released = step.kind == "drain" and any(loop.read_asynchronously(ring) for ring in written)
    if copies and (needed or released):
        yield Fence(kind="async_shared")


def iteration_use(barrier: str, iteration: Iteration, lag: int = 0) -> BarrierUse:
    """Return the instance of a barrier of the loop for an iteration, ``lag`` before it."""
    return BarrierUse(barrier=barrier, instance=Instance(scope="iteration", iteration=iteration, lag=lag))


def access(touch: Touch, iteration: Iteration) -> Access:
    """Return the instance of a ring that a step of ``iteration`` touches."""
    return Access(ring=touch.ring, instance=Instance(scope="iteration", iteration=iteration, lag=touch.distance))


def _signalled(loop: LoopSheet, step: Step) -> tuple[LoopBarrier, ...]:
    return tuple(barrier for barrier in loop.plan.barriers if step.name in barrier.signals)


def _expected(loop: LoopSheet, step: Step, iteration: Iteration) -> Iterator[ExpectBytes]:
    """Yield what the first load of a group that counts on a barrier announces for all of them."""
    if step.engine != "tma":
        return
    for barrier in _signalled(loop, step):
        mine = [name for name in barrier.signals if loop.plan.steps[name].group == step.group]
        if step.name == min(mine, key=loop.step_position):
            total = sum(tile_bytes(loop.sheet.ops[name].work[0].results[0]) for name in mine)
            yield ExpectBytes(use=iteration_use(barrier.name, iteration), bytes=total)


def _work(loop: LoopSheet, step: Step, iteration: Iteration) -> Iterator[Draft]:
    touches = loop.touches.get(step.name, ())
    reads = tuple(access(touch, iteration) for touch in touches if not touch.writes)
    writes = tuple(access(touch, iteration) for touch in touches if touch.writes)
    if step.kind == "put":
        yield Put(value=step.value, iteration=iteration, access=writes[0])
    elif step.kind == "get":
        yield Get(value=step.value, iteration=iteration, access=reads[0])
    elif step.kind == "op" and loop.sheet.ops[step.op].members:
        full = _signalled(loop, step) if step.engine == "tma" else ()
        yield Execute(
            op=step.op,
            members=members_of(loop.sheet, step.op),
            engine=step.engine,
            iteration=iteration,
            reads=(*reads, *loop.fixed.get(step.op, ())),
            writes=writes,
            completes=iteration_use(full[0].name, iteration) if full else None,
        )
    elif step.kind == "op" and writes:
        yield Put(value=loop.rings[writes[0].ring].values[0], iteration=iteration, access=writes[0])
    elif step.kind == "op":
        yield Get(value=loaded_value(loop.sheet, step.op), iteration=iteration, access=reads[0])


def _fences(loop: LoopSheet, step: Step) -> Iterator[Fence]:
    if not step.synchronous:
        return
    written = [loop.rings[touch.ring] for touch in loop.touches.get(step.name, ()) if touch.writes]
    if any(ring.memory == "tmem" for ring in written):
        yield Fence(kind="tmem_store")
    if any(ring.memory == "smem" and loop.read_asynchronously(ring.name) for ring in written):
        yield Fence(kind="async_shared")


def _arrivals(loop: LoopSheet, step: Step, iteration: Iteration) -> Iterator[Draft]:
    if step.engine == "tma":
        return
    for barrier in _signalled(loop, step):
        use = iteration_use(barrier.name, iteration)
        yield Commit(engine="tcgen05", use=use) if step.engine == "tcgen05" else Arrive(use=use)


def arrivals(loop: LoopSheet, barrier: LoopBarrier) -> int:
    """Return the arrivals of one phase: one for each step, one for each group that announces bytes."""
    steps = [loop.plan.steps[name] for name in barrier.signals]
    loading = {step.group for step in steps if step.engine == "tma"}
    return len(loading) + sum(1 for step in steps if step.engine != "tma")
