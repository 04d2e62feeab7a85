"""Keys of the cache: the same for the same work, another for anything that changes the answer."""

from dataclasses import replace
from pathlib import Path

import pytest

from twillgpu.costs.record import PriceOptions
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.load import load_kernel
from twillgpu.machine.load import load
from twillgpu.schedule.record import SearchOptions
from twillgpu.store import key as keys
from twillgpu.store.key import cache_key, code_digest, made_with

DATA = Path(__file__).parent.parent / "frontend" / "data"
OPTIONS = {"search": SearchOptions(), "limits": PriceOptions(), "rows": None, "check": True}


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return load_kernel(min(DATA.glob("gemm*sm_90a*.mlir")), "sm_90a")


def test_the_key_is_the_same_every_time(kernel: Kernel) -> None:
    key = cache_key(kernel, load("h100"), OPTIONS)
    assert key == cache_key(kernel, load("h100"), dict(reversed(OPTIONS.items())))
    assert len(key) == 64


def test_folder_and_remarks_do_not_count(kernel: Kernel) -> None:
    moved = replace(kernel, source_file="/elsewhere/gemm.py", remarks=("said",))
    assert cache_key(moved, load("h100"), OPTIONS) == cache_key(kernel, load("h100"), OPTIONS)


def test_whatever_changes_the_answer_changes_the_key(kernel: Kernel) -> None:
    h100 = load("h100")
    found = {
        cache_key(kernel, h100, OPTIONS),
        cache_key(replace(kernel, num_warps=4), h100, OPTIONS),
        cache_key(kernel, load("h200"), OPTIONS),
        cache_key(kernel, h100, OPTIONS | {"search": SearchOptions(seed=1)}),
        cache_key(kernel, h100, OPTIONS | {"limits": PriceOptions(max_groups=2)}),
        cache_key(kernel, h100, OPTIONS | {"rows": 0}),
        cache_key(kernel, h100, OPTIONS | {"check": False}),
    }
    assert len(found) == 7


@pytest.mark.parametrize("package", ["ortools", "triton"])
def test_another_version_of_a_package_has_another_key(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    before = cache_key(kernel, load("h100"), OPTIONS)
    monkeypatch.setattr(keys, "versions", lambda: ((package, "0.0.1"),))
    assert cache_key(kernel, load("h100"), OPTIONS) != before


def test_another_version_of_this_package_has_another_key(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache_key(kernel, load("h100"), OPTIONS)
    monkeypatch.setattr("twillgpu.__version__", "99")
    assert cache_key(kernel, load("h100"), OPTIONS) != before
    monkeypatch.undo()
    monkeypatch.setattr(keys, "code_digest", lambda: "changed")
    assert cache_key(kernel, load("h100"), OPTIONS) != before


def test_a_key_names_all_that_is_installed() -> None:
    assert [name for name, _ in made_with()] == ["twillgpu", "code", "ortools", "triton"]
    assert len(code_digest()) == 16
