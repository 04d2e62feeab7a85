"""The calls of this folder: a block from start to end, the steady state of its loop, and what makes it slow."""

from __future__ import annotations

from dataclasses import replace

from twillgpu.costs.record import Problem
from twillgpu.errors import InputError
from twillgpu.lower.record import WarpProgram
from twillgpu.machine.record import Machine
from twillgpu.simulate.analyse import Iterations, steady
from twillgpu.simulate.engine import Run
from twillgpu.simulate.record import Cause, SimulationOptions, SteadyState, Trace

MOST = 120
"""Iterations after which a run that does not repeat is averaged."""
SETTLED = 4
"""One part in so many of these is left out of the average."""


def simulate(
    program: WarpProgram, problem: Problem, machine: Machine, options: SimulationOptions | None = None
) -> Trace:
    """Run one block of a warp program, cycle by cycle, on an SM that it has for itself.

    Args:
        program: what ``lower`` returns.
        problem: the loop that it was made from, priced on the machine.
        machine: prices the ops outside the loop, barriers and hand-overs.
        options: trip counts, latencies, seed. The same options give the same trace.

    Raises:
        TwillError: the program deadlocks.
        InputError: a trip count is negative, or there are several and the program is not persistent.
    """
    options = options or SimulationOptions()
    _check(program, options)
    run = Run(program, problem, machine, options=options, trips=options.trips)
    while run.advance():
        pass
    return Trace(
        kernel=program.kernel.name,
        machine=program.machine,
        ii_cycles=program.ii_cycles,
        groups=tuple(group.name for group in program.groups),
        units=problem.units,
        events=tuple(run.events),
        cycles=max((max(event.end_cycle, event.work_end_cycle) for event in run.events), default=0),
        options=options,
        remarks=run.remarks,
    )


def steady_state(
    program: WarpProgram,
    problem: Problem,
    machine: Machine,
    options: SimulationOptions | None = None,
    *,
    most: int = MOST,
) -> SteadyState:
    """Return what the loop settles to, without running it to an end.

    The run stops as soon as all times of the loop repeat. If they do not (random latencies), the last three
    quarters of ``most`` iterations are averaged. ``options.trips`` is not looked at. Raises what ``simulate`` does.
    """
    options = options or SimulationOptions()
    busy = [group.name for group in program.groups if group.loop]
    if not busy:
        raise InputError("the simulation", "no group has anything to do in the loop", "simulate another kernel")
    ahead = 1 + max(group.stages for group in program.groups)
    settle = _settle(program)
    run = Run(program, problem, machine, options=options, trips=(most + ahead + 1,))
    iterations, over, period = Iterations(), 0, 0
    while over < most and not period and run.advance():
        if run.events and run.events[-1].iteration is not None:
            iterations.take(run.events)
        now = min((iterations.newest.get(name, 0) for name in busy), default=0) - ahead
        if now > over:
            over = now
            period = iterations.period(over, settle) if options.latency.kind == "fixed" else 0
    first = over - 1 - period * max(1, settle // period) if period else (most - 1) // SETTLED
    return steady(run.events, problem.units, program.ii_cycles, (max(0, first), over - 1), period)


def causes(
    program: WarpProgram, problem: Problem, machine: Machine, options: SimulationOptions | None = None
) -> tuple[Cause, ...]:
    """Return what an iteration takes with the costs of the model alone, and with one more cost at a time.

    The first is the schedule's interval, kept by groups that issue in order and loads of the latency asked for; then
    come barrier instructions, and stores and loads of handed-over values.
    """
    options = options or SimulationOptions()
    modelled = replace(options, arrive_cycles=0, wait_cycles=0, staging=False)
    steps = (
        ("order, latencies and barrier hops", modelled),
        ("barrier instructions", replace(options, staging=False)),
        ("stores and loads of hand-overs", options),
    )
    return tuple(Cause(name=name, cycles=steady_state(program, problem, machine, one).cycles) for name, one in steps)


def _check(program: WarpProgram, options: SimulationOptions) -> None:
    if any(trips < 0 for trips in options.trips) or not options.trips:
        raise InputError("trips", f"{options.trips} are no trip counts", "give one from 0 on for each tile")
    if len(options.trips) > 1 and not program.persistent:
        what = "the program works on one tile only"
        raise InputError("trips", what, "lower it with persistent=True, or give one trip count")


def _settle(program: WarpProgram) -> int:
    """Return how many iterations can be under way or remembered in rings and barriers at one time."""
    depths = [ring.depth for ring in program.rings] + [barrier.copies for barrier in program.barriers]
    return 2 + max([1, *depths, *(group.stages for group in program.groups)])
