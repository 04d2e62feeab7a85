"""A GPU that is not there: Triton's driver, tensors without data, and a record of what was launched."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.tools.tensor_descriptor import TensorDescriptor


class Dtype:
    """An element type that prints as PyTorch's does."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.itemsize = np.dtype(name).itemsize
        self.is_floating_point = name.startswith("float")

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dtype) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass
class Tensor:
    """What Triton asks of a tensor when it launches."""

    shape: tuple[int, ...]
    dtype: Dtype = field(default_factory=lambda: Dtype("float16"))
    pointer: int = 1 << 20

    def data_ptr(self) -> int:
        return self.pointer

    def stride(self) -> tuple[int, ...]:
        return tuple(int(np.prod(self.shape[at + 1 :])) for at in range(len(self.shape)))

    def tiles(self, *block: int) -> TensorDescriptor:
        return TensorDescriptor.from_tensor(self, list(block))


@dataclass
class Launched:
    """One launch: the kernel's name, its grid, and everything that the driver's launcher was given after it."""

    name: str
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]


class FakeDriver:
    """A driver whose compiler is real, and whose launches are only written down; ``device`` may be changed."""

    def __init__(self, *capabilities: int) -> None:
        self.capabilities = capabilities
        self.device = 0
        self.launched: list[Launched] = []
        self.utils = self

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.capabilities[self.device], 32)

    def get_current_device(self) -> int:
        return self.device

    def get_current_stream(self, device: int) -> int:
        return device

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 232448, "device": device}

    def load_binary(self, *_: object) -> tuple[None, int, int, int, int]:
        return None, 1, 32, 0, 1024  # no module: there is nothing to unload when the kernel is deleted

    def launcher_cls(self, _source: object, metadata: Any) -> Callable[..., None]:
        def launch(*arguments: Any) -> None:
            self.launched.append(Launched(metadata.name, arguments[:3], arguments[9:]))

        return launch

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Time nothing: a launch costs as much as its name is long."""

        def bench(call: Callable[[], None], quantiles: object) -> list[float]:
            assert quantiles
            call()
            return [float(len(self.launched[-1].name))] * 3

        return bench


@contextmanager
def fake_gpu(*capabilities: int) -> Iterator[FakeDriver]:
    """Let Triton believe in GPUs of these compute capabilities (90 for 9.0), by default in one of 9.0."""
    fake = FakeDriver(*(capabilities or (90,)))
    driver.set_active(fake)
    try:
        yield fake
    finally:
        driver.set_active(None)
