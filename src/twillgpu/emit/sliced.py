"""Work on tiles that are cut in column slices, as Gluon statements: slice after slice for as long as nothing stands
between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from twillgpu.emit.expressions import Writing, bare, pure
from twillgpu.emit.frame import Frame
from twillgpu.emit.slices import Slicing
from twillgpu.emit.terms import Term
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import KernelOp, TileType

_JOINS: Mapping[str, Callable[[str, str], str]] = {
    "arith.addf": lambda one, other: f"{one} + {other}",
    "arith.maxnumf": lambda one, other: f"gl.maximum({one}, {other})",
    "arith.minnumf": lambda one, other: f"gl.minimum({one}, {other})",
}


@dataclass(slots=True, kw_only=True)
class SliceWriter:
    """Collects statements per slice; ``flush`` gives them out.

    Attributes:
        frame: the file.
        slicing: how each tile is cut.
        rows: vectors converted for the slices of the run: expression to name.
        head: statements before the slices.
        parts: statements of each slice.
        loaded: rings that the run has loaded from.
    """

    frame: Frame
    slicing: Mapping[str, Slicing]
    rows: dict[str, str] = field(default_factory=dict)
    head: list[str] = field(default_factory=list)
    parts: list[list[str]] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)

    def flush(self) -> list[str]:
        """Return the statements collected, and forget them."""
        lines = [*self.head, *(line for part in self.parts for line in part)]
        self.rows.clear()
        self.head.clear()
        self.parts.clear()
        self.loaded.clear()
        return lines

    def cut(self, op: KernelOp) -> Slicing | None:
        """Return how an op's tiles are cut, ``None`` for an op on whole tiles."""
        names = (*(value.name for value in op.results), *op.operands)
        return next((found for name in names if (found := self.tile_of(name)) is not None), None)

    def tile_of(self, value: str) -> Slicing | None:
        """Return how a value is cut, seen through what is written in place."""
        if value in self.slicing:
            return self.slicing[value]
        maker = self.frame.makers.get(value)
        if maker is None or not self.frame.inline(maker):
            return None
        return next((found for name in maker.operands if (found := self.tile_of(name)) is not None), None)

    def fits(self, cut: Slicing, stored: str) -> bool:
        """Return whether more statements can join the run: the same slices, and no store over what it loads."""
        return len(self.parts) in (0, cut.count) and not (stored and self.loaded - {stored})

    def write(self, cut: Slicing, line: Callable[[int], str]) -> None:
        """Add one statement to every slice."""
        if not self.parts:
            self.parts.extend([] for _ in range(cut.count))
        for at, part in enumerate(self.parts):
            part.append(line(at))

    def load(self, op: KernelOp, cut: Slicing, memory: str, ring: str) -> None:
        """Write a load from TMEM."""
        layout = self.frame.layouts.name(cut.tile.layout, op.source)
        name = self.frame.names.name(op.results[0].name)
        self.write(cut, lambda at: f"{name}_c{at} = {memory}.slice({at * cut.width}, {cut.width}).load({layout})")
        self.loaded.add(ring)

    def store(self, value: str, cut: Slicing, memory: str, writing: Writing, *, shared: bool) -> None:
        """Write a store of a tile to TMEM or SMEM."""
        dimension = ", 1" if shared else ""
        while value not in self.slicing and self.frame.makers[value].name in self.frame.dropped:
            value = self.frame.makers[value].operands[0]
        self.write(
            cut,
            lambda at: (
                f"{memory}.slice({at * cut.width}, {cut.width}{dimension})"
                f".store({self.writing(writing, cut, at).tile(value, value)})"
            ),
        )

    def elementwise(self, op: KernelOp, cut: Slicing, writing: Writing) -> None:
        """Write an elementwise op."""
        name = self.frame.names.name(op.results[0].name)
        narrow = self._narrow(op, cut)
        self.write(cut, lambda at: f"{name}_c{at} = {bare(self._term(narrow, self.writing(writing, cut, at)).text)}")

    def reduction(self, op: KernelOp, cut: Slicing, writing: Writing) -> Term:
        """Write the reduction of every slice; return the expression that joins them."""
        name = self.frame.names.name(op.results[0].name)
        self.write(cut, lambda at: f"{name}_c{at} = {self._term(op, self.writing(writing, cut, at)).text}")
        joined = f"{name}_c0"
        for at in range(1, cut.count):
            joined = _JOINS[op.body[0]](joined, f"{name}_c{at}")
        kind = op.results[0].type
        text = f"gl.convert_layout({joined}, {self.frame.layouts.name(kind.layout, op.source)})"
        return Term(text=text, shape=kind.shape)

    def writing(self, whole: Writing, cut: Slicing, at: int) -> Writing:
        """Return what resolves operands in slice ``at``."""

        def term(value: str) -> Term:
            if value in self.slicing:
                return Term(text=f"{self.frame.names.name(value)}_c{at}", shape=cut.tile.shape)
            maker = self.frame.makers.get(value)
            if maker is not None and maker.name in self.frame.dropped:
                return term(maker.operands[0])
            if maker is not None and self.frame.inline(maker):
                return self._term(maker, inner)
            found = whole.term(value)
            return found if not found.shape else Term(text=self._rows(found.text, cut), shape=found.shape)

        types = {name: self._type(name, found) for name, found in self.slicing.items()}
        inner = Writing(layouts=whole.layouts, types={**whole.types, **types}, term=term)
        return inner

    def _type(self, value: str, cut: Slicing) -> TileType:
        return replace(self.frame.types[value], shape=cut.tile.shape, layout=cut.tile.layout)

    def _narrow(self, op: KernelOp, cut: Slicing) -> KernelOp:
        results = tuple(replace(value, type=self._type(value.name, cut)) for value in op.results)
        return replace(op, results=results)

    def _rows(self, vector: str, cut: Slicing) -> str:
        """Return the name of a vector with an element per row in the layout of the slices."""
        if vector not in self.rows:
            layout = f"#ttg.slice<{{dim = 1, parent = {cut.tile.layout}}}>"
            name = f"{vector}_rows"
            self.head.append(f"{name} = gl.convert_layout({vector}, {self.frame.layouts.name(layout, vector)})")
            self.rows[vector] = name
        return self.rows[vector]

    def _term(self, op: KernelOp, writing: Writing) -> Term:
        found = pure(op, writing)
        if found is None:
            raise UnsupportedError(op.source or op.name, f"{op.opcode} has no Gluon form in slices", "report it")
        return found
