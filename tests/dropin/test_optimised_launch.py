"""Launches of decorated kernels on a GPU that is not there: the compiler is real, the driver writes down launches."""

import importlib.util
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("triton")

import triton.language as tl
from fake_driver import FakeDriver, Tensor, fake_gpu

import twillgpu
from twillgpu.dropin import make
from twillgpu.errors import TwillError, UnsupportedError
from twillgpu.store.cache import Cache

pytestmark = pytest.mark.triton
SIZES = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWILLGPU_CACHE_DIR", str(tmp_path / "twillgpu"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list that every search is added to."""
    found: list[str] = []
    search = twillgpu.find_schedule

    def counted(*given: Any) -> Any:
        found.append("search")
        return search(*given)

    monkeypatch.setattr(twillgpu, "find_schedule", counted, raising=False)
    return found


@pytest.fixture
def kernels() -> ModuleType:
    """The decorated kernels, as a new process would import them."""
    spec = importlib.util.spec_from_file_location("decorated", Path(__file__).parent / "decorated.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tiles(depth: int = 1024) -> tuple[Any, ...]:
    a, b, c = Tensor((1024, depth)), Tensor((depth, 1024)), Tensor((1024, 1024))
    return a.tiles(128, 64), b.tiles(64, 128), c.tiles(128, 128), depth


def names(gpu: FakeDriver) -> list[str]:
    return [launched.name for launched in gpu.launched]


def test_a_launch_goes_through_the_emitted_kernel(kernels: ModuleType) -> None:
    with fake_gpu() as gpu:
        kernels.product[(8, 8)](*tiles(), **SIZES, num_warps=4)
    (launched,) = gpu.launched
    assert launched.name == "product_specialised"
    assert launched.grid == (8, 8, 1)
    *descriptors, depth = launched.arguments
    assert depth == 1024
    assert [one.base.shape for one in descriptors] == [(1024, 1024)] * len(descriptors)


def test_a_grid_is_computed_from_the_arguments_of_the_original(kernels: ModuleType) -> None:
    with fake_gpu() as gpu:
        kernels.product[lambda meta: (1024 // meta["BLOCK_M"], meta["depth"] // 256)](*tiles(), **SIZES)
    assert gpu.launched[0].grid == (8, 4, 1)


def test_a_specialisation_is_made_once(kernels: ModuleType, searches: list[str]) -> None:
    found = searches
    with fake_gpu() as gpu:
        kernels.product[(8, 8)](*tiles(1024), **SIZES)
        kernels.product[(8, 8)](*tiles(2048), **SIZES)
        assert found == ["search"]
        # 1000 is no multiple of 16: Triton specialises anew, and finds the same kernel in the cache.
        kernels.product[(8, 8)](*tiles(1024)[:3], 1000, **SIZES)
        assert found == ["search"]
        kernels.product[(8, 8)](*tiles(1024), **SIZES, num_warps=8)
    assert names(gpu) == ["product_specialised"] * 4
    assert found == ["search"] * 2
    assert len(kernels.product._launcher.ready) == 3


def test_a_new_process_takes_the_result_from_the_cache(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gpu():
        kernels.product[(8, 8)](*tiles(), **SIZES)
    (entry,) = Cache().entries()
    assert (entry.kernel, entry.machine, entry.status) == ("product", "h100", "optimal")
    assert entry.search_seconds > 0
    assert Cache().source_file(entry).read_text(encoding="utf-8") == entry.source
    monkeypatch.setattr(make, "_made", None)
    again = twillgpu.optimize(check=False)(kernels.product.fn)
    with fake_gpu() as gpu:
        again[(8, 8)](*tiles(), **SIZES)
    assert names(gpu) == ["product_specialised"]


def test_a_kernel_that_cannot_be_scheduled_is_launched_as_it_is_with_one_warning(kernels: ModuleType) -> None:
    tensor = Tensor((1024,))
    with fake_gpu() as gpu:
        with pytest.warns(RuntimeWarning, match="copied: the original is launched: .* has no loop") as caught:
            kernels.copied[(8,)](tensor, tensor, 1000, BLOCK=128)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernels.copied[(8,)](tensor, tensor, 1000, BLOCK=128)
    assert names(gpu) == ["copied", "copied"]
    assert [Path(one.filename).name for one in caught] == [Path(__file__).name]


@pytest.mark.parametrize(
    ("capability", "reason"),
    [(89, r"compute capability 8\.9\): no machine is known"), (80, "a100: no code is emitted for sm_80")],
)
def test_on_another_chip_the_original_is_launched(kernels: ModuleType, capability: int, reason: str) -> None:
    tensor = Tensor((1024,))
    with fake_gpu(capability) as gpu, pytest.warns(RuntimeWarning, match=reason):
        kernels.copied[(8,)](tensor, tensor, 1000, BLOCK=128)
    assert names(gpu) == ["copied"]


def test_a_machine_of_another_kind_than_the_gpu_is_refused(kernels: ModuleType) -> None:
    kernel = twillgpu.optimize(machine="b200", fallback=False)(kernels.product.fn)
    with fake_gpu(), pytest.raises(UnsupportedError, match="machine b200 is sm_100a"):
        kernel[(8, 8)](*tiles(), **SIZES)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"num_ctas": 2}, "num_ctas=2"), ({"maxnreg": 128}, "maxnreg=128")],
)
def test_launch_options_without_a_counterpart_are_refused(
    kernels: ModuleType, options: dict[str, int], reason: str
) -> None:
    kernel = twillgpu.optimize(fallback=False)(kernels.product.fn)
    with fake_gpu(), pytest.raises(UnsupportedError, match=reason):
        kernel[(8, 8)](*tiles(), **SIZES, **options)


def test_an_emitted_kernel_that_fails_leaves_the_original(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = twillgpu.emit_source

    def broken(*given: Any) -> Any:
        emission = launch(*given)
        source = emission.source.replace("    check_options(options)\n", "    raise ValueError('no')\n")
        assert source != emission.source
        return type(emission)(source=source, ii_cycles=emission.ii_cycles)

    monkeypatch.setattr(twillgpu, "emit_source", broken, raising=False)
    with fake_gpu() as gpu:
        with pytest.warns(RuntimeWarning, match="the original is launched: product: ValueError: no"):
            kernels.product[(8, 8)](*tiles(), **SIZES)
        kernels.product[(8, 8)](*tiles(), **SIZES)
    assert names(gpu) == ["product", "product"]


def test_an_emitted_file_that_is_no_python_leaves_the_original(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = twillgpu.emit_source

    def broken(*given: Any) -> Any:
        emission = made(*given)
        return type(emission)(source="import nothing_of_this_name\n", ii_cycles=emission.ii_cycles)

    monkeypatch.setattr(twillgpu, "emit_source", broken, raising=False)
    with fake_gpu() as gpu, pytest.warns(RuntimeWarning, match="importing the emitted file raised ModuleNotFound"):
        kernels.product[(8, 8)](*tiles(), **SIZES)
    assert names(gpu) == ["product"]


def test_without_fallback_the_reason_is_raised(kernels: ModuleType) -> None:
    kernel = twillgpu.optimize(fallback=False)(kernels.copied.fn)
    tensor = Tensor((1024,))
    with fake_gpu(), pytest.raises(TwillError, match="has no loop"):
        kernel[(8,)](tensor, tensor, 1000, BLOCK=128)


def test_arguments_that_do_not_fit_are_the_originals_to_refuse(kernels: ModuleType) -> None:
    with fake_gpu(), pytest.raises(TypeError, match="depth"):
        kernels.product[(8, 8)](*tiles()[:3], **SIZES)


def test_a_tuner_inside_times_the_optimised_kernels(kernels: ModuleType) -> None:
    with fake_gpu() as gpu:
        kernels.tuned[(8, 8)](*tiles(), BLOCK_M=128)
        kernels.tuned[(8, 8)](*tiles(), BLOCK_M=128)
    assert names(gpu) == ["tuned_specialised"] * 4
    assert kernels.tuned.fn.cache == {}


def test_a_tuner_outside_does_as_well(kernels: ModuleType) -> None:
    with fake_gpu() as gpu:
        kernels.tune_outside()[(8, 8)](*tiles(), BLOCK_M=128, BLOCK_N=128)
    assert names(gpu) == ["product_specialised"] * 3


def test_hooks_and_warmup_are_those_of_the_original(kernels: ModuleType) -> None:
    seen: list[int] = []
    kernels.product.fn.pre_run_hooks.append(lambda *_, **__: seen.append(1))
    with fake_gpu() as gpu:
        kernels.product[(8, 8)](*tiles(), **SIZES)
        assert seen == [1]
        kernels.product.warmup(*tiles(), **SIZES, grid=(8, 8))
    assert names(gpu) == ["product_specialised"]


def test_a_descriptor_that_pads_with_nan_is_refused(kernels: ModuleType) -> None:
    kernel = twillgpu.optimize(fallback=False)(kernels.product.fn)
    a, *others = tiles()
    a.padding = "nan"
    with fake_gpu(), pytest.raises(UnsupportedError, match="a descriptor pads with NaN"):
        kernel[(8, 8)](a, *others, **SIZES)


def test_a_reason_is_told_once_for_all_specialisations(kernels: ModuleType) -> None:
    tensor = Tensor((1024,))
    with fake_gpu() as gpu, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for count in (1000, 1024, 1, 1 << 40):
            kernels.copied[(8,)](tensor, tensor, count, BLOCK=128)
    assert names(gpu) == ["copied"] * 4
    assert [one.category for one in caught] == [RuntimeWarning]


def test_an_error_of_the_package_does_not_stop_the_users_program(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing: dict[str, Any] = {}
    monkeypatch.setattr(twillgpu, "find_schedule", lambda *_: nothing["no such thing"], raising=False)
    with fake_gpu() as gpu:
        with pytest.warns(RuntimeWarning, match="product: KeyError: 'no such thing'; report it, with the kernel"):
            kernels.product[(8, 8)](*tiles(), **SIZES)
        raising = twillgpu.optimize(check=False, fallback=False)(kernels.product.fn)
        with pytest.raises(TwillError, match="no such thing") as raised:
            raising[(8, 8)](*tiles(), **SIZES)
    assert names(gpu) == ["product"]
    assert isinstance(raised.value.__cause__, KeyError)


def test_each_device_has_its_own_kernel(kernels: ModuleType, searches: list[str]) -> None:
    with fake_gpu(90, 100, 89, 90) as gpu:
        for gpu.device in (0, 1, 3, 0):
            kernels.product[(8, 8)](*tiles(), **SIZES)
        gpu.device = 2
        with pytest.warns(RuntimeWarning, match=r"compute capability 8\.9"):
            kernels.product[(8, 8)](*tiles(), **SIZES)
    assert names(gpu) == [*["product_specialised"] * 4, "product"]
    assert searches == ["search"] * 2
    assert {entry.machine for entry in Cache().entries()} == {"h100", "b200"}


def test_threads_that_launch_at_the_same_time_search_once(kernels: ModuleType, searches: list[str]) -> None:
    with fake_gpu() as gpu, ThreadPoolExecutor(4) as pool:
        launched = [pool.submit(lambda: kernels.product[(8, 8)](*tiles(), **SIZES)) for _ in range(8)]
        for one in launched:
            one.result()
    assert names(gpu) == ["product_specialised"] * 8
    assert searches == ["search"]


def test_the_first_launch_which_compiles_is_alone_also_where_threads_launch_at_once(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, seen, together = threading.Event(), list[bool](), threading.Barrier(4)

    def launch(*_: Any, **__: Any) -> None:
        seen.append(compiled.is_set())
        time.sleep(0.2)
        compiled.set()

    def go() -> None:
        together.wait()
        kernels.product[(8, 8)](*tiles(), **SIZES)

    monkeypatch.setattr("twillgpu.dropin.launcher.launch_of", lambda _: launch)
    with fake_gpu(), ThreadPoolExecutor(4) as pool:
        for one in [pool.submit(go) for _ in range(4)]:
            one.result()
    assert seen == [False, True, True, True]


def test_a_kernel_that_is_ready_does_not_wait_for_the_search_of_another(kernels: ModuleType) -> None:
    with fake_gpu() as gpu:
        kernels.product[(8, 8)](*tiles(), **SIZES)
        with kernels.product._launcher.lock, ThreadPoolExecutor(1) as pool:  # as a thread that searches
            pool.submit(lambda: kernels.product[(8, 8)](*tiles(), **SIZES)).result(timeout=60)
    assert names(gpu) == ["product_specialised"] * 2


def test_nothing_is_searched_while_a_graph_is_captured(
    kernels: ModuleType, searches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = {"capturing": True}
    cuda = SimpleNamespace(
        is_available=lambda: True,
        is_current_stream_capturing=lambda: state["capturing"],
        get_device_name=lambda _: "NVIDIA H100",
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, __spec__=ModuleSpec("torch", None)))
    with fake_gpu() as gpu:
        with pytest.warns(RuntimeWarning, match="a CUDA graph is being captured.*launch it once before the capture"):
            kernels.product[(8, 8)](*tiles(), **SIZES)
        kernels.product[(8, 8)](*tiles(), **SIZES)
        assert searches == []
        state["capturing"] = False
        kernels.product[(8, 8)](*tiles(), **SIZES)
        state["capturing"] = True
        kernels.product[(8, 8)](*tiles(), **SIZES)
    assert names(gpu) == ["product", "product", "product_specialised", "product_specialised"]


def test_rules_outside_and_defaults_are_those_of_the_original(kernels: ModuleType) -> None:
    with fake_gpu() as gpu:
        launch = kernels.scaled[lambda given: (given["BLOCK_N"], given["depth"])]
        launch(*tiles()[:3])
        launch(*tiles()[:3], depth=512)
    assert [(one.name, one.grid) for one in gpu.launched] == [
        ("scaled_specialised", (128, 1024, 1)),
        ("scaled_specialised", (128, 512, 1)),
    ]


def test_a_global_that_has_changed_is_the_originals_to_refuse(kernels: ModuleType) -> None:
    with fake_gpu():
        kernels.scaled[(8, 8)](*tiles()[:3])
        vars(kernels)["SCALE"] = tl.constexpr(3)
        with pytest.raises(RuntimeError, match="Global variable SCALE has changed"):
            kernels.scaled[(8, 8)](*tiles()[:3])


def test_a_tuple_among_the_arguments_leaves_the_original(kernels: ModuleType) -> None:
    tensor = Tensor((1024,))
    with fake_gpu() as gpu, pytest.warns(RuntimeWarning, match="paired: the original is launched"):
        kernels.paired[(8,)]((tensor, tensor), 1024, BLOCK=128)
    assert names(gpu) == ["paired"]


def test_without_a_gpu_a_launch_says_what_the_original_says(kernels: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="0 active drivers"):
        kernels.product[(8, 8)](*tiles(), **SIZES)
