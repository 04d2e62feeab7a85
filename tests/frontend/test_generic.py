from __future__ import annotations

import pytest
from frontend_data import DATA, FILES

from twillgpu.errors import InputError
from twillgpu.frontend.generic import is_generic, parse_generic

SMALL = """
#map = #ttg.shared_memory
!t = tensor<4xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", note = "a } , string"}> ({
  ^bb0(%x: !t loc("x"(#loc)), %y: i32):
    // a comment
    %0:2 = "a.two"(%x, %y)[^bb1, ^bb2] {unit_attr, order = array<i32: 1, 0>} : (!t, i32) -> (!t, i32) loc(#loc)
    "a.region"() ({
      %1 = "a.inner"(%0#1) : (i32) -> i32
    }, {
      %1 = "a.inner"(%0#0) : (!t) -> !ttg.memdesc<4xf32, #map>
    }) : () -> ()
    "a.use"(%0#1) <{f = (i32) -> i32}> : (i32) -> ()
  }) : () -> ()
}) {"ttg.num-warps" = 8 : i32} : () -> ()
#loc = loc("k.py":1:2)
"""


def test_operations_operands_results_attributes_regions_and_locations() -> None:
    module = parse_generic(SMALL, where="small.mlir")
    function, two, region, *_, use = module.op.nested()
    assert module.op.attribute("ttg.num-warps") == "8 : i32"
    assert function.attribute("note") == '"a } , string"'
    assert [(value.name, value.type, value.location) for value in function.regions[0][0].arguments] == [
        ("x", "!t", '"x"(#loc)'),
        ("y", "i32", ""),
    ]
    assert two.operands == ("x", "y")
    assert two.successors == ("bb1", "bb2")
    assert [(result.name, result.type) for result in two.results] == [("0#0", "!t"), ("0#1", "i32")]
    assert two.attributes == (("unit_attr", "unit"), ("order", "array<i32: 1, 0>"))
    assert two.location == "#loc"
    assert two.line == 8
    assert len(region.regions) == 2
    assert use.attribute("f") == "(i32) -> i32"


def test_a_name_used_by_two_sibling_regions_stands_for_two_values() -> None:
    inner = [op for op in parse_generic(SMALL, where="small.mlir").op.nested() if op.opcode == "a.inner"]
    assert [op.results[0].name for op in inner] == ["1", "1'2"]


def test_aliases_are_expanded_recursively_and_not_inside_strings() -> None:
    module = parse_generic(SMALL.replace("tensor<4xf32>", "tensor<4xf32, #map>", 1), where="small.mlir")
    assert module.expand('!t "#map"') == 'tensor<4xf32, #ttg.shared_memory> "#map"'
    assert module.expand("#mapped #ttg.slice<{parent = #map}>") == "#mapped #ttg.slice<{parent = #ttg.shared_memory}>"


@pytest.mark.parametrize("name", FILES)
def test_every_captured_module_parses_to_the_operations_that_its_text_shows(name: str) -> None:
    text = (DATA / name).read_text()
    module = parse_generic(text, where=name)
    ops = (module.op, *module.op.nested())
    shown = sum(line.lstrip().startswith(('"', "%")) for line in text.splitlines())
    assert len(ops) == shown
    lines = text.splitlines()
    assert all(f'"{op.opcode}"' in lines[op.line - 1] for op in ops)
    defined = {result.name for op in ops for result in op.results}
    defined |= {value.name for op in ops for region in op.regions for block in region for value in block.arguments}
    assert all(operand in defined for op in ops for operand in op.operands)


def test_generic_form_is_told_from_pretty_form() -> None:
    assert is_generic(SMALL)
    assert not is_generic('#loc = loc("k.py":1:2)\nmodule attributes {"ttg.num-warps" = 8 : i32} {\n}\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bad.mlir:1: expected an operation's name in quotes, found 'the end'"),
        ('"m"()\n  ({ "x"(%a : i32)', "bad.mlir:2: expected ',', found ': i32)'"),
        ('"m"() : () -> ()\nrest', "bad.mlir:2: expected the end of the module, found 'rest'"),
        ('%0:2 = "m"() : () -> i32', "bad.mlir:1: 2 results are named and 1 types given"),
        ('"m"() {a = dense<1, 2} : () -> ()', "bad.mlir:1: a bracket is not closed: expected '>'"),
        ('"m"() : () -> i32 loc("unclosed', "bad.mlir:1: expected the end of the string"),
    ],
)
def test_bad_text_is_reported_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_generic(text, where="bad.mlir")
    assert message in str(caught.value)
    assert "give a module in MLIR's generic form" in str(caught.value)
