"""Everything that one symbolic run says about a warp program, for given trip counts."""

from __future__ import annotations

from collections.abc import Sequence

from twillgpu.emulate.coverage import check_coverage
from twillgpu.emulate.record import Finding
from twillgpu.emulate.symbolic import SymbolicRun
from twillgpu.emulate.unroll import Unroller
from twillgpu.emulate.values import check_values
from twillgpu.lower.record import WarpProgram


def check_trips(program: WarpProgram | Unroller, trips: Sequence[int]) -> Finding:
    """Run a program symbolically for one block.

    Args:
        program: the program, or an ``Unroller`` of it (which is worth keeping between calls).
        trips: the trip count of each tile that the block works on, in order.

    Returns:
        Races, deadlock and hazards of any interleaving; none of them where the program is sound for these trips.
    """
    unroller = program if isinstance(program, Unroller) else Unroller(program)
    run = SymbolicRun(unroller.groups, unroller.barriers)
    run.extend(unroller.scripts(trips))
    deadlock = None if run.run() else run.deadlock()
    if deadlock is None:
        run.order.finish()
    for count in sorted(set(trips)):
        check_coverage(unroller.program, count, run.findings)
        check_values(unroller.program, count, run.findings)
    return Finding(
        trips=tuple(trips),
        races=run.findings.races,
        deadlock=deadlock,
        hazards=run.findings.hazards,
        steps=run.steps,
    )
