"""The smallest initiation interval of a tiny problem, by trying every start, group, quota and place.

The rules are the verifier's; what is done here only leaves out early what they would refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from slow_oracle import Execution, Life, live_at_once, lives
from twillgpu.costs.record import PricedEdge, PricedOp, Problem
from twillgpu.machine.record import Registers
from twillgpu.schedule.record import Buffer, Group, Schedule, ScheduledOp
from twillgpu.verify import Verified, check
from twillgpu.verify.registers import register_peak, registers_taken

Placed = dict[str, tuple[int, int]]
"""Start and group of the ops placed so far."""


def brute_force(
    problem: Problem, max_stages: int, *, longest: int = 10, extra_depth: int = 0
) -> tuple[int, Schedule] | None:
    """Return the smallest interval with an example, over all schedules of at most ``max_stages`` stages.

    ``None``: none exists up to ``longest`` cycles. Rings get their floor, and up to ``extra_depth`` copies more
    where that helps them to share bytes.
    """
    if _too_large(problem):
        return None
    for interval in range(_least(problem), longest + 1):
        for schedule in schedules(problem, interval, max_stages, extra_depth=extra_depth):
            return interval, schedule
    return None


def schedules(problem: Problem, interval: int, max_stages: int, *, extra_depth: int = 0) -> Iterator[Schedule]:
    """Yield the schedules of one interval, up to moves in time and names of groups; all pass the verifier."""
    apart = _apart(problem, interval)
    if apart is None:
        return
    for placed in _placements(problem, interval, max_stages, apart):
        bare = _bare(problem, interval, placed)
        found = None if bare is None else _with_buffers(problem, bare, extra_depth)
        if found is not None and isinstance(check(problem, found, max_stages=max_stages), Verified):
            yield found


def _too_large(problem: Problem) -> bool:
    """Return whether one value alone is too large for its memory, or for the registers of a thread."""
    fixed, limits = dict(problem.fixed_bytes), problem.registers
    room = {memory.name: memory.capacity_bytes - fixed.get(memory.name, 0) for memory in problem.memories}
    if limits is not None:
        room["registers"] = limits.per_thread // limits.quota_step * limits.quota_step - limits.overhead_per_thread
    for op in problem.ops:
        if op.value is not None and op.latency_cycles > 0:
            size = op.value.registers_per_thread if op.value.space == "registers" else op.value.bytes
            if size > room.get(op.value.space, size):
                return True
    return False


def _least(problem: Problem) -> int:
    """Return the interval below which the uses of some unit cannot fit it."""
    held = {unit.name: 0 for unit in problem.units}
    for use in (use for op in problem.ops for use in op.uses):
        held[use.unit] += use.cycles * use.amount
    return max([1, *(-(-held[unit.name] // unit.capacity) for unit in problem.units)])


def _apart(problem: Problem, interval: int) -> dict[tuple[str, str], int] | None:
    """Return the least distance from start to start that paths of edges ask of pairs of ops (Floyd and Warshall).

    ``None`` where some circuit takes longer than its distance in iterations allows.
    """
    names = [op.name for op in problem.ops]
    least: dict[tuple[str, str], int] = {}
    for edge in problem.edges:
        pair = (edge.tail, edge.head)
        least[pair] = max(least.get(pair, -(10**9)), edge.latency_cycles - edge.distance * interval)
    for middle, tail, head in product(names, names, names):
        if (tail, middle) in least and (middle, head) in least:
            through = least[tail, middle] + least[middle, head]
            least[tail, head] = max(least.get((tail, head), through), through)
    return None if any(least.get((name, name), 0) > 0 for name in names) else least


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """One interval to try, with what the rules on pairs of ops look up."""

    problem: Problem
    interval: int
    max_stages: int
    edges: dict[str, tuple[PricedEdge, ...]]
    apart: dict[tuple[str, str], int]
    forbidden: frozenset[PricedEdge]
    windows: dict[str, int]
    capacity: dict[str, int]


def _placements(
    problem: Problem, interval: int, max_stages: int, apart: dict[tuple[str, str], int]
) -> Iterator[Placed]:
    """Yield starts and groups of all ops that no rule on pairs of ops, and no unit, refuses."""
    trial = _Trial(
        problem=problem,
        interval=interval,
        max_stages=max_stages,
        edges={op.name: tuple(e for e in problem.edges if op.name in (e.tail, e.head)) for op in problem.ops},
        apart=apart,
        forbidden=_forbidden(problem),
        windows={op.name: _window(problem, op) for op in problem.ops},
        capacity={unit.name: unit.capacity for unit in problem.units},
    )
    yield from _extend(trial, {}, {unit.name: [0] * interval for unit in problem.units})


def _extend(trial: _Trial, placed: Placed, held: Mapping[str, list[int]]) -> Iterator[Placed]:
    ops = trial.problem.ops
    if len(placed) == len(ops):
        if min(start for start, _ in placed.values()) == 0:
            yield dict(placed)
        return
    op = ops[len(placed)]
    for start in _starts(trial, placed, op):
        booked = _book(trial, op, start, held)
        if booked is None:
            continue
        for group in _groups_for(trial.problem, op, placed):
            placed[op.name] = (start, group)
            if _warps_fit(trial, placed) and _pairs_agree(trial, placed, op) and _waits_agree(trial, placed, op):
                yield from _extend(trial, placed, booked)
            del placed[op.name]


def _starts(trial: _Trial, placed: Placed, op: PricedOp) -> range:
    """Return the starts that the stages and the edges from and to placed ops leave."""
    name, end, least = op.name, trial.max_stages * trial.interval, trial.apart
    ends = {other.name: min(end - 1, end - other.latency_cycles) for other in trial.problem.ops}
    first, last = 0, ends[name]
    for other, latest in ends.items():
        known = placed.get(other)
        if (other, name) in least:
            first = max(first, (known[0] if known else 0) + least[other, name])
        if (name, other) in least:
            last = min(last, (known[0] if known else latest) - least[name, other])
    return range(first, last + 1)


def _book(trial: _Trial, op: PricedOp, start: int, held: Mapping[str, list[int]]) -> Mapping[str, list[int]] | None:
    if not op.uses:
        return held
    booked = {unit: list(slots) for unit, slots in held.items()}
    for use in op.uses:
        slots, limit = booked[use.unit], trial.capacity[use.unit]
        for cycle in range(start + use.offset, start + use.offset + use.cycles):
            slots[cycle % trial.interval] += use.amount
            if slots[cycle % trial.interval] > limit:
                return None
    return booked


def _groups_for(problem: Problem, op: PricedOp, placed: Placed) -> range:
    """Return the groups worth trying: those in use and one new one; group 0 alone has a meaning of its own."""
    option, limit = problem.rules.variable_latency, problem.groups.max
    marked = option != "free" and (limit > 1 or option == "iff") and any(o.variable_latency for o in problem.ops)
    if marked and op.variable_latency:
        return range(1)
    first = 1 if marked and option == "iff" else 0
    highest = max((group for _, group in placed.values()), default=-1)
    return range(first, min(limit, max(highest, 0 if marked else -1) + 2))


def _warps_fit(trial: _Trial, placed: Placed) -> bool:
    """Return whether the groups so far, as narrow and with as few registers as they can be, fit the block."""
    widest: dict[int, int] = {}
    for op in trial.problem.ops:
        if op.name in placed:
            group = placed[op.name][1]
            widest[group] = max(widest.get(group, 0), op.warps)
    total = sum(
        min((w for w in trial.problem.groups.warps if w >= width), default=10**6) for width in widest.values()
    )
    limits = trial.problem.registers
    if limits is not None and 32 * (total + -total % 4) * limits.quota_min > limits.per_sm:
        return False
    return total <= trial.problem.groups.max_warps


def _pairs_agree(trial: _Trial, placed: Placed, new: PricedOp) -> bool:
    for edge in trial.edges[new.name]:
        if edge.tail in placed and edge.head in placed:
            (tail, tail_group), (head, head_group) = placed[edge.tail], placed[edge.head]
            if tail_group != head_group and edge in trial.forbidden:
                return False
            handoff = edge.handoff_cycles if tail_group != head_group else 0
            if head + edge.distance * trial.interval < tail + edge.latency_cycles + handoff:
                return False
    for pair in trial.problem.legality:
        if pair.first in placed and pair.second in placed:
            same = placed[pair.first][1] == placed[pair.second][1]
            if same != (pair.relation == "together"):
                return False
    return True


def _waits_agree(trial: _Trial, placed: Placed, new: PricedOp) -> bool:
    """Return whether no wait collides with the issue of another op, as far as placed ops tell."""
    neighbours = {new.name, *(edge.head for edge in trial.edges[new.name])}
    for name, (start, group) in placed.items():
        mates = placed if name in neighbours else (new.name,)
        if _waits(trial, name, placed) and any(
            other != name
            and placed[other][1] == group
            and (start - placed[other][0]) % trial.interval < trial.windows[other]
            for other in mates
        ):
            return False
    return True


def _waits(trial: _Trial, name: str, placed: Placed) -> bool:
    return any(
        edge.head == name and (edge.blocking or (edge.tail in placed and placed[edge.tail][1] != placed[name][1]))
        for edge in trial.edges[name]
    )


def _forbidden(problem: Problem) -> frozenset[PricedEdge]:
    """Return the edges that may not go from one group to another."""
    held = {op.name for op in problem.ops if op.value is not None and op.value.space == "registers"}
    crossing = frozenset(edge for edge in problem.edges if edge.kind == "data" and edge.tail in held)
    return frozenset() if problem.rules.cross_group else crossing


def _window(problem: Problem, op: PricedOp) -> int:
    if problem.rules.concurrency == "issue":
        return op.issue_cycles
    return max([0, *(use.offset + use.cycles for use in op.uses)])


def _bare(problem: Problem, interval: int, placed: Placed) -> Schedule | None:
    """Return the schedule without buffers, each group as narrow and with as few registers as it can be."""
    count = max(group for _, group in placed.values()) + 1
    if {group for _, group in placed.values()} != set(range(count)):
        return None
    widths = [_width(problem, placed, group) for group in range(count)]
    if None in widths or sum(width or 0 for width in widths) > problem.groups.max_warps:
        return None
    schedule = Schedule(
        graph=problem.name,
        machine=problem.machine,
        ii_cycles=interval,
        ops=tuple(ScheduledOp(name=name, start_cycle=s, group=g) for name, (s, g) in placed.items()),
        groups=tuple(
            Group(name=f"g{group}", warps=width or 0, registers_per_thread=0) for group, width in enumerate(widths)
        ),
        buffers=(),
    )
    return schedule if problem.registers is None else _with_quotas(problem, schedule, problem.registers)


def _width(problem: Problem, placed: Placed, group: int) -> int | None:
    needed = max(op.warps for op in problem.ops if placed[op.name][1] == group)
    return min((width for width in problem.groups.warps if width >= needed), default=None)


def _with_quotas(problem: Problem, schedule: Schedule, limits: Registers) -> Schedule | None:
    groups = []
    for index, group in enumerate(schedule.groups):
        most = register_peak(problem, schedule, index)
        needed = (most.amount if most else 0) + limits.overhead_per_thread
        legal = range(0, limits.per_thread + 1, limits.quota_step)
        quota = min((q for q in legal if q >= max(needed, limits.quota_min)), default=None)
        if quota is None:
            return None
        groups.append(replace(group, registers_per_thread=quota))
    found = replace(schedule, groups=tuple(groups))
    return found if registers_taken(found, limits) <= limits.per_sm else None


def _with_buffers(problem: Problem, schedule: Schedule, extra_depth: int) -> Schedule | None:
    run = Execution(problem, schedule)
    needed = lives(run)
    floors = [live_at_once(run, life) for life in needed]
    more = [range(1) if life.pinned else range(extra_depth + 1) for life in needed]
    for extras in product(*more):
        rings = [
            Buffer(
                name=life.name,
                space="tmem" if life.space == "tmem" else "smem",
                bytes=life.bytes,
                depth=floor + extra,
                depth_floor=floor,
                offset_bytes=0,
            )
            for life, floor, extra in zip(needed, floors, extras, strict=True)
        ]
        found = _place(problem, run, needed, rings, [])
        if found is not None:
            return replace(schedule, buffers=tuple(found))
    return None


def _place(
    problem: Problem, run: Execution, needed: list[Life], rings: list[Buffer], done: list[Buffer]
) -> list[Buffer] | None:
    """Try every place of the next ring, then of the ones after it."""
    if len(done) == len(rings):
        return done
    ring = rings[len(done)]
    for offset in _offsets(problem, ring, done):
        here = replace(ring, offset_bytes=offset)
        if not any(_clash(run, needed, [*done, here], index) for index in range(len(done))):
            found = _place(problem, run, needed, rings, [*done, here])
            if found is not None:
                return found
    return None


def _offsets(problem: Problem, ring: Buffer, done: list[Buffer]) -> range:
    fixed = dict(problem.fixed_bytes).get(ring.space, 0)
    memory = next((memory for memory in problem.memories if memory.name == ring.space), None)
    if memory is None:
        ends = [other.offset_bytes + other.depth * other.bytes for other in done if other.space == ring.space]
        end = max([fixed, *ends])
        return range(end, end + 1)
    step = memory.alignment_bytes
    first = -(-fixed // step) * step
    return range(first, memory.capacity_bytes - ring.depth * ring.bytes + 1, step)


def _clash(run: Execution, needed: list[Life], done: list[Buffer], index: int) -> bool:
    """Return whether the last ring and the one at ``index`` ever hold live instances in one byte."""
    one, two = done[index], done[-1]
    if one.space != two.space:
        return False
    first, second = needed[index], needed[len(done) - 1]
    count = one.depth * two.depth + 2 * max(one.depth, two.depth) + 2
    spread = abs(first.start - second.start) // run.interval + 2
    return any(
        _meet(_bytes(one, i), _bytes(two, j)) and _meet(_cycles(run, first, i), _cycles(run, second, j))
        for i in range(count)
        for j in range(max(0, i - spread - one.depth - two.depth), i + spread + one.depth + two.depth)
    )


def _bytes(ring: Buffer, iteration: int) -> tuple[int, int]:
    first = ring.offset_bytes + iteration % ring.depth * ring.bytes
    return first, first + ring.bytes


def _cycles(run: Execution, life: Life, iteration: int) -> tuple[int, int]:
    if life.pinned:
        return 0, 10**9
    return life.start + iteration * run.interval, life.end + iteration * run.interval


def _meet(one: tuple[int, int], two: tuple[int, int]) -> bool:
    return max(one[0], two[0]) < min(one[1], two[1])
