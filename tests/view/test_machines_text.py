"""Machines as text."""

from handmade import MACHINE

from twillgpu.machine.record import Machine, OpPrice
from twillgpu.view.machines import guesses, machine_text, machines_text

PRICE = OpPrice(opcode="math.erf", rule="alu", passes=9, extra_passes=2, source="counted by hand", confidence="G")
PRICED = Machine(name=MACHINE.name, title=MACHINE.title, figures=MACHINE.figures, ops=(PRICE,))


def test_the_list_counts_guesses() -> None:
    header, line = machines_text([MACHINE]).splitlines()
    assert header.split() == ["machine", "arch", "figures", "guesses", "title"]
    assert line.split() == ["hand", "-", "4", "1", "A", "machine", "made", "by", "hand"]


def test_a_machine_shows_every_figure_with_its_source_and_flags_guesses() -> None:
    lines = [line.split() for line in machine_text(PRICED).splitlines()]
    assert ["sms", "100", "SMs", "V", "[1]"] in lines
    assert ["clock_mhz", "1,000", "MHz", "G", "guess", "[1]"] in lines
    assert ["math.erf", "alu", "9", "+", "2", "fp32", "G", "guess", "[2]"] in lines
    assert ["[2]", "counted", "by", "hand"] in lines
    assert ["2", "of", "5", "figures", "are", "guesses"] in lines


def test_guesses_are_named_by_their_path() -> None:
    assert guesses(PRICED) == ("chip.clock_mhz", 'ops."math.erf"')
