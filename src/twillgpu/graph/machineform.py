"""The inline form of a machine in graph JSON."""

from __future__ import annotations

from twillgpu.machine.record import Machine


def machine_entry(machine: Machine) -> dict[str, object]:
    """Return the inline form of a machine: what the scheduling rules need, as bare numbers.

    The figures that price the ops of a kernel are left out: the ops of graph JSON have their price.
    """
    entry: dict[str, object] = {"name": machine.name, "units": {unit.name: unit.capacity for unit in machine.units}}
    if machine.memories:
        entry["memories"] = {memory.name: memory.capacity_bytes for memory in machine.memories}
    if machine.registers is not None:
        registers = machine.registers
        entry["registers"] = {
            "per_thread": registers.per_thread,
            "per_sm": registers.per_sm,
            "overhead_per_thread": registers.overhead_per_thread,
            "quota_min": registers.quota_min,
            "quota_step": registers.quota_step,
        }
    groups, handoff = machine.groups, machine.handoff
    entry["groups"] = {"max": groups.max, "warps": list(groups.warps), "max_warps": groups.max_warps}
    entry["handoff"] = {
        "base_cycles": handoff.base_cycles,
        "cycles_per_kb": handoff.cycles_per_kb,
        "barrier_cycles": handoff.barrier_cycles,
    }
    return entry
