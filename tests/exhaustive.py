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

Starts = dict[str, int]
Teams = dict[str, int]
"""Group of each op."""


def brute_force(
    problem: Problem, max_stages: int, *, longest: int = 10, extra_depth: int = 0
) -> tuple[int, Schedule] | None:
    """Return the smallest interval with an example, over all schedules of at most ``max_stages`` stages.

    ``None``: none exists up to ``longest`` cycles. Rings get their floor, and up to ``extra_depth`` copies more
    where that helps them to share bytes.
    """
    for interval in range(_least(problem), longest + 1):
        for schedule in schedules(problem, interval, max_stages, extra_depth=extra_depth):
            return interval, schedule
    return None


def schedules(problem: Problem, interval: int, max_stages: int, *, extra_depth: int = 0) -> Iterator[Schedule]:
    """Yield the schedules of one interval, up to moves in time and names of groups; all pass the verifier."""
    if _too_large(problem):
        return
    for teams in _teams(problem, {}):
        for starts in _placements(problem, interval, max_stages, teams):
            bare = _bare(problem, interval, starts, teams)
            found = None if bare is None else _with_buffers(problem, bare, extra_depth)
            if found is not None and isinstance(check(problem, found, max_stages=max_stages), Verified):
                yield found


def _too_large(problem: Problem) -> bool:
    """Return whether one value alone is too large for its memory."""
    fixed = dict(problem.fixed_bytes)
    room = {memory.name: memory.capacity_bytes - fixed.get(memory.name, 0) for memory in problem.memories}
    values = (op.value for op in problem.ops if op.value is not None)
    return any(value.bytes > room.get(value.space, value.bytes) for value in values)


def _least(problem: Problem) -> int:
    """Return the interval below which the uses of some unit cannot fit it."""
    held = {unit.name: 0 for unit in problem.units}
    for use in (use for op in problem.ops for use in op.uses):
        held[use.unit] += use.cycles * use.amount
    return max([1, *(-(-held[unit.name] // unit.capacity) for unit in problem.units)])


def _teams(problem: Problem, teams: Teams) -> Iterator[Teams]:
    """Yield every way to put the ops into groups that the rules on groups alone allow."""
    if len(teams) == len(problem.ops):
        if set(teams.values()) == set(range(max(teams.values()) + 1)):
            yield dict(teams)
        return
    op = problem.ops[len(teams)]
    for group in _groups_for(problem, op, teams):
        teams[op.name] = group
        if _legal(problem, teams) and _groups_fit(problem, teams):
            yield from _teams(problem, teams)
        del teams[op.name]


def _groups_for(problem: Problem, op: PricedOp, teams: Teams) -> range:
    """Return the groups worth trying: those in use and one new one; group 0 alone has a meaning of its own."""
    option, limit = problem.rules.variable_latency, problem.groups.max
    marked = option != "free" and limit > 1 and any(o.variable_latency for o in problem.ops)
    if marked and op.variable_latency:
        return range(1)
    first = 1 if marked and option == "iff" else 0
    highest = max(teams.values(), default=-1)
    return range(first, min(limit, max(highest, 0 if marked else -1) + 2))


def _legal(problem: Problem, teams: Teams) -> bool:
    known = [pair for pair in problem.legality if pair.first in teams and pair.second in teams]
    pairs = [pair for pair in known if pair.relation != "pause"]
    if any((teams[pair.first] == teams[pair.second]) != (pair.relation == "together") for pair in pairs):
        return False
    held = {op.name for op in problem.ops if op.value is not None and op.value.space == "registers"}
    data = [edge for edge in problem.edges if edge.kind == "data" and edge.tail in held]
    return problem.rules.cross_group or not any(_crosses(edge, teams) for edge in data)


def _crosses(edge: PricedEdge, teams: Teams) -> bool:
    return edge.tail in teams and edge.head in teams and teams[edge.tail] != teams[edge.head]


def _groups_fit(problem: Problem, teams: Teams) -> bool:
    """Return whether the groups so far, as narrow and with as few registers as they can be, fit the block."""
    members: dict[int, list[PricedOp]] = {}
    for op in problem.ops:
        if op.name in teams:
            members.setdefault(teams[op.name], []).append(op)
    widths = [_width(problem, ops) for ops in members.values()]
    total = sum(width or 10**6 for width in widths)
    if total > problem.groups.max_warps:
        return False
    limits = problem.registers
    if limits is None:
        return True
    quotas = [_quota(limits, _least_registers(problem, ops)) for ops in members.values()]
    taken = sum((width or 0) * (quota or 10**6) for width, quota in zip(widths, quotas, strict=True))
    return 32 * (taken + -total % 4 * limits.quota_min) <= limits.per_sm


def _least_registers(problem: Problem, ops: list[PricedOp]) -> int:
    """Return what a group of these ops needs at least: its residents, and the largest value made in it."""
    names = {op.name for op in ops}
    kept = sum(r.registers_per_thread for r in problem.residents if names & set(r.users))
    values = (op.value.registers_per_thread for op in ops if op.value is not None and op.latency_cycles > 0)
    return kept + max(values, default=0)


def _width(problem: Problem, ops: list[PricedOp]) -> int | None:
    needed = max(op.warps for op in ops)
    return min((width for width in problem.groups.warps if width >= needed), default=None)


def _quota(limits: Registers, live: int) -> int | None:
    """Return the smallest legal quota for so many live registers, ``None`` where none is large enough."""
    needed = max(live + limits.overhead_per_thread, limits.quota_min)
    quota = -(-needed // limits.quota_step) * limits.quota_step
    return quota if quota <= limits.per_thread else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """One interval and one choice of groups to try, with what the search for starts looks up.

    Attributes:
        last: latest start that the stages allow, per op.
        apart: least distance from start to start of pairs of ops.
        busy: (waiting op, other op): cycles from the other's start at which the first may not start.
    """

    ops: tuple[PricedOp, ...]
    interval: int
    last: dict[str, int]
    apart: dict[tuple[str, str], int]
    busy: dict[tuple[str, str], int]
    capacity: dict[str, int]


def _placements(problem: Problem, interval: int, max_stages: int, teams: Teams) -> Iterator[Starts]:
    """Yield starts of all ops that edges, hand-offs, waits and units allow."""
    apart = _apart(problem, interval, teams)
    if apart is None:
        return
    end = max_stages * interval
    trial = _Trial(
        ops=problem.ops,
        interval=interval,
        last={op.name: min(end - 1, end - op.latency_cycles) for op in problem.ops},
        apart=apart,
        busy=_busy(problem, teams),
        capacity={unit.name: unit.capacity for unit in problem.units},
    )
    yield from _extend(trial, {}, {unit.name: [0] * interval for unit in problem.units})


def _apart(problem: Problem, interval: int, teams: Teams) -> dict[tuple[str, str], int] | None:
    """Return the least distance from start to start that paths of edges ask of pairs of ops (Floyd and Warshall).

    ``None`` where some circuit takes longer than its distance in iterations allows.
    """
    names = [op.name for op in problem.ops]
    least: dict[tuple[str, str], int] = {}
    for edge in problem.edges:
        handoff = edge.handoff_cycles if _crosses(edge, teams) else 0
        cycles = edge.latency_cycles + handoff - edge.distance * interval
        least[edge.tail, edge.head] = max(least.get((edge.tail, edge.head), cycles), cycles)
    for middle, tail, head in product(names, names, names):
        if (tail, middle) in least and (middle, head) in least:
            through = least[tail, middle] + least[middle, head]
            least[tail, head] = max(least.get((tail, head), through), through)
    return None if any(least.get((name, name), 0) > 0 for name in names) else least


def _busy(problem: Problem, teams: Teams) -> dict[tuple[str, str], int]:
    waiting = {edge.head for edge in problem.edges if edge.blocking or _crosses(edge, teams)}
    return {
        (name, op.name): _window(problem, op)
        for name in waiting
        for op in problem.ops
        if op.name != name and teams[op.name] == teams[name]
    }


def _window(problem: Problem, op: PricedOp) -> int:
    if problem.rules.concurrency == "issue":
        return op.issue_cycles
    return max([0, *(use.offset + use.cycles for use in op.uses)])


def _extend(trial: _Trial, starts: Starts, held: Mapping[str, list[int]]) -> Iterator[Starts]:
    if len(starts) == len(trial.ops):
        if min(starts.values()) == 0:
            yield dict(starts)
        return
    op = trial.ops[len(starts)]
    for start in _range(trial, starts, op.name):
        booked = _book(trial, op, start, held)
        if booked is not None and not _collides(trial, starts, op.name, start):
            starts[op.name] = start
            yield from _extend(trial, starts, booked)
            del starts[op.name]


def _range(trial: _Trial, starts: Starts, name: str) -> range:
    """Return the starts that the stages and the paths from and to other ops leave."""
    first, last = 0, trial.last[name]
    for other, latest in trial.last.items():
        if (other, name) in trial.apart:
            first = max(first, starts.get(other, 0) + trial.apart[other, name])
        if (name, other) in trial.apart:
            last = min(last, starts.get(other, latest) - trial.apart[name, other])
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


def _collides(trial: _Trial, starts: Starts, name: str, start: int) -> bool:
    """Return whether this op waits while a placed one issues, or the other way round."""
    return any(
        (start - other_start) % trial.interval < trial.busy.get((name, other), 0)
        or (other_start - start) % trial.interval < trial.busy.get((other, name), 0)
        for other, other_start in starts.items()
    )


def _bare(problem: Problem, interval: int, starts: Starts, teams: Teams) -> Schedule | None:
    """Return the schedule without buffers, each group as narrow and with as few registers as it can be."""
    groups = []
    for group in range(max(teams.values()) + 1):
        width = _width(problem, [op for op in problem.ops if teams[op.name] == group])
        groups.append(Group(name=f"g{group}", warps=width or 0, registers_per_thread=0))
    schedule = Schedule(
        graph=problem.name,
        machine=problem.machine,
        ii_cycles=interval,
        ops=tuple(ScheduledOp(name=name, start_cycle=start, group=teams[name]) for name, start in starts.items()),
        groups=tuple(groups),
        buffers=(),
    )
    return schedule if problem.registers is None else _with_quotas(problem, schedule, problem.registers)


def _with_quotas(problem: Problem, schedule: Schedule, limits: Registers) -> Schedule | None:
    groups = []
    for index, group in enumerate(schedule.groups):
        most = register_peak(problem, schedule, index)
        quota = _quota(limits, most.amount if most else 0)
        if quota is None:
            return None
        groups.append(replace(group, registers_per_thread=quota))
    found = replace(schedule, groups=tuple(groups))
    warps = sum(group.warps for group in found.groups)
    return found if registers_taken(found, limits) <= limits.pool(warps + -warps % 4) else None


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
