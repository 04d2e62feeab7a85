"""Choosing a ``@triton.jit`` kernel of an imported file and the launch that the file declares for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction

from twillgpu.errors import InputError, nearest
from twillgpu.frontend.launch import Launch
from twillgpu.frontend.stubs import Stub, StubModule


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A kernel of the file: its jitted function and the autotuner's and heuristics' objects around it."""

    name: str
    function: Any
    autotuner: Any = None
    heuristics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> int:
        """Line of the ``def``."""
        before = next((at for at, text in enumerate(self.function.raw_src) if text.lstrip().startswith("def ")), 0)
        return int(self.function.starting_line_number) + before


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The kernel to bind, the launch declared for it (an empty one where there is none), and remarks."""

    found: Found
    launch: Launch
    remarks: tuple[str, ...]


def choose(module: ModuleType, path: Path, target: str, kernel: str | None) -> Chosen:
    """Return the kernel called ``kernel``, or else the one that the file declares a launch for, or its only one.

    Raises ``InputError`` that lists the kernels where a choice is needed, and for a kernel that uses something which
    is not installed.
    """
    declared = _declared(module)
    wanted = [kernel] if kernel else [launch.kernel for launch in _fitting(declared.default, target)]
    found = _choose(_kernels(module), wanted, module, path)
    launch, remarks = _launch(found.name, declared, target)
    _check_stand_ins(found, path)
    return Chosen(found=found, launch=launch, remarks=remarks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """The launches that a file declares: those under the name ``LAUNCH``, and all of them."""

    default: tuple[Launch, ...]
    every: tuple[Launch, ...]


def _declared(module: ModuleType) -> _Declared:
    every = {name: _launches(value) for name, value in vars(module).items()}
    everything = tuple(launch for launches in every.values() for launch in launches)
    return _Declared(default=every.get("LAUNCH") or everything, every=everything)


def _launches(value: object) -> tuple[Launch, ...]:
    items = value if isinstance(value, tuple | list) else (value,)
    return tuple(item for item in items if isinstance(item, Launch))


def _kernels(module: ModuleType) -> dict[str, Found]:
    """Return the jitted functions among the names of ``module``."""
    found = {name: _unwrap(name, value) for name, value in vars(module).items()}
    return {name: kernel for name, kernel in found.items() if kernel is not None}


def _unwrap(name: str, value: object) -> Found | None:
    """Follow decorators that keep the function that they wrap in ``fn``, as those of Triton do."""
    autotuner, heuristics = None, dict[str, Any]()
    for _ in range(8):
        if isinstance(value, JITFunction):
            return Found(name=name, function=value, autotuner=autotuner, heuristics=heuristics)
        if isinstance(value, Stub | ModuleType | type):
            return None
        if isinstance(value, Autotuner):
            autotuner = value
        if isinstance(value, Heuristics):
            heuristics |= value.values
        value = getattr(value, "fn", None)
    return None


def _choose(kernels: dict[str, Found], wanted: list[str], module: ModuleType, path: Path) -> Found:
    own = {name: kernel for name, kernel in kernels.items() if kernel.function.fn.__module__ == module.__name__}
    candidates = list(dict.fromkeys(wanted)) or _entry_points(own)
    if not candidates:
        raise InputError(path.name, "the file has no @triton.jit kernel", "give a file with one")
    if len(candidates) > 1:
        listed = ", ".join(f"{name} ({path.name}:{kernels[name].line})" for name in candidates if name in kernels)
        raise InputError(path.name, f"several kernels: {listed}", "choose one with --kernel NAME")
    if candidates[0] not in kernels:
        hint = nearest(candidates[0], own or kernels)
        raise InputError(path.name, f"no @triton.jit kernel {candidates[0]!r}", hint)
    return kernels[candidates[0]]


def _entry_points(kernels: Mapping[str, Found]) -> list[str]:
    """Return the kernels that no other kernel of the file calls."""
    called = {name for kernel in kernels.values() for name in kernel.function.fn.__code__.co_names}
    return [name for name in kernels if name not in called]


def _launch(name: str, declared: _Declared, target: str) -> tuple[Launch, tuple[str, ...]]:
    """Return the launch of kernel ``name`` for ``target``, with a remark where it is meant for another one."""
    launches = _fitting([launch for launch in declared.every if launch.kernel == name], target)
    if not launches:
        return Launch(kernel=name), ()
    if launches[0].target in (target, None):
        return launches[0], ()
    remark = f"no launch of {name} is declared for {target}: that for {launches[0].target} is used"
    return launches[0], (remark,)


def _fitting(launches: Sequence[Launch], target: str) -> Sequence[Launch]:
    """Return the launches for ``target``, or else those for any target, or else all of them."""
    choices = ([launch for launch in launches if launch.target == wanted] for wanted in (target, None))
    return next((fitting for fitting in choices if fitting), launches)


def _check_stand_ins(found: Found, path: Path) -> None:
    """Refuse a kernel whose own code, or that of a function it calls, uses something that is not installed."""
    for function in _reachable(found.function):
        names = {node.id for node in ast.walk(ast.parse(function.src)) if isinstance(node, ast.Name)}
        for name in sorted(names.difference(function.arg_names)):
            value = function.fn.__globals__.get(name)
            if isinstance(value, Stub | StubModule):
                missing = value.__name__ if isinstance(value, StubModule) else value.stub_path
                raise InputError(
                    f"{path.name}:{found.line}",
                    f"the kernel uses {name!r}, which comes from {missing} and is not installed",
                    f"install {missing.partition('.')[0]}, or define it in the file",
                )


def _reachable(function: Any) -> Iterator[Any]:  # noqa: ANN401  # Triton is untyped
    waiting, seen = [function], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        names = current.fn.__code__.co_names
        waiting += [value for name in names if isinstance(value := current.fn.__globals__.get(name), JITFunction)]
