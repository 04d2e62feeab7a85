"""What takes the place of the ``@triton.jit`` function under whatever is wrapped around it."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from twillgpu.dropin.capture import captured
from twillgpu.dropin.device import active_driver, device_name, is_capturing, machine_of
from twillgpu.dropin.emitted import launch_of
from twillgpu.dropin.make import cache_of, entry_of
from twillgpu.dropin.options import OptimizeOptions
from twillgpu.dropin.specialise import Call, bound_of, call_of
from twillgpu.emitting import SPECIALISED
from twillgpu.errors import TwillError, UnsupportedError

_GONE = object()
"""In the place of a global that is not there any more."""


@dataclass(slots=True, kw_only=True)
class _Ready:
    """The launcher of one specialisation, ``None`` where the original is launched, and whether it ever worked."""

    launch: Callable[..., Any] | None
    worked: bool = False


class Launcher:
    """Launches one kernel: each specialisation through its emitted source, or through the original.

    ``fn`` is the ``@triton.jit`` function, as in Triton's own wrappers. Threads may launch at the same time: one of
    them prepares a specialisation, those that launch the same kernel with another one that is not ready wait.
    """

    def __init__(self, function: Any, options: OptimizeOptions) -> None:  # noqa: ANN401  # Triton is untyped
        self.fn = function
        self.options = options
        self.ready: dict[Hashable, _Ready] = {}
        self.told: set[str] = set()
        self.lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the function has
        return getattr(self.fn, name)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:  # noqa: ANN401  # Triton's own
        """Launch; arguments are those of ``JITFunction.run``."""
        active = None if warmup else active_driver()
        call = None if active is None else self._call(active, args, kwargs)
        ready = None if call is None or self._changed() else self._ready(call)
        launch = None if ready is None else ready.launch
        if call is None or ready is None or launch is None:
            return self.fn.run(*args, grid=grid, warmup=warmup, **kwargs)
        for hook in self.fn.pre_run_hooks:
            hook(*args, **kwargs)
        if ready.worked:
            return launch(grid, **call.arguments, **call.options)
        shape = grid(call.arguments) if callable(grid) else grid  # what it raises is the user's
        with self.lock:  # the first launch compiles, and Triton compiles one kernel in one thread
            launched = self._first(ready, shape, call)
        return self.fn.run(*args, grid=grid, warmup=False, **kwargs) if ready.launch is None else launched

    def _first(self, ready: _Ready, shape: Any, call: Call) -> Any:  # noqa: ANN401  # Triton's own
        """Launch a specialisation that never worked yet; where it fails, it is given up and the reason is told."""
        if ready.launch is None:
            return None  # another thread's launch failed meanwhile
        try:
            launched = ready.launch(shape, **call.arguments, **call.options)
        except Exception as error:  # noqa: BLE001  # whatever is said of the new source, the original may still do
            ready.launch = None
            self._complain(_failure(self.fn.__name__, error, "report it, with the source"), cause=error)
            return None
        ready.worked = True
        return launched

    def _call(self, active: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:  # noqa: ANN401  # untyped
        try:
            return call_of(self.fn, active, args, kwargs)
        except TypeError:
            return None  # arguments that do not fit: the original says which

    def _changed(self) -> bool:
        """Return whether a global that the kernel was compiled with has another value: the original refuses that."""
        used = self.fn.used_global_vals.items()
        return any(scope.get(name, _GONE) != value for (name, _), (value, scope) in used)

    def _ready(self, call: Call) -> _Ready | None:
        """Return the launcher of a call's specialisation; ``None`` where none can be made now."""
        found = self.ready.get(call.key)
        if (found is None or not found.worked) and is_capturing():
            if found is None or found.launch is not None:
                why = "a CUDA graph is being captured, and this is the first launch of its kind"
                self._complain(TwillError(self.fn.__name__, why, "launch it once before the capture"), cause=None)
            return None
        if found is not None:
            return found
        with self.lock:
            if call.key not in self.ready:
                self.ready[call.key] = _Ready(launch=self._prepared(call))
            return self.ready[call.key]

    def _prepared(self, call: Call) -> Callable[..., Any] | None:
        try:
            return self._launch(call)
        except TwillError as error:
            self._complain(error, cause=None)
        except Exception as error:  # noqa: BLE001  # an error of ours must not stop the user's program
            self._complain(_failure(self.fn.__name__, error, "report it, with the kernel"), cause=error)
        return None

    def _launch(self, call: Call) -> Callable[..., Any]:
        machine = machine_of(call.capability, device_name(call.device), self.options.machine)
        if machine.arch not in SPECIALISED:
            raise UnsupportedError(machine.name, f"no code is emitted for {machine.arch}", "use Hopper or Blackwell")
        _ = self.fn.cache_key  # it collects the globals that the kernel uses
        kernel = captured(bound_of(call, self.options.loop), machine)
        entry = entry_of(kernel, machine, self.options, emit=True)
        if entry.declined:
            raise UnsupportedError(kernel.name, entry.declined, "the schedule itself is in .report()")
        if not entry.source:
            raise UnsupportedError(kernel.name, f"no schedule was found ({entry.status})", "see .report()")
        return launch_of(cache_of(self.options).write_source(entry))

    def _complain(self, error: TwillError, cause: Exception | None) -> None:
        """Warn, once for each reason; raise where the original must not be launched."""
        if not self.options.fallback:
            raise error from cause
        message = f"{self.fn.__name__}: the original is launched: {error}"
        with self.lock:
            told = message in self.told
            self.told.add(message)
        if not told:
            warnings.warn(message, RuntimeWarning, stacklevel=_launching_frame())


def _failure(name: str, error: Exception, remedy: str) -> TwillError:
    first = (str(error).strip().splitlines() or [""])[0]
    return TwillError(name, f"{type(error).__name__}: {first}", remedy)


def _launching_frame() -> int:
    """Return how many frames above the caller the user's code is: Triton's wrappers may be in between."""
    frame, level = sys._getframe(2), 2  # noqa: SLF001  # frames have no other entry
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("twillgpu.", "triton.")):
        frame, level = frame.f_back, level + 1
    return level
