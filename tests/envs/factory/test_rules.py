"""Rules of the plant with values worked out by hand, and what the seed plant guarantees."""

from __future__ import annotations

import random
from itertools import pairwise
from types import SimpleNamespace

import pytest

from skillhorizon.envs.factory.records import LARGEST_START
from skillhorizon.envs.factory.rules import after_rework, graded, run_ticks
from skillhorizon.envs.factory.seed import AXES, DAY, FREE, LONGEST_MS, Offsets, moved, plant, seed_tables
from skillhorizon.envs.factory.world import LONGEST_RUN


def dimension(tolerance: int, limit: int, over: str, under: str = "dfc-u") -> SimpleNamespace:
    return SimpleNamespace(tolerance_um=tolerance, rework_limit_um=limit, over_code=over, under_code=under)


BENCH = frozenset({"dfc-a", "dfc-b"})
DIMENSIONS = [dimension(80, 120, "dfc-a", "dfc-t"), dimension(60, 140, "dfc-n"), dimension(100, 160, "dfc-b")]


def test_run_time_rounds_whole_ticks_up_and_adds_the_set_up():
    # 5 units of 300 s at 100 %: 1,500 s = 1.67 ticks, so 2, and 1 of set-up
    assert run_ticks(5, 1, 100, 300_000) == 3
    # 6 units of 300 s at 100 %: 1,800 s are exactly 2 ticks
    assert run_ticks(6, 1, 100, 300_000) == 3
    # the same at 80 %: 2,250 s = 2.5 ticks; at 120 %: 1,500 s
    assert run_ticks(6, 2, 80, 300_000) == 5
    assert run_ticks(6, 2, 120, 300_000) == 4


def test_the_longest_run_that_the_rules_allow():
    # 60 units of 400 s at 80 %: 30,000 s = 33.3 ticks, so 34, and 2 of set-up: what ticks 36 to 71 hold
    assert run_ticks(LARGEST_START, 2, 80, LONGEST_MS) == LONGEST_RUN == FREE[1] - FREE[0]


@pytest.mark.parametrize(
    ("deviations", "verdict", "code", "excess"),
    [
        ((40, -30, 50), "A", None, 0),  # exactly half of every tolerance
        ((41, 0, 0), "B", None, 0),  # above half of 80
        ((-80, 60, 100), "B", None, 0),  # exactly on tolerance
        ((81, 0, 0), "rework", "dfc-a", 1),
        ((120, 0, 160), "rework", "dfc-b", 60),  # both at their limits; 160 - 100 is more than 120 - 80
        ((121, 0, 0), "scrap", "dfc-a", 41),  # above the limit
        ((-81, 0, 0), "scrap", "dfc-t", 1),  # undersize, with the code of that side
        ((0, 61, 0), "scrap", "dfc-n", 1),  # the code is not reworkable
        ((90, 70, 0), "scrap", "dfc-a", 10),  # one of two cannot be reworked; equal excess: the first one's code
        ((90, -70, 150), "scrap", "dfc-b", 50),
    ],
)
def test_grades(deviations, verdict, code, excess):
    assert graded(DIMENSIONS, deviations, BENCH) == (verdict, code, excess)


def test_an_incomplete_list_of_codes_turns_rework_into_scrap():
    assert graded(DIMENSIONS, (81, 0, 0), frozenset({"dfc-b"}))[0] == "scrap"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((95, 10, 130), (80, 10, 100)),  # failing dimensions come to the edge of their tolerance
        ((121, 10, 20), (121, 10, 20)),  # a scrap unit stays as it is
        ((10, 20, 30), (-80, 20, 30)),  # a good one is spoilt to the edge of its first
    ],
)
def test_what_the_bench_makes_of_a_unit(before, after):
    assert after_rework(DIMENSIONS, before, BENCH) == after
    assert graded(DIMENSIONS, after, BENCH)[0] == ("scrap" if before == after else "B")


def test_the_seed_plant_has_the_records_of_the_paper():
    tables = seed_tables()
    assert (len(tables["cells"]), len(tables["programs"]), len(tables["waypoints"])) == (18, 180, 1_800)
    assert sum(map(len, tables.values())) == 13_438


def test_every_program_has_one_released_revision_and_two_cells_that_stay_eligible():
    tables, facts = seed_tables(), plant()
    newer_drafts = 0
    for program in tables["programs"].values():
        revisions = facts.revisions[program.program_id]
        assert [r.state for r in revisions].count("released") == 1
        newer_drafts += revisions[-1].state == "draft"
        cells = [
            tables["cells"][c.cell_id] for c in facts.program_cells[program.program_id] if c.qualified_until is None
        ]
        able = [c for c in cells if c.payload_g >= program.payload_g and c.reach_mm >= program.reach_mm]
        assert len(able) == 2
        assert all((c.cell_id, program.tool_family) in facts.tool_at for c in able)
        assert facts.cycle_ms[program.program_id] <= LONGEST_MS
    assert newer_drafts > 60


def test_sibling_programs_differ_in_axes_and_family_and_never_in_dimensions():
    facts = plant()
    for programs in facts.programs.values():
        assert len({p.tool_family for p in programs}) == 3
        rows = [facts.characteristics[p.program_id] for p in programs]
        for k in range(4):
            assert len({r[k].axis for r in rows}) == 3
            assert len({(r[k].nominal_um, r[k].tolerance_um, r[k].over_code, r[k].under_code) for r in rows}) == 1
        assert all({c.axis for c in r} == set(AXES) for r in rows)
        assert any(c.over_code in facts.reworkable for c in rows[0])


def test_the_free_ticks_of_every_day_are_free():
    for (_, day), spans in plant().busy.items():
        assert all(b.end <= day * DAY + FREE[0] or b.start >= day * DAY + FREE[1] for b in spans)
        assert all(a.end <= b.start for a, b in pairwise(spans))
        assert [b.kind for b in spans].count("maintenance") == 1
        assert len(spans) in (3, 4)


def test_consecutive_calibrations_differ_on_every_axis():
    for rows in plant().calibrations.values():
        assert len(rows) == 15
        for before, after in pairwise(rows):
            steps = [abs(getattr(after.offsets_um, a) - getattr(before.offsets_um, a)) for a in AXES]
            assert all(20 <= step <= 50 for step in steps)
        assert 24 <= rows[-1].valid_units - rows[-1].units_run <= 72
    rng = random.Random(1)
    offsets = Offsets(149, -149, 0, 120)
    for _ in range(500):
        offsets = moved(offsets, rng)
        assert all(abs(getattr(offsets, a)) <= 150 for a in AXES)


def test_twelve_products_accept_each_pair_of_interfaces():
    products = seed_tables()["products"].values()
    pairs = {frozenset((a.interface, b.interface)) for a in products for b in products}
    for pair in pairs:
        assert sum(pair <= set(p.accepts) for p in products) == (12 if len(pair) == 2 else 30)
