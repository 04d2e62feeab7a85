"""How a kernel is launched: what its file declares, and what the command line says instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twillgpu.errors import InputError

ArgumentType = str | int | float | None
"""A type such as ``*fp16``, ``i32:16`` or ``tensordesc<fp16[BLOCK_M,64]>``, a shape such as ``fp16[4096,128]``, or
the value of a scalar argument; ``None`` is the value ``None``.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A sample launch of a kernel, declared beside it: ``LAUNCH = twillgpu.Launch(kernel="gemm", ...)``.

    Attributes:
        kernel: name of the ``@triton.jit`` function.
        args: type, shape or value of each argument that is not a constexpr, by name.
        constexprs: value of each ``tl.constexpr`` argument, by name.
        num_warps: warps of a block; ``None`` takes the autotuner's, or 4.
        target: ``sm_80``, ``sm_90a`` or ``sm_100a`` for a launch that is meant for one target, ``None`` for any.
        loop: number of the loop to schedule, counted from 1, where the kernel has several.
    """

    kernel: str
    args: Mapping[str, ArgumentType] = field(default_factory=dict)
    constexprs: Mapping[str, object] = field(default_factory=dict)
    num_warps: int | None = None
    target: str | None = None
    loop: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, str) or not self.kernel:
            raise InputError("Launch", f"kernel is {self.kernel!r}", "give the name of the @triton.jit function")
        where = f"Launch of {self.kernel}"
        for name, given in (("args", self.args), ("constexprs", self.constexprs)):
            if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
                raise InputError(where, f"{name} is not a mapping from names", f"write {name}={{'name': ...}}")
        _check_warps(self.num_warps, where)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """What the command line says about the source; it goes before what the file declares.

    Attributes:
        kernel: name of the kernel, ``None`` for the declared or only one.
        args: (name, type or value as text) pairs.
        constexprs: (name, value) pairs.
        num_warps: warps of a block, ``None`` for the declared ones.
        config: number of the autotuner's configuration counted from 1, ``None`` for the first.
        loop: number of the loop counted from 1, ``None`` for the only one.
    """

    kernel: str | None = None
    args: tuple[tuple[str, str], ...] = ()
    constexprs: tuple[tuple[str, int | float | bool | str | None], ...] = ()
    num_warps: int | None = None
    config: int | None = None
    loop: int | None = None

    def __post_init__(self) -> None:
        _check_warps(self.num_warps, "--num-warps")


def parse_options(
    *,
    kernel: str | None = None,
    args: Sequence[str] = (),
    constexprs: Sequence[str] = (),
    num_warps: int | None = None,
    config: int | None = None,
    loop: int | None = None,
) -> LoadOptions:
    """Return the options of a command line such as ``--arg q='*fp16' --const BLOCK_M=128``.

    Raises ``InputError`` for an assignment without a name, or a name given twice.
    """
    return LoadOptions(
        kernel=kernel,
        args=_assignments("--arg", args, "NAME=TYPE"),
        constexprs=tuple(
            (name, _constexpr(text)) for name, text in _assignments("--const", constexprs, "NAME=VALUE")
        ),
        num_warps=num_warps,
        config=config,
        loop=loop,
    )


def _check_warps(num_warps: int | None, where: str) -> None:
    if num_warps is not None and num_warps not in (1, 2, 4, 8, 16, 32):
        raise InputError(where, f"{num_warps} warps", "use a power of two from 1 to 32")


def _assignments(option: str, texts: Sequence[str], form: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name.isidentifier() or not equals or not value:
            raise InputError(f"{option} {text}", "this is not an assignment", f"write {option} {form}")
        if name in found:
            raise InputError(f"{option} {text}", f"{name} is given twice", "give it once")
        found[name] = value
    return tuple(found.items())


def _constexpr(text: str) -> int | float | bool | str | None:
    """Return the Python value that ``text`` spells; anything else stays text (``tl.float16`` is resolved later)."""
    words = {"True": True, "False": False, "true": True, "false": False, "None": None}
    if text in words:
        return words[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text.strip("'\"")
