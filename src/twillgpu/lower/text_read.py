"""Reads the text of a warp program (``text.py`` shows it)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar, get_args

from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.scanner import Scanner
from twillgpu.frontend.text import parse_kernel
from twillgpu.frontend.type_text import read_layout, read_type
from twillgpu.lower.check import check_program
from twillgpu.lower.record import (
    Access,
    Arrive,
    Barrier,
    BarrierUse,
    Commit,
    Drain,
    Engine,
    Execute,
    ExpectBytes,
    Fence,
    Get,
    GroupProgram,
    Instance,
    Instruction,
    Iteration,
    Memory,
    Put,
    Ring,
    Scope,
    Wait,
    WarpProgram,
)
from twillgpu.lower.text import WORD

Item = TypeVar("Item")

SUFFIX = ".program"
"""How files with this text are called."""

MOST = 256
"""Largest number of stages of a group, and of copies of a ring or barrier: all of them are counted through."""

_REMEDY = "give the text that --emit program prints"
_NUMBER = re.compile(r"\d+")
_SIGNED = re.compile(r"-?\d+")
_OFFSET = re.compile(r"(t|trips)(?![A-Za-z0-9_])(?:([+-])(\d+))?")
_ENGINES: dict[str, Engine] = {engine: engine for engine in get_args(Engine)}
_MEMORIES: dict[str, Memory] = {memory: memory for memory in get_args(Memory)}
_SCOPES: dict[str, Scope] = {scope: scope for scope in get_args(Scope)}


def read_program(text: str, *, where: str = "program text") -> WarpProgram:
    """Return the program that ``print_program`` printed.

    Raises ``InputError`` with the line where the text differs from that form, and with the first thing that
    ``check_program`` finds wrong.
    """
    program = parse_program(text, where=where)
    problems = check_program(program)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise InputError(where, f"{problems[0]}{more}", "every barrier, ring and op must be used as it is declared")
    return program


def parse_program(text: str, *, where: str = "program text") -> WarpProgram:
    """Return the program in a text, whatever ``check_program`` says about it.

    Raises ``InputError`` with the line where the text is not in the form that ``print_program`` prints.
    """
    return _Reader(text, where).program()


class _Reader:
    """Recursive descent over the text of one program."""

    def __init__(self, text: str, where: str) -> None:
        self.scan = Scanner(text, where=where, remedy=_REMEDY)
        self.layouts: dict[str, str] = {}
        self.instructions: dict[str, Callable[[], Instruction]] = {
            "put": self.put,
            "get": self.get,
            "wait": self.wait,
            "arrive": self.arrive,
            "expect": self.expect,
            "commit": self.commit,
            "drain": self.drain,
            "fence": self.fence,
        }

    def program(self) -> WarpProgram:
        scan = self.scan
        self.demand("program")
        name = self.name()
        self.demand("machine")
        machine = self.name()
        self.demand("interval")
        interval = self.number()
        persistent = self.keyword("persistent")
        remarks = self.many("remark", lambda: scan.json_string("a remark"))
        self.many("layout", lambda: read_layout(scan, self.layouts))
        rings = self.many("ring", self.ring)
        barriers = self.many("barrier", self.barrier)
        groups = self.many("group", self.group)
        return WarpProgram(
            kernel=self.kernel(name),
            machine=machine,
            ii_cycles=interval,
            groups=groups,
            rings=rings,
            barriers=barriers,
            persistent=persistent,
            remarks=remarks,
        )

    def kernel(self, name: str) -> Kernel:
        """Read the rest as the text of the kernel, whose errors name lines of the whole text."""
        scan = self.scan
        if not re.compile(r"kernel\b").match(scan.text, scan.at):
            raise scan.error("expected a ring, a barrier, a group, an instruction or the kernel")
        above = "\n" * scan.text.count("\n", 0, scan.at)
        kernel = parse_kernel(above + scan.text[scan.at :], where=scan.where)
        if kernel.name != name:
            raise scan.error(f"the program is of {name}, the kernel is another one")
        return kernel

    def ring(self) -> Ring:
        scan = self.scan
        name = self.name()
        scan.expect(":")
        depth = self.counted("copy", "copies", MOST)
        self.demand("of")
        size = self.counted("byte", "bytes")
        self.demand("in")
        memory = self.one_of(_MEMORIES)
        self.demand("at")
        offset = self.number()
        scan.expect(",")
        scope = self.one_of(_SCOPES)
        scan.expect(",")
        self.demand("holds")
        values = self.names()
        scan.expect(":")
        return Ring(
            name=name,
            memory=memory,
            bytes=size,
            depth=depth,
            offset_bytes=offset,
            scope=scope,
            tile=read_type(scan, self.layouts),
            values=values,
        )

    def barrier(self) -> Barrier:
        scan = self.scan
        name = self.name()
        scan.expect(":")
        copies = self.counted("copy", "copies", MOST)
        scan.expect(",")
        arrivals = self.counted("arrival", "arrivals")
        scan.expect(",")
        scope = self.one_of(_SCOPES)
        serves: list[str] = []
        if scan.eat(","):
            self.demand("serves")
            serves.append(scan.json_string("a dependence"))
            while scan.eat(","):
                serves.append(scan.json_string("a dependence"))
        return Barrier(name=name, copies=copies, arrivals=arrivals, scope=scope, serves=tuple(serves))

    def group(self) -> GroupProgram:
        scan = self.scan
        name = self.name()
        scan.expect(":")
        warps = self.counted("warp", "warps")
        scan.expect(",")
        registers = self.counted("register", "registers")
        scan.expect(",")
        stages = self.counted("stage", "stages", MOST)
        return GroupProgram(
            name=name,
            warps=warps,
            registers_per_thread=registers,
            stages=stages,
            before=self.region("before"),
            prologue=self.region("prologue"),
            loop=self.region("loop"),
            epilogue=self.region("epilogue"),
            after=self.region("after"),
        )

    def region(self, name: str) -> tuple[Instruction, ...]:
        self.demand(name)
        found: list[Instruction] = []
        while (word := self.next_keyword()) in self.instructions or word in _ENGINES:
            self.demand(word)
            found.append(self.instructions[word]() if word in self.instructions else self.execute(_ENGINES[word]))
        return tuple(found)

    def execute(self, engine: Engine) -> Execute:
        op = "" if self.scan.peek("(") else self.name()
        members = self.names()
        iteration = self.iteration_after("at")
        reads = self.accesses("reads")
        writes = self.accesses("writes")
        completes = self.use() if self.keyword("completes") else None
        return Execute(
            op=op,
            members=members,
            engine=engine,
            iteration=iteration,
            reads=reads,
            writes=writes,
            completes=completes,
            at_least=self.guard(),
        )

    def put(self) -> Put:
        value, iteration = self.name(), self.iteration_after("at")
        self.demand("into")
        return Put(value=value, iteration=iteration, access=self.access(), at_least=self.guard())

    def get(self) -> Get:
        value, iteration = self.name(), self.iteration_after("at")
        self.demand("from")
        return Get(value=value, iteration=iteration, access=self.access(), at_least=self.guard())

    def wait(self) -> Wait:
        return Wait(use=self.use(), at_least=self.guard())

    def arrive(self) -> Arrive:
        return Arrive(use=self.use(), at_least=self.guard())

    def expect(self) -> ExpectBytes:
        use = self.use()
        return ExpectBytes(use=use, bytes=self.counted("byte", "bytes"), at_least=self.guard())

    def commit(self) -> Commit:
        engine = self.one_of(_ENGINES)
        self.demand("to")
        return Commit(engine=engine, use=self.use(), at_least=self.guard())

    def drain(self) -> Drain:
        engine = self.one_of(_ENGINES)
        self.demand("to")
        pending = self.number()
        return Drain(engine=engine, pending=pending, reads_only=self.keyword("reads"), at_least=self.guard())

    def fence(self) -> Fence:
        if self.keyword("async_shared"):
            return Fence(kind="async_shared", at_least=self.guard())
        self.demand("tmem_store", "async_shared or tmem_store")
        return Fence(kind="tmem_store", at_least=self.guard())

    def guard(self) -> int:
        if not self.keyword("if"):
            return 0
        self.demand("trips")
        self.scan.expect(">=")
        return self.number()

    def accesses(self, keyword: str) -> tuple[Access, ...]:
        if not self.keyword(keyword):
            return ()
        found = [self.access()]
        while self.scan.eat(","):
            found.append(self.access())
        return tuple(found)

    def access(self) -> Access:
        return Access(ring=self.name(), instance=self.instance())

    def use(self) -> BarrierUse:
        return BarrierUse(barrier=self.name(), instance=self.instance())

    def instance(self) -> Instance:
        self.scan.expect("[")
        iteration = None if self.keyword("tile") else self.iteration("an iteration or tile")
        lag = self.signed("a lag") if self.keyword("lag") else 0
        self.scan.expect("]")
        return Instance(scope="tile" if iteration is None else "iteration", iteration=iteration, lag=lag)

    def iteration_after(self, keyword: str) -> Iteration | None:
        return self.iteration("an iteration") if self.keyword(keyword) else None

    def iteration(self, what: str) -> Iteration:
        found = self.scan.match(_OFFSET)
        if found is None:
            return Iteration(anchor="first", offset=self.signed(f"{what} such as 0, t-1 or trips-1"))
        offset = int(f"{found.group(2)}{found.group(3)}") if found.group(2) else 0
        return Iteration(anchor="loop" if found.group(1) == "t" else "last", offset=offset)

    def names(self) -> tuple[str, ...]:
        self.scan.expect("(")
        return self.scan.items(")", self.name)

    def name(self) -> str:
        return self.scan.json_string("a name") if self.scan.peek('"') else self.scan.token(WORD, "a name")

    def number(self) -> int:
        return int(self.scan.token(_NUMBER, "a number"))

    def signed(self, what: str) -> int:
        return int(self.scan.token(_SIGNED, what))

    def counted(self, one: str, more: str, most: int | None = None) -> int:
        number = self.number()
        if most is not None and number > most:
            raise self.scan.error(f"expected at most {most} {more}")
        if not self.keyword(more):
            self.demand(one, more)
        return number

    def many(self, keyword: str, item: Callable[[], Item]) -> tuple[Item, ...]:
        found: list[Item] = []
        while self.keyword(keyword):
            found.append(item())
        return tuple(found)

    def one_of(self, known: dict[str, Item]) -> Item:
        found = known.get(self.next_keyword())
        if found is None:
            raise self.scan.error(f"expected one of {', '.join(known)}")
        self.scan.match(WORD)
        return found

    def next_keyword(self) -> str:
        """Return the word that comes next, without moving past it."""
        self.scan.skip()
        found = WORD.match(self.scan.text, self.scan.at)
        return found.group(0) if found else ""

    def keyword(self, keyword: str) -> bool:
        """Move past a word if it comes next, and return whether it did."""
        return self.next_keyword() == keyword and self.scan.eat(keyword)

    def demand(self, keyword: str, what: str = "") -> None:
        if not self.keyword(keyword):
            raise self.scan.error(f"expected {what or keyword}")
