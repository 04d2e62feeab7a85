"""Parser of MLIR's generic form: operations, operands, results, attributes, regions, block arguments, locations.

The grammar is that of the MLIR language reference (its section on the textual IR format): an operation reads
``results = "dialect.op"(operands) <{properties}> ({regions}) {attributes} : (types) -> types loc(...)``.
Types, attributes and locations are kept as text with their aliases (``#mma``, ``#loc12``), which ``expand``
resolves, so the parser needs no knowledge of any dialect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twillgpu.frontend.scanner import Scanner

_RESULT = re.compile(r"%([\w$.\-]+)(?::(\d+))?")
_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_ALIAS = re.compile(r"[#!][A-Za-z_$][\w$.\-]*(?=\s*=)")
_LABEL = re.compile(r"\^[\w$.\-]+")
_KEY = re.compile(r'"(?:\\.|[^"\\])*"|[A-Za-z_$][\w$.\-]*')
_GENERIC = re.compile(r'^\s*(?:%[\w$.:\-, %]+= *)?"[\w.]+"\s*\(', re.MULTILINE)
_REFERENCE = re.compile(r'"(?:\\.|[^"\\])*"|[#!][A-Za-z_$][\w$]*(?![\w$.])')


@dataclass(frozen=True, slots=True, kw_only=True)
class MlirValue:
    """An operation's result or a block's argument: unique name without ``%``, type and location as text."""

    name: str
    type: str
    location: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MlirBlock:
    """A block: its label without ``^`` (empty where none is printed), its arguments and its operations."""

    label: str
    arguments: tuple[MlirValue, ...]
    ops: tuple[MlirOp, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MlirOp:
    """One operation; ``index`` is unique in the module, ``line`` is the line of the text."""

    index: int
    line: int
    opcode: str
    operands: tuple[str, ...]
    results: tuple[MlirValue, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    regions: tuple[tuple[MlirBlock, ...], ...] = ()
    successors: tuple[str, ...] = ()
    location: str = ""

    def attribute(self, key: str) -> str | None:
        """Return the text of one attribute or property, or ``None``; a unit attribute has the text ``unit``."""
        return dict(self.attributes).get(key)

    def nested(self) -> tuple[MlirOp, ...]:
        """Return every operation inside the regions, outer ones first, in the order of the text."""
        inner = [op for region in self.regions for block in region for op in block.ops]
        return tuple(found for op in inner for found in (op, *op.nested()))


@dataclass(frozen=True, slots=True, kw_only=True)
class MlirModule:
    """The top operation, and the aliases by name with their first character (``#mma``, ``!t``)."""

    op: MlirOp
    aliases: dict[str, str]

    def expand(self, text: str) -> str:
        """Return ``text`` with every known alias replaced by its definition, recursively; strings stay."""

        def replace(match: re.Match[str]) -> str:
            found = match.group(0)
            return self.expand(self.aliases[found]) if found in self.aliases else found

        return _REFERENCE.sub(replace, text)


def is_generic(text: str) -> bool:
    """Return whether MLIR text is in the generic form: some line starts with a quoted operation name."""
    return _GENERIC.search(text) is not None


def parse_generic(text: str, *, where: str) -> MlirModule:
    """Parse a module in generic form; ``where`` names the text in errors.

    Raises ``InputError`` with the line where the text stops being MLIR's generic form.
    """
    return _Parser(text, where).module()


class _Parser:
    """Recursive descent; ``scopes`` holds the visible names of values, innermost last."""

    def __init__(self, text: str, where: str) -> None:
        self.scan = Scanner(text, where=where, remedy="give a module in MLIR's generic form")
        self.count = 0
        self.aliases: dict[str, str] = {}
        self.scopes: list[dict[str, str]] = [{}]
        self.used: set[str] = set()

    def module(self) -> MlirModule:
        self.alias_definitions()
        op = self.op()
        self.alias_definitions()
        if not self.scan.done:
            raise self.scan.error("expected the end of the module")
        return MlirModule(op=op, aliases=self.aliases)

    def alias_definitions(self) -> None:
        while match := self.scan.match(_ALIAS):
            self.scan.expect("=")
            self.aliases[match.group(0)] = self.scan.balanced("\n")

    def op(self) -> MlirOp:
        scan = self.scan
        labels = self.result_labels()
        line = scan.line
        opcode = scan.string("an operation's name in quotes").strip('"')
        scan.expect("(")
        operands = scan.items(")", self.operand)
        successors = scan.items("]", self.successor) if scan.eat("[") else ()
        properties = self.properties() if scan.eat("<{") else ()
        regions = scan.items(")", self.region) if scan.eat("(") else ()
        attributes = scan.items("}", self.attribute) if scan.eat("{") else ()
        types = self.result_types()
        location = self.location()
        self.count += 1
        return MlirOp(
            index=self.count,
            line=line,
            opcode=opcode,
            operands=operands,
            results=self.define(labels, types, location),
            attributes=(*properties, *attributes),
            regions=regions,
            successors=successors,
            location=location,
        )

    def result_labels(self) -> tuple[str, ...]:
        labels: list[str] = []
        while match := self.scan.match(_RESULT):
            name, many = match.groups()
            labels += [name] if many is None else [f"{name}#{index}" for index in range(int(many))]
            if not self.scan.eat(","):
                self.scan.expect("=")
        return tuple(labels)

    def operand(self) -> str:
        label = self.scan.token(_VALUE, "a value")[1:]
        return next((scope[label] for scope in reversed(self.scopes) if label in scope), label)

    def successor(self) -> str:
        return self.scan.token(_LABEL, "a block label")[1:]

    def properties(self) -> tuple[tuple[str, str], ...]:
        entries = self.scan.items("}", self.attribute)
        self.scan.expect(">")
        return entries

    def attribute(self) -> tuple[str, str]:
        key = self.scan.token(_KEY, "an attribute's name").strip('"')
        return key, self.scan.balanced(",}") if self.scan.eat("=") else "unit"

    def result_types(self) -> tuple[str, ...]:
        scan = self.scan
        scan.expect(":")
        scan.expect("(")
        scan.items(")", self.type)
        scan.expect("->")
        return scan.items(")", self.type) if scan.eat("(") else (self.type(),)

    def type(self) -> str:
        return self.scan.balanced(",)} \n")

    def location(self) -> str:
        if not self.scan.eat("loc("):
            return ""
        text = self.scan.balanced(")")
        self.scan.expect(")")
        return text

    def define(self, labels: tuple[str, ...], types: tuple[str, ...], location: str) -> tuple[MlirValue, ...]:
        if labels and len(labels) != len(types):
            raise self.scan.error(f"{len(labels)} results are named and {len(types)} types given")
        names = labels or tuple(f"unnamed#{self.count}#{index}" for index in range(len(types)))
        return tuple(
            MlirValue(name=self.declare(name), type=text, location=location)
            for name, text in zip(names, types, strict=True)
        )

    def declare(self, label: str) -> str:
        # MLIR lets regions beside each other use the same name for different values.
        name, number = label, 1
        while name in self.used:
            number += 1
            name = f"{label}'{number}"
        self.used.add(name)
        self.scopes[-1][label] = name
        return name

    def region(self) -> tuple[MlirBlock, ...]:
        self.scan.expect("{")
        self.scopes.append({})
        blocks = []
        while not self.scan.eat("}"):
            blocks.append(self.block())
        self.scopes.pop()
        return tuple(blocks)

    def block(self) -> MlirBlock:
        label, arguments = "", tuple[MlirValue, ...]()
        if match := self.scan.match(_LABEL):
            label = match.group(0)[1:]
            arguments = self.scan.items(")", self.block_argument) if self.scan.eat("(") else ()
            self.scan.expect(":")
        ops = []
        while not self.scan.peek("}") and not self.scan.peek("^"):
            ops.append(self.op())
        return MlirBlock(label=label, arguments=arguments, ops=tuple(ops))

    def block_argument(self) -> MlirValue:
        label = self.scan.token(_VALUE, "a block argument")[1:]
        self.scan.expect(":")
        text = self.type()
        return MlirValue(name=self.declare(label), type=text, location=self.location())
