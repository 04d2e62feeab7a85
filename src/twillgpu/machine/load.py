"""Machines by name, from a TOML file, or from the inline form of graph JSON."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

from twillgpu.errors import InputError, nearest
from twillgpu.machine.build import build
from twillgpu.machine.record import Machine
from twillgpu.machine.sheet import Place, Sheet, read_sheet
from twillgpu.machine.text import to_mapping

_DATA = resources.files("twillgpu.machine") / "data"


def names() -> tuple[str, ...]:
    """Return the names of the machines that come with the package, sorted."""
    return tuple(name for name in _shipped() if not _shipped_sheet(name).abstract)


def load(name_or_path: str) -> Machine:
    """Load a machine by name (``h100``) or from a machine file (a path that ends in ``.toml``).

    Raises:
        InputError: unknown name (with the nearest), missing or malformed file, or any mistake inside it.
    """
    if name_or_path.endswith(".toml"):
        path = Path(name_or_path)
        return _finish(_merged(_file_sheet(path), path.parent, (str(path.resolve()),)), f"{path}: ")
    if name_or_path not in names():
        raise InputError(
            f"machine {name_or_path!r}", "no such machine", f"{nearest(name_or_path, names())} (or give a .toml file)"
        )
    sheet = _merged(_shipped_sheet(name_or_path), None, (name_or_path,))
    return _finish(sheet, f"{name_or_path}.toml: ")


def from_mapping(mapping: Mapping[str, object], where: str) -> Machine:
    """Return the machine that a document describes in the inline form of graph JSON.

    Bare numbers are accepted; a section that is missing means "not limited"; ``extends`` merges over a known
    machine. ``where`` is the place of the document, for messages.

    Raises:
        InputError: any mistake, with its dotted path.
    """
    sheet = read_sheet(mapping, Place(prefix=f"{where}.", bare=True))
    if sheet.name is None:
        sheet = replace(sheet, name=f"{sheet.extends} (changed)" if sheet.extends else "inline")
    return _finish(_merged(sheet, None, ()), f"{where}.")


def _finish(sheet: Sheet, prefix: str) -> Machine:
    machine = build(sheet, Place(prefix=prefix))
    canonical = json.dumps(to_mapping(machine), sort_keys=True, separators=(",", ":"))
    return replace(machine, sha256=hashlib.sha256(canonical.encode()).hexdigest())


@cache
def _shipped() -> tuple[str, ...]:
    files = sorted(entry.name for entry in _DATA.iterdir())
    return tuple(name.removesuffix(".toml") for name in files if name.endswith(".toml"))


@cache
def _shipped_sheet(name: str) -> Sheet:
    text = (_DATA / f"{name}.toml").read_text(encoding="utf-8")
    return _parse(text, f"{name}.toml")


def _file_sheet(path: Path) -> Sheet:
    if path.is_dir():
        raise InputError(str(path), "is a directory", "give the machine file itself")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        hint = f"check the path, or name one of {', '.join(names())}"
        raise InputError(str(path), "no such machine file", hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read ({error})", "give a readable text file") from None
    return _parse(text, str(path))


def _parse(text: str, where: str) -> Sheet:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        place = f"{where}:{line.group(1)}" if line else where
        raise InputError(place, f"not valid TOML: {error}", "correct the syntax there") from None
    return read_sheet(document, Place(prefix=f"{where}: "))


def _merged(sheet: Sheet, folder: Path | None, chain: tuple[str, ...]) -> Sheet:
    """Return ``sheet`` over everything that it extends; a path to extend is relative to ``folder``."""
    if sheet.extends is None:
        return sheet
    if sheet.extends.endswith(".toml") and folder is not None:
        path = folder / sheet.extends
        key, base, inner = str(path.resolve()), _file_sheet, path.parent
        _refuse_circle(key, chain)
        return _over(sheet, _merged(base(path), inner, (*chain, key)))
    if sheet.extends not in _shipped():
        hint = nearest(sheet.extends, names())
        raise InputError(f"machine {sheet.name!r}: extends", f"no machine {sheet.extends!r}", hint)
    _refuse_circle(sheet.extends, chain)
    return _over(sheet, _merged(_shipped_sheet(sheet.extends), None, (*chain, sheet.extends)))


def _refuse_circle(key: str, chain: tuple[str, ...]) -> None:
    if key in chain:
        circle = " -> ".join((*chain, key))
        raise InputError(f"machine file {chain[0]}", f"extends itself: {circle}", "remove one of the extends lines")


def _over(sheet: Sheet, base: Sheet) -> Sheet:
    lists = {path.split("[")[0] for path in sheet.figures if "[" in path}
    kept = {path: figure for path, figure in base.figures.items() if path.split("[")[0] not in lists}
    return Sheet(
        name=sheet.name,
        title=sheet.title or base.title,
        arch=sheet.arch or base.arch,
        extends=None,
        abstract=sheet.abstract,
        legality=base.legality if sheet.legality is None else sheet.legality,
        figures=kept | sheet.figures,
        ops=base.ops | sheet.ops,
    )
