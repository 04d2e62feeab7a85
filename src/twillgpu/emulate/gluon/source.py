"""Source files run and compared: outputs of a launch, and everything that is wrong with it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from twillgpu.emulate.gluon.dtypes import DType, of_mlir
from twillgpu.emulate.gluon.given import Given
from twillgpu.emulate.gluon.host import HostTensor, Launches, TensorDescriptor
from twillgpu.emulate.gluon.rounding import is_rounding, roundoff
from twillgpu.emulate.gluon.stand_in import VERSIONS, load_source
from twillgpu.emulate.inputs import Inputs, Outputs, element_type, is_tensor
from twillgpu.emulate.memory import AccessError, GlobalMemory
from twillgpu.emulate.numbers import Array, format_of, rounded
from twillgpu.emulate.numeric_check import differences
from twillgpu.emulate.record import Deadlock, Difference, EmulationReport, Hazard, Race
from twillgpu.emulate.reference import run
from twillgpu.emulate.sample import sample_inputs
from twillgpu.emulate.schedulers import Chance, Scheduler
from twillgpu.errors import InputError, TwillError, UnsupportedError
from twillgpu.frontend.kernel import Kernel

LAUNCHER = "launch"
"""The function of a source file that takes the grid and the original kernel's arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRun:
    """What one launch of a source file did.

    Attributes:
        outputs: all tensors afterwards, by the name of the argument.
        races, hazards: what happens-before finds in any block.
        deadlock: of the first block that has one; the blocks after it did not run.
        steps: steps of all blocks.
    """

    outputs: Outputs
    races: tuple[Race, ...]
    hazards: tuple[Hazard, ...]
    deadlock: Deadlock | None
    steps: int

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong but, perhaps, the numbers."""
        return not self.races and not self.hazards and self.deadlock is None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How a source file is checked.

    Attributes:
        trips: trip counts of the loop.
        grid: blocks in each direction.
        seeds: each run has a random scheduler for every one of them.
        schedulers: further schedulers, each for a run of its own.
        versions: versions of Triton whose names the file finds.
    """

    trips: tuple[int, ...]
    grid: tuple[int, int, int] = (1, 1, 1)
    seeds: tuple[int, ...] = (0,)
    schedulers: tuple[Scheduler, ...] = ()
    versions: tuple[str, ...] = VERSIONS[-1:]


def run_source(
    path: str,
    inputs: Inputs,
    types: Mapping[str, str],
    scheduler: Callable[[], Scheduler] | None = None,
    version: str = VERSIONS[-1],
    blocks: Mapping[str, tuple[int, ...]] | None = None,
) -> SourceRun:
    """Run a source file's ``launch`` on the CPU, every block of the grid after the other.

    Args:
        path: the file.
        inputs: tensors and scalars by the names of the launcher's parameters, and the grid.
        types: element type (MLIR's name) of each tensor.
        scheduler: makes the scheduler of each block; by default chance with seed 0.
        version: version of Triton whose names the file finds.
        blocks: of the tensors that are given as TMA descriptors the blocks that the original kernel has.

    Raises:
        InputError: the file has no launcher, an argument is missing, an access leaves its memory; with the line.
        UnsupportedError: the file uses what has no meaning here; with the line.
    """
    memory = GlobalMemory()
    launches = Launches(memory=memory, scheduler=scheduler or (lambda: Chance(0)), path=path)
    tensors = {name: _placed(memory, name, values, types[name]) for name, values in inputs.tensors.items()}
    with located(path):
        names = load_source(path, launches, version)
        launch = names.get(LAUNCHER)
        if not callable(launch):
            raise InputError(path, f"it has no function {LAUNCHER!r}", "give a file that twillgpu emit wrote")
        launch(inputs.grid, **_arguments(launch, inputs, {**tensors, **_descriptors(tensors, blocks or {})}))
    outcomes = launches.outcomes
    return SourceRun(
        outputs={name: _contents(memory, tensor) for name, tensor in tensors.items()},
        races=tuple(race for outcome in outcomes for race in outcome.races),
        hazards=tuple(hazard for outcome in outcomes for hazard in outcome.hazards),
        deadlock=next((outcome.deadlock for outcome in outcomes if outcome.deadlock is not None), None),
        steps=sum(outcome.steps for outcome in outcomes),
    )


def check_source(
    path: str, kernel: Kernel, options: SourceOptions, progress: Callable[[str], None] | None = None
) -> EmulationReport:
    """Run an emitted file on random inputs and compare it with the reference of the kernel that it was made from.

    Raises as ``run_source`` does, and ``InputError`` where no inputs give a trip count.
    """
    started, tell = time.perf_counter(), progress or (lambda _: None)
    types = {one.name: element_type(one.type) for one in kernel.arguments if is_tensor(one)}
    runs: list[SourceRun] = []
    wrong: list[tuple[Difference, bool]] = []
    unit = roundoff(kernel)
    for trips in options.trips:
        inputs = sample_inputs(kernel, trips=trips, grid=options.grid)
        wanted = run(kernel, inputs)
        for version, scheduler in _runs(options):
            tell(f"{trips} trips, {scheduler().name}, names of Triton {version}")
            runs.append(run_source(path, inputs, types, scheduler, version, descriptor_blocks(kernel)))
            if runs[-1].deadlock is None:
                found = differences(wanted, runs[-1].outputs, (trips,), scheduler().name)
                wrong += [(one, is_rounding(wanted[one.output], runs[-1].outputs[one.output], unit)) for one in found]
    return _report(options, runs, wrong, time.perf_counter() - started)


def descriptor_blocks(kernel: Kernel) -> dict[str, tuple[int, ...]]:
    """Return the blocks of the arguments that are TMA descriptors."""
    return {one.name: one.type.shape for one in kernel.arguments if one.type.space == "descriptor"}


@contextmanager
def located(path: str) -> Iterator[None]:
    """Give errors inside a source file the line that they come from."""
    try:
        yield
    except AccessError as error:
        raise InputError(_line(path, error), f"it {error.what}", error.remedy) from None
    except TwillError as error:
        kind = UnsupportedError if isinstance(error, UnsupportedError) else InputError
        raise kind(_line(path, error), error.what, error.remedy) from None
    except AttributeError as error:
        raise UnsupportedError(_line(path, error), f"no stand-in: {error}", "run it on a GPU") from error
    except Exception as error:
        text = f"it raises {type(error).__name__}: {error}"
        raise InputError(_line(path, error), text, "correct the source") from error


def _line(path: str, error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f"{path}:{frames[-1].lineno}" if frames else path


def _placed(memory: GlobalMemory, name: str, values: Array, dtype: str) -> HostTensor:
    with np.errstate(all="ignore"):
        bits = format_of(dtype).encode(np.asarray(rounded(np.asarray(values), dtype)))
    kind: DType = of_mlir(dtype)
    return HostTensor(address=memory.add(name, dtype, bits), shape=np.shape(values), dtype=kind)


def _contents(memory: GlobalMemory, tensor: HostTensor) -> Array:
    bits = memory.contents(tensor.address)
    return np.array(format_of(tensor.dtype.name).decode(bits)).reshape(tensor.shape)


def _descriptors(
    tensors: Mapping[str, HostTensor], blocks: Mapping[str, tuple[int, ...]]
) -> dict[str, TensorDescriptor]:
    return {name: TensorDescriptor.from_tensor(tensors[name], block, None) for name, block in blocks.items()}


def _arguments(launch: Callable[..., Given], inputs: Inputs, tensors: Mapping[str, Given]) -> dict[str, Given]:
    """Return what the launcher needs; what has a default and is not given keeps it."""
    code = launch.__code__
    wanted = code.co_varnames[1 : code.co_argcount]
    needed = wanted[: len(wanted) - len(launch.__defaults__ or ())]
    given = {**{name: value for name, value in inputs.scalars.items() if "." not in name}, **tensors}
    missing = [name for name in needed if name not in given]
    if missing:
        raise InputError(code.co_filename, f"launch needs {', '.join(missing)}", "give a value for each")
    return {name: given[name] for name in wanted if name in given}


def _runs(options: SourceOptions) -> Iterator[tuple[str, Callable[[], Scheduler]]]:
    for version in options.versions:
        for seed in options.seeds:
            yield version, _chance(seed)
        for scheduler in options.schedulers:
            yield version, _same(scheduler)


def _chance(seed: int) -> Callable[[], Scheduler]:
    return lambda: Chance(seed)


def _same(scheduler: Scheduler) -> Callable[[], Scheduler]:
    return lambda: scheduler


def _report(
    options: SourceOptions, runs: Sequence[SourceRun], wrong: Sequence[tuple[Difference, bool]], seconds: float
) -> EmulationReport:
    races = {str(race): race for one in runs for race in one.races}
    hazards = {hazard.message: hazard for one in runs for hazard in one.hazards}
    deadlock = next((one.deadlock for one in runs if one.deadlock is not None), None)
    serious = [one for one, rounding in wrong if not rounding]
    sound = not (races or hazards or deadlock or serious)
    counts = ", ".join(map(str, options.trips))
    same = "to the rounding of sums in another order" if wrong else "exactly"
    return EmulationReport(
        status="sound" if sound else "unsafe",
        races=tuple(races.values()),
        deadlock=deadlock,
        hazards=tuple(hazards.values()),
        differences=tuple(serious),
        runs=len(runs),
        checked=tuple((count,) for count in options.trips),
        seeds=options.seeds,
        explored=0,
        proved=(
            f"{len(runs)} runs of the source for trips {counts} give {same} what the reference gives",
            "no order of their events has a race, a deadlock or a hazard",
        )
        if sound
        else (),
        notes=tuple(f"{one}: rounding" for one, rounding in wrong if rounding),
        seconds=seconds,
    )
