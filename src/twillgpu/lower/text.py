"""A warp program as text: what ``--emit program`` prints, and what ``text_read.py`` reads back to an equal record.

::

    program attention_fwd
    machine h100
    interval 2600
    layout #nvmma_shared = "#ttg.nvmma_shared<{swizzlingByteWidth = 128}>"
    ring load_k: 2 copies of 32768 bytes in smem at 66560, iteration, holds (k): smem<128x128xf16, #nvmma_shared>
    barrier load_k.full: 2 copies, 1 arrival, iteration, serves "load_k -> qk_0 (data, 0)"
    group load: 1 warp, 24 registers, 3 stages
      before
        simt (block, first_row)
        expect q.full[tile] 65536 bytes
        tma q (q, q_local_alloc) writes q[tile] completes q.full[tile] // attention_fwd.py:30
      prologue
        wait qk_0.done[0 lag 2] if trips >= 1
      loop
        wait qk_0.done[t lag 2]
        tma load_k (k, k_local_alloc) at t writes load_k[t] completes load_k.full[t] // attention_fwd.py:41
      epilogue
        arrive load_v.free[trips-1] if trips >= 1
      after
    kernel attention_fwd
      ...

An instance is in brackets: ``[1]`` is that of iteration 1, ``[t-2]`` in step t of the loop, ``[trips-1]`` that of the
last iteration, each with the ``lag`` after it; ``[tile]`` is that of the tile. The kernel is at the end, in its own
text. Source lines are comments. Names with other characters than a plain word's are JSON strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import assert_never

from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.text import print_kernel
from twillgpu.frontend.type_text import layout_aliases, print_type
from twillgpu.lower.check import regions
from twillgpu.lower.record import (
    Access,
    Arrive,
    Barrier,
    BarrierUse,
    Commit,
    Drain,
    Execute,
    ExpectBytes,
    Fence,
    Get,
    GroupProgram,
    Instance,
    Instruction,
    Iteration,
    Put,
    Ring,
    Wait,
    WarpProgram,
)

WORD = re.compile(r"[A-Za-z0-9_.$'\-]+", re.ASCII)
"""A name that needs no quotes."""


def print_program(program: WarpProgram) -> str:
    """Return the text of a program whose instances have an iteration exactly where their scope is ``iteration``
    (``check_program``); ``read_program`` reads it back to an equal record.
    """
    return "\n".join(_lines(program)) + "\n" + print_kernel(program.kernel)


def instruction_text(one: Instruction) -> str:
    """Return an instruction as the text has it, on one line."""
    guard = f" if trips >= {one.at_least}" if one.at_least else ""
    return _instruction(one) + guard


def _lines(program: WarpProgram) -> Iterator[str]:
    layouts = layout_aliases(ring.tile.layout for ring in program.rings)
    yield f"program {name_text(program.kernel.name)}"
    yield f"machine {name_text(program.machine)}"
    yield f"interval {program.ii_cycles}"
    if program.persistent:
        yield "persistent"
    yield from (f"remark {json.dumps(remark)}" for remark in program.remarks)
    yield from (f"layout {alias} = {json.dumps(layout)}" for layout, alias in layouts.items())
    for ring in program.rings:
        yield f"{_ring(ring)}: {print_type(ring.tile, layouts)}"
    yield from map(_barrier, program.barriers)
    sources = _sources(program.kernel)
    for group in program.groups:
        yield from _group(group, sources)


def _ring(ring: Ring) -> str:
    copies = _count(ring.depth, "copy", "copies")
    place = f"{ring.memory} at {ring.offset_bytes}"
    return (
        f"ring {name_text(ring.name)}: {copies} of {ring.bytes} bytes in {place}, {ring.scope}, "
        f"holds ({_names(ring.values)})"
    )


def _barrier(barrier: Barrier) -> str:
    copies, arrivals = _count(barrier.copies, "copy", "copies"), _count(barrier.arrivals, "arrival", "arrivals")
    serves = f", serves {', '.join(map(json.dumps, barrier.serves))}" if barrier.serves else ""
    return f"barrier {name_text(barrier.name)}: {copies}, {arrivals}, {barrier.scope}{serves}"


def _group(group: GroupProgram, sources: dict[str, str]) -> Iterator[str]:
    warps, stages = _count(group.warps, "warp", "warps"), _count(group.stages, "stage", "stages")
    yield f"group {name_text(group.name)}: {warps}, {group.registers_per_thread} registers, {stages}"
    for region, instructions in regions(group):
        yield f"  {region}"
        for one in instructions:
            yield f"    {instruction_text(one)}{_comment(one, sources)}"


def _instruction(one: Instruction) -> str:
    match one:
        case Execute():
            return _execute(one)
        case Put():
            return f"put {name_text(one.value)}{_at(one.iteration)} into {access_text(one.access)}"
        case Get():
            return f"get {name_text(one.value)}{_at(one.iteration)} from {access_text(one.access)}"
        case Drain():
            return f"drain {one.engine} to {one.pending}" + (" reads" if one.reads_only else "")
        case Fence():
            return f"fence {one.kind}"
        case _:
            return _signal(one)


def _signal(one: Wait | Arrive | ExpectBytes | Commit) -> str:
    match one:
        case Wait():
            return f"wait {use_text(one.use)}"
        case Arrive():
            return f"arrive {use_text(one.use)}"
        case ExpectBytes():
            return f"expect {use_text(one.use)} {one.bytes} bytes"
        case Commit():
            return f"commit {one.engine} to {use_text(one.use)}"
        case _:
            assert_never(one)


def _execute(one: Execute) -> str:
    parts: list[str] = [one.engine]
    if one.op:
        parts.append(name_text(one.op))
    parts.append(f"({_names(one.members)}){_at(one.iteration)}")
    if one.reads:
        parts.append(f"reads {', '.join(map(access_text, one.reads))}")
    if one.writes:
        parts.append(f"writes {', '.join(map(access_text, one.writes))}")
    if one.completes is not None:
        parts.append(f"completes {use_text(one.completes)}")
    return " ".join(parts)


def access_text(access: Access) -> str:
    """Return ``ring[instance]``."""
    return f"{name_text(access.ring)}[{_instance(access.instance)}]"


def use_text(use: BarrierUse) -> str:
    """Return ``barrier[instance]``."""
    return f"{name_text(use.barrier)}[{_instance(use.instance)}]"


def name_text(name: str) -> str:
    """Return a name, quoted where it is no plain word."""
    return name if WORD.fullmatch(name) else json.dumps(name)


def _instance(instance: Instance) -> str:
    place = "tile" if instance.iteration is None else _iteration(instance.iteration)
    return f"{place} lag {instance.lag}" if instance.lag else place


def _at(iteration: Iteration | None) -> str:
    return "" if iteration is None else f" at {_iteration(iteration)}"


def _iteration(iteration: Iteration) -> str:
    if iteration.anchor == "first":
        return str(iteration.offset)
    base = "t" if iteration.anchor == "loop" else "trips"
    return f"{base}{iteration.offset:+}" if iteration.offset else base


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(name_text, names))


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _sources(kernel: Kernel) -> dict[str, str]:
    return {op.name: op.source for op in (*kernel.before, *kernel.loop.body, *kernel.after)}


def _comment(one: Instruction, sources: dict[str, str]) -> str:
    """Return the user's line that an op comes from, of the last of its members that has one."""
    if not isinstance(one, Execute) or not one.op:
        return ""
    found = [sources[member] for member in one.members if sources.get(member)]
    return " // " + " ".join(found[-1].split()) if found else ""
