"""Choosing the kernel and the loop in a module, and declining what has no loop that can be scheduled yet."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.errors import InputError, TwillError, UnsupportedError, nearest
from twillgpu.frontend.generic import MlirModule, MlirOp
from twillgpu.frontend.location import user_frame

COMBINING_OPCODES = ("tt.reduce", "tt.scan", "tt.map_elementwise")
"""Ops whose region is a scalar function of elements and no control flow."""

_LATER = {
    "ttg.warp_specialize": "warp specialized",
    "ttg.async_copy_global_to_local": "pipelined",
    "ttng.async_tma_copy_global_to_local": "pipelined",
    "ttng.wait_barrier": "pipelined",
}
_REASONS = {
    "scf.for": ("a loop inside the loop", "only a single loop is scheduled: unroll the inner one (tl.static_range)"),
    "scf.while": ("a while loop inside the loop", "use a for loop over tl.range with a known number of iterations"),
    "scf.if": ("an if inside the loop", "use tl.where, or split the loop where the condition changes"),
    "tt.call": ("a call that Triton did not inline", "remove noinline=True from the function"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A function cut at the chosen loop."""

    function: MlirOp
    before: tuple[MlirOp, ...]
    loop: MlirOp
    after: tuple[MlirOp, ...]


class Places:
    """Says where an op is: the user's line where the module knows it, otherwise the line of the text."""

    def __init__(self, module: MlirModule, where: str) -> None:
        self.module = module
        self.where = where

    def of(self, op: MlirOp) -> str:
        """Return ``kernel.py:31``, or ``kernel.mlir:97`` for text without locations."""
        return user_frame(self.module, op.location).source or f"{self.where}:{op.line}"


def cut(module: MlirModule, *, where: str, kernel: str | None, loop: int | None) -> Parts:
    """Return the function called ``kernel`` (the only one by default) cut at its loop number ``loop``.

    Raises ``InputError`` where a choice is needed or wrong, ``UnsupportedError`` where the control flow is not
    supported; both name the source line.
    """
    places = Places(module, where)
    function = _function(module, places, kernel)
    _check_untouched(function, places)
    ops = _straight_line(function, places)
    chosen = _loop(ops, places, function, loop)
    _check_body(chosen, places)
    at = ops.index(chosen)
    return Parts(function=function, before=ops[:at], loop=chosen, after=ops[at + 1 : -1])


def function_name(function: MlirOp) -> str:
    """Return the symbol of a ``tt.func``."""
    return (function.attribute("sym_name") or "").strip('"')


def _function(module: MlirModule, places: Places, kernel: str | None) -> MlirOp:
    functions = {
        function_name(op): op
        for op in module.op.nested()
        if op.opcode == "tt.func" and op.attribute("sym_visibility") != '"private"'
    }
    if not functions:
        raise InputError(places.where, "the module has no tt.func", "give the TTGIR of a Triton kernel")
    if kernel is not None and kernel not in functions:
        raise InputError(places.where, f"no kernel {kernel!r}", nearest(kernel, functions))
    if kernel is None and len(functions) > 1:
        listed = ", ".join(f"{name} ({places.of(op)})" for name, op in functions.items())
        raise InputError(places.where, f"several kernels: {listed}", "choose one with --kernel NAME")
    return functions[kernel] if kernel is not None else next(iter(functions.values()))


def _check_untouched(function: MlirOp, places: Places) -> None:
    for op in function.nested():
        if op.opcode in _LATER:
            raise UnsupportedError(
                places.of(op),
                f"the kernel is {_LATER[op.opcode]} already (it has {op.opcode})",
                "give the TTGIR before Triton's warp specialization and pipelining, or the Python file",
            )


def _straight_line(function: MlirOp, places: Places) -> tuple[MlirOp, ...]:
    blocks = function.regions[0] if function.regions else ()
    if not blocks or not blocks[0].ops:
        raise InputError(places.of(function), "the kernel has no body", "give a kernel with a loop")
    if len(blocks) > 1:
        raise UnsupportedError(
            places.of(blocks[0].ops[-1]),
            "the kernel branches outside of its loop (an early return?)",
            "remove the branch, or mask the loads and stores",
        )
    return blocks[0].ops


def _loop(ops: tuple[MlirOp, ...], places: Places, function: MlirOp, number: int | None) -> MlirOp:
    loops = [op for op in ops if op.opcode == "scf.for"]
    if not loops:
        raise _no_loop(ops, places, function)
    listed = ", ".join(f"{index} ({places.of(op)})" for index, op in enumerate(loops, start=1))
    if number is None and len(loops) > 1:
        raise InputError(
            places.where, f"the kernel has {len(loops)} loops: {listed}", "choose the one to schedule with --loop N"
        )
    if number is not None and not 1 <= number <= len(loops):
        raise InputError(places.where, f"there is no loop {number}", f"choose one with --loop N: {listed}")
    return loops[(number or 1) - 1]


def _no_loop(ops: tuple[MlirOp, ...], places: Places, function: MlirOp) -> TwillError:
    for op in ops:
        if op.opcode == "scf.while":
            return UnsupportedError(
                places.of(op),
                "the kernel's loop is a while loop",
                "use a for loop over tl.range: the number of iterations must be known when it starts",
            )
        inner = next((nested for nested in op.nested() if nested.opcode == "scf.for"), None)
        if inner is not None:
            return UnsupportedError(
                places.of(inner),
                f"the loop is inside another region ({op.opcode} at {places.of(op)})",
                "move the loop to the top level of the kernel",
            )
    return UnsupportedError(
        places.of(function),
        f"the kernel {function_name(function)!r} has no loop",
        "give a kernel with a for loop over tl.range (tl.static_range and a single known iteration leave none)",
    )


def _check_body(loop: MlirOp, places: Places) -> None:
    for op in loop.regions[0][0].ops:
        if op.opcode in _REASONS:
            what, remedy = _REASONS[op.opcode]
            raise UnsupportedError(places.of(op), f"{what} at {places.of(loop)}", remedy)
        if op.regions and op.opcode not in COMBINING_OPCODES:
            raise UnsupportedError(
                places.of(op), f"{op.opcode} in the loop: its region is not supported", "rewrite the loop without it"
            )
