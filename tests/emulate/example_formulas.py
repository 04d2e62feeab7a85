"""The examples as float64 formulas, and inputs for the captured kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twillgpu.emulate.inputs import Inputs
from twillgpu.frontend.convert import ConvertOptions, convert
from twillgpu.frontend.generic import parse_generic
from twillgpu.frontend.kernel import Kernel

Array = NDArray[Any]
LOG2_E = float(np.log2(np.e))
DATA = Path(__file__).parents[1] / "frontend" / "data"
FILES = tuple(sorted(path.name for path in DATA.glob("*.mlir")))


def captured(name: str) -> Kernel:
    """Return one of the checked-in kernels."""
    module = parse_generic((DATA / name).read_text(encoding="utf-8"), where=name)
    return convert(module, ConvertOptions(where=name, loop=2 if name.startswith("rms_norm_sm") else None))


def attention(q: Array, k: Array, v: Array, scale: float) -> tuple[Array, Array]:
    """Return softmax(q k^T scale) v and the base-2 log-sum-exp of each row, in f64."""
    scores = q.astype(np.float64) @ k.astype(np.float64).T * scale
    peak = scores.max(1, keepdims=True)
    weights = np.exp(scores - peak)
    total = weights.sum(1, keepdims=True)
    return weights / total @ v.astype(np.float64), ((peak + np.log(total)) * LOG2_E)[:, 0]


def attention_gradients(tensors: dict[str, Array], scale: float) -> dict[str, Array]:
    """Return the gradients of q, k and v in f64, from q, k, v and do."""
    q, k, v, do = (tensors[name].astype(np.float64) for name in ("q", "k", "v", "do"))
    scores = q @ k.T * scale
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    dp = do @ v.T
    ds = p * (dp - (p * dp).sum(1, keepdims=True)) * scale
    return {"dq": ds @ k, "dk": ds.T @ q, "dv": p.T @ do}


def rms_norm(x: Array, w: Array, eps: float) -> Array:
    """Return the normalised rows in f64."""
    wide = x.astype(np.float64)
    return np.asarray(wide * w.astype(np.float64) / np.sqrt((wide**2).mean(1, keepdims=True) + eps))


def halves(random: np.random.Generator, *shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float16)


def worst(found: Array, expected: Array) -> float:
    """Return the largest error, relative to the largest value."""
    return float(np.abs(found.astype(np.float64) - expected).max() / np.abs(expected).max())


def attention_inputs(kernel: Kernel, keys: int, *, queries: int = 512, depth: int = 128) -> Inputs:
    """Return inputs of the forward example: one head, queries and keys apart so that ``keys`` is free."""
    random = np.random.default_rng(3)
    q, k, v = (halves(random, rows, depth) for rows in (queries, max(keys, 1), max(keys, 1)))
    o, lse = np.zeros((queries, depth), np.float16), np.zeros(queries, np.float32)
    suffix = "_desc" if kernel.name == "attention_fwd" else "_ptr"
    tensors = {f"{name}{suffix}": tensor for name, tensor in (("q", q), ("k", k), ("v", v), ("o", o))}
    scalars = {"sm_scale": depth**-0.5, "seq_len": keys}
    return Inputs(tensors=tensors | {"lse_ptr": lse}, scalars=scalars)
