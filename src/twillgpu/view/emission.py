"""What became of an emission: the rounds, and the machine code of each group beside its schedule."""

from __future__ import annotations

from collections.abc import Sequence

from twillgpu.emit.record import Budget, Compiled, Emission, Finding, GroupCode, Round, Run
from twillgpu.view.text import number, plural, section, table, wrap

_COUNTED = (
    ("wgmma", ("HGMMA", "QGMMA", "IGMMA")),
    ("tcgen05", ("UTCHMMA", "UTCQMMA")),
    ("MUFU", ("MUFU",)),
    ("TMA", ("UTMALDG", "UTMASTG", "UTMAREDG")),
    ("TMEM", ("LDTM", "STTM")),
)
"""Columns of the table of groups, and the opcodes that each counts in the main loop."""


def emission_text(emission: Emission, *, width: int = 80) -> str:
    """Return the report of a checked emission."""
    rounds = emission.rounds
    best = next((one for one in rounds if one.number == emission.best), None)
    if best is None or best.compiled is None:
        return "not checked\n"
    lines = [*_headline(emission, best, width), *_block(best.compiled)]
    lines += section("Groups (main loop)", _groups(best.compiled, width))
    lines += section("Order in the main loop", _orders(best.compiled, width))
    lines += section("Findings", [line for one in best.findings for line in _finding(one, width)])
    if len(rounds) > 1:
        lines += section("Rounds", [line for one in rounds for line in _round(one, width)])
    return "\n".join(lines).rstrip() + "\n"


def _headline(emission: Emission, best: Round, width: int) -> list[str]:
    serious = sum(found.serious for found in best.findings)
    verdict = "clean" if emission.clean else f"not clean ({plural(serious, 'finding')})"
    first = emission.rounds[0].ii_cycles
    before = f", {number(first)} before feedback" if first != best.ii_cycles else ""
    said = f"{verdict}: {plural(best.ii_cycles, 'cycle')} per iteration{before}, round {best.number}"
    more = [] if emission.clean else wrap(f"no further round: {emission.conclusion}", indent="", width=width)
    return [*wrap(said, indent="", width=width), *more]


def _block(compiled: Compiled) -> list[str]:
    columns = f", {compiled.tmem_columns} columns of TMEM" if compiled.tmem_columns else ""
    made = f"{compiled.target}, {compiled.made_with}, {number(round(compiled.seconds, 1))} s"
    return [f"{made}: {compiled.warps} warps, {number(compiled.smem_bytes)} B of SMEM{columns}"]


def _groups(compiled: Compiled, width: int) -> list[str]:
    header = ("group", "setmaxnreg", "live", "spills", "waits", *(name for name, _ in _COUNTED))
    rows = [_group(code) for code in compiled.groups]
    used = [at for at in range(len(header)) if at < 5 or any(row[at] != "0" for row in rows)]
    shown = [[row[at] for at in used] for row in rows]
    return table([header[at] for at in used], shown, right=range(1, len(used)), width=width)


def _group(code: GroupCode) -> list[str]:
    loop = code.loop
    spills = str(loop.spills) if loop is not None else "0"
    outside = code.spills - int(spills)
    counts = dict(loop.counts) if loop is not None else {}
    counted = [str(sum(counts.get(opcode, 0) for opcode in opcodes)) for _, opcodes in _COUNTED]
    return [
        code.name,
        str(code.maxreg),
        str(code.live_registers),
        f"{spills} + {outside}" if outside else spills,
        str(loop.waits) if loop is not None else "0",
        *counted,
    ]


def _orders(compiled: Compiled, width: int) -> list[str]:
    lines = []
    for code in compiled.groups:
        if code.loop is not None:
            lines += wrap(f"{code.name}: {order_text(code.loop.order)}", hang="  ", width=width)
    return lines


def order_text(order: Sequence[Run]) -> str:
    """Return runs of instructions in words: ``8 tensor, wait, 64 exp``."""
    return ", ".join(run.kind if run.count == 1 else f"{run.count} {run.kind}" for run in order)


def _finding(one: Finding, width: int) -> list[str]:
    mark = "" if one.serious else "note: "
    group = f" ({one.group})" if one.group else ""
    return wrap(f"{mark}{one.rule}{group}: {one.message}", hang="  ", width=width)


def _round(one: Round, width: int) -> list[str]:
    serious = [found for found in one.findings if found.serious]
    found = "; ".join(f"{each.rule} {each.group}".strip() for each in serious) or "clean"
    then = f"; then {one.action}" if one.action else ""
    text = f"{one.number}: {plural(one.ii_cycles, 'cycle')}{_free(one.budget)}, {found}{then}"
    return wrap(text, hang="   ", width=width)


def _free(budget: Budget) -> str:
    left = [plural(budget.registers_per_thread, "register")] if budget.registers_per_thread else []
    left += [f"{number(budget.smem_bytes)} B"] if budget.smem_bytes else []
    return f" ({' and '.join(left)} free)" if left else ""
