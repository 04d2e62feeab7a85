"""Loops and conditions beside the scheduled loop: they are written as they are, by every group that needs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from twillgpu.emit.actions import ACTIONS, Action
from twillgpu.emit.expressions import INLINE, Writing, bare, pure
from twillgpu.emit.frame import Frame
from twillgpu.emit.terms import Term
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import KernelOp, Region, TileType
from twillgpu.lower.record import Execute

INDENT = "    "
_MEMORY = frozenset({"tt.load", "tt.store"})
_QUIET = frozenset({"token", "none", "descriptor"})


def control(op: KernelOp, frame: Frame, outer: Writing) -> Iterator[str]:
    """Yield the statements of an op with regions.

    Raises:
        UnsupportedError: control flow other than ``for`` and ``if``, or an op inside that is not plain arithmetic, a
            load or a store; with the source line.
    """
    if op.opcode == "scf.for":
        yield from _for(op, frame, outer)
    elif op.opcode == "scf.if":
        yield from _if(op, frame, outer)
    else:
        raise UnsupportedError(op.source or op.name, f"{op.opcode} outside of the scheduled loop", "use for or if")


def _for(op: KernelOp, frame: Frame, outer: Writing) -> Iterator[str]:
    region = op.regions[0]
    names = [frame.names.name(value.name) for value in op.results]
    for name, initial in zip(names, op.operands[3:], strict=False):
        yield f"{name} = {outer.tile(initial, op.source)}"
    inside = _Inside.of(region, op, frame, outer)
    counter = inside.name(region.arguments[0].name)
    for argument, name in zip(region.arguments[1:], names, strict=False):
        inside.terms[argument.name] = Term(text=name, shape=argument.type.shape)
    lower, upper, step = (bare(outer.term(value).text) for value in op.operands[:3])
    yield f"for {counter} in range({lower}, {upper}, {step}):"
    inside.terms[region.arguments[0].name] = Term(text=counter)
    yield from (INDENT + line for line in inside.body(names))


def _if(op: KernelOp, frame: Frame, outer: Writing) -> Iterator[str]:
    names = [frame.names.name(value.name) for value in op.results]
    yield f"if {bare(outer.term(op.operands[0]).text)}:"
    for number, region in enumerate(op.regions):
        lines = list(_Inside.of(region, op, frame, outer).body(names))
        if number and lines:
            yield "else:"
        if lines or not number:
            yield from (INDENT + line for line in lines or ["pass"])


@dataclass(slots=True, kw_only=True)
class _Inside:
    """What is known inside of a region: names are its own."""

    op: KernelOp
    region: Region
    frame: Frame
    layouts: Writing
    terms: dict[str, Term] = field(default_factory=dict)
    types: dict[str, TileType] = field(default_factory=dict)
    makers: dict[str, KernelOp] = field(default_factory=dict)

    @classmethod
    def of(cls, region: Region, op: KernelOp, frame: Frame, outer: Writing) -> _Inside:
        found = cls(op=op, region=region, frame=frame, layouts=outer)
        found.types = {value.name: value.type for one in region.ops for value in one.results}
        found.types |= {value.name: value.type for value in region.arguments}
        found.makers = {value.name: one for one in region.ops for value in one.results if one.opcode in INLINE}
        outside = region.arguments[len(region.arguments) - len(region.captures) :]
        for argument, at in zip(outside, region.captures, strict=True):
            found.terms[argument.name] = outer.term(op.operands[at])
        return found

    def name(self, value: str) -> str:
        """Return the Python name of a value of the region."""
        return self.frame.names.name(f"{value}\N{NO-BREAK SPACE}{self.op.name}")

    def writing(self) -> Writing:
        """Return what resolves the values of the region."""
        return Writing(layouts=self.layouts.layouts, types=self.types, term=self.term)

    def term(self, value: str) -> Term:
        """Return the expression of a value of the region."""
        if value in self.terms:
            return self.terms[value]
        maker = self.makers.get(value)
        found = None if maker is None else pure(maker, self.writing())
        return found or Term(text=self.name(value), shape=self.types[value].shape)

    def body(self, results: list[str]) -> Iterator[str]:
        """Yield the statements of the region; what it hands out goes to ``results``."""
        for op in self.region.ops:
            if op.opcode not in INLINE:
                yield from self._statement(op)
        handed = [self.writing().tile(value, self.op.source) for value in self.region.yielded]
        if handed:
            yield f"{', '.join(results)} = {', '.join(map(bare, handed))}"

    def _statement(self, op: KernelOp) -> Iterator[str]:
        writing = self.writing()
        if op.regions and op.opcode.startswith("scf."):
            yield from control(op, self.frame, writing)
            self.terms |= {
                value.name: Term(text=self.frame.names.name(value.name), shape=value.type.shape)
                for value in op.results
            }
            return
        found = pure(op, writing)
        if found is None:
            if op.opcode not in _MEMORY:
                raise UnsupportedError(op.source or op.name, f"{op.opcode} inside of {self.op.opcode}", "move it out")
            instruction = Execute(op="", members=(op.name,))
            done = ACTIONS[op.opcode](
                Action(op=op, instruction=instruction, frame=self.frame, writing=writing, least=0)
            )
            yield from done.lines
            found = done.term
        if found is not None and op.results and op.results[0].type.space not in _QUIET:
            yield f"{self.name(op.results[0].name)} = {bare(found.text)}"
