"""Stand-ins for modules that are not installed and that a kernel's file imports for its host code (torch, say).

A stand-in accepts whatever module-level code does with it: attributes, calls, decorators, base classes,
arithmetic, subscripts, annotations. It is false, has no elements, and decorating with it changes nothing.
"""

from __future__ import annotations

import ast
import functools
import importlib.abc
import importlib.machinery
import linecache
import sys
from abc import ABCMeta
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, FunctionType, ModuleType
from typing import Any, Self


class Stub:
    """Stands for any object of a missing module; ``path`` is its dotted name."""

    def __init__(self, path: str, answers: Mapping[str, object]) -> None:
        self.__dict__["stub_path"] = path
        self.__dict__["stub_answers"] = answers

    def stub_part(self, suffix: str) -> object:
        """Return what an access yields: the known answer for that name, or another stand-in."""
        path = self.stub_path + suffix
        return self.stub_answers[path] if path in self.stub_answers else Stub(path, self.stub_answers)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # stands for anything
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self.stub_part(f".{name}")

    def __setattr__(self, name: str, value: object) -> None:
        pass

    def __call__(self, *args: object, **kwargs: object) -> Any:  # noqa: ANN401, D102  # stands for anything
        if len(args) == 1 and not kwargs and isinstance(args[0], FunctionType | type):
            return args[0]
        return self.stub_part("()")

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (_Base,)

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Iterator[object]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, item: object) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __hash__(self) -> int:
        return hash(self.stub_path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stub) and other.stub_path == self.stub_path

    def __format__(self, spec: str) -> str:
        return f"<{self.stub_path}>"

    def __repr__(self) -> str:
        return f"<{self.stub_path}>"

    def __index__(self) -> int:
        return 0

    def __int__(self) -> int:
        return 0

    def __float__(self) -> float:
        return 0.0


def _same(self: Stub, *_: object) -> Stub:
    return self


def _false(*_: object) -> bool:
    return False


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
for _name in (*_BINARY, *(f"r{name}" for name in _BINARY), "neg", "pos", "abs", "invert", "getitem", "round"):
    setattr(Stub, f"__{_name}__", _same)
for _name in ("lt", "le", "gt", "ge"):
    setattr(Stub, f"__{_name}__", _false)
for _name in ("setitem", "delitem"):
    setattr(Stub, f"__{_name}__", lambda *_: None)


class _Class(ABCMeta):
    """Class of classes that inherit from a stand-in: what they lack themselves is a stand-in (``Function.apply``).
    An ``ABCMeta``, so that such a class may have abstract bases besides.
    """

    def __getattr__(cls, name: str) -> Any:  # noqa: ANN401  # stands for anything
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Stub(f"{cls.__name__}.{name}", {})


class _Base(metaclass=_Class):
    """Base of classes that inherit from a stand-in."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # stands for anything
        return getattr(type(self), name)


class StubModule(ModuleType):
    """A missing module: its attributes are stand-ins, and its submodules are missing modules too."""

    def __init__(self, name: str, answers: Mapping[str, object]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__dict__["stub_answers"] = answers

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # stands for anything
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Stub(self.__name__, self.stub_answers).stub_part(f".{name}")


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder on ``sys.meta_path``: gives a stand-in for each top-level package that no other one found.

    ``missing`` lists them in the order of import. A submodule that an installed package lacks stays an error.
    """

    def __init__(self, answers: Mapping[str, object]) -> None:
        self.answers = answers
        self.missing: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a stand-in, or ``None`` for what must not be replaced."""
        del path, target
        top = name.partition(".")[0]
        known = isinstance(sys.modules.get(top), StubModule)
        if ("." in name and not known) or _may_fail():
            return None
        if not known:
            self.missing.append(name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the stand-in."""
        return StubModule(spec.name, self.answers)

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing."""


def _may_fail() -> bool:
    """Return whether the import under way is prepared to fail: inside a ``try`` that catches the failure, or a
    mere question whether the module exists.
    """
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001  # the only way to see who imports
    while frame is not None and ("importlib._bootstrap" in frame.f_code.co_filename or _import_module(frame)):
        frame = frame.f_back
    if frame is None:
        return False
    if frame.f_code.co_name == "find_spec":
        return True
    return frame.f_lineno in _guarded_lines(frame.f_code.co_filename)


def _import_module(frame: FrameType) -> bool:
    return frame.f_code.co_name == "import_module" and frame.f_globals.get("__name__") == "importlib"


@functools.cache
def _guarded_lines(file: str) -> frozenset[int]:
    """Return the lines of ``file`` inside a ``try`` whose handlers catch a failed import."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return frozenset()
    tries = (node for node in ast.walk(tree) if isinstance(node, ast.Try) and any(map(_catches, node.handlers)))
    bodies = (inner for node in tries for inner in node.body)
    return frozenset(line for inner in bodies for line in range(inner.lineno, (inner.end_lineno or inner.lineno) + 1))


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    return not names.isdisjoint({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
