"""The kernel as text: what ``--emit kernel`` prints, and what is read back field by field.

::

    kernel attention_fwd
    target sm_90a
    warps 8
    file "examples/attention_fwd.py"
    remark "the schedule decides instead of num_stages"
    layout #nvidia_mma = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0}>"
    parameter seq_len: "i32" aligned
    parameter BLOCK_M: "constexpr" value "128" default "64"
    argument q_desc: descriptor<128x128xf16, #nvmma_shared>
    before
      block = tt.get_program_id() {axis = 0 : i32} -> scalar<i32> @ attention_fwd.py:22
    loop loop_start_n: start_n: scalar<i32> in range(zero, seq_len, step) trips 32 @ attention_fwd.py:31
      carried m_i_prev: registers<128xf32, #slice> = m_i yields m_ij result m_i_final
      l_ij = tt.reduce(p) {axis = 1 : i32} body [arith.addf] -> registers<128xf32, #slice> @ attention_fwd.py:37
    after
      store = tt.store(addptr, convert_layout) @ attention_fwd.py:45

An op whose only result has the op's name gives the type alone; otherwise the results are named
(``-> qk: registers<...>, qk_token: token``). A split op has ``part 0 of 2 along 1 from qk`` before its source.
An op with a body that is more than one op has it in full, values from outside with the place of their operand:
``region(a: scalar<f32>, b: scalar<f32>) reads(n: scalar<i32> = 3) { OPS } yields(c)``.
Text with other characters than a plain word's is a JSON string, and so is a name that is a keyword.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import TypeVar, get_args

from twillgpu.frontend.check import check_kernel
from twillgpu.frontend.kernel import (
    Carried,
    Kernel,
    KernelOp,
    KernelValue,
    Loop,
    Parameter,
    Region,
    Space,
    SubTile,
    TileType,
)
from twillgpu.frontend.scanner import Scanner
from twillgpu.frontend.type_text import layout_aliases, print_type, read_layout, read_type

Item = TypeVar("Item")

_WORD = re.compile(r"(?!(?:loop|carried|after|body|part|region|trips)(?![A-Za-z0-9_.$'\-]))[A-Za-z0-9_.$'\-]+")
_SOURCE = re.compile(r"(?!//)[\w./\\\-]+:\d+", re.ASCII)
_ATTRIBUTE = re.compile(r"[\w.+\-]+(?: : \w+)?", re.ASCII)
_TYPE_ALONE = re.compile(rf"(?:{'|'.join(get_args(Space))})(?=[<\s]|$)")
_NUMBER = re.compile(r"\d+")


def print_kernel(kernel: Kernel) -> str:
    """Return the text of ``kernel``, which ``parse_kernel`` reads back to an equal record."""
    return "\n".join([*_Printer(kernel).lines(), ""])


def parse_kernel(text: str, *, where: str = "kernel text") -> Kernel:
    """Return the kernel that ``print_kernel`` printed.

    Raises ``InputError`` with the line where the text differs from that form, or where a name is used that is
    not defined.
    """
    kernel = _Parser(text, where).kernel()
    check_kernel(kernel, where=where)
    return kernel


def _quoted(pattern: re.Pattern[str], text: str) -> str:
    return text if pattern.fullmatch(text) else json.dumps(text)


class _Printer:
    """Prints one kernel; ``layouts`` maps each layout to its alias."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.layouts = layout_aliases(value.type.layout for value in _values(kernel))

    def lines(self) -> Iterator[str]:
        kernel = self.kernel
        yield f"kernel {_quoted(_WORD, kernel.name)}"
        yield f"target {_quoted(_WORD, kernel.target)}"
        yield f"warps {kernel.num_warps}"
        yield f"file {json.dumps(kernel.source_file)}"
        yield from (f"remark {json.dumps(remark)}" for remark in kernel.remarks)
        yield from (f"layout {alias} = {json.dumps(layout)}" for layout, alias in self.layouts.items())
        yield from map(_parameter, kernel.parameters)
        yield from (f"argument {self.value(argument)}" for argument in kernel.arguments)
        yield from ("before", *map(self.op, kernel.before))
        yield from self.loop(kernel.loop)
        yield from ("after", *map(self.op, kernel.after))

    def loop(self, loop: Loop) -> Iterator[str]:
        bounds = ", ".join(_quoted(_WORD, name) for name in (loop.lower, loop.upper, loop.step))
        trips = "" if loop.trip_count is None else f" trips {loop.trip_count}"
        head = f"loop {_quoted(_WORD, loop.name)}: {self.value(loop.induction)} in range({bounds})"
        yield f"{head}{trips}{_source(loop.source)}"
        yield from map(self.carried, loop.carried)
        yield from map(self.op, loop.body)

    def carried(self, carried: Carried) -> str:
        initial, yielded, result = (
            _quoted(_WORD, name) for name in (carried.initial, carried.yielded, carried.result)
        )
        return f"  carried {self.value(carried.argument)} = {initial} yields {yielded} result {result}"

    def op(self, op: KernelOp) -> str:
        operands = ", ".join(_quoted(_WORD, operand) for operand in op.operands)
        parts = [f"  {_quoted(_WORD, op.name)} = {_quoted(_WORD, op.opcode)}({operands})"]
        if op.attributes:
            entries = (f"{_quoted(_WORD, key)} = {_quoted(_ATTRIBUTE, text)}" for key, text in op.attributes)
            parts.append(f"{{{', '.join(entries)}}}")
        if op.body:
            parts.append(f"body [{', '.join(_quoted(_WORD, opcode) for opcode in op.body)}]")
        parts += map(self.region, op.regions)
        if op.results:
            parts.append(f"-> {self.results(op)}")
        if op.subtile is not None:
            part = op.subtile
            origin = _quoted(_WORD, part.origin)
            parts.append(f"part {part.index} of {part.count} along {part.dimension} from {origin}")
        return " ".join(parts) + _source(op.source)

    def region(self, region: Region) -> str:
        own = len(region.arguments) - len(region.captures)
        arguments = ", ".join(map(self.value, region.arguments[:own]))
        places = zip(region.arguments[own:], region.captures, strict=True)
        reads = ", ".join(f"{self.value(value)} = {place}" for value, place in places)
        head = f"region({arguments})" + (f" reads({reads})" if reads else "")
        ops = "".join(f"{textwrap.indent(self.op(op), '  ')}\n" for op in region.ops)
        return f"{head} {{\n{ops}  }} yields({', '.join(_quoted(_WORD, name) for name in region.yielded)})"

    def results(self, op: KernelOp) -> str:
        if [result.name for result in op.results] == [op.name]:
            return self.type(op.results[0].type)
        return ", ".join(map(self.value, op.results))

    def value(self, value: KernelValue) -> str:
        return f"{_quoted(_WORD, value.name)}: {self.type(value.type)}"

    def type(self, kind: TileType) -> str:
        return print_type(kind, self.layouts)


def _parameter(parameter: Parameter) -> str:
    texts = (("value", parameter.value), ("default", parameter.default))
    rest = "".join(f" {name} {json.dumps(text)}" for name, text in texts if text)
    aligned = " aligned" if parameter.aligned else ""
    return f"parameter {_quoted(_WORD, parameter.name)}: {json.dumps(parameter.type)}{rest}{aligned}"


def _source(source: str) -> str:
    return f" @ {_quoted(_SOURCE, source)}" if source else ""


def _values(kernel: Kernel) -> Iterator[KernelValue]:
    loop = kernel.loop
    yield from kernel.arguments
    for op in (*kernel.before, *loop.body, *kernel.after):
        yield from _op_values(op)
    yield loop.induction
    yield from (carried.argument for carried in loop.carried)


def _op_values(op: KernelOp) -> Iterator[KernelValue]:
    yield from op.results
    for region in op.regions:
        yield from region.arguments
        for inner in region.ops:
            yield from _op_values(inner)


class _Parser:
    """Recursive descent over the text of one kernel."""

    def __init__(self, text: str, where: str) -> None:
        self.scan = Scanner(text, where=where, remedy="give the text that --emit kernel prints")
        self.layouts: dict[str, str] = {}

    def kernel(self) -> Kernel:
        scan = self.scan
        name = self.keyword_word("kernel")
        target = self.keyword_word("target")
        scan.expect("warps")
        warps = self.number()
        scan.expect("file")
        source_file = scan.json_string("a file name")
        remarks = self.many("remark", lambda: scan.json_string("a remark"))
        self.many("layout", self.layout)
        parameters = self.many("parameter", self.parameter)
        arguments = self.many("argument", self.value)
        scan.expect("before")
        before = self.ops()
        loop = self.loop()
        scan.expect("after")
        after = self.ops()
        if not scan.done:
            raise scan.error("expected the end of the kernel")
        return Kernel(
            name=name,
            target=target,
            num_warps=warps,
            arguments=arguments,
            before=before,
            loop=loop,
            after=after,
            source_file=source_file,
            remarks=remarks,
            parameters=parameters,
        )

    def parameter(self) -> Parameter:
        name = self.word()
        self.scan.expect(":")
        kind = self.scan.json_string("a type")
        value, default = (self.text_after(word) for word in ("value", "default"))
        return Parameter(name=name, type=kind, value=value, default=default, aligned=self.keyword("aligned"))

    def text_after(self, keyword: str) -> str:
        return self.scan.json_string("a value") if self.keyword(keyword) else ""

    def many(self, keyword: str, item: Callable[[], Item]) -> tuple[Item, ...]:
        found: list[Item] = []
        while self.keyword(keyword):
            found.append(item())
        return tuple(found)

    def keyword(self, keyword: str) -> bool:
        return self.scan.match(re.compile(rf"{keyword}(?![\w.$'\-])")) is not None

    def keyword_word(self, keyword: str) -> str:
        self.scan.expect(keyword)
        return self.word()

    def word(self) -> str:
        return self.plain_or_string(_WORD, "a name")

    def plain_or_string(self, pattern: re.Pattern[str], what: str) -> str:
        if self.scan.peek('"'):
            return self.scan.json_string(what)
        return self.scan.token(pattern, what)

    def number(self) -> int:
        return int(self.scan.token(_NUMBER, "a number"))

    def layout(self) -> str:
        return read_layout(self.scan, self.layouts)

    def loop(self) -> Loop:
        scan = self.scan
        name = self.keyword_word("loop")
        scan.expect(":")
        induction = self.value()
        scan.expect("in range(")
        lower, upper, step = self.word(), self.next_word(), self.next_word()
        scan.expect(")")
        trip_count = self.number() if self.keyword("trips") else None
        source = self.source()
        return Loop(
            name=name,
            induction=induction,
            lower=lower,
            upper=upper,
            step=step,
            trip_count=trip_count,
            carried=self.many("carried", self.carried),
            body=self.ops(),
            source=source,
        )

    def next_word(self) -> str:
        self.scan.expect(",")
        return self.word()

    def carried(self) -> Carried:
        argument = self.value()
        self.scan.expect("=")
        initial = self.word()
        yielded = self.keyword_word("yields")
        return Carried(argument=argument, initial=initial, yielded=yielded, result=self.keyword_word("result"))

    def ops(self) -> tuple[KernelOp, ...]:
        found = []
        while self.scan.peek('"') or self.scan.at_match(_WORD):
            found.append(self.op())
        return tuple(found)

    def op(self) -> KernelOp:
        scan = self.scan
        name = self.word()
        scan.expect("=")
        opcode = self.word()
        scan.expect("(")
        operands = scan.items(")", self.word)
        attributes = scan.items("}", self.attribute) if scan.eat("{") else ()
        body = self.body()
        regions = self.many("region", self.region)
        results = self.results(name) if scan.eat("->") else ()
        subtile = self.subtile() if self.keyword("part") else None
        return KernelOp(
            name=name,
            opcode=opcode,
            operands=operands,
            results=results,
            attributes=attributes,
            source=self.source(),
            body=body,
            subtile=subtile,
            regions=regions,
        )

    def attribute(self) -> tuple[str, str]:
        key = self.word()
        self.scan.expect("=")
        return key, self.plain_or_string(_ATTRIBUTE, "an attribute's text")

    def body(self) -> tuple[str, ...]:
        if not self.keyword("body"):
            return ()
        self.scan.expect("[")
        return self.scan.items("]", self.word)

    def region(self) -> Region:
        scan = self.scan
        scan.expect("(")
        own = scan.items(")", self.value)
        reads = scan.items(")", self.read) if scan.eat("reads(") else ()
        scan.expect("{")
        ops = self.ops()
        scan.expect("}")
        scan.expect("yields(")
        return Region(
            arguments=(*own, *(value for value, _ in reads)),
            captures=tuple(place for _, place in reads),
            ops=ops,
            yielded=scan.items(")", self.word),
        )

    def read(self) -> tuple[KernelValue, int]:
        value = self.value()
        self.scan.expect("=")
        return value, self.number()

    def results(self, name: str) -> tuple[KernelValue, ...]:
        if self.scan.at_match(_TYPE_ALONE):
            return (KernelValue(name=name, type=self.type()),)
        found = [self.value()]
        while self.scan.eat(","):
            found.append(self.value())
        return tuple(found)

    def subtile(self) -> SubTile:
        index = self.number()
        self.scan.expect("of")
        count = self.number()
        self.scan.expect("along")
        dimension = self.number()
        return SubTile(dimension=dimension, index=index, count=count, origin=self.keyword_word("from"))

    def source(self) -> str:
        return self.plain_or_string(_SOURCE, "file.py:line") if self.scan.eat("@") else ""

    def value(self) -> KernelValue:
        name = self.word()
        self.scan.expect(":")
        return KernelValue(name=name, type=self.type())

    def type(self) -> TileType:
        return read_type(self.scan, self.layouts)
