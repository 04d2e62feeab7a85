"""Constants of the source (``gl.constexpr``), layouts that mean nothing here, and loops over runtime scalars."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

from twillgpu.emulate.gluon.given import Given, plain
from twillgpu.emulate.gluon.runtime import Runtime
from twillgpu.emulate.gluon.tile import Tile, scalar

_OPERATORS: dict[str, Callable[..., Given]] = {
    name: getattr(operator, name)
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift",
        "eq", "ne", "lt", "le", "gt", "ge",
    )
}  # fmt: skip


class Constexpr:
    """``gl.constexpr``: a value that the compiler knows. An operation on two of them is one."""

    is_constexpr = True

    def __init__(self, value: Given) -> None:
        self.value = plain(value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __getitem__(self, at: Given) -> Given:
        return self.value[at]

    def __iter__(self) -> Iterator[Given]:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __getattr__(self, name: str) -> Given:
        return getattr(self.value, name)

    def __call__(self, *given: Given, **named: Given) -> Given:
        """Call whatever it holds."""
        return self.value(*given, **named)

    def __neg__(self) -> Given:
        return -self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"


def _forward(function: Callable[..., Given]) -> Callable[..., Given]:
    return lambda self, other: function(self.value, plain(other))


def _backward(function: Callable[..., Given]) -> Callable[..., Given]:
    return lambda self, other: function(plain(other), self.value)


for _name, _function in _OPERATORS.items():
    setattr(Constexpr, f"__{_name.strip('_')}__", _forward(_function))
    setattr(Constexpr, f"__r{_name.strip('_')}__", _backward(_function))


def loop_range(runtime: Runtime) -> Callable[..., Given]:
    """Return ``range`` for kernels: over runtime scalars it gives runtime scalars, and notes where its group is."""

    def counted(*bounds: Given, **_options: object) -> Given:
        given = [plain(bound) for bound in bounds]
        if not any(isinstance(bound, Tile) for bound in given):
            return range(*given)
        return _positions(runtime, range(*(int(bound) for bound in given)), given)

    return counted


def _positions(runtime: Runtime, places: range, bounds: list[Given]) -> Iterator[Tile]:
    dtype = next(bound.dtype for bound in bounds if isinstance(bound, Tile))
    partition = runtime.session.partition
    outer = partition.iteration
    for place in places:
        partition.iteration = place
        yield scalar(place, dtype)
    partition.iteration = outer
