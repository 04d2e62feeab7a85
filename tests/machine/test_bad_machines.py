"""Every mistake in a machine file: where, what, what to do."""

from pathlib import Path

import pytest

from twillgpu.errors import InputError
from twillgpu.machine.load import from_mapping, load

HEAD = 'name = "mine"\n'
GOOD = '{ value = 1, unit = "instances", source = "s", confidence = "G" }'


def message(tmp_path: Path, text: str) -> str:
    """Return the error about a machine file, without the folder."""
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(str(file))
    return str(caught.value).replace(f"{tmp_path}/", "")


def inline(document: dict[str, object]) -> str:
    with pytest.raises(InputError) as caught:
        from_mapping(document, "g.json: machine")
    return str(caught.value)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError, match=r"machine 'h10': no such machine; did you mean 'h100'\? \(or give a .toml"):
        load("h10")


def test_the_base_of_the_others_is_no_machine() -> None:
    with pytest.raises(
        InputError, match="machine 'nvidia-sm': no such machine; use one of a100, b200, h100, h200, toy"
    ):
        load("nvidia-sm")


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.toml: no such machine file; check the path, or name one of a100"):
        load(str(tmp_path / "none.toml"))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InputError, match=r"folder.toml: is a directory; give the machine file itself"):
        load(str(tmp_path / "folder.toml"))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary.toml: cannot be read .*; give a readable text file"):
        load(str(tmp_path / "binary.toml"))


def test_malformed_toml_has_its_line(tmp_path: Path) -> None:
    said = message(tmp_path, HEAD + "[units]\ntensor = = 1\n")
    assert said.startswith("mine.toml:3: not valid TOML: ")
    assert said.endswith("; correct the syntax there")


def test_an_empty_file_has_no_name(tmp_path: Path) -> None:
    assert message(tmp_path, "") == 'mine.toml: name: the machine has no name; add name = "..."'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("unit = 1", "unit: unknown key; did you mean 'units'?"),
        ("title = 3", "title: expected a text, found 3; write it in quotes"),
        ("abstract = 1", "abstract: expected true or false, found 1; write true or false"),
        ("abstract = true", "abstract: mine is only a base for others; name one that extends it"),
        ("units = 3", "units: expected a table, found 3; write name = value entries in it"),
        (
            "[units]\ntensor = 1",
            (
                "units.tensor: expected a figure with a source, found 1; "
                "write { value = ..., unit = 'instances', source = ..., confidence = ... }"
            ),
        ),
        (
            '[units]\ntensor = { value = 1, unit = "instances", confidence = "V" }',
            "units.tensor: the figure has no source; say where the number comes from",
        ),
        (
            '[units]\ntensor = { value = 1, unit = "instances", source = " ", confidence = "V" }',
            "units.tensor: the figure has no source; say where the number comes from",
        ),
        (
            '[units]\ntensor = { value = 1, unit = "instances", source = 7, confidence = "V" }',
            "units.tensor.source: expected a text, found 7; write it in quotes",
        ),
        (
            '[units]\ntensor = { value = 1, unit = "cycles", source = "s", confidence = "V" }',
            "units.tensor.unit: unit is 'cycles'; write 'instances' or 'shares'",
        ),
        (
            '[units]\ntensor = { value = 1, source = "s", confidence = "V" }',
            "units.tensor.unit: unit is None; write 'instances' or 'shares'",
        ),
        (
            '[units]\ntensor = { value = 1, unit = "instances", source = "s", confidence = "X" }',
            (
                "units.tensor.confidence: confidence is 'X'; write V (primary source), D (derived), "
                "S (secondary source) or G (guess)"
            ),
        ),
        (
            '[units]\ntensor = { value = "1", unit = "instances", source = "s", confidence = "V" }',
            "units.tensor.value: expected a number, found '1'; give it in instances",
        ),
        (
            '[units]\ntensor = { value = inf, unit = "instances", source = "s", confidence = "V" }',
            "units.tensor.value: expected a number, found inf; give it in instances",
        ),
        (
            '[units]\ntensor = { value = 1.5, unit = "instances", source = "s", confidence = "V" }',
            "units.tensor.value: expected a whole number of instances, found 1.5; round it",
        ),
        (
            '[units]\ntensor = { value = 0, unit = "instances", source = "s", confidence = "V" }',
            "units.tensor.value: 0 instances is out of range; it must be at least 1",
        ),
        (
            '[latency]\nalu_cycles = { value = -4, unit = "cycles", source = "s", confidence = "V" }',
            "latency.alu_cycles.value: -4 cycles is out of range; it must be at least 0",
        ),
        (
            '[rates]\nmufu_lanes = { value = 0, unit = "lanes/cycle", source = "s", confidence = "V" }',
            "rates.mufu_lanes.value: 0 lanes/cycle is out of range; it must be more than 0",
        ),
        (
            '[units]\ntensor = { value = 1, unit = "instances", source = "s", confidence = "V", note = "n" }',
            "units.tensor.note: unknown key; use one of confidence, source, unit, value",
        ),
        (f"[units]\n2x = {GOOD}", "units.2x: a name must start with a letter; use letters, digits, _ and -"),
        (f"[latency]\nalu_cycle = {GOOD}", "latency.alu_cycle: unknown figure; did you mean 'latency.alu_cycles'?"),
        (
            f"[memories]\nsmem = {GOOD}",
            (
                "memories.smem: expected a table, found {'value': 1, 'unit': 'instances', "
                "'source': 's', 'confidence': 'G'}; give capacity_bytes and alignment_bytes in it"
            ),
        ),
        (
            '[memories.smem]\nalignment_bytes = { value = 8, unit = "bytes", source = "s", confidence = "V" }',
            "memories.smem.capacity_bytes: memory smem has no capacity; add capacity_bytes",
        ),
        (
            '[registers]\nper_thread = { value = 8, unit = "registers", source = "s", confidence = "V" }',
            "registers.per_sm: the register limits need it; add it, or remove the whole section",
        ),
        (
            '[groups]\nwarps = { value = 4, unit = "warps", source = "s", confidence = "V" }',
            "groups.warps: expected a list of widths, found 4; write it as [1, 4, 8]",
        ),
        (
            '[groups]\nwarps = { value = [4, 4], unit = "warps", source = "s", confidence = "V" }',
            "groups.warps: widths [4, 4] are not ascending; sort them, each once",
        ),
        (
            '[groups]\nwarps = { value = [4, 64], unit = "warps", source = "s", confidence = "V" }',
            "groups.warps: a group of 64 warps is wider than the block's 32; remove that width or raise max_warps",
        ),
        ("legality = 3", 'legality: expected a list, found 3; write it as ["rule", ...]'),
        ('legality = ["mma_readers"]', "legality[0]: no legality rule 'mma_readers'; did you mean 'mma_reader'?"),
        ('[ops]\n"a.b" = 3', 'ops."a.b": expected a table, found 3; write name = value entries in it'),
        (
            '[ops]\n"a.b" = { rule = "mufus", source = "s", confidence = "G" }',
            "ops.\"a.b\".rule: no pricing rule 'mufus'; did you mean 'mufu'?",
        ),
        (
            '[ops]\n"a.b" = { rule = "fp32", confidence = "G" }',
            'ops."a.b": the figure has no source; say where the number comes from',
        ),
        (
            '[ops]\n"a.b" = { rule = "fp32", pass = 2, source = "s", confidence = "G" }',
            "ops.\"a.b\".pass: unknown key; did you mean 'passes'?",
        ),
        (
            '[ops]\n"a.b" = { rule = "fp32", passes = -1, source = "s", confidence = "G" }',
            'ops."a.b".passes: -1 instructions per element is out of range; it must be at least 0',
        ),
        ('extends = "h10"', "machine 'mine': extends: no machine 'h10'; did you mean 'h100'?"),
    ],
)
def test_a_mistake_in_a_file(tmp_path: Path, text: str, said: str) -> None:
    expected = said if said.startswith("machine ") else f"mine.toml: {said}"
    assert message(tmp_path, f"{HEAD}{text}\n") == expected


def test_a_file_that_extends_itself(tmp_path: Path) -> None:
    said = message(tmp_path, HEAD + 'extends = "mine.toml"\n')
    assert said == "machine file mine.toml: extends itself: mine.toml -> mine.toml; remove one of the extends lines"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"unit": {}}, "unit: unknown key; did you mean 'units'?"),
        ({"units": {"tensor": "x"}}, "units.tensor: expected a number, found 'x'; give it in instances"),
        ({"units": {"tensor": True}}, "units.tensor: expected a number, found True; give it in instances"),
        ({"units": {"tensor": -1}}, "units.tensor: -1 instances is out of range; it must be at least 1"),
        ({"units": [1]}, "units: expected a table, found [1]; write name = value entries in it"),
        (
            {"registers": {"per_threads": 9}},
            "registers.per_threads: unknown figure; did you mean 'registers.per_thread'?",
        ),
        ({"groups": {"warps": []}}, "groups.warps: expected a list of widths, found []; write it as [1, 4, 8]"),
        (
            {"registers": {"per_thread": 16, "per_sm": 64, "quota_min": 24}},
            (
                "registers.quota_min: the smallest quota 24 is above the limit per thread 16; "
                "lower quota_min or raise per_thread"
            ),
        ),
    ],
)
def test_a_mistake_in_an_inline_machine(document: dict[str, object], said: str) -> None:
    assert inline(document) == f"g.json: machine.{said}"


def test_an_inline_machine_extends_an_unknown_one() -> None:
    assert inline({"extends": "h10"}) == "machine 'h10 (changed)': extends: no machine 'h10'; did you mean 'h100'?"
