"""Runs kernels of the examples in Triton's interpreter: reads launches from a folder, writes the tensors back to it.

A process of its own, started with TRITON_INTERPRET=1, which Triton reads when it is imported. ``launches.json`` lists
{name, file, kernel, grid, constexprs, args}; an argument is {scalar}, {tensor}, or {tensor, block}; tensors are
``NAME.TENSOR.npy``, and the results ``NAME.TENSOR.out.npy``. Files of kernels may lie there too.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests" / "frontend"), sys.argv[1]]

from interpreted import Tensor, add_descriptor_reduce, aligned  # noqa: E402 (found on the path set above)
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402


def run(folder: Path, launch: dict[str, Any]) -> None:
    kernel = getattr(importlib.import_module(launch["file"]), launch["kernel"])
    arguments, arrays = [], {}
    for argument in launch["args"]:
        if "tensor" not in argument:
            arguments.append(argument["scalar"])
            continue
        given = np.load(folder / f"{launch['name']}.{argument['tensor']}.npy")
        array = arrays[argument["tensor"]] = aligned(given.shape, given.dtype.type)
        array[...] = given
        tensor = Tensor(array)
        strides = tensor.stride()
        block = argument.get("block")
        arguments.append(TensorDescriptor(tensor, list(given.shape), strides, block) if block else tensor)
    kernel[tuple(launch["grid"])](*arguments, **launch["constexprs"])
    for name, array in arrays.items():
        np.save(folder / f"{launch['name']}.{name}.out.npy", array)


if __name__ == "__main__":
    add_descriptor_reduce()
    place = Path(sys.argv[1])
    for one in json.loads((place / "launches.json").read_text(encoding="utf-8")):
        run(place, one)
