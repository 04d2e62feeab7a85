"""Ops on tiles in SMEM and TMEM: allocation, copies, and views of a tile.

Here every copy is complete when the op returns; an emulator calls the same rules when it decides that the hardware is
done.
"""

from __future__ import annotations

import numpy as np

from twillgpu.emulate.call import Call, Rule, Value
from twillgpu.emulate.memory import MemDesc
from twillgpu.emulate.ops_global import masked_load


def _alloc(call: Call) -> Value:
    made = MemDesc.new(call.result.shape, call.result.dtype)
    if call.values:
        made.store(call.values[0])
    return made


def _load(call: Call) -> Value:
    if call.op.attribute("redOp") is not None:
        raise call.unsupported("the reduction of a load from tensor memory is not supported")
    return call.values[0].load()


def _local_store(call: Call) -> Value:
    values, target = call.values
    target.store(values)


def _tmem_store(call: Call) -> Value:
    target, values, predicate = call.values
    if predicate:
        target.store(values)


def _copy(call: Call) -> Value:
    source, target = call.values[:2]
    if source.shape != target.shape:
        raise call.unsupported("a copy of scales into tensor memory changes their order")
    target.store(source.load())


def _async_copy(call: Call) -> Value:
    target = call.values[1]
    mask, other = call.optional(2), call.optional(3)
    target.store(masked_load(call, call.values[0], mask, other, target.dtype))


def _gather(call: Call) -> Value:
    source, index = call.values
    return np.take_along_axis(source.load(), index.astype(np.int64), call.integer("axis"))


def _scatter(call: Call) -> Value:
    target, values, index = call.values
    tile = target.load()
    np.put_along_axis(tile, index.astype(np.int64), values, call.integer("axis"))
    target.store(tile)


def _subview(call: Call) -> Value:
    source, *offsets = call.values
    shape = (1,) * (len(source.shape) - len(call.result.shape)) + call.result.shape
    return source.subslice(map(int, offsets), shape).reshape(call.result.shape)


def _tmem_subslice(call: Call) -> Value:
    """Take columns from ``N`` on (``offset`` along ``dim`` from Triton 3.8 on)."""
    source, shape = call.values[0], call.result.shape
    start = call.integer("N" if call.op.attribute("N") is not None else "offset", 0)
    axis = call.integer("dim", 1)
    return source.subslice((start if place == axis else 0 for place in range(len(shape))), shape)


LOCAL_RULES: dict[str, Rule] = {
    "ttg.local_alloc": _alloc,
    "ttg.local_dealloc": lambda _call: None,
    "ttg.local_load": _load,
    "ttg.local_store": _local_store,
    "ttg.local_gather": _gather,
    "ttg.local_scatter": _scatter,
    "ttg.memdesc_index": lambda call: call.values[0].index(int(call.values[1])),
    "ttg.memdesc_subslice": lambda call: call.values[0].subslice(call.list("offsets"), call.result.shape),
    "ttg.memdesc_subview": _subview,
    "ttg.memdesc_trans": lambda call: call.values[0].transpose(call.list("order")),
    "ttg.memdesc_reshape": lambda call: call.values[0].reshape(call.result.shape),
    "ttg.memdesc_reinterpret": lambda call: call.values[0].reinterpret(call.result.shape, call.result.dtype),
    "ttg.async_copy_global_to_local": _async_copy,
    "ttg.async_commit_group": lambda _call: None,
    "ttg.async_wait": lambda _call: None,
    "ttng.tmem_alloc": _alloc,
    "ttng.tmem_load": _load,
    "ttng.tmem_store": _tmem_store,
    "ttng.tmem_copy": _copy,
    "ttng.tmem_subslice": _tmem_subslice,
}
