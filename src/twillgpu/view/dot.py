"""The dependence graph as text for Graphviz."""

from __future__ import annotations

from twillgpu.schedule.record import Schedule
from twillgpu.view.network import Link, Network, Node
from twillgpu.view.palette import CRITICAL, colour
from twillgpu.view.text import number


def dot_text(found: Network, schedule: Schedule) -> str:
    """Return the graph in the DOT language.

    Nodes have the colour and the name of their group. Edges: dashed with their distance where they come from an
    earlier iteration, with a double open head and the word hand-off where they cross groups, thick where they are on
    the critical circuit.
    """
    lines = [
        f"digraph {_quoted(schedule.graph)} {{",
        '  node [shape=box, style=filled, fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
        *(_node(node, schedule) for node in found.nodes),
        *(_edge(link) for link in found.links),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _node(node: Node, schedule: Schedule) -> str:
    label = f"{node.op}\n{schedule.groups[node.group].name} at {number(node.start_cycle)}"
    return f"  {_quoted(node.op)} [label={_quoted(label)}, fillcolor={_quoted(colour(node.group))}];"


def _edge(link: Link) -> str:
    attributes = [f"label={_quoted(link_label(link))}"]
    if link.distance:
        attributes += ["style=dashed", "constraint=false"]
    if link.crosses:
        attributes.append("arrowhead=onormalonormal")
    if link.critical:
        attributes += ["penwidth=3", f"color={_quoted(CRITICAL)}"]
    return f"  {_quoted(link.tail)} -> {_quoted(link.head)} [{', '.join(attributes)}];"


def link_label(link: Link) -> str:
    """Return what stands beside an edge: latency, distance, and what is special about it."""
    words = [f"{number(link.latency_cycles)} cycles"]
    if link.kinds != ("data",):
        words.append(", ".join(link.kinds))
    if link.distance:
        words.append(f"distance {link.distance}")
    if link.crosses:
        words.append("hand-off")
    if link.critical:
        words.append("critical")
    return "\n".join(words)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
