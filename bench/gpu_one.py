"""Measure one job on the GPU: ``python bench/gpu_one.py JOB`` prints a JSON row per length; ``probe`` the device."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TextIO

from gpu_plan import Job, Row
from gpu_works import Setting, Work, work_of

RELATIVE, LARGEST = 1e-2, 5e-2
"""Errors above which a result is wrong: fp16 products of normal numbers stay a factor of five or more below."""

ABSENT = ("No viable backend", "No available kernel")
"""What PyTorch says where a back end of its attention cannot be used here."""

WARM_UP = 3
TIMED_MS, LEAST, MOST = 300.0, 5, 50
QUEUE_CYCLES = 50_000_000
"""The GPU sleeps so long (about 30 ms) before the timed launches, so that it never waits for the host."""


def probe(rehearse: str = "") -> dict[str, Any]:
    """Return what is here: ``{"missing": ...}`` or the device; of a rehearsal the machine that it stands for."""
    for name in ("triton",) if rehearse else ("torch", "triton"):
        if importlib.util.find_spec(name) is None:
            return {"missing": f"{name} is not installed"}
    if rehearse:
        found: dict[str, Any] = importlib.import_module("gpu_rehearse").device(rehearse)
        return found
    torch: Any = importlib.import_module("torch")
    triton: Any = importlib.import_module("triton")
    if not torch.cuda.is_available():
        return {"missing": "PyTorch finds no CUDA device"}
    gpu = torch.cuda.get_device_properties(0)
    return {
        "name": gpu.name,
        "capability": gpu.major * 10 + gpu.minor,
        "sms": gpu.multi_processor_count,
        "l2_bytes": getattr(gpu, "L2_cache_size", 0),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cuda": torch.version.cuda,
    }


def measured(job: Job, length: int, setting: Setting, timer: Timer) -> Row:
    """Check and time a job at one length; exceptions become the row's reason."""
    begun = time.monotonic()
    return replace(_measured(job, length, setting, timer), seconds=round(time.monotonic() - begun, 2))


def _measured(job: Job, length: int, setting: Setting, timer: Timer) -> Row:
    row = Row(op=job.op, implementation=job.implementation, length=length, outcome="failed")
    try:
        with contextlib.ExitStack() as stack:
            setting.stack = stack
            work = work_of(job, length, setting)
            relative, largest = checked(work, setting)
            row = replace(row, relative_error=relative, largest_error=largest, input_sets=work.sets)
            row = replace(row, blocks=work.extent.blocks, trips=work.extent.trips)
            if not right(row):
                return replace(row, outcome="wrong", reason="the result differs from the float64 reference")
            milliseconds, launches = timer.median(work)
    except Exception as error:  # noqa: BLE001  # whatever a library or the driver raises costs this row only
        first = (str(error).strip().splitlines() or [""])[0]
        missing = isinstance(error, ImportError | AttributeError) or any(said in first for said in ABSENT)
        return replace(row, outcome="skipped" if missing else "failed", reason=f"{type(error).__name__}: {first}")
    outcome = "rehearsed" if job.rehearse else "ok"
    tflops = work.extent.flop / milliseconds / 1e9
    return replace(row, outcome=outcome, milliseconds=milliseconds, tflops=tflops, launches=launches)


def checked(work: Work, setting: Setting) -> tuple[float, float]:
    """Run every set of inputs once into poisoned outputs; return the largest relative and largest errors."""
    relative, largest = [0.0], [0.0]
    for at in range(work.sets):
        work.poison(at)
        work.launch(at)
        if setting.device == "cuda":
            setting.torch.cuda.synchronize()
        for found, reference in work.pairs(at):
            difference = found.detach().double() - reference
            relative.append(float(difference.norm() / reference.norm()))
            largest.append(float(difference.abs().max() / reference.abs().max()))
    return _worst(relative), _worst(largest)


def _worst(values: list[float]) -> float:
    """Return the largest value; a NaN is worse than any number, and JSON has only numbers."""
    return max(values) if all(math.isfinite(value) for value in values) else sys.float_info.max


def right(row: Row) -> bool:
    """Whether the errors of a row are those of rounding."""
    relative, largest = row.relative_error, row.largest_error
    return relative is not None and largest is not None and relative <= RELATIVE and largest <= LARGEST


class Timer(Protocol):
    """What times the launches of a work."""

    def median(self, work: Work) -> tuple[float, int]:
        """Return the median milliseconds of a launch and how many were timed; inputs rotate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimer:
    """Times launches by CUDA events: ``least`` to ``most`` of them, after ``warm_up`` that are not timed."""

    torch: Any
    warm_up: int = WARM_UP
    least: int = LEAST
    most: int = MOST

    def median(self, work: Work) -> tuple[float, int]:
        """Return the median milliseconds of a launch and how many were timed; inputs rotate."""
        for number in range(self.warm_up):
            work.launch(number % work.sets)
        first = statistics.median(self._times(work, self.warm_up))
        count = max(self.least, min(self.most, round(TIMED_MS / max(first, 1e-3))))
        return statistics.median(self._times(work, count)), count

    def _times(self, work: Work, count: int) -> list[float]:
        cuda = self.torch.cuda
        cuda.synchronize()
        if hasattr(cuda, "_sleep"):
            cuda._sleep(QUEUE_CYCLES)  # noqa: SLF001  # PyTorch's own benchmarks use it
        events = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(count)]
        for number, (begin, end) in enumerate(events):
            begin.record()
            work.launch(number % work.sets)
            end.record()
        cuda.synchronize()
        return [begin.elapsed_time(end) for begin, end in events]


def main(arguments: Sequence[str]) -> int:
    """Print the rows of a job, one per line; after a failure the process ends: the device may be unusable."""
    answers = _private_output()
    if arguments[0] == "probe":
        print(json.dumps(probe(*arguments[1:])), file=answers, flush=True)
        return 0
    given = json.loads(arguments[0])
    job = Job(**{**given, "lengths": tuple(given["lengths"])})
    for length in job.lengths:
        setting, timer = on_a_cpu(job, length) if job.rehearse else _on_the_gpu()
        row = measured(job, length, setting, timer)
        print(json.dumps(asdict(row)), file=answers, flush=True)
        if row.outcome == "failed":
            return 1
        setting.torch.cuda.empty_cache()
    return 0


def _private_output() -> TextIO:
    """Return standard output, and let whatever libraries print there go to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _on_the_gpu() -> tuple[Setting, Timer]:
    torch: Any = importlib.import_module("torch")
    l2_bytes = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0)
    return Setting(torch=torch, l2_bytes=l2_bytes), EventTimer(torch=torch)


def on_a_cpu(job: Job, length: int) -> tuple[Setting, Timer]:
    """Return where a rehearsal of one row runs, and its timer."""
    rehearsal: Any = importlib.import_module("gpu_rehearse")  # the emulator: a measurement needs none of it
    setting: Setting = rehearsal.setting(job, length)
    return setting, EventTimer(torch=setting.torch, warm_up=1, least=1, most=1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
