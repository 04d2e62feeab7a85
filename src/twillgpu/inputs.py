"""From a source file and a machine to a scheduling problem: every stage before the search, in order."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from twillgpu.costs.limits import limits_of, options_of
from twillgpu.costs.price import price
from twillgpu.costs.record import PricedEdge, PricedOp, PriceOptions, Problem
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.launch import LoadOptions
from twillgpu.frontend.load import load_kernel
from twillgpu.frontend.subtile import SubTiling, subtile
from twillgpu.graph.build import build
from twillgpu.graph.checks import check_units
from twillgpu.graph.jsonform import read_graph
from twillgpu.graph.record import Cost, DepGraph, Edge, Op
from twillgpu.machine.load import load, names
from twillgpu.machine.record import Machine

GRAPH_SUFFIX = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Which kernel of a source, and how its tile is split.

    Attributes:
        load: kernel, argument types, constexprs, warps, configuration, loop.
        rows: rows of a sub-tile; ``None``: the rows of the target's tensor core; 0: no sub-tiles.
    """

    load: LoadOptions = field(default_factory=LoadOptions)
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A source on its machine, before pricing.

    Attributes:
        source: the file as the user named it.
        machine: the machine it is for.
        subtiling: the kernel, cut into sub-tiles, and the way back; ``None`` for graph JSON.
        graph: the loop body.
        remarks: what was decided on the way and the user should know.
        seconds: wall seconds that it took.
    """

    source: str
    machine: Machine
    subtiling: SubTiling | None
    graph: DepGraph
    remarks: tuple[str, ...]
    seconds: float

    @property
    def kernel(self) -> Kernel | None:
        """The kernel that is scheduled, ``None`` for graph JSON."""
        return self.subtiling.kernel if self.subtiling is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A source with its scheduling problem.

    Attributes:
        loaded: the source on its machine.
        limits: limits below the machine's and rules in force.
        problem: the loop body, priced.
        seconds: wall seconds up to here.
    """

    loaded: Loaded
    limits: PriceOptions
    problem: Problem
    seconds: float


def load_problem(
    source: str | Path,
    machine: str | None = None,
    *,
    options: SourceOptions | None = None,
    limits: PriceOptions | None = None,
) -> Priced:
    """Return the scheduling problem of a source on a machine.

    Args:
        source: ``.py`` with a ``@triton.jit`` kernel, ``.ttgir`` or ``.mlir`` text, or graph JSON (``.json``).
        machine: a machine's name or file; graph JSON may name or carry its own.
        options: which kernel, with which arguments, and how it is split.
        limits: limits below the machine's, and the rules in force; ``None``: those that graph JSON asks for.

    Raises:
        TwillError: every mistake in the source, the machine or the options.
    """
    return price_loaded(load_source(source, machine, options), limits)


def load_source(source: str | Path, machine: str | None = None, options: SourceOptions | None = None) -> Loaded:
    """Return the source's loop body; arguments and errors are those of ``load_problem``."""
    started = time.perf_counter()
    path, options = Path(source), options or SourceOptions()
    _check_exists(path)
    if path.suffix == GRAPH_SUFFIX:
        _refuse_kernel_options(options)
        cut, graph = None, read_graph(read_text(path), str(path))
        chosen = _machine(graph.machine, machine)
        check_units(graph, chosen, str(path))
    else:
        chosen = _machine(None, machine)
        cut = subtile(_kernel(path, chosen, options), options.rows)
        graph = build(cut.kernel)
    return Loaded(
        source=str(source),
        machine=chosen,
        subtiling=cut,
        graph=graph,
        remarks=_remarks(cut) if cut is not None else (),
        seconds=time.perf_counter() - started,
    )


def load_captured(kernel: Kernel, machine: Machine, source: str, rows: int | None = None) -> Loaded:
    """Return the loop body of a kernel that is captured already; ``source`` is what the user calls it.

    Raises ``UnsupportedError`` and ``InputError`` as ``load_problem`` does.
    """
    started = time.perf_counter()
    cut = subtile(kernel, rows)
    return Loaded(
        source=source,
        machine=machine,
        subtiling=cut,
        graph=build(cut.kernel),
        remarks=_remarks(cut),
        seconds=time.perf_counter() - started,
    )


def price_loaded(loaded: Loaded, limits: PriceOptions | None = None) -> Priced:
    """Price the loop body on the machine, under ``limits`` or (``None``) those that the graph asks for.

    Raises ``InputError`` as ``twillgpu.costs.price.price`` does.
    """
    started = time.perf_counter()
    limits = carried_limits(loaded) if limits is None else limits
    problem = price(loaded.graph, loaded.machine, limits)
    seconds = loaded.seconds + time.perf_counter() - started
    return Priced(loaded=loaded, limits=limits, problem=problem, seconds=seconds)


def carried_limits(loaded: Loaded) -> PriceOptions:
    """Return the limits and rules that the source itself asks for (graph JSON may)."""
    return options_of(loaded.graph.limits)


def kernel_of(loaded: Loaded) -> Kernel:
    """Return the kernel that is scheduled; raises ``InputError`` for graph JSON, which has none."""
    if loaded.kernel is None:
        raise InputError(loaded.source, "graph JSON has no kernel", "give the kernel itself (.py, .ttgir or .mlir)")
    return loaded.kernel


def read_text(path: Path) -> str:
    """Return a JSON file's text; raises ``InputError`` for whatever cannot be read or is empty."""
    _check_exists(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"is not UTF-8 text (byte {error.start})", "give a JSON file") from None
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({error.strerror})", "check its permissions") from None
    if not text.strip():
        raise InputError(str(path), "the file is empty", "give a JSON document")
    return text


def _check_exists(path: Path) -> None:
    try:
        is_directory, exists = path.is_dir(), path.exists()
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"no file can have this name ({error})", "check the path") from None
    if is_directory:
        raise InputError(str(path), "is a directory", "name a file in it")
    if not exists:
        raise InputError(str(path), "no such file", "check the path")


def _machine(carried: Machine | str | None, named: str | None) -> Machine:
    """Return the machine named on the command line, otherwise the one that the source carries or names."""
    chosen = carried if named is None else named
    if chosen is None:
        raise InputError("--machine", "no machine is given", f"use one of {', '.join(names())} or a .toml file")
    return chosen if isinstance(chosen, Machine) else load(chosen)


def _kernel(path: Path, machine: Machine, options: SourceOptions) -> Kernel:
    if not machine.arch:
        raise InputError(
            f"machine {machine.name}", "it has no arch to compile a kernel for", "choose another, or give graph JSON"
        )
    return load_kernel(path, machine.arch, options.load)


def _remarks(cut: SubTiling) -> tuple[str, ...]:
    if cut.parts == 1:
        return cut.kernel.remarks
    return (*cut.kernel.remarks, f"the tile is cut into {cut.parts} sub-tiles of {cut.rows} rows (--subtile)")


def _refuse_kernel_options(options: SourceOptions) -> None:
    if options != SourceOptions():
        raise InputError(
            "--kernel, --arg, --const, --num-warps, --config, --loop, --subtile",
            "these are for kernels, and the source is graph JSON",
            "leave them out",
        )


def priced_graph(priced: Priced) -> DepGraph:
    """Return the loop body with the problem's costs in cycles: the form that graph JSON can carry.

    It says everything that pricing would derive, so that reading it back and pricing it on its machine gives the
    same problem, save for the hashes.
    """
    graph, problem, machine = priced.loaded.graph, priced.problem, priced.loaded.machine
    return replace(
        graph,
        machine=machine.name if _is_known(machine) else machine,
        ops=tuple(_with_cost(op, cost) for op, cost in zip(graph.ops, problem.ops, strict=True)),
        edges=tuple(_with_times(edge) for edge in problem.edges),
        legality=problem.legality,
        limits=limits_of(priced.limits),
    )


def _is_known(machine: Machine) -> bool:
    """Whether the machine's name alone leads back to it."""
    return machine.name in names() and load(machine.name) == machine


def _with_cost(op: Op, priced: PricedOp) -> Op:
    cost = Cost(
        uses=priced.uses,
        issue_cycles=priced.issue_cycles,
        latency_cycles=priced.real_latency_cycles,
        handoff_cycles=priced.handoff_cycles,
        asynchronous=priced.asynchronous,
    )
    shared = priced.value.alias if priced.value is not None else None
    return replace(op, cost=cost, result=op.result and replace(op.result, alias=shared))


def _with_times(edge: PricedEdge) -> Edge:
    return Edge(
        tail=edge.tail,
        head=edge.head,
        distance=edge.distance,
        kind=edge.kind,
        blocking=edge.blocking,
        latency_cycles=edge.latency_cycles,
        handoff_cycles=edge.handoff_cycles,
        read_cycles=edge.read_cycles if edge.kind == "data" else None,
    )
