"""SWP-AND-WS(G, M, I, L) as SMT-LIB text: the list of its rules, and the answer of a solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from twillgpu.costs.record import Problem, RuleOptions
from twillgpu.schedule.paper import rules_groups, rules_memory, rules_registers, rules_time
from twillgpu.schedule.paper.program import Program
from twillgpu.schedule.paper.record import JointAnswer, JointQuestion, WarpsAs
from twillgpu.schedule.paper.smt import FALSE
from twillgpu.schedule.paper.solve import run_yices

RULES: tuple[tuple[str, Callable[[Program], None]], ...] = (
    ("uniqueness", rules_time.uniqueness),
    ("consistency", rules_time.consistency),
    ("completion", rules_time.completion),
    ("dependence", rules_time.dependence),
    ("capacity", rules_time.capacity),
    ("memory_capacity", rules_memory.memory_capacity),
    ("warp_uniqueness", rules_groups.warp_uniqueness),
    ("variable_latency", rules_groups.variable_latency),
    ("legality", rules_groups.legality),
    ("register_limit", rules_registers.register_limit),
    ("cross_warp_spill", rules_groups.cross_warp_spill),
    ("concurrency", rules_groups.concurrency),
)
"""Every rule of the formulation with the function that states it, in the order in which they are written."""


def build(question: JointQuestion) -> Program:
    """Return the program of ``question`` with every rule stated."""
    if question.literal:
        published = RuleOptions(concurrency="paper", variable_latency="iff")
        question = replace(question, problem=replace(question.problem, rules=published))
    program = Program(question)
    if not program.possible:
        program.script.begin("dependence")
        program.script.require(FALSE)
        return program
    for name, rule in RULES:
        if name not in question.without:
            program.script.begin(name)
            rule(program)
    return program


def smtlib(problem: Problem, interval: int, length: int, *, literal: bool = False, warps: WarpsAs = "groups") -> str:
    """Return SMT-LIB 2 text (QF_LIA) that is satisfiable if and only if ``problem`` has a schedule of this interval
    and at most this length, both in the problem's unit of time; any solver of the field can check it.

    Without ``literal`` the rules are those of ``docs/formulation.md``; of memories only the sums are stated, not the
    places. With it they are the paper's.
    """
    question = JointQuestion(problem=problem, interval=interval, length=length, literal=literal, warps=warps)
    return build(question).script.text()


def answer(question: JointQuestion, seconds: float) -> JointAnswer:
    """Solve ``question`` by Yices within ``seconds`` of wall clock.

    Raises:
        InputError: there is no ``yices-smt2``.
    """
    program = build(question)
    if not program.possible:
        return JointAnswer(outcome="unsat", starts={}, groups={}, seconds=0.0)
    reply = run_yices(program.script.text(program.wanted()), seconds)
    if reply.outcome != "sat":
        return JointAnswer(outcome=reply.outcome, starts={}, groups={}, seconds=reply.seconds)
    return JointAnswer(
        outcome="sat",
        starts=program.starts(reply.holds),
        groups=program.assigned(reply.holds),
        seconds=reply.seconds,
    )
