"""A decorated kernel: launches as the original does, and says what it would be without a GPU."""

from __future__ import annotations

import copy
import functools
from dataclasses import replace
from typing import Any

from triton import knobs
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction

from twillgpu.dropin.capture import captured
from twillgpu.dropin.describe import described
from twillgpu.dropin.device import active_driver, device_name, machine_of
from twillgpu.dropin.launcher import Launcher
from twillgpu.dropin.make import entry_of
from twillgpu.dropin.options import OptimizeOptions
from twillgpu.errors import InputError, TwillError, UnsupportedError
from twillgpu.frontend.jit_kernels import Found
from twillgpu.machine.load import load, names
from twillgpu.machine.record import Machine
from twillgpu.schedule.jsonform import read_schedule
from twillgpu.schedule.record import Schedule
from twillgpu.store.record import Entry


class Optimised:
    """A Triton kernel whose launches go through its optimal schedule where that is possible.

    ``kernel[grid](...)`` launches. ``schedule``, ``report`` and ``source`` need no GPU: the launch is the one that
    the kernel's module declares (``LAUNCH = twillgpu.Launch(...)``), changed by what the call gives: types, shapes,
    numbers or tensors of the arguments, constexprs, ``num_warps``, ``config``, or another ``launch``; ``machine``.
    Whatever else is asked of it, the original answers, which is ``fn``.
    """

    def __init__(self, kernel: Any, options: OptimizeOptions) -> None:  # noqa: ANN401  # Triton is untyped
        self.fn = kernel
        self.options = options
        self._found = _found(kernel)
        self._launcher = Launcher(self._found.function, options)
        self._outer = _around(kernel, self._launcher)
        functools.update_wrapper(self, self._found.function.fn, updated=())

    def __getitem__(self, grid: Any) -> Any:  # noqa: ANN401  # Triton's own
        """Return what launches the kernel on a grid."""
        return functools.partial(self.run, grid=grid, warmup=False)

    def run(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # Triton's own
        """Launch, as ``JITFunction.run`` and ``Autotuner.run`` do."""
        return self._outer.run(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # Triton's own
        """Say what the original says of a call without a grid."""
        return self.fn(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the original has
        if name.startswith("__") or "fn" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.fn, name)

    def __repr__(self) -> str:
        return f"twillgpu.optimize({self.fn!r})"

    def schedule(self, *args: Any, machine: str | None = None, **kwargs: Any) -> Schedule:  # noqa: ANN401  # see class
        """Return the schedule of a described launch.

        Raises:
            InputError: the description is incomplete or wrong, or names no machine.
            TwillError: whatever the stages raise; there is no schedule.
        """
        entry = self._entry(args, kwargs, machine, emit=False)
        if entry.ii_cycles is None:
            raise TwillError(entry.kernel, f"the search found no schedule ({entry.status})", "see .report()")
        return read_schedule(entry.schedule, f"schedule of {entry.kernel}")

    def report(self, *args: Any, machine: str | None = None, **kwargs: Any) -> str:  # noqa: ANN401  # see class
        """Return the report of the search as text. Raises what ``schedule`` does, save where there is none."""
        return self._entry(args, kwargs, machine, emit=False).report

    def source(self, *args: Any, machine: str | None = None, **kwargs: Any) -> str:  # noqa: ANN401  # see class
        """Return the emitted source. Raises what ``schedule`` does, and ``UnsupportedError`` for what has none."""
        entry = self._entry(args, kwargs, machine, emit=True)
        if entry.source:
            return entry.source
        why = entry.declined or f"the search found no schedule ({entry.status})"
        raise UnsupportedError(entry.kernel, why, "see .report()")

    def _entry(self, args: tuple[Any, ...], kwargs: dict[str, Any], asked: str | None, *, emit: bool) -> Entry:
        machine = self._machine(asked or self.options.machine)
        bound = described(self._found, machine.arch, args, kwargs)
        bound = replace(bound, loop=self.options.loop or bound.loop)
        return entry_of(captured(bound, machine), machine, self.options, emit=emit)

    def _machine(self, asked: str | None) -> Machine:
        if asked is not None:
            return load(asked)
        active = active_driver()
        if active is None:
            where = f"machine of {self._found.name}"
            raise InputError(where, "there is no GPU to ask", f"give machine=, one of {', '.join(names())}")
        return machine_of(
            int(active.get_current_target().arch), device_name(active.get_current_device()), self.options.machine
        )


def optimised(kernel: Any, options: OptimizeOptions) -> Any:  # noqa: ANN401  # Triton is untyped
    """Return the optimised kernel; with Triton's interpreter, the kernel: there is nothing to compile.

    Raises:
        InputError: it is no Triton kernel.
    """
    return kernel if knobs.runtime.interpret else Optimised(kernel, options)


def _found(kernel: Any) -> Found:  # noqa: ANN401  # Triton is untyped
    """Return the jitted function inside Triton's wrappers."""
    autotuner, heuristics, inner = None, dict[str, Any](), kernel
    while isinstance(inner, Autotuner | Heuristics):
        if isinstance(inner, Autotuner):
            autotuner = inner
        else:
            heuristics |= inner.values
        inner = inner.fn
    if not isinstance(inner, JITFunction):
        name = getattr(inner, "__name__", type(inner).__name__)
        raise InputError(f"optimize: {name}", "it is no Triton kernel", "write @twillgpu.optimize over @triton.jit")
    return Found(name=inner.fn.__name__, function=inner, autotuner=autotuner, heuristics=heuristics)


def _around(kernel: Any, launcher: Launcher) -> Any:  # noqa: ANN401  # Triton is untyped
    """Return Triton's wrappers around the launcher instead of the jitted function; the original keeps its own.

    An autotuner then times what is really launched, and begins with an empty memory.
    """
    if isinstance(kernel, JITFunction):
        return launcher
    outer = copy.copy(kernel)
    outer.fn = _around(kernel.fn, launcher)
    if isinstance(outer, Autotuner):
        outer.cache = {}
    return outer
