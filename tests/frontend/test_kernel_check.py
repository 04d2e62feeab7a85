"""Kernels that are not well-formed: each is refused with the op and the value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from frontend_data import FILES, captured

from twillgpu.errors import InputError
from twillgpu.frontend.check import check_kernel
from twillgpu.frontend.kernel import Kernel, KernelOp, KernelValue, TileType

TILE = TileType(space="registers", shape=(128, 128), dtype="f32")


@pytest.fixture
def kernel() -> Kernel:
    return captured("attention_fwd_sm_90a_triton39.mlir")


def with_body(kernel: Kernel, *ops: KernelOp) -> Kernel:
    return replace(kernel, loop=replace(kernel.loop, body=(*kernel.loop.body, *ops)))


def made(opcode: str, operands: tuple[str, ...], kind: TileType = TILE, **attributes: str) -> KernelOp:
    result = KernelValue(name="new", type=kind)
    return KernelOp(
        name="new", opcode=opcode, operands=operands, results=(result,), attributes=tuple(sorted(attributes.items()))
    )


def refused(kernel: Kernel) -> str:
    with pytest.raises(InputError) as caught:
        check_kernel(kernel, where="k")
    return str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_captured_kernels_are_well_formed(name: str) -> None:
    check_kernel(captured(name))


def test_a_value_that_is_not_defined(kernel: Kernel) -> None:
    message = refused(with_body(kernel, made("arith.addf", ("p", "nowhere"))))
    assert message.startswith("k: op new reads 'nowhere', which is not defined before it")


def test_a_value_of_the_body_is_not_visible_after_the_loop(kernel: Kernel) -> None:
    broken = replace(kernel, after=(*kernel.after, made("math.exp2", ("p",))))
    assert refused(broken).startswith("k: op new reads 'p', which is not defined before it")


def test_an_op_and_a_value_defined_twice(kernel: Kernel) -> None:
    twice = replace(made("math.exp2", ("p",)), name="p")
    assert refused(with_body(kernel, twice)).startswith("k: the op 'p' is defined twice")
    value = replace(made("math.exp2", ("p",)), results=(KernelValue(name="qk", type=TILE),))
    assert refused(with_body(kernel, value)).startswith("k: the value 'qk' is defined twice")


def test_a_carried_value_of_another_type(kernel: Kernel) -> None:
    first, *others = kernel.loop.carried
    broken = replace(first, yielded="p")
    message = refused(replace(kernel, loop=replace(kernel.loop, carried=(broken, *others))))
    assert message.startswith("k: the carried value 'm_i_prev' has type")
    undefined = replace(first, initial="nowhere")
    message = refused(replace(kernel, loop=replace(kernel.loop, carried=(undefined, *others))))
    assert message.startswith("k: carried value m_i_prev reads 'nowhere'")


def test_a_loop_bound_that_is_not_defined(kernel: Kernel) -> None:
    message = refused(replace(kernel, loop=replace(kernel.loop, upper="nowhere")))
    assert message.startswith("k: loop loop_start_n reads 'nowhere'")


ROW = TileType(space="registers", shape=(128,), dtype="f32")
COLUMN = TileType(space="registers", shape=(128, 1), dtype="f32")


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        (made("arith.addf", ("p", "alpha")), "operands p [128, 128], alpha [128] and results [128, 128]"),
        (made("math.exp2", ("p",), ROW), "operands p [128, 128] and results [128]"),
        (made("tt.reduce", ("p",), TILE, axis="1 : i32"), "operands p [128, 128] and results [128, 128]"),
        (made("tt.reduce", ("p",), ROW, axis="2 : i32"), "operands p [128, 128] and results [128]"),
        (made("tt.expand_dims", ("alpha",), ROW, axis="1 : i32"), "operands alpha [128] and results [128]"),
        (made("tt.broadcast", ("alpha",), TILE), "operands alpha [128] and results [128, 128]"),
        (made("ttg.convert_layout", ("p",), COLUMN), "operands p [128, 128] and results [128, 1]"),
        (made("tt.trans", ("p",), COLUMN), "operands p [128, 128] and results [128, 1]"),
        (made("ttng.warp_group_dot", ("p", "p", "alpha")), "alpha [128] and results [128, 128]"),
        (made("ttng.warp_group_dot", ("p", "p", "p"), ROW), "p [128, 128] and results [128]"),
    ],
    ids=lambda value: value.opcode if isinstance(value, KernelOp) else "",
)
def test_shapes_that_do_not_fit(kernel: Kernel, op: KernelOp, shapes: str) -> None:
    message = refused(with_body(kernel, op))
    assert message.startswith(f"k: op new ({op.opcode}) has ")
    assert shapes in message
