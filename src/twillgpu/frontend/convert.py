"""From an MLIR module in Triton's GPU dialects to a ``Kernel``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twillgpu.errors import InputError
from twillgpu.frontend.generic import MlirModule, MlirOp, MlirValue
from twillgpu.frontend.hoist import Hoisted, hoist
from twillgpu.frontend.kernel import Carried, Kernel, KernelOp, KernelValue, Loop, Parameter, TileType
from twillgpu.frontend.location import user_frame
from twillgpu.frontend.loops import COMBINING_OPCODES, Parts, cut, function_name
from twillgpu.frontend.naming import Hinted, Names, argument_names
from twillgpu.frontend.parameters import counted_on
from twillgpu.frontend.regions import RegionBuilder, body_opcodes, kernel_attributes
from twillgpu.frontend.tile_types import tile_type
from twillgpu.frontend.trips import trip_count

_FOR = re.compile(r"\s*for\s+(\w+)\s+in\b")
_PRINTED = re.compile(r"(?!(?:cst|arg\d|true|false|c-?\d))([A-Za-z]\w*?)(?:_\d+)?(?:#\d+)?(?:'\d+)?")
_LOOP_OPTIONS = ("tt.num_stages", "tt.warp_specialize", "tt.disallow_acc_multi_buffer", "tt.flatten")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions:
    """What the module itself does not say.

    Attributes:
        where: name of the text in errors.
        target: the target wanted (``sm_90a``); a module lowered for another one is refused. ``None``: any.
        kernel: name of the function, ``None`` where there is only one.
        loop: number of the loop counted from 1, ``None`` where there is only one.
        source_file: the user's file, for the record.
        source_lines: the lines of the user's file, to read the loop variable's name where debug information lacks it.
        arguments: values of scalar arguments that are known, by name; they may give the trip count.
        remarks: remarks made so far.
        parameters: the parameters of the function as it was specialised.
    """

    where: str
    target: str | None = None
    kernel: str | None = None
    loop: int | None = None
    source_file: str = ""
    source_lines: tuple[str, ...] = ()
    arguments: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()


def convert(module: MlirModule, options: ConvertOptions) -> Kernel:
    """Return the kernel in ``module``, its loop-invariant ops hoisted, with readable names and source lines.

    Raises ``InputError`` for a module that is not TTGIR or is for another target, or where a choice of kernel or
    loop is missing; ``UnsupportedError`` for control flow that is not supported, with its source line.
    """
    target = _target(module, options)
    parts = cut(module, where=options.where, kernel=options.kernel, loop=options.loop)
    return counted_on(_Conversion(module, options, parts).kernel(target))


def _target(module: MlirModule, options: ConvertOptions) -> str:
    """Return ``sm_90a`` for ``cuda:90``: from 9.0 on, the arch-specific features are what the ops need."""
    text = module.op.attribute("ttg.target") or ""
    match = re.fullmatch(r'"cuda:(\d+)"', text)
    if match is None:
        raise InputError(
            options.where,
            f"the module is not TTGIR for an NVIDIA GPU (its ttg.target is {text or 'missing'})",
            "give the TTGIR, or the Python file of the kernel",
        )
    target = f"sm_{match.group(1)}" + ("a" if int(match.group(1)) >= 90 else "")
    if options.target is not None and options.target != target:
        raise InputError(
            options.where,
            f"the module was lowered for {target} and the machine needs {options.target}",
            f"choose a machine with {target}, or give the Python file, which is lowered for any machine",
        )
    return target


class _Conversion:
    """One conversion: the names are allotted first (loop body, before it, after it), then the records are built."""

    def __init__(self, module: MlirModule, options: ConvertOptions, parts: Parts) -> None:
        self.module = module
        self.options = options
        self.parts = parts
        self.names = Names()
        self.regions = RegionBuilder(module, self)
        self.block = parts.loop.regions[0][0]
        self.hoisted: Hoisted = hoist(self.block)
        self.located = any(user_frame(module, op.location).line for op in parts.function.nested())
        self.before = (*parts.before, *self.hoisted.moved)

    def kernel(self, target: str) -> Kernel:
        arguments = self.name_arguments()
        before = self.hinted(self.before)
        self.name_loop()
        for section in (self.hinted(self.hoisted.body), before, self.hinted(self.parts.after)):
            self.names.section(section)
        carried = self.carried()
        return Kernel(
            name=function_name(self.parts.function),
            target=target,
            num_warps=int((self.module.op.attribute("ttg.num-warps") or "4").split(":")[0]),
            arguments=arguments,
            before=self.ops(self.before),
            loop=self.loop(carried),
            after=self.ops(self.parts.after),
            source_file=self.options.source_file,
            remarks=(*self.options.remarks, *self.own_remarks()),
            parameters=self.options.parameters,
        )

    def hint(self, location: str) -> str:
        name = user_frame(self.module, location).name
        return name if name.strip("_") else ""

    def hinted(self, ops: Sequence[MlirOp]) -> tuple[Hinted, ...]:
        return self.names.follow([Hinted(op=op, hint=self.hint(op.location) or self.printed(op)) for op in ops])

    def printed(self, op: MlirOp) -> str:
        """Return the stem of the result's name in a text without locations, unless MLIR made it up."""
        match = _PRINTED.fullmatch(op.results[0].name) if op.results and not self.located else None
        return match.group(1) if match else ""

    def source(self, op: MlirOp) -> str:
        """Return the user's line, or in a text without locations the line of the text."""
        line = user_frame(self.module, op.location).source
        return line if line or self.located else f"{self.options.where}:{op.line}"

    def name_arguments(self) -> tuple[KernelValue, ...]:
        values = self.parts.function.regions[0][0].arguments
        types = [self.type_of(value) for value in values]
        ranks = {at: len(kind.shape) for at, kind in enumerate(types) if kind.space == "descriptor"}
        pointers = [at for at, kind in enumerate(types) if kind.space == "global"]
        hints = argument_names((self.hint(value.location) or value.name for value in values), ranks, pointers)
        for value, hint in zip(values, hints, strict=True):
            self.names.value(value.name, hint)
            self.names.hints[value.name] = hint
        return tuple(self.value(value) for value in values)

    def name_loop(self) -> None:
        induction, *arguments = self.block.arguments
        self.names.value(induction.name, self.induction_hint(induction))
        body = {result.name: self.hint(op.location) for op in self.block.ops for result in op.results}
        yielded = self.block.ops[-1].operands
        results = self.parts.loop.results
        for argument, name, result in zip(arguments, yielded, results, strict=True):
            hint = self.hint(argument.location) or body.get(name) or "carried"
            self.names.hints |= {argument.name: hint, result.name: hint}
            # Blackwell's products carry a flag that makes the first one overwrite its accumulator.
            base = f"{hint}_flag" if argument.type == "i1" else hint
            self.names.value(argument.name, f"{base}_prev")
            self.names.value(result.name, f"{base}_final")

    def induction_hint(self, induction: MlirValue) -> str:
        # Triton 3.6 gives the loop variable the location of the loop, whose name is that of a carried value.
        loop = self.parts.loop
        hint = self.hint(induction.location)
        if hint and hint != self.hint(loop.location):
            return hint
        line = user_frame(self.module, loop.location).line
        lines = self.options.source_lines
        match = _FOR.match(lines[line - 1]) if 0 < line <= len(lines) else None
        return match.group(1) if match and match.group(1).strip("_") else "iteration"

    def carried(self) -> tuple[Carried, ...]:
        yielded = self.block.ops[-1].operands
        initial = self.parts.loop.operands[3:]
        return tuple(
            Carried(
                argument=self.value(argument),
                initial=self.name(first),
                yielded=self.name(last),
                result=self.name(result.name),
            )
            for argument, first, last, result in zip(
                self.block.arguments[1:], initial, yielded, self.parts.loop.results, strict=True
            )
        )

    def loop(self, carried: tuple[Carried, ...]) -> Loop:
        lower, upper, step = self.parts.loop.operands[:3]
        known = {value.name: self.options.arguments.get(self.name(value.name)) for value in self.function_arguments}
        return Loop(
            name=f"loop_{self.name(self.block.arguments[0].name)}",
            induction=self.value(self.block.arguments[0]),
            lower=self.name(lower),
            upper=self.name(upper),
            step=self.name(step),
            trip_count=trip_count(self.parts.before, (lower, upper, step), known),
            carried=carried,
            body=self.ops(self.hoisted.body),
            source=self.source(self.parts.loop),
        )

    @property
    def function_arguments(self) -> tuple[MlirValue, ...]:
        return self.parts.function.regions[0][0].arguments

    def ops(self, ops: Sequence[MlirOp]) -> tuple[KernelOp, ...]:
        return tuple(self.op(op) for op in ops)

    def op(self, op: MlirOp) -> KernelOp:
        operands = (*op.operands, *self.captured(op))
        return KernelOp(
            name=self.names.ops[op.index],
            opcode=op.opcode,
            operands=tuple(self.name(operand) for operand in operands),
            results=tuple(self.value(result) for result in op.results),
            attributes=kernel_attributes(self.module, op),
            source=self.source(op),
            body=body_opcodes(op),
            regions=self.regions.of(op, operands, self.names.values),
        )

    def captured(self, op: MlirOp) -> tuple[str, ...]:
        """Return the values from outside that the regions of ``op`` read, beyond its own operands."""
        inner = op.nested()
        used = dict.fromkeys(operand for nested in inner for operand in nested.operands)
        return tuple(name for name in used if name in self.names.values and name not in op.operands)

    def value(self, value: MlirValue) -> KernelValue:
        return KernelValue(name=self.name(value.name), type=self.type_of(value))

    def type_of(self, value: MlirValue) -> TileType:
        return tile_type(self.module.expand(value.type))

    def name(self, mlir_name: str) -> str:
        if mlir_name not in self.names.values:
            raise InputError(
                self.options.where, f"the value %{mlir_name} is used and not defined", "give a whole module"
            )
        return self.names.values[mlir_name]

    def own_remarks(self) -> tuple[str, ...]:
        moved = [op for op in self.hoisted.moved if op.opcode != "arith.constant"]
        remarks = []
        if moved:
            listed = ", ".join(self.described(op) for op in moved)
            remarks.append(f"moved in front of the loop, the same in every iteration: {listed}")
        asked = [key.removeprefix("tt.") for key, _ in self.parts.loop.attributes if key in _LOOP_OPTIONS]
        if asked:
            remarks.append(f"the loop's own options are not used, the schedule decides instead: {', '.join(asked)}")
        opaque = [
            op for op in (*self.parts.before, *self.parts.after) if op.regions and op.opcode not in COMBINING_OPCODES
        ]
        remarks += [
            f"{op.opcode} outside of the loop is kept whole and not scheduled: {self.described(op)}" for op in opaque
        ]
        return tuple(remarks)

    def described(self, op: MlirOp) -> str:
        source = self.source(op)
        return self.names.ops[op.index] + (f" ({source})" if source else "")
