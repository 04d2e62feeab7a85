"""Run as a script in a process of its own: one SAT solver, which the parent may end at any time.

Arguments: solver of python-sat, conflicts allowed (0: no limit), file for a DRAT proof (empty: none). Standard input:
clauses as native integers, each closed by 0. Standard output: ``sat``, ``unsat`` or ``unknown``, the number of
conflicts, a line end, and the literals of the solution as native integers. It imports nothing of the package, so it
starts fast.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from pathlib import Path

from pysat.solvers import Solver


def main(name: str, conflicts: int, proof: str) -> None:
    """Solve what is on standard input."""
    numbers = array("i")
    numbers.frombytes(sys.stdin.buffer.read())
    with Solver(name=name, with_proof=bool(proof)) as solver:
        for clause in _clauses(numbers):
            solver.add_clause(clause)
        if conflicts:
            solver.conf_budget(conflicts)
        found = solver.solve_limited() if conflicts else solver.solve()
        word = "unknown" if found is None else "sat" if found else "unsat"
        if proof and found is False:
            Path(proof).write_text("".join(f"{line}\n" for line in solver.get_proof()), encoding="ascii")
        spent = (solver.accum_stats() or {}).get("conflicts", 0)
        sys.stdout.buffer.write(f"{word} {spent}\n".encode())
        sys.stdout.buffer.write(array("i", solver.get_model() if found else []).tobytes())


def _clauses(numbers: array[int]) -> Iterator[list[int]]:
    clause: list[int] = []
    for number in numbers:
        if number:
            clause.append(number)
        else:
            yield clause
            clause = []


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
