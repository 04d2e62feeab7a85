"""One block of a running kernel: its machine, memories and groups, and the source line of whatever runs."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import numpy as np

from twillgpu.emulate.gluon.dtypes import DType
from twillgpu.emulate.gluon.given import Given
from twillgpu.emulate.gluon.partition import Partition
from twillgpu.emulate.gluon.views import (
    COLUMN_BYTES,
    COLUMNS,
    LANES,
    Allocation,
    View,
    columns_of,
    shared_view,
    tensor_view,
)
from twillgpu.emulate.machine import Machine, Outcome
from twillgpu.emulate.memory import AccessError, GlobalMemory
from twillgpu.emulate.numbers import POISON_BYTE
from twillgpu.emulate.schedulers import Scheduler
from twillgpu.emulate.steps import Action, BarrierCopy, Block, Cell, Join, Label, Step, Work
from twillgpu.errors import InputError

_TARGET = re.compile(r"\s*(\w+)\s*(?::[^=]+)?=[^=]")
_ALIGNMENT = 1024
_LONGEST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A block of the grid, and what it runs on."""

    program: tuple[int, int, int]
    grid: tuple[int, int, int]
    memory: GlobalMemory
    warps: int
    path: str


class Session:
    """One block under way."""

    def __init__(self, place: Place, scheduler: Scheduler) -> None:
        self.place = place
        self.current: Partition | None = None
        self._partitions: list[Partition] = []
        self._barriers: dict[int, int] = {}
        self._smem_end = self._tmem_end = self._cells = 0
        self._tensor = np.full(LANES * COLUMNS * COLUMN_BYTES, POISON_BYTE, np.uint8)
        self._scheduler = scheduler
        self.machine = Machine(Block(groups=(), barriers=(), scripts=()), scheduler)

    def run(self, name: str, body: Callable[[], None]) -> Outcome:
        """Run a kernel's function to its end. Raises whatever it raises."""
        main = self._partition(name, self.place.warps, body)
        block = Block(groups=(name,), barriers=(), scripts=(main,))
        self.machine = Machine(block, self._scheduler)
        try:
            return self.machine.run()
        finally:
            for partition in self._partitions:
                partition.close()

    def specialize(
        self, default: tuple[str, Callable[[], None]], workers: list[tuple[str, int, Callable[[], None]]]
    ) -> None:
        """Run functions side by side: the first one goes on with the group that calls."""
        parent = self.number
        for name, warps, body in workers:
            self.machine.start_group(self._unique(name), self._partition(name, warps, body), parent)
        self.partition.name = self.machine.groups[parent] = self._unique(default[0])
        default[1]()
        self.post(Join(self.label()))

    @property
    def partition(self) -> Partition:
        """The group that runs. Raises ``InputError`` outside of a kernel."""
        if self.current is None:
            raise InputError("the source", "it uses the GPU outside of a kernel", "launch a kernel")
        return self.current

    @property
    def number(self) -> int:
        """The number of the group that runs."""
        return self._partitions.index(self.partition)

    def post(self, step: Step) -> None:
        """Have the machine do a step of the group that runs."""
        self.partition.post(step)

    def work(self, engine: str, action: Action, **touched: Given) -> None:
        """Have the machine do work on memory; ``touched``: further fields of ``Work``."""
        self.post(Work(self.label(), engine, action=action, **touched))

    def label(self) -> Label:
        """Return where the group that runs stands in the source."""
        frame = self._frame()
        line = 0 if frame is None else frame.f_lineno
        text = linecache.getline(self.place.path, line).strip()
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
        return Label(self.partition.name, f"`{text}`", f"{self.place.path}:{line}", 0, self.partition.iteration)

    def shared(self, dtype: DType, shape: tuple[int, ...], layout: Given) -> View:
        """Allocate SMEM."""
        size = int(np.prod(shape)) * dtype.size_bytes
        start = -(-self._smem_end // _ALIGNMENT) * _ALIGNMENT
        self._smem_end = start + size
        data = np.full(size, POISON_BYTE, np.uint8)
        found = Allocation(name=self._target(), memory="smem", start=start, data=data)
        return shared_view(found, 0, dtype, shape, layout)

    def tensor(self, dtype: DType, shape: tuple[int, ...], layout: Given) -> View:
        """Allocate TMEM."""
        column = self._tmem_end
        self._tmem_end += columns_of(dtype, shape, layout) * int(np.prod(shape[:-2]))
        found = Allocation(name=self._target(), memory="tmem", start=0, data=self._tensor)
        return tensor_view(found, column, dtype, shape, layout)

    def start_barrier(self, view: View, arrivals: int) -> None:
        """Initialise the barrier at a place of SMEM."""
        several = view.nbytes < view.allocation.data.nbytes
        name = f"{view.allocation.name}[{view.offset // view.nbytes}]" if several else view.allocation.name
        copy = BarrierCopy(name=name, copy=0, copies=1, arrivals=arrivals)
        self._barriers[self._address(view)] = self.machine.start_barrier(copy)

    def end_barrier(self, view: View) -> None:
        """Forget a barrier."""
        self._barriers.pop(self._address(view), None)

    def barrier(self, view: View) -> int:
        """Return the number of the barrier at a place of SMEM. Raises ``AccessError`` where there is none."""
        view.check()
        found = self._barriers.get(self._address(view))
        if found is None:
            raise AccessError(f"uses a barrier of {view.allocation.name} that is not initialised", "initialise it")
        return found

    def cell(self) -> Cell:
        """Return a name for a register result that is in flight."""
        self._cells += 1
        return f"result {self._cells}", None

    def drained(self, cell: Cell) -> bool:
        """Return whether the group that runs knows that a register result is there."""
        number = self.number
        event = self.machine.order.registers[number].get(cell)
        return event is None or not event.settled & ~self.machine.order.known[number]

    def _partition(self, name: str, warps: int, body: Callable[[], None]) -> Partition:
        found = Partition(name, warps, body, self._running)
        self._partitions.append(found)
        return found

    @contextmanager
    def _running(self, partition: Partition) -> Iterator[None]:
        before, self.current = self.current, partition
        try:
            yield
        finally:
            self.current = before

    def _unique(self, name: str) -> str:
        same = sum(1 for group in self.machine.groups if group.partition("#")[0] == name)
        return f"{name}#{same}" if same else name

    def _frame(self) -> FrameType | None:
        """Return the innermost frame of the kernel's own file."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # the only way to the line that runs
        while frame is not None and frame.f_code.co_filename != self.place.path:
            frame = frame.f_back
        return frame

    def _target(self) -> str:
        """Return the name of the variable that the line that runs assigns to."""
        frame = self._frame()
        line = "" if frame is None else linecache.getline(self.place.path, frame.f_lineno)
        found = _TARGET.match(line)
        return found.group(1) if found else "memory"

    @staticmethod
    def _address(view: View) -> int:
        return view.allocation.start + view.offset
