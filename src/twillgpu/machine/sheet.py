"""One machine document, checked figure by figure and not yet merged over what it extends."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from twillgpu.errors import InputError, nearest
from twillgpu.machine.record import Confidence, Figure, OpPrice
from twillgpu.machine.schema import (
    CONFIDENCES,
    LEGALITY_RULES,
    PRICING_RULES,
    SECTIONS,
    FigureRule,
    rule_for,
)

_TEXTS = ("name", "title", "arch", "extends")
_KEYS = (*_TEXTS, "abstract", "legality", "ops", *SECTIONS)
_FIGURE_KEYS = ("value", "unit", "source", "confidence")
_PRICE_KEYS = ("rule", "passes", "extra_passes", "source", "confidence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a document is, for messages; ``bare`` documents (graph JSON) may give numbers without a source."""

    prefix: str
    bare: bool = False

    def at(self, path: str) -> str:
        """Return the place of the dotted ``path`` in the document."""
        return f"{self.prefix}{path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What one document says; ``None`` and absent entries are left to the document that it extends."""

    name: str | None
    title: str | None
    arch: str | None
    extends: str | None
    abstract: bool
    legality: tuple[str, ...] | None
    figures: dict[str, Figure]
    ops: dict[str, OpPrice]


def read_sheet(document: Mapping[str, object], place: Place) -> Sheet:
    """Check a document and return what it says.

    Raises:
        InputError: unknown key, wrong type, unit or confidence, a missing source, a number out of range; each
            with its dotted path.
    """
    for key in document:
        if key not in _KEYS:
            raise InputError(place.at(key), "unknown key", nearest(key, _KEYS))
    texts = {key: _text(document, key, place) for key in _TEXTS}
    return Sheet(
        **texts,
        abstract=_flag(document, "abstract", place),
        legality=_legality(document, place),
        figures=_figures(document, place),
        ops=_ops(document, place),
    )


def _text(document: Mapping[str, object], key: str, place: Place) -> str | None:
    value = document.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise InputError(place.at(key), f"expected a text, found {value!r}", "write it in quotes")
    return value


def _flag(document: Mapping[str, object], key: str, place: Place) -> bool:
    value = document.get(key, False)
    if not isinstance(value, bool):
        raise InputError(place.at(key), f"expected true or false, found {value!r}", "write true or false")
    return value


def _table(value: object, path: str, place: Place) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InputError(place.at(path), f"expected a table, found {value!r}", "write name = value entries in it")
    return value


def _legality(document: Mapping[str, object], place: Place) -> tuple[str, ...] | None:
    rules = document.get("legality")
    if rules is None:
        return None
    if not isinstance(rules, list | tuple):
        raise InputError(place.at("legality"), f"expected a list, found {rules!r}", 'write it as ["rule", ...]')
    for index, rule in enumerate(rules):
        if rule not in LEGALITY_RULES:
            hint = nearest(str(rule), LEGALITY_RULES)
            raise InputError(place.at(f"legality[{index}]"), f"no legality rule {rule!r}", hint)
    return tuple(rules)


def _figures(document: Mapping[str, object], place: Place) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for section in SECTIONS:
        if section in document:
            table = _table(document[section], section, place)
            found |= {figure.path: figure for figure in _walk(table, section, place)}
    return found


def _walk(table: Mapping[str, object], path: str, place: Place) -> Iterator[Figure]:
    for key, entry in table.items():
        inner = f"{path}.{key}"
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", key):
            raise InputError(place.at(inner), "a name must start with a letter", "use letters, digits, _ and -")
        if inner == "groups.warps":
            yield from _widths(entry, inner, place)
        elif path == "memories":
            yield from _memory(entry, inner, place)
        else:
            yield _figure(entry, inner, place)


def _memory(entry: object, path: str, place: Place) -> Iterator[Figure]:
    if isinstance(entry, Mapping) and "value" not in entry:
        yield from _walk(entry, path, place)
    elif place.bare:
        yield _figure(entry, f"{path}.capacity_bytes", place)
    else:
        raise InputError(
            place.at(path), f"expected a table, found {entry!r}", "give capacity_bytes and alignment_bytes in it"
        )


def _widths(entry: object, path: str, place: Place) -> Iterator[Figure]:
    """Yield one figure per width of ``groups.warps``, which is a list of numbers under one source."""
    values = entry.get("value") if isinstance(entry, Mapping) else entry
    if not isinstance(values, list | tuple) or not values:
        raise InputError(place.at(path), f"expected a list of widths, found {values!r}", "write it as [1, 4, 8]")
    for index, value in enumerate(values):
        one = {**entry, "value": value} if isinstance(entry, Mapping) else value
        yield _figure(one, f"{path}[{index}]", place)
    if any(not low < high for low, high in itertools.pairwise(values)):
        raise InputError(place.at(path), f"widths {list(values)} are not ascending", "sort them, each once")


def _figure(entry: object, path: str, place: Place) -> Figure:
    rule = rule_for(path, place.at(path))
    if not isinstance(entry, Mapping):
        return _bare(entry, path, rule, place)
    for key in entry:
        if key not in _FIGURE_KEYS:
            raise InputError(place.at(f"{path}.{key}"), "unknown key", nearest(key, _FIGURE_KEYS))
    unit = entry.get("unit", rule.units[0] if place.bare else None)
    if unit not in rule.units:
        allowed = " or ".join(repr(name) for name in rule.units)
        raise InputError(place.at(f"{path}.unit"), f"unit is {unit!r}", f"write {allowed}")
    return Figure(
        path=path,
        value=_number(entry.get("value"), place.at(f"{path}.value"), rule),
        unit=unit,
        source=_source(entry, path, place),
        confidence=_confidence(entry, path, place),
    )


def _bare(entry: object, path: str, rule: FigureRule, place: Place) -> Figure:
    if not place.bare:
        raise InputError(
            place.at(path),
            f"expected a figure with a source, found {entry!r}",
            f"write {{ value = ..., unit = {rule.units[0]!r}, source = ..., confidence = ... }}",
        )
    value = _number(entry, place.at(path), rule)
    return Figure(path=path, value=value, unit=rule.units[0], source="the file itself", confidence="G")


def _number(value: object, where: str, rule: FigureRule) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(where, f"expected a number, found {value!r}", f"give it in {rule.units[0]}")
    if rule.integer and value != int(value):
        raise InputError(where, f"expected a whole number of {rule.units[0]}, found {value}", "round it")
    if value < rule.minimum:
        least = "more than 0" if 0 < rule.minimum < 1 else f"at least {rule.minimum:g}"
        raise InputError(where, f"{value} {rule.units[0]} is out of range", f"it must be {least}")
    return value


def _source(entry: Mapping[str, object], path: str, place: Place) -> str:
    source = entry.get("source", "the file itself" if place.bare else "")
    if not isinstance(source, str):
        raise InputError(place.at(f"{path}.source"), f"expected a text, found {source!r}", "write it in quotes")
    if not source.strip():
        raise InputError(place.at(path), "the figure has no source", "say where the number comes from")
    return source


def _confidence(entry: Mapping[str, object], path: str, place: Place) -> Confidence:
    given = entry.get("confidence", "G" if place.bare else None)
    if given not in CONFIDENCES:
        raise InputError(
            place.at(f"{path}.confidence"),
            f"confidence is {given!r}",
            "write V (primary source), D (derived), S (secondary source) or G (guess)",
        )
    return given  # type: ignore[return-value]  # the test above narrows an object to the literal


def _ops(document: Mapping[str, object], place: Place) -> dict[str, OpPrice]:
    if "ops" not in document:
        return {}
    table = _table(document["ops"], "ops", place)
    return {opcode: _price(opcode, table[opcode], place) for opcode in table}


def _price(opcode: str, entry: object, place: Place) -> OpPrice:
    path = f'ops."{opcode}"'
    table = _table(entry, path, place)
    for key in table:
        if key not in _PRICE_KEYS:
            raise InputError(place.at(f"{path}.{key}"), "unknown key", nearest(key, _PRICE_KEYS))
    rule = table.get("rule")
    if rule not in PRICING_RULES:
        hint = nearest(str(rule), PRICING_RULES)
        raise InputError(place.at(f"{path}.rule"), f"no pricing rule {rule!r}", hint)
    passes = FigureRule(path=path, units=("instructions per element",))
    return OpPrice(
        opcode=opcode,
        rule=str(rule),
        passes=_number(table.get("passes", 1), place.at(f"{path}.passes"), passes),
        source=_source(table, path, place),
        confidence=_confidence(table, path, place),
        extra_passes=_number(table.get("extra_passes", 0), place.at(f"{path}.extra_passes"), passes),
    )
