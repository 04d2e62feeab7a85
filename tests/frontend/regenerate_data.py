"""Writes the checked-in TTGIR of the examples again, with the installed Triton; run it after changing an example.

python tests/frontend/regenerate_data.py
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

from twillgpu.frontend.capture import capture
from twillgpu.frontend.launch import LoadOptions

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
TRITON = "triton" + "".join(version("triton").split(".")[:2])
CASES = (
    ("attention_fwd", "attention_fwd", "sm_90a"),
    ("attention_fwd", "attention_fwd", "sm_100a"),
    ("attention_fwd", "attention_fwd_pointers", "sm_80"),
    ("attention_bwd", "attention_bwd", "sm_90a"),
    ("attention_bwd", "attention_bwd", "sm_100a"),
    ("gemm", "gemm", "sm_90a"),
    ("gemm", "gemm", "sm_100a"),
    ("gemm", "gemm_pointers", "sm_80"),
    ("rms_norm", "rms_norm", "sm_90a"),
    ("rms_norm", "rms_norm_rows", "sm_90a"),
)
"""Example file, kernel, target."""


def case_file(kernel: str, target: str) -> Path:
    return DATA / f"{kernel}_{target}_{TRITON}.mlir"


def captured_text(file: str, kernel: str, target: str) -> str:
    """Return the module with paths relative to the repository and to Triton's package."""
    path = ROOT / "examples" / f"{file}.py"
    text = capture(path, target, LoadOptions(kernel=kernel)).text
    text = text.replace(f"{ROOT}/", "")
    return re.sub(r'"[^"\n]*/site-packages/(triton/[^"\n]*)"', r'"\1"', text)


if __name__ == "__main__":
    for case in CASES:
        case_file(*case[1:]).write_text(captured_text(*case), encoding="utf-8")
