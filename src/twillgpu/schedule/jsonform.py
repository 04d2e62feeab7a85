"""Schedule JSON (``twillgpu-schedule/1``): what ``schedule --json`` prints and ``verify`` reads.

The document holds a schedule (interval, groups, ops, buffers) and what the search says about it. Reading is
strict, as for graphs. What follows from the schedule itself (stage and slot of an op, the ops of a group) may be
left out; where it is given it must agree. What the search says is checked for its form only.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import cast

from twillgpu.costs.columns import fixed_columns
from twillgpu.costs.record import PriceOptions, Problem
from twillgpu.graph.document import Cursor, parse
from twillgpu.graph.record import ValueSpace
from twillgpu.schedule.jsonlimits import limit_entries, recorded_limits
from twillgpu.schedule.jsonsaid import SAID
from twillgpu.schedule.record import Buffer, Group, Schedule, ScheduledOp, SearchResult

SCHEMA = "twillgpu-schedule/1"
SPACES = ("smem", "tmem")

_REQUIRED = ("schema", "ii_cycles", "groups", "ops", "buffers")
_NAMES = ("graph", "machine", "graph_sha256", "machine_sha256", "problem_sha256")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFile:
    """A schedule as read from a file.

    Attributes:
        schedule: the schedule.
        stages: the number of stages that the file claims for it, if any.
        limits: limits and rules under which it was made, if the file records them.
        where: the file, for messages.
    """

    schedule: Schedule
    stages: int | None
    limits: PriceOptions | None = None
    where: str = "schedule"


def schedule_to_json(problem: Problem, result: SearchResult, limits: PriceOptions | None = None) -> dict[str, object]:
    """Return the result of a search as JSON values, in the order in which ``write_schedule`` prints them.

    ``limits`` are those under which the problem was priced, ``None`` to leave them out.

    Where the search found no schedule, ``ii_cycles``, ``stages`` and ``length_cycles`` are ``null`` and the lists
    are empty. ``optimal`` is ``true`` where the interval meets an analytic bound, ``"within N stages"`` where
    schedules of at most N stages were refuted below it, and ``false`` where there is a gap.
    """
    return {
        "schema": SCHEMA,
        "graph": problem.name,
        "machine": problem.machine,
        "status": result.status,
        "ii_cycles": result.schedule.ii_cycles if result.schedule else None,
        "lower_bound_cycles": result.lower_bound_cycles,
        "optimal": _optimal(result),
        "bound_reason": result.bound_reason,
        "max_stages": result.max_stages,
        **_schedule_entries(problem, result.schedule),
        "bounds": [dataclasses.asdict(bound) for bound in result.bounds.bounds],
        "impossible": list(result.bounds.impossible),
        "refuted": [
            {
                "ii_cycles": [refuted.first_cycles, refuted.last_cycles],
                "reason": refuted.reason,
                "families": list(refuted.families),
            }
            for refuted in result.refuted
        ],
        "fixed_columns": _fixed_columns_entry(problem),
        "search": _search_entry(result, limits),
        "graph_sha256": problem.graph_sha256,
        "machine_sha256": problem.machine_sha256,
        "problem_sha256": problem.sha256,
    }


def write_schedule(problem: Problem, result: SearchResult, limits: PriceOptions | None = None) -> str:
    """Return the result of a search as text: one key, op, group or buffer a line."""
    document = schedule_to_json(problem, result, limits)
    return "{\n" + ",\n".join(_line(key, value) for key, value in document.items()) + "\n}\n"


def read_schedule(text: str, where: str) -> Schedule:
    """Return the schedule that ``text`` holds; ``where`` is its file, for messages.

    Raises ``InputError`` with the path (``ops[3].start_cycle``) for whatever is malformed or contradicts itself,
    and for a document that holds no schedule because none was found.
    """
    return read_schedule_file(text, where).schedule


def read_schedule_file(text: str, where: str) -> ScheduleFile:
    """Return the schedule and what the file claims and records; raises ``InputError`` as ``read_schedule`` does."""
    root = parse(text, where)
    _check_schema(root)
    root.object(_REQUIRED, (*_NAMES, "stages", "length_cycles", *SAID))
    for key, check in SAID.items():
        if root.has(key):
            check(root.child(key))
    if root.child("ii_cycles").value is None:
        raise root.child("ii_cycles").fail(
            "there is no schedule in it: none was found", "give a document with a schedule"
        )
    schedule = _schedule(root)
    _check_stages(root, schedule)
    limits = recorded_limits(root.child("search").child("options"))
    return ScheduleFile(schedule=schedule, stages=_claim(root, "stages"), limits=limits, where=where)


def hash_mismatches(problem: Problem, schedule: Schedule) -> tuple[str, ...]:
    """Return a sentence for each of graph and machine whose content is not what the schedule was made for.

    Where both sides have the hash of the priced problem and it is the same, nothing else matters: a kernel and the
    graph that was emitted from it are two files of one problem. A hash that either side lacks is no mismatch. The
    caller decides whether one is an error or a remark.
    """
    if problem.sha256 and schedule.problem_sha256 == problem.sha256:
        return ()
    pairs = (
        ("graph", schedule.graph_sha256, problem.graph_sha256),
        ("machine", schedule.machine_sha256, problem.machine_sha256),
    )
    return tuple(
        f"the schedule was made for another {what}: sha256 {made_for[:12]}..., here {here[:12]}..."
        for what, made_for, here in pairs
        if made_for and here and made_for != here
    )


def _optimal(result: SearchResult) -> bool | str:
    if result.status != "optimal" or result.schedule is None:
        return False
    if result.bounds.bounds and result.bounds.binding.cycles == result.schedule.ii_cycles:
        return True
    return f"within {result.max_stages} stage" + ("" if result.max_stages == 1 else "s")


def _schedule_entries(problem: Problem, schedule: Schedule | None) -> dict[str, object]:
    if schedule is None:
        return {"stages": None, "length_cycles": None, "groups": [], "ops": [], "buffers": [], "utilisation": {}}
    latency = {op.name: op.latency_cycles for op in problem.ops}
    interval = schedule.ii_cycles
    length = max((op.start_cycle + latency[op.name] for op in schedule.ops), default=0)
    last_stage = max((op.start_cycle // interval for op in schedule.ops), default=0)
    return {
        "stages": max(-(-length // interval), last_stage + 1),
        "length_cycles": length,
        "groups": [_group_entry(schedule, index) for index in range(len(schedule.groups))],
        "ops": _op_entries(problem, schedule),
        "buffers": [dataclasses.asdict(buffer) for buffer in schedule.buffers],
        "utilisation": _utilisation(problem, interval),
    }


def _group_entry(schedule: Schedule, index: int) -> dict[str, object]:
    ops = [op.name for op in schedule.ops if op.group == index]
    return {**dataclasses.asdict(schedule.groups[index]), "ops": ops}


def _op_entries(problem: Problem, schedule: Schedule) -> list[dict[str, object]]:
    priced = {op.name: op for op in problem.ops}
    return [
        {
            "name": op.name,
            "kind": priced[op.name].kind,
            "source": priced[op.name].source,
            "start_cycle": op.start_cycle,
            "stage": op.start_cycle // schedule.ii_cycles,
            "slot": op.start_cycle % schedule.ii_cycles,
            "group": op.group,
        }
        for op in schedule.ops
    ]


def _utilisation(problem: Problem, interval: int) -> dict[str, float]:
    """Return the fraction of each unit's capacity that one interval holds, to four decimals."""
    held = {unit.name: 0 for unit in problem.units}
    for use in (use for op in problem.ops for use in op.uses):
        held[use.unit] += use.cycles * use.amount
    return {unit.name: round(held[unit.name] / (unit.capacity * interval), 4) for unit in problem.units}


def _fixed_columns_entry(problem: Problem) -> dict[str, object] | None:
    found = fixed_columns(problem)
    if found is None:
        return None
    return {
        "shared": [dataclasses.asdict(pair) for pair in found.shared],
        "lower_bound_cycles": found.bounds.binding.cycles,
        "bound": found.bounds.binding.name,
        "reason": found.bounds.binding.reason,
        "impossible": list(found.bounds.impossible),
    }


def _search_entry(result: SearchResult, limits: PriceOptions | None) -> dict[str, object]:
    return {
        "method": result.method,
        "solver": result.solver,
        "version": result.version,
        "seconds": result.seconds,
        "work": round(result.work, 3),
        "limit": result.limit,
        "resolution": result.options.resolution,
        "slot_cycles": result.slot_cycles,
        "objective": dict(result.objective),
        "objective_proved": result.objective_proved,
        "remarks": list(result.remarks),
        "attempts": [dataclasses.asdict(attempt) for attempt in result.attempts],
        "options": {**dataclasses.asdict(result.options), **(limit_entries(limits) if limits is not None else {})},
    }


def _line(key: str, value: object) -> str:
    if isinstance(value, list) and value:
        entries = ",\n".join(f"    {json.dumps(entry)}" for entry in value)
        return f"  {json.dumps(key)}: [\n{entries}\n  ]"
    return f"  {json.dumps(key)}: {json.dumps(value)}"


def _check_schema(root: Cursor) -> None:
    """Check the schema before the keys: another document has other keys, and the schema explains them all."""
    if not isinstance(root.value, dict):
        raise root.wrong("an object")
    schema = root.child("schema")
    if not root.has("schema"):
        raise schema.fail("the key is missing", f'add "schema": "{SCHEMA}"')
    if schema.text() != SCHEMA:
        raise schema.fail(f"this reader knows {SCHEMA!r}, not {schema.value!r}", "give what schedule --json printed")


def _schedule(root: Cursor) -> Schedule:
    interval = root.child("ii_cycles").integer(low=1)
    groups = tuple(_group(item) for item in root.child("groups").items())
    ops = tuple(_op(item, interval, len(groups)) for item in root.child("ops").items())
    _check_members(root, ops)
    names = {name: root.child(name).text() if root.has(name) else "" for name in _NAMES}
    return Schedule(
        graph=names["graph"],
        machine=names["machine"],
        ii_cycles=interval,
        ops=ops,
        groups=groups,
        buffers=tuple(_buffer(item) for item in root.child("buffers").items()),
        graph_sha256=names["graph_sha256"],
        machine_sha256=names["machine_sha256"],
        problem_sha256=names["problem_sha256"],
    )


def _group(cursor: Cursor) -> Group:
    cursor.object(("name", "warps"), ("registers_per_thread", "ops"))
    return Group(
        name=cursor.child("name").name(),
        warps=cursor.child("warps").integer(low=1),
        registers_per_thread=_optional(cursor, "registers_per_thread") or 0,
    )


def _op(cursor: Cursor, interval: int, groups: int) -> ScheduledOp:
    cursor.object(("name", "start_cycle", "group"), ("kind", "source", "stage", "slot"))
    for key in ("kind", "source"):
        if cursor.has(key):
            cursor.child(key).text()
    start, group = cursor.child("start_cycle").integer(), cursor.child("group").integer()
    if group >= groups:
        known = f"the groups are numbered 0 to {groups - 1}" if groups else "add the groups that the ops are in"
        raise cursor.child("group").fail(f"there is no group {group}", known)
    _check_same(cursor, "stage", start // interval)
    _check_same(cursor, "slot", start % interval)
    return ScheduledOp(name=cursor.child("name").name(), start_cycle=start, group=group)


def _buffer(cursor: Cursor) -> Buffer:
    cursor.object(("name", "space", "bytes", "depth", "depth_floor", "offset_bytes"))
    return Buffer(
        name=cursor.child("name").name(),
        space=cast("ValueSpace", cursor.child("space").choice(SPACES)),
        bytes=cursor.child("bytes").integer(),
        depth=cursor.child("depth").integer(low=1),
        depth_floor=cursor.child("depth_floor").integer(low=1),
        offset_bytes=cursor.child("offset_bytes").integer(),
    )


def _optional(cursor: Cursor, key: str) -> int | None:
    return cursor.child(key).integer() if cursor.has(key) else None


def _claim(root: Cursor, key: str) -> int | None:
    child = root.child(key)
    return None if child.value is None else child.integer()


def _check_same(cursor: Cursor, key: str, value: int) -> None:
    given = _optional(cursor, key)
    if given not in (None, value):
        raise cursor.child(key).fail(f"{given} contradicts the start cycle, which makes it {value}", f"write {value}")


def _check_members(root: Cursor, ops: tuple[ScheduledOp, ...]) -> None:
    """Check the ops that each group lists against the groups that the ops give."""
    for index, item in enumerate(root.child("groups").items()):
        if not item.has("ops"):
            continue
        listed = item.child("ops")
        given = sorted(name.name() for name in listed.items())
        if given != sorted(op.name for op in ops if op.group == index):
            raise listed.fail(
                "the group does not list the ops that give it as their group", "correct the list, or leave it out"
            )


def _check_stages(root: Cursor, schedule: Schedule) -> None:
    """Check the claims on stages as far as starts alone can contradict them; latencies are the verifier's."""
    last = max((op.start_cycle for op in schedule.ops), default=0)
    stages, length = _claim(root, "stages"), _claim(root, "length_cycles")
    least = last // schedule.ii_cycles + 1
    if stages is not None and stages < least:
        raise root.child("stages").fail(f"{stages} is too small", f"the ops need at least {least} stages")
    if length is not None and length < last:
        raise root.child("length_cycles").fail(f"{length} is too small", f"an op starts at cycle {last}")
