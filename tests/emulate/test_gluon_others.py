"""What Gluon kernels of other authors use beyond those that are emitted here."""

from pathlib import Path

import numpy as np
import pytest
from gluon_body import ran_body

from twillgpu.errors import UnsupportedError

SPLIT = """
@gluon.constexpr_function
def halved(layout):
    assert isinstance(layout, gl.DistributedLinearLayout)
    return gl.DistributedLinearLayout(layout.reg_bases[:-1], layout.lane_bases, layout.warp_bases, [], [128, 32])


@gluon.jit
def split(tile):
    layout: gl.constexpr = halved(tile.type.layout)
    one, two = tile.reshape([128, 2, 32]).permute(0, 2, 1).split()
    return gl.convert_layout(one, layout), gl.convert_layout(two, layout)


@gluon.jit
def add_pairs(a, b, c, d):
    lanes = gl.arange(0, 2, gl.SliceLayout(0, gl.BlockedLayout([1, 2], [1, 32], [1, 4], [1, 0])))
    return gl.split(bw.add2(gl.where(lanes == 0, a, b), gl.where(lanes == 0, c, d)))
"""


def test_a_constexpr_in_arithmetic_keeps_the_type_of_the_tile(tmp_path: Path) -> None:
    found = ran_body(
        tmp_path,
        """
        whole: gl.constexpr = gl.constexpr(SIZE // 32)
        size = gl.constexpr(whole)
        gl.static_assert((count // size).dtype == gl.int32)
        gl.static_assert((size - count).dtype == gl.int32)
        gl.store(y_ptr + count // size, (count * size).to(gl.float32))
        """,
    )
    assert found.outputs["y"][0, :3].tolist() == [0.0, 6.0, 0.0]


def test_packed_arithmetic_is_that_of_the_elements(tmp_path: Path) -> None:
    found = ran_body(
        tmp_path,
        """
        y = bw.fma2(x, 2.0, bw.mul2(x, x))
        gl.store(y_ptr + places, bw.max2(bw.sub2(y, x), bw.min2(bw.add2(x, x), y)))
        """,
    )
    x = found.outputs["x"].astype(np.float64)
    y = 2 * x + x * x
    assert np.allclose(found.outputs["y"], np.maximum(y - x, np.minimum(2 * x, y)), atol=1e-6)


def test_a_layout_computed_from_a_tiles_is_as_unknown_as_that(tmp_path: Path) -> None:
    found = ran_body(
        tmp_path,
        """
        one, two = split(x)
        gl.store(y_ptr + rows, gl.sum(one - two, 1))
        """,
        SPLIT,
    )
    halves = found.outputs["x"].reshape(128, 2, 32)
    assert np.allclose(found.outputs["y"].reshape(-1)[:128], (halves[:, 0] - halves[:, 1]).sum(-1), atol=1e-4)


def test_a_kernel_that_asks_what_the_layout_is_says_where(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"source.py:\d+: it asks for reg_bases of a tile's layout"):
        ran_body(tmp_path, "bases = x.type.layout.reg_bases")


def test_several_tiles_are_reduced_together(tmp_path: Path) -> None:
    found = ran_body(
        tmp_path,
        """
        sums = gl.reduce(split(x), axis=1, combine_fn=add_pairs)
        gl.store(y_ptr + rows, sums[0])
        gl.store(y_ptr + 128 + rows, sums[1])
        """,
        SPLIT,
    )
    halves = found.outputs["x"].reshape(128, 2, 32).sum(-1)
    assert np.allclose(found.outputs["y"].reshape(-1)[:256], halves.T.reshape(-1), atol=1e-4)


def test_functions_of_elements_are_applied_everywhere(tmp_path: Path) -> None:
    found = ran_body(
        tmp_path,
        """
        limits = gl.arange(0, 64, ROW)[None, :] & 0xF
        gl.store(y_ptr + places, gl.map_elementwise(masked, x, limits))
        """,
        """
        @gluon.jit
        def masked(value, limit):
            bits = -1 << max(limit - 3, 0)
            return gl.where((bits & 1) == 0, value, min(limit, 2).to(gl.float32))
        """,
    )
    limits = np.arange(64) % 16
    assert np.array_equal(found.outputs["y"], np.where(limits > 3, found.outputs["x"], np.minimum(limits, 2)))


def test_a_function_of_elements_may_not_branch(tmp_path: Path) -> None:
    functions = """
    @gluon.jit
    def branching(value):
        return value if value > 0 else -value
    """
    with pytest.raises(Exception, match="decides what runs; decide by a scalar"):
        ran_body(tmp_path, "gl.store(y_ptr + places, gl.map_elementwise(branching, x))", functions)


@pytest.mark.parametrize(("name", "function"), [("load_max", np.max), ("load_min", np.min)])
def test_a_load_from_tensor_memory_may_bring_extremes(tmp_path: Path, name: str, function: object) -> None:
    found = ran_body(
        tmp_path,
        f"""
        tmem = allocate_tensor_memory(gl.float32, [128, 64], TensorMemoryLayout((128, 64), col_stride=1))
        tmem.store(x)
        value, extremes = tmem.slice(0, 32).{name}(abs=True)
        gl.store(y_ptr + rows, extremes)
        """,
    )
    assert callable(function)
    assert np.array_equal(found.outputs["y"].reshape(-1)[:128], function(np.abs(found.outputs["x"][:, :32]), axis=1))


def test_a_cluster_of_one_block_has_nobody_to_tell(tmp_path: Path) -> None:
    found = ran_body(
        tmp_path,
        """
        bars = mbarrier.allocate_mbarrier(batch=2)
        counted: gl.constexpr = bw.tcgen05_mma_barrier_count([bars.index(0)], multicast=True)
        mbarrier.init(bars.index(0), count=counted)
        mbarrier.arrive(bars.index(0), count=counted)
        mbarrier.wait(bars.index(0), 0)
        layout: gl.constexpr = bw.tensor_memory_descriptor_type(gl.float32, [128, 64], None).get_reg_layout()
        gl.static_assert(mbarrier.MBarrierLayout.multicta(gl.num_ctas()) == mbarrier.MBarrierLayout())
        gl.store(y_ptr + places, gl.convert_layout(x.expand_dims(2).broadcast_to(128, 64, 2).split()[0], layout))
        """,
    )
    assert found.sound
    assert np.array_equal(found.outputs["y"], found.outputs["x"])


@pytest.mark.parametrize(
    "body",
    [
        "TensorMemoryLayout((128, 64), col_stride=1, cga_layout=((1, 0),))",
        "TensorMemoryLayout((128, 64), col_stride=1, two_ctas=True)",
        "bw.tcgen05_mma_barrier_count([], two_ctas=True)",
        "mbarrier.MBarrierLayout.multicta(2)",
    ],
)
def test_clusters_are_refused(tmp_path: Path, body: str) -> None:
    with pytest.raises(
        UnsupportedError, match="clusters: several blocks that share memory; use one block per cluster"
    ):
        ran_body(tmp_path, body)


def test_a_launch_of_clusters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="clusters: several blocks that share memory"):
        ran_body(tmp_path, "pass", options="num_ctas=2")
