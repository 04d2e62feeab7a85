"""Legality rules that ask a group for a moment without a product in flight, as SMT-LIB text.

Where there is such a moment, the issue of the next product of the rule is one: so each product of the rule shares its
group with one of them, the leader, at whose issue none is in flight.
"""

from __future__ import annotations

from collections.abc import Sequence

from twillgpu.certify.smt_text import Moment, Text
from twillgpu.costs.record import LegalPair


def pauses(text: Text, *, down: bool) -> None:
    """Assert the rules of relation ``pause``; rounded ``down``, a reader may start in the slot of the leader."""
    pairs = [pair for pair in text.problem.legality if pair.relation == "pause"]
    for rule in dict.fromkeys(pair.rule for pair in pairs):
        mine = [pair for pair in pairs if pair.rule == rule]
        products = tuple(dict.fromkeys(pair.first for pair in mine))
        leads = {leader: _leads(text, leader, products, mine, down=down) for leader in products}
        for product in products:
            text.check(text.any_of(text.all_of((text.same(product, one), leads[one])) for one in products))


def _leads(text: Text, leader: str, products: Sequence[str], pairs: Sequence[LegalPair], *, down: bool) -> str:
    """Return the formula "no product in the leader's group is in flight when the leader is issued"."""
    landed = []
    for product in products:
        mine = [pair for pair in pairs if pair.first == product]
        here = _landed(text, leader, mine, down=down)
        landed.append(here if product == leader else text.any_of((f"(not {text.same(product, leader)})", here)))
    return text.all_of(landed)


def _landed(text: Text, leader: str, pairs: Sequence[LegalPair], *, down: bool) -> str:
    """Return the formula: every instance of the product is issued no earlier than the leader, or was read before."""
    longest = max(pair.distance for pair in pairs)
    reach = text.stages + 1 + longest
    moment = Moment(op=leader)
    before = Moment(op=leader, cycles=0 if down else -1)
    return text.all_of(
        text.any_of(
            (
                text.not_later(moment, Moment(op=pairs[0].first), -shift),
                *(text.not_later(Moment(op=pair.second), before, shift + pair.distance) for pair in pairs),
            )
        )
        for shift in range(-reach, reach + 1)
    )
