"""``bench/gpu.py`` without a GPU: its processes, its budget, its table; what is measured is another matter."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import gpu
import gpu_one
from gpu_plan import IMPLEMENTATIONS, Extent, Job, Prepared, extent, predicted
from gpu_works import Setting, Work

BENCH = Path(gpu.__file__).parent
DEVICE = {
    "name": "NVIDIA H100",
    "capability": 90,
    "sms": 132,
    "torch": "2",
    "triton": "3",
    "l2_bytes": 1,
    "cuda": "12",
}

CHILD = """
import json, os, sys, time
if sys.argv[1] == "probe":
    print(json.dumps(%(device)r))
    sys.exit()
job = json.loads(sys.argv[1])
for length in job["lengths"]:
    case = (job["implementation"], length)
    if case == ("triton", 4096):
        print("Segmentation fault soon", file=sys.stderr, flush=True)
        os.abort()
    if case == ("cublas", 2048):
        time.sleep(60)
    row = dict(op=job["op"], implementation=job["implementation"], length=length, outcome="ok", milliseconds=1.0,
               tflops=500.0, relative_error=1e-3)
    if case == ("dropin", 4096):
        row.update(outcome="failed", reason="RuntimeError: an illegal memory access was encountered")
    if case == ("dropin", 8192):
        row.update(outcome="wrong", reason="the result differs")
    print(json.dumps(row), flush=True)
    if row["outcome"] == "failed":
        sys.exit(1)
"""


def runner(tmp_path: Path, budget: float = 60.0, child: str = CHILD % {"device": DEVICE}) -> gpu.Runner:
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(child), encoding="utf-8")
    return gpu.Runner(budget=budget, script=script, row_seconds=1.0, start_seconds=2.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "prepared"
    made.mkdir()
    for op in IMPLEMENTATIONS:
        one = Prepared(
            op=op,
            machine="h100",
            target="sm_90a",
            file=f"{op}.py",
            ii_cycles=2048,
            status="optimal",
            clock_mhz=1830.0,
            sizes={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        )
        (made / f"{op}-h100.json").write_text(json.dumps(vars_of(one)), encoding="utf-8")
    return made


def vars_of(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__dataclass_fields__}


def test_without_a_gpu_it_says_so_in_one_line() -> None:
    code = "import sys, gpu; sys.exit(gpu.main([], gpu.Runner(script=gpu.HERE / 'nothing_of_this_name.py')))"
    done = subprocess.run(  # noqa: S603  # our own code
        [sys.executable, "-c", code], cwd=BENCH, capture_output=True, text=True, check=False
    )
    assert done.returncode == gpu.NOTHING == 3
    assert done.stdout.startswith("nothing was measured: PyTorch cannot be loaded")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("package", ["torch", "triton"])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else object())
    assert gpu_one.probe() == {"missing": f"{package} is not installed"}


def test_a_measurement_needs_only_pytorch_triton_and_this_repository() -> None:
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['ortools', 'click', 'rich', 'numpy']))\n"
        "import gpu, gpu_one\n"
        "from gpu_plan import Job\n"
        "from gpu_works import Setting, example\n"
        "for op in gpu.IMPLEMENTATIONS:\n"
        "    example(Job(op=op, implementation='triton', lengths=(), target=''), Setting(torch=None))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(BENCH.parent / "src")}
    subprocess.run([sys.executable, "-c", code], cwd=BENCH, check=True, env=environment)  # noqa: S603  # our own code


def test_what_a_library_prints_is_passed_over(tmp_path: Path) -> None:
    child = """
import json, sys
print("Welcome to some library")
print(json.dumps(["no", "row"]))
print(json.dumps(dict(op="gemm", implementation="cublas", length=128, outcome="ok")), flush=True)
"""
    job = Job(op="gemm", implementation="cublas", lengths=(128,), target="")
    assert [row.outcome for row in runner(tmp_path, child=child).rows(job)] == ["ok"]


def test_no_row_is_begun_that_there_is_no_time_for(tmp_path: Path) -> None:
    child = """
import json, sys
for length in json.loads(sys.argv[1])["lengths"]:
    print(json.dumps(dict(op="gemm", implementation="cublas", length=length, outcome="ok", seconds=50.0)), flush=True)
"""
    job = Job(op="gemm", implementation="cublas", lengths=(128, 256, 512), target="")
    rows = list(runner(tmp_path, budget=40.0, child=child).rows(job))
    assert [(row.outcome, row.seconds) for row in rows] == [("ok", 50.0), ("skipped", 0.0), ("skipped", 0.0)]
    assert rows[1].reason.endswith(" of the budget of 40 s are left, and it takes 50 s or more")
    assert rows[1].length == 256


def test_an_h200_takes_the_kernels_of_the_h100(folder: Path) -> None:
    assert gpu.prepared("gemm", "h200", folder).file == "gemm.py"
    assert gpu.prepared("gemm", "b200", folder).reason.startswith("no emitted kernel for b200")


def test_each_failure_costs_one_row(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out" / "gpu.json"
    arguments = [
        "--ops",
        "gemm",
        "--lengths",
        "2048",
        "4096",
        "8192",
        "--folder",
        str(folder),
        "--output",
        str(output),
    ]
    assert gpu.main(arguments, runner(tmp_path)) == gpu.WRONG
    document = json.loads(output.read_text(encoding="utf-8"))
    outcomes = {(row["implementation"], row["length"]): row["outcome"] for row in document["rows"]}
    assert outcomes == {
        **{("twill", length): "ok" for length in (2048, 4096, 8192)},
        ("triton", 2048): "ok",
        ("triton", 4096): "crashed",
        ("triton", 8192): "ok",
        ("cublas", 2048): "timeout",
        ("cublas", 4096): "ok",
        ("cublas", 8192): "ok",
        ("dropin", 2048): "ok",
        ("dropin", 4096): "failed",
        ("dropin", 8192): "wrong",
    }
    printed = capsys.readouterr().out
    assert "the process ended: Segmentation fault soon" in printed
    assert "no answer within 3 s" in printed
    assert document["device"] == DEVICE
    assert (document["schema"], document["measured"]) == ("twillgpu-gpu-bench/2", True)


def test_the_prediction_stands_beside_the_measurement(tmp_path: Path, folder: Path) -> None:
    rows = list(gpu.measure(runner(tmp_path), DEVICE, ["attention_fwd"], (2048,), folder))
    by = {row.implementation: row for row in rows}
    # 2048 blocks on 132 SMs are 16 after each other, of 16 iterations of 2048 cycles at 1830 MHz.
    assert by["twill"].predicted_milliseconds == pytest.approx(16 * 16 * 2048 / 1830e3)
    assert by["triton"].predicted_milliseconds is None
    assert by["cudnn"].predicted_milliseconds is None


def test_a_prediction_is_no_faster_than_what_the_chip_sustains() -> None:
    one = Prepared(op="gemm", machine="h100", target="sm_90a", ii_cycles=1, clock_mhz=1830.0, ceiling_tflops=785.0)
    assert list(predicted(one, Extent(flop=785e9, blocks=132, trips=1), 132)) == pytest.approx([1.0, 785.0])


def test_what_was_not_prepared_is_a_skipped_row(tmp_path: Path) -> None:
    rows = list(gpu.measure(runner(tmp_path), DEVICE, ["attention_bwd"], (2048,), tmp_path / "empty"))
    by = {row.implementation: row for row in rows}
    assert by["twill"].outcome == "skipped"
    assert by["twill"].reason.startswith("no emitted kernel for h100: run bench/gpu.py --prepare")
    assert by["triton"].outcome == "ok"


def test_another_gpu_measures_what_applies(tmp_path: Path, folder: Path) -> None:
    ada = DEVICE | {"capability": 89, "name": "NVIDIA GeForce RTX 4090"}
    rows = list(gpu.measure(runner(tmp_path), ada, ["attention_fwd"], (2048,), folder))
    by = {row.implementation: row for row in rows}
    assert by["twill"].reason == "nothing is emitted for compute capability 8.9"
    assert {by[name].outcome for name in ("triton", "cudnn", "flash")} == {"ok"}


@pytest.mark.parametrize(
    ("name", "capability", "machine"),
    [
        ("NVIDIA H100 80GB HBM3", 90, "h100"),
        ("NVIDIA H200", 90, "h200"),
        ("NVIDIA GH200 480GB", 90, "h100"),
        ("NVIDIA B200", 100, "b200"),
        ("NVIDIA A100", 80, ""),
    ],
)
def test_machines_of_devices(name: str, capability: int, machine: str) -> None:
    assert gpu.machine_of({"name": name, "capability": capability}) == machine


def test_the_budget_ends_the_measurement(tmp_path: Path) -> None:
    job = Job(op="gemm", implementation="cublas", lengths=(2048, 4096), target="")
    rows = list(runner(tmp_path, budget=2.5).rows(job))
    assert [row.outcome for row in rows] == ["timeout", "skipped"]
    assert rows[1].reason == "0 s of the budget of 2.5 s are left, and it takes 1 s or more"


class Array:
    """As much of a tensor as the check needs: a list of numbers."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def detach(self) -> "Array":
        return self

    def double(self) -> "Array":
        return self

    def __sub__(self, other: "Array") -> "Array":
        return Array(*(a - b for a, b in zip(self.values, other.values, strict=True)))

    def abs(self) -> "Array":
        return Array(*map(abs, self.values))

    def max(self) -> float:
        return max(self.values)

    def norm(self) -> float:
        return float(sum(value * value for value in self.values) ** 0.5)


class Clock:
    """A timer that takes two milliseconds for everything."""

    def median(self, _work: Work) -> tuple[float, int]:
        return 2.0, 7


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (Array(1.0, 2.0, 3.001), "ok"),
        (Array(1.0, 2.0, 3.5), "wrong"),
        (Array(1.0, float("nan"), 3.0), "wrong"),
    ],
)
def test_results_are_checked_for_every_set_of_inputs(
    monkeypatch: pytest.MonkeyPatch, found: Array, outcome: str
) -> None:
    seen: list[tuple[str, int]] = []
    reference = Array(1.0, 2.0, 3.0)
    work = Work(
        launch=lambda at: seen.append(("launch", at)),
        poison=lambda at: seen.append(("poison", at)),
        pairs=lambda at: [(found if at == 1 else reference, reference)],
        sets=2,
        extent=Extent(flop=4e9),
    )
    monkeypatch.setattr(gpu_one, "work_of", lambda *_: work)
    job = Job(op="gemm", implementation="twill", lengths=(128,), target="")
    row = gpu_one.measured(job, 128, Setting(torch=None, device="cpu"), Clock())
    assert row.outcome == outcome
    assert seen == [("poison", 0), ("launch", 0), ("poison", 1), ("launch", 1)]
    assert json.loads(json.dumps(vars_of(row)))["input_sets"] == 2
    if outcome == "ok":
        assert (row.milliseconds, row.tflops, row.launches) == (2.0, 2.0, 7)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RuntimeError("out of memory\nmore"), "failed"),
        (ImportError("no cudnn"), "skipped"),
        (RuntimeError("No available kernel. Aborting execution."), "skipped"),
    ],
)
def test_an_exception_is_a_row(monkeypatch: pytest.MonkeyPatch, error: Exception, outcome: str) -> None:
    def broken(*_: object) -> Work:
        raise error

    monkeypatch.setattr(gpu_one, "work_of", broken)
    job = Job(op="gemm", implementation="cublas", lengths=(128,), target="")
    row = gpu_one.measured(job, 128, Setting(torch=None, device="cpu"), Clock())
    assert (row.outcome, row.reason) == (outcome, f"{type(error).__name__}: {str(error).splitlines()[0]}")


def test_inputs_are_twice_the_cache() -> None:
    assert Setting(torch=None, l2_bytes=50).sets(10) == 10
    assert Setting(torch=None, l2_bytes=50).sets(1000) == 2


@pytest.mark.parametrize(
    ("op", "flop", "blocks", "trips"),
    [
        ("attention_fwd", 4 * 16384 * 16 * 4096 * 128, 16384 * 16 // 128, 4096 // 64),
        ("attention_bwd", 10 * 16384 * 16 * 4096 * 128, 16384 * 16 // 64, 4096 // 128),
        ("gemm", 2 * 4096**3, (4096 // 128) * (4096 // 64), 4096 // 32),
    ],
)
def test_the_extent_of_a_launch(op: str, flop: float, blocks: int, trips: int) -> None:
    sizes = {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32}
    assert extent(op, 4096, sizes) == Extent(flop=flop, blocks=blocks, trips=trips)
    assert extent(op, 4096, {}) == Extent(flop=flop)


class Cuda:
    """CUDA events that count launches: each launch takes a millisecond more than the one before."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def synchronize(self) -> None:
        self.done.append("synchronize")

    def _sleep(self, cycles: int) -> None:
        assert cycles > 0
        self.done.append("sleep")

    def Event(self, *, enable_timing: bool) -> "Event":  # noqa: N802  # PyTorch's name
        assert enable_timing
        return Event(self)


class Event:
    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.at = 0

    def record(self) -> None:
        self.at = len(self.cuda.done)
        self.cuda.done.append("event")

    def elapsed_time(self, other: "Event") -> float:
        assert other.at == self.at + 2
        return 30.0


def test_launches_are_timed_in_a_queue_with_rotating_inputs() -> None:
    cuda = Cuda()
    torch = type("Torch", (), {"cuda": cuda})
    work = Work(
        launch=lambda at: cuda.done.append(f"launch {at}"),
        poison=lambda _: None,
        pairs=lambda _: [],
        sets=2,
        extent=Extent(flop=1.0),
    )
    assert gpu_one.EventTimer(torch=torch).median(work) == (30.0, 10)
    timed = cuda.done[-32:]
    assert timed[0] == "sleep"
    assert timed[-1] == "synchronize"
    assert timed[1:-1] == ["event", "launch 0", "event", "event", "launch 1", "event"] * 5
