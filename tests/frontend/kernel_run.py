"""A plain interpreter of kernels on numpy arrays: one program, whole tiles, no asynchrony. Checks transformations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twillgpu.frontend.kernel import Kernel, KernelOp, TileType

Array = NDArray[Any]
DTYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "i64": np.int64, "i1": np.bool_}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maxnumf": np.fmax,
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
}
UNARY: dict[str, Callable[[Any], Any]] = {"math.exp2": np.exp2, "math.log2": np.log2}
REDUCE: dict[str, Callable[..., Any]] = {"arith.addf": np.add.reduce, "arith.maxnumf": np.fmax.reduce}
SAME = {"ttg.convert_layout", "ttg.local_alloc", "ttg.local_load"}


@dataclass(frozen=True)
class Pointers:
    """Addresses: elements of a flat array."""

    base: Array
    offsets: Any


class Machine:
    """Runs one program of a kernel; ``memory`` holds a flat array for a pointer, a matrix for a descriptor."""

    def __init__(self, kernel: Kernel, memory: Mapping[str, Any], program: tuple[int, int] = (0, 0)) -> None:
        self.kernel = kernel
        self.program = program
        self.values: dict[str, Any] = {}
        for argument in kernel.arguments:
            given = memory.get(argument.name, 0)
            self.values[argument.name] = Pointers(given, 0) if argument.type.space == "global" else given

    def run(self) -> None:
        loop, values = self.kernel.loop, self.values
        self.block(self.kernel.before)
        state = [values[carried.initial] for carried in loop.carried]
        for index in range(int(values[loop.lower]), int(values[loop.upper]), int(values[loop.step])):
            values[loop.induction.name] = np.int32(index)
            values.update(zip((carried.argument.name for carried in loop.carried), state, strict=True))
            self.block(loop.body)
            state = [values[carried.yielded] for carried in loop.carried]
        values.update(zip((carried.result for carried in loop.carried), state, strict=True))
        self.block(self.kernel.after)

    def block(self, ops: tuple[KernelOp, ...]) -> None:
        for op in ops:
            found = self.result(op, [self.values[name] for name in op.operands])
            values = iter(found if isinstance(found, tuple) else (found,))
            for result in op.results:
                value: Any = None if result.type.space == "token" else next(values)
                assert result.type.space != "registers" or np.shape(getattr(value, "offsets", value)) in (
                    result.type.shape,
                    (),
                ), f"{op.name}: {np.shape(value)} is not {result.type}"
                self.values[result.name] = value

    def result(self, op: KernelOp, given: list[Any]) -> Any:
        if op.opcode in BINARY:
            return BINARY[op.opcode](given[0], given[1])
        if op.opcode in UNARY:
            return UNARY[op.opcode](given[0])
        if op.opcode in SAME:
            return np.array(given[0])
        return getattr(self, re.sub(r"\W", "_", op.opcode))(op, given)

    def arith_constant(self, op: KernelOp, _given: list[Any]) -> Any:
        text, kind = op.attribute("value") or "", op.results[0].type
        if text in ("true", "false"):
            return text == "true"
        if not kind.shape:
            return DTYPES[kind.dtype](float(text.split(" : ")[0]))
        inner = text.removeprefix("dense<").split(">")[0]
        number = -np.inf if inner == "0xFF800000" else float(inner)
        shape = re.findall(r"tensor<([\dx]+)x", text)[0]
        assert tuple(map(int, shape.split("x"))) == kind.shape, "the constant has the type that it is said to have"
        return np.full(kind.shape, number, DTYPES[kind.dtype])

    def arith_truncf(self, op: KernelOp, given: list[Any]) -> Any:
        return given[0].astype(DTYPES[op.results[0].type.dtype])

    def tt_get_program_id(self, op: KernelOp, _given: list[Any]) -> Any:
        return np.int32(self.program[int((op.attribute("axis") or "0").split()[0])])

    def tt_make_range(self, op: KernelOp, _given: list[Any]) -> Any:
        start, end = (int((op.attribute(key) or "").split()[0]) for key in ("start", "end"))
        return np.arange(start, end, dtype=np.int32)

    def tt_splat(self, op: KernelOp, given: list[Any]) -> Any:
        shape = op.results[0].type.shape
        if isinstance(given[0], Pointers):
            return Pointers(given[0].base, np.full(shape, given[0].offsets))
        return np.full(shape, given[0])

    def tt_expand_dims(self, op: KernelOp, given: list[Any]) -> Any:
        axis = int((op.attribute("axis") or "0").split()[0])
        if isinstance(given[0], Pointers):
            return Pointers(given[0].base, np.expand_dims(given[0].offsets, axis))
        return np.expand_dims(given[0], axis)

    def tt_broadcast(self, op: KernelOp, given: list[Any]) -> Any:
        if isinstance(given[0], Pointers):
            return Pointers(given[0].base, np.broadcast_to(given[0].offsets, op.results[0].type.shape))
        return np.broadcast_to(given[0], op.results[0].type.shape)

    def tt_trans(self, _op: KernelOp, given: list[Any]) -> Any:
        return given[0].T

    ttg_memdesc_trans = tt_trans

    def ttg_memdesc_subslice(self, op: KernelOp, given: list[Any]) -> Any:
        starts = [int(number) for number in re.findall(r"\d+", (op.attribute("offsets") or "").split(":")[1])]
        shape = op.results[0].type.shape
        return given[0][tuple(slice(start, start + size) for start, size in zip(starts, shape, strict=True))]

    def tt_reduce(self, op: KernelOp, given: list[Any]) -> Any:
        return REDUCE[op.body[0]](given[0], axis=int((op.attribute("axis") or "0").split()[0]))

    def tt_addptr(self, _op: KernelOp, given: list[Any]) -> Any:
        return Pointers(given[0].base, given[0].offsets + given[1])

    def tt_load(self, _op: KernelOp, given: list[Any]) -> Any:
        return given[0].base[given[0].offsets]

    def tt_store(self, _op: KernelOp, given: list[Any]) -> Any:
        given[0].base[given[0].offsets] = given[1]
        return ()

    def tile(self, matrix: Array, corner: list[Any], kind: TileType) -> Array:
        rows, columns = (slice(int(at), int(at) + size) for at, size in zip(corner, kind.shape, strict=True))
        return matrix[rows, columns]

    def tt_descriptor_load(self, op: KernelOp, given: list[Any]) -> Any:
        return np.array(self.tile(given[0], given[1:], op.results[0].type))

    def tt_descriptor_store(self, _op: KernelOp, given: list[Any]) -> Any:
        self.tile(given[0], given[2:], TileType(space="registers", shape=given[1].shape))[:] = given[1]
        return ()

    def tt_descriptor_reduce(self, _op: KernelOp, given: list[Any]) -> Any:
        self.tile(given[0], given[2:], TileType(space="registers", shape=given[1].shape))[:] += given[1]
        return ()

    def ttng_warp_group_dot(self, _op: KernelOp, given: list[Any]) -> Any:
        a, b, c = given[:3]
        return a.astype(np.float32) @ b.astype(np.float32) + c

    tt_dot = ttng_warp_group_dot

    def ttng_tmem_alloc(self, op: KernelOp, given: list[Any]) -> Any:
        kind = op.results[0].type
        # What nobody wrote must not be read.
        return np.array(given[0]) if given else np.full(kind.shape, np.nan, DTYPES[kind.dtype])

    def ttng_tmem_store(self, _op: KernelOp, given: list[Any]) -> Any:
        assert given[-1] is True
        given[0][:] = given[-2]
        return ()

    def ttng_tmem_load(self, _op: KernelOp, given: list[Any]) -> Any:
        return np.array(given[0])

    def ttng_tc_gen5_mma(self, _op: KernelOp, given: list[Any]) -> Any:
        a, b, d = given[:3]
        flag = next(value for value in given[3:] if isinstance(value, bool))
        d[:] = a.astype(np.float32) @ b.astype(np.float32) + (d if flag else 0)
        return ()
