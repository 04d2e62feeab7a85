from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from twillgpu.frontend.stubs import Stub, StubFinder, StubModule

ANSWERS = {"nothere.cuda.get_device_capability()": (9, 0), "nothere.version.hip": None}


@pytest.fixture
def finder() -> Iterator[StubFinder]:
    before = set(sys.modules)
    found = StubFinder(ANSWERS)
    sys.meta_path.append(found)
    yield found
    sys.meta_path.remove(found)
    for name in set(sys.modules) - before:
        del sys.modules[name]


def run(text: str, folder: Path) -> dict[str, Any]:
    file = folder / "user.py"
    file.write_text(text, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "user"}
    exec(compile(text, str(file), "exec"), namespace)  # noqa: S102  # what the code under test is for
    return namespace


MODULE_LEVEL = """
import abc
import nothere
import nothere.nn.functional as F
from nothere.testing import assert_close

capability = nothere.cuda.get_device_capability()
hip = nothere.version.hip
half = nothere.float16
table = {nothere.float16: 1, nothere.float32: 2}

class Function(nothere.autograd.Function):
    @staticmethod
    @nothere.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x):
        return x

class Module(nothere.nn.Module, abc.ABC):
    def __init__(self):
        super().__init__()

@nothere.compile
def compiled(x):
    return x + 1

apply = Function.apply
x = nothere.rand(3, device="cuda")
y = (x + 1) * 2 - 3 / x
y[0] = 1
message = f"{nothere.max(abs(x - y)):.3f} {x}"
with nothere.no_grad():
    pass
for _ in x:
    raise AssertionError
newer = nothere.__dict__.get("x") or nothere.version.cuda > "12"
x.grad = None
count = len(x)
"""


def test_module_level_code_of_a_kernel_file_runs_on_stand_ins(finder: StubFinder, tmp_path: Path) -> None:
    found = run(MODULE_LEVEL, tmp_path)
    assert finder.missing == ["nothere"]
    assert (found["capability"], found["hip"], found["count"]) == ((9, 0), None, 0)
    assert found["table"][Stub("nothere.float32", {})] == 2
    assert found["compiled"](1) == 2
    assert found["Function"].forward(None, 5) == 5
    assert found["message"] == "<nothere.max()> <nothere.rand()>"
    assert not found["newer"]
    assert found["half"] == Stub("nothere.float16", {})
    assert isinstance(found["Module"](), object)
    assert isinstance(found["apply"], Stub)


def test_an_import_that_is_prepared_to_fail_does_fail(finder: StubFinder, tmp_path: Path) -> None:
    text = """
import importlib.util
try:
    import nothere_a
    has_a = True
except ImportError:
    has_a = False
try:
    from nothere_b.sub import thing
    has_b = True
except (ValueError, ModuleNotFoundError):
    has_b = False
has_c = importlib.util.find_spec("nothere_c") is not None
try:
    import nothere_d
finally:
    pass
"""
    found = run(text, tmp_path)
    assert (found["has_a"], found["has_b"], found["has_c"]) == (False, False, False)
    assert finder.missing == ["nothere_d"]


def test_import_module_and_submodules_give_stand_ins_but_not_inside_installed_packages(finder: StubFinder) -> None:
    import importlib  # noqa: PLC0415  # the import machinery is what is tested

    found = importlib.import_module("nothere.deep.er")
    assert isinstance(found, StubModule)
    assert finder.missing == ["nothere"]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("json.nothere")


def test_special_names_are_not_invented() -> None:
    stub = Stub("m", {})
    module = StubModule("m", {})
    assert isinstance(module, ModuleType)
    for found in (stub, module, types.new_class("T", (stub,))):
        assert not hasattr(found, "__array_interface__")


def test_numbers_and_tests_of_a_stand_in() -> None:
    stub: Any = Stub("m.x", {})
    assert (int(stub), float(stub), [7][stub]) == (0, 0.0, 7)
    assert not any((stub, stub < 1, stub >= 1, 1 in stub))
    assert repr(stub[0].y(1, 2)) == "<m.x.y()>"
    assert hash(stub) == hash(Stub("m.x", {}))
    assert stub != Stub("m.y", {})
    stub[0] = 1
    del stub[0]
    assert -stub is stub
