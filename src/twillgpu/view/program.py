"""A warp program as one JSON document."""

from __future__ import annotations

import json
from typing import Any

from twillgpu.lower.check import regions
from twillgpu.lower.record import GroupProgram, Instruction, WarpProgram
from twillgpu.view.records import plain

SCHEMA = "twillgpu-program/1"
KINDS: dict[str, str] = {
    "Execute": "execute",
    "Put": "put",
    "Get": "get",
    "Wait": "wait",
    "Arrive": "arrive",
    "ExpectBytes": "expect",
    "Commit": "commit",
    "Drain": "drain",
    "Fence": "fence",
}
"""The key ``do`` of an instruction: the word that the text of a program has for it."""


def program_json(program: WarpProgram) -> str:
    """Return a program as JSON: its fields, every instruction with what it does under ``do``."""
    document = {
        "schema": SCHEMA,
        "kernel": plain(program.kernel),
        "machine": program.machine,
        "ii_cycles": program.ii_cycles,
        "persistent": program.persistent,
        "groups": [_group(group) for group in program.groups],
        "rings": plain(program.rings),
        "barriers": plain(program.barriers),
        "remarks": plain(program.remarks),
    }
    return json.dumps(document, indent=2) + "\n"


def _group(group: GroupProgram) -> dict[str, Any]:
    return {
        "name": group.name,
        "warps": group.warps,
        "registers_per_thread": group.registers_per_thread,
        "stages": group.stages,
        **{name: [_instruction(one) for one in instructions] for name, instructions in regions(group)},
    }


def _instruction(one: Instruction) -> dict[str, Any]:
    fields = plain(one)
    # What a fence makes visible is its field "kind".
    return {"do": KINDS[type(one).__name__], **(fields if isinstance(fields, dict) else {})}
