"""Choice of kernel and loop, what is declined, hoisting and trip counts, on small modules in generic form."""

from __future__ import annotations

import re

import pytest

from twillgpu.errors import InputError, UnsupportedError
from twillgpu.frontend.convert import ConvertOptions, convert
from twillgpu.frontend.generic import parse_generic
from twillgpu.frontend.kernel import Kernel

HEAD = """
    %c0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %c1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %c7 = "arith.constant"() <{value = 7 : i32}> : () -> i32
"""
LOOP = """
    "scf.for"(%c0, %n, %c1) ({
    ^bb0(%i: i32):
      BODY
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> () loc("k.py":10:5)
"""
STORE = '"tt.store"(%x, %i) : (!tt.ptr<i32>, i32) -> () loc("k.py":11:9)'
DEFAULT_LOOP = LOOP.replace("BODY", STORE)


def function(body: str, name: str = "k", visibility: str = "public") -> str:
    return f"""
  "tt.func"() <{{sym_name = "{name}", sym_visibility = "{visibility}"}}> ({{
  ^bb0(%x: !tt.ptr<i32>, %n: i32):
    {body}
    "tt.return"() : () -> ()
  }}) : () -> () loc("k.py":3:1)
"""


def module(*functions: str, target: str = '"cuda:90"') -> str:
    attributes = f'{{"ttg.num-warps" = 4 : i32, ttg.target = {target}}}'
    return f'"builtin.module"() ({{{"".join(functions)}}}) {attributes} : () -> ()\n'


def converted(text: str, *, target: str | None = None, kernel: str | None = None, loop: int | None = None) -> Kernel:
    options = ConvertOptions(where="k.mlir", target=target, kernel=kernel, loop=loop, arguments={"n": 100})
    return convert(parse_generic(text, where="k.mlir"), options)


def with_body(body: str) -> str:
    return module(function(HEAD + LOOP.replace("BODY", body)))


def test_a_loop_is_cut_out_of_its_function() -> None:
    kernel = converted(module(function(HEAD + DEFAULT_LOOP)))
    assert [op.name for op in kernel.before] == ["c0", "c1", "c7"]
    assert [(op.name, op.source) for op in kernel.loop.body] == [("store", "k.py:11")]
    assert (kernel.loop.lower, kernel.loop.upper, kernel.loop.step) == ("c0", "n", "c1")
    assert kernel.loop.trip_count == 100
    assert kernel.loop.source == "k.py:10"
    assert kernel.after == ()
    assert kernel.remarks == ()


IF = '"scf.if"(%b) ({"scf.yield"() : () -> ()}, {}) : (i1) -> () loc("k.py":12:9)'
NESTED = (
    '"scf.for"(%c0, %n, %c1) ({\n^bb0(%j: i32):\n"scf.yield"() : () -> ()}) : (i32, i32, i32) -> () loc("k.py":13:9)'
)
WHILE = '"scf.while"() ({"scf.condition"(%b) : (i1) -> ()}, {"scf.yield"() : () -> ()}) : () -> () loc("k.py":14:9)'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (IF, "k.py:12: an if inside the loop at k.py:10; use tl.where, or split the loop"),
        (NESTED, "k.py:13: a loop inside the loop at k.py:10; only a single loop is scheduled: unroll the inner one"),
        (WHILE, "k.py:14: a while loop inside the loop at k.py:10; use a for loop over tl.range"),
        ('"tt.call"() : () -> () loc("k.py":15:9)', "k.py:15: a call that Triton did not inline at k.py:10; remove"),
        (
            '"ttg.warp_specialize"() ({}) : () -> () loc("k.py":15:9)',
            "k.py:15: the kernel is warp specialized already (it has ttg.warp_specialize); give the TTGIR before",
        ),
        (
            '"ttng.wait_barrier"() : () -> ()',
            "k.mlir:11: the kernel is pipelined already (it has ttng.wait_barrier); give the TTGIR before",
        ),
        (
            '"scf.parallel"() ({"scf.yield"() : () -> ()}) : () -> () loc("k.py":16:9)',
            "k.py:16: scf.parallel in the loop: its region is not supported; rewrite the loop without it",
        ),
    ],
)
def test_control_flow_inside_the_loop_is_declined_with_its_line(body: str, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        converted(with_body(body))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "k.py:3: the kernel 'k' has no loop; give a kernel with a for loop over tl.range (tl.static_range and"),
        (WHILE, "k.py:14: the kernel's loop is a while loop; use a for loop over tl.range"),
        (
            f'"scf.if"(%b) ({{{NESTED} "scf.yield"() : () -> ()}}, {{}}) : (i1) -> () loc("k.py":9:5)',
            "k.py:13: the loop is inside another region (scf.if at k.py:9); move the loop to the top level",
        ),
        (
            '"cf.cond_br"(%b)[^bb1, ^bb2] : (i1) -> () loc("k.py":5:8)\n^bb1:\n"tt.return"() : () -> ()\n^bb2:',
            "k.py:5: the kernel branches outside of its loop (an early return?); remove the branch, or mask",
        ),
    ],
)
def test_a_kernel_without_a_loop_at_its_top_level_is_declined_with_its_line(body: str, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        converted(module(function(HEAD + body)))
    assert str(caught.value).startswith(message)


TWO = module(function(HEAD + DEFAULT_LOOP + DEFAULT_LOOP.replace(":10:", ":20:")))


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        (None, "k.mlir: the kernel has 2 loops: 1 (k.py:10), 2 (k.py:20); choose the one to schedule with --loop N"),
        (0, "k.mlir: there is no loop 0; choose one with --loop N: 1 (k.py:10), 2 (k.py:20)"),
        (3, "k.mlir: there is no loop 3; choose one with --loop N: 1 (k.py:10), 2 (k.py:20)"),
    ],
)
def test_several_loops_are_listed_with_their_lines(loop: int | None, message: str) -> None:
    with pytest.raises(InputError) as caught:
        converted(TWO, loop=loop)
    assert str(caught.value) == message


def test_the_other_loop_is_kept_whole_with_what_it_reads_and_a_remark() -> None:
    kernel = converted(TWO, loop=2)
    assert kernel.loop.source == "k.py:20"
    other = kernel.before[-1]
    assert (other.opcode, other.operands) == ("scf.for", ("c0", "n", "c1", "x"))
    assert other.body == ("tt.store", "scf.yield")
    assert kernel.remarks == ("scf.for outside of the loop is kept whole and not scheduled: for (k.py:10)",)


def test_several_kernels_are_listed_and_one_is_chosen() -> None:
    text = module(function(HEAD + DEFAULT_LOOP), function(HEAD + DEFAULT_LOOP, "other"))
    with pytest.raises(InputError) as caught:
        converted(text)
    assert str(caught.value) == "k.mlir: several kernels: k (k.py:3), other (k.py:3); choose one with --kernel NAME"
    assert converted(text, kernel="other").name == "other"
    with pytest.raises(InputError, match="no kernel 'othr'; did you mean 'other'"):
        converted(text, kernel="othr")
    private = module(function(HEAD + DEFAULT_LOOP), function("", "helper", "private"))
    assert converted(private).name == "k"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (module(), "k.mlir: the module has no tt.func; give the TTGIR of a Triton kernel"),
        (module(function(HEAD + DEFAULT_LOOP), target='"hip:gfx942"'), "is not TTGIR for an NVIDIA GPU"),
        ('"builtin.module"() ({}) : () -> ()', "is not TTGIR for an NVIDIA GPU (its ttg.target is missing)"),
        (module(function(HEAD + DEFAULT_LOOP), target='"cuda:80"'), "lowered for sm_80 and the machine needs sm_90a"),
        (with_body('"tt.store"(%x, %gone) : (!tt.ptr<i32>, i32) -> ()'), "the value %gone is used and not defined"),
    ],
)
def test_a_module_that_is_not_the_ttgir_wanted_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        converted(text, target="sm_90a")
    assert message in str(caught.value)


HOISTED = """
      %same = "arith.addi"(%c1, %n) : (i32, i32) -> i32 loc("same"("k.py":12:9))
      %twice = "arith.addi"(%same, %same) : (i32, i32) -> i32 loc("twice"("k.py":13:9))
      %vary = "arith.addi"(%same, %i) : (i32, i32) -> i32 loc("vary"("k.py":14:9))
      %four = "arith.constant"() <{value = 4 : i32}> : () -> i32
      "tt.store"(%x, %vary) : (!tt.ptr<i32>, i32) -> ()
"""


def test_operations_that_compute_the_same_in_every_iteration_move_in_front_of_the_loop() -> None:
    kernel = converted(with_body(HOISTED))
    assert [op.name for op in kernel.before[3:]] == ["same", "twice", "c4"]
    assert [op.name for op in kernel.loop.body] == ["vary", "store"]
    assert kernel.remarks == (
        "moved in front of the loop, the same in every iteration: same (k.py:12), twice (k.py:13)",
    )


DESCRIPTOR = "!tt.tensordesc<4xf16>"
LOAD = f"""
      %d = "tt.make_tensor_descriptor"(%x) : (!tt.ptr<i32>) -> {DESCRIPTOR}
      %t = "tt.descriptor_load"(%d, %c0) : ({DESCRIPTOR}, i32) -> tensor<4xf16>
      %s = "ttg.local_alloc"(%t) : (tensor<4xf16>) -> !ttg.memdesc<4xf16, #l, #ttg.shared_memory>
      %p = "tt.load"(%x) : (!tt.ptr<i32>) -> i32
      %m = "ttg.local_alloc"() : () -> !ttg.memdesc<4xf16, #l, #ttg.shared_memory, mutable>
"""


def test_a_tma_load_of_an_invariant_tile_moves_only_if_nothing_is_written_and_pointer_loads_stay() -> None:
    kernel = converted(with_body(LOAD))
    assert [op.opcode for op in kernel.loop.body] == ["tt.load", "ttg.local_alloc"]
    kernel = converted(with_body(LOAD + STORE))
    assert [op.opcode for op in kernel.loop.body] == [
        "tt.descriptor_load",
        "ttg.local_alloc",
        "tt.load",
        "ttg.local_alloc",
        "tt.store",
    ]


@pytest.mark.parametrize(
    ("bounds", "trips"),
    [
        ('%a = "arith.addi"(%c7, %n) : (i32, i32) -> i32', 107),
        ('%a = "arith.subi"(%c7, %n) : (i32, i32) -> i32', 0),
        ('%a = "arith.muli"(%c7, %n) : (i32, i32) -> i32', 700),
        ('%a = "arith.divsi"(%n, %c7) : (i32, i32) -> i32', 14),
        ('%a = "arith.divsi"(%n, %c0) : (i32, i32) -> i32', None),
        ('%a = "arith.minsi"(%n, %c7) : (i32, i32) -> i32', 7),
        ('%a = "arith.maxsi"(%n, %c7) : (i32, i32) -> i32', 100),
        ('%b = "arith.extsi"(%n) : (i32) -> i64\n%a = "arith.trunci"(%b) : (i64) -> i32', 100),
        ('%a = "arith.xori"(%n, %c7) : (i32, i32) -> i32', None),
        ('%a = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32', None),
    ],
)
def test_the_trip_count_follows_the_arithmetic_of_the_bounds(bounds: str, trips: int | None) -> None:
    loop = DEFAULT_LOOP.replace("%c0, %n, %c1", "%c0, %a, %c1")
    assert converted(module(function(HEAD + bounds + loop))).loop.trip_count == trips


def test_a_step_of_several_rounds_the_trip_count_up_and_a_step_of_zero_has_none() -> None:
    by_seven = DEFAULT_LOOP.replace("%c0, %n, %c1", "%c0, %n, %c7")
    assert converted(module(function(HEAD + by_seven))).loop.trip_count == 15
    by_zero = DEFAULT_LOOP.replace("%c0, %n, %c1", "%c0, %n, %c0")
    assert converted(module(function(HEAD + by_zero))).loop.trip_count is None


def test_the_loops_own_options_are_remarked_on() -> None:
    text = module(function(HEAD + DEFAULT_LOOP))
    end = '}) : (i32, i32, i32) -> () loc("k.py":10:5)'
    given = text.replace(end, end.replace("})", "}) {tt.num_stages = 3 : i32, tt.warp_specialize}", 1))
    assert converted(given).remarks == (
        "the loop's own options are not used, the schedule decides instead: num_stages, warp_specialize",
    )


def test_a_text_without_locations_is_named_after_its_values_and_placed_by_its_own_lines() -> None:
    text = with_body('%sum_12 = "arith.addi"(%n, %i) : (i32, i32) -> i32\n"tt.store"(%x, %sum_12) : (i32, i32) -> ()')
    bare = re.sub(r" loc\(.*?\)$", "", text, flags=re.MULTILINE)
    kernel = converted(bare)
    assert [(op.name, op.source) for op in kernel.loop.body] == [("sum", "k.mlir:11"), ("store", "k.mlir:12")]
    assert kernel.before[0].name == "c0"
