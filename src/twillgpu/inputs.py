"""From a source file and a machine to a scheduling problem: every stage before the search, in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from twillgpu.costs.price import price
from twillgpu.costs.record import PriceOptions, Problem
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel
from twillgpu.graph.jsonform import read_graph
from twillgpu.graph.record import Cost, DepGraph
from twillgpu.machine.load import load, names
from twillgpu.machine.record import Machine

GRAPH_SUFFIX = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A source on its machine, before pricing.

    Attributes:
        source: the file as the user named it.
        machine: the machine it is for.
        kernel: the kernel, sub-tiled; ``None`` for graph JSON.
        graph: the loop body.
        remarks: what was decided on the way and the user should know.
    """

    source: str
    machine: Machine
    kernel: Kernel | None
    graph: DepGraph
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A source with its scheduling problem."""

    loaded: Loaded
    problem: Problem
    seconds: float = 0.0


def load_problem(source: str | Path, machine: str | None = None, options: PriceOptions | None = None) -> Priced:
    """Return the scheduling problem of a source on a machine.

    Raises ``TwillError`` for every mistake in the source, the machine or the options.
    """
    return price_loaded(load_source(source, machine), options)


def load_source(source: str | Path, machine: str | None = None) -> Loaded:
    """Read a source: graph JSON by its suffix."""
    path = Path(source)
    graph = read_graph(read_text(path), str(path))
    return Loaded(source=str(source), machine=_machine(graph, machine), kernel=None, graph=graph)


def price_loaded(loaded: Loaded, options: PriceOptions | None = None) -> Priced:
    """Price the loop body on the machine; raises ``InputError`` as ``twillgpu.costs.price.price`` does."""
    return Priced(loaded=loaded, problem=price(loaded.graph, loaded.machine, options or PriceOptions()))


def read_text(path: Path) -> str:
    """Return a text file's content; raises ``InputError`` for whatever cannot be read or is empty."""
    if path.is_dir():
        raise InputError(str(path), "is a directory", "name a file in it")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(str(path), "no such file", "check the path") from None
    except UnicodeDecodeError as error:
        raise InputError(
            str(path), f"is not UTF-8 text (byte {error.start})", "give a .py, .ttgir, .mlir or .json file"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"cannot be read ({error})", "check its name and permissions") from None
    if not text.strip():
        raise InputError(str(path), "the file is empty", "give a .py, .ttgir, .mlir or .json file with content")
    return text


def _machine(graph: DepGraph, machine: str | None) -> Machine:
    if machine is not None:
        return load(machine)
    if isinstance(graph.machine, Machine):
        return graph.machine
    if graph.machine is not None:
        return load(graph.machine)
    raise InputError("--machine", "no machine is given", "use one of " + ", ".join(names()) + " or a .toml file")


def priced_graph(graph: DepGraph, problem: Problem) -> DepGraph:
    """Return the loop body with the problem's costs in cycles: the form that graph JSON can carry.

    Reading it back and pricing it on the same machine gives the same problem.
    """
    priced = {op.name: op for op in problem.ops}
    edges = zip(graph.edges, problem.edges, strict=True)
    return replace(
        graph,
        machine=graph.machine or problem.machine,
        ops=tuple(
            replace(
                op,
                cost=Cost(
                    uses=priced[op.name].uses,
                    issue_cycles=priced[op.name].issue_cycles,
                    latency_cycles=priced[op.name].real_latency_cycles,
                    handoff_cycles=priced[op.name].handoff_cycles,
                ),
            )
            for op in graph.ops
        ),
        edges=tuple(
            replace(edge, latency_cycles=cost.latency_cycles, blocking=cost.blocking) for edge, cost in edges
        ),
    )
