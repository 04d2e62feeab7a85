"""Layouts of Gluon: names, as values do not depend on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from twillgpu.emulate.gluon.given import Given, plain
from twillgpu.errors import UnsupportedError

_FIELDS = {
    "BlockedLayout": ("size_per_thread", "threads_per_warp", "warps_per_cta", "order"),
    "SliceLayout": ("dim", "parent"),
    "DotOperandLayout": ("operand_index", "parent", "k_width"),
    "NVMMASharedLayout": ("swizzle_byte_width", "element_bitwidth", "rank", "transposed", "fp4_padded"),
    "NVMMADistributedLayout": ("version", "warps_per_cta", "instr_shape"),
    "SwizzledSharedLayout": ("vec", "per_phase", "max_phase", "order"),
    "TensorMemoryLayout": ("block", "col_stride"),
}
"""Names of the fields that layouts are given by position."""


class Layout:
    """A layout: what it was made of, and nothing else."""

    def __init__(self, kind: str, given: tuple[Given, ...], named: dict[str, Given]) -> None:
        self.kind = kind
        self.fields = dict(zip(_FIELDS.get(kind, ()), map(plain, given), strict=False))
        self.fields |= {name: plain(value) for name, value in named.items()}

    def __getattr__(self, name: str) -> Given:
        if name.startswith("__") or name not in self.__dict__.get("fields", {}):
            raise AttributeError(name)
        return self.fields[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"


class UnknownLayout(Layout):
    """The layout of a tile in registers: values do not depend on it, and it is not followed here."""

    def __init__(self) -> None:
        super().__init__("UnknownLayout", (), {})

    def __getattr__(self, name: str) -> Given:
        if name.startswith("__") or name == "is_constexpr":
            raise AttributeError(name)
        raise UnsupportedError(
            "the kernel", f"it asks for {name} of a tile's layout", "compute layouts in a constexpr_function"
        )


UNKNOWN = UnknownLayout()
"""The layout of every tile in registers."""


def constexpr_function(function: Callable[..., Given]) -> Callable[..., Given]:
    """``gluon.constexpr_function``: what it makes of the layout of a tile is a layout that is unknown as well."""

    @wraps(function)
    def call(*given: Given, **named: Given) -> Given:
        if any(plain(value) is UNKNOWN for value in (*given, *named.values())):
            return UNKNOWN
        return function(*given, **named)

    return call


def layout_class(kind: str) -> type:
    """Return the class of a layout, whose methods give layouts too."""

    def make(_cls: type, *given: Given, **named: Given) -> Layout:
        return _of_one_block(Layout(kind, given, named))

    def default(*_given: Given, **named: Given) -> Layout:
        return _of_one_block(Layout(kind, (), {name: named[name] for name in named if name == "cga_layout"}))

    def of_blocks(num_ctas: Given, *_given: Given, **_named: Given) -> Layout:
        if int(plain(num_ctas)) > 1:
            raise no_clusters()
        return Layout(kind, (), {})

    methods = {"__new__": make, "get_default_for": staticmethod(default), "multicta": staticmethod(of_blocks)}
    return type(kind, (), methods)


def no_clusters() -> UnsupportedError:
    """Return the error of what needs several blocks to work together."""
    return UnsupportedError("the kernel", "clusters: several blocks that share memory", "use one block per cluster")


def _of_one_block(layout: Layout) -> Layout:
    if layout.fields.get("cga_layout") or layout.fields.get("two_ctas"):
        raise no_clusters()
    return layout
