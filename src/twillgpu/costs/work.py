"""The price of a kernel's op from the machine ops it stands for."""

from __future__ import annotations

from collections.abc import Callable

from twillgpu.costs.pricing import Price, at
from twillgpu.errors import InputError
from twillgpu.graph.record import Op
from twillgpu.machine.record import Machine

RULES: dict[str, Callable[[Op, Machine], Price]] = {}


def price_work(op: Op, machine: Machine) -> Price:
    """Return the price of ``op`` from its work.

    Raises:
        InputError: an opcode that the machine file does not price.
    """
    raise InputError(at(op), f"machine {machine.name} does not price {op.work[0].opcode}", "give the op a cost")
