"""Ops on memory: pointers, atomics, descriptors, tiles in SMEM and TMEM and their views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from run_op import TOKEN, run_op, tile

from twillgpu.emulate.memory import AccessError, Descriptor, GlobalMemory, MemDesc
from twillgpu.emulate.numbers import Array, format_of
from twillgpu.errors import InputError, UnsupportedError
from twillgpu.frontend.kernel import TileType

RANDOM = np.random.default_rng(23)


def memory_with(values: Array, dtype: str = "f32") -> tuple[GlobalMemory, int]:
    memory = GlobalMemory()
    return memory, memory.add("x_ptr", dtype, format_of(dtype).encode(values))


def contents(memory: GlobalMemory, address: int) -> Array:
    return memory.contents(address)


POINTERS = tile("ptr<f32>", 4)


def test_pointers_move_by_elements_and_load_and_store() -> None:
    memory, base = memory_with(np.arange(8, dtype=np.float32))
    tiles = run_op("tt.splat", [(np.int64(base), tile("ptr<f32>", space="global"))], [POINTERS])
    index = np.array([0, 2, 4, 6], np.int32)
    at = run_op("tt.addptr", [(tiles, POINTERS), (index, tile("i32", 4))], [POINTERS])
    assert (at - base).tolist() == [0, 8, 16, 24]
    f32 = tile("f32", 4)
    assert run_op("tt.load", [(at, POINTERS)], [f32], memory=memory).tolist() == [0, 2, 4, 6]
    run_op("tt.store", [(at, POINTERS), (np.full(4, 9, np.float32), f32)], [], memory=memory)
    assert contents(memory, base).tolist() == [9, 1, 9, 3, 9, 5, 9, 7]
    scalar = tile("ptr<f32>", space="global")
    one = run_op("tt.addptr", [(np.int64(base), scalar), (np.int32(3), tile("i32"))], [scalar])
    assert float(run_op("tt.load", [(one, scalar)], [tile("f32")], memory=memory)) == 3


def test_masked_lanes_touch_nothing() -> None:
    memory, base = memory_with(np.arange(4, dtype=np.float32))
    at = base + 4 * np.array([0, 1, 2, 1000])
    mask, other = (np.array([1, 0, 1, 0], np.bool_), tile("i1", 4)), (np.full(4, 7, np.float32), tile("f32", 4))
    operands = [(at, POINTERS), mask]
    assert run_op("tt.load", operands, [tile("f32", 4)], memory=memory).tolist() == [0, 0, 2, 0]
    segments = "array<i32: 1, 1, 1>"
    found = run_op("tt.load", [*operands, other], [tile("f32", 4)], memory=memory, operandSegmentSizes=segments)
    assert found.tolist() == [0, 7, 2, 7]
    run_op("tt.store", [(at, POINTERS), other, mask], [], memory=memory)
    assert contents(memory, base).tolist() == [7, 1, 7, 3]
    assert not memory.load(at, np.zeros(4, np.bool_), "f32").any()


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (16, "reads element 4 of x_ptr, which has 4 elements; mask the access, or give larger tensors"),
        (2, "reads x_ptr at an address that is no multiple of 4 bytes"),
        (-4, "reads memory through a pointer into no tensor"),
    ],
)
def test_an_access_outside_is_an_error_with_the_source_line(offset: int, message: str) -> None:
    memory, base = memory_with(np.zeros(4, np.float32))
    with pytest.raises(InputError) as caught:
        run_op("tt.load", [(np.full(4, base + offset), POINTERS)], [tile("f32", 4)], memory=memory)
    assert str(caught.value).startswith("kernel.py:7: in block (1, 2, 3), tt.load at op ")
    assert message in str(caught.value)


def test_an_access_below_the_second_tensor_is_not_in_the_first() -> None:
    memory, _ = memory_with(np.zeros(4, np.float32))
    second = memory.add("y_ptr", "f32", np.zeros(4, np.float32))
    with pytest.raises(AccessError, match="reads before the start of the next tensor of x_ptr"):
        memory.load(np.array([second - 4]), None, "f32")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(1, 5 & 3), (2, 5 | 3), (3, 5 ^ 3), (4, 8), (6, 5), (7, 3), (8, 5), (9, 3), (10, 3)],
)
def test_atomics_return_the_old_value(kind: int, expected: int) -> None:
    memory, base = memory_with(np.array([5, 6], np.int32), "i32")
    pointer = (np.array([base]), tile("ptr<i32>", 1))
    operand = (np.array([3], np.int32), tile("i32", 1))
    old = run_op("tt.atomic_rmw", [pointer, operand], [tile("i32", 1)], memory=memory, atomic_rmw_op=f"{kind} : i32")
    assert old.tolist() == [5]
    assert contents(memory, base).tolist() == [expected, 6]


def test_atomics_to_one_address_happen_one_after_another() -> None:
    memory, base = memory_with(np.zeros(2, np.float32))
    pointer = (np.full(4, base), POINTERS)
    operand = (np.array([1, 2, 3, 4], np.float32), tile("f32", 4))
    mask = (np.array([1, 1, 0, 1], np.bool_), tile("i1", 4))
    found = run_op(
        "tt.atomic_rmw", [pointer, operand, mask], [tile("f32", 4)], memory=memory, atomic_rmw_op="5 : i32"
    )
    assert found.tolist() == [0, 1, 0, 3]
    assert contents(memory, base).tolist() == [7, 0]


def test_compare_and_swap() -> None:
    memory, base = memory_with(np.array([1, 2, 3, 4], np.int32), "i32")
    pointer = (base + 4 * np.arange(4), tile("ptr<i32>", 4))
    i32 = tile("i32", 4)
    compare, new = (np.array([1, 9, 3, 9], np.int32), i32), (np.full(4, 7, np.int32), i32)
    old = run_op("tt.atomic_cas", [pointer, compare, new], [i32], memory=memory)
    assert old.tolist() == [1, 2, 3, 4]
    assert contents(memory, base).tolist() == [7, 2, 7, 4]
    assert run_op("tt.atomic_load", [pointer], [i32], memory=memory).tolist() == [7, 2, 7, 4]
    assert run_op("tt.atomic_poll", [pointer, new], [tile("i1", 4)], memory=memory).tolist() == [True, False] * 2


I32 = tile("i32")


def described(values: Array, dtype: str = "f32", **more: Any) -> tuple[GlobalMemory, int, Descriptor]:
    memory, base = memory_with(values, dtype)
    descriptor = Descriptor(address=base, shape=values.shape, strides=(values.shape[1], 1), dtype=dtype, **more)
    return memory, base, descriptor


BLOCK = TileType(space="descriptor", shape=(2, 4), dtype="f32")


@pytest.mark.parametrize("pad_nan", [False, True])
def test_a_tma_load_fills_what_is_outside(pad_nan: bool) -> None:
    values = np.arange(15, dtype=np.float32).reshape(3, 5)
    memory, _, descriptor = described(values, pad_nan=pad_nan)
    operands = [(descriptor, BLOCK), (np.int32(2), I32), (np.int32(-1), I32)]
    found = run_op("tt.descriptor_load", operands, [tile("f32", 2, 4)], memory=memory)
    pad = np.nan if pad_nan else 0
    assert np.array_equal(found, [[pad, 10, 11, 12], [pad] * 4], equal_nan=True)


def test_a_tma_store_and_reduction_drop_what_is_outside() -> None:
    memory, base, descriptor = described(np.zeros((3, 5), np.float32))
    ones = np.ones((2, 4), np.float32)
    operands = [(descriptor, BLOCK), (ones, tile("f32", 2, 4)), (np.int32(2), I32), (np.int32(3), I32)]
    run_op("tt.descriptor_store", operands, [], memory=memory)
    for _ in range(2):
        run_op("tt.descriptor_reduce", operands, [], memory=memory, kind="1 : i32")
    expected = np.zeros((3, 5))
    expected[2, 3:] = 3
    assert np.array_equal(contents(memory, base).reshape(3, 5), expected)


@pytest.mark.parametrize(
    ("kind", "expected"), [(1, [8, 3]), (2, [3, 0]), (3, [5, 3]), (4, [0, 1]), (5, [3, 3]), (6, [1, 0]), (8, [6, 3])]
)
def test_kinds_of_reduction(kind: int, expected: list[int]) -> None:
    memory, base, descriptor = described(np.array([[5, 0]], np.int32), "i32")
    block = TileType(space="descriptor", shape=(1, 2), dtype="i32")
    operands = [(descriptor, block), (np.full((1, 2), 3, np.int32), tile("i32", 1, 2))]
    operands += [(np.int32(0), I32)] * 2
    run_op("tt.descriptor_reduce", operands, [], memory=memory, kind=f"{kind} : i32")
    assert contents(memory, base).tolist() == expected


def test_a_descriptor_made_in_the_kernel_gathers_and_scatters_rows() -> None:
    values = np.arange(20, dtype=np.float16).reshape(4, 5)
    memory, base = memory_with(values, "f16")
    extents = [(np.int32(4), I32), (np.int32(5), I32), (np.int64(5), tile("i64")), (np.int64(1), tile("i64"))]
    row = TileType(space="descriptor", shape=(1, 4), dtype="f16")
    pointer = (np.int64(base), tile("ptr<f16>", space="global"))
    descriptor = run_op("tt.make_tensor_descriptor", [pointer, *extents], [row])
    assert (descriptor.shape, descriptor.strides, descriptor.pad_nan) == ((4, 5), (5, 1), False)
    rows = (np.array([3, 0, 9], np.int32), tile("i32", 3))
    found = run_op(
        "tt.descriptor_gather", [(descriptor, row), rows, (np.int32(2), I32)], [tile("f16", 3, 4)], memory=memory
    )
    assert found.tolist() == [[17, 18, 19, 0], [2, 3, 4, 0], [0] * 4]
    scattered = (np.full((3, 4), -1, np.float16), tile("f16", 3, 4))
    run_op("tt.descriptor_scatter", [(descriptor, row), rows, (np.int32(3), I32), scattered], [], memory=memory)
    values[[3, 0], 3:] = -1
    assert np.array_equal(contents(memory, base).reshape(4, 5), values)


def test_leading_dimensions_of_one_may_be_missing_in_the_tile() -> None:
    memory, _, descriptor = described(np.arange(10, dtype=np.float32).reshape(2, 5))
    operands = [(descriptor, BLOCK), (np.int32(1), I32), (np.int32(0), I32)]
    assert run_op("tt.descriptor_load", operands, [tile("f32", 4)], memory=memory).tolist() == [5, 6, 7, 8]


def smem(*shape: int, dtype: str = "f16") -> TileType:
    return tile(dtype, *shape, space="smem")


def test_views_of_a_tile_share_its_memory() -> None:
    values = RANDOM.standard_normal((4, 8)).astype(np.float16)
    whole = run_op("ttg.local_alloc", [(values, tile("f16", 4, 8))], [smem(4, 8)])
    part = run_op("ttg.memdesc_subslice", [(whole, smem(4, 8))], [smem(2, 8)], offsets="array<i32: 2, 0>")
    turned = run_op("ttg.memdesc_trans", [(part, smem(2, 8))], [smem(8, 2)], order="array<i32: 1, 0>")
    assert np.array_equal(turned.load(), values[2:].T)
    run_op("ttg.local_store", [(np.zeros((8, 2), np.float16), tile("f16", 8, 2)), (turned, smem(8, 2))], [])
    assert np.array_equal(run_op("ttg.local_load", [(whole, smem(4, 8))], [tile("f16", 4, 8)])[:2], values[:2])
    assert not whole.load()[2:].any()
    again = run_op("ttg.memdesc_reshape", [(whole, smem(4, 8))], [smem(2, 2, 8)])
    second = run_op("ttg.memdesc_index", [(again, smem(2, 2, 8)), (np.int32(1), I32)], [smem(2, 8)])
    second.store(np.ones((2, 8)))
    assert (whole.load()[2:] == 1).all()
    view = run_op(
        "ttg.memdesc_subview", [(again, smem(2, 2, 8)), *[(np.int32(at), I32) for at in (0, 1, 4)]], [smem(4)]
    )
    assert np.array_equal(view.load(), values[1, 4:])


def test_a_ring_slot_serves_as_a_tile() -> None:
    ring = np.full((3, 2, 4), 0xFF, np.uint8).repeat(2, axis=2).view(np.float16)
    slot = MemDesc(bits=ring[1], dtype="f16")
    assert np.isnan(slot.load()).all(), "nobody wrote it"
    slot.store(np.ones((2, 4)))
    assert np.isnan(ring[0]).all()
    assert (ring[1] == 1).all()
    slot.fill_poison()
    assert np.isnan(ring).all()


def test_tiles_are_read_under_another_type() -> None:
    wide = MemDesc.new((2, 4), "f32")
    halves = wide.reinterpret((2, 8), "bf16")
    halves.store(np.arange(16).reshape(2, 8))
    words = wide.bits.view(np.uint32)
    assert words[0, 0] == 0x3F800000
    columns = wide.subslice((0, 2), (2, 2))
    part = columns.reinterpret((2, 4), "bf16")
    assert part.load().tolist() == [[4, 5, 6, 7], [12, 13, 14, 15]], "rows keep their columns"
    assert wide.reinterpret((8,), "f32").shape == (8,)
    with pytest.raises(AccessError, match="another type"):
        wide.transpose((1, 0)).reinterpret((4, 4), "bf16")
    with pytest.raises(AccessError, match="another shape"):
        wide.transpose((1, 0)).reshape((8,))
    with pytest.raises(AccessError, match="not inside the tile"):
        wide.subslice((0, 2), (2, 4))
    with pytest.raises(AccessError, match="takes buffer 2 of 2"):
        wide.index(2)


def test_tensor_memory() -> None:
    tmem = tile("f32", 2, 4, space="tmem")
    alloc, token = run_op("ttng.tmem_alloc", [], [tmem, TOKEN])
    assert token is None
    assert np.isnan(alloc.load()).all()
    values = (np.ones((2, 4), np.float32), tile("f32", 2, 4))
    for predicate, expected in ((False, False), (True, True)):
        operands = [(alloc, tmem), (None, TOKEN), values, (np.bool_(predicate), tile("i1"))]
        assert run_op("ttng.tmem_store", operands, [TOKEN]) is None
        assert np.isfinite(alloc.load()).all() == expected
    half = run_op("ttng.tmem_subslice", [(alloc, tmem)], [tile("f32", 2, 2, space="tmem")], N="2 : i32")
    half.store(np.full((2, 2), 5))
    found, token = run_op("ttng.tmem_load", [(alloc, tmem), (None, TOKEN)], [tile("f32", 2, 4), TOKEN])
    assert found.tolist() == [[1, 1, 5, 5]] * 2
    source = MemDesc.new((2, 4), "f32")
    source.store(np.full((2, 4), 3))
    run_op("ttng.tmem_copy", [(source, tile("f32", 2, 4, space="smem")), (alloc, tmem)], [])
    assert (alloc.load() == 3).all()
    with pytest.raises(UnsupportedError, match="a copy of scales into tensor memory changes their order"):
        run_op("ttng.tmem_copy", [(source.reshape((8,)), smem(8)), (alloc, tmem)], [])


def test_copies_from_pointers_and_by_index() -> None:
    memory, base = memory_with(np.arange(4, dtype=np.float16), "f16")
    target = MemDesc.new((4,), "f16")
    pointer = (base + 2 * np.arange(4), tile("ptr<f16>", 4))
    mask, other = (np.array([1, 1, 0, 1], np.bool_), tile("i1", 4)), (np.full(4, 8, np.float16), tile("f16", 4))
    run_op(
        "ttg.async_copy_global_to_local",
        [pointer, (target, smem(4)), mask, other],
        [TOKEN],
        memory=memory,
        operandSegmentSizes="array<i32: 1, 1, 1, 1>",
    )
    assert target.load().tolist() == [0, 1, 8, 3]
    index = (np.array([3, 3, 0, 1], np.int32), tile("i32", 4))
    found = run_op("ttg.local_gather", [(target, smem(4)), index], [tile("f16", 4)], axis="0 : i32")
    assert found.tolist() == [3, 3, 0, 1]
    place = (np.array([3, 2, 1, 0], np.int32), tile("i32", 4))
    run_op("ttg.local_scatter", [(target, smem(4)), (found, tile("f16", 4)), place], [], axis="0 : i32")
    assert target.load().tolist() == [1, 0, 3, 3]


def test_assertions_of_the_kernel() -> None:
    kind = tile("i1", 2)
    run_op("tt.assert", [(np.array([True, True]), kind)], [], message='"positive"')
    with pytest.raises(InputError, match=r'tt\.assert at op fails: "positive"'):
        run_op("tt.assert", [(np.array([True, False]), kind)], [], message='"positive"')
