"""What ``bench/gpu.py`` measures, and the records that its processes exchange as JSON. Nothing of a GPU is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
OUT = HERE / "out"
PREPARED = OUT / "gpu"
"""The emitted kernels and what is predicted of them: made where the search is installed, used where the GPU is."""

TOKENS, HEADS, HEAD_DIM = 16384, 16, 128
"""Batch times sequence length, heads and their size: as usual in measurements of attention."""

LENGTHS = (2048, 4096, 8192, 16384)
IMPLEMENTATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "attention_fwd": ("twill", "triton", "cudnn", "flash"),
        "attention_bwd": ("twill", "triton", "cudnn", "flash"),
        "gemm": ("twill", "triton", "cublas", "dropin"),
    }
)
"""The kernels, and who computes them: our emitted source; the Triton kernel that it was made from, as it is; the back
ends of PyTorch's scaled-dot-product attention; cuBLAS; the original through ``twillgpu.optimize``."""

OUTCOMES = ("ok", "rehearsed", "wrong", "failed", "crashed", "timeout", "skipped")
"""What becomes of a row: measured and right; right, and not measured but rehearsed; wrong; an exception; the process
ended; it had to be ended; it does not apply, or there was no time left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One process: a kernel by one implementation at several lengths.

    ``emitted`` is the file of ``twill``; ``rehearse`` the machine that a rehearsal stands for, empty on a GPU.
    """

    op: str
    implementation: str
    lengths: tuple[int, ...]
    target: str
    emitted: str = ""
    rehearse: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement.

    Attributes:
        op, implementation, length: what was measured.
        outcome: one of ``OUTCOMES``.
        reason: why there is no time, or what is wrong.
        milliseconds: median time of a launch.
        tflops: useful arithmetic by that time (4, 10, 2 FLOP per multiply pair: no recomputation is counted).
        relative_error, largest_error: Frobenius norm of the difference to the float64 reference by that of the
            reference; largest difference by the largest value.
        launches, input_sets: launches timed, and sets of inputs that they rotate through.
        blocks, trips: blocks of the grid and iterations of each, for the prediction.
        predicted_milliseconds, predicted_tflops: of the emitted kernel by its schedule.
        seconds: wall seconds that the row took, with all that belongs to it: references, compilation, timing.
    """

    op: str
    implementation: str
    length: int
    outcome: str
    reason: str = ""
    milliseconds: float | None = None
    tflops: float | None = None
    relative_error: float | None = None
    largest_error: float | None = None
    launches: int = 0
    input_sets: int = 0
    blocks: int = 0
    trips: int = 0
    predicted_milliseconds: float | None = None
    predicted_tflops: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is known of an emitted kernel before it runs.

    Attributes:
        op, machine, target: what it was made for.
        file: the emitted source.
        ii_cycles: interval of its schedule.
        status: status of the search.
        clean: whether its machine code keeps what the schedule promises.
        sms, clock_mhz: the machine's.
        sizes: constexprs of the launch: the sizes of its blocks.
        ceiling_tflops: what the chip sustains under power limits, ``None`` where it is not known.
        reason: why there is no file.
        remark: what else there is to know: why it was not checked.
        key: what it was made of: where that is the same, it need not be made again.
    """

    op: str
    machine: str
    target: str
    file: str = ""
    ii_cycles: int = 0
    status: str = ""
    clean: bool = False
    sms: int = 0
    clock_mhz: float = 0.0
    sizes: dict[str, Any] = field(default_factory=dict)
    ceiling_tflops: float | None = None
    reason: str = ""
    remark: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much a launch is: useful arithmetic, blocks of the grid and iterations of each (0 where not ours)."""

    flop: float
    blocks: int = 0
    trips: int = 0


def extent(op: str, length: int, sizes: Mapping[str, Any], tokens: int = TOKENS, heads: int = HEADS) -> Extent:
    """Return the extent of a launch whose blocks have ``sizes`` (empty: somebody else's kernel)."""
    if op == "gemm":
        flop, rows, steps = 2.0 * length**3, length * length, ("BLOCK_M", "BLOCK_N", "BLOCK_K")
        area = sizes["BLOCK_M"] * sizes["BLOCK_N"] if sizes else 1
    else:
        products = {"attention_fwd": 2, "attention_bwd": 5}[op]
        flop, rows = 2.0 * products * tokens * heads * length * HEAD_DIM, tokens * heads
        steps = ("BLOCK_M", "", "BLOCK_N") if op == "attention_fwd" else ("BLOCK_N", "", "BLOCK_M")
        area = sizes[steps[0]] if sizes else 1
    return Extent(flop=flop, blocks=rows // area, trips=length // sizes[steps[2]]) if sizes else Extent(flop=flop)


def predicted(prepared: Prepared, launch: Extent, sms: int) -> tuple[float, float]:
    """Return milliseconds and TFLOP/s of a whole launch by the schedule of its loop.

    ceil(blocks / SMs) blocks after each other on the busiest SM, trips x I cycles each, no faster than the ceiling.
    Prologue, epilogue, launch and the traffic of other blocks are not in it.
    """
    waves = -(-launch.blocks // sms)
    milliseconds = waves * launch.trips * prepared.ii_cycles / prepared.clock_mhz / 1e3
    if prepared.ceiling_tflops is not None:
        milliseconds = max(milliseconds, launch.flop / prepared.ceiling_tflops / 1e9)
    return milliseconds, launch.flop / milliseconds / 1e9


def skipped(job: Job, reason: str, outcome: str = "skipped") -> list[Row]:
    """Return a row without a time for each length of a job."""
    return [
        Row(op=job.op, implementation=job.implementation, length=length, outcome=outcome, reason=reason)
        for length in job.lengths
    ]


def declared(module: Any, kernel: str, target: str) -> dict[str, Any]:  # noqa: ANN401  # an example's module
    """Return the constexprs of the launch that an example declares for a target."""
    launches = module.LAUNCH if isinstance(module.LAUNCH, tuple) else (module.LAUNCH,)
    own = [launch for launch in launches if launch.kernel == kernel]
    fitting = [launch for launch in own if launch.target in (target, None)]
    return dict((fitting or own)[0].constexprs)
