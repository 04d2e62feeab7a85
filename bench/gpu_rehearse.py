"""A rehearsal of ``bench/gpu.py`` on a CPU: everything but CUDA is real, nothing is measured.

Launches are emulated: emitted files by the Gluon emulator, the original kernels by the reference interpreter of
their tile IR. PyTorch's CPU tensors stand for those of the GPU, NumPy's where PyTorch is missing. The clock of the
events is made up: a millisecond from each event to the next.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from gpu_numpy import NumpyTorch
from gpu_plan import EXAMPLES, Job
from gpu_works import Setting
from twillgpu.emulate.gluon.source import descriptor_blocks, run_source
from twillgpu.emulate.inputs import Inputs, element_type, is_tensor
from twillgpu.emulate.reference import run
from twillgpu.frontend.load import load_kernel
from twillgpu.machine.load import load

LABEL = "rehearsal on a CPU, nothing is measured"
TICK_MS = 1.0


class MadeUpCuda:
    """``torch.cuda`` with a clock that is made up."""

    def __init__(self) -> None:
        self.now = 0.0

    def synchronize(self) -> None:
        """Wait for nothing."""

    def empty_cache(self) -> None:
        """Free nothing."""

    def Event(self, *, enable_timing: bool) -> MadeUpEvent:  # noqa: N802  # PyTorch's name
        """Return an event."""
        del enable_timing
        return MadeUpEvent(self)


class MadeUpEvent:
    """An event: it remembers a time that is made up."""

    def __init__(self, cuda: MadeUpCuda) -> None:
        self.cuda = cuda
        self.time = 0.0

    def record(self) -> None:
        """Take the next time."""
        self.cuda.now += TICK_MS
        self.time = self.cuda.now

    def elapsed_time(self, other: MadeUpEvent) -> float:
        """Return the made-up milliseconds from here to another event."""
        return other.time - self.time


class Torch:
    """PyTorch, or NumPy in its place, with the made-up CUDA."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("torch") is not None
        self.real: Any = importlib.import_module("torch") if found else NumpyTorch()
        self.cuda = MadeUpCuda()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # PyTorch is untyped here
        return getattr(self.real, name)


def device(machine: str) -> dict[str, Any]:
    """Return what a rehearsal says of its device: that of a machine, with a name that says what it is."""
    described = load(machine)
    figures = {figure.path: figure.value for figure in described.figures}
    triton: Any = importlib.import_module("triton")
    return {
        "name": f"{machine}: {LABEL}",
        "machine": machine,
        "capability": int("".join(filter(str.isdigit, described.arch))),
        "sms": int(figures["chip.sms"]),
        "l2_bytes": 0,
        "torch": str(Torch().__version__),
        "triton": str(triton.__version__),
        "cuda": "",
        "rehearsal": True,
    }


def setting(job: Job, length: int) -> Setting:
    """Return the setting of one row: one sequence and one head, launches emulated."""
    return Setting(torch=Torch(), device="cpu", tokens=length, heads=1, replace=partial(replace, job))


def replace(job: Job, module: ModuleType) -> None:
    """Put emulated launches into the place of an example's kernels."""
    names = vars(module)
    names[job.op] = Emulated(job, _file(job, names[job.op]))
    names |= {name: _Function(function) for name, function in HELPERS.items() if name in names}


def _file(job: Job, kernel: Any) -> str:  # noqa: ANN401  # Triton is untyped
    """Return the emitted file that a job launches, empty for the original kernel."""
    if job.implementation == "dropin":
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False, encoding="utf-8") as file:
            file.write(kernel.source(machine=job.rehearse))
        return file.name
    return job.emitted if job.implementation == "twill" else ""


class _Function:
    """A function of NumPy arrays in the place of a kernel."""

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    def __getitem__(self, _grid: Any) -> Callable[..., None]:  # noqa: ANN401  # a tuple
        return lambda *given, **_constants: self.function(*map(_array, given))


def _row_dots(o: Any, do: Any, delta: Any) -> None:  # noqa: ANN401  # arrays
    delta[...] = np.sum(o.astype(np.float32) * do.astype(np.float32), -1)


def _finish_dq(dq32: Any, dq: Any, scale: float) -> None:  # noqa: ANN401  # arrays
    dq[...] = dq32 * scale


HELPERS: dict[str, Callable[..., None]] = {"row_dots": _row_dots, "finish_dq": _finish_dq}
"""The kernels around that of the backward pass: they have no loop to schedule, and nothing is emitted for them."""


class Emulated:
    """A kernel whose launches are emulated, in the place of the ``@triton.jit`` function; ``file`` is emitted."""

    def __init__(self, job: Job, file: str) -> None:
        self.kernel = load_kernel(EXAMPLES / f"{job.op}.py", job.target)
        self.file = file

    def __getitem__(self, grid: Any) -> Callable[..., None]:  # noqa: ANN401  # a tuple or a function
        return partial(self._launch, grid)

    def _launch(self, grid: Any, *given: Any, **named: Any) -> None:  # noqa: ANN401  # tensors and descriptors
        parameters = [one.name for one in self.kernel.parameters]
        arguments = dict(zip(parameters, given, strict=False)) | named
        extents = (*(grid(arguments) if callable(grid) else grid), 1, 1)[:3]
        arrays = {one.name: _array(arguments[one.name]) for one in self.kernel.arguments if is_tensor(one)}
        inputs = Inputs(
            tensors=arrays,
            scalars={
                one.name: arguments[one.name]
                for one in self.kernel.arguments
                if not is_tensor(one) and "." not in one.name
            },
            grid=extents,
        )
        for name, values in self._outputs(inputs).items():
            arrays[name][...] = values

    def _outputs(self, inputs: Inputs) -> dict[str, Any]:
        if not self.file:
            return run(self.kernel, inputs)
        types = {one.name: element_type(one.type) for one in self.kernel.arguments if is_tensor(one)}
        found = run_source(self.file, inputs, types, blocks=descriptor_blocks(self.kernel))
        if not found.sound:
            raise RuntimeError(f"the emulation finds {[*found.races, *found.hazards, found.deadlock][0]}")
        return found.outputs


def _array(given: Any) -> Any:  # noqa: ANN401  # a tensor, a descriptor or a number
    """Return a tensor's memory as an array of the shape that a kernel sees; numbers as they are."""
    if hasattr(given, "block_shape"):
        return given.base.detach().numpy().reshape(tuple(given.shape))
    return given.detach().numpy() if hasattr(given, "data_ptr") else given
