"""Machines as text: the list, and one machine with every figure, its source and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterable

from twillgpu.machine.record import Figure, Machine
from twillgpu.view.text import number, section, table

CONFIDENCE = {
    "V": "read in a primary source or measured",
    "D": "derived from V figures",
    "S": "secondary source",
    "G": "guess",
}


def machines_text(machines: Iterable[Machine]) -> str:
    """Return one line for each machine: name, architecture, how many figures are guesses, title."""
    rows = [
        (machine.name, machine.arch or "-", str(len(machine.figures)), str(len(guesses(machine))), machine.title)
        for machine in machines
    ]
    return "\n".join(table(("machine", "arch", "figures", "guesses", "title"), rows, right=(2, 3))) + "\n"


def guesses(machine: Machine) -> tuple[str, ...]:
    """Return the paths of the figures and op prices that are guesses."""
    figures = tuple(figure.path for figure in machine.figures if figure.confidence == "G")
    return figures + tuple(f'ops."{op.opcode}"' for op in machine.ops if op.confidence == "G")


def machine_text(machine: Machine) -> str:
    """Return one machine: every figure with unit, confidence and source, then the prices of ops."""
    lines = [f"{machine.name}: {machine.title or 'no title'}" + (f" ({machine.arch})" if machine.arch else "")]
    lines += [f"  {letter}  {meaning}" for letter, meaning in CONFIDENCE.items()]
    for name in sorted({_section(figure) for figure in machine.figures}):
        figures = [figure for figure in machine.figures if _section(figure) == name]
        lines += section(name, table(("figure", "value", "unit", "", "source"), map(_figure, figures), right=(1,)))
    rows = [(op.opcode, op.rule, number(op.passes), _flag(op.confidence), op.source) for op in machine.ops]
    lines += section("ops", table(("opcode", "rule", "passes", "", "source"), rows, right=(2,)))
    if machine.legality:
        lines += section("legality", [f"  {rule}" for rule in machine.legality])
    doubtful = guesses(machine)
    lines += ["", f"{len(doubtful)} of {len(machine.figures) + len(machine.ops)} figures are guesses"]
    return "\n".join(lines) + "\n"


def _section(figure: Figure) -> str:
    return figure.path.partition(".")[0]


def _figure(figure: Figure) -> tuple[str, str, str, str, str]:
    path = figure.path.partition(".")[2] or figure.path
    return path, number(figure.value), figure.unit, _flag(figure.confidence), figure.source


def _flag(confidence: str) -> str:
    return "G guess" if confidence == "G" else confidence
