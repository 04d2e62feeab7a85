"""NumPy under the names of PyTorch that ``bench/gpu_works.py`` uses: for rehearsals where PyTorch is not installed.

What it lacks (attention, products into a given tensor, gradients) is missing as a library is: such rows are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

SEED = 0


class Tensor(np.ndarray):
    """An array with PyTorch's methods; views and results are tensors too."""

    def half(self) -> Tensor:
        """Return the values as fp16."""
        return tensor(self.astype(np.float16))

    def float(self) -> Tensor:
        """Return the values as fp32."""
        return tensor(self.astype(np.float32))

    def double(self) -> Tensor:
        """Return the values as fp64."""
        return tensor(self.astype(np.float64))

    def detach(self) -> Tensor:
        """Return the tensor: there are no gradients here."""
        return self

    def numpy(self) -> np.ndarray:
        """Return the array itself."""
        return self.view(np.ndarray)

    def data_ptr(self) -> int:
        """Return the address."""
        return int(self.ctypes.data)

    def fill_(self, value: Any) -> Tensor:  # noqa: ANN401  # a number
        """Fill in place."""
        self[...] = value
        return self

    def zero_(self) -> Tensor:
        """Fill with zeros in place."""
        return self.fill_(0.0)

    def abs(self) -> Tensor:
        """Return the absolute values."""
        return tensor(np.abs(self.numpy()))

    def norm(self) -> Any:  # noqa: ANN401  # a number of NumPy
        """Return the Frobenius norm."""
        return np.linalg.norm(self.numpy())

    def sum(self, axis: int, keepdim: bool = False) -> Any:  # type: ignore[override]  # noqa: ANN401  # PyTorch's
        """Return the sums along an axis."""
        return np.ndarray.sum(self, axis=axis, keepdims=keepdim)

    def softmax(self, axis: int) -> Tensor:
        """Return the softmax along an axis."""
        raised = np.exp(self.numpy() - np.max(self.numpy(), axis=axis, keepdims=True))
        return tensor(raised / np.sum(raised, axis=axis, keepdims=True))

    def logsumexp(self, axis: int) -> Tensor:
        """Return the logarithm of the sum of exponentials along an axis."""
        most = np.max(self.numpy(), axis=axis, keepdims=True)
        sums = np.log(np.sum(np.exp(self.numpy() - most), axis=axis)) + np.squeeze(most, axis)
        return tensor(sums)

    def split(self, rows: int) -> list[Tensor]:
        """Return consecutive parts of at most so many rows."""
        return [tensor(self[at : at + rows]) for at in range(0, len(self), rows)]


class NumpyTorch:
    """The functions."""

    __version__ = f"NumPy {np.__version__} in the place of PyTorch"
    float32, float16 = np.float32, np.float16

    def __init__(self) -> None:
        self.generator = np.random.default_rng(SEED)

    def randn(self, shape: Sequence[int], *, device: str, dtype: Any) -> Tensor:  # noqa: ANN401  # NumPy's
        """Return normal numbers."""
        del device
        return tensor(self.generator.standard_normal(shape, dtype=dtype))

    def full(self, shape: Sequence[int], value: float, *, device: str, dtype: Any) -> Tensor:  # noqa: ANN401  # NumPy's
        """Return a tensor full of one value."""
        del device
        return tensor(np.full(shape, value, dtype=dtype))

    def randint(self, high: int, shape: Sequence[int], *, device: str = "cpu") -> Tensor:
        """Return integers below ``high``."""
        del device
        return tensor(self.generator.integers(high, size=tuple(shape)))

    @staticmethod
    def cat(parts: Sequence[Tensor]) -> Tensor:
        """Return the parts one after the other."""
        return tensor(np.concatenate(parts))


def tensor(values: Any) -> Tensor:  # noqa: ANN401  # whatever NumPy makes an array of
    """Return an array as a tensor."""
    return np.asarray(values).view(Tensor)
