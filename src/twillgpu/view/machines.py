"""Machines as text: the list, and one machine with every figure, its source and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twillgpu.machine.record import Figure, Machine, OpPrice
from twillgpu.view.text import WIDTH, number, section, table, wrap

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


def machine_text(machine: Machine, *, width: int = WIDTH) -> str:
    """Return one machine: every figure and op price with unit, confidence and the number of its source."""
    sources = _numbered(machine)
    arch = f" ({machine.arch})" if machine.arch else ""
    lines = [f"{machine.name}: {machine.title or 'no title'}{arch}", ""]
    lines += [f"  {letter}  {meaning}" for letter, meaning in CONFIDENCE.items()]
    for name in sorted({_section(figure) for figure in machine.figures}):
        rows = [_figure(figure, sources) for figure in machine.figures if _section(figure) == name]
        lines += section(name, table(("figure", "value", "unit", "", "source"), rows, right=(1,)))
    rows = [(op.opcode, op.rule, _passes(op), _flag(op.confidence), f"[{sources[op.source]}]") for op in machine.ops]
    lines += section("ops", table(("opcode", "rule", "passes", "", "source"), rows))
    lines += section("legality", [f"  {rule}" for rule in machine.legality])
    cited = [line for text, place in sources.items() for line in wrap(f"[{place}] {text}", hang="    ", width=width)]
    lines += section("sources", cited)
    total = len(machine.figures) + len(machine.ops)
    lines += ["", f"{len(guesses(machine))} of {total} figures are guesses"]
    return "\n".join(lines) + "\n"


def _numbered(machine: Machine) -> dict[str, int]:
    """Number the sources in the order in which the text cites them."""
    ordered = sorted(machine.figures, key=_section)
    cited = dict.fromkeys([*(figure.source for figure in ordered), *(op.source for op in machine.ops)])
    return {source: place for place, source in enumerate(cited, start=1)}


def _section(figure: Figure) -> str:
    return figure.path.partition(".")[0]


def _figure(figure: Figure, sources: Mapping[str, int]) -> tuple[str, str, str, str, str]:
    path = figure.path.partition(".")[2] or figure.path
    return path, number(figure.value), figure.unit, _flag(figure.confidence), f"[{sources[figure.source]}]"


def _passes(op: OpPrice) -> str:
    """Return the passes on the rule's own unit, and the further FP32 ones."""
    return number(op.passes) + (f" + {number(op.extra_passes)} fp32" if op.extra_passes else "")


def _flag(confidence: str) -> str:
    return "G guess" if confidence == "G" else confidence
