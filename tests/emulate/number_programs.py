"""A small kernel and a warp program for it, written by hand, that run on numbers."""

from __future__ import annotations

from dataclasses import replace

import warp_programs as warp

from twillgpu.frontend.kernel import Kernel, TileType
from twillgpu.frontend.text import parse_kernel
from twillgpu.lower.record import Drain, Execute, ExpectBytes, Fence, Instruction, Put, WarpProgram

TEXT = """
kernel sums
target sm_90a
warps 4
file "sums.py"
argument a_desc: descriptor<16x16xf16>
argument c_desc: descriptor<16x16xf32>
argument K: scalar<i32>
before
  c0 = arith.constant() {value = 0 : i32} -> scalar<i32>
  c16 = arith.constant() {value = 16 : i32} -> scalar<i32>
  zero = arith.constant() {value = "dense<0.000000e+00> : tensor<16x16xf32>"} -> registers<16x16xf32>
loop loop_k: k: scalar<i32> in range(c0, K, c16) @ sums.py:3
  carried total_prev: registers<16x16xf32> = zero yields total result total_final
  a = tt.descriptor_load(a_desc, k, c0) -> registers<16x16xf16> @ sums.py:4
  tile = ttg.local_alloc(a) -> smem<16x16xf16> @ sums.py:4
  square = ttng.warp_group_dot(tile, tile, zero) -> registers<16x16xf32> @ sums.py:5
  total = arith.addf(total_prev, square) -> registers<16x16xf32> @ sums.py:6
after
  store = tt.descriptor_store(c_desc, total_final, c0, c0) @ sums.py:7
"""


def sums() -> Kernel:
    return parse_kernel(TEXT.lstrip())


def squares(depth: int) -> WarpProgram:
    """The program: a producer, and a group that multiplies, drains one iteration later, adds up and stores."""
    staged = warp.staged(depth)
    names = {"load": ("a", "tile"), "dot": ("square",), "use": ("total",)}

    def named(instructions: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        return tuple(replace(one, members=names[one.op]) if isinstance(one, Execute) else one for one in instructions)

    scalars = Execute(op="", members=("c0", "c16"))
    zero = Execute(op="zero", members=("zero",))
    out = warp.access("out", warp.per_tile())
    after = (
        Put(value="total_final", iteration=None, access=out),
        Fence(kind="async_shared"),
        Execute(op="store", members=("store",), engine="tma_store", reads=(out,)),
        Drain(engine="tma_store", pending=0),
    )
    producer, mma = (
        replace(one, prologue=named(one.prologue), loop=named(one.loop), epilogue=named(one.epilogue))
        for one in staged.groups
    )
    size = 16 * 16 * 2
    tile = TileType(space="smem", shape=(16, 16), dtype="f16")
    rings = (
        replace(warp.ring("tile", depth, size=size), tile=tile),
        replace(
            warp.ring("out", 1, depth * size, size=2 * size, scope="tile"),
            tile=replace(tile, dtype="f32"),
            values=("total_final",),
        ),
    )
    loop = tuple(replace(one, bytes=size) if isinstance(one, ExpectBytes) else one for one in producer.loop)
    return replace(
        staged,
        kernel=sums(),
        groups=(
            replace(producer, before=(scalars,), loop=loop),
            replace(mma, before=(scalars, zero), after=after),
        ),
        rings=rings,
    )
