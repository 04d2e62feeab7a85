"""The report of a simulation: steady state against the schedule's interval, what it is made of, the whole launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twillgpu.simulate.record import Cause, KernelTime, Latency, Share, SteadyState, Trace
from twillgpu.view.text import number, plural, section, table, wrap
from twillgpu.view.trace_picture import trace_picture

CHAIN = 12
"""Links of the critical chain that are printed."""
STALLS = 4
"""Reasons printed for each group."""
BAR = 30
NEAR = 0.02
"""A steady state this close to the interval keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What ``twillgpu simulate`` reports.

    ``time`` is ``None`` where the trip count is not known; ``trace`` is then of a block of a few iterations.
    """

    kernel: str
    machine: str
    steady: SteadyState
    causes: tuple[Cause, ...]
    time: KernelTime | None
    trace: Trace


def simulation_text(found: Simulation, width: int) -> str:
    """Return the report as plain text that ends in a newline."""
    lines = [
        *wrap(f"{found.kernel} on {found.machine}: {_headline(found.steady)}", indent=""),
        *wrap(_conditions(found.trace.options.latency, found.trace.options.seed)),
        *section("Remarks", [line for one in found.trace.remarks for line in wrap(f"- {one}", hang="  ")]),
        *section("Where the time goes beyond the schedule, cycles per iteration", _causes(found)),
        *section("Critical chain of an iteration, cycles", _critical(found.steady)),
        *section("Warp groups, cycles per iteration", _groups(found)),
        *section("Utilisation", _utilisation(found.steady)),
        *section("Steady state as simulated", trace_picture(found.trace, found.steady, width=width)),
        *section("Whole launch", _launch(found.time)),
    ]
    return "\n".join(lines) + "\n"


def _headline(steady: SteadyState) -> str:
    many = f"{_cycles(steady.cycles)} cycles per iteration; the schedule's interval I is {number(steady.ii_cycles)}"
    if abs(steady.excess) <= NEAR:
        return f"{many}: kept ({steady.excess:+.1%})"
    return f"{many} ({steady.excess:+.1%})"


def _conditions(latency: Latency, seed: int) -> str:
    kinds = {
        "fixed": "loads take what the machine file says",
        "uniform": f"latencies of loads from the measured range, seed {seed}",
        "heavy": f"latencies of loads with a heavy tail, seed {seed}",
    }
    said = kinds[latency.kind] if latency.cycles is None else f"loads take {plural(latency.cycles, 'cycle')}"
    return said if latency.scale == 1 else f"{said}, times {latency.scale:g}"


def _causes(found: Simulation) -> list[str]:
    rows = [("schedule", number(found.steady.ii_cycles), "")]
    before: float = found.steady.ii_cycles
    for cause in found.causes:
        rows.append((f"+ {cause.name}", _cycles(cause.cycles), f"{cause.cycles - before:+,.1f}"))
        before = cause.cycles
    return table(("with", "cycles", "more"), rows, right=(1, 2))


def _critical(steady: SteadyState) -> list[str]:
    shown = steady.critical[:CHAIN]
    rows = [(_cycles(one.cycles), one.group, one.reason) for one in shown]
    rest = sum(one.cycles for one in steady.critical[CHAIN:])
    if rest:
        rows.append((_cycles(rest), "", f"{plural(len(steady.critical) - CHAIN, 'other')}"))
    return table(("cycles", "group", "spent on"), rows, right=(0,))


def _groups(found: Simulation) -> list[str]:
    rows = []
    for group in found.trace.groups:
        busy = ", ".join(f"{one.reason} {_cycles(one.cycles)}" for one in _of(found.steady.issue, group))
        stalls = _of(found.steady.stalls, group)
        shown = [f"{one.reason} {_cycles(one.cycles)}" for one in stalls[:STALLS]]
        rest = sum(one.cycles for one in stalls[STALLS:])
        shown += [f"others {_cycles(rest)}"] if rest else []
        rows.append((group, busy or "-", "; ".join(shown) or "-"))
    return table(("group", "issues", "stalls"), rows)


def _of(shares: Sequence[Share], group: str) -> list[Share]:
    return [one for one in shares if one.group == group]


def _utilisation(steady: SteadyState) -> list[str]:
    shares = [(name, share) for name, share in steady.utilisation if share > 0]
    size = max((len(name) for name, _ in shares), default=0)
    return [f"  {name:<{size}}  {share:6.1%}  {'#' * round(share * BAR)}".rstrip() for name, share in shares]


def _launch(time: KernelTime | None) -> list[str]:
    if time is None:
        return wrap("give --trips N, or --set NAME=VALUE for the arguments that the loop's bounds depend on")
    lines = wrap(
        f"{plural(time.blocks, 'block')} of {plural(time.trips, 'iteration')} on {time.sms} SMs: "
        f"{plural(time.waves, 'wave')}, {_cycles(time.block_cycles)} cycles per block, of which "
        f"{number(time.before_cycles)} before the loop and {number(time.after_cycles)} after it"
    )
    lines += _memory(time)
    lines += wrap(
        f"{_micro(time.microseconds)} in all, {number(time.launch_microseconds)} us of it to launch; "
        f"bound by: {time.binding}"
    )
    if time.tflops is not None:
        lines += wrap(f"{time.tflops:,.0f} TFLOP/s by the simulation")
    if time.ceiling_tflops is not None:
        lines += wrap(
            f"{time.practical_tflops:,.0f} TFLOP/s in practice: the chip sustains {number(time.ceiling_tflops)} on "
            "16-bit matrix products under its power limit"
        )
    return lines


def _memory(time: KernelTime) -> list[str]:
    lines = []
    if time.path_cycles is not None:
        lines += wrap(
            f"{number(time.block_bytes)} bytes per block: the path to L2 needs {_cycles(time.path_cycles)} cycles"
        )
    if time.hbm_microseconds is not None and time.reuse is not None:
        lines += wrap(f"HBM needs {_micro(time.hbm_microseconds)} if each byte serves {time.reuse:g} accesses")
    elif time.reuse_needed is not None and time.reuse_needed > 1:
        lines += wrap(
            f"HBM is left out: it binds unless each of its bytes serves {time.reuse_needed:.1f} accesses "
            "through L2 (--reuse)"
        )
    return lines


def _micro(value: float) -> str:
    return f"{value / 1000:,.3f} ms" if value >= 1000 else f"{value:,.1f} us"


def _cycles(value: float) -> str:
    return number(round(value, 1)) if value < 1000 else f"{value:,.0f}"
