"""Movement between registers, SMEM, TMEM and global memory."""

import pytest
from cost_works import (
    A100,
    B200,
    H100,
    ROW,
    WGMMA,
    cost,
    held,
    memory,
    registers,
    smem,
    times,
    tmem,
    work,
)

from twillgpu.errors import InputError

TILE16 = registers((128, 128), ROW, "f16")
BLOCKED = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>"
OPERAND = f"#ttg.dot_op<{{opIdx = 0, parent = {WGMMA}, kWidth = 2}}>"


def test_a_store_to_shared_memory_at_128_bytes_per_cycle() -> None:
    # 32 KB / 128 = 256 cycles, of the port a quarter for four times as long; 64 warp instructions of 512 bytes in
    # 1024 slots: less than a share
    price = cost(H100, work("ttg.local_store", (TILE16, smem(128, 128))))
    assert held(price) == {"smem_port": (1024, 2), "issue": (256, 1)}
    assert times(price) == (256, 256 + 30)


def test_a_load_from_shared_memory_reads_every_copy() -> None:
    assert held(cost(H100, work("ttg.local_load", (smem(128, 128),), (TILE16,))))["smem_port"] == (1024, 2)
    # one row of 128 x f32 that every thread of 4 warps holds: 128 x 128 x 4 bytes / 128
    row = registers((128,), "#ttg.slice<{dim = 0, parent = " + ROW + "}>")
    assert held(cost(H100, work("ttg.local_load", (smem(128, dtype="f32"),), (row,))))["smem_port"] == (2048, 2)


def test_an_allocation_stores_its_source_if_it_has_one() -> None:
    assert held(cost(H100, work("ttg.local_alloc", (TILE16,), (smem(128, 128),))))["smem_port"] == (1024, 2)
    assert cost(H100, work("ttg.local_alloc", (), (smem(128, 128),))).uses == ()


def test_a_change_of_layout_goes_through_shared_memory() -> None:
    # 32 KB there, 32 KB back, a barrier between
    price = cost(H100, work("ttg.convert_layout", (TILE16,), (registers((128, 128), BLOCKED, "f16"),)))
    assert held(price)["smem_port"] == (2048, 2)
    assert times(price) == (512, 512 + 2 * 30 + 30)


def test_an_accumulator_is_already_the_operand_of_the_next_product() -> None:
    source, target = registers((64, 128), WGMMA, "f16"), registers((64, 128), OPERAND, "f16")
    assert cost(H100, work("ttg.convert_layout", (source,), (target,))).uses == ()


def test_a_gather_goes_through_shared_memory() -> None:
    assert held(cost(H100, work("tt.gather", (TILE16, TILE16), (TILE16,))))["smem_port"] == (2048, 2)


def test_tensor_memory_at_512_bytes_per_cycle() -> None:
    # 64 KB / 512 = 128 cycles, and 41 until the wait is over
    price = cost(B200, work("ttng.tmem_load", (tmem(128, 128),), (registers((128, 128), ROW),)))
    assert held(price) == {"tmem_port": (128, 1)}
    assert times(price) == (169, 169)


def test_a_store_to_tensor_memory() -> None:
    # 32 KB: 64 cycles of the port, 96 in all; measured 64 to 96
    price = cost(B200, work("ttng.tmem_store", (TILE16, tmem(128, 128, dtype="f16"))))
    assert held(price) == {"tmem_port": (64, 1)}
    assert times(price) == (96, 96)
    assert cost(B200, work("ttng.tmem_alloc", (TILE16,), (tmem(128, 128, dtype="f16"),))).uses == price.uses
    assert cost(B200, work("ttng.tmem_alloc", (), (tmem(128, 128),))).uses == ()


@pytest.mark.parametrize(
    ("tile", "engine", "latency"),
    [
        (smem(64, 64), 48, 460 + 48),  # 8 KB in one instruction
        (smem(128, 128), 192, 460 + 192 + 240),  # 32 KB; rows of 256 bytes are two boxes
        (smem(64, 512), 384, 460 + 384 + 480),  # eight boxes: two of them add latency
        (smem(1, 64), 1, 461),  # 128 bytes still take a cycle
    ],
)
def test_a_tma_load(tile: object, engine: int, latency: int) -> None:
    price = cost(H100, work("tt.descriptor_load", (), (tile,)), warps=1)  # type: ignore[arg-type]
    assert held(price) == {"tma": (engine, 1)}
    assert times(price) == (30, latency)
    assert price.asynchronous
    assert price.signals


@pytest.mark.parametrize("opcode", ["tt.descriptor_store", "tt.descriptor_reduce"])
def test_a_tma_store_drains_at_52_cycles_per_kb(opcode: str) -> None:
    price = cost(B200, work(opcode, (memory("descriptor", (128, 128)), smem(128, 128))), warps=1)
    assert held(price) == {"tma": (192, 1)}
    assert times(price) == (30, 130 + 52 * 32)
    assert price.asynchronous
    assert not price.signals


def test_a_tma_store_of_nothing() -> None:
    with pytest.raises(InputError, match=r"tt.descriptor_store: it has no tile to store; give the op a cost"):
        cost(B200, work("tt.descriptor_store", (memory("descriptor", (128, 128)),)), warps=1)


def test_cp_async_moves_16_bytes_per_thread() -> None:
    # 32 KB: 64 warp instructions, one a cycle; 256 cycles of the SMEM port; 512 of the path to L2 at 64 bytes
    price = cost(
        A100, work("ttg.async_copy_global_to_local", (registers((128, 128), "", "ptr<f16>"),), (smem(128, 128),))
    )
    assert held(price) == {"issue": (64, 2), "smem_port": (1024, 2)}
    assert times(price) == (64, 570 + 512)
    assert price.asynchronous
    assert price.signals


def test_a_load_into_registers_does_not_signal() -> None:
    price = cost(H100, work("tt.load", (registers((128, 128), "", "ptr<f16>"),), (TILE16,)))
    assert held(price) == {"issue": (64, 2), "smem_port": (1024, 2)}
    assert times(price) == (64, 690 + 512)
    assert price.asynchronous
    assert not price.signals


def test_a_store_to_global_memory_is_gone_when_it_is_on_its_way() -> None:
    price = cost(H100, work("tt.store", (registers((128, 128), "", "ptr<f16>"), TILE16)))
    assert times(price) == (512, 512)
    assert not price.asynchronous


def test_atomics_are_slow() -> None:
    # 16384 elements at 16 per cycle, and the way to L2 and back; 64 KB of the port in 512 cycles
    tile = registers((128, 128), ROW)
    price = cost(H100, work("tt.atomic_rmw", (registers((128, 128), "", "ptr<f32>"), tile), (tile,)))
    assert held(price) == {"smem_port": (2048, 2)}
    assert times(price) == (1024, 1024 + 281)
