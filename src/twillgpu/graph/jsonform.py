"""Graph JSON (``twillgpu-graph/1``): the stable interchange form of a scheduling problem.

``docs/formats.md`` describes it. Reading is strict: whatever the reader does not know or cannot use is an error
with its path inside the document.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import cast, get_args

from twillgpu.errors import InputError
from twillgpu.graph.checks import check_graph
from twillgpu.graph.digest import with_digest
from twillgpu.graph.document import Cursor, parse
from twillgpu.graph.record import (
    EDGE_KINDS,
    Concurrency,
    Cost,
    DepGraph,
    Edge,
    EdgeKind,
    LegalityRelation,
    LegalPair,
    Limits,
    Op,
    Resident,
    Use,
    Value,
    ValueSpace,
    VariableLatency,
)
from twillgpu.machine.load import from_mapping
from twillgpu.machine.record import Machine
from twillgpu.machine.text import to_mapping

SCHEMA = "twillgpu-graph/1"
MEMORIES = ("smem", "tmem")

_GRAPH_REQUIRED = ("schema", "name", "ops", "edges")
_GRAPH_OPTIONAL = ("machine", "trip_count", "fixed_bytes", "flop_per_iteration", "residents", "legality", "limits")
_OP_REQUIRED = ("name", "latency_cycles")
_OP_OPTIONAL = (
    "kind",
    "source",
    "uses",
    "issue_cycles",
    "warps",
    "variable_latency",
    "asynchronous",
    "result",
    "handoff_cycles",
)
_EDGE_OPTIONAL = ("latency_cycles", "distance", "kind", "blocking", "handoff_cycles", "read_cycles")
_LEGALITY_REQUIRED = ("rule", "relation", "first", "second")
_LEGALITY_OPTIONAL = ("distance",)
_LIMITS = ("max_groups", "max_warps", "registers", "concurrency", "variable_latency", "cross_group")


def read_graph(text: str, where: str) -> DepGraph:
    """Return the graph that ``text`` holds; ``where`` is its file, for messages.

    Raises ``InputError`` with the path (``ops[3].uses[0].unit``) for whatever is malformed: see
    ``docs/formats.md``. A ``machine`` given as an object is read by ``twillgpu.machine.load.from_mapping``; a name
    is kept as a name, and ``checks.check_units`` checks the units once the machine is known.
    """
    root = parse(text, where)
    _check_schema(root)
    root.object(_GRAPH_REQUIRED, _GRAPH_OPTIONAL)
    graph = DepGraph(
        name=root.child("name").name(),
        machine=_machine(root.child("machine")),
        trip_count=_optional_integer(root, "trip_count"),
        fixed_bytes=_fixed_bytes(root.child("fixed_bytes")) if root.has("fixed_bytes") else (),
        ops=tuple(_op(op) for op in root.child("ops").items()),
        edges=tuple(_edge(edge) for edge in root.child("edges").items()),
        residents=tuple(_resident(item) for item in root.child("residents").items()) if root.has("residents") else (),
        legality=_legality(root.child("legality")),
        limits=_limits(root.child("limits")) if root.has("limits") else Limits(),
        flop_per_iteration=_optional_integer(root, "flop_per_iteration") or 0,
    )
    check_graph(graph, where)
    return with_digest(graph)


def write_graph(graph: DepGraph) -> str:
    """Return the graph as text that ``read_graph`` reads back to an equal graph.

    Raises ``InputError`` for an op without a price in cycles: only priced graphs have a JSON form.
    """
    head: dict[str, object] = {"schema": SCHEMA, "name": graph.name}
    if graph.machine is not None:
        head["machine"] = graph.machine if isinstance(graph.machine, str) else to_mapping(graph.machine)
    head["trip_count"] = graph.trip_count
    head["fixed_bytes"] = dict(graph.fixed_bytes)
    if graph.limits != Limits():
        head["limits"] = {key: value for key, value in asdict(graph.limits).items() if value is not None}
    if graph.flop_per_iteration:
        head["flop_per_iteration"] = graph.flop_per_iteration
    parts = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    parts.append(_lines("ops", [_op_entry(op) for op in graph.ops]))
    parts.append(_lines("edges", [_edge_entry(edge) for edge in graph.edges]))
    if graph.residents:
        parts.append(_lines("residents", [_resident_entry(resident) for resident in graph.residents]))
    if graph.legality is not None:
        parts.append(_lines("legality", [_pair_entry(pair) for pair in graph.legality]))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _check_schema(root: Cursor) -> None:
    """Check the schema before the keys: another document has other keys, and the schema explains them all."""
    if not isinstance(root.value, dict):
        raise root.wrong("an object")
    schema = root.child("schema")
    if not root.has("schema"):
        raise schema.fail("the key is missing", f'add "schema": "{SCHEMA}"')
    if schema.text() != SCHEMA:
        raise schema.fail(f"this reader knows {SCHEMA!r}, not {schema.value!r}", f'write "schema": "{SCHEMA}"')


def _machine(cursor: Cursor) -> str | Machine | None:
    if cursor.value is None:
        return None
    if isinstance(cursor.value, dict):
        return from_mapping(cursor.value, f"{cursor.where}: {cursor.path}")
    if isinstance(cursor.value, str):
        return cursor.name()
    raise cursor.wrong("a machine's name or an object")


def _optional_integer(cursor: Cursor, key: str, *, low: int = 0) -> int | None:
    """Return an integer that may be missing or ``null``."""
    child = cursor.child(key)
    return None if child.value is None else child.integer(low=low)


def _optional_flag(cursor: Cursor, key: str) -> bool | None:
    """Return a boolean that may be missing or ``null``."""
    child = cursor.child(key)
    return None if child.value is None else child.flag()


def _optional_choice(cursor: Cursor, key: str, names: tuple[str, ...]) -> str | None:
    """Return one of ``names``, which may be missing or ``null``."""
    child = cursor.child(key)
    return None if child.value is None else child.choice(names)


def _fixed_bytes(cursor: Cursor) -> tuple[tuple[str, int], ...]:
    cursor.object((), MEMORIES)
    return tuple((key, cursor.child(key).integer()) for key in MEMORIES if cursor.has(key))


def _op(cursor: Cursor) -> Op:
    cursor.object(_OP_REQUIRED, _OP_OPTIONAL)
    result = cursor.child("result")
    return Op(
        name=cursor.child("name").name(),
        kind=cursor.child("kind").name() if cursor.has("kind") else "op",
        source=cursor.child("source").text() if cursor.has("source") else "",
        warps=cursor.child("warps").integer(low=1) if cursor.has("warps") else 4,
        variable_latency=cursor.has("variable_latency") and cursor.child("variable_latency").flag(),
        result=None if result.value is None else _value(result),
        cost=_cost(cursor),
    )


def _cost(cursor: Cursor) -> Cost:
    uses = tuple(_use(use) for use in cursor.child("uses").items()) if cursor.has("uses") else ()
    longest = max((use.cycles for use in uses), default=0)
    return Cost(
        uses=uses,
        issue_cycles=cursor.child("issue_cycles").integer() if cursor.has("issue_cycles") else longest,
        latency_cycles=cursor.child("latency_cycles").integer(),
        handoff_cycles=_optional_integer(cursor, "handoff_cycles"),
        asynchronous=_optional_flag(cursor, "asynchronous"),
    )


def _use(cursor: Cursor) -> Use:
    cursor.object(("unit", "cycles"), ("offset", "amount"))
    return Use(
        unit=cursor.child("unit").name(),
        cycles=cursor.child("cycles").integer(low=1),
        offset=cursor.child("offset").integer() if cursor.has("offset") else 0,
        amount=cursor.child("amount").integer(low=1) if cursor.has("amount") else 1,
    )


def _value(cursor: Cursor) -> Value:
    cursor.object(("space", "bytes"), ("registers_per_thread", "alias"))
    alias = cursor.child("alias")
    return Value(
        space=cast("ValueSpace", cursor.child("space").choice(get_args(ValueSpace))),
        bytes=cursor.child("bytes").integer(),
        registers_per_thread=_optional_integer(cursor, "registers_per_thread"),
        alias=None if alias.value is None else alias.name(),
    )


def _edge(cursor: Cursor) -> Edge:
    cursor.object(("from", "to"), _EDGE_OPTIONAL)
    kind = cast("EdgeKind", cursor.child("kind").choice(EDGE_KINDS)) if cursor.has("kind") else "data"
    if kind != "data" and cursor.child("read_cycles").value is not None:
        raise cursor.child("read_cycles").fail(f"an edge of kind {kind} reads no value", "leave read_cycles out")
    return Edge(
        tail=cursor.child("from").name(),
        head=cursor.child("to").name(),
        latency_cycles=_optional_integer(cursor, "latency_cycles"),
        distance=cursor.child("distance").integer() if cursor.has("distance") else 0,
        kind=kind,
        blocking=cursor.has("blocking") and cursor.child("blocking").flag(),
        handoff_cycles=_optional_integer(cursor, "handoff_cycles"),
        read_cycles=_optional_integer(cursor, "read_cycles"),
    )


def _legality(cursor: Cursor) -> tuple[LegalPair, ...] | None:
    return None if cursor.value is None else tuple(_pair(item) for item in cursor.items())


def _pair_entry(pair: LegalPair) -> dict[str, object]:
    entry = asdict(pair)
    if not pair.distance:
        del entry["distance"]
    return entry


def _pair(cursor: Cursor) -> LegalPair:
    cursor.object(_LEGALITY_REQUIRED, _LEGALITY_OPTIONAL)
    return LegalPair(
        rule=cursor.child("rule").name(),
        relation=cast("LegalityRelation", cursor.child("relation").choice(get_args(LegalityRelation))),
        first=cursor.child("first").name(),
        second=cursor.child("second").name(),
        distance=cursor.child("distance").integer() if cursor.has("distance") else 0,
    )


def _limits(cursor: Cursor) -> Limits:
    cursor.object((), _LIMITS)
    variable = _optional_choice(cursor, "variable_latency", get_args(VariableLatency))
    return Limits(
        max_groups=_optional_integer(cursor, "max_groups", low=1),
        max_warps=_optional_integer(cursor, "max_warps", low=1),
        registers=_optional_integer(cursor, "registers"),
        concurrency=cast("Concurrency | None", _optional_choice(cursor, "concurrency", get_args(Concurrency))),
        variable_latency=cast("VariableLatency | None", variable),
        cross_group=_optional_flag(cursor, "cross_group"),
    )


def _resident(cursor: Cursor) -> Resident:
    cursor.object(("name", "registers_per_thread", "users"))
    return Resident(
        name=cursor.child("name").name(),
        registers_per_thread=cursor.child("registers_per_thread").integer(),
        users=tuple(user.name() for user in cursor.child("users").items()),
    )


def _op_entry(op: Op) -> dict[str, object]:
    if op.cost is None:
        raise InputError(
            f"op {op.name}", "it has no price in cycles", "price the graph for a machine (--machine NAME)"
        )
    entry: dict[str, object] = {"name": op.name, "kind": op.kind}
    if op.source:
        entry["source"] = op.source
    entry["uses"] = [
        {"unit": use.unit, "offset": use.offset, "cycles": use.cycles, "amount": use.amount} for use in op.cost.uses
    ]
    entry |= {"issue_cycles": op.cost.issue_cycles, "latency_cycles": op.cost.latency_cycles, "warps": op.warps}
    if op.variable_latency:
        entry["variable_latency"] = True
    if op.cost.asynchronous is not None:
        entry["asynchronous"] = op.cost.asynchronous
    if op.result is not None:
        entry["result"] = _value_entry(op.result)
    if op.cost.handoff_cycles is not None:
        entry["handoff_cycles"] = op.cost.handoff_cycles
    return entry


def _value_entry(value: Value) -> dict[str, object]:
    entry: dict[str, object] = {"space": value.space, "bytes": value.bytes}
    if value.registers_per_thread is not None:
        entry["registers_per_thread"] = value.registers_per_thread
    if value.alias is not None:
        entry["alias"] = value.alias
    return entry


def _edge_entry(edge: Edge) -> dict[str, object]:
    entry: dict[str, object] = {"from": edge.tail, "to": edge.head}
    if edge.latency_cycles is not None:
        entry["latency_cycles"] = edge.latency_cycles
    entry |= {"distance": edge.distance, "kind": edge.kind}
    if edge.blocking:
        entry["blocking"] = True
    if edge.handoff_cycles is not None:
        entry["handoff_cycles"] = edge.handoff_cycles
    if edge.read_cycles is not None:
        entry["read_cycles"] = edge.read_cycles
    return entry


def _resident_entry(resident: Resident) -> dict[str, object]:
    return {
        "name": resident.name,
        "registers_per_thread": resident.registers_per_thread,
        "users": list(resident.users),
    }


def _lines(key: str, entries: list[dict[str, object]]) -> str:
    """Return one key with a list of entries, an entry a line."""
    if not entries:
        return f"  {json.dumps(key)}: []"
    return f"  {json.dumps(key)}: [\n" + ",\n".join(f"    {json.dumps(entry)}" for entry in entries) + "\n  ]"
