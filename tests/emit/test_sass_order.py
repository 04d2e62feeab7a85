"""The order of machine code that ptxas really makes: an overlap that is lost is found, one that is kept is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import compiled_code as code
import pytest

from twillgpu.emit.feedback import Judged, findings, overlaps
from twillgpu.emit.offline import compile_source
from twillgpu.lower.record import Drain, Execute, GroupProgram, WarpProgram

pytestmark = [pytest.mark.slow, pytest.mark.triton]

SOURCE = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

S = gl.constexpr(gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 128, 16]))
O = gl.constexpr(gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16]))
ROWS = gl.constexpr(gl.SliceLayout(1, S.value))
ROWS_O = gl.constexpr(gl.SliceLayout(1, O.value))
A = gl.constexpr(gl.DotOperandLayout(0, O.value, 2))
SHARED = gl.constexpr(gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16))


@gluon.jit
def consume(out, scale, trips, q, k, v, bars):
    zeros = gl.full([64, 128], 0.0, gl.float32, S)
    o = gl.full([64, 64], 0.0, gl.float32, O)
    m = gl.full([64], float("-inf"), gl.float32, ROWS)
    p = gl.convert_layout(gl.full([64, 128], 0.0, gl.float16, S), A)
    for t in range(trips):
        s = warpgroup_mma(q, k.index(t % 2).permute([1, 0]), zeros, use_acc=False, is_async=True)
        o = warpgroup_mma(p, v.index(t % 2), o, is_async=True)
        s = warpgroup_mma_wait(1, deps=[s])
        before = m
        m = gl.maximum(m, gl.max(s, 1) * scale)
        alpha = gl.exp2(before - m)
        p = gl.convert_layout(gl.exp2(s * scale - m[:, None]).to(gl.float16), A)
        # WAIT
        o = warpgroup_mma_wait(0, deps=[o])
        o = o * gl.convert_layout(alpha, ROWS_O)[:, None]
    rows = gl.arange(0, 64, ROWS_O)[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, O.value))[None, :]
    gl.store(out + rows, o)


@gluon.jit
def kernel(out, scale, trips):
    q = gl.allocate_shared_memory(gl.float16, [64, 64], SHARED)
    k = gl.allocate_shared_memory(gl.float16, [2, 128, 64], SHARED)
    v = gl.allocate_shared_memory(gl.float16, [2, 128, 64], SHARED)
    bars = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    consume(out, scale, trips, q, k, v, bars)


KERNEL = kernel
SIGNATURE = {"out": "*fp32", "scale": "fp32", "trips": "i32"}
CONSTANTS = {}
ATTRIBUTES = {}
NUM_WARPS = 4
TARGET = "sm_90a"
GROUPS = ("consume",)
"""
"""FlashAttention-3 within one warpgroup: softmax of one key block while the product with the values of the one before
runs. A wait for a barrier before the wait for this product keeps the exponentials where they are written.
"""


def overlapping(program: WarpProgram) -> tuple[WarpProgram, GroupProgram]:
    """Return a group whose loop is that of ``SOURCE``, in its program."""
    group = next(one for one in program.groups if one.name == "softmax0")
    work = {one.op: one for one in group.loop if isinstance(one, Execute)}
    exponential = next(one for name, one in work.items() if name.startswith("p_0"))
    qk = replace(work["qk_0"], op="qk_0")
    loop = (
        qk,
        work["acc_0"],
        Drain(engine="wgmma", pending=1, reads_only=False),
        exponential,
        Drain(engine="wgmma", pending=0, reads_only=False),
    )
    found = replace(group, loop=loop)
    return replace(program, groups=(found,)), found


@pytest.mark.parametrize(("wait", "kept"), [("mbarrier.wait(bars.index(0), t & 1)", True), ("", False)])
def test_exponentials_that_ptxas_moves_behind_the_wait_are_found(tmp_path: Path, wait: str, *, kept: bool) -> None:
    file = tmp_path / "flash.py"
    file.write_text(SOURCE.replace("# WAIT", wait), "utf-8")
    program, group = overlapping(code.program("attention_fwd", "h100"))
    kernel = program.kernel
    ops = {op.name: op for op in (*kernel.before, *kernel.loop.body, *kernel.after)}
    assert overlaps(group.loop, ops) == 1
    judged = Judged(program=program, groups=(group,), compiled=compile_source(file), limits=code.LIMITS)
    rules = [one.rule for one in findings(judged) if one.serious]
    assert ("order" not in rules) == kept
    assert "serialised" not in rules
