"""Results of searches in the cache: what is kept, what is found again, and what is not believed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import twillgpu
from twillgpu.costs.record import PriceOptions, RuleOptions
from twillgpu.errors import InputError
from twillgpu.inputs import Priced
from twillgpu.schedule.jsonform import write_schedule
from twillgpu.schedule.jsonresult import read_result
from twillgpu.schedule.paper.record import PaperOptions
from twillgpu.schedule.record import SearchOptions
from twillgpu.store.cache import Cache
from twillgpu.store.results import search_key

DATA = Path(__file__).parents[1] / "graph" / "data"
FIGURE_1 = DATA / "paper_figure_1.json"


@pytest.fixture(scope="module")
def priced() -> Priced:
    """The paper's Figure 1."""
    return twillgpu.load_problem(FIGURE_1)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """An empty cache."""
    return Cache(folder=tmp_path / "cache")


@pytest.mark.parametrize("name", ["paper_figure_1", "register_limited", "not_monotone"])
def test_the_document_of_a_search_is_read_back_whole(name: str) -> None:
    priced = twillgpu.load_problem(DATA / f"{name}.json")
    result = twillgpu.find_schedule(priced).result
    text = write_schedule(priced.problem, result, priced.limits)
    assert read_result(text, "here") == replace(result, work=round(result.work, 3))


def test_a_second_search_is_the_first_ones_result(
    priced: Priced, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = twillgpu.find_schedule(priced, cache=cache)
    assert first.kept_since is None
    monkeypatch.setattr("twillgpu.api.search", lambda *_: pytest.fail("it was searched again"))
    second = twillgpu.find_schedule(priced, cache=cache)
    assert second.kept_since is not None
    assert second.result == replace(first.result, work=round(first.result.work, 3))
    assert "(from the cache)" in twillgpu.report(second)
    assert "(from the cache)" not in twillgpu.report(first)
    taken = twillgpu.take_schedule(priced, cache=cache)
    assert taken.verified is not None
    assert taken.verified.schedule == first.result.schedule


def test_whatever_decides_about_the_result_is_in_the_key(priced: Priced) -> None:
    usual = SearchOptions()
    keys = {
        search_key(priced.problem, priced.limits, options)
        for options in (usual, replace(usual, seed=1), replace(usual, max_stages=2), PaperOptions(search=usual))
    }
    rules = PriceOptions(rules=RuleOptions(concurrency="paper"))
    other = twillgpu.load_problem(FIGURE_1, limits=rules)
    keys.add(search_key(other.problem, rules, usual))
    op = replace(priced.problem.ops[0], source="elsewhere.py:1")
    keys.add(search_key(replace(priced.problem, ops=(op, *priced.problem.ops[1:])), priced.limits, usual))
    assert len(keys) == 6


def test_what_wall_time_has_decided_is_not_kept(cache: Cache) -> None:
    priced = twillgpu.load_problem(DATA / "register_limited.json")
    run = twillgpu.find_schedule(priced, SearchOptions(time_limit_seconds=1e-6), cache=cache)
    assert run.result.limit == "time"
    assert cache.entries() == ()


def test_a_proof_that_nothing_exists_is_kept(cache: Cache) -> None:
    limits = PriceOptions(registers=40)
    priced = twillgpu.load_problem(DATA / "register_limited.json", limits=limits)
    options = SearchOptions(max_stages=1)
    first = twillgpu.find_schedule(priced, options, cache=cache)
    second = twillgpu.take_schedule(priced, None, options, cache=cache)
    assert first.result.status == "infeasible"
    assert second.run is not None
    assert second.run.kept_since is not None
    assert second.verified is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ops": "moved"}, "the schedule has 3 violations, first dependence: "),
        ({"search": {}}, "is not what a search has written (KeyError: "),
        ({"problem_sha256": "0" * 64}, "it is of another problem"),
        ({"ii_cycles": -1}, "ii_cycles"),
    ],
)
def test_a_damaged_entry_is_searched_anew_with_a_warning(
    priced: Priced, cache: Cache, change: dict[str, object], said: str
) -> None:
    first = twillgpu.find_schedule(priced, cache=cache)
    entry = cache.entries()[0]
    document = json.loads(entry.schedule)
    if change == {"ops": "moved"}:
        for op in document["ops"]:
            op.update(start_cycle=0, stage=0, slot=0)
        document |= {"stages": None, "length_cycles": None}
    else:
        document |= change
    cache.put(replace(entry, schedule=json.dumps(document)))
    with pytest.warns(RuntimeWarning, match=r"; it is searched anew$") as warned:
        again = twillgpu.find_schedule(priced, cache=cache)
    assert said in str(warned[0].message)
    assert again.kept_since is None
    assert again.result.schedule == first.result.schedule
    assert twillgpu.find_schedule(priced, cache=cache).kept_since is not None


def test_a_document_that_is_no_result_is_refused() -> None:
    with pytest.raises(InputError, match="here: is not what a search has written"):
        read_result("[]", "here")
