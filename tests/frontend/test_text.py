from __future__ import annotations

import dataclasses

import pytest
from frontend_data import FILES, captured
from hypothesis import given
from hypothesis import strategies as st

from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Carried, Kernel, KernelOp, KernelValue, Loop, SubTile, TileType
from twillgpu.frontend.text import parse_kernel, print_kernel

SCALAR = TileType(space="scalar", dtype="i32")
LOOP = Loop(
    name="loop",
    induction=KernelValue(name="i", type=SCALAR),
    lower="n",
    upper="n",
    step="n",
    trip_count=3,
    carried=(),
    body=(),
    source="folder with space/k.py:3",
)
KERNEL = Kernel(
    name="after",
    target="sm_90a",
    num_warps=4,
    arguments=(KernelValue(name="n", type=SCALAR),),
    before=(),
    loop=LOOP,
    after=(),
)


@pytest.mark.parametrize("name", FILES)
def test_every_captured_kernel_prints_and_parses_back(name: str) -> None:
    kernel = captured(name, source_file="examples/a.py", remarks=('a "remark"', "b"))
    assert parse_kernel(print_kernel(kernel)) == kernel


def test_names_that_are_keywords_and_names_with_other_characters_survive() -> None:
    names = ("loop", "after", "carried", "before", "body", "part", "trips", "a b", 'quo"te', "", "//x", "é", "->")
    ops = tuple(
        KernelOp(
            name=name,
            opcode="x.y",
            results=(KernelValue(name=name, type=TileType(space="registers", shape=(2,), dtype="f32")),),
        )
        for name in names
    )
    kernel = dataclasses.replace(KERNEL, before=ops)
    assert parse_kernel(print_kernel(kernel)) == kernel


WORDS = (
    *("kernel", "target", "warps", "file", "remark", "layout", "argument", "before", "loop", "in", "range", "trips"),
    *("carried", "yields", "result", "after", "body", "part", "of", "along", "from", "mutable", "registers", "none"),
)
"""Every word of the text form."""


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_the_text_form_may_be_any_name(word: str) -> None:
    """In a kernel where everything that may have this name has it, behind everything that it may follow."""
    tile = TileType(space="registers", shape=(2,), dtype=word, layout=word, mutable=True)
    plain = KernelOp(name="plain", opcode=word, operands=(word,))
    full = dataclasses.replace(
        plain,
        name="full",
        attributes=((word, word),),
        body=(word, word),
        subtile=SubTile(dimension=0, index=0, count=2, origin=word),
        source=word,
    )
    typed = dataclasses.replace(plain, name="typed", results=(KernelValue(name="typed", type=SCALAR),))
    tiled = dataclasses.replace(plain, name="tiled", results=(KernelValue(name="of_tiled", type=tile),))
    argument = KernelValue(name="carried_argument", type=SCALAR)
    carried = Carried(argument=argument, initial=word, yielded=word, result="carried_result")
    loop = dataclasses.replace(LOOP, name=word, lower=word, upper=word, step=word, carried=(carried,))
    kernel = dataclasses.replace(
        KERNEL,
        name=word,
        target=word,
        source_file=word,
        remarks=(word,),
        arguments=(KernelValue(name=word, type=SCALAR),),
    )
    for before in ((), (plain,), (full,), (typed,), (tiled,)):
        ops = (*before, dataclasses.replace(full, name=word))
        for whole in (
            dataclasses.replace(kernel, loop=loop, before=ops),
            dataclasses.replace(kernel, loop=dataclasses.replace(loop, body=ops)),
            dataclasses.replace(kernel, loop=loop, after=ops),
        ):
            assert parse_kernel(print_kernel(whole)) == whole


text = st.text(max_size=8)
types = st.builds(
    TileType,
    space=st.sampled_from(["registers", "smem", "tmem", "global", "scalar", "token", "descriptor", "none"]),
    shape=st.lists(st.integers(0, 512), max_size=3).map(tuple),
    dtype=st.sampled_from(["", "f32", "ptr<f16>", "i1", "!weird<1x2>", "128x", '"']),
    layout=st.one_of(st.just(""), st.just("#ttg.blocked<{a}>"), st.just("#ttg.blocked<{b}>"), text),
    mutable=st.booleans(),
)
subtiles = st.builds(
    SubTile, dimension=st.integers(0, 3), index=st.integers(0, 9), count=st.integers(0, 9), origin=text
)
ops = st.builds(
    KernelOp,
    name=text,
    opcode=text.map(lambda name: f"x.{name}"),
    operands=st.lists(st.sampled_from(["n"]), max_size=2).map(tuple),
    results=st.lists(st.builds(KernelValue, name=text, type=types), max_size=2).map(tuple),
    attributes=st.lists(st.tuples(text, text), max_size=2).map(tuple),
    source=st.one_of(st.just(""), st.just("k.py:7"), text),
    body=st.lists(text, max_size=2).map(tuple),
    subtile=st.one_of(st.none(), subtiles),
)


@given(op=ops, remark=text, trips=st.one_of(st.none(), st.integers(0, 9)))
def test_any_field_of_an_operation_survives(op: KernelOp, remark: str, trips: int | None) -> None:
    names = [result.name for result in op.results]
    if len({*names, "n", "i"}) < len(names) + 2:
        return
    loop = dataclasses.replace(LOOP, body=(op,), trip_count=trips)
    kernel = dataclasses.replace(KERNEL, loop=loop, remarks=(remark,))
    assert parse_kernel(print_kernel(kernel)) == kernel


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("target sm_90a", "goal sm_90a", "k.kernel:2: expected 'target', found 'goal sm_90a'"),
        ("warps 4", "warps four", "k.kernel:3: expected a number, found 'four'"),
        ("scalar<i32>", "scalars<i32>", "expected one of registers, smem, tmem"),
        ("scalar<i32>", "smem<2xf16, #shared>", "the layout #shared is not defined"),
        ("range(n, n, n)", "range(n, m, n)", "loop reads 'm', which is not defined before it"),
        ("argument n", "argument m", "reads 'n', which is not defined"),
        ("\nafter\n", "\nafter\n  x = y.z(n\n", "k.kernel:10: expected ',', found 'the end'"),
        ("\nafter\n", "\nafter\n}", "k.kernel:9: expected the end of the kernel, found '}'"),
        ("\nafter\n", '\nafter\n  "\\q" = y.z()\n', "is not a JSON string"),
    ],
)
def test_bad_text_is_reported_with_its_line(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_kernel(print_kernel(KERNEL).replace(old, new), where="k.kernel")
    assert message in str(caught.value)
