"""The kernels of ``bench/gpu.py`` on a device: inputs, launches by each implementation, float64 references."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_plan import EXAMPLES, HEAD_DIM, HEADS, TOKENS, Extent, Job, declared, extent

TRITON = ("twill", "triton", "dropin")
"""Implementations that go through the example's own launcher."""

BACKENDS = {"cudnn": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION"}
"""PyTorch's names of the back ends of its attention."""

CHECKED_ROWS = 128
CHUNK = 2048
LOG2_E = 1.4426950408889634


@dataclass(slots=True, kw_only=True)
class Work:
    """A kernel at one length with several sets of inputs.

    Attributes:
        launch: compute the outputs of a set of inputs.
        poison: make the outputs of a set useless (NaN).
        pairs: outputs of a set beside their float64 references, for a part of the output drawn at random.
        sets: number of sets.
        extent: how much a launch is.
    """

    launch: Callable[[int], None]
    poison: Callable[[int], None]
    pairs: Callable[[int], list[tuple[Any, Any]]]
    sets: int
    extent: Extent


@dataclass(slots=True, kw_only=True)
class Setting:
    """Where it runs: PyTorch, the device, bytes of its L2 cache, and sizes; a rehearsal has others.

    ``replace`` puts something else into the place of an example's kernels.
    """

    torch: Any
    device: str = "cuda"
    l2_bytes: int = 0
    tokens: int = TOKENS
    heads: int = HEADS
    replace: Callable[[Any], None] | None = None
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def random(self, *shape: int) -> Any:  # noqa: ANN401  # PyTorch is optional
        """Return fresh normal numbers in fp16."""
        return self.torch.randn(shape, device=self.device, dtype=self.torch.float32).half()

    def empty(self, *shape: int, dtype: str = "float16") -> Any:  # noqa: ANN401  # PyTorch is optional
        """Return a tensor of NaN."""
        return self.torch.full(shape, float("nan"), device=self.device, dtype=getattr(self.torch, dtype))

    def sets(self, input_bytes: int) -> int:
        """Return how many sets of inputs make twice the L2 cache: none is found there when its turn comes."""
        return max(2, -(-2 * self.l2_bytes // input_bytes))


def work_of(job: Job, length: int, setting: Setting) -> Work:
    """Return the work of a job at one length."""
    return {"attention_fwd": _attention_fwd, "attention_bwd": _attention_bwd, "gemm": _gemm}[job.op](
        job, length, setting
    )


class _Emitted:
    """The launcher of an emitted file in the place of the original kernel."""

    def __init__(self, launch: Callable[..., Any]) -> None:
        self.launch = launch

    def __getitem__(self, grid: Any) -> Callable[..., Any]:  # noqa: ANN401  # a tuple or a function
        return lambda *args, **kwargs: self.launch(grid, *args, **kwargs)


def example(job: Job, setting: Setting) -> Any:  # noqa: ANN401  # a module
    """Return a copy of the example's module, its kernel replaced by what the job measures."""
    module = _import_file(EXAMPLES / f"{job.op}.py")
    if job.implementation == "twill":
        setattr(module, job.op, _Emitted(_import_file(Path(job.emitted)).launch))
    if job.implementation == "dropin":
        twillgpu: Any = importlib.import_module("twillgpu")
        setattr(module, job.op, twillgpu.optimize(fallback=False)(getattr(module, job.op)))
    if setting.replace is not None:
        setting.replace(module)
    return module


def _import_file(path: Path) -> Any:  # noqa: ANN401  # a module
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # the decorator looks there for the launch that the file declares
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _backend(job: Job, setting: Setting) -> Iterator[None]:
    """Let PyTorch use one back end of its attention; it raises where that cannot be used. A CPU has only its own."""
    attention: Any = importlib.import_module("torch.nn.attention")
    kind = getattr(attention.SDPBackend, BACKENDS[job.implementation])
    others = [] if setting.device == "cuda" else [attention.SDPBackend.MATH]
    with attention.sdpa_kernel([kind, *others]):
        yield


def _attention_fwd(job: Job, length: int, setting: Setting) -> Work:
    torch, scale = setting.torch, HEAD_DIM**-0.5
    shape = (setting.tokens // length, setting.heads, length, HEAD_DIM)
    sets = setting.sets(3 * 2 * setting.tokens * setting.heads * HEAD_DIM)
    inputs = [tuple(setting.random(*shape) for _ in range(3)) for _ in range(sets)]
    outputs = [setting.empty(*shape) for _ in range(sets)]
    lse = [setting.empty(*shape[:3], dtype="float32") for _ in range(sets)]
    sizes: dict[str, Any] = {}
    if job.implementation in TRITON:
        module = example(job, setting)
        sizes = declared(module, job.op, job.target)

        def launch(at: int) -> None:
            module.attention(*inputs[at], outputs[at], lse[at], scale, sizes["BLOCK_M"], sizes["BLOCK_N"])

    else:
        setting.stack.enter_context(_backend(job, setting))

        def launch(at: int) -> None:
            outputs[at] = torch.nn.functional.scaled_dot_product_attention(*inputs[at], scale=scale)

    def pairs(at: int) -> list[tuple[Any, Any]]:
        head = _drawn_head(setting, shape)
        q, k, v = (one[head].double() for one in inputs[at])
        o, lse2 = _reference(torch, q, k, v, scale)
        return [(outputs[at][head], o), *([(lse[at][head], lse2)] if sizes else [])]

    def poison(at: int) -> None:
        outputs[at] = setting.empty(*shape)
        lse[at].fill_(float("nan"))

    return Work(
        launch=launch,
        poison=poison,
        pairs=pairs,
        sets=sets,
        extent=extent(job.op, length, sizes, setting.tokens, setting.heads),
    )


def _attention_bwd(job: Job, length: int, setting: Setting) -> Work:
    torch, scale = setting.torch, HEAD_DIM**-0.5
    shape = (setting.tokens // length, setting.heads, length, HEAD_DIM)
    sets = setting.sets(4 * 2 * setting.tokens * setting.heads * HEAD_DIM)
    inputs = [tuple(setting.random(*shape) for _ in range(4)) for _ in range(sets)]
    gradients: list[Any] = [tuple(setting.empty(*shape) for _ in range(3)) for _ in range(sets)]
    sizes: dict[str, Any] = {}
    if job.implementation in TRITON:
        module = example(job, setting)
        sizes = declared(module, job.op, job.target)
        forward = [_forward(setting, q, k, v, scale) for q, k, v, _ in inputs]
        delta = setting.empty(*shape[:3], dtype="float32")
        dq32 = setting.empty(*shape, dtype="float32")

        def launch(at: int) -> None:
            (q, k, v, do), (o, lse) = inputs[at], forward[at]
            dq32.zero_()
            module.attention_gradients(
                q, k, v, o, do, lse, scale, delta, dq32, *gradients[at], sizes["BLOCK_M"], sizes["BLOCK_N"]
            )

    else:
        setting.stack.enter_context(_backend(job, setting))
        leaves = [tuple(one.requires_grad_() for one in given[:3]) for given in inputs]
        outputs = [torch.nn.functional.scaled_dot_product_attention(*one, scale=scale) for one in leaves]

        def launch(at: int) -> None:
            gradients[at] = torch.autograd.grad(outputs[at], leaves[at], inputs[at][3], retain_graph=True)

    def pairs(at: int) -> list[tuple[Any, Any]]:
        head = _drawn_head(setting, shape)
        q, k, v, do = (one[head].detach().double() for one in inputs[at])
        wanted = _reference_gradients(torch, q, k, v, do, scale)
        return [(found[head], right) for found, right in zip(gradients[at], wanted, strict=True)]

    def poison(at: int) -> None:
        gradients[at] = tuple(setting.empty(*shape) for _ in range(3))

    return Work(
        launch=launch,
        poison=poison,
        pairs=pairs,
        sets=sets,
        extent=extent(job.op, length, sizes, setting.tokens, setting.heads),
    )


def _gemm(job: Job, length: int, setting: Setting) -> Work:
    torch = setting.torch
    sets = setting.sets(2 * 2 * length * length)
    inputs = [(setting.random(length, length), setting.random(length, length)) for _ in range(sets)]
    outputs = [setting.empty(length, length) for _ in range(sets)]
    sizes: dict[str, Any] = {}
    if job.implementation == "cublas":

        def launch(at: int) -> None:
            torch.matmul(*inputs[at], out=outputs[at])

    else:
        module = example(job, setting)
        sizes = declared(module, job.op, job.target)

        def launch(at: int) -> None:
            module.matmul(*inputs[at], outputs[at], sizes["BLOCK_M"], sizes["BLOCK_N"], sizes["BLOCK_K"])

    def pairs(at: int) -> list[tuple[Any, Any]]:
        rows = torch.randint(length, (CHECKED_ROWS,), device=setting.device)
        a, b = inputs[at]
        return [(outputs[at][rows], a[rows].double() @ b.double())]

    return Work(
        launch=launch,
        poison=lambda at: outputs[at].fill_(float("nan")),
        pairs=pairs,
        sets=sets,
        extent=extent(job.op, length, sizes),
    )


def _drawn_head(setting: Setting, shape: tuple[int, ...]) -> tuple[int, int]:
    """Draw a (batch, head) at random: references of all would take longer than the measurement."""
    batch, head = (int(setting.torch.randint(size, (1,)).item()) for size in shape[:2])
    return batch, head


def _reference(torch: Any, q: Any, k: Any, v: Any, scale: float) -> tuple[Any, Any]:  # noqa: ANN401  # PyTorch is optional
    """Return output and base-2 log-sum-exp of one head, in the precision of the inputs."""
    parts, sums = [], []
    for rows in q.split(CHUNK):
        scores = rows @ k.T * scale
        parts.append(scores.softmax(-1) @ v)
        sums.append(scores.logsumexp(-1) * LOG2_E)
    return torch.cat(parts), torch.cat(sums)


def _forward(setting: Setting, q: Any, k: Any, v: Any, scale: float) -> tuple[Any, Any]:  # noqa: ANN401  # PyTorch
    """Return output (fp16) and log-sum-exp (fp32) of all heads, which the backward kernels take."""
    o, lse = setting.empty(*q.shape), setting.empty(*q.shape[:3], dtype="float32")
    for batch in range(q.shape[0]):
        for head in range(q.shape[1]):
            part = (batch, head)
            found, sums = _reference(setting.torch, q[part].float(), k[part].float(), v[part].float(), scale)
            o[batch, head], lse[batch, head] = found.half(), sums
    return o, lse


def _reference_gradients(torch: Any, q: Any, k: Any, v: Any, do: Any, scale: float) -> tuple[Any, Any, Any]:  # noqa: ANN401
    """Return dQ, dK and dV of one head, by the formulas of softmax's derivative."""
    dq, dk, dv = [], k * 0, v * 0
    for rows, out in zip(q.split(CHUNK), do.split(CHUNK), strict=True):
        p = (rows @ k.T * scale).softmax(-1)
        dp = out @ v.T
        ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * scale
        dq.append(ds @ k)
        dk, dv = dk + ds.T @ rows, dv + p.T @ out
    return torch.cat(dq), dk, dv
