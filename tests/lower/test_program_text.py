"""The text of a warp program reads back to an equal record, and says where it is wrong."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import get_args

import pytest
import schedules
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel, KernelOp, KernelValue, Loop, TileType
from twillgpu.lower.lower import lower
from twillgpu.lower.options import LowerOptions
from twillgpu.lower.record import (
    Access,
    Anchor,
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
    Put,
    Ring,
    Wait,
    WarpProgram,
)
from twillgpu.lower.text import print_program
from twillgpu.lower.text_read import parse_program, read_program

INDEX = TileType(space="scalar", dtype="i32")
KERNEL = Kernel(
    name="small",
    target="sm_90a",
    num_warps=4,
    arguments=(KernelValue(name="n", type=INDEX),),
    before=(),
    loop=Loop(
        name="steps",
        induction=KernelValue(name="i", type=INDEX),
        lower="n",
        upper="n",
        step="n",
        trip_count=None,
        carried=(),
        body=(KernelOp(name="load", opcode="tt.load", source="k.py:7"),),
    ),
    after=(),
)
NAMES = st.one_of(st.sampled_from(("k", "t", "trips", "tile", "if", "reads", "loop", "kernel", "a.b-1")), st.text())
NUMBERS = st.integers(0, 256)
SIGNED = st.integers(-3, 9)
ITERATIONS = st.builds(Iteration, anchor=st.sampled_from(get_args(Anchor)), offset=SIGNED)
INSTANCES = st.one_of(
    st.builds(Instance, scope=st.just("tile"), lag=SIGNED),
    st.builds(Instance, scope=st.just("iteration"), iteration=ITERATIONS, lag=SIGNED),
)
ENGINES = st.sampled_from(get_args(Engine))
MAYBE = st.none() | ITERATIONS
USES = st.builds(BarrierUse, barrier=NAMES, instance=INSTANCES)
ACCESSES = st.builds(Access, ring=NAMES, instance=INSTANCES)
FEW_NAMES = st.lists(NAMES, max_size=3).map(tuple)
FEW_ACCESSES = st.lists(ACCESSES, max_size=2).map(tuple)
INSTRUCTIONS: st.SearchStrategy[Instruction] = st.one_of(
    st.builds(
        Execute,
        op=NAMES,
        members=FEW_NAMES,
        engine=ENGINES,
        iteration=MAYBE,
        reads=FEW_ACCESSES,
        writes=FEW_ACCESSES,
        completes=st.none() | USES,
        at_least=NUMBERS,
    ),
    st.builds(Put, value=NAMES, iteration=MAYBE, access=ACCESSES, at_least=NUMBERS),
    st.builds(Get, value=NAMES, iteration=MAYBE, access=ACCESSES, at_least=NUMBERS),
    st.builds(Wait, use=USES, at_least=NUMBERS),
    st.builds(Arrive, use=USES, at_least=NUMBERS),
    st.builds(ExpectBytes, use=USES, bytes=NUMBERS, at_least=NUMBERS),
    st.builds(Commit, engine=ENGINES, use=USES, at_least=NUMBERS),
    st.builds(Drain, engine=ENGINES, pending=NUMBERS, reads_only=st.booleans(), at_least=NUMBERS),
    st.builds(Fence, kind=st.sampled_from(("async_shared", "tmem_store")), at_least=NUMBERS),
)
REGION = st.lists(INSTRUCTIONS, max_size=3).map(tuple)
GROUPS = st.builds(
    GroupProgram,
    name=NAMES,
    warps=NUMBERS,
    registers_per_thread=NUMBERS,
    stages=NUMBERS,
    before=REGION,
    prologue=REGION,
    loop=REGION,
    epilogue=REGION,
    after=REGION,
)
SCOPES = st.sampled_from(("iteration", "tile"))
TILES = st.builds(
    TileType,
    space=st.sampled_from(("smem", "tmem", "registers")),
    shape=st.lists(st.integers(1, 256), max_size=3).map(tuple),
    dtype=st.sampled_from(("f16", "f32", "")),
    layout=st.sampled_from(("", "#ttg.nvmma_shared<{a = 1}>", "#ttg.nvmma_shared<{a = 2}>", "odd")),
    mutable=st.booleans(),
)
RINGS = st.builds(
    Ring,
    name=NAMES,
    memory=st.sampled_from(("smem", "tmem")),
    bytes=NUMBERS,
    depth=NUMBERS,
    offset_bytes=NUMBERS,
    scope=SCOPES,
    tile=TILES,
    values=FEW_NAMES,
)
BARRIERS = st.builds(
    Barrier,
    name=NAMES,
    copies=NUMBERS,
    arrivals=NUMBERS,
    scope=SCOPES,
    serves=st.lists(st.text(), max_size=2).map(tuple),
)
PROGRAMS = st.builds(
    WarpProgram,
    kernel=st.just(KERNEL),
    machine=NAMES,
    ii_cycles=NUMBERS,
    groups=st.lists(GROUPS, max_size=2).map(tuple),
    rings=st.lists(RINGS, max_size=2).map(tuple),
    barriers=st.lists(BARRIERS, max_size=2).map(tuple),
    persistent=st.booleans(),
    remarks=st.lists(st.text(), max_size=2).map(tuple),
)
TEXT = """\
program small
machine h100
interval 100
ring k: 2 copies of 64 bytes in smem at 0, iteration, holds (k): smem<32xf16>
barrier full: 2 copies, 1 arrival, iteration, serves "load -> use (data, 0)"
group producer: 1 warp, 24 registers, 1 stage
  before
  prologue
  loop
    expect full[t] 64 bytes
    tma load (load) at t writes k[t] completes full[t] // k.py:7
  epilogue
  after
group consumer: 4 warps, 240 registers, 2 stages
  before
  prologue
  loop
    wait full[t-1 lag -1]
  epilogue
  after
kernel small
target sm_90a
warps 4
file ""
argument n: scalar<i32>
before
loop steps: i: scalar<i32> in range(n, n, n)
  load = tt.load() @ k.py:7
after
"""


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(PROGRAMS)
def test_any_program_reads_back_to_an_equal_record(program: WarpProgram) -> None:
    assert parse_program(print_program(program)) == program


@pytest.mark.triton
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("machine", ["h100", "b200"])
@pytest.mark.parametrize(
    ("name", "interval"), [("attention_fwd", 5000), ("attention_bwd", 9000), ("gemm", 1200), ("rms_norm", 12000)]
)
def test_programs_of_the_examples_read_back(name: str, interval: int, machine: str, persistent: bool) -> None:
    program = _lowered(name, machine, interval, LowerOptions(persistent=persistent))
    text = print_program(program)
    assert read_program(text) == program
    assert print_program(read_program(text)) == text


def _lowered(name: str, machine: str, interval: int, options: LowerOptions) -> WarpProgram:
    """Return the program of the first random partition that has a schedule at this interval."""
    kernel, graph, problem = schedules.loaded(name, machine)
    roomy, chance = schedules.roomy(problem), random.Random(1)  # noqa: S311  # not for cryptography
    for _ in range(20):
        groups = schedules.random_groups(problem, chance, chance.choice((2, 3)))
        verified = schedules.placed(roomy, groups, interval)
        if verified is not None:
            return lower(kernel, graph, verified, options)
    raise AssertionError(f"{name} on {machine}: no partition has a schedule of {interval} cycles")


def test_the_text_of_a_small_program() -> None:
    program = read_program(TEXT)
    assert print_program(program) == TEXT
    producer, consumer = program.groups
    assert [type(one) for one in producer.loop] == [ExpectBytes, Execute]
    at = Iteration(anchor="loop", offset=-1)
    full = BarrierUse(barrier="full", instance=Instance(scope="iteration", iteration=at, lag=-1))
    assert consumer.loop == (Wait(use=full),)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("program small", "kernel small", 1, "expected program"),
        ("interval 100", "interval fast", 3, "expected a number"),
        ("2 copies of 64", "2 pieces of 64", 4, "expected copies"),
        ("2 copies of 64", "257 copies of 64", 4, "expected at most 256 copies"),
        ("24 registers, 1 stage", "24 registers, 10000 stages", 6, "expected at most 256 stages"),
        ("in smem at", "in rmem at", 4, "expected one of smem, tmem"),
        ("0, iteration, holds", "0, always, holds", 4, "expected one of iteration, tile"),
        ("smem<32xf16>", "smem<32xf16, #nvmma>", 4, "the layout #nvmma is not defined"),
        ('serves "load -> use (data, 0)"', "serves load", 5, "expected a dependence"),
        ("24 registers, 1 stage", "24 registers", 7, "expected ','"),
        ("    expect full[t] 64 bytes", "    expects full[t] 64 bytes", 10, "expected epilogue, found 'expects"),
        ("expect full[t] 64 bytes", "expect full[u] 64 bytes", 10, "expected an iteration or tile such as 0, t-1"),
        ("writes k[t]", "writes k(t)", 11, "expected '['"),
        ("(load) at t writes", "(load at t writes", 11, "expected ','"),
        ("lag -1]", "lag]", 18, "expected a lag"),
        ("  epilogue\n  after\nkernel", "  after\nkernel", 19, "expected epilogue"),
        ("kernel small", "colonel small", 21, "expected a ring, a barrier, a group, an instruction or the kernel"),
        ("kernel small", "kernel large", 21, "the program is of small, the kernel is another one"),
        ("load = tt.load()", "load = tt.load(", 28, "expected a name"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, line: int, message: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError) as error:
        read_program(TEXT.replace(old, new, 1), where="x.program")
    assert error.value.where == f"x.program:{line}"
    assert message in error.value.what


def test_a_text_that_ends_early_is_an_error_at_its_last_line() -> None:
    for end in range(len(TEXT) - len("after\n")):
        with pytest.raises(InputError) as error:
            read_program(TEXT[:end], where="x.program")
        assert error.value.where.startswith("x.program")


def test_what_the_program_check_finds_is_an_error() -> None:
    with pytest.raises(InputError) as error:
        read_program(TEXT.replace("expect full[t] 64 bytes", "expect full[t] 32 bytes"), where="x.program")
    assert str(error.value) == (
        "x.program: with 1 iterations: barrier full expects 32 bytes in instance 0, 64 are loaded; every barrier, "
        "ring and op must be used as it is declared"
    )


def test_a_name_that_a_program_does_not_declare_is_an_error() -> None:
    with pytest.raises(InputError, match="there is no ring v"):
        read_program(TEXT.replace("writes k[t]", "writes v[t]"))


def test_quoted_names_and_comments_are_read() -> None:
    program = read_program(TEXT)
    odd = replace(program.barriers[0], name="full of //")
    text = print_program(replace(program, barriers=(odd,)))
    assert parse_program(text.replace("interval 100", "interval 100 // cycles")).barriers == (odd,)
