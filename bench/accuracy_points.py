"""Published throughputs, each with its source, and the models that stand for the kernels."""

from __future__ import annotations

from dataclasses import dataclass

from accuracy_model import Model

FA2 = "load pipelining, 2 buffers"
LOADS = "load pipelining, 2 buffers"
FA3 = "FlashAttention-3"
FA4 = "FlashAttention-4"
COOPERATIVE = "producer/consumer, depth 1"
PIPELINED = "producer/consumer, depth 2"
FORWARD, BACKWARD, GEMM = "attention_fwd", "attention_bwd", "gemm"
SYNC = "h100-mma-sync"
D64, D256 = (("HEAD_DIM", 64),), (("HEAD_DIM", 256), ("BLOCK_N", 64))
NARROW = (("BLOCK_N", 64),)
SINGLE = (("BLOCK_M", 128),)

MODELS = (
    Model(name="H100 forward 64, FA2", example=FORWARD, machine=SYNC, constexprs=D64, rows=0, way=FA2),
    Model(name="H100 forward 128, FA2", example=FORWARD, machine=SYNC, constexprs=NARROW, rows=0, way=FA2),
    Model(name="H100 forward 256, FA2", example=FORWARD, machine=SYNC, constexprs=D256, rows=0, way=FA2),
    Model(name="H100 forward 64, loads", example=FORWARD, machine="h100", constexprs=D64, rows=0, way=LOADS),
    Model(name="H100 forward 128, loads", example=FORWARD, machine="h100", rows=0, way=LOADS),
    Model(
        name="H100 forward 128, S ahead", example=FORWARD, machine="h100", rows=0, way="stages: S ahead of the rest"
    ),
    Model(name="H100 forward 64, FA3", example=FORWARD, machine="h100", constexprs=D64, way=FA3),
    Model(name="H100 forward 128, FA3", example=FORWARD, machine="h100", way=FA3),
    Model(name="H100 forward 256, FA3", example=FORWARD, machine="h100", constexprs=D256, way=FA3),
    Model(name="H100 forward 64, optimum", example=FORWARD, machine="h100", constexprs=D64),
    Model(name="H100 forward 128, optimum", example=FORWARD, machine="h100"),
    Model(name="H100 forward 256, optimum", example=FORWARD, machine="h100", constexprs=D256),
    Model(name="H100 product, producer", example=GEMM, machine="h100", way=COOPERATIVE),
    Model(name="H100 product, optimum", example=GEMM, machine="h100"),
    Model(name="B200 product, producer", example=GEMM, machine="b200", way=COOPERATIVE),
    Model(name="B200 product, optimum", example=GEMM, machine="b200"),
    Model(name="B200 forward 128, loads", example=FORWARD, machine="b200", constexprs=SINGLE, rows=0, way=LOADS),
    Model(name="B200 forward 128, producer", example=FORWARD, machine="b200", way=COOPERATIVE),
    Model(name="B200 forward 128, pipelined", example=FORWARD, machine="b200", way=PIPELINED),
    Model(name="B200 forward 128, FA4", example=FORWARD, machine="b200", way=FA4),
    Model(name="B200 forward 64, FA4", example=FORWARD, machine="b200", constexprs=D64, way=FA4),
    Model(name="B200 forward 128, optimum", example=FORWARD, machine="b200"),
    Model(name="B200 forward 64, optimum", example=FORWARD, machine="b200", constexprs=D64),
    Model(name="H100 backward 128, producer", example=BACKWARD, machine="h100", way=COOPERATIVE),
    Model(name="H100 backward 128, FA2", example=BACKWARD, machine=SYNC, rows=0, way=FA2),
    Model(name="H100 backward 128, optimum", example=BACKWARD, machine="h100"),
    Model(name="B200 backward 128, producer", example=BACKWARD, machine="b200", way=COOPERATIVE),
    Model(name="B200 backward 128, optimum", example=BACKWARD, machine="b200"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Non-causal attention; the published rates count 4 (backward: 10) batch heads seq^2 dim FLOP."""

    batch: int
    heads: int
    seq: int
    dim: int = 128
    backward: bool = False

    def __str__(self) -> str:
        return f"{'backward' if self.backward else 'forward'} {self.dim}, {self.batch}x{self.heads}x{self.seq}"

    def flop(self) -> int:
        """FLOP of the whole problem."""
        return (10 if self.backward else 4) * self.batch * self.heads * self.seq**2 * self.dim

    def launch(self, tile: dict[str, int]) -> tuple[int, int]:
        """Blocks, and trips of each."""
        outer, inner = ("BLOCK_N", "BLOCK_M") if self.backward else ("BLOCK_M", "BLOCK_N")
        return self.batch * self.heads * -(-self.seq // tile[outer]), -(-self.seq // tile[inner])


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """C[m, n] = A[m, k] B[k, n]."""

    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"product {self.m}x{self.n}x{self.k}"

    def flop(self) -> int:
        """FLOP of the whole problem."""
        return 2 * self.m * self.n * self.k

    def launch(self, tile: dict[str, int]) -> tuple[int, int]:
        """Blocks, and trips of each."""
        return -(-self.m // tile["BLOCK_M"]) * -(-self.n // tile["BLOCK_N"]), -(-self.k // tile["BLOCK_K"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where figures were published."""

    address: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One published throughput.

    Attributes:
        kernel: whose.
        chip: ``h100`` or ``b200``.
        shape: the problem.
        tflops: as published, for the FLOP count of ``shape``.
        source: key of ``SOURCES``.
        model: name of the model of this kernel.
        known: the kernel's schedule is public, and the model is that schedule. Otherwise the optimum stands for it.
    """

    kernel: str
    chip: str
    shape: Attention | Product
    tflops: float
    source: str
    model: str
    known: bool = True


SOURCES = {
    "FA3": Source(
        address="https://arxiv.org/abs/2407.08608",
        what="Shah et al., FlashAttention-3, figures 5 and 6: labels of the bars (H100 80GB SXM5, 16 bits, batch x "
        "sequence = 16k, hidden dimension 2048)",
    ),
    "pytorch/benchmark 2391": Source(
        address="https://github.com/pytorch/benchmark/pull/2391", what="Triton's tutorial and FA3 on H100, 2024-07"
    ),
    "triton 5185": Source(
        address="https://github.com/triton-lang/triton/pull/5185",
        what="stages of Triton's tutorial on H100, 2024-11",
    ),
    "tritonbench 1254": Source(
        address="https://github.com/meta-pytorch/tritonbench/pull/1254", what="FA3 and TLX forward on H100, 2026-09"
    ),
    "tritonbench 1256": Source(
        address="https://github.com/meta-pytorch/tritonbench/pull/1256", what="FA3 and TLX backward on H100, 2026-09"
    ),
    "triton 2339": Source(
        address="https://github.com/triton-lang/triton/issues/2339", what="cuBLAS and Triton on H100, fp16, 2023-09"
    ),
    "gist": Source(
        address="https://gist.github.com/Chillee/2ec89696db8b7ed1c24461159e325405",
        what="PyTorch with CUTLASS kernels, tuned, on H100, bf16, power shifted to the tensor cores",
    ),
    "flash-attention 2605": Source(
        address="https://github.com/Dao-AILab/flash-attention/pull/2605",
        what="FA4 forward, 2026; utilisation is given of 2250 TFLOP/s, which is B200's data sheet",
    ),
    "flash-attention 2280": Source(
        address="https://github.com/Dao-AILab/flash-attention/pull/2280",
        what="FA4 on sm_100, forward, and backward by one block, 2026-02",
    ),
    "TLX 411": Source(
        address="https://github.com/facebookexperimental/triton/pull/411",
        what="TLX forward, pipelined, on Blackwell, 2025-09",
    ),
    "TLX 407": Source(
        address="https://github.com/facebookexperimental/triton/pull/407",
        what="TLX forward on a B200 of 750 W, 2025-09",
    ),
    "tritonbench 1014": Source(
        address="https://github.com/meta-pytorch/tritonbench/pull/1014",
        what="Triton's tutorial on Blackwell, 2026-04",
    ),
    "TLX 1591": Source(
        address="https://github.com/facebookexperimental/triton/pull/1591",
        what="PyTorch's SDPA and TLX by one block, backward, on Blackwell, 2026-05 (batch 4 and 32 heads assumed)",
    ),
    "TLX 1257": Source(
        address="https://github.com/facebookexperimental/triton/pull/1257",
        what="Triton with automatic warp specialization, backward, on B200, 2026-04",
    ),
    "RESULTS": Source(
        address="https://github.com/tmoreau89/triton/blob/aabd14fa05486b638dbc579ed4cd411de28e6e63/python/"
        "triton_cublas_bench/RESULTS.md",
        what="cuBLAS and Triton's persistent product on B200, fp16, 2025-10",
    ),
    "tilus 66": Source(
        address="https://github.com/NVIDIA/tilus/pull/66",
        what="PyTorch and a warp-specialised product by one block on Blackwell, 2025-11",
    ),
    "tilus": Source(
        address="https://nvidia.github.io/tilus/stable/tutorials/matmul-blackwell/__init__.html",
        what="cuBLAS on B200, fp16, from a profiler's counters",
    ),
}


def paper(seq: int, dim: int, *, backward: bool = False) -> Attention:
    """The shapes of the FlashAttention-3 paper."""
    return Attention(batch=16384 // seq, heads=2048 // dim, seq=seq, dim=dim, backward=backward)


def _paper_points() -> tuple[Point, ...]:
    """Forward by FA2, Triton, cuDNN and FA3 on H100."""
    rates = {
        (64, 1024): (306, 382, 373, 392),
        (64, 4096): (321, 400, 408, 476),
        (64, 16384): (324, 403, 413, 497),
        (128, 1024): (350, 372, 574, 565),
        (128, 4096): (368, 389, 609, 638),
        (128, 16384): (370, 395, 595, 648),
        (256, 1024): (313, None, 546, 639),
        (256, 4096): (323, None, 581, 736),
        (256, 16384): (326, None, 581, 756),
    }
    kernels = (("FA2", "FA2"), ("Triton", "loads"), ("cuDNN", "optimum"), ("FA3", "FA3"))
    return tuple(
        Point(
            kernel=kernel,
            chip="h100",
            shape=paper(seq, dim),
            tflops=rate,
            source="FA3",
            model=f"H100 forward {dim}, {model}",
            known=kernel != "cuDNN",
        )
        for (dim, seq), found in rates.items()
        for (kernel, model), rate in zip(kernels, found, strict=True)
        if rate is not None
    )


def _h100(
    kernel: str, shape: Attention | Product, tflops: float, source: str, model: str, *, known: bool = True
) -> Point:
    return Point(
        kernel=kernel, chip="h100", shape=shape, tflops=tflops, source=source, model=f"H100 {model}", known=known
    )


def _b200(
    kernel: str, shape: Attention | Product, tflops: float, source: str, model: str, *, known: bool = True
) -> Point:
    return Point(
        kernel=kernel, chip="b200", shape=shape, tflops=tflops, source=source, model=f"B200 {model}", known=known
    )


LONG = paper(16384, 128)
BACK = Attention(batch=4, heads=32, seq=8192, backward=True)
TLX = Attention(batch=4, heads=48, seq=8192)
FA3_BACK = Attention(batch=4, heads=48, seq=8192, backward=True)
CUBE = Product(m=8192, n=8192, k=8192)
FLAT = Product(m=8192, n=8192, k=1024)

POINTS = (
    *_paper_points(),
    _h100("FA2", paper(16384, 128, backward=True), 322, "FA3", "backward 128, FA2"),
    _h100("cuDNN", paper(16384, 128, backward=True), 516, "FA3", "backward 128, optimum", known=False),
    _h100("FA3", paper(16384, 128, backward=True), 561, "FA3", "backward 128, producer"),
    _h100("Triton", LONG, 476.8, "pytorch/benchmark 2391", "forward 128, loads"),
    _h100("FA3", LONG, 620.7, "pytorch/benchmark 2391", "forward 128, FA3"),
    _h100("Triton", Attention(batch=8, heads=16, seq=8192), 481.4, "triton 5185", "forward 128, loads"),
    _h100("Triton, stages", Attention(batch=8, heads=16, seq=8192), 517.5, "triton 5185", "forward 128, S ahead"),
    _h100("FA3", TLX, 638.6, "tritonbench 1254", "forward 128, FA3"),
    _h100("TLX", TLX, 579.4, "tritonbench 1254", "forward 128, FA3"),
    _h100("FA3", FA3_BACK, 561.4, "tritonbench 1256", "backward 128, producer"),
    _h100("TLX", FA3_BACK, 527.1, "tritonbench 1256", "backward 128, producer"),
    _h100("cuBLAS", Product(m=2048, n=4096, k=4096), 613.7, "triton 2339", "product, optimum", known=False),
    _h100("cuBLAS", Product(m=2048, n=8192, k=8192), 721.6, "triton 2339", "product, optimum", known=False),
    _h100("CUTLASS", Product(m=4224, n=2048, k=8192), 780.2, "gist", "product, producer"),
    _b200("FA4", Attention(batch=4, heads=16, seq=8192), 1289, "flash-attention 2605", "forward 128, FA4"),
    _b200("FA4", Attention(batch=4, heads=16, seq=8192), 1534.8, "flash-attention 2280", "forward 128, FA4"),
    _b200("FA4", Attention(batch=4, heads=32, seq=8192, dim=64), 863, "flash-attention 2605", "forward 64, FA4"),
    _b200("TLX, pipelined", Attention(batch=4, heads=32, seq=8192), 903, "TLX 411", "forward 128, pipelined"),
    _b200("TLX", Attention(batch=4, heads=32, seq=8192), 840.6, "TLX 407", "forward 128, producer"),
    _b200("Triton", TLX, 670.7, "tritonbench 1014", "forward 128, loads"),
    _b200("Triton", Attention(batch=4, heads=48, seq=16384), 746.3, "tritonbench 1014", "forward 128, loads"),
    _b200(
        "FA4",
        Attention(batch=4, heads=16, seq=8192, backward=True),
        1247.5,
        "flash-attention 2280",
        "backward 128, optimum",
        known=False,
    ),
    _b200("SDPA", BACK, 927.4, "TLX 1591", "backward 128, optimum", known=False),
    _b200("TLX", BACK, 827.0, "TLX 1591", "backward 128, producer"),
    _b200(
        "Triton, WS",
        Attention(batch=1, heads=32, seq=4096, backward=True),
        471.2,
        "TLX 1257",
        "backward 128, optimum",
        known=False,
    ),
    _b200("cuBLAS", FLAT, 1388, "RESULTS", "product, optimum", known=False),
    _b200("Triton", FLAT, 1196, "RESULTS", "product, producer"),
    _b200("cuBLAS", CUBE, 1208.5, "tilus 66", "product, optimum", known=False),
    _b200("tilus", CUBE, 1075.8, "tilus 66", "product, producer"),
    _b200("cuBLAS", CUBE, 1610, "tilus", "product, optimum", known=False),
)
