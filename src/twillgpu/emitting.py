"""From a priced source and its schedule to an emitted file: lowering, the file's header, and further searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from twillgpu import __version__
from twillgpu.api import Scheduled, take_schedule
from twillgpu.emit.feedback import Limits
from twillgpu.emit.gluon import Provenance, emit
from twillgpu.emit.record import Budget, Emission
from twillgpu.emit.refine import MOST_ROUNDS, Setting, refine
from twillgpu.errors import InputError, UnsupportedError
from twillgpu.inputs import Loaded, Priced, kernel_of, price_loaded
from twillgpu.lower.options import LowerOptions
from twillgpu.lower.record import WarpProgram
from twillgpu.machine.record import Machine
from twillgpu.schedule.record import Schedule, SearchOptions, SearchResult
from twillgpu.store.cache import Cache
from twillgpu.view.claim import verdict

COLUMN_BYTES = 512
"""Bytes of a column of TMEM."""

SPECIALISED = ("sm_90a", "sm_100a")
"""The targets that warp-specialised code is emitted for."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitOptions:
    """How a schedule becomes a source file.

    Attributes:
        check: whether it is compiled, compared with the schedule and, where that helps, made again.
        most_rounds: emissions at most.
        search: options of further searches.
        cache: where their results are looked for, and kept; ``None``: they are searched.
        lower: what the schedule leaves open.
    """

    check: bool = False
    most_rounds: int = MOST_ROUNDS
    search: SearchOptions = field(default_factory=SearchOptions)
    cache: Cache | None = None
    lower: LowerOptions = field(default_factory=LowerOptions)


def emit_source(
    priced: Priced,
    found: SearchResult | Schedule,
    options: EmitOptions | None = None,
    progress: Progress | None = None,
) -> Emission:
    """Return a schedule as a self-contained Gluon source file, for Triton 3.6.0 to 3.9.0.

    Args:
        priced: what ``load_problem`` returns, of a kernel.
        found: the result of ``find_schedule``, or anybody's schedule of this problem.
        options: whether it is compiled and checked (needs Triton, no GPU).
        progress: called with one line of text per round.

    Raises:
        InputError: graph JSON has no kernel; there is no schedule; it breaks a rule.
        UnsupportedError: what has no Gluon form, with the source line and the reason.
        TwillError: no round compiles.
    """
    options = options or EmitOptions()
    check_target(priced.loaded)
    program = take_schedule(priced, found).program(options.lower)
    provenance = Provenance(lines=tuple(_provenance(priced, found)), file=priced.loaded.source)
    if not options.check:
        unchecked = replace(provenance, lines=(*provenance.lines, "Not checked with a compiler."))
        return Emission(source=emit(program, unchecked), ii_cycles=program.ii_cycles)
    setting = Setting(
        limits=block_limits(priced.loaded.machine),
        provenance=provenance,
        again=lambda budget: _searched_again(priced, budget, options),
        progress=progress,
        most_rounds=options.most_rounds,
    )
    return refine(program, setting)


def check_target(loaded: Loaded) -> None:
    """Raise ``InputError`` for a source without kernel, ``UnsupportedError`` for a machine that has no form of it."""
    kernel_of(loaded)
    if loaded.machine.arch not in SPECIALISED:
        raise UnsupportedError(
            loaded.source,
            f"{loaded.machine.name} ({loaded.machine.arch}) has no asynchronous tensor core to specialise warps for",
            "choose a Hopper or Blackwell machine",
        )


def block_limits(machine: Machine) -> Limits:
    """Return what a block may take on a machine."""
    shared, tensor = machine.memory("smem"), machine.memory("tmem")
    return Limits(
        smem_bytes=shared.capacity_bytes if shared is not None else 0,
        tmem_columns=tensor.capacity_bytes // COLUMN_BYTES if tensor is not None else 0,
    )


def _provenance(priced: Priced, found: SearchResult | Schedule) -> list[str]:
    problem = priced.problem
    made = f"Made by twillgpu {__version__} from {priced.loaded.source} (problem {problem.sha256[:12]})."
    if isinstance(found, Schedule):
        return [made, "The schedule was given; it has passed the verifier."]
    return [made, f"{verdict(found)}."]


def _searched_again(priced: Priced, budget: Budget, options: EmitOptions) -> WarpProgram | str:
    """Search with some registers and SMEM left free; a program, or why there is none."""
    registers, graph = priced.loaded.machine.registers, priced.loaded.graph
    if registers is not None:
        kept = registers.overhead_per_thread + budget.registers_per_thread
        registers = replace(registers, overhead_per_thread=kept)
    fixed = dict(graph.fixed_bytes)
    fixed["smem"] = fixed.get("smem", 0) + budget.smem_bytes
    machine = replace(priced.loaded.machine, registers=registers)
    loaded = replace(priced.loaded, machine=machine, graph=replace(graph, fixed_bytes=tuple(sorted(fixed.items()))))
    spared = f"with {budget.registers_per_thread} registers per thread and {budget.smem_bytes:,} B of SMEM left free"
    try:
        found = take_schedule(price_loaded(loaded, priced.limits), options=options.search, cache=options.cache)
    except InputError as error:
        return f"impossible {spared}: {error.what}"
    return found.program(options.lower) if found.verified is not None else f"{_none(found)} {spared}"


def _none(found: Scheduled) -> str:
    proved = found.result is not None and found.result.status == "infeasible"
    return "proved impossible" if proved else "the search found no schedule"
