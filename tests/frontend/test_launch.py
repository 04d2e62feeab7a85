from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import twillgpu
from twillgpu.errors import InputError
from twillgpu.frontend.arguments import ArgumentSpec, argument_spec
from twillgpu.frontend.launch import ArgumentType, Launch, LoadOptions, parse_options


def test_launch_is_a_name_of_the_package_that_costs_nothing_until_it_is_used() -> None:
    assert twillgpu.Launch is Launch
    code = "import sys, twillgpu; print('twillgpu.frontend.launch' in sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # our own interpreter
    assert done.stdout == "False\n"


def test_options_are_read_from_the_command_line() -> None:
    options = parse_options(
        kernel="k",
        args=("q=*fp16", "n = i32:16"),
        constexprs=("BLOCK=128", "SCALE=0.5", "CAUSAL=False", "DTYPE=tl.float16", "ACT='relu'", "BIAS=None"),
        num_warps=8,
        config=2,
        loop=1,
    )
    assert options == LoadOptions(
        kernel="k",
        args=(("q", "*fp16"), ("n", "i32:16")),
        constexprs=(
            ("BLOCK", 128),
            ("SCALE", 0.5),
            ("CAUSAL", False),
            ("DTYPE", "tl.float16"),
            ("ACT", "relu"),
            ("BIAS", None),
        ),
        num_warps=8,
        config=2,
        loop=1,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"args": ["q"]}, "--arg q: this is not an assignment; write --arg NAME=TYPE"),
        ({"args": ["=*fp16"]}, "--arg =*fp16: this is not an assignment"),
        ({"args": ["q="]}, "--arg q=: this is not an assignment"),
        ({"constexprs": ["B-M=1"]}, "--const B-M=1: this is not an assignment; write --const NAME=VALUE"),
        ({"args": ["q=i32", "q=i64"]}, "--arg q=i64: q is given twice; give it once"),
        ({"num_warps": 3}, "--num-warps: 3 warps; use a power of two from 1 to 32"),
    ],
)
def test_bad_options_name_the_option(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_options(**options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kernel": ""}, "Launch: kernel is ''; give the name of the @triton.jit function"),
        ({"kernel": "k", "args": ["q"]}, "Launch of k: args is not a mapping from names; write args={'name': ...}"),
        ({"kernel": "k", "constexprs": {1: 2}}, "Launch of k: constexprs is not a mapping from names"),
        ({"kernel": "k", "num_warps": 6}, "Launch of k: 6 warps; use a power of two from 1 to 32"),
    ],
)
def test_a_bad_launch_says_what_to_write(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Launch(**fields)
    assert str(caught.value).startswith(message)


CONSTANTS = {"BLOCK_M": 128, "HEAD_DIM": 64, "NAME": "x"}


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        ("*fp16", ArgumentSpec(signature="*fp16", aligned=True)),
        ("*fp16:1", ArgumentSpec(signature="*fp16")),
        ("*i1", ArgumentSpec(signature="*i1", aligned=True)),
        ("*float32", ArgumentSpec(signature="*fp32", aligned=True)),
        ("i32", ArgumentSpec(signature="i32", aligned=True)),
        ("i32:16", ArgumentSpec(signature="i32", aligned=True)),
        ("i32:8", ArgumentSpec(signature="i32")),
        ("i64:48", ArgumentSpec(signature="i64", aligned=True)),
        ("fp32", ArgumentSpec(signature="fp32")),
        ("bool", ArgumentSpec(signature="i1")),
        ("4096", ArgumentSpec(signature="i32", aligned=True, value=4096)),
        (4095, ArgumentSpec(signature="i32", value=4095)),
        (2**40, ArgumentSpec(signature="i64", aligned=True, value=2**40)),
        (1, ArgumentSpec(signature="constexpr", value=1)),
        ("1", ArgumentSpec(signature="constexpr", value=1)),
        ("0.125", ArgumentSpec(signature="fp32", value=0.125)),
        (1.0, ArgumentSpec(signature="fp32", value=1.0)),
        (True, ArgumentSpec(signature="i1", value=True)),
        (None, ArgumentSpec(signature="constexpr")),
        ("None", ArgumentSpec(signature="constexpr")),
        ("fp16[4096, 128]", ArgumentSpec(signature="*fp16", aligned=True)),
        ("tensordesc<fp16[128,64]>", ArgumentSpec(signature="tensordesc<fp16[128,64]>")),
        ("tensordesc<f32[BLOCK_M, HEAD_DIM]>", ArgumentSpec(signature="tensordesc<fp32[128,64]>")),
        ("tensordesc<bf16[BLOCK_M//2,2*HEAD_DIM+1-1]>", ArgumentSpec(signature="tensordesc<bf16[64,128]>")),
    ],
)
def test_types_are_specialised_as_tritons_launcher_does(given: ArgumentType, spec: ArgumentSpec) -> None:
    assert argument_spec(given, CONSTANTS, where="k") == spec


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("fp31", "k: unknown argument type 'fp31'; did you mean 'fp32'?"),
        ("*", "k: unknown argument type ''"),
        ("", "k: unknown argument type ''"),
        ("fp32:16", "k: the type 'fp32:16' has a divisor; only pointers and integers have one"),
        ("tensordesc<fp16>", "k: 'fp16' is no block of a tensor; write tensordesc<fp16[128,64]>"),
        ("tensordesc<fq16[64]>", "k: unknown argument type 'fq16'; did you mean"),
        (
            "tensordesc<fp16[BLOCK]>",
            "k: the size 'BLOCK' is no number; use a number or a constexpr: BLOCK_M, HEAD_DIM",
        ),
        ("tensordesc<fp16[NAME]>", "k: the size 'NAME' is no number"),
        ("tensordesc<fp16[64 64]>", "k: the size '64 64' is no number"),
        ("tensordesc<fp16[1//0]>", "k: the size '1//0' is no number"),
        ("tensordesc<fp16[f(1)]>", "k: the size 'f(1)' is no number"),
    ],
)
def test_an_unknown_type_names_the_nearest(given: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        argument_spec(given, CONSTANTS, where="k")
    assert str(caught.value).startswith(message)
