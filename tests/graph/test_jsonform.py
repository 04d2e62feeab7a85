"""Graph JSON: handed cases, round trips, and a message with a path for every kind of malformed input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twillgpu.errors import InputError
from twillgpu.graph.checks import check_units
from twillgpu.graph.jsonform import read_graph, write_graph
from twillgpu.graph.record import (
    EDGE_KINDS,
    Cost,
    DepGraph,
    Edge,
    LegalPair,
    Limits,
    Op,
    Resident,
    Use,
    Value,
)
from twillgpu.machine.record import Machine, Unit

DATA = Path(__file__).parent / "data"
CASES = sorted(DATA.glob("*.json"))


def small() -> dict[str, Any]:
    """Return a document that uses every key."""
    return {
        "schema": "twillgpu-graph/1",
        "name": "small",
        "machine": {"name": "toy2", "units": {"tensor": 1, "exp": 1}},
        "trip_count": 12,
        "fixed_bytes": {"smem": 32768},
        "flop_per_iteration": 4096,
        "ops": [
            {
                "name": "load",
                "kind": "tma_load",
                "source": "a.py:41",
                "uses": [{"unit": "tensor", "offset": 3, "cycles": 32, "amount": 2}, {"unit": "exp", "cycles": 5}],
                "issue_cycles": 8,
                "latency_cycles": 600,
                "warps": 1,
                "variable_latency": True,
                "asynchronous": False,
                "result": {"space": "smem", "bytes": 16384, "alias": "ring"},
                "handoff_cycles": 30,
            },
            {"name": "use", "uses": [{"unit": "exp", "cycles": 7}], "latency_cycles": 9},
            {
                "name": "tile",
                "latency_cycles": 0,
                "result": {"space": "registers", "bytes": 8, "registers_per_thread": 40},
            },
        ],
        "edges": [
            {"from": "load", "to": "use", "latency_cycles": 1, "distance": 0, "kind": "data", "blocking": True},
            {"from": "use", "to": "use", "distance": 1},
            {"from": "use", "to": "load", "distance": 1, "kind": "anti", "handoff_cycles": 7},
            {"from": "load", "to": "tile", "handoff_cycles": 0, "read_cycles": 50},
        ],
        "residents": [{"name": "bias", "registers_per_thread": 4, "users": ["use"]}],
        "legality": [{"rule": "mine", "relation": "apart", "first": "load", "second": "use"}],
        "limits": {
            "max_groups": 2,
            "max_warps": 8,
            "registers": 0,
            "concurrency": "paper",
            "variable_latency": "free",
            "cross_group": False,
        },
    }


def read(document: object) -> DepGraph:
    return read_graph(json.dumps(document), "g.json")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_handed_cases_read_and_round_trip(path: Path) -> None:
    graph = read_graph(path.read_text(), path.name)
    assert graph.name == path.stem
    assert isinstance(graph.machine, Machine)
    assert read_graph(write_graph(graph), path.name) == graph


def test_every_key_is_read() -> None:
    graph = read(small())
    load, use, tile = graph.ops
    assert load == Op(
        name="load",
        kind="tma_load",
        source="a.py:41",
        warps=1,
        variable_latency=True,
        result=Value(space="smem", bytes=16384, alias="ring"),
        cost=Cost(
            uses=(Use(unit="tensor", offset=3, cycles=32, amount=2), Use(unit="exp", cycles=5)),
            issue_cycles=8,
            latency_cycles=600,
            handoff_cycles=30,
            asynchronous=False,
        ),
    )
    assert (use.kind, use.warps, use.variable_latency, use.result) == ("op", 4, False, None)
    assert tile.result == Value(space="registers", bytes=8, registers_per_thread=40)
    assert tile.cost == Cost(uses=(), issue_cycles=0, latency_cycles=0)
    assert graph.edges == (
        Edge(tail="load", head="use", latency_cycles=1, blocking=True),
        Edge(tail="use", head="use", distance=1),
        Edge(tail="use", head="load", distance=1, kind="anti", handoff_cycles=7),
        Edge(tail="load", head="tile", handoff_cycles=0, read_cycles=50),
    )
    assert graph.residents == (Resident(name="bias", registers_per_thread=4, users=("use",)),)
    assert graph.legality == (LegalPair(rule="mine", relation="apart", first="load", second="use"),)
    assert graph.limits == Limits(
        max_groups=2,
        max_warps=8,
        registers=0,
        concurrency="paper",
        variable_latency="free",
        cross_group=False,
    )
    assert (graph.trip_count, graph.fixed_bytes, graph.flop_per_iteration) == (12, (("smem", 32768),), 4096)


def test_issue_defaults_to_the_longest_run() -> None:
    document = small()
    del document["ops"][0]["issue_cycles"]
    cost = read(document).ops[0].cost
    assert cost is not None
    assert cost.issue_cycles == 32


def test_every_key_round_trips() -> None:
    graph = read(small())
    assert read_graph(write_graph(graph), "g.json") == graph


def test_a_machine_by_name_stays_a_name() -> None:
    graph = read(small() | {"machine": "h100"})
    assert graph.machine == "h100"
    assert read_graph(write_graph(graph), "g.json") == graph


def test_a_machine_that_extends_another_round_trips_whole() -> None:
    document = small() | {"machine": {"extends": "h100", "registers": {"per_thread": 128}}}
    for op in document["ops"]:
        for use in op.get("uses", []):
            use["unit"] = "tensor"
    graph = read(document)
    assert isinstance(graph.machine, Machine)
    assert graph.machine.registers is not None
    assert graph.machine.registers.per_thread == 128
    assert graph.machine.figures
    assert read_graph(write_graph(graph), "g.json") == graph


def test_null_stands_for_absent_where_the_format_allows_it() -> None:
    document = small() | {"trip_count": None, "machine": None, "legality": None}
    document["ops"][0] |= {"result": None, "asynchronous": None}
    document["edges"][3] |= {"handoff_cycles": None, "read_cycles": None}
    document["limits"] = dict.fromkeys(document["limits"])
    graph = read(document)
    assert (graph.trip_count, graph.machine, graph.ops[0].result) == (None, None, None)
    assert (graph.legality, graph.limits, graph.edges[3]) == (None, Limits(), Edge(tail="load", head="tile"))


def test_no_pairs_are_not_no_list_of_pairs() -> None:
    graph = read(small() | {"legality": []})
    assert graph.legality == ()
    assert read_graph(write_graph(graph), "g.json") == graph


def test_units_of_a_named_machine_are_checked_by_path() -> None:
    graph = read(small() | {"machine": "h100"})
    machine = Machine(name="h100", units=(Unit(name="tensors", capacity=1), Unit(name="mufu", capacity=1)))
    with pytest.raises(InputError) as caught:
        check_units(graph, machine, "g.json")
    assert str(caught.value) == (
        "g.json: ops[0].uses[0].unit: machine 'h100' has no unit 'tensor'; did you mean 'tensors'?"
    )


def test_the_hash_speaks_of_the_graph_and_not_of_spelling_or_machine() -> None:
    graph = read(small())
    spelled = small()
    spelled["ops"][1]["warps"] = 4
    assert len(graph.sha256) == 64
    assert read(spelled).sha256 == graph.sha256
    assert read(small() | {"machine": "h100"}).sha256 == graph.sha256
    assert read(small() | {"trip_count": 13}).sha256 != graph.sha256


def change(document: dict[str, Any], path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """Set, or for ``...`` delete, what is at ``path``."""
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


MALFORMED: list[tuple[tuple[str | int, ...], object, str]] = [
    (("schema",), ..., 'schema: the key is missing; add "schema": "twillgpu-graph/1"'),
    (("schema",), "twillgpu-graph/2", "schema: this reader knows 'twillgpu-graph/1', not 'twillgpu-graph/2'"),
    (("schema",), 1, "schema: expected a string, found an integer (1)"),
    (("name",), ..., "name: the key is missing; add 'name'"),
    (("name",), "", "name: the name is empty"),
    (("name",), "a\nb", 'name: "a\\nb" has a character that cannot be printed'),
    (("ops",), ..., "ops: the key is missing"),
    (("ops",), [], "ops: the graph has no ops; add at least one op"),
    (("ops",), {}, "ops: expected a list, found an object"),
    (("ops", 1), 3, "ops[1]: expected an object, found an integer (3)"),
    (("edges",), ..., "edges: the key is missing"),
    (("edges",), None, "edges: expected a list, found null"),
    (("edgs",), [], "edgs: unknown key \"edgs\"; did you mean 'edges'?"),
    (("machine",), 4, "machine: expected a machine's name or an object, found an integer (4)"),
    (("machine",), " ", "machine: the name is empty"),
    (("trip_count",), -1, "trip_count: -1 is too small; write an integer of at least 0"),
    (("trip_count",), True, "trip_count: expected an integer, found true or false (true)"),
    (("fixed_bytes",), [], "fixed_bytes: expected an object, found a list"),
    (("fixed_bytes", "sram"), 1, 'fixed_bytes.sram: unknown key "sram"; use one of smem, tmem'),
    (("fixed_bytes", "smem"), -5, "fixed_bytes.smem: -5 is too small"),
    (("flop_per_iteration",), "9", 'flop_per_iteration: expected an integer, found a string ("9")'),
    (("ops", 0, "name"), ..., "ops[0].name: the key is missing"),
    (("ops", 0, "latency_cycles"), ..., "ops[0].latency_cycles: the key is missing"),
    (("ops", 0, "latency"), 3, "ops[0].latency: unknown key \"latency\"; did you mean 'latency_cycles'?"),
    (("ops", 0, "latency_cycles"), -3, "ops[0].latency_cycles: -3 is too small"),
    (("ops", 0, "latency_cycles"), 1.0, "ops[0].latency_cycles: expected an integer, found a number with a fraction"),
    (("ops", 0, "latency_cycles"), "x" * 99, 'ops[0].latency_cycles: expected an integer, found a string ("xxx'),
    (("ops", 0, "kind"), None, "ops[0].kind: expected a string, found null"),
    (("ops", 0, "source"), 41, "ops[0].source: expected a string, found an integer (41)"),
    (("ops", 0, "warps"), 0, "ops[0].warps: 0 is too small; write an integer of at least 1"),
    (("ops", 0, "variable_latency"), 1, "ops[0].variable_latency: expected true or false, found an integer (1)"),
    (("ops", 0, "issue_cycles"), None, "ops[0].issue_cycles: expected an integer, found null"),
    (("ops", 0, "handoff_cycles"), -1, "ops[0].handoff_cycles: -1 is too small"),
    (("ops", 0, "uses"), {}, "ops[0].uses: expected a list, found an object"),
    (("ops", 0, "uses", 1, "unit"), "tensr", "ops[0].uses[1].unit: machine 'toy2' has no unit 'tensr'; did you mean"),
    (("ops", 0, "uses", 1, "unit"), 3, "ops[0].uses[1].unit: expected a string, found an integer (3)"),
    (("ops", 0, "uses", 1, "cycles"), 0, "ops[0].uses[1].cycles: 0 is too small; write an integer of at least 1"),
    (("ops", 0, "uses", 1, "cycles"), ..., "ops[0].uses[1].cycles: the key is missing"),
    (("ops", 0, "uses", 1, "offset"), -1, "ops[0].uses[1].offset: -1 is too small"),
    (("ops", 0, "uses", 1, "amount"), 0, "ops[0].uses[1].amount: 0 is too small"),
    (("ops", 0, "uses", 1, "cycels"), 1, "ops[0].uses[1].cycels: unknown key \"cycels\"; did you mean 'cycles'?"),
    (("ops", 0, "result"), "smem", 'ops[0].result: expected an object, found a string ("smem")'),
    (("ops", 0, "result", "space"), "shared", "ops[0].result.space: unknown name 'shared'; use one of registers, sm"),
    (("ops", 0, "result", "bytes"), 1e300, "ops[0].result.bytes: the number 1e+300 is too large"),
    (("ops", 0, "result", "bytes"), 10**13, "ops[0].result.bytes: the number 1e+13 is too large"),
    (("ops", 0, "result", "bytes"), 10**4000, "ops[0].result.bytes: the number is infinite or not a number"),
    (("ops", 0, "result", "alias"), 1, "ops[0].result.alias: expected a string, found an integer (1)"),
    (("ops", 0, "result", "depth"), 1, 'ops[0].result.depth: unknown key "depth"; use one of alias, bytes'),
    (
        ("ops", 2, "result", "alias"),
        "ring",
        "ops[2].result.alias: 'ring' is in registers here, but in smem in ops[0]",
    ),
    (("ops", 2, "name"), "load", "ops[2].name: the name 'load' is already that of ops[0]"),
    (("edges", 0, "from"), "laod", "edges[0].from: there is no op 'laod'; did you mean 'load'?"),
    (("edges", 1, "to"), "usse", "edges[1].to: there is no op 'usse'; did you mean 'use'?"),
    (("edges", 1, "to"), ..., "edges[1].to: the key is missing"),
    (("edges", 1, "tail"), "use", 'edges[1].tail: unknown key "tail"; use one of blocking, distance'),
    (("edges", 1, "distance"), -1, "edges[1].distance: -1 is too small"),
    (("edges", 1, "distance"), None, "edges[1].distance: expected an integer, found null"),
    (("edges", 1, "kind"), "dta", "edges[1].kind: unknown name 'dta'; did you mean 'data'?"),
    (("edges", 1, "blocking"), "yes", 'edges[1].blocking: expected true or false, found a string ("yes")'),
    (("edges", 1, "latency_cycles"), -2, "edges[1].latency_cycles: -2 is too small"),
    (("edges", 1, "distance"), 0, "edges: the edges use -> use make a cycle of total distance 0"),
    (("ops", 0, "asynchronous"), 1, "ops[0].asynchronous: expected true or false, found an integer (1)"),
    (("edges", 3, "handoff_cycles"), -1, "edges[3].handoff_cycles: -1 is too small"),
    (("edges", 3, "read_cycles"), 0.5, "edges[3].read_cycles: expected an integer, found a number with a fraction"),
    (
        ("edges", 2, "read_cycles"),
        5,
        "edges[2].read_cycles: an edge of kind anti reads no value; leave read",
    ),
    (("legality",), {}, "legality: expected a list, found an object"),
    (("legality", 0, "rule"), ..., "legality[0].rule: the key is missing"),
    (("legality", 0, "relation"), "apar", "legality[0].relation: unknown name 'apar'; did you mean 'apart'?"),
    (("legality", 0, "first"), "laod", "legality[0].first: there is no op 'laod'; did you mean 'load'?"),
    (("legality", 0, "second"), "us", "legality[0].second: there is no op 'us'; did you mean 'use'?"),
    (
        ("legality", 0, "second"),
        "load",
        "legality[0].second: an op always shares a group with itself, and bo",
    ),
    (("limits",), None, "limits: expected an object, found null"),
    (("limits", "warps"), 4, "limits.warps: unknown key \"warps\"; did you mean 'max_warps'?"),
    (("limits", "max_groups"), 0, "limits.max_groups: 0 is too small; write an integer of at least 1"),
    (("limits", "concurrency"), "none", "limits.concurrency: unknown name 'none'; use one of issue, paper"),
    (("limits", "variable_latency"), "if", "limits.variable_latency: unknown name 'if'; did you mean 'iff'?"),
    (("limits", "cross_group"), 0, "limits.cross_group: expected true or false, found an integer (0)"),
    (("residents", 0, "users", 0), "us", "residents[0].users[0]: there is no op 'us'; did you mean 'use'?"),
    (("residents", 0, "users"), "use", 'residents[0].users: expected a list, found a string ("use")'),
    (("residents", 0, "registers_per_thread"), -1, "residents[0].registers_per_thread: -1 is too small"),
    (("residents", 0, "bytes"), 1, 'residents[0].bytes: unknown key "bytes"; use one of name, registers_per_thread'),
]


@pytest.mark.parametrize(("path", "value", "message"), MALFORMED, ids=lambda value: str(value)[:40])
def test_malformed_documents_are_refused_by_path(path: tuple[str | int, ...], value: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(change(small(), path, value))
    assert str(caught.value).startswith(f"g.json: {message}")


def test_a_longer_cycle_is_listed() -> None:
    document = small()
    document["edges"] += [{"from": "use", "to": "tile"}, {"from": "tile", "to": "load"}]
    with pytest.raises(InputError) as caught:
        read(document)
    steps = caught.value.what.removeprefix("the edges ").partition(" make a cycle")[0].split(" -> ")
    assert steps[0] == steps[-1]
    assert "".join(steps[1:]) in {"loadusetile", "usetileload", "tileloaduse"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "g.json:1:1: this is not JSON: Expecting value"),
        ("{\n  'a': 1}", "g.json:2:3: this is not JSON: Expecting property name"),
        ('{"a": 1} x', "g.json:1:10: this is not JSON: Extra data"),
        ("[]", "g.json: expected an object, found a list"),
        ("null", "g.json: expected an object, found null"),
        ("7", "g.json: expected an object, found an integer (7)"),
        ('{"a": 1, "a": 2}', 'g.json: the key "a" is given twice in one object; remove one of them'),
        ('{"name": NaN}', "g.json: name: the number is infinite or not a number"),
        ('{"a": [0, -Infinity]}', "g.json: a[1]: the number is infinite or not a number"),
        ('{"a": ' + "9" * 5000 + "}", "g.json: a: the number is infinite or not a number"),
        ("[" * 100_000, "g.json: the document is nested too deeply"),
        ('{"a": ' * 900 + "1" + "}" * 900, "g.json: "),
    ],
)
def test_text_that_is_no_document(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_graph(text, "g.json")
    assert str(caught.value).startswith(message)


def test_an_inline_machine_that_is_malformed_is_refused_by_path() -> None:
    with pytest.raises(InputError) as caught:
        read(change(small(), ("machine", "units", "tensor"), -1))
    assert str(caught.value).startswith("g.json: machine")


def test_an_unpriced_graph_has_no_json_form() -> None:
    graph = DepGraph(name="g", ops=(Op(name="qk"),), edges=())
    with pytest.raises(InputError, match="op qk: it has no price in cycles; price the graph"):
        write_graph(graph)


NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
COUNTS = st.integers(0, 10**6)
USES = st.builds(Use, unit=NAMES, cycles=st.integers(1, 99), offset=COUNTS, amount=st.integers(1, 9))
COSTS = st.builds(
    Cost,
    uses=st.lists(USES, max_size=3).map(tuple),
    issue_cycles=COUNTS,
    latency_cycles=COUNTS,
    handoff_cycles=st.none() | COUNTS,
    asynchronous=st.none() | st.booleans(),
)
VALUES = st.builds(
    Value,
    space=st.sampled_from(("registers", "smem", "tmem")),
    bytes=COUNTS,
    registers_per_thread=st.none() | COUNTS,
)


LIMITS = st.builds(
    Limits,
    max_groups=st.none() | st.integers(1, 9),
    registers=st.none() | COUNTS,
    concurrency=st.sampled_from((None, "issue", "paper")),
    variable_latency=st.sampled_from((None, "designated", "iff", "free")),
    cross_group=st.none() | st.booleans(),
)


@st.composite
def an_edge(draw: st.DrawFn, names: list[str], tail: str, head: str) -> Edge:
    kind = draw(st.sampled_from(EDGE_KINDS))
    return Edge(
        tail=tail,
        head=head,
        distance=draw(st.integers(0 if names.index(tail) < names.index(head) else 1, 3)),
        kind=kind,
        blocking=draw(st.booleans()),
        latency_cycles=draw(st.none() | COUNTS),
        handoff_cycles=draw(st.none() | COUNTS),
        read_cycles=draw(st.none() | COUNTS) if kind == "data" else None,
    )


@st.composite
def graphs(draw: st.DrawFn) -> DepGraph:
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    ops = tuple(
        Op(
            name=name,
            kind=draw(NAMES),
            source=draw(st.just("") | NAMES),
            warps=draw(st.integers(1, 32)),
            variable_latency=draw(st.booleans()),
            result=draw(st.none() | VALUES),
            cost=draw(COSTS),
        )
        for name in names
    )
    pairs = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=8))
    edges = tuple(draw(an_edge(names, tail, head)) for tail, head in pairs)
    users = draw(st.lists(st.sampled_from(names), max_size=3)) if edges else []
    residents = (Resident(name="r", registers_per_thread=draw(COUNTS), users=tuple(users)),) if users else ()
    apart = tuple(
        LegalPair(rule="mine", relation="apart", first=tail, second=head) for tail, head in pairs if tail != head
    )
    return DepGraph(
        name=draw(NAMES),
        ops=ops,
        edges=edges,
        residents=residents,
        legality=draw(st.sampled_from((None, apart))),
        limits=draw(LIMITS),
        machine=draw(st.none() | NAMES),
        trip_count=draw(st.none() | COUNTS),
        fixed_bytes=draw(st.sampled_from(((), (("smem", 1),), (("smem", 0), ("tmem", 512))))),
        flop_per_iteration=draw(COUNTS),
    )


@given(graphs())
def test_random_graphs_round_trip(graph: DepGraph) -> None:
    again = read_graph(write_graph(graph), "g.json")
    assert write_graph(again) == write_graph(graph)
    assert (again.ops, again.edges, again.residents) == (graph.ops, graph.edges, graph.residents)
    assert (again.legality, again.limits) == (graph.legality, graph.limits)
    assert (again.name, again.machine, again.trip_count) == (graph.name, graph.machine, graph.trip_count)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_any_document_is_read_or_refused_with_one_message(document: object) -> None:
    with pytest.raises(InputError):
        read(document)
