"""The parameters of a bound kernel, with the constants that Triton compiles in."""

from __future__ import annotations

import ast
import inspect

from twillgpu.frontend.binding import Bound
from twillgpu.frontend.kernel import Parameter


def parameters_of(bound: Bound) -> tuple[Parameter, ...]:
    """Return the parameters of a bound kernel, in the order of its signature, and the warps of the launch.

    ``aligned`` says what is known; ``counted_on`` keeps of it what the kernel uses.
    """
    declared = (
        Parameter(
            name=parameter.name,
            type=_plain(str(bound.signature[parameter.name])),
            value=literal(bound.constants.get((at,))) if bound.signature[parameter.name] == "constexpr" else "",
            default=_default(parameter.default),
            aligned=["tt.divisibility", 16] in bound.attributes.get((at,), []),
        )
        for at, parameter in enumerate(bound.function.params)
    )
    return (*declared, Parameter(name="num_warps", type="option", value=str(bound.num_warps)))


def _plain(signature: str) -> str:
    """Return a type without spaces, without the mark of a pointer to constants, and with one name for booleans."""
    text = signature.replace(" ", "")
    if text in ("u1", "*u1"):
        return text.replace("u", "i")
    return f"*{text.removeprefix('*k')}" if text.startswith("*k") else text


def literal(value: object) -> str:
    """Return a constant as a Python literal; of what has none (a type, a function, NaN) the name, as one."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    text = repr(value)
    try:
        if ast.literal_eval(text) == value:
            return text
    except (ValueError, SyntaxError, TypeError):
        pass
    return repr(str(getattr(value, "__name__", value)))


def _default(value: object) -> str:
    return "" if value is inspect.Parameter.empty else literal(value)
