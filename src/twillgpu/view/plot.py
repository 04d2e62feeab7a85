"""Static pictures by matplotlib: Gantt chart, occupancy, dependence graph. SVG and PNG, the same bytes every time.

Functions that draw take axes and data. matplotlib is an optional package and imported only here.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from twillgpu.errors import InputError
from twillgpu.schedule.record import Schedule
from twillgpu.view.lanes import Bar, Chart, Lane
from twillgpu.view.network import Link, Network, Node
from twillgpu.view.occupancy import Occupancy
from twillgpu.view.palette import COLOURS, CRITICAL, INK, colour, hatch
from twillgpu.view.text import number

Format = Literal["svg", "png"]
Axes = Any
Figure = Any
"""Axes and figures of matplotlib, which need not be there."""
SETTINGS = {
    "svg.hashsalt": "twillgpu",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "hatch.linewidth": 0.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
WIDTH_INCHES = 11.0
ROW_INCHES = 0.36
LETTER = 0.0075
"""Width of a letter on a bar as a fraction of the chart: names that do not fit are left out."""
NODE_INCHES = (1.65, 0.85)


def gantt(title: str, chart: Chart, form: Format) -> bytes:
    """Return a Gantt chart: a row for every unit and group, bars in the colour and pattern of their iteration.

    Raises ``InputError`` where matplotlib is not installed.
    """
    height = 1.6 + ROW_INCHES * len(chart.lanes)
    return _picture((WIDTH_INCHES, height), form, lambda axes: draw_gantt(axes, title, chart))


def occupancy(title: str, found: tuple[Occupancy, ...], form: Format) -> bytes:
    """Return one small chart for every group's registers and every memory, with its limit as a line.

    Raises ``InputError`` where matplotlib is not installed.
    """
    with _figure((WIDTH_INCHES, 0.8 + 1.25 * len(found))) as figure:
        grid = figure.subplots(len(found), 1, sharex=True, squeeze=False)
        figure.suptitle(title, x=0.01, ha="left")
        for axes, one in zip(grid[:, 0], found, strict=True):
            draw_occupancy(axes, one)
        grid[-1, 0].set_xlabel("cycle of the period")
        figure.tight_layout()
        return _saved(figure, form)


def graph(title: str, found: Network, schedule: Schedule, form: Format) -> bytes:
    """Return the dependence graph, in layers from top to bottom.

    Raises ``InputError`` where matplotlib is not installed.
    """
    places = [node.x for node in found.nodes] + [x for link in found.links for x, _ in link.bends]
    width = NODE_INCHES[0] * (1.4 + max(places, default=0) - min(places, default=0))
    height = NODE_INCHES[1] * (2 + max((node.y for node in found.nodes), default=0))
    size = (max(width, 6.0), max(height, 3.0))
    return _picture(size, form, lambda axes: draw_graph(axes, title, found, schedule))


def draw_gantt(axes: Axes, title: str, chart: Chart) -> None:
    """Draw the chart into axes."""
    for row, lane in enumerate(chart.lanes):
        for bar in lane.bars:
            _draw_bar(axes, chart, lane, bar, row)
    axes.set_xlim(0, chart.stop)
    axes.set_ylim(len(chart.lanes), 0)
    axes.set_yticks([row + 0.5 for row in range(len(chart.lanes))], [_lane_label(lane) for lane in chart.lanes])
    units = sum(lane.kind == "unit" for lane in chart.lanes)
    axes.axhline(units, color="#888888", linewidth=0.8)
    if not chart.steady:
        for start in range(chart.ii_cycles, chart.stop, chart.ii_cycles):
            axes.axvline(start, color="#888888", linewidth=0.5, linestyle=":")
    axes.set_xlabel("cycle of the period" if chart.steady else "cycle")
    axes.set_title(title, loc="left", fontsize=10)
    _legend(axes, chart)


def _draw_bar(axes: Axes, chart: Chart, lane: Lane, bar: Bar, row: int) -> None:
    room = 0.86
    low = row + 0.07 + room * (1 - (bar.level + bar.height) / lane.capacity)
    high = room * bar.height / lane.capacity
    axes.broken_barh(
        [(bar.start, bar.stop - bar.start)],
        (low, high),
        facecolor=colour(bar.iteration),
        hatch=hatch(bar.iteration),
        edgecolor=INK,
        linewidth=0.4 if lane.capacity == 1 else 0.1,
        gid=f"{lane.kind}:{lane.name}:{bar.op}:{bar.iteration}:{bar.start}",
    )
    name = f"{bar.op} [{bar.iteration}]" if not chart.steady else bar.op
    if lane.capacity == 1 and len(name) * LETTER * chart.stop < bar.stop - bar.start:
        middle = (bar.start + bar.stop) / 2
        box = {"facecolor": colour(bar.iteration), "edgecolor": "none", "pad": 0.6}
        axes.text(middle, row + 0.5, name, ha="center", va="center", fontsize=7, color=INK, bbox=box)


def _lane_label(lane: Lane) -> str:
    return f"{lane.name} (of {lane.capacity})" if lane.capacity > 1 else lane.name


def _legend(axes: Axes, chart: Chart) -> None:
    seen = sorted({bar.iteration for lane in chart.lanes for bar in lane.bars})
    for iteration in seen[: len(COLOURS)]:
        label = iteration_label(iteration) if chart.steady else f"iteration {iteration}"
        axes.broken_barh(
            [(0, 0)], (0, 0), facecolor=colour(iteration), hatch=hatch(iteration), edgecolor=INK, label=label
        )
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(COLOURS), frameon=False, fontsize=8)


def iteration_label(age: int) -> str:
    """Return the words for an iteration of a steady-state picture."""
    return "newest iteration" if age == 0 else f"{age} iteration{'' if age == 1 else 's'} earlier"


def draw_occupancy(axes: Axes, one: Occupancy) -> None:
    """Draw how full one group or memory is into axes."""
    edges = [one.steps[0].start, *(step.stop for step in one.steps)]
    axes.stairs(
        [step.amount for step in one.steps], edges, fill=True, facecolor=COLOURS[0], edgecolor=INK, linewidth=0.6
    )
    top = max(one.limit or 0, one.reserved or 0, one.peak)
    for level, style, words in ((one.limit, "-", "limit"), (one.reserved, "--", "set aside")):
        if level is not None:
            axes.axhline(level, color=INK, linewidth=1.0, linestyle=style)
            axes.text(one.steps[-1].stop, level, f" {words}", va="center", fontsize=7)
    axes.set_xlim(0, one.steps[-1].stop)
    axes.set_ylim(0, top * 1.12)
    axes.set_title(occupancy_label(one), loc="left", fontsize=8)


def occupancy_label(one: Occupancy) -> str:
    """Return name, peak and limit in words."""
    what = "registers per thread" if one.kind == "registers" else "bytes"
    limit = f" of {number(one.limit)}" if one.limit is not None else ""
    aside = f", {number(one.reserved)} set aside" if one.reserved is not None else ""
    return f"{one.name}: at most {number(one.peak)}{limit} {what} live{aside}"


def draw_graph(axes: Axes, title: str, found: Network, schedule: Schedule) -> None:
    """Draw the graph into axes: nodes in the colour of their group, with its name."""
    places = {node.op: (node.x, float(node.y)) for node in found.nodes}
    for link in found.links:
        _draw_link(axes, link, places)
    for node in found.nodes:
        _draw_node(axes, node, schedule)
    widths = [x for x, _ in (*places.values(), *(bend for link in found.links for bend in link.bends))]
    axes.set_xlim(min(widths) - 0.7, max(widths) + 0.7)
    axes.set_ylim(max(y for _, y in places.values()) + 0.6, -0.6)
    marks = "dashed: from an earlier iteration; double line: crosses groups; thick: critical circuit"
    axes.set_title(f"{title}\n{marks}", loc="left", fontsize=9)
    axes.axis("off")


def _draw_node(axes: Axes, node: Node, schedule: Schedule) -> None:
    words = f"{node.op}\n{schedule.groups[node.group].name} at {number(node.start_cycle)}"
    box = {"boxstyle": "round,pad=0.35", "facecolor": colour(node.group), "edgecolor": INK, "linewidth": 0.8}
    axes.text(node.x, node.y, words, ha="center", va="center", fontsize=7, color=INK, bbox=box, zorder=3)


def _draw_link(axes: Axes, link: Link, places: dict[str, tuple[float, float]]) -> None:
    """Draw an edge: a double line is a thick one with a thin white one on it."""
    width = 2.6 if link.critical else 0.9
    ink = CRITICAL if link.critical else INK
    head = "-|>" if link.tail != link.head else "->"
    _draw_line(
        axes, link, places, {"color": ink, "linewidth": width * (2.6 if link.crosses else 1), "arrowstyle": head}
    )
    if link.crosses:
        _draw_line(axes, link, places, {"color": "#ffffff", "linewidth": width * 0.9, "arrowstyle": "-"})


def _draw_line(axes: Axes, link: Link, places: dict[str, tuple[float, float]], style: dict[str, Any]) -> None:
    (x, y), (x2, y2) = places[link.tail], places[link.head]
    style = {"mutation_scale": 8.0, **style, "linestyle": "--" if link.distance else "-"}
    ends: dict[str, Any]
    if link.tail == link.head:
        ends = {"posA": (x + 0.38, y - 0.12), "posB": (x + 0.38, y + 0.12), "connectionstyle": "arc3,rad=-1.2"}
    elif link.distance and not link.bends:
        ends = {"posA": (x, y), "posB": (x2, y2), "connectionstyle": "arc3,rad=0.4", "shrinkA": 14.0, "shrinkB": 14.0}
    else:
        down = 1 if y < y2 else -1
        ends = {"path": _curve(axes, ((x, y + 0.22 * down), *link.bends, (x2, y2 - 0.24 * down)))}
    axes.add_patch(_arrow()(**ends, **style, zorder=2))


def _arrow() -> Any:  # noqa: ANN401  # a class of matplotlib
    from matplotlib.patches import FancyArrowPatch  # noqa: PLC0415  # optional, loaded by _figure before

    return FancyArrowPatch


def _curve(axes: Axes, points: tuple[tuple[float, float], ...]) -> Any:  # noqa: ANN401  # a path of matplotlib
    """Return a smooth path through points that leaves and enters each of them vertically."""
    vertices, codes = [points[0]], [1]
    for (x, y), (x2, y2) in itertools.pairwise(points):
        vertices += [(x, (y + y2) / 2), (x2, (y + y2) / 2), (x2, y2)]
        codes += [4, 4, 4]
    return type(axes.patch.get_path())(vertices, codes)


def _picture(size: tuple[float, float], form: Format, draw: Callable[[Axes], None]) -> bytes:
    with _figure(size) as figure:
        draw(figure.subplots())
        return _saved(figure, form)


def _saved(figure: Figure, form: Format) -> bytes:
    stream = io.BytesIO()
    nothing: dict[str, None] = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
    figure.savefig(stream, format=form, dpi=110, bbox_inches="tight", metadata=nothing, facecolor="#ffffff")
    return stream.getvalue()


@contextmanager
def _figure(size: tuple[float, float]) -> Iterator[Figure]:
    """Give a figure of a size in inches, with settings of our own, whatever the user's configuration says."""
    try:
        import matplotlib as mpl  # noqa: PLC0415  # optional, and slow to import
        from matplotlib import figure  # noqa: PLC0415  # the same
    except ImportError:
        raise InputError(
            "matplotlib",
            "it is not installed, and draws SVG and PNG",
            "pip install 'twillgpu[plot]', or ask for html",
        ) from None
    settings: dict[Any, Any] = {**mpl.rcParamsDefault, **SETTINGS}
    del settings["backend"]
    with mpl.rc_context(settings):
        yield figure.Figure(figsize=size)
