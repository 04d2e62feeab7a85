"""SMEM that the compiler takes for ops between warps: what is counted, and what is not."""

from pathlib import Path

import pytest

from twillgpu.frontend.convert import ConvertOptions, convert
from twillgpu.frontend.generic import parse_generic
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.subtile import subtile
from twillgpu.graph.build import build
from twillgpu.graph.direct import stored_directly
from twillgpu.graph.outside import BARRIER_BYTES

DATA = Path(__file__).parents[1] / "frontend" / "data"


def _kernel(name: str, loop: int | None = None) -> Kernel:
    path = DATA / f"{name}_triton39.mlir"
    whole = convert(parse_generic(path.read_text(), where=path.name), ConvertOptions(where=path.name, loop=loop))
    return subtile(whole).kernel


def _scratch(kernel: Kernel) -> int:
    allocated = [op.results[0].type for op in kernel.before if op.opcode == "ttg.local_alloc"]
    tiles = sum(2 * kind.shape[0] * kind.shape[1] for kind in allocated)
    return dict(build(kernel).fixed_bytes)["smem"] - BARRIER_BYTES - tiles


def test_a_transposed_operand_takes_the_bytes_of_its_tile_in_every_group_that_may_make_it() -> None:
    # Triton 3.9 gives each of the two changes of layout 8,192 bytes (allocation of shared memory, printed).
    assert _scratch(_kernel("attention_bwd_sm_90a")) == 2 * 64 * 64 * 2


def test_a_tile_that_is_only_stored_takes_none() -> None:
    kernel = _kernel("attention_fwd_sm_90a")
    assert len(stored_directly(kernel)) == 4, "the results and their row sums, of two sub-tiles"
    assert _scratch(kernel) == 0


def test_a_sum_over_several_warps_takes_a_number_for_each_row_and_warp_in_every_group() -> None:
    assert _scratch(_kernel("rms_norm_sm_90a", loop=2)) == 5 * (4 * 4 * 4)


@pytest.mark.parametrize("name", ["gemm_pointers_sm_80", "attention_fwd_pointers_sm_80"])
def test_nothing_is_counted_where_no_code_is_emitted(name: str) -> None:
    assert _scratch(_kernel(name)) == 0
