"""Which value a name stands for in an iteration: carried values are those of the iteration before."""

from __future__ import annotations

from twillgpu.emulate.steps import Cell
from twillgpu.frontend.kernel import Kernel


class Names:
    """The names of a kernel's loop."""

    def __init__(self, kernel: Kernel) -> None:
        self._body = {result.name for op in kernel.loop.body for result in op.results}
        self._body.add(kernel.loop.induction.name)
        self._arguments = {carried.argument.name: carried for carried in kernel.loop.carried}
        self._results = {carried.result: carried for carried in kernel.loop.carried}

    def cell(self, name: str, iteration: int | None, trips: int) -> Cell:
        """Return the name of the op's result, and the iteration of the tile that made it (``None``: outside)."""
        if name in self._results:
            name, iteration = self._carried(self._results[name].argument.name, trips)
        elif name in self._arguments and iteration is not None:
            name, iteration = self._carried(name, iteration)
        return (name, iteration) if name in self._body else (name, None)

    def _carried(self, argument: str, iteration: int) -> Cell:
        """Return what a carried value is at the start of an iteration."""
        name, at = argument, iteration
        while name in self._arguments:
            if at <= 0:
                return self._arguments[name].initial, None
            name, at = self._arguments[name].yielded, at - 1
        return name, at
