"""The host's side: tensors, TMA descriptors, and launches that run a grid block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from twillgpu.emulate.gluon.dtypes import DType, pointer_to
from twillgpu.emulate.gluon.engines import TiledDescriptor
from twillgpu.emulate.gluon.given import Given, plain
from twillgpu.emulate.gluon.layouts import no_clusters
from twillgpu.emulate.gluon.runtime import Runtime
from twillgpu.emulate.gluon.session import Place, Session
from twillgpu.emulate.gluon.tile import Tile, scalar
from twillgpu.emulate.inputs import row_major
from twillgpu.emulate.machine import Outcome
from twillgpu.emulate.memory import Descriptor, GlobalMemory
from twillgpu.emulate.reference import blocks
from twillgpu.emulate.schedulers import Scheduler
from twillgpu.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTensor:
    """A tensor on the device, as a launcher sees it; also the descriptor of itself, as whose ``base`` it stands."""

    address: int
    shape: tuple[int, ...]
    dtype: DType

    @property
    def base(self) -> HostTensor:
        """The tensor of the descriptor."""
        return self

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements."""
        return row_major(self.shape)

    def stride(self, at: int) -> int:
        """Return one stride in elements."""
        return self.strides[at]

    def size(self, at: int) -> int:
        """Return one extent."""
        return self.shape[at]

    def data_ptr(self) -> int:
        """Return the address."""
        return self.address


@dataclass(slots=True)
class TensorDescriptor:
    """``triton.experimental.gluon.nvidia.hopper.TensorDescriptor``."""

    base: HostTensor
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    layout: Given
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    @staticmethod
    def from_tensor(
        tensor: HostTensor, block_shape: Sequence[int], layout: Given, padding: str = "zero"
    ) -> TensorDescriptor:  # a layout
        """Return the descriptor of a whole tensor."""
        return TensorDescriptor(tensor, tensor.shape, tensor.strides, block_shape, layout, padding)


@dataclass(slots=True, kw_only=True)
class Launches:
    """What a launch runs on, and what its blocks did.

    Attributes:
        memory: global memory.
        scheduler: makes the scheduler of each block.
        path: the source file.
        outcomes: of the blocks that have run, in order; after a deadlock there are no more.
    """

    memory: GlobalMemory
    scheduler: Callable[[], Scheduler]
    path: str
    outcomes: list[Outcome] = field(default_factory=list)


class JitFunction:
    """A function under ``@gluon.jit``: called from a kernel, it runs; launched on a grid, it is a kernel."""

    def __init__(self, runtime: Runtime, launches: Launches, function: Callable[..., Given]) -> None:
        self.runtime, self.launches, self.fn = runtime, launches, function
        self.__name__ = function.__name__

    def __call__(self, *given: Given, **named: Given) -> Given:
        """Run the function, from a kernel."""
        if not self.runtime.busy:
            raise InputError("the source", f"{self.__name__} is called outside of a kernel", "launch it on a grid")
        return self.fn(*given, **named)

    def __get__(self, owner: Given, _kind: Given = None) -> Given:
        return self if owner is None else partial(self.__call__, owner)

    def __getitem__(self, grid: Given) -> Callable[..., None]:
        return lambda *given, **named: self._launch(grid, given, named)

    def _launch(self, grid: Given, given: tuple[Given, ...], named: dict[str, Given]) -> None:
        names = self.fn.__code__.co_varnames[: self.fn.__code__.co_argcount]
        kinds = self.fn.__annotations__
        options = {name: named.pop(name) for name in list(named) if name not in names}
        if int(options.get("num_ctas", 1)) > 1:
            raise no_clusters()
        arguments = dict(zip(names, given, strict=False)) | named
        extents = tuple(int(size) for size in (grid(arguments) if callable(grid) else grid))
        whole = (*extents, 1, 1, 1)[:3]
        on_device = {
            name: plain(value) if "constexpr" in str(kinds.get(name, "")) else _argument(value, kinds.get(name))
            for name, value in arguments.items()
        }
        for program in blocks((whole[0], whole[1], whole[2])):
            place = Place(
                program=program,
                grid=(whole[0], whole[1], whole[2]),
                memory=self.launches.memory,
                warps=int(options.get("num_warps", 4)),
                path=self.launches.path,
            )
            outcome = self._block(place, on_device)
            self.launches.outcomes.append(outcome)
            if outcome.deadlock is not None:
                return

    def _block(self, place: Place, arguments: dict[str, Given]) -> Outcome:
        session = Session(place, self.launches.scheduler())
        self.runtime.enter(session)
        try:
            return session.run(self.__name__, lambda: self.fn(**arguments))
        finally:
            self.runtime.enter(None)


def _argument(value: Given, annotation: Given) -> Given:
    """Return an argument of a launch as the kernel sees it; an annotation says of which type a number is."""
    given = plain(value)
    if isinstance(given, HostTensor):
        return Tile(scalar(given.address, DType(name="i64", triton="int64")).values, pointer_to(given.dtype))
    if isinstance(given, TensorDescriptor):
        described = Descriptor(
            address=given.base.address,
            shape=tuple(map(int, given.shape)),
            strides=tuple(map(int, given.strides)),
            dtype=given.base.dtype.name,
            pad_nan=given.padding == "nan",
        )
        return TiledDescriptor(described, given.block_shape, given.base.dtype, given.layout)
    if not isinstance(given, bool | int | float):
        return given
    return scalar(given, annotation if isinstance(annotation, DType) else None)
