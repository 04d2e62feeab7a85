"""Kernel ops of one machine op, with Triton's layouts, for the tests of the pricing rules."""

from twillgpu.costs.pricing import Price
from twillgpu.costs.work import price_work
from twillgpu.frontend.kernel import Space, TileType
from twillgpu.graph.record import Op, Work
from twillgpu.machine.load import load
from twillgpu.machine.record import Machine

WGMMA = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>"
"""A row of 64 x N over 4 lanes, two rows a thread."""
ROW = (
    "#ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], "
    "lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>"
)
"""One row of 128 x 128 a thread, as tensor memory loads give it."""
ACROSS = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>"
"""A row of 512 over all threads of 4 warps."""

H100, B200, A100 = load("h100"), load("b200"), load("a100")


def registers(shape: tuple[int, ...], layout: str = "", dtype: str = "f32") -> TileType:
    return TileType(space="registers", shape=shape, dtype=dtype, layout=layout)


def rows_of(shape: tuple[int, ...], layout: str, dtype: str = "f32") -> TileType:
    return registers(shape, f"#ttg.slice<{{dim = 1, parent = {layout}}}>", dtype)


def memory(space: Space, shape: tuple[int, ...], dtype: str = "f16") -> TileType:
    return TileType(space=space, shape=shape, dtype=dtype)


def smem(*shape: int, dtype: str = "f16") -> TileType:
    return memory("smem", shape, dtype)


def tmem(*shape: int, dtype: str = "f32") -> TileType:
    return memory("tmem", shape, dtype)


def work(
    opcode: str,
    operands: tuple[TileType, ...] = (),
    results: tuple[TileType, ...] = (),
    body: tuple[str, ...] = (),
    axis: int | None = None,
    *,
    fused: bool = False,
) -> Work:
    attributes = () if axis is None else (("axis", f"{axis} : i32"),)
    return Work(opcode=opcode, operands=operands, results=results, attributes=attributes, body=body, fused=fused)


def same(opcode: str, tile: TileType) -> Work:
    """Return an op from tiles of one type to that type."""
    return work(opcode, (tile, tile), (tile,))


def reduction(tile: TileType, row: TileType, *body: str, axis: int = 1) -> Work:
    return work("tt.reduce", (tile,), (row,), body, axis)


def cost(machine: Machine, *works: Work, warps: int = 4) -> Price:
    return price_work(Op(name="x", source="k.py:3", warps=warps, work=works), machine)


def held(price: Price) -> dict[str, tuple[int, int]]:
    """Return cycles and amount for each unit of an op that holds each unit once, from its start."""
    assert all(use.offset == 0 for use in price.uses)
    found = {use.unit: (use.cycles, use.amount) for use in price.uses}
    assert len(found) == len(price.uses)
    return found


def times(price: Price) -> tuple[int, int]:
    return price.issue_cycles, price.latency_cycles
