"""Tensor core ops: occupancy, share of the SMEM port, latency, from the formulas of docs/machines.md."""

import pytest
from cost_works import A100, B200, H100, cost, held, registers, smem, times, tmem, work

from twillgpu.costs.pricing import Price
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import TileType


def wgmma(a: TileType, b: TileType, warps: int = 4) -> Price:
    acc = registers((a.shape[0], b.shape[1]))
    return cost(H100, work("ttng.warp_group_dot", (a, b, acc), (acc,)), warps=warps)


def tcgen05(a: TileType, b: TileType) -> Price:
    return cost(B200, work("ttng.tc_gen5_mma", (a, b, tmem(a.shape[0], b.shape[1]))), warps=1)


def test_wgmma_takes_half_a_cycle_per_column_and_16_of_k() -> None:
    # 64 x 128 x 128: 8 instructions of 64 cycles; each reads (64 + 128) x 32 bytes in 48 cycles: 6 of 8 shares
    price = wgmma(smem(64, 128), smem(128, 128))
    assert held(price) == {"tensor": (512, 1), "smem_port": (512, 6)}
    assert times(price) == (16, 512 + 32)
    assert price.asynchronous
    assert not price.signals


def test_wgmma_with_a_in_registers_reads_b_only() -> None:
    # 128 x 32 bytes in 32 of 64 cycles
    assert held(wgmma(registers((64, 128), dtype="f16"), smem(128, 128)))["smem_port"] == (512, 4)


def test_wgmma_with_few_columns_waits_for_shared_memory() -> None:
    # m64n16k16: 8 cycles of tensor core, but (64 + 16) x 32 / 128 = 20 cycles of SMEM
    assert held(wgmma(smem(64, 16), smem(16, 16))) == {"tensor": (20, 1), "smem_port": (20, 8)}


def test_a_whole_tile_is_one_product_for_each_warpgroup() -> None:
    assert held(wgmma(smem(128, 128), smem(128, 128), warps=8))["tensor"] == (1024, 1)


def test_wider_than_one_instruction() -> None:
    # N = 512: two instructions of 256 columns, 128 cycles each
    assert held(wgmma(smem(64, 16), smem(16, 512)))["tensor"] == (256, 1)


@pytest.mark.parametrize(
    ("dtype", "k", "cycles"),
    [
        ("bf16", 128, 512),
        ("f8E4M3FN", 128, 256),  # twice the rate, 32 of K an instruction
        ("f32", 128, 1024),  # tf32: half the rate
        ("i8", 128, 256),
    ],
)
def test_the_rate_of_element_types(dtype: str, k: int, cycles: int) -> None:
    assert held(wgmma(smem(64, k, dtype=dtype), smem(k, 128, dtype=dtype)))["tensor"] == (cycles, 1)


def test_tcgen05_from_shared_memory() -> None:
    # 128x128x128: 8 instructions every 64 cycles, SMEM (128 + 128) x 32 / 128 = 64 of them; the last completes after
    # 128 / 2 + 136
    price = tcgen05(smem(128, 128), smem(128, 128))
    assert held(price) == {"tensor": (512, 1), "smem_port": (512, 8)}
    assert times(price) == (12, 648)
    assert price.asynchronous
    assert price.signals


def test_tcgen05_with_a_in_tensor_memory() -> None:
    price = tcgen05(tmem(128, 128, dtype="f16"), smem(128, 128))
    assert held(price) == {"tensor": (512, 1), "smem_port": (512, 4)}
    assert price.latency_cycles == 7 * 64 + 64 + 104


def test_tcgen05_with_few_columns_waits_for_shared_memory() -> None:
    # N 64: 32 cycles of tensor core, (128 + 64) x 32 / 128 = 48 of SMEM; 4 instructions
    price = tcgen05(smem(128, 64), smem(64, 64))
    assert held(price) == {"tensor": (192, 1), "smem_port": (192, 8)}
    assert price.latency_cycles == 3 * 48 + 32 + 136


def test_tcgen05_with_64_rows_runs_at_half_rate() -> None:
    # as long as 128 rows; (64 + 128) x 32 / 128 = 48 of 64 cycles of SMEM
    price = tcgen05(smem(64, 64), smem(64, 128))
    assert held(price) == {"tensor": (256, 1), "smem_port": (256, 6)}
    assert price.latency_cycles == 3 * 64 + 64 + 120


def test_mma_sync_keeps_its_warps_busy() -> None:
    # 2 x 128 x 128 x 64 / 2048 = 1024 cycles; 512 instructions of m16n8k16 of 4096 issue slots: one eighth
    operands = (registers((128, 64), dtype="f16"), registers((64, 128), dtype="f16"), registers((128, 128)))
    price = cost(A100, work("tt.dot", operands, (registers((128, 128)),)), warps=8)
    assert held(price) == {"tensor": (1024, 1), "issue": (1024, 1)}
    assert times(price) == (1024, 1024 + 33)
    assert not price.asynchronous


def test_element_types_without_a_rate() -> None:
    with pytest.raises(InputError, match=r"op x \(k.py:3\): ttng.warp_group_dot: no tensor core rate for f64; use"):
        wgmma(smem(64, 16, dtype="f64"), smem(16, 16, dtype="f64"))


def test_shapes_that_do_not_multiply() -> None:
    with pytest.raises(InputError, match=r"ttng.tc_gen5_mma: operands of \(128, 64\) and \(128, 64\) elements; mult"):
        tcgen05(smem(128, 64), smem(128, 64))


def test_a_missing_operand() -> None:
    with pytest.raises(InputError, match=r"ttng.warp_group_dot: operand 1 is missing; give the op a cost"):
        cost(H100, work("ttng.warp_group_dot", (smem(64, 16),)))
