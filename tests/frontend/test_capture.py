"""Python files through the worker process: what a user may write, and each mistake with its message."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from frontend_data import DATA

from twillgpu.errors import InputError, TwillError
from twillgpu.frontend.capture import capture
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.launch import LoadOptions, parse_options
from twillgpu.frontend.load import load_kernel

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed"),
]

IMPORTS = "import triton\nimport triton.language as tl\n"
ADD = """
@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(0, n, BLOCK):
        total = tl.load(x + i + k) + 1.0
        tl.store(y + i + k, total)
"""
ADD_ARGS = ["x=*fp32", "y=*fp32", "n=i32"]


def write(folder: Path, text: str, name: str = "k.py") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def load(file: Path, target: str = "sm_90a", **options: Any) -> Kernel:
    return load_kernel(file, target, parse_options(**options))


def message(file: Path, **options: Any) -> str:
    with pytest.raises(TwillError) as caught:
        load(file, **options)
    return str(caught.value)


def test_a_file_that_nobody_may_edit_is_launched_from_the_command_line(tmp_path: Path) -> None:
    file = write(tmp_path, IMPORTS + ADD)
    kernel = load(file, args=ADD_ARGS, constexprs=["BLOCK=128"], num_warps=2)
    assert (kernel.name, kernel.target, kernel.num_warps) == ("add", "sm_90a", 2)
    assert kernel.source_file == str(file)
    assert [op.opcode for op in kernel.loop.body if op.name == "total"] == ["arith.addf"]
    assert kernel.loop.source == "k.py:7"
    assert kernel.loop.induction.name == "k"


def test_divisibility_hints_make_wide_loads(tmp_path: Path) -> None:
    file = write(tmp_path, IMPORTS + ADD)
    options: dict[str, Any] = {"constexprs": ["BLOCK=1024"], "num_warps": 1}
    wide = capture(file, "sm_90a", parse_options(args=ADD_ARGS, **options)).text
    narrow = capture(file, "sm_90a", parse_options(args=["x=*fp32:4", "y=*fp32:4", "n=i32"], **options)).text
    assert "sizePerThread = [4]" in wide
    assert "sizePerThread = [4]" not in narrow


def test_a_known_argument_gives_the_trip_count_and_one_is_folded(tmp_path: Path) -> None:
    file = write(tmp_path, IMPORTS + ADD)
    assert load(file, args=["x=*fp32", "y=*fp32", "n=4096"], constexprs=["BLOCK=128"]).loop.trip_count == 32
    strided = write(
        tmp_path, (IMPORTS + ADD).replace("y, n,", "y, n, step,").replace("tl.load(x + i", "tl.load(x + i * step")
    )
    kernel = load(strided, args=[*ADD_ARGS, "step=1"], constexprs=["BLOCK=128"])
    assert [argument.name for argument in kernel.arguments] == ["x", "y", "n"]


TUTORIAL = """
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"


WIDE = [64, 128] if is_cuda() and torch.cuda.get_device_capability()[0] >= 9 else [32]


@triton.autotune(configs=[triton.Config({"BM": bm}, num_warps=4, num_stages=3) for bm in WIDE], key=["K"])
@triton.heuristics({"EVEN": lambda args: args["K"] % 64 == 0})
@triton.jit
def kern(a_ptr, b_ptr, K, BM: tl.constexpr, EVEN: tl.constexpr, BK: tl.constexpr = 32, OUT: tl.constexpr = tl.int8):
    rows = tl.arange(0, BM)
    columns = tl.arange(0, BK)
    acc = tl.zeros([BM, BM], tl.float32)
    for k in tl.range(0, K, BK, num_stages=3):
        if EVEN:
            a = tl.load(a_ptr + rows[:, None] * K + k + columns[None, :])
        else:
            a = tl.load(a_ptr + rows[:, None] * K + k + columns[None, :], mask=(k + columns < K)[None, :], other=0.0)
        acc = tl.dot(a, a.T, acc)
    tl.store(b_ptr + rows[:, None] * BM + rows[None, :], acc.to(OUT))


class Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return kern[(1,)](a, a, 4096)


x = torch.rand((64, 64), device=DEVICE)
print(f"result {Multiply.apply(x)}")
kern[lambda meta: (1,)](x, x, 4096)
kern[(1,)](x, x, 4096)
"""
TUTORIAL_ARGS = ["a_ptr=*fp16", "b_ptr=*fp16", "K=4096"]
USUAL = (
    "not installed, replaced by stand-ins that the kernel may not use: torch",
    "the file launches kernels while it is imported: skipped (2)",
)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_a_tutorial_with_torch_a_device_an_autotuner_heuristics_and_launches_is_captured(tmp_path: Path) -> None:
    file = write(tmp_path, TUTORIAL)
    kernel = load(file, args=TUTORIAL_ARGS)
    assert kernel.remarks == (
        *USUAL,
        "autotuned kernel: configuration 1 of 2 is used; choose with --config N",
        "the loop's own options are not used, the schedule decides instead: num_stages",
    )
    assert next(op for op in kernel.loop.body if op.name == "acc").results[0].type.shape == (64, 64)
    second = load(file, args=TUTORIAL_ARGS, config=2)
    assert next(op for op in second.loop.body if op.name == "acc").results[0].type.shape == (128, 128)
    assert "configuration 2 of 2" in second.remarks[2]
    own = load(file, args=TUTORIAL_ARGS, constexprs=["BM=32", "OUT=tl.bfloat16"], num_warps=2)
    assert next(op for op in own.loop.body if op.name == "acc").results[0].type.shape == (32, 32)
    assert own.num_warps == 2
    assert message(file, args=TUTORIAL_ARGS, config=3) == (
        "k.py:19: there is no configuration 3; give --config 1 to 2"
    )
    assert message(file, args=["a_ptr=*fp16", "b_ptr=*fp16", "K=i32"]) == (
        "k.py:19: the launch of kern has no value for the constexpr EVEN; add it to the file's twillgpu.Launch, or "
        "give --const EVEN=VALUE"
    )
    assert message(file, args=TUTORIAL_ARGS, constexprs=["OUT=tl.float17"]) == (
        "k.py:19: OUT: Triton has no 'tl.float17'; give a name of triton.language"
    )


def test_declared_launches_and_what_the_command_line_changes(tmp_path: Path) -> None:
    declared = """
import twillgpu
ARGS = dict(x="*fp32", y="*fp32", n="i32")
OTHER = [twillgpu.Launch(kernel="other", args={"x": "*fp32", "n": 7})]
LAUNCH = (
    twillgpu.Launch(kernel="add", target="sm_100a", args=ARGS, constexprs={"BLOCK": 64}),
    twillgpu.Launch(kernel="add", args=ARGS, constexprs={"BLOCK": 32}, num_warps=1),
)
"""
    other = "\n@triton.jit\ndef other(x, n):\n    for k in range(0, n):\n        tl.store(x + k, 1.0)\n"
    file = write(tmp_path, IMPORTS + declared + ADD + other)
    ours = load(file)
    assert (ours.name, ours.num_warps) == ("add", 1)
    assert next(op for op in ours.loop.body if op.name == "total").results[0].type.shape == (32,)
    blackwell = load(file, "sm_100a")
    assert blackwell.num_warps == 4
    assert next(op for op in blackwell.loop.body if op.name == "total").results[0].type.shape == (64,)
    changed = load(file, constexprs=["BLOCK=256"], args=["x=*bf16"])
    assert next(op for op in changed.loop.body if op.name == "total").results[0].type.shape == (256,)
    assert load(file, kernel="other").loop.trip_count == 7


def test_helpers_of_the_file_and_relative_imports_are_inlined_with_their_own_lines(tmp_path: Path) -> None:
    write(tmp_path, "raise RuntimeError('a package is not run')\n", "pkg/__init__.py")
    write(tmp_path, "raise RuntimeError('a package is not run')\n", "pkg/ops/__init__.py")
    write(tmp_path, "HALF = 0.5\n", "pkg/base.py")
    scale = "\n@triton.jit\ndef scale(v):\n    doubled = v * 2.0\n    return doubled\n"
    write(tmp_path, IMPORTS + scale, "pkg/ops/util.py")
    text = """
from pkg.base import HALF
from ..base import HALF as AGAIN
from .util import scale

C = tl.constexpr(HALF + AGAIN)


@triton.jit
def kern(x, n):
    for k in range(0, n):
        w = scale(tl.load(x + k)) + C
        tl.store(x + k, w)
"""
    kernel = load(write(tmp_path, IMPORTS + text, "pkg/ops/k.py"), args=["x=*fp32", "n=i32"])
    assert {op.name: op.source for op in kernel.loop.body} == {
        "w_addptr": "k.py:14",
        "w_load": "k.py:14",
        "doubled": "util.py:6",
        "w": "k.py:14",
        "store": "k.py:15",
    }


NEEDS_MISSING = """
import triton
import triton.language as tl
import nothere

@triton.jit
def inner(v):
    return nothere.exp(v)

@triton.jit
def kern(x, n):
    for k in range(0, n):
        tl.store(x + k, inner(tl.load(x + k)))
"""


def test_what_the_file_prints_and_its_environment_do_not_reach_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    noisy = IMPORTS + "import os, sys\nprint('noise')\nos.system('echo more')\nsys.stderr.write('noise')\n" + ADD
    load(write(tmp_path, noisy), args=ADD_ARGS, constexprs=["BLOCK=128"])
    assert capfd.readouterr() == ("", "")


def test_no_cache_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    file = write(tmp_path, IMPORTS + ADD)
    load(file, args=ADD_ARGS, constexprs=["BLOCK=128"])
    assert list(home.rglob("*")) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "k.py"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(:\n    pass\n", "k.py:1: this is not Python: invalid syntax; correct the syntax"),
        ("x = 1\n\0", "k.py:"),
        (
            "def helper():\n    return {}['x']\n\nhelper()\n",
            "k.py:2: importing the file raised KeyError: 'x'; make the file importable without a GPU",
        ),
        ("raise SystemExit(3)\n", "k.py:1: importing the file raised SystemExit: 3; make the file importable"),
        ("assert False\n", "k.py:1: importing the file raised AssertionError; make the file importable"),
        ("import json.nothere\n", "k.py:1: importing the file raised ModuleNotFoundError: No module named"),
        ("import math\n", "k.py: the file has no @triton.jit kernel; give a file with one"),
        (
            "import twillgpu\ntwillgpu.Launch(kernel='k', num_warps=3)\n",
            "k.py:2: importing the file raised InputError: Launch of k: 3 warps",
        ),
        (
            NEEDS_MISSING,
            "k.py:11: the kernel uses 'nothere', which comes from nothere and is not installed; install nothere, or",
        ),
    ],
)
def test_a_file_that_cannot_be_imported_names_the_line(tmp_path: Path, text: str, expected: str) -> None:
    assert message(write(tmp_path, text)).startswith(expected)


TWO = """
@triton.jit
def helper(v):
    return v + 1.0

@triton.jit
def first(x, n):
    for k in range(0, n):
        tl.store(x + k, helper(tl.load(x + k)))

@triton.jit
def second(x, n):
    for k in range(0, n):
        tl.store(x + k, 2.0)
"""


def test_several_kernels_are_listed_without_the_helpers_that_they_call(tmp_path: Path) -> None:
    file = write(tmp_path, IMPORTS + TWO)
    assert message(file) == "k.py: several kernels: first (k.py:9), second (k.py:14); choose one with --kernel NAME"
    assert load(file, kernel="second", args=["x=*fp32", "n=i32"]).name == "second"
    assert message(file, kernel="frist") == "k.py: no @triton.jit kernel 'frist'; did you mean 'first'?"
    assert message(file, kernel="first", config=1) == "k.py:9: the kernel has no @triton.autotune; leave out --config"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {},
            "k.py:5: the launch of add has no type for x, y, n and no value for the constexpr BLOCK; add it to the",
        ),
        (
            {"args": ADD_ARGS},
            "k.py:5: the launch of add has no value for the constexpr BLOCK; add it to the file's",
        ),
        (
            {"args": [*ADD_ARGS[:2], "n=i33"], "constexprs": ["BLOCK=32"]},
            "k.py:5: argument n: unknown argument type 'i33'; did you mean 'i32'?",
        ),
        (
            {"args": [*ADD_ARGS, "m=i32"]},
            "k.py:5: the kernel has no argument 'm'; use one of BLOCK, n, x, y",
        ),
        (
            {"args": ADD_ARGS, "constexprs": ["BLOKC=32"]},
            "k.py:5: the kernel has no argument 'BLOKC'; did you mean 'BLOCK'?",
        ),
        (
            {"args": ["x=tensordesc<fp32[100]>", *ADD_ARGS[1:]], "constexprs": ["BLOCK=32"]},
            "k.py:5: Triton rejects the launch: ValueError: Shape element 0 must be a power of 2; correct the types",
        ),
        ({"args": ["BLOCK=32"]}, "--arg BLOCK: BLOCK is a tl.constexpr; give its value: --const BLOCK=VALUE"),
        (
            {"args": ADD_ARGS, "constexprs": ["BLOCK=100"]},
            "k.py:6: Triton rejects the kernel: ValueError: arange's range must be a power of 2; correct",
        ),
    ],
)
def test_an_incomplete_or_wrong_launch_names_what_is_wrong(
    tmp_path: Path, options: dict[str, Any], expected: str
) -> None:
    assert message(write(tmp_path, IMPORTS + ADD), **options).startswith(expected)


REJECTED = """
@triton.jit
def helper(v):
    return v + tl.arange(0, 100)

@triton.jit
def in_helper(x, n):
    for k in range(0, n):
        tl.store(x + k, helper(tl.load(x + k)))

@triton.jit
def undefined(x, n):
    for k in range(0, n):
        tl.store(x + k, nowhere)

@triton.jit
def shapes(x, n):
    for k in range(0, n):
        a = tl.load(x + tl.arange(0, 16))
        tl.store(x + k + tl.arange(0, 32), a)

@triton.jit
def assertion(x, n):
    tl.static_assert(x.dtype.element_ty == tl.float16, "only halves")
"""


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("in_helper", "k.py:6: Triton rejects the kernel: ValueError: arange's range must be a power of 2; correct"),
        ("undefined", "k.py:16: Triton rejects the kernel: NameError: nowhere is not defined; correct the kernel or"),
        ("shapes", "k.py:22: Triton rejects the kernel: ValueError: "),
        ("assertion", "k.py:26: Triton rejects the kernel: only halves; correct the kernel or its launch"),
    ],
)
def test_a_kernel_that_triton_rejects_gives_its_message_at_its_line(
    tmp_path: Path, kernel: str, expected: str
) -> None:
    assert message(write(tmp_path, IMPORTS + REJECTED), kernel=kernel, args=["x=*fp32", "n=i32"]).startswith(expected)


def kernel_of(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{IMPORTS}@triton.jit\ndef kern(x, n):\n{lines}"


NOINLINE = "@triton.jit(noinline=True)\ndef called(x, k):\n    return tl.load(x + k)\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (kernel_of("tl.store(x, n)"), "k.py:4: the kernel 'kern' has no loop; give a kernel with a for loop over"),
        (kernel_of("for k in tl.static_range(4):\n    tl.store(x + k, n)"), "k.py:4: the kernel 'kern' has no loop;"),
        (
            kernel_of("for k in range(n):\n    for j in range(k):\n        tl.store(x + k + j, n)"),
            "k.py:6: a loop inside the loop at k.py:5; only a single loop is scheduled",
        ),
        (
            kernel_of("k = 0\nwhile k < n:\n    tl.store(x + k, n)\n    k += 1"),
            "k.py:6: the kernel's loop is a while",
        ),
        (
            kernel_of("for k in range(n):\n    if k > 5:\n        tl.store(x + k, n)"),
            "k.py:6: an if inside the loop at k.py:5; use tl.where, or split the loop where the condition changes",
        ),
        (
            kernel_of("for k in range(n):\n    j = 0\n    while j < k:\n        tl.store(x + k, n)\n        j += 1"),
            "k.py:7: a while loop inside the loop at k.py:5; use a for loop",
        ),
        (
            kernel_of("if n > 5:\n    return\nfor k in range(n):\n    tl.store(x + k, n)"),
            "k.py:5: the kernel branches outside of its loop (an early return?); remove the branch, or mask",
        ),
        (
            kernel_of("for k in range(n):\n    tl.store(x + k, n)\nfor k in range(n):\n    tl.store(x + k, 1)"),
            "k.py: the kernel has 2 loops: 1 (k.py:5), 2 (k.py:7); choose the one to schedule with --loop N",
        ),
        (
            kernel_of("if n > 5:\n    for k in range(n):\n        tl.store(x + k, n)"),
            "k.py:6: the loop is inside another region (scf.if at k.py:5); move the loop to the top level",
        ),
        (
            kernel_of("for k in range(n):\n    tl.store(x + k, called(x, k))") + NOINLINE,
            "k.py:6: a call that Triton did not inline at k.py:5; remove noinline=True from the function",
        ),
    ],
)
def test_loops_that_are_not_supported_are_declined_with_the_users_line(
    tmp_path: Path, text: str, expected: str
) -> None:
    assert message(write(tmp_path, text), kernel="kern", args=["x=*i32", "n=i32"]).startswith(expected)


PRETTY = """
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @k(%x: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1  : i32 {
      %sum = arith.addi %n, %i : i32
      tt.store %x, %sum : !tt.ptr<i32>
    }
    tt.return
  }
}
"""


@pytest.mark.parametrize("name", ["k.ttgir", "k.mlir"])
def test_pretty_ttgir_is_read_through_triton(tmp_path: Path, name: str) -> None:
    kernel = load(write(tmp_path, PRETTY, name))
    assert [(op.opcode, op.source) for op in kernel.loop.body] == [
        ("arith.addi", f"{name}:7"),
        ("tt.store", f"{name}:8"),
    ]
    assert kernel.num_warps == 4


def test_broken_pretty_ttgir_gives_mlirs_message_and_line(tmp_path: Path) -> None:
    file = write(tmp_path, PRETTY.replace("arith.addi %n, %i", "arith.addi %n, %gone"), "k.ttgir")
    text = message(file)
    assert text.startswith("k.ttgir:7: Triton rejects it: use of undeclared SSA value name")
    with pytest.raises(InputError, match=r"Triton rejects it: .*; correct the kernel"):
        load(write(tmp_path, "module {", "short.ttgir"))


def test_generic_text_that_triton_printed_reads_the_same_through_triton_and_without(tmp_path: Path) -> None:
    version = f"triton{''.join(importlib.metadata.version('triton').split('.')[:2])}"
    source = DATA / f"gemm_sm_90a_{version}.mlir"
    again = capture(source, "sm_90a", None).text
    own = load_kernel(source, "sm_90a")
    through = load_kernel(write(tmp_path, again, source.name), "sm_90a", LoadOptions())
    assert through.loop == own.loop


def test_a_crash_of_the_worker_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    text = message(write(tmp_path, f"{IMPORTS}import os\nos.abort()\n"))
    assert text.startswith("k.py: Triton stopped while lowering the kernel: exit status -6; check the kernel with")
