"""What takes the place of the ``@triton.jit`` function under whatever is wrapped around it."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from twillgpu.dropin.capture import captured
from twillgpu.dropin.device import active_driver, device_name, machine_of
from twillgpu.dropin.emitted import launch_of
from twillgpu.dropin.make import cache_of, entry_of
from twillgpu.dropin.options import OptimizeOptions
from twillgpu.dropin.specialise import Call, bound_of, call_of
from twillgpu.emitting import SPECIALISED
from twillgpu.errors import TwillError, UnsupportedError


@dataclass(slots=True, kw_only=True)
class _Ready:
    """The launcher of one specialisation, ``None`` where the original is launched, and whether it ever worked."""

    launch: Callable[..., Any] | None
    worked: bool = False


class Launcher:
    """Launches one kernel: each specialisation through its emitted source, or through the original.

    ``fn`` is the ``@triton.jit`` function, as in Triton's own wrappers.
    """

    def __init__(self, function: Any, options: OptimizeOptions) -> None:  # noqa: ANN401  # Triton is untyped
        self.fn = function
        self.options = options
        self.ready: dict[Hashable, _Ready] = {}
        self.lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the function has
        return getattr(self.fn, name)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:  # noqa: ANN401  # Triton's own
        """Launch; arguments are those of ``JITFunction.run``."""
        active = None if warmup else active_driver()
        call = None if active is None else self._call(active, args, kwargs)
        ready = None if call is None else self._ready(call)
        if call is None or ready is None or ready.launch is None:
            return self.fn.run(*args, grid=grid, warmup=warmup, **kwargs)
        for hook in self.fn.pre_run_hooks:
            hook(*args, **kwargs)
        shape = grid(call.arguments) if callable(grid) else grid
        if ready.worked:
            return ready.launch(shape, **call.arguments, **call.options)
        try:
            launched = ready.launch(shape, **call.arguments, **call.options)
        except Exception as error:  # noqa: BLE001  # whatever is said of the new source, the original may still do
            first = (str(error).strip().splitlines() or [""])[0]
            ready.launch = None
            failure = TwillError(self.fn.__name__, f"{type(error).__name__}: {first}", "report it, with the source")
            self._complain(failure, cause=error)
            return self.fn.run(*args, grid=grid, warmup=False, **kwargs)
        ready.worked = True
        return launched

    def _call(self, active: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:  # noqa: ANN401  # untyped
        try:
            return call_of(self.fn, active, args, kwargs)
        except TypeError:
            return None  # arguments that do not fit: the original says which

    def _ready(self, call: Call) -> _Ready:
        with self.lock:
            if call.key not in self.ready:
                self.ready[call.key] = _Ready(launch=self._prepared(call))
            return self.ready[call.key]

    def _prepared(self, call: Call) -> Callable[..., Any] | None:
        try:
            return self._launch(call)
        except TwillError as error:
            self._complain(error, cause=None)
            return None

    def _launch(self, call: Call) -> Callable[..., Any]:
        machine = machine_of(call.capability, device_name(call.device), self.options.machine)
        if machine.arch not in SPECIALISED:
            raise UnsupportedError(machine.name, f"no code is emitted for {machine.arch}", "use Hopper or Blackwell")
        kernel = captured(bound_of(call, self.options.loop), machine)
        entry = entry_of(kernel, machine, self.options, emit=True)
        if entry.declined:
            raise UnsupportedError(kernel.name, entry.declined, "the schedule itself is in .report()")
        if not entry.source:
            raise UnsupportedError(kernel.name, f"no schedule was found ({entry.status})", "see .report()")
        return launch_of(cache_of(self.options).write_source(entry))

    def _complain(self, error: TwillError, cause: Exception | None) -> None:
        if not self.options.fallback:
            raise error from cause
        message = f"{self.fn.__name__}: the original is launched: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=_launching_frame())


def _launching_frame() -> int:
    """Return how many frames above the caller the user's code is: Triton's wrappers may be in between."""
    frame, level = sys._getframe(2), 2  # noqa: SLF001  # frames have no other entry
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("twillgpu.", "triton.")):
        frame, level = frame.f_back, level + 1
    return level
