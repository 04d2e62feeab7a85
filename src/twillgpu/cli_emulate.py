"""``twillgpu emulate``: the warp program of a kernel, run on the CPU: numbers, races, deadlocks, proofs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from twillgpu.api import Progress
from twillgpu.cli_options import (
    KERNEL,
    LIMITS,
    OUTPUT,
    POSITIVE,
    Decorator,
    Values,
    source_options,
    with_options,
)
from twillgpu.cli_output import Output
from twillgpu.cli_progress import interruptible, progress_line
from twillgpu.cli_source import GIVEN, scheduled, status_of
from twillgpu.emulate.check import EmulationOptions, emulate
from twillgpu.emulate.gluon.recognise import check_launcher, found_beside, is_gluon, original
from twillgpu.emulate.gluon.source import SourceOptions, check_source
from twillgpu.emulate.record import EmulationReport, Verdict
from twillgpu.emulate.text import report_text
from twillgpu.errors import InputError
from twillgpu.inputs import kernel_of, load_source, read_text
from twillgpu.lower.options import LowerOptions
from twillgpu.lower.record import WarpProgram
from twillgpu.lower.text_read import SUFFIX, read_program
from twillgpu.view.records import record_json

EXIT: dict[Verdict, int] = {"sound": 0, "unsafe": 1, "limit": 3}
SCHEMA = "twillgpu-emulation/1"
DEFAULTS = EmulationOptions()


def parse_trips(_ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Return the trip counts in ``0,1,2``, ``None`` where nothing is given."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"{value!r} is not a list of trip counts such as 0,1,2", param=param)
    return tuple(sorted({int(part) for part in parts}))


RUNS: tuple[Decorator, ...] = (
    click.option(
        "--trips",
        callback=parse_trips,
        metavar="N,N,...",
        help="Trip counts to run. Default: 0, 1, about the number of stages, and more than any ring is deep.",
    ),
    click.option(
        "--seeds",
        type=click.IntRange(min=0),
        default=DEFAULTS.seeds,
        metavar="N",
        help=f"Random orders of each run on numbers. Default: {DEFAULTS.seeds}.",
    ),
    click.option(
        "--tiles",
        type=POSITIVE,
        default=1,
        metavar="N",
        help="Make the program persistent, and run blocks of N tiles with different trip counts too. Default: 1.",
    ),
    click.option("--explore", is_flag=True, help="Explore every interleaving of a short block too."),
    click.option("--no-numbers", is_flag=True, help="Do not run on numbers."),
    click.option(
        "--gluon",
        metavar="FILE.py",
        help="Run this file as Gluon, whatever it looks like; SOURCE is the kernel that it was made from.",
    ),
    click.option(
        "--original",
        metavar="KERNEL.py",
        help="Where SOURCE is Gluon: the kernel to compare it with. Default: the one that the file names.",
    ),
)
SOURCE_TRIPS = (0, 1, 2, 3, 4, 7)
"""Trip counts of emitted source, whose stages and rings are not known."""


@click.command("emulate")
@click.argument("source", metavar="SOURCE")
@with_options(KERNEL, LIMITS, GIVEN, RUNS, OUTPUT)
def command(source: str, **values: Any) -> int:  # noqa: ANN401  # whatever click parsed
    """Run the warp program of a kernel on the CPU, and check it in every order that the hardware may choose.

    SOURCE is a kernel, whose schedule is searched, or read from a file, and made into the program of every warp
    group; such a program, as --emit program prints it (.program); or a Gluon file (with functions under @gluon.jit,
    and none under @triton.jit), as twillgpu emit writes it, which is run as it is. The program is checked for races,
    deadlocks and hazards of barriers, run on random numbers in many orders, and compared with the reference of the
    kernel. The report says what is proved.

    Exit status: 0 sound, 1 unsafe or a mistake in the input, 2 proved that no schedule exists, 3 a limit was reached.
    """
    output = Output(file=values["file"], force=values["force"])
    if values["gluon"] is not None:
        return _emitted(values["gluon"], source, values, output)
    if is_gluon(Path(source)):
        return _recognised(Path(source), values, output)
    if values["original"] is not None:
        what = f"{source} is no Gluon file: it has no function under @gluon.jit, or one under @triton.jit"
        raise InputError("--original", what, "leave the option out, or force it: KERNEL.py --gluon FILE.py")
    with interruptible(), progress_line() as progress:
        program = _program(source, values, progress)
        if isinstance(program, int):
            return program
        report = emulate(program, _options(values), progress)
    return _delivered(_Document(kernel=program.kernel.name, machine=program.machine, report=report), values, output)


def _recognised(file: Path, values: Values, output: Output) -> int:
    """Run a Gluon file, and compare it with the kernel that it names, or that the user does."""
    check_launcher(file)
    said = original(file)
    kernel = values["original"] or (said.file if said is not None else None)
    if kernel is None:
        what = "it is Gluon, and does not say which kernel it was made from (no ORIGINAL, as twillgpu emit writes it)"
        raise InputError(str(file), what, "name the kernel: --original KERNEL.py")
    found = found_beside(file, kernel) if values["original"] is None else Path(kernel)
    if found is None:
        what = f"the kernel that it says it was made from, {kernel}, is neither here nor beside it"
        raise InputError(str(file), what, "name the kernel: --original KERNEL.py")
    if said is not None:
        values = values | {name: values[name] or getattr(said, name) for name in ("machine", "kernel")}
    return _emitted(str(file), str(found), values, output)


def _emitted(file: str, source: str, values: Values, output: Output) -> int:
    """Run a Gluon file and compare it with the kernel that it was made from."""
    if values["schedule"] is not None:
        raise InputError("--schedule", f"{file} is run as it is", "leave the option out")
    loaded = load_source(source, values["machine"], source_options(values))
    kernel = kernel_of(loaded)
    trips = SOURCE_TRIPS if values["trips"] is None else values["trips"]
    options = SourceOptions(trips=trips, seeds=tuple(range(values["seeds"])))
    with interruptible(), progress_line() as progress:
        report = check_source(file, kernel, options, progress)
    return _delivered(_Document(kernel=file, machine=loaded.machine.name, report=report), values, output)


def _delivered(document: _Document, values: Values, output: Output) -> int:
    if values["as_json"]:
        output.deliver(record_json(document, schema=SCHEMA))
    else:
        output.deliver(report_text(f"{document.kernel} on {document.machine}", document.report, output.width))
    return EXIT[document.report.status]


def _options(values: Values) -> EmulationOptions:
    return EmulationOptions(
        trips=values["trips"],
        tiles=values["tiles"],
        seeds=values["seeds"],
        numbers=not values["no_numbers"],
        explore=values["explore"],
    )


def _program(source: str, values: Values, progress: Progress | None) -> WarpProgram | int:
    """Return the warp program, or the exit status where no schedule was found."""
    if Path(source).suffix == SUFFIX:
        return _given(source, values)
    found = scheduled(source, values, progress=progress, needs=kernel_of)
    if found.verified is None:
        return status_of(found)
    return found.program(LowerOptions(persistent=values["tiles"] > 1))


def _given(source: str, values: Values) -> WarpProgram:
    """Return the program in a file."""
    if values["schedule"] is not None:
        raise InputError("--schedule", f"{source} is a program already", "leave the option out, or give the kernel")
    program = read_program(read_text(Path(source)), where=source)
    if values["tiles"] > 1 and not program.persistent:
        raise InputError("--tiles", f"{source} is for one tile", 'give the kernel, or a program that is "persistent"')
    return program


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """The JSON document."""

    kernel: str
    machine: str
    report: EmulationReport
