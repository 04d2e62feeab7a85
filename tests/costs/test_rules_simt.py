"""Streams of instructions on registers: 4 warp instructions per cycle, of which the pipes take some."""

import pytest
from cost_works import (
    A100,
    ACROSS,
    B200,
    H100,
    ROW,
    WGMMA,
    cost,
    held,
    reduction,
    registers,
    rows_of,
    same,
    times,
    work,
)

from twillgpu.errors import InputError
from twillgpu.graph.record import Use
from twillgpu.machine.record import Machine

TILE = registers((128, 128), ROW)
HALF = registers((64, 128), WGMMA)


@pytest.mark.parametrize(("machine", "tile", "cycles"), [(H100, HALF, 64), (H100, TILE, 128), (B200, TILE, 128)])
def test_an_elementwise_pass_runs_at_the_issue_rate(machine: Machine, tile: object, cycles: int) -> None:
    # 64 x 128 or 128 x 128 elements at 128 lanes per cycle; all shares of the issue port but the one of MUFU
    price = cost(machine, same("arith.mulf", tile))  # type: ignore[arg-type]
    assert held(price) == {"issue": (cycles, 7)}
    assert times(price) == (cycles, cycles)
    assert not price.asynchronous


def test_fp32_on_a100_has_half_the_lanes() -> None:
    assert held(cost(A100, same("arith.addf", TILE))) == {"issue": (256, 4), "fp32": (256, 1)}


def test_compare_and_integer_run_at_half_the_issue_rate() -> None:
    # 16384 / 64 lanes; every other slot of each sub-partition
    assert held(cost(H100, same("arith.maxnumf", TILE))) == {"issue": (256, 4), "alu": (256, 1)}


def test_a_packed_conversion_takes_half_an_instruction_per_element() -> None:
    # 16384 x 0.5 / 64 lanes = 128 cycles, 256 warp instructions
    convert = work("arith.truncf", (TILE,), (registers((128, 128), ROW, "f16"),))
    assert held(cost(B200, convert)) == {"issue": (128, 4), "alu": (128, 1)}


@pytest.mark.parametrize(("machine", "tile", "cycles"), [(H100, HALF, 512), (B200, TILE, 1024), (A100, TILE, 1024)])
def test_exponentials_hold_their_unit_eight_times_as_long_as_they_issue(
    machine: Machine, tile: object, cycles: int
) -> None:
    # 16 lanes per cycle; one issue slot in eight
    price = cost(machine, same("math.exp2", tile))  # type: ignore[arg-type]
    assert held(price) == {"issue": (cycles, 1), "mufu": (cycles, 1)}
    assert times(price) == (cycles, cycles)


def test_extra_instructions_go_to_the_issue_port() -> None:
    # exp: 1 MUFU + 4 others, 5 x 256 warp instructions over 512 cycles x 4: 5 of 8
    assert held(cost(H100, same("math.exp", HALF))) == {"issue": (512, 5), "mufu": (512, 1)}


def test_many_extra_instructions_last_longer_than_the_special_function() -> None:
    # erf: 28 instructions per element, 28 x 256 / 4 = 1792 cycles
    assert held(cost(H100, same("math.erf", HALF))) == {"issue": (1792, 7), "mufu": (512, 1)}


def test_64_bit_elements_take_twice_as_long() -> None:
    wide = registers((128, 128), ROW, "i64")
    assert held(cost(H100, same("arith.addi", wide))) == {"issue": (512, 4), "alu": (512, 1)}


def test_fewer_warps_use_their_own_sub_partitions_only() -> None:
    # one warp: 32 lanes per cycle, a quarter of the issue port
    assert held(cost(H100, same("arith.mulf", registers((128, 128))), warps=1)) == {"issue": (512, 2)}


def test_a_row_per_thread_is_bound_by_latency() -> None:
    # 128 elements, one a thread: one cycle of issue, 4 until the result; the port is as good as free
    row = rows_of((128,), ROW)
    price = cost(B200, same("arith.mulf", row))
    assert (price.uses, times(price)) == ((), (1, 4))
    # ex2 of it: 128 / 16 = 8 cycles of MUFU, 24 until the result
    price = cost(B200, same("math.exp2", row))
    assert (price.uses, times(price)) == ((Use(unit="mufu", cycles=8),), (8, 24))


def test_copies_of_a_row_in_four_lanes_are_computed_four_times() -> None:
    # 64 rows, two a thread of 128: 256 lane operations, not 64: 256 / 16 = 16 cycles
    price = cost(H100, same("math.exp2", rows_of((64,), WGMMA)))
    assert price.uses == (Use(unit="mufu", cycles=16),)


def test_a_maximum_along_a_row_of_one_thread() -> None:
    # B200 takes three operands at once: 16384 x 0.5 / 64 = 128 cycles; two last levels of the tree, 4 cycles each
    price = cost(B200, reduction(TILE, rows_of((128,), ROW), "arith.maxnumf"))
    assert held(price) == {"issue": (128, 4), "alu": (128, 1)}
    assert times(price) == (128, 128 + 8)


def test_a_sum_along_a_row_of_one_thread() -> None:
    price = cost(B200, reduction(TILE, rows_of((128,), ROW), "arith.addf"))
    assert held(price) == {"issue": (128, 7)}
    assert times(price) == (128, 128 + 8)


def test_a_row_over_four_lanes_needs_two_shuffles() -> None:
    # 8192 / 64 = 128 cycles of max; then twice: 2 rows x 128 threads at 32 lanes per cycle = 8, shuffle 24, max 4
    price = cost(H100, reduction(HALF, rows_of((64,), WGMMA), "arith.maxnumf"))
    assert held(price) == {"issue": (128, 4), "alu": (128, 1)}
    assert times(price) == (128 + 2 * 8, 128 + 8 + 2 * (8 + 24 + 4))


def test_a_row_over_the_warps_goes_through_shared_memory() -> None:
    # 1 x 512: 4 elements a thread, 5 shuffle steps of one value a thread (4 cycles each), then SMEM
    tile = registers((1, 512), ACROSS)
    price = cost(H100, reduction(tile, rows_of((1,), ACROSS), "arith.addf"))
    shuffles = 5 * (24 + 4 + 4)
    exchange = 2 * (128 * 4 / 128) + 2 * 30 + 30 + 4
    assert price.latency_cycles == 4 + 8 + shuffles + exchange
    assert price.issue_cycles == 4 + 5 * 4 + 2 * 4


def test_a_reduction_with_its_position_combines_all_its_opcodes() -> None:
    # arg max: a comparison and two selections per element, 3 x 16384 / 64
    tiles = (TILE, registers((128, 128), ROW, "i32"))
    body = ("arith.cmpf", "arith.select", "arith.select")
    price = cost(B200, work("tt.reduce", tiles, (rows_of((128,), ROW),), body, axis=1))
    assert held(price) == {"issue": (768, 4), "alu": (768, 1)}


def test_fused_work_is_free() -> None:
    multiply = work("arith.mulf", (TILE, TILE), (TILE,), fused=True)
    assert held(cost(B200, multiply, same("arith.subf", TILE))) == {"issue": (128, 7)}


def test_a_chain_is_one_op_after_the_other() -> None:
    price = cost(B200, same("arith.subf", TILE), same("math.exp2", TILE))
    assert price.uses == (
        Use(unit="issue", cycles=128, amount=7),
        Use(unit="mufu", cycles=1024, offset=128),
        Use(unit="issue", cycles=1024, offset=128),
    )
    assert times(price) == (1152, 1152)


def test_renaming_is_free() -> None:
    price = cost(H100, work("tt.broadcast", (rows_of((64,), WGMMA),), (HALF,)))
    assert (price.uses, times(price)) == ((), (0, 0))


def test_scalars_are_free() -> None:
    price = cost(H100, work("arith.addi", (), ()))
    assert (price.uses, times(price)) == ((), (0, 0))


def test_a_combine_function_without_a_price() -> None:
    with pytest.raises(InputError) as caught:
        cost(H100, reduction(HALF, rows_of((64,), WGMMA), "math.exp2"))
    assert str(caught.value) == (
        "op x (k.py:3): tt.reduce: its combine function has math.exp2; give the op a cost in a graph file"
    )


@pytest.mark.parametrize(
    ("axis", "said"), [(None, "it has no axis; give the op a cost"), (2, "axis 2 is not one of its 2 dimensions;")]
)
def test_a_reduction_without_a_good_axis(axis: int | None, said: str) -> None:
    with pytest.raises(InputError, match=rf"op x \(k.py:3\): tt.reduce: {said}"):
        cost(H100, work("tt.reduce", (HALF,), (HALF,), ("arith.addf",), axis))


def test_an_unknown_element_type() -> None:
    with pytest.raises(InputError, match=r"op x \(k.py:3\): arith.mulf: unknown element type 'complex'; give the op"):
        cost(H100, same("arith.mulf", registers((64, 128), dtype="complex")))
