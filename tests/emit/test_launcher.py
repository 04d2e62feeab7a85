"""The launcher of emitted files: what it accepts, what it refuses, and how. Launches are recorded."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import compiled_code as code
import pytest

pytest.importorskip("triton")

from twillgpu.dropin.emitted import module_of
from twillgpu.emit.gluon import emit
from twillgpu.emit.launcher import annotation
from twillgpu.frontend.kernel import KernelValue, Parameter, TileType

pytestmark = pytest.mark.triton

FURTHER = (
    Parameter(name="x_ptr", type="*fp16", aligned=True),
    Parameter(name="columns", type="i32", aligned=True),
    Parameter(name="offset", type="i64"),
    Parameter(name="bias_ptr", type="constexpr", value="None"),
    Parameter(name="one", type="constexpr", value="1"),
    Parameter(name="DTYPE", type="constexpr", value="'fp32'"),
    Parameter(name="flag", type="i1"),
    Parameter(name="eps", type="fp32", default="1e-05"),
    Parameter(name="MODE", type="constexpr", value="'plain'", default="'tanh'"),
    Parameter(name="SHIFTED", type="constexpr", value="False", default="True"),
)
"""Parameters of every kind, that the kernel of the tests has besides its own."""


@dataclass
class Tensor:
    """What a launcher asks of a tensor; prints its type as PyTorch does."""

    dtype: str = "torch.float16"
    pointer: int = 1 << 20

    def data_ptr(self) -> int:
        return self.pointer


@dataclass
class Tiles:
    """A TMA descriptor of the original kernel."""

    block_shape: list[int]
    base: Tensor = field(default_factory=Tensor)
    shape: tuple[int, ...] = (1024, 1024)
    strides: tuple[int, ...] = (1024, 1)
    padding: str = "zero"


@dataclass
class Launches:
    """In the place of the emitted kernel and of Gluon's descriptors: what was launched."""

    made: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def __getitem__(self, grid: Any) -> Callable[..., str]:
        def launch(*given: Any, **options: Any) -> str:
            self.made.append((grid, given, options))
            return "compiled"

        return launch


def emitted(tmp_path: Path, further: tuple[Parameter, ...] = ()) -> tuple[ModuleType, Launches]:
    program = code.program("gemm", "h100")
    kernel = replace(program.kernel, parameters=(*program.kernel.parameters[:4], *further, *PARAMETERS))
    return loaded(tmp_path, emit(replace(program, kernel=kernel)))


def loaded(tmp_path: Path, source: str) -> tuple[ModuleType, Launches]:
    file = tmp_path / "gemm_h100.py"
    file.write_text(source, "utf-8")
    module, launches = module_of(file), Launches()
    module.gemm_specialised = launches  # type: ignore[attr-defined]  # it is a file of ours
    module.TensorDescriptor = lambda base, shape, strides, block, _layout: (base, shape, strides, block)  # type: ignore[attr-defined]
    return module, launches


SIZES = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64}
PARAMETERS = (
    *(Parameter(name=name, type="constexpr", value=str(value)) for name, value in SIZES.items()),
    Parameter(name="num_warps", type="option", value="8"),
)


def tiles() -> tuple[Tiles, Tiles, Tiles]:
    return Tiles([128, 64]), Tiles([64, 256]), Tiles([128, 256])


def further() -> dict[str, Any]:
    return {"x_ptr": Tensor(), "columns": 4096, "offset": 7, "bias_ptr": None, "one": 1, "flag": True}


def test_a_launch_is_that_of_the_original(tmp_path: Path) -> None:
    module, launches = emitted(tmp_path)
    a, b, c = tiles()
    assert module.launch((8, 4), a, b, c, 512, **SIZES, num_warps=8, num_stages=3) == "compiled"
    assert module.launch((8, 4), a, b, c, 512, 128, 256, 64) == "compiled"
    assert module.launch((8, 4), c_desc=c, b_desc=b, a_desc=a, K=512, BLOCK_K=64) == "compiled"
    assert len(launches.made) == 3
    for grid, given, options in launches.made:
        assert (grid, options) == ((8, 4), {"num_warps": module.NUM_WARPS})
        assert [one[3] for one in given[:2]] == [[128, 64], [64, 256]]
        assert given[3] == 512


def test_a_grid_may_be_computed_from_arguments_and_constexprs(tmp_path: Path) -> None:
    module, launches = emitted(tmp_path)
    module.launch(lambda meta: (meta["K"] // meta["BLOCK_K"], meta["BLOCK_M"]), *tiles(), 512)
    assert launches.made[0][0] == (8, 128)


def test_options_that_the_compiler_knows_are_handed_on(tmp_path: Path) -> None:
    module, launches = emitted(tmp_path)
    module.launch((1,), *tiles(), 512, debug=True, num_ctas=1, maxnreg=None, num_stages=4)
    assert launches.made[0][2] == {"num_warps": module.NUM_WARPS, "debug": True}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"BLOCK_K": 32},
            "gemm: BLOCK_K is 32, and this file is for 64; emit another one: twillgpu emit ... --const BLOCK_K=32",
        ),
        ({"BLOCK_K": "64x"}, "BLOCK_K is '64x', and this file is for 64"),
        (
            {"K": 1 << 40},
            "gemm: K is i64, and this file is for i32; emit another one: twillgpu emit ... --arg 'K=i64'",
        ),
        ({"K": 1.5}, "K is fp32, and this file is for i32"),
        ({"K": None}, "K is None, and this file is for i32"),
        (
            {"a_desc": Tiles([64, 64])},
            "is for tensordesc<fp16[128,64]>; emit another one: twillgpu emit ... --arg 'a_desc=tensordesc<fp16[",
        ),
        (
            {"a_desc": Tiles([128, 64], Tensor("torch.bfloat16"))},
            "a_desc is tensordesc<bfloat16[128,64]>, and this file is for tensordesc<fp16[128,64]>",
        ),
        ({"a_desc": Tiles([128, 64], padding="nan")}, r"a_desc is tensordesc<fp16[128,64], padded with nan>"),
        ({"a_desc": Tensor()}, "a_desc is *fp16, and this file is for tensordesc<fp16[128,64]>"),
        (
            {"num_warps": 4},
            "num_warps is 4, and this file is for 8; emit another one: twillgpu emit ... --num-warps 4",
        ),
        ({"num_ctas": 2}, "num_ctas is 2, and this file is for 1; leave it out"),
        ({"maxnreg": 128}, "maxnreg is 128, and this file is for None; leave it out"),
        ({"launch_pdl": True}, "launch_pdl is True, and this file is for False; leave it out"),
    ],
)
def test_what_the_file_is_not_for_is_refused(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    module, launches = emitted(tmp_path)
    a, b, c = tiles()
    with pytest.raises(ValueError, match="gemm") as raised:
        module.launch((1,), **({"a_desc": a, "b_desc": b, "c_desc": c, "K": 512} | given))
    assert message in str(raised.value)
    assert launches.made == []


def test_parameters_of_all_kinds_are_accepted(tmp_path: Path) -> None:
    module, launches = emitted(tmp_path, FURTHER)
    module.launch((1,), *tiles(), 512, **further())
    also = {"DTYPE": "fp32", "eps": 1e-6, "MODE": "plain", "SHIFTED": 0, "offset": 1 << 40}
    module.launch((1,), *tiles(), 512, **(further() | also))
    assert len(launches.made) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x_ptr": Tensor(pointer=8)}, "x_ptr is *fp16:1, and this file is for *fp16:16"),
        ({"x_ptr": Tensor("torch.float32")}, "x_ptr is *float32:16, and this file is for *fp16:16"),
        (
            {"columns": 1000},
            "columns is i32:1, and this file is for i32:16; emit another one: twillgpu emit ... --arg",
        ),
        ({"bias_ptr": Tensor()}, "and this file is for None"),
        ({"one": 2}, "one is 2, and this file is for 1"),
        ({"DTYPE": "fp16"}, "DTYPE is 'fp16', and this file is for 'fp32'"),
        ({"flag": 1}, "flag is i32, and this file is for i1"),
        ({"eps": Tensor()}, "eps is *fp16, and this file is for fp32"),
        ({"MODE": "tanh"}, "MODE is 'tanh', and this file is for 'plain'"),
        ({"SHIFTED": True}, "SHIFTED is True, and this file is for False"),
        ({"offset": 1 << 63}, "offset is u64, and this file is for i64"),
        ({"x_ptr": object()}, "x_ptr is object, and this file is for *fp16:16"),
    ],
)
def test_further_kinds_are_refused(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    module, _ = emitted(tmp_path, FURTHER)
    with pytest.raises(ValueError, match="gemm") as raised:
        module.launch((1,), *tiles(), 512, **(further() | given))
    assert message in str(raised.value)


def test_types_and_functions_go_by_their_names(tmp_path: Path) -> None:
    import triton.language as tl  # noqa: PLC0415  # an optional package

    module, _ = emitted(tmp_path, FURTHER)
    module.launch((1,), *tiles(), 512, **(further() | {"DTYPE": tl.float32, "one": tl.constexpr(1)}))
    with pytest.raises(ValueError, match="this file is for 'fp32'"):
        module.launch((1,), *tiles(), 512, **(further() | {"DTYPE": tl.float16}))


def test_an_argument_after_a_constexpr_must_be_given_nevertheless(tmp_path: Path) -> None:
    module, _ = emitted(tmp_path, FURTHER)
    given = further()
    del given["flag"]
    with pytest.raises(ValueError, match="flag is None, and this file is for i1"):
        module.launch((1,), *tiles(), 512, **given)
    with pytest.raises(TypeError, match=r"missing 4 required positional arguments: 'K'"):
        module.launch((1,), *tiles())


def test_a_kernel_from_ttgir_has_types_and_no_constexprs(tmp_path: Path) -> None:
    program = code.program("gemm", "h100")
    kernel = replace(program.kernel, parameters=())
    module, launches = loaded(tmp_path, emit(replace(program, kernel=kernel)))
    module.launch((1,), *tiles(), 512)
    assert len(launches.made) == 1
    with pytest.raises(ValueError, match=r"a_desc is tensordesc<fp16\[64,64\]>, and this file is for"):
        module.launch((1,), Tiles([64, 64]), *tiles()[1:], 512)


def test_numbers_whose_type_triton_would_not_infer_are_annotated() -> None:
    def noted(dtype: str) -> str:
        return annotation(KernelValue(name="n", type=TileType(space="scalar", dtype=dtype)))

    assert [noted(dtype) for dtype in ("i32", "f32", "i1")] == ["", "", ""]
    assert [noted(dtype) for dtype in ("i64", "f64")] == [": gl.int64", ": gl.float64"]


def test_the_checks_are_few_calls_a_launch(tmp_path: Path) -> None:
    module, _ = emitted(tmp_path, FURTHER)
    given, blocks, calls = further(), tiles(), list[str]()
    before = sys.getprofile()
    sys.setprofile(lambda _frame, event, _given: calls.append(event) if event.endswith("call") else None)
    try:
        module.launch((1,), *blocks, 512, **given)
    finally:
        sys.setprofile(before)
    assert len(calls) < 200
