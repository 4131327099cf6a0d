"""What the builder promises: the planned answers follow from the records, nothing is a dead end, traps are there."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from skillhorizon.core import generation
from skillhorizon.core.bands import BANDS
from skillhorizon.envs.research import rules
from skillhorizon.envs.research.build import SCALES
from skillhorizon.envs.research.plan import CORE, Plan
from skillhorizon.envs.research.seed import COUNTS, catalogue, seed_tables
from tests.envs.research.support import RESEARCH

BUILT = [
    pytest.param(c, seed, id=f"{c.band}-{c.id}-{seed}")
    for band, seeds in (("64K", (1, 2)), ("128K", (1,)), ("512K", (1,)))
    for c in RESEARCH.configs(band)
    for seed in seeds
]


def task_of(config, seed):
    return RESEARCH.build(config, seed)


def plan_of(task) -> Plan:
    return Plan(task.config, task.seed, task.size)


@pytest.mark.parametrize(("config", "seed"), BUILT)
def test_groups_primaries_and_exclusions_are_as_planned(config, seed):
    task = task_of(config, seed)
    plan, world = plan_of(task), task.world()
    for study in plan.studies:
        works = {report.work_id for report in study.reports}
        assert set(world.group[world.group_of[study.original.work_id]]) == works
        for r in range(study.round, plan.T + 1):
            assert world.true_primary(world.group_of[study.original.work_id], r) == study.primary(r).work_id
        original = world.tables["works"][study.original.work_id]
        choice = world.choice(original, study.round)
        assert choice.rule == (study.broken[0] if study.broken else None)
        if not study.broken:
            assert rules.judgement_of(original.conduct) == study.risk
            taken = (choice.row.metric, choice.row.analysis)
            assert taken == (world.tables["sections"][original.section_id].metric, "intention_to_treat")
    assert sum(len(s.reports) for s in plan.studies) + plan.links == plan.works == len(world.tables["works"])


@pytest.mark.parametrize(("config", "seed"), BUILT)
def test_calibrations_are_as_planned_and_each_is_used_in_its_round(config, seed):
    task = task_of(config, seed)
    plan, world = plan_of(task), task.world()
    for cell in plan.cells.values():
        row, rule = world.link_choice(world.tables["works"][cell.links[0]])
        assert rule is None
        found = [c for c in world.true_scopes[world.instrument_of(row.from_.instrument)] if c.round == cell.place[1]]
        assert [(c.scope, c.depth, c.anchor) for c in found] == [(cell.scope, cell.depth, min(cell.links))]
        assert cell.scope
        assert cell.specific or cell.scope >= set(CORE)
        for parent in cell.actual:
            assert parent is None or not plan.cells[parent].specific
        first = next(s for s in plan.studies if s.first and (s.section, s.round) == cell.place)
        assert first.cell == cell.place
        assert not first.broken
        assert first.risk != "high"
        own = plan.calibration_for(first.cell, first.population, first.round)
        assert own == cell.place
    if config.band != "64K":
        assert any(cell.specific for cell in plan.cells.values())
        assert any(study.cell != (study.section, study.round) for study in plan.included)


@pytest.mark.parametrize(("config", "seed"), BUILT)
def test_papers_and_reviewers(config, seed):
    """No paper twice, no work near two of a panel, and quotas that leave two reviewers free before each appraisal."""
    task = task_of(config, seed)
    world = task.world()
    works = world.tables["works"].values()
    assert len({w.paper_id for w in works}) == len(world.tables["works"])
    conflicts = Counter()
    for round_id in world.rounds:
        panel = [r.author_id for r in world.panels[round_id]]
        assert len(panel) == 4
        for one, other in combinations(panel, 2):
            assert not {one, *catalogue().coauthors[one]} & {other, *catalogue().coauthors[other]}
        for work in works:
            near = [a for a in panel if world.conflicted(a, work.paper_id)]
            assert len(near) <= 1
            conflicts[work.round_id == round_id and bool(near)] += 1
        quota = world.panels[round_id][0].quota
        assert quota > 0
    assert conflicts[True] >= len(world.rounds), "in each round somebody may not judge something"


@pytest.mark.parametrize(("config", "seed"), BUILT)
def test_events(config, seed):
    task = task_of(config, seed)
    plan = plan_of(task)
    updates = task.blueprint.updates
    listed = Counter(w.round_id for w in task.blueprint.tables["works"].values())
    rounds = sorted(task.blueprint.tables["rounds"].values(), key=lambda r: r.ordinal)
    assert len(updates) == min(4, plan.T - 1) == task.blueprint.goal.events
    struck: set[str] = set()
    for event, update in zip(plan.events, updates, strict=True):
        assert update.counter == f"disposed:{event.round}"
        assert update.at == -(-6 * listed[rounds[event.round - 1].round_id] // 10)
        works = {s.original.work_id for s in event.studies}
        works |= {s.original.work_id for pair in event.pairs for s in pair}
        works |= {plan.cells[event.link[0]].links[event.link[1]]} if event.link else set()
        works |= {event.unused.original.work_id} if event.unused else set()
        assert works
        assert not works & struck, "an event strikes what no other one did"
        struck |= works
        assert all(s.round < event.round for s in (*event.studies, *(s for pair in event.pairs for s in pair)))
        if event.link and event.kind == "retraction":
            cell = plan.cells[event.link[0]]
            left = cell.actual[1 - event.link[1]]
            scope = cell.populations[1 - event.link[1]] & (plan.cells[left].scope if left else cell.scope)
            assert scope == cell.scope, "the scope is the same when the route is gone"
        if event.kind == "withdrawal":
            assert all(s.extra and s.extra.round < event.round for s in event.studies)
            assert event.studies
            assert event.pairs


@pytest.mark.parametrize("config", RESEARCH.configs("64K") + RESEARCH.configs("256K"), ids=lambda c: f"{c.band}-{c.id}")
def test_reference_business_calls_follow_from_the_plan(config):
    """A = T(2S+2) + 1 + 3N + (N - subordinate) + (L + I) + 2L + C + derived + 5I + what the events ask for."""
    task = task_of(config, 1)
    plan = plan_of(task)
    run = generation.run_policy(task)
    settled: list[int] = []
    calls = [(e.tool, e.kind) for e in run.trace.raw if e.kind in ("business", "script")]
    included = len(plan.included) + plan.superseding
    cells = plan.cells.values()
    base = plan.T * (2 * plan.S + 2) + 1 + 3 * plan.works + (plan.works - plan.subordinate)
    base += plan.links + included + 2 * plan.links + len(cells) + sum(c.depth > 1 for c in cells) + 5 * included
    world = run.gateway.world
    for event, notice in zip(plan.events, world.notices, strict=True):
        revised, withdrawn = world.owed[notice.notice_id]
        closure = [i for i in world.voided_by[notice.notice_id] if i.startswith("cal-")]
        derived = sum(world.newest[i].content.depth > 1 or len(world.newest[i].content.routes) > 1 for i in closure)
        asked = 1 + len(closure) + derived
        if event.link:
            asked += (1 if event.kind == "retraction" else 2) + 3 * revised
        elif event.kind == "correction":
            asked += 5 * len(event.studies)
        elif event.kind == "retraction":
            asked += 2 * len(event.studies)
            assert withdrawn == len(event.studies)
        else:
            asked += 8 * len(event.studies) + 2 * len(event.pairs)
            assert (revised, withdrawn) == (len(event.studies), len(event.pairs))
        settled.append(asked)
    assert len(calls) == base + sum(settled)


def test_every_band_has_its_scale_and_fifteen_configurations():
    assert set(SCALES) == set(BANDS)
    for band in BANDS:
        assert len({c.id for c in RESEARCH.configs(band)}) == 15


def test_the_catalogue_is_sound():
    tables = seed_tables()
    assert {name: len(rows) for name, rows in tables.items()} == COUNTS
    assert sum(COUNTS.values()) == 11_160
    for a in tables["authorships"].values():
        assert a.paper_id in tables["papers"]
        assert a.author_id in tables["authors"]
    for c in tables["citations"].values():
        assert c.citing in tables["papers"]
        assert c.cited in tables["papers"]
    for e in tables["paper_events"].values():
        assert e.paper_id in tables["papers"]
        assert e.kind not in ("retracted", "withdrawn")
    for r in tables["registrations"].values():
        assert tables["registrations"][r.current_id].current_id == r.current_id
        windows = tables["cohorts"][r.cohort_id].windows
        assert any(w.from_ <= r.enrolled.from_ and r.enrolled.to <= w.to for w in windows)
    names: dict[tuple[str, str], set[str]] = {}
    for alias in tables["aliases"].values():
        assert alias.id in tables[f"{alias.kind}s"]
        names.setdefault((alias.kind, alias.printed), set()).add(alias.id)
    assert all(len(ids) == 1 for (kind, _), ids in names.items() if kind == "instrument")
    for ids in names.values():
        for one, other in combinations(sorted(ids), 2):
            spans = [tables["cohorts"][c].windows for c in (one, other)]
            assert all(a.to < b.from_ or b.to < a.from_ for a in spans[0] for b in spans[1])
