"""A machine as a JSON document that ``from_mapping`` reads back to an equal machine."""

from __future__ import annotations

from twillgpu.machine.record import Figure, Machine


def to_mapping(machine: Machine) -> dict[str, object]:
    """Return the machine in the inline form of graph JSON, with every figure's unit, source and confidence."""
    document: dict[str, object] = {"name": machine.name}
    document |= {key: text for key, text in (("title", machine.title), ("arch", machine.arch)) if text}
    if machine.legality:
        document["legality"] = list(machine.legality)
    if machine.ops:
        document["ops"] = {
            op.opcode: {
                "rule": op.rule,
                "passes": number(op.passes),
                "extra_passes": number(op.extra_passes),
                "source": op.source,
                "confidence": op.confidence,
            }
            for op in machine.ops
        }
    for figure in machine.figures:
        if "[" not in figure.path:
            _place(document, figure)
    widths = [figure for figure in machine.figures if figure.path.startswith("groups.warps[")]
    if widths:
        values = sorted(number(figure.value) for figure in widths)
        _place(document, widths[0], path="groups.warps", value=values)
    return document


def number(value: float) -> int | float:
    """Return a whole number as an integer, so that texts do not depend on how it was written."""
    return int(value) if value == int(value) else value


def _place(document: dict[str, object], figure: Figure, path: str = "", value: object = None) -> None:
    *sections, last = (path or figure.path).split(".")
    table = document
    for section in sections:
        inner = table.setdefault(section, {})
        assert isinstance(inner, dict)  # noqa: S101  # sections and figures have different depths by the schema
        table = inner
    table[last] = {
        "value": number(figure.value) if value is None else value,
        "unit": figure.unit,
        "source": figure.source,
        "confidence": figure.confidence,
    }
