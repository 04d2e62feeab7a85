"""``twillgpu simulate``: the warp program of a kernel, cycle by cycle, and the time of a whole launch."""

from __future__ import annotations

import math
from typing import Any

import click

from twillgpu.cli_options import (
    KERNEL,
    LIMITS,
    OUTPUT,
    POSITIVE,
    SEED,
    Decorator,
    Finite,
    Values,
    with_options,
)
from twillgpu.cli_output import Output
from twillgpu.cli_progress import interruptible, progress_line
from twillgpu.cli_source import GIVEN, scheduled, status_of
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel
from twillgpu.inputs import Priced, kernel_of
from twillgpu.lower.record import WarpProgram
from twillgpu.simulate.arguments import trips_of
from twillgpu.simulate.record import KernelTime, Latency, SimulationOptions, Trace
from twillgpu.simulate.simulate import causes, simulate, steady_state
from twillgpu.simulate.whole import Launch, kernel_time
from twillgpu.view.trace import Simulation, simulation_text
from twillgpu.view.trace_json import simulation_json

SHOWN = 32
"""Iterations of the trace where no trip count is given."""


def parse_latency(_ctx: click.Context, param: click.Parameter, value: str) -> Latency:
    """Return the latency that ``fixed``, ``uniform``, ``heavy`` or a number of cycles stands for."""
    if value == "uniform":
        return Latency(kind="uniform")
    if value == "heavy":
        return Latency(kind="heavy")
    if value == "fixed":
        return Latency()
    if not value.isdecimal() or int(value) == 0:
        raise click.BadParameter(f"{value!r} is none of fixed, uniform, heavy, and no number of cycles", param=param)
    return Latency(cycles=int(value))


def parse_grid(_ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Return the number of blocks of a grid such as ``64,128``."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if len(parts) > 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise click.BadParameter(f"{value!r} is no grid such as 64,128", param=param)
    return math.prod(int(part) for part in parts)


def parse_values(_ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, int]:
    """Return the values of arguments in ``NAME=VALUE``."""
    found = {}
    for text in value:
        name, sign, number = text.partition("=")
        if not name or not sign or not number.lstrip("-").isdecimal():
            raise click.BadParameter(f"{text!r} is not NAME=VALUE with a whole number", param=param)
        found[name] = int(number)
    return found


RUNS: tuple[Decorator, ...] = (
    click.option(
        "--tma-latency",
        "latency",
        default="fixed",
        callback=parse_latency,
        metavar="fixed|uniform|heavy|CYCLES",
        help="Latency of loads: as the machine file says (the default), random from the measured range, random "
        "with a heavy tail, or so many cycles.",
    ),
    click.option("--seed", type=SEED, default=0, metavar="N", help="Of random latencies. Default: 0."),
    click.option("--trips", type=click.IntRange(min=0), metavar="N", help="Iterations of every block."),
    click.option(
        "--set",
        "known",
        multiple=True,
        callback=parse_values,
        metavar="NAME=VALUE",
        help="Value of a scalar argument, from which the trip count follows. May be repeated.",
    ),
    click.option("--blocks", type=POSITIVE, metavar="N", help="Blocks of the launch. Default: one for each SM."),
    click.option("--grid", callback=parse_grid, metavar="X,Y,Z", help="The same, as the grid of the launch."),
    click.option(
        "--reuse",
        type=Finite(min=1),
        metavar="R",
        help="Each byte from HBM serves R accesses through L2. Default: HBM is left out.",
    ),
)


@click.command("simulate")
@click.argument("source", metavar="SOURCE")
@with_options(KERNEL, LIMITS, GIVEN, RUNS, OUTPUT)
def command(source: str, **values: Any) -> int:  # noqa: ANN401  # whatever click parsed
    """Predict the time of a kernel's warp program: cycles per iteration, stalls, and a whole launch.

    SOURCE is a kernel. Its schedule is searched, or read from a file, and made into the program of every warp group,
    which is run cycle by cycle on one SM. The report compares the steady state with the schedule's interval and names
    what makes the difference.

    Exit status: 0 done, 1 a mistake in the input, 2 proved that no schedule exists, 3 none was found within limits.
    """
    output = Output(file=values["file"], force=values["force"])
    if values["blocks"] is not None and values["grid"] is not None:
        raise InputError("--grid", "it says what --blocks says", "leave one of them out")
    with interruptible(), progress_line() as progress:
        found = scheduled(source, values, progress=progress, needs=kernel_of)
    if found.verified is None:
        return status_of(found)
    simulation = _simulated(found.priced, found.program(), values)
    text = simulation_json(simulation) if values["as_json"] else simulation_text(simulation, output.width)
    output.deliver(text)
    return 0


def _simulated(priced: Priced, program: WarpProgram, values: Values) -> Simulation:
    machine, problem = priced.loaded.machine, priced.problem
    options = SimulationOptions(trips=(SHOWN,), latency=values["latency"], seed=values["seed"])
    trips = _trips(program.kernel, values)
    steady = steady_state(program, problem, machine, options)
    time: KernelTime | None = None
    if trips is None:
        trace: Trace = simulate(program, problem, machine, options)
    else:
        launch = Launch(trips=trips, blocks=values["blocks"] or values["grid"], reuse=values["reuse"])
        time, trace = kernel_time(program, problem, machine, steady, launch=launch, options=options)
    return Simulation(
        kernel=program.kernel.name,
        machine=program.machine,
        steady=steady,
        causes=causes(program, problem, machine, options),
        time=time,
        trace=trace,
    )


def _trips(kernel: Kernel, values: Values) -> int | None:
    """Return the trip count, ``None`` where neither the command line nor the kernel says it."""
    if values["trips"] is not None and values["known"]:
        raise InputError("--set", "the trip count is already given by --trips", "leave one of them out")
    if values["trips"] is not None:
        return int(values["trips"])
    if not values["known"] and kernel.loop.trip_count is None:
        return None
    return trips_of(kernel, values["known"])
