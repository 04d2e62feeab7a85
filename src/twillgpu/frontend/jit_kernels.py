"""Choosing a ``@triton.jit`` kernel of an imported file and binding its launch: types, constants, hints."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import triton.language as tl
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction

from twillgpu.errors import InputError, nearest
from twillgpu.frontend.arguments import ArgumentSpec, argument_spec
from twillgpu.frontend.launch import Launch, LoadOptions
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
class Bound:
    """A kernel with everything that Triton's front end needs, and the integer arguments whose value is known."""

    function: Any
    signature: dict[str, str]
    constants: dict[tuple[int, ...], object]
    attributes: dict[tuple[int, ...], list[list[object]]]
    num_warps: int
    loop: int | None
    values: dict[str, int]
    line: int
    remarks: tuple[str, ...]


def bind(module: ModuleType, path: Path, target: str, options: LoadOptions) -> Bound:
    """Choose the kernel and its launch, and bind its arguments.

    Raises ``InputError`` that lists the kernels where a choice is needed, and names the arguments and constants
    that are missing, unknown or of an unknown type.
    """
    declared = _declared(module)
    found = _choose(_kernels(module), declared, module, path, options)
    launch, remarks = _launch(found.name, declared, target)
    _check_stand_ins(found, path)
    return _Binding(found, launch, options, f"{path.name}:{found.line}").bound(remarks)


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


def _choose(
    kernels: dict[str, Found], declared: _Declared, module: ModuleType, path: Path, options: LoadOptions
) -> Found:
    own = {name: kernel for name, kernel in kernels.items() if kernel.function.fn.__module__ == module.__name__}
    wanted = [options.kernel] if options.kernel else [launch.kernel for launch in declared.default]
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
    launches = [launch for launch in declared.every if launch.kernel == name]
    for wanted in (target, None):
        fitting = [launch for launch in launches if launch.target == wanted]
        if fitting:
            return fitting[0], ()
    if not launches:
        return Launch(kernel=name), ()
    remark = f"no launch of {name} is declared for {target}: that for {launches[0].target} is used"
    return launches[0], (remark,)


def _check_stand_ins(found: Found, path: Path) -> None:
    """Refuse a kernel whose own code, or that of a function it calls, uses something that is not installed."""
    for function in _reachable(found.function):
        for node in ast.walk(ast.parse(function.src)):
            value = function.fn.__globals__.get(node.id) if isinstance(node, ast.Name) else None
            if isinstance(value, Stub | StubModule) and node.id not in function.arg_names:
                missing = value.__name__ if isinstance(value, StubModule) else value.stub_path
                raise InputError(
                    f"{path.name}:{found.line}",
                    f"the kernel uses {node.id!r}, which comes from {missing} and is not installed",
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


class _Binding:
    """Binds one kernel. What the command line says goes first, then an explicit ``--config``, the launch, the
    autotuner's first configuration, heuristics, and the defaults of the parameters.
    """

    def __init__(self, found: Found, launch: Launch, options: LoadOptions, where: str) -> None:
        self.found = found
        self.launch = launch
        self.options = options
        self.where = where
        self.parameters = {parameter.name: parameter for parameter in found.function.params}
        self.config, self.remarks = self.chosen_config()
        self.check_names()
        self.constants = self.known_constants()
        self.arguments = self.known_arguments()
        self.add_heuristics()

    def chosen_config(self) -> tuple[Any, tuple[str, ...]]:
        number = self.options.config
        if self.found.autotuner is None:
            if number is not None:
                raise InputError(self.where, "the kernel has no @triton.autotune", "leave out --config")
            return None, ()
        configs = self.found.autotuner.configs
        if not 1 <= (number or 1) <= len(configs):
            raise InputError(self.where, f"there is no configuration {number}", f"give --config 1 to {len(configs)}")
        config = configs[(number or 1) - 1]
        settings = ", ".join(f"{name}={value}" for name, value in config.kwargs.items())
        remark = f"autotuned kernel: configuration {number or 1} of {len(configs)} is used"
        return config, (f"{remark} ({settings}, num_warps={config.num_warps}); choose with --config N",)

    def check_names(self) -> None:
        given = dict.fromkeys([*dict(self.options.args), *dict(self.options.constexprs)])
        given |= dict.fromkeys([*self.launch.args, *self.launch.constexprs])
        for name in given:
            if name not in self.parameters:
                raise InputError(self.where, f"the kernel has no argument {name!r}", nearest(name, self.parameters))
        for name in dict(self.options.args):
            if self.parameters[name].is_constexpr:
                raise InputError(
                    f"--arg {name}", f"{name} is a tl.constexpr", f"give its value: --const {name}=VALUE"
                )

    def known_constants(self) -> dict[str, object]:
        settings = {} if self.config is None else dict(self.config.kwargs)
        ordered = (
            [settings, self.launch.constexprs] if self.options.config is None else [self.launch.constexprs, settings]
        )
        defaults = {name: p.default for name, p in self.parameters.items() if p.is_constexpr and p.has_default}
        merged: dict[str, object] = dict(defaults)
        for level in (*ordered, dict(self.options.constexprs)):
            merged |= level
        return {name: self.resolved(name, value) for name, value in merged.items() if name in self.parameters}

    def resolved(self, name: str, value: object) -> object:
        """Return the Triton object that a text such as ``tl.float16`` names, or the value itself."""
        if not isinstance(value, str) or not value.startswith("tl."):
            return value
        if not hasattr(tl, value.removeprefix("tl.")):
            raise InputError(f"{self.where}: {name}", f"Triton has no {value!r}", "give a name of triton.language")
        return getattr(tl, value.removeprefix("tl."))

    def known_arguments(self) -> dict[str, ArgumentSpec]:
        plain = [name for name, p in self.parameters.items() if not p.is_constexpr and name not in self.constants]
        defaults = {name: self.parameters[name].default for name in plain if self.parameters[name].has_default}
        given = {**defaults, **self.launch.args, **dict(self.options.args)}
        return {
            name: argument_spec(given[name], self.constants, where=f"{self.where}: argument {name}")
            for name in plain
            if name in given
        }

    def add_heuristics(self) -> None:
        values = {name: spec.value for name, spec in self.arguments.items() if spec.value is not None}
        for name, rule in self.found.heuristics.items():
            if name in self.constants:
                continue
            try:
                self.constants[name] = rule({**values, **self.constants})
            except Exception:  # noqa: BLE001, S112  # a rule that needs more than is known: reported as missing
                continue

    def check_complete(self) -> None:
        missing = [name for name in self.parameters if name not in self.constants and name not in self.arguments]
        if not missing:
            return
        constants = [name for name in missing if self.parameters[name].is_constexpr]
        types = [name for name in missing if name not in constants]
        parts = [f"no type for {', '.join(types)}"] if types else []
        parts += [f"no value for the constexpr {', '.join(constants)}"] if constants else []
        options = [f"--arg {name}=TYPE" for name in types] + [f"--const {name}=VALUE" for name in constants]
        raise InputError(
            self.where,
            f"the launch of {self.found.name} has {' and '.join(parts)}",
            f"add it to the file's twillgpu.Launch, or give {' '.join(options)}",
        )

    def bound(self, remarks: tuple[str, ...]) -> Bound:
        self.check_complete()
        names = list(self.parameters)
        signature, constants, attributes = dict[str, str](), dict[tuple[int, ...], object](), {}
        for at, name in enumerate(names):
            spec = self.arguments.get(name, ArgumentSpec(signature="constexpr"))
            signature[name] = spec.signature
            if spec.signature == "constexpr":
                constants[at,] = self.constants.get(name, spec.value)
            elif spec.aligned and not self.parameters[name].do_not_specialize:
                attributes[at,] = [["tt.divisibility", 16]]
        return Bound(
            function=self.found.function,
            signature=signature,
            constants=constants,
            attributes=attributes,
            num_warps=self.num_warps(),
            loop=self.launch.loop,
            values={name: spec.value for name, spec in self.arguments.items() if isinstance(spec.value, int)},
            line=self.found.line,
            remarks=(*remarks, *self.remarks),
        )

    def num_warps(self) -> int:
        config = None if self.config is None else self.config.num_warps
        ordered = (config, self.launch.num_warps) if self.options.config else (self.launch.num_warps, config)
        return next(warps for warps in (self.options.num_warps, *ordered, 4) if warps is not None)
