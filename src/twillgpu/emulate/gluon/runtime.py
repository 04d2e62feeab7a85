"""What the stand-ins of Gluon's functions work on: the block that runs, and constants of the source."""

from __future__ import annotations

from twillgpu.emulate.gluon.given import Given, numbers, plain
from twillgpu.emulate.gluon.layouts import UNKNOWN
from twillgpu.emulate.gluon.session import Session
from twillgpu.emulate.gluon.tile import Tile, apply
from twillgpu.emulate.gluon.views import View
from twillgpu.emulate.steps import Action, Drain, Fence
from twillgpu.errors import InputError


class Runtime:
    """Holds the block under way; ``None`` between blocks."""

    def __init__(self) -> None:
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The block under way. Raises ``InputError`` between blocks."""
        if self._session is None:
            raise InputError("the source", "it uses the GPU outside of a kernel", "launch a kernel")
        return self._session

    @property
    def busy(self) -> bool:
        """Whether a block is under way."""
        return self._session is not None

    def enter(self, session: Session | None) -> None:
        """Make a block the one under way."""
        self._session = session


class Memory:
    """A memory descriptor of the kernel: a view, and what a group does with it."""

    def __init__(self, runtime: Runtime, view: View) -> None:
        self.runtime = runtime
        self.view = view
        self.dtype, self.layout = view.dtype, view.layout

    @property
    def shape(self) -> list[int]:
        """Extents in elements."""
        return list(self.view.shape)

    @property
    def type(self) -> Memory:
        """Itself: what is asked of a type is answered here."""
        return self

    @property
    def element_ty(self) -> Given:
        """The element type, as its type calls it."""
        return self.dtype

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.view.shape)

    @property
    def nbytes_per_cta(self) -> int:
        """Bytes of the tile."""
        return self.view.nbytes

    def index(self, index: Given) -> Memory:
        """Return one element of the first dimension."""
        return self._like(self.view.index(int(index)))

    def reinterpret(self, dtype: Given = None, shape: Given = None, layout: Given = None) -> Memory:
        """Return the same bytes as another tile."""
        kind = self.dtype if dtype is None else plain(dtype)
        extents = self.view.shape if shape is None else tuple(numbers(shape))
        return self._like(self.view.reinterpret(kind, extents, self.layout if layout is None else plain(layout)))

    _reinterpret = reinterpret

    def load(self, layout: Given = None) -> Tile:  # noqa: ARG002  # part of Gluon's signature
        """Load the tile into registers."""
        found: list[Tile] = []

        def read() -> None:
            found.append(Tile(self.view.read(), self.dtype))

        self.runtime.session.work("simt", Action(read, _nothing), reads=self.view.touches())
        return found[0]

    def store(self, value: Tile, pred: Given = True) -> None:
        """Store a tile from registers."""
        if not pred:
            return
        values = value.values
        if tuple(values.shape) != self.view.shape:
            raise InputError(
                "the kernel", f"a tile of {list(values.shape)} is stored to {self.shape}", "use one shape"
            )
        if value.dtype.name != self.dtype.name:
            raise InputError("the kernel", f"{value.dtype} is stored to memory of {self.dtype}", "convert it first")
        action = Action(_nothing, lambda: self.view.write(values))
        self.runtime.session.work("simt", action, writes=self.view.touches())

    def _like(self, view: View) -> Memory:
        return type(self)(self.runtime, view)


class SharedMemory(Memory):
    """A tile in SMEM."""

    def slice(self, start: Given, length: Given, dim: Given = 0) -> Memory:
        """Return a part of a dimension."""
        return self._like(self.view.slice(int(start), int(length), int(dim)))

    def permute(self, order: Given) -> Memory:
        """Return the tile with other dimensions first."""
        return self._like(self.view.permute(numbers(order)))

    def reshape(self, shape: Given) -> Memory:
        """Return the elements in another shape."""
        return self._like(self.view.reshape(numbers(shape)))

    @property
    def numel(self) -> int:
        """Number of elements."""
        return self.view.nbytes // self.dtype.size_bytes

    def _keep_alive(self) -> None:
        """Do nothing: memory lives as long as the block."""


class TensorMemory(Memory):
    """A tile in TMEM. Triton waits for a store to TMEM where it stands, and publishes it so."""

    def slice(self, start: Given, length: Given, dim: Given = 1) -> Memory:
        """Return some columns."""
        at = len(self.view.shape) - 2 + int(dim)
        return self._like(self.view.slice(int(start), int(length), at))

    def store(self, value: Tile, pred: Given = True) -> None:
        """Store a tile from registers, and wait for it."""
        super().store(value, pred)
        if pred:
            self.runtime.session.post(Fence(self.runtime.session.label(), "tmem_store"))

    def get_reg_layout(self, *_given: object, **_options: object) -> Given:
        """Return the layout of a load."""
        return UNKNOWN

    def load_max(self, layout: Given = None, **options: Given) -> tuple[Tile, Tile]:
        """Load the tile with the largest element of each row."""
        return self._load_with(layout, "max", options)

    def load_min(self, layout: Given = None, **options: Given) -> tuple[Tile, Tile]:
        """Load the tile with the smallest element of each row."""
        return self._load_with(layout, "min", options)

    def _load_with(self, layout: Given, name: str, options: dict[str, Given]) -> tuple[Tile, Tile]:
        found = self.load(layout)
        compared = apply("math.absf", [found], found.dtype) if plain(options.get("abs")) else found
        kind = "imumf" if str(plain(options.get("propagate_nan"))).endswith("ALL") else "numf"
        body = [f"arith.{name}{kind}"]
        return found, apply("tt.reduce", [compared], found.dtype, found.shape[:1], [("axis", "1 : i32")], body)


def drain(runtime: Runtime, engine: str, pending: int, *, reads_only: bool = False) -> None:
    """Wait until at most ``pending`` ops of the group on an engine are under way."""
    runtime.session.post(Drain(runtime.session.label(), engine, pending, reads_only))


def _nothing() -> None:
    """Do nothing: one half of an action that has only the other."""
