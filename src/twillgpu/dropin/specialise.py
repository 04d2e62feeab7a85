"""A launch as Triton itself specialises it: types, divisibility, constants, by Triton's own binder."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from twillgpu.errors import UnsupportedError
from twillgpu.frontend.binding import Bound
from twillgpu.frontend.jit_kernels import Found

_REFUSED = {
    "num_ctas": 1,
    "maxnreg": None,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
    "ir_override": None,
}
"""Launch options that an emitted kernel has no counterpart for, and the value that each may have."""


PLAIN = ("zero", False)
"""Padding and rounding of a descriptor that an emitted kernel can take the place of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One launch: every argument by name, what Triton specialises it on, and a key that equal specialisations share.

    ``given`` are the keyword arguments of the call; ``backend`` is Triton's, for the device.
    """

    function: Any
    device: int
    capability: int
    key: Hashable
    arguments: dict[str, Any]
    given: dict[str, Any]
    specialization: list[Any]
    options: dict[str, Any]
    backend: Any


def call_of(function: Any, active: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:  # noqa: ANN401  # untyped
    """Return what a call launches. Raises ``TypeError`` where Triton would: arguments that do not fit the kernel."""
    device = active.get_current_device()
    *_, target, backend, binder = function.device_caches[device]
    arguments, specialization, options = binder(*args, **kwargs)
    return Call(
        function=function,
        device=device,
        capability=int(target.arch),
        key=_key(device, specialization, options, _descriptor_options(arguments)),
        arguments=arguments,
        given=kwargs,
        specialization=specialization,
        options=options,
        backend=backend,
    )


def _key(*parts: Any) -> Hashable:  # noqa: ANN401  # Triton is untyped
    device, specialization, options, descriptors = parts
    key = (device, tuple(specialization), tuple(sorted(options.items())), descriptors)
    try:
        hash(key)
    except TypeError:  # a list among the constants: as text, as in Triton's own key
        return str(key)
    return key


def _descriptor_options(arguments: dict[str, Any]) -> tuple[tuple[object, object], ...]:
    """Return how each descriptor pads and rounds, which Triton does not specialise on."""
    found = [value for value in arguments.values() if hasattr(value, "block_shape")]
    return tuple((getattr(one, "padding", "zero"), getattr(one, "round_f32_to_tf32", False)) for one in found)


def bound_of(call: Call, loop: int | None) -> Bound:
    """Return the launch as the front end takes it.

    Sizes stay unknown, so that the schedule is one for all launches of this specialisation.

    Raises:
        UnsupportedError: a launch option has no counterpart.
    """
    function = call.function
    options, signature, constants, attributes = function._pack_args(  # noqa: SLF001  # Triton has no public binder
        call.backend, call.given, call.arguments, call.specialization, call.options
    )
    found = Found(name=function.__name__, function=function)
    if any(one != PLAIN for one in _descriptor_options(call.arguments)):
        raise UnsupportedError(
            f"launch of {found.name}",
            "a descriptor pads with NaN or rounds to TF32",
            "emitted kernels pad with zeros",
        )
    for name, value in _REFUSED.items():
        if getattr(options, name, value) != value:
            asked = getattr(options, name)
            raise UnsupportedError(
                f"launch of {found.name}", f"it asks for {name}={asked!r}", "emitted kernels have no such option"
            )
    return Bound(
        function=function,
        signature=signature,
        constants=constants,
        attributes=attributes,
        num_warps=int(options.num_warps),
        loop=loop,
        values={},
        line=found.line,
        remarks=(),
    )
