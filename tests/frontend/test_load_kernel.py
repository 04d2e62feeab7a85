"""``load_kernel`` on what needs no Triton: text inputs and mistakes in the request."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from frontend_data import DATA, captured

from twillgpu.errors import InputError, UnsupportedError
from twillgpu.frontend.launch import LoadOptions, parse_options
from twillgpu.frontend.load import load_kernel
from twillgpu.frontend.text import print_kernel

HOPPER = "attention_fwd_sm_90a_triton39.mlir"


def message(source: Path, target: str = "sm_90a", options: LoadOptions | None = None) -> str:
    with pytest.raises(InputError) as caught:
        load_kernel(source, target, options)
    return str(caught.value)


def test_generic_text_is_loaded_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.chdir(DATA)
    kernel = load_kernel(DATA / HOPPER, "sm_90a")
    assert kernel == captured(HOPPER, source_file=HOPPER)


def test_kernel_text_is_loaded_without_triton(tmp_path: Path) -> None:
    kernel = captured(HOPPER, source_file="examples/attention_fwd.py")
    file = tmp_path / "attention.kernel"
    file.write_text(print_kernel(kernel), encoding="utf-8")
    assert load_kernel(file, "sm_90a") == kernel
    assert "the kernel is for sm_90a and the machine needs sm_100a; choose another machine" in message(
        file, "sm_100a"
    )


def test_a_loop_of_generic_text_is_chosen() -> None:
    source = DATA / "rms_norm_sm_90a_triton39.mlir"
    listed = "rms_norm_sm_90a_triton39.mlir: the kernel has 2 loops: 1 (rms_norm.py:26), 2 (rms_norm.py:32)"
    assert message(source).startswith(listed)
    assert load_kernel(source, "sm_90a", LoadOptions(loop=1)).loop.source == "rms_norm.py:26"
    assert "there is no loop 3" in message(source, options=LoadOptions(loop=3))


def test_a_path_inside_the_working_folder_is_recorded_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    file = folder / "k.mlir"
    file.write_text((DATA / HOPPER).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_kernel(Path("kernels/k.mlir"), "sm_90a").source_file == "kernels/k.mlir"
    monkeypatch.chdir(folder)
    assert load_kernel(Path("../kernels/k.mlir"), "sm_90a").source_file == "k.mlir"


def test_a_missing_file_a_folder_and_an_empty_file(tmp_path: Path) -> None:
    assert message(tmp_path / "no.py") == f"{tmp_path / 'no.py'}: there is no such file; check the path"
    assert message(tmp_path) == f"{tmp_path}: this is a folder; give a file that ends in .py, .ttgir, .mlir, .kernel"
    for suffix in (".py", ".mlir", ".ttgir", ".kernel"):
        empty = tmp_path / f"empty{suffix}"
        empty.write_text(" \n", encoding="utf-8")
        assert message(empty) == f"{empty}: the file is empty; give a file with a kernel"


def test_other_endings_binary_files_and_unreadable_files(tmp_path: Path) -> None:
    other = tmp_path / "k.cu"
    other.write_text("x", encoding="utf-8")
    assert "files ending in '.cu' are not read; give one of .py, .ttgir, .mlir, .kernel" in message(other)
    binary = tmp_path / "k.py"
    binary.write_bytes(b"\xff\xfe\x00")
    assert message(binary) == f"{binary}: this is not text in UTF-8; give a text file"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser reads everything")
def test_a_file_without_permission_is_reported(tmp_path: Path) -> None:
    secret = tmp_path / "k.py"
    secret.write_text("x", encoding="utf-8")
    secret.chmod(0)
    assert "it cannot be read: Permission denied; check its permissions" in message(secret)


def test_an_unknown_target_lists_the_known_ones() -> None:
    assert message(DATA / HOPPER, "sm_70") == "sm_70: this target is not supported; use one of sm_80, sm_90a, sm_100a"


def test_a_module_for_another_target_is_refused() -> None:
    text = message(DATA / HOPPER, "sm_100a")
    assert "the module was lowered for sm_90a and the machine needs sm_100a" in text


def test_launch_options_have_no_meaning_for_text() -> None:
    for options, option in (
        (parse_options(args=["q=i32"]), "--arg"),
        (parse_options(constexprs=["B=1"]), "--const"),
        (parse_options(num_warps=4), "--num-warps"),
        (parse_options(config=1), "--config"),
    ):
        text = message(DATA / HOPPER, options=options)
        assert text == f"{option}: it has no meaning for {HOPPER}; a launch is only for Python files"


def test_without_triton_a_python_file_and_pretty_text_say_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    for name, text in (("k.py", "import triton"), ("k.ttgir", "module {}")):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        assert message(file) == f"{file}: Triton is not installed; install it with pip install 'twillgpu[triton]'"


def test_broken_generic_text_names_the_line(tmp_path: Path) -> None:
    text = (DATA / HOPPER).read_text(encoding="utf-8")
    broken = tmp_path / "broken.mlir"
    broken.write_text(text.replace('"math.exp2"(', '"math.exp2"', 1), encoding="utf-8")
    line = next(at for at, row in enumerate(text.splitlines(), start=1) if '"math.exp2"(' in row)
    assert message(broken).startswith(f"broken.mlir:{line}: expected '(', found '%")


def test_unsupported_control_flow_keeps_its_own_kind_of_error(tmp_path: Path) -> None:
    text = (DATA / HOPPER).read_text(encoding="utf-8").replace('"scf.for"', '"scf.parallel"')
    file = tmp_path / "k.mlir"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnsupportedError, match="has no loop"):
        load_kernel(file, "sm_90a")
