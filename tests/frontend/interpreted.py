"""Runs the examples in Triton's interpreter on numpy arrays and prints the largest error of each as JSON.

A process of its own, started with TRITON_INTERPRET=1, which Triton reads when it is imported.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

Array = NDArray[Any]
LOG2_E = 1.4426950408889634
RANDOM = np.random.default_rng(7)


class Dtype:
    """An element type with what Triton asks of torch's."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.itemsize = dtype.itemsize
        self.is_floating_point = dtype.kind == "f"

    def __str__(self) -> str:
        return f"torch.{self.dtype.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dtype) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class Storage:
    """Memory that the interpreter may write through."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def cpu(self) -> Storage:
        return self

    def copy_(self, other: Storage) -> None:
        assert other.array is self.array


class Tensor:
    """A numpy array with the few methods of a torch tensor that Triton's interpreter calls."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.dtype = Dtype(array.dtype)
        self.shape = list(array.shape)
        self.device = "cpu"

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def untyped_storage(self) -> Storage:
        return Storage(self.array)

    def new_empty(self, *_: object, **__: object) -> Tensor:
        return Tensor(self.array)

    def set_(self, *_: object) -> Tensor:
        return self

    def storage_offset(self) -> int:
        return 0

    def size(self) -> list[int]:
        return self.shape

    def stride(self) -> list[int]:
        return [step // self.array.itemsize for step in self.array.strides]


def add_descriptor_reduce() -> None:
    """Give the interpreter the one operation that it lacks: blocks run one after another, so load, add, store."""

    def reduce(builder: Any, _: object, descriptor: Any, value: Any, offsets: Any) -> Any:
        policies = len(inspect.signature(builder.create_descriptor_load).parameters) - 2
        held = builder.create_descriptor_load(descriptor, offsets, *(None,) * policies)
        total = TensorHandle(held.data + value.data, value.dtype)
        return builder.create_descriptor_store(descriptor, total, offsets)

    InterpreterBuilder.create_descriptor_reduce = reduce


def aligned(shape: tuple[int, ...], dtype: type, *, scale: float = 0.0) -> Array:
    """Return an array that starts at a multiple of 64 bytes, as a GPU's allocator gives: zeros or random."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    array: Array = memory[start : start + size].view(dtype).reshape(shape)
    array[...] = scale * RANDOM.standard_normal(shape)
    return array


def worst(found: Array, expected: Array) -> float:
    return float(np.abs(found.astype(np.float64) - expected).max() / np.abs(expected).max())


def attention(variant: str) -> dict[str, float]:
    """Run forward, and backward for the descriptor variant, and compare with float64."""
    shape, dim = (1, 2, 128, 64), 64
    q, k, v, do = (aligned(shape, np.float16, scale=1.0) for _ in range(4))
    o, lse = aligned(shape, np.float16), aligned(shape[:3], np.float32)
    sm_scale = dim**-0.5
    forward = getattr(importlib.import_module("attention_fwd"), variant)
    forward(*map(Tensor, (q, k, v, o, lse)), sm_scale, block_m=64, block_n=32)
    q64, k64, v64, do64 = (array.astype(np.float64) for array in (q, k, v, do))
    scores = q64 @ k64.transpose(0, 1, 3, 2) * sm_scale
    p = np.exp(scores - scores.max(-1, keepdims=True))
    total = p.sum(-1, keepdims=True)
    p /= total
    expected_lse = (scores.max(-1) + np.log(total[..., 0])) * LOG2_E
    errors = {"o": worst(o, p @ v64), "lse": worst(lse, expected_lse)}
    if variant == "attention":
        errors |= gradients((q, k, v, o, do), lse, sm_scale, (q64, k64, v64, do64, p))
    return errors


def gradients(tensors: tuple[Array, ...], lse: Array, sm_scale: float, exact: tuple[Array, ...]) -> dict[str, float]:
    q, k, v, o, do = tensors
    q64, k64, v64, do64, p = exact
    delta, dq32 = aligned(lse.shape, np.float32), aligned(q.shape, np.float32)
    dq, dk, dv = (aligned(q.shape, np.float16) for _ in range(3))
    backward = importlib.import_module("attention_bwd").attention_gradients
    inputs, outputs = map(Tensor, (q, k, v, o, do, lse)), map(Tensor, (delta, dq32, dq, dk, dv))
    backward(*inputs, sm_scale, *outputs, block_m=32, block_n=64)
    dp = do64 @ v64.transpose(0, 1, 3, 2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * sm_scale
    return {
        "dq": worst(dq, ds @ k64),
        "dk": worst(dk, ds.transpose(0, 1, 3, 2) @ q64),
        "dv": worst(dv, p.transpose(0, 1, 3, 2) @ do64),
    }


def gemm(variant: str) -> dict[str, float]:
    a, b = aligned((64, 96), np.float16, scale=1.0), aligned((96, 128), np.float16, scale=1.0)
    c = aligned((64, 128), np.float16)
    multiply = getattr(importlib.import_module("gemm"), variant)
    multiply(*map(Tensor, (a, b, c)), block_m=32, block_n=64, block_k=32)
    return {"c": worst(c, a.astype(np.float64) @ b.astype(np.float64))}


def rms_norm(variant: str) -> dict[str, float]:
    columns = 128 if variant == "normalise_rows" else 200
    x, w = aligned((8, columns), np.float16, scale=1.0), aligned((columns,), np.float16, scale=1.0)
    y = aligned((8, columns), np.float16)
    extra: dict[str, int] = {"blocks": 3} if variant == "normalise_rows" else {"block_n": 64}
    normalise = getattr(importlib.import_module("rms_norm"), variant)
    normalise(*map(Tensor, (x, w, y)), 1e-6, block_m=2, **extra)
    x64 = x.astype(np.float64)
    return {"y": worst(y, x64 * w / np.sqrt((x64**2).mean(-1, keepdims=True) + 1e-6))}


RUNS = {
    "attention": attention,
    "attention_pointers": attention,
    "matmul": gemm,
    "matmul_pointers": gemm,
    "normalise": rms_norm,
    "normalise_rows": rms_norm,
}

if __name__ == "__main__":
    add_descriptor_reduce()
    json.dump({name: run(name) for name, run in RUNS.items()}, sys.stdout)
