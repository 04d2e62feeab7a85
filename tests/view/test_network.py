"""The dependence graph: layers, bends, what is marked, and its text for Graphviz."""

from collections.abc import Callable
from dataclasses import replace

from handmade import PROBLEM, SCHEDULE
from hypothesis import given, settings
from hypothesis import strategies as st

from twillgpu.view.dot import dot_text
from twillgpu.view.layers import layout
from twillgpu.view.network import network

CARRIED = replace(PROBLEM.edges[0], tail="pv", head="p", distance=1, latency_cycles=60)
SECOND = replace(CARRIED, kind="anti", latency_cycles=0)
FORTH = replace(PROBLEM.edges[0], tail="p", head="pv", latency_cycles=90, handoff_cycles=7)
LOOPED = replace(PROBLEM, edges=(*PROBLEM.edges[:2], FORTH, CARRIED, SECOND))


def test_edges_are_marked_for_what_they_are() -> None:
    found = network(LOOPED, SCHEDULE)
    assert found.circuit is not None
    assert (set(found.circuit.ops), found.circuit.latency_cycles, found.circuit.distance) == ({"p", "pv"}, 150, 1)
    links = {(link.tail, link.head): link for link in found.links}
    assert len(links) == 4
    assert [pair for pair, link in links.items() if link.critical] == [("p", "pv"), ("pv", "p")]
    assert [pair for pair, link in links.items() if link.crosses] == [("qk", "p"), ("p", "pv"), ("pv", "p")]
    assert links["pv", "p"].kinds == ("data", "anti")
    assert (links["p", "pv"].latency_cycles, links["pv", "p"].distance) == (97, 1)


def test_a_graph_without_circuits_has_no_critical_edge() -> None:
    found = network(PROBLEM, SCHEDULE)
    assert found.circuit is None
    assert not any(link.critical for link in found.links)


def test_the_text_for_graphviz(golden: Callable[[str], None]) -> None:
    golden(dot_text(network(LOOPED, SCHEDULE), SCHEDULE))


def test_names_are_quoted_for_graphviz() -> None:
    text = dot_text(network(PROBLEM, SCHEDULE), replace(SCHEDULE, graph='a "b" \\ c'))
    assert text.startswith('digraph "a \\"b\\" \\\\ c" {')


NAMES = tuple("abcdefgh")
EDGES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 2)).filter(
        lambda edge: edge[2] > 0 or edge[0] < edge[1]
    ),
    max_size=14,
)


@settings(deadline=None)
@given(EDGES)
def test_edges_of_an_iteration_run_downwards_and_nothing_is_in_the_same_place(
    edges: list[tuple[str, str, int]],
) -> None:
    found = layout(NAMES, tuple(edges))
    assert all(found.nodes[tail][1] < found.nodes[head][1] for tail, head, distance in edges if distance == 0)
    places = [*found.nodes.values(), *(bend for bends in found.bends.values() for bend in bends)]
    assert len(set(places)) == len(places)
    for (tail, head, _), bends in found.bends.items():
        assert len(bends) == max(0, abs(found.nodes[tail][1] - found.nodes[head][1]) - 1)
    assert found == layout(NAMES, tuple(edges))


def test_a_circuit_of_distance_0_still_has_a_layout() -> None:
    found = layout(("a", "b"), (("a", "b", 0), ("b", "a", 0)))
    assert set(found.nodes) == {"a", "b"}
