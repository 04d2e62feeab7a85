"""Families of rules, changes and answers of an explanation, in the words of those who write kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twillgpu.costs.record import Problem
from twillgpu.explain.record import Change, CriticalUnit, Family, Relaxed, Way
from twillgpu.explain.variant import alike
from twillgpu.view.text import number, plural

KB = 1024
MOST = 5
"""A set of more families than these says little: where time ended, a smallest set was not reached."""


def family_words(family: Family, problem: Problem, stages: int) -> str:
    """Return what a family limits, with the limit."""
    registers = problem.registers
    words = {
        "unit": f"unit {family.name}",
        "memory": f"{family.name}",
        "registers": f"{registers.per_thread if registers else 0} registers per thread",
        "register_file": f"register file of {number(registers.per_sm if registers else 0)}",
        "groups": f"at most {plural(problem.groups.max, 'group')}",
        "warps": f"at most {plural(problem.groups.max_warps, 'warp')} in the block",
        "stages": f"at most {plural(stages, 'stage')}",
        "handoff": "hand-over between groups",
        "concurrency": "waits that hold up their group",
        "variable_latency": "loads in the first group",
        "legality": f"legality rule {family.name}",
        "latency": f"latency of {family.name}",
    }
    return words[family.kind]


def set_words(families: Iterable[Family], problem: Problem, stages: int) -> str:
    """Return a smallest set in words, with the names of the rules."""
    families = tuple(families)
    if not families:
        return "the dependences alone"
    if len(families) > MOST:
        return f"{len(families)} kinds of rules together, from which those needed were not separated"
    rules = ", ".join(dict.fromkeys(family.rule for family in families))
    return f"{joined([family_words(one, problem, stages) for one in families])} [{rules}]"


def joined(parts: Sequence[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def changes_words(relaxed: Relaxed, problem: Problem) -> str:
    """Return the changes of an answer in words."""
    return joined([change_words(change, problem, relaxed.groups) for change in relaxed.changes])


def change_words(change: Change, problem: Problem, groups: Sequence[str] = ()) -> str:
    """Return one change; ``groups`` are those that need more registers than there were."""
    family, before, after = change.family, change.before, change.after
    if after is None:
        return _lifted(family)
    if family.kind == "latency":
        names = joined(sorted(alike(problem, family.name)))
        return f"{names} done {plural(before - after, 'cycle')} sooner ({number(after)} instead of {number(before)})"
    if family.kind in ("groups", "warps", "stages"):
        return _counted(family, after - before, after)
    where = f" in {'groups' if len(groups) > 1 else 'group'} {joined(tuple(groups))}" if groups else ""
    more, instead = after - before, f"({number(after)} instead of {number(before)})"
    less = f"{1 - 100 / after:.0%}" if after else ""
    words = {
        "unit": f"{family.name} {number(after / 100)} times as fast (or {less} less work for it)",
        "memory": f"{_bytes(more)} more {family.name} ({_bytes(after)} instead of {_bytes(before)})",
        "registers": f"+{more} registers per thread{where} {instead}",
        "register_file": f"+{number(more)} registers in the register file {instead}",
        "handoff": f"hand-over between groups at {after} % of its cost",
    }
    return words[family.kind]


def _lifted(family: Family) -> str:
    words = {
        "unit": f"any number of units {family.name}",
        "memory": f"unlimited {family.name}",
        "registers": "a register file that one warp may have to itself",
        "register_file": "a register file that gives every thread the most",
        "handoff": "hand-over between groups at no cost",
        "concurrency": "waits that do not hold up their group",
        "variable_latency": "loads in any group (--variable-latency free)",
        "legality": f"the legality rule {family.name} lifted (--lift {family.name})",
    }
    return words.get(family.kind, f"{family.kind} unlimited")


def _counted(family: Family, more: int, after: int) -> str:
    noun = {"groups": "group", "warps": "warp", "stages": "stage"}[family.kind]
    option = {"groups": "--max-groups", "warps": "--warps", "stages": "--stages"}[family.kind]
    count = f"one more {noun}" if more == 1 else f"{more} more {noun}s"
    return f"{count} ({option} {after})"


def _bytes(size: int) -> str:
    return f"{number(size // KB)} KB" if size % KB == 0 else plural(size, "byte")


def answer_words(relaxed: Relaxed) -> str:
    """Return the interval of an answer, and how far it is proved."""
    lower, upper = number(relaxed.lower_cycles), relaxed.upper_cycles
    if relaxed.infeasible:
        return "no schedule"
    if upper is None:
        return f"no schedule found, I >= {lower}"
    if relaxed.proved:
        return f"I = {number(upper)}"
    return f"I <= {number(upper)} (>= {lower})"


def way_words(way: Way, problem: Problem) -> str:
    """Return one way out in a sentence; empty where nothing was asked about it."""
    most = f"{changes_words(way.most, problem)}: {_gained(way)}" if way.most is not None else ""
    if way.least is None:
        return most
    least = f"{changes_words(way.least, problem)}: {answer_words(way.least)}{_binds(way.least)}"
    parts = [least, most] if most else [least]
    return "; ".join(parts) + ("" if way.answered else " (time ended before all was asked)")


def _gained(way: Way) -> str:
    """Return what the larger relaxation gives."""
    if way.most is None or way.least is not None:
        return answer_words(way.most) if way.most is not None else ""
    if way.most.infeasible:
        return "there is no schedule, either"
    return f"nothing smaller found, I >= {number(way.most.lower_cycles)}"


def _binds(relaxed: Relaxed) -> str:
    reached = relaxed.upper_cycles == relaxed.bound_cycles
    return f", where {relaxed.bound} binds" if reached and relaxed.bound != "consistency" else ""


def unit_words(unit: CriticalUnit) -> str:
    """Return what a unit does in one iteration, by source line."""
    shares = [f"{' + '.join(share.ops)} {number(share.cycles)}{_line(share.source)}" for share in unit.shares[:4]]
    more = f" and {plural(len(unit.shares) - 4, 'more line')}" if len(unit.shares) > 4 else ""
    return ", ".join(shares) + more


def _line(source: str) -> str:
    line = source.rpartition(":")[2]
    return f" (line {line})" if line.isdecimal() else ""


def step_words(op: str, source: str, cycles: int) -> str:
    """Return an op of a circuit with its line and latency."""
    return f"{op}{_line(source)} {number(cycles)}"
