"""Generic JSON and text forms of records."""

import json

import pytest
from handmade import PROBLEM, RESULT

from twillgpu.view.records import bounds_text, plain, record_json, record_text


def test_the_json_of_a_problem_is_one_document_with_every_field() -> None:
    document = json.loads(record_json(PROBLEM, schema="twillgpu-problem/1"))
    assert list(document)[:3] == ["schema", "name", "machine"]
    assert document["ops"][1]["uses"] == [{"unit": "tensor", "cycles": 50, "offset": 0, "amount": 1}]
    assert document["fixed_bytes"] == [["smem", 512]]
    assert document["trip_count"] is None


def test_what_is_no_record_has_no_json_form() -> None:
    with pytest.raises(TypeError, match="set has no JSON form"):
        plain({1})


def test_flat_records_take_a_line_each() -> None:
    lines = record_text(PROBLEM).splitlines()
    assert "flop_per_iteration: 200000" in lines
    assert "  - name=tensor, capacity=1" in lines
    assert "    cross_group: yes" not in lines
    assert "rules: concurrency=issue, variable_latency=designated, cross_group=yes" in lines


def test_bounds_are_a_table_with_the_binding_one_first() -> None:
    assert bounds_text(RESULT.bounds).splitlines() == [
        "  cycles  bound   reason",
        "     100  tensor  two matrix products of 50 cycles each",
        "      80  mufu    one exponential of 80 cycles",
    ]
