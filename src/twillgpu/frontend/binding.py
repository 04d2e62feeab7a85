"""Binding a kernel's launch: what Triton's front end needs for each argument."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton.language as tl

from twillgpu.errors import InputError, nearest
from twillgpu.frontend.arguments import ArgumentSpec, argument_spec
from twillgpu.frontend.jit_kernels import Chosen
from twillgpu.frontend.launch import LoadOptions


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


def bind(chosen: Chosen, path: Path, options: LoadOptions) -> Bound:
    """Bind the arguments of the chosen kernel.

    Raises ``InputError`` that names the arguments and constants that are missing, unknown or of an unknown type.
    """
    return _Binding(chosen, options, f"{path.name}:{chosen.found.line}").bound()


class _Binding:
    """Binds one kernel. What the command line says goes first, then an explicit ``--config``, the launch, the
    autotuner's first configuration, heuristics, and the defaults of the parameters.
    """

    def __init__(self, chosen: Chosen, options: LoadOptions, where: str) -> None:
        self.found = chosen.found
        self.launch = chosen.launch
        self.options = options
        self.where = where
        self.parameters = {parameter.name: parameter for parameter in self.found.function.params}
        self.config, remarks = self.chosen_config()
        self.remarks = (*chosen.remarks, *remarks)
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
        remark = f"autotuned kernel: configuration {number or 1} of {len(configs)} is used; choose with --config N"
        return configs[(number or 1) - 1], (remark,)

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

    def bound(self) -> Bound:
        self.check_complete()
        signature: dict[str, str] = {}
        constants: dict[tuple[int, ...], object] = {}
        attributes: dict[tuple[int, ...], list[list[object]]] = {}
        for at, name in enumerate(self.parameters):
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
            remarks=self.remarks,
        )

    def num_warps(self) -> int:
        config = None if self.config is None else self.config.num_warps
        ordered = (config, self.launch.num_warps) if self.options.config else (self.launch.num_warps, config)
        return next(int(warps) for warps in (self.options.num_warps, *ordered, 4) if warps is not None)
