"""The GPU of a launch, and the machine that stands for it."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from typing import Any

from triton.runtime import driver

from twillgpu.errors import UnsupportedError
from twillgpu.frontend.lowering import CAPABILITIES
from twillgpu.frontend.stubs import Stub
from twillgpu.machine.load import load
from twillgpu.machine.record import Machine

_NAMED = ((90, r"\bH200\b", "h200"),)
"""Chips that differ from others of their compute capability: (capability, pattern of the device's name, machine)."""

_OTHERS = {80: "a100", 90: "h100", 100: "b200"}


def active_driver() -> Any:  # noqa: ANN401  # Triton is untyped
    """Return Triton's driver, or ``None`` where there is no GPU: also while the front end imports a kernel's file."""
    try:
        active = driver.active
    except RuntimeError:
        return None
    return None if isinstance(active, Stub) else active


def machine_of(capability: int, name: str, asked: str | None) -> Machine:
    """Return the machine to schedule for.

    Args:
        capability: the GPU's compute capability, as Triton writes it (90 for 9.0).
        name: the GPU's name, empty where it is not known.
        asked: the machine that the user asked for.

    Raises:
        InputError: there is no such machine.
        UnsupportedError: no machine is known for this GPU, or the one asked for is another kind of GPU.
    """
    device = f"{name or 'this GPU'} (compute capability {capability // 10}.{capability % 10})"
    if asked is not None:
        machine = load(asked)
        if CAPABILITIES.get(machine.arch) != capability:
            raise UnsupportedError(device, f"machine {asked} is {machine.arch or 'no GPU'}", "choose another machine")
        return machine
    for of, pattern, machine_name in _NAMED:
        if of == capability and re.search(pattern, name):
            return load(machine_name)
    if capability not in _OTHERS:
        known = ", ".join(f"{one // 10}.{one % 10}" for one in _OTHERS)
        raise UnsupportedError(device, "no machine is known for it", f"compute capabilities {known} are")
    return load(_OTHERS[capability])


def device_name(device: int) -> str:
    """Return a GPU's name as PyTorch says it; empty where PyTorch is not installed or does not know it."""
    if importlib.util.find_spec("torch") is None:
        return ""
    torch: Any = importlib.import_module("torch")
    return str(torch.cuda.get_device_name(device)) if torch.cuda.is_available() else ""


def is_capturing() -> bool:
    """Return whether PyTorch captures a CUDA graph on the current stream: nothing may be compiled then."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda is not None and bool(cuda.is_available() and cuda.is_current_stream_capturing())
