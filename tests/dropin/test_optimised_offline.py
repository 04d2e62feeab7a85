"""What a decorated kernel says without a GPU, and the decorator's own mistakes."""

import importlib.util
import linecache
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("triton")

from fake_driver import Tensor, fake_gpu

import twillgpu
from twillgpu.cli import run
from twillgpu.dropin.device import machine_of
from twillgpu.errors import InputError, TwillError, UnsupportedError
from twillgpu.store.cache import Cache

pytestmark = pytest.mark.triton
FILE = Path(__file__).parent / "decorated.py"


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWILLGPU_CACHE_DIR", str(tmp_path / "twillgpu"))


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("decorated", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "decorated", module)
    spec.loader.exec_module(module)
    return module


def test_the_declared_launch_is_scheduled(kernels: ModuleType) -> None:
    schedule = kernels.product.schedule(machine="h100")
    priced = twillgpu.load_problem(FILE, "h100")
    assert schedule == twillgpu.find_schedule(priced).result.schedule
    assert "on h100" in kernels.product.report(machine="h100")


def test_a_call_changes_the_declared_launch(kernels: ModuleType) -> None:
    half = kernels.product.schedule(machine="h100", BLOCK_K=32)
    assert half.ii_cycles * 2 == kernels.product.schedule(machine="h100").ii_cycles
    assert len(Cache().entries()) == 2


def test_tensors_describe_their_types(kernels: ModuleType) -> None:
    a, b, c = (
        Tensor((1024, 512)).tiles(128, 64),
        Tensor((512, 1024)).tiles(64, 128),
        Tensor((1024, 1024)).tiles(128, 128),
    )
    given = kernels.product.schedule(a, b, c, 512, machine="h100")
    assert given.ops == kernels.product.schedule(machine="h100").ops


def test_a_launch_may_be_given(kernels: ModuleType) -> None:
    launch = twillgpu.Launch(
        kernel="product", args=kernels.LAUNCH.args, constexprs={**kernels.LAUNCH.constexprs}, num_warps=8
    )
    assert kernels.product.schedule(launch=launch, machine="h100").ii_cycles > 0
    with pytest.raises(InputError, match="launch: it is one of 'other'; give one of 'product'"):
        kernels.product.schedule(launch=twillgpu.Launch(kernel="other"), machine="h100")


def test_the_source_is_a_file_that_launches(kernels: ModuleType) -> None:
    source = kernels.product.source(machine="h100")
    assert "def launch(grid, a, b, c, depth" in source
    assert compile(source, "emitted.py", "exec")
    assert kernels.product.source(machine="h100") == source
    (entry,) = Cache().entries()
    assert entry.source == source


def test_a_schedule_in_the_cache_is_emitted_when_the_source_is_asked_for(kernels: ModuleType) -> None:
    kernels.product.schedule(machine="h100")
    assert [entry.source for entry in Cache().entries()] == [""]
    assert kernels.product.source(machine="h100")
    assert len(Cache().entries()) == 1


def test_without_the_cache_nothing_is_kept(kernels: ModuleType) -> None:
    kernel = twillgpu.optimize(cache=False, machine="h100")(kernels.product.fn)
    assert kernel.schedule().ii_cycles > 0
    assert not Cache().folder.exists()


def test_a_tuned_kernel_takes_a_configuration(kernels: ModuleType) -> None:
    types = ("tensordesc<fp16[128,64]>", "tensordesc<fp16[64,128]>", "tensordesc<fp16[128,128]>", "i32")
    report = kernels.tuned.report(*types, BLOCK_M=128, machine="h100", config=2)
    assert "configuration 2 of 2" in " ".join(report.split())


def test_what_has_no_code_says_why(kernels: ModuleType) -> None:
    with pytest.raises(UnsupportedError, match=r"a100 .* has no asynchronous tensor core"):
        kernels.product.source(machine="a100")


def test_the_machine_is_that_of_the_gpu(kernels: ModuleType) -> None:
    with pytest.raises(InputError, match="there is no GPU to ask; give machine=, one of a100"):
        kernels.product.schedule()
    with fake_gpu(100):
        assert kernels.product.schedule().machine == "b200"


@pytest.mark.parametrize(
    ("capability", "name", "machine"),
    [
        (90, "NVIDIA H100 80GB HBM3", "h100"),
        (90, "NVIDIA H200", "h200"),
        (90, "NVIDIA GH200 480GB", "h100"),
        (90, "", "h100"),
        (100, "NVIDIA B200", "b200"),
        (80, "NVIDIA A100-SXM4-80GB", "a100"),
    ],
)
def test_machines_of_gpus(capability: int, name: str, machine: str) -> None:
    assert machine_of(capability, name, None).name == machine


def test_attributes_are_those_of_the_original(kernels: ModuleType) -> None:
    kernel, original = kernels.product, kernels.product.fn
    assert (kernel.__name__, kernel.__doc__, kernel.__module__) == ("product", "C = A B.", "decorated")
    assert kernel.arg_names == original.arg_names
    assert kernel.cache_key == original.cache_key
    assert kernel.warmup == original.warmup
    assert not hasattr(kernel, "no_such_attribute")
    with pytest.raises(RuntimeError, match=r"Cannot call @triton.jit'd outside"):
        kernel(1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"BLOCK_Q": 1}, "the kernel has no argument 'BLOCK_Q'"),
        ({"depth": object()}, "argument depth: object has no type here"),
        ({"a": "*fp17"}, "unknown argument type"),
        ({"BLOCK_K": 7}, "Triton rejects the launch: ValueError: Shape element 1 must be a power of 2"),
        ({"a": "tensordesc<fp16[64,64]>"}, "decorated.py:31: Triton rejects the kernel: AssertionError: accumulator"),
    ],
)
def test_mistakes_in_a_description(kernels: ModuleType, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(TwillError, match=message):
        kernels.product.schedule(machine="h100", **arguments)


def test_too_many_arguments(kernels: ModuleType) -> None:
    with pytest.raises(InputError, match="8 arguments for 7 parameters"):
        kernels.product.schedule(*range(8), machine="h100")
    with pytest.raises(InputError, match="a is given twice"):
        kernels.product.schedule("*fp16", a="*fp16", machine="h100")


def test_a_kernel_without_a_declared_launch_lists_what_is_missing(kernels: ModuleType) -> None:
    missing = "no type for source, target, count and no value for the constexpr BLOCK; .* or give source=TYPE"
    with pytest.raises(InputError, match=missing):
        kernels.copied.schedule(machine="h100")


def test_a_kernel_of_a_notebook_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    name, text = "<ipython-input-1-0123abcd>", FILE.read_text("utf-8")
    monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(keepends=True), name))
    cell: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), cell)  # noqa: S102  # as a notebook does
    given = {**cell["LAUNCH"].args, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
    given |= {one: given[one].replace("BLOCK_M", "128").replace("BLOCK_N", "128") for one in "abc"}
    source = cell["product"].source(machine="h100", **given)
    assert f"# {name}:31" in source


def test_mistakes_of_the_decorator() -> None:
    with pytest.raises(InputError, match=r"optimize: len: it is no Triton kernel; write @twillgpu.optimize over"):
        twillgpu.optimize(len)
    with pytest.raises(InputError, match=r"optimize\(machin=\.\.\.\): there is no such option; use one of machine"):
        twillgpu.optimize(machin="h100")


def test_without_triton_the_decorator_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twillgpu.dropin.decorate.importlib.util.find_spec", lambda _: None)
    with pytest.raises(
        InputError, match=r"Triton is not installed; install it with pip install 'twillgpu\[triton\]'"
    ):
        twillgpu.optimize(len)


def test_a_decorated_file_is_a_source_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", str(FILE), "--machine", "h100", "--kernel", "product"]) == 0
    assert "kernel product" in capsys.readouterr().out


def test_naming_the_decorator_does_not_load_triton() -> None:
    code = "import sys, twillgpu; twillgpu.optimize; print('triton' in sys.modules, 'ortools' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603  # own
    assert done.stdout.split()[0] == "False"


def test_under_the_interpreter_a_kernel_stays_as_it_is() -> None:
    code = "import decorated; print(type(decorated.product).__name__)"
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(FILE.parent)}
    done = subprocess.run(  # noqa: S603  # our own code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "InterpretedFunction"
