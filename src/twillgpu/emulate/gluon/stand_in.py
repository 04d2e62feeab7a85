"""Modules that stand for Triton and Gluon while a source file runs: neither has to be installed.

The file is executed with an ``import`` of its own; ``sys.modules`` stays as it is.
"""

from __future__ import annotations

import builtins
import linecache
from collections.abc import Callable, Mapping
from functools import partial, reduce
from pathlib import Path
from types import ModuleType

from twillgpu.emulate.gluon.constants import Constexpr, loop_range
from twillgpu.emulate.gluon.dtypes import DTYPES
from twillgpu.emulate.gluon.engines import Engines, TiledDescriptor
from twillgpu.emulate.gluon.functions import FUNCTIONS, PACKED, maximum, minimum
from twillgpu.emulate.gluon.given import Given, plain
from twillgpu.emulate.gluon.host import HostTensor, JitFunction, Launches, TensorDescriptor
from twillgpu.emulate.gluon.layouts import UNKNOWN, constexpr_function, layout_class, no_clusters
from twillgpu.emulate.gluon.pointers import Pointers
from twillgpu.emulate.gluon.runtime import Memory, Runtime, SharedMemory, TensorMemory
from twillgpu.emulate.gluon.tile import Tile, scalar
from twillgpu.errors import InputError, UnsupportedError

LAYOUTS = (
    "AutoLayout", "BlockedLayout", "SliceLayout", "DistributedLinearLayout", "DotOperandLayout",
    "NVMMADistributedLayout", "NVMMASharedLayout", "SwizzledSharedLayout", "PaddedSharedLayout",
    "SharedLinearLayout", "CoalescedLayout",
)  # fmt: skip
VERSIONS = ("3.6", "3.9")
"""Versions of Triton whose names are offered."""

_GLUON = "triton.experimental.gluon"
_LANGUAGE = f"{_GLUON}.language"
_NVIDIA = f"{_LANGUAGE}.nvidia"


class StandIns:
    """The modules, by dotted name, for one source file."""

    def __init__(self, launches: Launches, version: str) -> None:
        self.runtime = Runtime()
        self.launches = launches
        self.recent = version != VERSIONS[0]
        self.modules: dict[str, ModuleType] = {}
        self._fill()

    def import_module(
        self, name: str, scope: Mapping[str, Given] | None = None, local: Mapping[str, Given] | None = None,
        wanted: tuple[str, ...] = (), level: int = 0,
    ) -> ModuleType:  # fmt: skip
        """``__import__`` for the source file."""
        if name.partition(".")[0] != "triton":
            return builtins.__import__(name, scope, local, wanted, level)
        if name not in self.modules:
            raise ImportError(f"no stand-in for module {name}", name=name)
        return self.modules[name if wanted else "triton"]

    def _add(self, name: str, contents: Mapping[str, Given]) -> None:
        module = ModuleType(name)
        module.__dict__.update(contents)
        self.modules[name] = module
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(self.modules[parent], own, module)

    def _fill(self) -> None:
        engines, jit = Engines(self.runtime), self._jit
        plainly = {"jit": jit, "constexpr_function": constexpr_function, "constexpr": Constexpr}
        self._add(
            "triton", {"jit": jit, "cdiv": FUNCTIONS["cdiv"], "__version__": "3.9.0" if self.recent else "3.6.0"}
        )
        self._add("triton.language", {"constexpr": Constexpr})
        self._add("triton.language.core", {"_aggregate": _aggregate, "constexpr": Constexpr})
        self._add("triton.experimental", {})
        self._add(_GLUON, {**plainly, "aggregate": _aggregate, "must_use_result": _itself})
        self._add(f"{_GLUON}.nvidia", {})
        for chip in ("hopper", "blackwell"):
            self._add(f"{_GLUON}.nvidia.{chip}", {"TensorDescriptor": TensorDescriptor})
        self._add(_LANGUAGE, self._language())
        self._add(_NVIDIA, {})
        for chip in ("ampere", "hopper", "blackwell"):
            self._add(f"{_NVIDIA}.{chip}", self._chip(engines, chip))
            self._add(f"{_NVIDIA}.{chip}.async_copy", self._copies(engines))
            self._add(f"{_NVIDIA}.{chip}.mbarrier", self._barriers(engines))
            if chip != "ampere":
                self._add(f"{_NVIDIA}.{chip}.tma", self._tma(engines))

    def _jit(self, function: Callable[..., Given] | None = None, **_options: object) -> Given:
        if function is None:
            return self._jit
        return JitFunction(self.runtime, self.launches, function)

    def _language(self) -> dict[str, Given]:
        pointers, runtime = Pointers(self.runtime), self.runtime
        atomics = {
            f"atomic_{kind}": partial(pointers.atomic, kind)
            for kind in ("add", "min", "max", "and", "or", "xor", "xchg")
        }
        barrier = {"barrier" if self.recent else "thread_barrier": _nothing}
        return {
            **FUNCTIONS,
            **DTYPES,
            **{name: layout_class(name) for name in LAYOUTS},
            **atomics,
            **barrier,
            "constexpr": Constexpr,
            "constexpr_function": constexpr_function,
            "aggregate": _aggregate,
            "tensor": Tile,
            "tuple": tuple,
            "shared_memory_descriptor": self._descriptor(SharedMemory),
            "load": pointers.load,
            "store": pointers.store,
            "static_range": lambda *bounds: range(*(int(plain(bound)) for bound in bounds)),
            "program_id": lambda axis=0: scalar(runtime.session.place.program[int(plain(axis))]),
            "num_programs": lambda axis=0: scalar(runtime.session.place.grid[int(plain(axis))]),
            "num_warps": lambda: runtime.session.partition.warps,
            "num_ctas": lambda: 1,
            "allocate_shared_memory": self._shared,
            "warp_specialize": self._specialize,
        }

    def _chip(self, engines: Engines, chip: str) -> dict[str, Given]:
        found: dict[str, Given] = {"fence_async_shared": engines.fence_async_shared}
        if chip != "ampere":
            found |= {
                "warpgroup_mma": engines.warpgroup_mma,
                "warpgroup_mma_init": engines.warpgroup_mma_init,
                "warpgroup_mma_wait": engines.warpgroup_mma_wait,
            }
        if chip == "blackwell":
            found |= {
                "TensorMemoryLayout": layout_class("TensorMemoryLayout"),
                "tensor_memory_descriptor": self._descriptor(TensorMemory),
                "allocate_tensor_memory": self._tensor,
                "tcgen05_mma": engines.tcgen05_mma,
                "tcgen05_commit": engines.tcgen05_commit,
                "get_tmem_reg_layout": lambda *_given, **_options: UNKNOWN,
            }
            found |= {**PACKED, **self._recent_blackwell()} if self.recent else {}
        return found

    @staticmethod
    def _recent_blackwell() -> dict[str, Given]:
        """Return names that 3.6 does not have."""
        return {"tensor_memory_descriptor_type": _TensorMemoryType, "tcgen05_mma_barrier_count": _count_of_one_block}

    def _copies(self, engines: Engines) -> dict[str, Given]:
        return {
            "async_load" if self.recent else "async_copy_global_to_shared": engines.async_load,
            "commit_group": engines.commit_group,
            "wait_group": engines.wait_group,
            "mbarrier_arrive": engines.copies_arrive,
        }

    def _barriers(self, engines: Engines) -> dict[str, Given]:
        found = {
            "MBarrierLayout": layout_class("MBarrierLayout"),
            "init": engines.init,
            "invalidate": engines.invalidate,
            "wait": engines.wait,
            "expect": engines.expect,
            "arrive": engines.arrive,
        }
        return found | ({"allocate_mbarrier": self._mbarrier} if self.recent else {})

    def _tma(self, engines: Engines) -> dict[str, Given]:
        found: dict[str, Given] = {
            "async_load" if self.recent else "async_copy_global_to_shared": engines.tma_load,
            "async_store" if self.recent else "async_copy_shared_to_global": engines.tma_store,
            "store_wait": engines.store_wait,
            "tensor_descriptor": TiledDescriptor,
            "make_tensor_descriptor": Pointers(self.runtime).make_descriptor,
        }
        if self.recent:
            kinds = ("add", "min", "max", "and", "or", "xor")
            found |= {f"async_atomic_{kind}": partial(engines.tma_atomic, kind) for kind in kinds}
        return found

    def _descriptor(self, kind: type[Memory]) -> type[Memory]:
        """Return the class, in 3.6 under the name of its method that 3.9 calls ``reinterpret``."""
        if self.recent:
            return kind
        return type(kind.__name__, (kind,), {"reinterpret": _Hidden()})

    def _shared(self, element_ty: Given, shape: Given, layout: Given, value: Tile | None = None) -> Memory:
        extents = tuple(int(plain(size)) for size in plain(shape))
        view = self.runtime.session.shared(plain(element_ty), extents, plain(layout))
        return self._filled(self.modules[_LANGUAGE].shared_memory_descriptor(self.runtime, view), value)

    def _tensor(self, element_ty: Given, shape: Given, layout: Given, value: Tile | None = None) -> Memory:
        extents = tuple(int(plain(size)) for size in plain(shape))
        view = self.runtime.session.tensor(plain(element_ty), extents, plain(layout))
        kind = self.modules[f"{_NVIDIA}.blackwell"].tensor_memory_descriptor
        return self._filled(kind(self.runtime, view), value)

    def _mbarrier(self, batch: Given = None, two_ctas: Given = False) -> Memory:  # noqa: ARG002  # part of Gluon's signature
        return self._shared(DTYPES["int64"], [1] if batch is None else [plain(batch), 1], None)

    @staticmethod
    def _filled(memory: Memory, value: Tile | None) -> Memory:
        if value is not None:
            memory.store(value)
        return memory

    def _specialize(self, functions_and_args: Given, worker_num_warps: Given, worker_num_regs: Given = None) -> None:  # noqa: ARG002  # part of Gluon's signature
        parts = plain(functions_and_args)
        warps = [int(plain(count)) for count in plain(worker_num_warps)]
        if len(parts) != len(warps) + 1:
            raise InputError(
                "the kernel",
                f"{len(parts)} functions are specialised and {len(warps)} workers have warps",
                "give one count for each worker",
            )
        bodies = [partial(function, *arguments) for function, arguments in parts]
        names = [function.__name__ for function, _ in parts]
        self.runtime.session.specialize((names[0], bodies[0]), list(zip(names[1:], warps, bodies[1:], strict=True)))


class _TensorMemoryType:
    """The type of a tile in TMEM, which a source asks for its layout in registers."""

    def __init__(self, *given: Given) -> None:
        self.element_ty, self.shape, self.layout, *_ = map(plain, given)

    def get_reg_layout(self, *_given: object, **_options: object) -> Given:
        """Return the layout of a load."""
        return UNKNOWN


def _count_of_one_block(_smems: Given = (), multicast: Given = False, two_ctas: Given = False) -> int:  # noqa: ARG001  # Gluon's
    """Return how often a product arrives: a block that is alone has only itself to tell."""
    if plain(two_ctas):
        raise no_clusters()
    return 1


def _extreme(of_tiles: Callable[..., Given], of_numbers: Callable[..., Given]) -> Callable[..., Given]:
    """Return ``max`` or ``min`` for kernels: of tiles it is taken element by element."""

    def choose(*values: Given, **options: Given) -> Given:
        if any(isinstance(plain(value), Tile) for value in values):
            return reduce(of_tiles, values)
        return of_numbers(*values, **options)

    return choose


class _Hidden:
    """A name that a class does not have, although its base has."""

    def __get__(self, _owner: object, _kind: type | None = None) -> Given:
        raise AttributeError("reinterpret")


def load_source(path: str, launches: Launches, version: str) -> dict[str, Given]:
    """Execute a source file; return its names.

    Raises ``InputError`` where it cannot be read, is no Python, or fails while it is loaded; ``UnsupportedError``
    where it needs a module that has no stand-in.
    """
    try:
        text = Path(path).read_text("utf-8")
        code = compile(text, path, "exec")
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        raise InputError(path, f"it cannot be loaded: {error}", "give a Python file") from None
    linecache.checkcache(path)
    stand_ins = StandIns(launches, version)
    own = {
        "__import__": stand_ins.import_module,
        "range": loop_range(stand_ins.runtime),
        "max": _extreme(maximum, max),
        "min": _extreme(minimum, min),
    }
    tools = dict(vars(builtins)) | own
    names: dict[str, Given] = {"__builtins__": tools, "__name__": "emulated", "__file__": path}
    try:
        exec(code, names)  # noqa: S102  # the file is run because the user asks for it
    except ImportError as error:
        raise UnsupportedError(path, f"it needs a module that is not there: {error}", "import it elsewhere") from None
    return names


def _aggregate(kind: type) -> type:
    """Return a class whose instances are made of their annotated fields, in order, unless it says otherwise."""
    if "__init__" not in vars(kind):

        def fill(self: object, *values: Given) -> None:
            for name, value in zip(kind.__annotations__, values, strict=True):
                setattr(self, name, value)

        kind.__init__ = fill  # type: ignore[misc]  # what the decorator is for
    return kind


def _itself(function: Callable[..., Given]) -> Callable[..., Given]:
    """Return the function: a hint to the compiler."""
    return function


def _nothing(*_given: object, **_options: object) -> None:
    """Do nothing: all warps of a group are one here."""


__all__ = ["LAYOUTS", "VERSIONS", "HostTensor", "StandIns", "load_source"]
