"""Bodies of ops with their wiring: converted from MLIR, printed, read back, and checked."""

from __future__ import annotations

import pytest
from frontend_data import FILES, captured

from twillgpu.errors import InputError
from twillgpu.frontend.check import all_ops
from twillgpu.frontend.convert import ConvertOptions, convert
from twillgpu.frontend.generic import parse_generic
from twillgpu.frontend.kernel import KernelOp
from twillgpu.frontend.text import parse_kernel, print_kernel

HEAD = 'kernel k\ntarget sm_80\nwarps 4\nfile ""\nargument n: scalar<i32>\nargument x: scalar<f32>\nbefore\n'
TAIL = "\nloop l: i: scalar<i32> in range(n, n, n)\nafter\n"
LOOP = """  c0 = arith.constant() {value = 0 : i32} -> scalar<i32>
  total = scf.for(c0, n, n, x) body [arith.addf, scf.yield] region(at: scalar<i32>, sum: scalar<f32>)
    reads(step: scalar<f32> = 3) {
    next = arith.addf(sum, step) -> scalar<f32>
  } yields(next) -> scalar<f32>"""

ARGMAX = """"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<8xf32>, tensor<8xi32>, i32) -> (), sym_name = "k"}> ({
  ^bb0(%x: tensor<8xf32>, %at: tensor<8xi32>, %n: i32):
    %m:2 = "tt.reduce"(%x, %at) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %ia: i32, %b: f32, %ib: i32):
      %more = "arith.cmpf"(%a, %b) <{fastmath = #arith.fastmath<none>, predicate = 2 : i64}> : (f32, f32) -> i1
      %v = "arith.select"(%more, %a, %b) : (i1, f32, f32) -> f32
      %i = "arith.select"(%more, %ia, %ib) : (i1, i32, i32) -> i32
      "tt.reduce.return"(%v, %i) : (f32, i32) -> ()
    }) : (tensor<8xf32>, tensor<8xi32>) -> (f32, i32)
    %big = "scf.if"(%cond) ({
      %inner = "scf.for"(%n, %n, %n, %m#0) ({
      ^bb0(%j: i32, %c: f32):
        %d = "arith.addf"(%c, %m#0) : (f32, f32) -> f32
        "scf.yield"(%d) : (f32) -> ()
      }) : (i32, i32, i32, f32) -> f32
      "scf.yield"(%inner) : (f32) -> ()
    }, {
      "scf.yield"(%m#0) : (f32) -> ()
    }) : (i1) -> f32
    "scf.for"(%n, %n, %n) ({
    ^bb0(%k: i32):
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80"} : () -> ()
""".replace(
    '%big = "scf.if"(%cond)', '%cond = "arith.constant"() <{value = true}> : () -> i1\n    %big = "scf.if"(%cond)'
)


def op_of(name: str, opcode: str) -> KernelOp:
    return next(op for op in all_ops(captured(name)) if op.opcode == opcode)


def test_a_loop_kept_whole_has_its_body_with_values_from_outside() -> None:
    op = op_of("rms_norm_sm_90a_triton39.mlir", "scf.for")
    (region,) = op.regions
    assert [argument.name for argument in region.arguments[:2]] == ["start", "squares"]
    outside = [op.operands[place] for place in region.captures]
    assert outside == [argument.name for argument in region.arguments[2:]]
    assert tuple(inner.opcode for inner in region.ops) == op.body[:-1]
    assert region.yielded == (region.ops[-1].results[0].name,)
    assert all(inner.source.startswith("rms_norm.py:") for inner in region.ops)


def test_a_combine_function_of_one_op_needs_no_wiring() -> None:
    op = op_of("rms_norm_sm_90a_triton39.mlir", "tt.reduce")
    assert (op.body, op.regions) == (("arith.addf",), ())


@pytest.mark.parametrize("name", FILES)
def test_text_with_bodies_reads_back(name: str) -> None:
    kernel = captured(name)
    assert parse_kernel(print_kernel(kernel)) == kernel


def test_a_combine_function_of_several_ops_and_nested_control_flow() -> None:
    kernel = convert(parse_generic(ARGMAX, where="k.mlir"), ConvertOptions(where="k.mlir"))
    reduce, _, branch = kernel.before
    (region,) = reduce.regions
    assert [inner.opcode for inner in region.ops] == ["arith.cmpf", "arith.select", "arith.select"]
    assert len(region.arguments) == 4
    assert len(region.yielded) == 2
    then, otherwise = branch.regions
    (loop,) = then.ops
    assert loop.operands == ("n", "n", "n", "m")
    assert [branch.operands[place] for place in then.captures] == ["n", "m"]
    assert loop.regions[0].captures == (3,)
    assert (otherwise.ops, otherwise.yielded) == ((), ("m",))
    assert parse_kernel(print_kernel(kernel)) == kernel


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("= 3)", "= 0)", "the region of op total reads 'step' from operand 0, which is no such value"),
        ("= 3)", "= 7)", "the region of op total reads 'step' from operand 7, which is no such value"),
        ("yields(next)", "yields(n)", "the region of op total reads 'n', which is not defined before it"),
        ("addf(sum, step)", "addf(sum, x)", "op next reads 'x', which is not defined before it"),
        ("step: scalar<f32>", "at: scalar<f32>", "the region of op total defines 'at' twice"),
    ],
)
def test_a_body_that_is_not_closed_is_refused(old: str, new: str, message: str) -> None:
    parse_kernel(HEAD + LOOP + TAIL)
    with pytest.raises(InputError) as caught:
        parse_kernel(HEAD + LOOP.replace(old, new) + TAIL)
    assert message in str(caught.value)
