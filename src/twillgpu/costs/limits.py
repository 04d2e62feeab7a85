"""Limits of the machine below which a problem must stay: options, fixed bytes, residents, values of single ops."""

from __future__ import annotations

from dataclasses import replace

from twillgpu.costs.pricing import at
from twillgpu.costs.record import PricedValue, PriceOptions, RuleOptions
from twillgpu.errors import InputError, nearest
from twillgpu.graph.record import DepGraph, Limits, Op
from twillgpu.machine.record import Groups, Machine, Registers


def round_up(size_bytes: int, alignment_bytes: int) -> int:
    """Round a size up to a multiple of the alignment."""
    return -(-size_bytes // alignment_bytes) * alignment_bytes


def options_of(limits: Limits) -> PriceOptions:
    """Return the options that a graph file asks for, defaults for what it does not say."""
    usual = RuleOptions()
    rules = RuleOptions(
        concurrency=limits.concurrency or usual.concurrency,
        variable_latency=limits.variable_latency or usual.variable_latency,
        cross_group=usual.cross_group if limits.cross_group is None else limits.cross_group,
    )
    return PriceOptions(
        rules=rules, max_groups=limits.max_groups, max_warps=limits.max_warps, registers=limits.registers
    )


def limits_of(options: PriceOptions) -> Limits:
    """Return what a graph file says so that it is priced under ``options`` again; usual rules are left out.

    Legality rules that are lifted are not among it: a priced graph lists the pairs that are left.
    """
    rules, usual = options.rules, RuleOptions()
    return Limits(
        max_groups=options.max_groups,
        max_warps=options.max_warps,
        registers=options.registers,
        concurrency=None if rules.concurrency == usual.concurrency else rules.concurrency,
        variable_latency=None if rules.variable_latency == usual.variable_latency else rules.variable_latency,
        cross_group=None if rules.cross_group == usual.cross_group else rules.cross_group,
    )


def limited(machine: Machine, options: PriceOptions) -> Machine:
    """Return the machine with the limits of ``options``.

    Raises:
        InputError: a limit that is not positive or is above the machine's own.
    """
    return replace(machine, groups=_groups(machine, options), registers=_registers(machine, options.registers))


def _groups(machine: Machine, options: PriceOptions) -> Groups:
    groups = machine.groups
    most = _within("--max-groups", options.max_groups, groups.max, f"groups on machine {machine.name}")
    warps = _within("--warps", options.max_warps, groups.max_warps, f"warps in a block on machine {machine.name}")
    widths = tuple(width for width in groups.warps if width <= warps)
    if not widths:
        raise InputError(
            "--warps",
            f"{warps} warps are fewer than the narrowest group of machine {machine.name} has ({groups.warps[0]})",
            f"give at least {groups.warps[0]}",
        )
    return replace(groups, max=most, max_warps=warps, warps=widths)


def _within(option: str, wanted: int | None, limit: int, what: str) -> int:
    if wanted is None:
        return limit
    if not 1 <= wanted <= limit:
        raise InputError(option, f"{wanted} is out of range: there are at most {limit} {what}", f"give 1 to {limit}")
    return wanted


def _registers(machine: Machine, wanted: int | None) -> Registers | None:
    limits = machine.registers
    if wanted is None or wanted == 0:
        return limits if wanted is None else None
    if limits is None:
        everything = wanted * 32 * machine.groups.max_warps
        return Registers(per_thread=wanted, per_sm=everything, quota_min=min(24, wanted))
    if not limits.quota_min <= wanted <= limits.per_thread:
        raise InputError(
            "--registers",
            f"{wanted} is out of range: a thread has {limits.quota_min} to {limits.per_thread} registers "
            f"on machine {machine.name}",
            f"give {limits.quota_min} to {limits.per_thread}, or 0 for no limit",
        )
    return replace(limits, per_thread=wanted)


def check_fixed(graph: DepGraph, machine: Machine) -> dict[str, int]:
    """Return the fixed bytes per memory.

    Raises:
        InputError: more than a memory has, or a memory that the machine does not have.
    """
    for name, size in graph.fixed_bytes:
        memory = machine.memory(name)
        if memory is not None and size > memory.capacity_bytes:
            raise InputError(
                f"graph {graph.name}",
                f"{size} bytes of {name} are in use outside the loop, machine {machine.name} has "
                f"{memory.capacity_bytes}",
                "use smaller tiles outside the loop",
            )
        if memory is None and machine.memories:
            hint = nearest(name, (known.name for known in machine.memories))
            raise InputError(
                f"graph {graph.name}: fixed_bytes", f"machine {machine.name} has no memory {name!r}", hint
            )
    return dict(graph.fixed_bytes)


def check_residents(graph: DepGraph, machine: Machine) -> None:
    """Raise ``InputError`` if a value that lives through the loop is larger than what a thread may hold."""
    limits = machine.registers
    if limits is None:
        return
    for resident in graph.residents:
        needed = resident.registers_per_thread + limits.overhead_per_thread
        if needed > limits.per_thread:
            raise InputError(
                f"resident {resident.name}",
                f"it needs {resident.registers_per_thread} registers per thread for the whole loop "
                f"(and {limits.overhead_per_thread} are reserved), a thread has {limits.per_thread}",
                "keep it in shared memory, use a smaller tile, or more warps",
            )


def check_value(op: Op, value: PricedValue, machine: Machine, fixed: dict[str, int]) -> None:
    """Raise ``InputError`` if one copy of a value does not fit the machine, with the numbers."""
    if value.space == "registers":
        _check_registers(op, value, machine.registers)
        return
    memory = machine.memory(value.space)
    if memory is None:
        if machine.memories:
            have = ", ".join(known.name for known in machine.memories)
            raise InputError(
                at(op),
                f"its value is in {value.space}, machine {machine.name} has only {have}",
                f"choose a machine that has {value.space}",
            )
        return
    taken = fixed.get(value.space, 0)
    if value.bytes > memory.capacity_bytes - taken:
        raise InputError(
            at(op),
            f"its value needs {value.bytes} bytes of {value.space}, "
            f"machine {machine.name} has {memory.capacity_bytes}"
            + (f" of which {taken} are in use outside the loop" if taken else ""),
            f"use a tile of at most {memory.capacity_bytes - taken} bytes",
        )


def _check_registers(op: Op, value: PricedValue, limits: Registers | None) -> None:
    if limits is None:
        return
    if value.registers_per_thread + limits.overhead_per_thread > limits.per_thread:
        raise InputError(
            at(op),
            f"its value needs {value.registers_per_thread} registers in each thread of {op.warps} warps "
            f"(and {limits.overhead_per_thread} are reserved), a thread has {limits.per_thread}",
            "use a smaller tile, sub-tiles or more warps, or allow more registers",
        )
