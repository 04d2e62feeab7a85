"""The whole way of ``bench/gpu.py`` without a GPU: preparation, processes, emulated launches, table and JSON."""

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

import gpu
import gpu_one
import gpu_prepare
import twillgpu
from gpu_numpy import NumpyTorch, tensor
from gpu_plan import IMPLEMENTATIONS, Job
from gpu_rehearse import MadeUpCuda, setting
from twillgpu.errors import TwillError

pytestmark = pytest.mark.triton
TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the matrix product, prepared."""
    made = tmp_path_factory.mktemp("prepared")
    gpu.prepare("h100", ["gemm"], made, 300.0)
    return made


def test_what_is_prepared_is_checked(folder: Path) -> None:
    found = gpu.prepared("gemm", "h100", folder)
    assert (found.reason, found.remark, found.clean, found.status) == ("", "", True, "optimal")
    assert found.sizes == {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64}
    assert (folder / found.file).is_file()


def test_what_has_not_changed_is_not_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = Path(shutil.copytree(folder, tmp_path / "prepared"))
    monkeypatch.setattr(twillgpu, "find_schedule", None)
    assert gpu_prepare.prepare("gemm", "h100", here, 10.0) == gpu.prepared("gemm", "h100", folder)
    file = here / "gemm-h100.json"
    file.write_text(file.read_text("utf-8").replace('"key": "', '"key": "0'), "utf-8")
    with pytest.raises(TypeError):
        gpu_prepare.prepare("gemm", "h100", here, 10.0)


def test_what_cannot_be_checked_is_there_unchecked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emitted = twillgpu.emit_source

    def without_compiler(priced: Any, found: Any, options: Any = None) -> Any:
        if options is not None:
            written = gpu.prepared("gemm", "h100", tmp_path)
            assert (written.remark, written.clean) == ("not checked: there was no time", False)
            raise TwillError("emitted.py", "no ptxas", "install it")
        return emitted(priced, found)

    monkeypatch.setattr(twillgpu, "emit_source", without_compiler, raising=False)
    found = gpu_prepare.prepare("gemm", "h100", tmp_path, 60.0)
    assert found.remark == "not checked: emitted.py: no ptxas; install it"
    assert "def launch(grid, a_desc" in (tmp_path / found.file).read_text("utf-8")


def test_a_preparation_ends_in_time(tmp_path: Path) -> None:
    gpu.prepare("h100", ["gemm", "attention_fwd"], tmp_path, 0.1)
    assert gpu.prepared("gemm", "h100", tmp_path).reason.startswith("no emitted kernel for h100")


def test_a_rehearsal_goes_the_whole_way(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "rehearsal.json"
    arguments = ["--rehearse", "--ops", "gemm", "--folder", str(folder), "--output", str(output)]
    assert gpu.main(arguments) == 0
    document = json.loads(output.read_text("utf-8"))
    assert document["measured"] is False
    assert document["device"]["name"] == "h100: rehearsal on a CPU, nothing is measured"
    rows = {row["implementation"]: row for row in document["rows"]}
    assert list(rows) == list(IMPLEMENTATIONS["gemm"])
    for name in ("twill", "triton", "dropin", *["cublas"] * TORCH):
        assert (rows[name]["outcome"], rows[name]["milliseconds"]) == ("rehearsed", 1.0)
        assert 0 < rows[name]["relative_error"] < 1e-3
        assert rows[name]["seconds"] > 0
    assert rows["twill"]["predicted_milliseconds"] > 0
    assert "The times are made up, the results are real: nothing was measured." in capsys.readouterr().out


def test_a_wrong_result_is_found_in_a_rehearsal(folder: Path, tmp_path: Path) -> None:
    source = (folder / "gemm_h100.py").read_text("utf-8")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(source.replace("t * 64", "t * 32"), "utf-8")
    job = Job(op="gemm", implementation="twill", lengths=(256,), target="sm_90a", emitted=str(wrong), rehearse="h100")
    found, timer = gpu_one.on_a_cpu(job, 256)
    row = gpu_one.measured(job, 256, found, timer)
    assert (row.outcome, row.milliseconds) == ("wrong", None)
    assert row.reason == "the result differs from the float64 reference"


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["h100", "b200"])
def test_attention_is_rehearsed(machine: str, tmp_path: Path) -> None:
    output = tmp_path / "rehearsal.json"
    arguments = ["--rehearse", "--machine", machine, "--ops", "attention_fwd", "attention_bwd"]
    assert gpu.main([*arguments, "--folder", str(tmp_path), "--output", str(output)]) == 0
    rows = json.loads(output.read_text("utf-8"))["rows"]
    ours = [row["outcome"] for row in rows if row["implementation"] in ("twill", "triton")]
    assert ours == ["rehearsed"] * 4


def test_the_clock_of_a_rehearsal_is_made_up() -> None:
    cuda = MadeUpCuda()
    begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    begin.record()
    end.record()
    assert begin.elapsed_time(end) == 1.0


def test_a_rehearsal_has_one_sequence_and_one_head() -> None:
    job = Job(op="attention_fwd", implementation="triton", lengths=(256,), target="sm_90a", rehearse="h100")
    found = setting(job, 256)
    assert (found.device, found.tokens, found.heads, found.sets(1)) == ("cpu", 256, 1, 2)


def test_numpy_under_the_names_of_pytorch() -> None:
    torch = NumpyTorch()
    x = torch.randn((4, 6), device="cpu", dtype=torch.float32).double()
    weights = np.exp(x.numpy()) / np.exp(x.numpy()).sum(-1, keepdims=True)
    assert np.allclose(x.softmax(-1), weights)
    assert np.allclose(x.logsumexp(-1), np.log(np.exp(x.numpy()).sum(-1)))
    assert np.allclose(torch.cat(x.split(3)), x)
    assert float((x - x * 2).norm()) == pytest.approx(np.linalg.norm(x.numpy()))
    assert float(x.abs().max()) == np.abs(x.numpy()).max()
    assert x.half().data_ptr() % 16 == 0
    y = tensor(np.ones((2, 2)))
    assert (y.zero_() == 0).all()
    assert y.float().dtype == np.float32
