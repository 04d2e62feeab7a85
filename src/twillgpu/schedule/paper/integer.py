"""Integer linear programs as plain records, and the two solvers that take them: HiGHS and SCIP."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

from twillgpu.errors import InputError
from twillgpu.schedule.paper.record import IntegerSolver

Row = list[tuple[int, int]]
"""(variable, coefficient) pairs."""


@dataclass(slots=True, kw_only=True)
class IntegerProgram:
    """Minimise a weighted sum of bounded integers under rows ``terms <= limit``.

    Attributes:
        upper: largest value of every variable; the smallest is 0.
        cost: weight of every variable in what is minimised.
        rows: (terms, limit) pairs.
    """

    upper: list[int] = field(default_factory=list)
    cost: list[int] = field(default_factory=list)
    rows: list[tuple[Row, int]] = field(default_factory=list)

    def variable(self, *, upper: int = 1, cost: int = 0) -> int:
        """Add a variable and return its number."""
        self.upper.append(upper)
        self.cost.append(cost)
        return len(self.upper) - 1

    def at_most(self, terms: Row, limit: int) -> None:
        """Add the row ``terms <= limit``; terms of one variable are added up."""
        sums: dict[int, int] = {}
        for variable, coefficient in terms:
            sums[variable] = sums.get(variable, 0) + coefficient
        kept = [(variable, coefficient) for variable, coefficient in sums.items() if coefficient]
        if not kept and limit < 0:
            kept = [(self.variable(upper=0), -1)]
        if kept:
            self.rows.append((kept, limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """``optimal`` or ``feasible`` with values, ``infeasible``, or ``unknown`` where the time was over."""

    outcome: Literal["optimal", "feasible", "infeasible", "unknown"]
    values: tuple[int, ...] = ()


def solved(program: IntegerProgram, solver: IntegerSolver, seconds: float) -> Solution:
    """Return the solution that ``solver`` finds within ``seconds`` of wall clock.

    Raises:
        InputError: the solver's package is not installed.
    """
    return _highs(program, seconds) if solver == "highs" else _scip(program, seconds)


def package(name: str) -> ModuleType:
    """Return an optional package; raises ``InputError`` with what to install where it is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            "--method paper", f"the package {name} is missing", "pip install 'twillgpu[paper]'"
        ) from error


def _highs(program: IntegerProgram, seconds: float) -> Solution:
    highspy = package("highspy")
    # The wrapper class prints a banner on standard output before it can be silenced; the class below it does not.
    solver = highspy._Highs()  # noqa: SLF001
    solver.setOptionValue("output_flag", False)  # the solver's own interface
    solver.setOptionValue("time_limit", max(0.05, seconds))
    solver.setOptionValue("threads", 1)
    solver.passModel(_lp(highspy, program))
    solver.run()
    status = solver.getModelStatus()
    nothing = highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible
    if status in nothing:  # every variable is bounded
        return Solution(outcome="infeasible")
    info = solver.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Solution(outcome="unknown")
    values = tuple(round(value) for value in solver.getSolution().col_value)
    return Solution(outcome="optimal" if status == highspy.HighsModelStatus.kOptimal else "feasible", values=values)


def _lp(highspy: ModuleType, program: IntegerProgram) -> Any:  # noqa: ANN401  # an untyped package
    """Return the program in the solver's own form, rows one after the other."""
    lp = highspy.HighsLp()
    columns = len(program.upper)
    lp.num_col_, lp.num_row_ = columns, len(program.rows)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, [0] * columns, program.upper
    lp.row_lower_ = [-highspy.kHighsInf] * len(program.rows)
    lp.row_upper_ = [limit for _, limit in program.rows]
    lp.integrality_ = [highspy.HighsVarType.kInteger] * columns
    starts = [0]
    for terms, _ in program.rows:
        starts.append(starts[-1] + len(terms))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = columns, len(program.rows)
    lp.a_matrix_.start_ = starts
    lp.a_matrix_.index_ = [variable for terms, _ in program.rows for variable, _ in terms]
    lp.a_matrix_.value_ = [coefficient for terms, _ in program.rows for _, coefficient in terms]
    return lp


def _scip(program: IntegerProgram, seconds: float) -> Solution:
    pyscipopt = package("pyscipopt")
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("limits/time", max(0.05, seconds))
    variables = [
        model.addVar(vtype="I", lb=0, ub=upper, obj=cost)
        for upper, cost in zip(program.upper, program.cost, strict=True)
    ]
    for terms, limit in program.rows:
        left = pyscipopt.quicksum(coefficient * variables[variable] for variable, coefficient in terms)
        model.addCons(left <= limit)
    model.optimize()
    status = model.getStatus()
    if status in ("infeasible", "inforunbd"):
        return Solution(outcome="infeasible")
    if model.getNSols() == 0:
        return Solution(outcome="unknown")
    values = tuple(round(model.getVal(variable)) for variable in variables)
    return Solution(outcome="optimal" if status == "optimal" else "feasible", values=values)
