"""What the builder of FinanceOps promises of its tasks, over all bands, variants and patterns."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest

from skillhorizon.core import generation
from skillhorizon.core.bands import BANDS
from skillhorizon.core.task import Task
from skillhorizon.envs.finance import ENVIRONMENT
from skillhorizon.envs.finance.rules import account_of, admitted_classes, head, minor_of
from skillhorizon.envs.finance.world import FinanceWorld
from tests.envs.bench import Bench

builder = importlib.import_module("skillhorizon.envs.finance.build")  # the package's own `build` is the function
DECOY, LATE_LANE = (builder.DECOY_STAGE, builder.DECOY_LANE), builder.LATE_LANE
SIZE = 7
MONTHS = [builder.month(number) for number in range(1, 200)]


@cache
def task(band: str, configuration: str, seed: int = 1, size: int = SIZE) -> Task:
    return ENVIRONMENT.build(ENVIRONMENT.config(band, configuration), seed, size)


def world_of(task: Task) -> FinanceWorld:
    world = task.world()
    assert isinstance(world, FinanceWorld)
    return world


def everything_released(task: Task, updates: bool = True) -> FinanceWorld:
    """The task's world as it is once all maps are released and all updates have happened, without any work."""
    world = world_of(task)
    world.released = lambda identity: True  # type: ignore[method-assign]
    for update in task.blueprint.updates if updates else ():
        world.apply_update(update)
    return world


CONFIGURATIONS = [c.id for c in ENVIRONMENT.configs("64K")]
INTEGRATION = [c for c in CONFIGURATIONS if c.startswith("heterogeneous")]
RECEIVABLES = [c for c in CONFIGURATIONS if c.startswith("receivables")]
MAINTENANCE = [c for c in CONFIGURATIONS if c.startswith("release")]


@pytest.mark.parametrize("band", BANDS)
def test_eighteen_configurations_in_every_band(band):
    configs = ENVIRONMENT.configs(band)
    assert len({c.id for c in configs}) == len(configs) == 18
    assert Counter(c.family for c in configs) == dict.fromkeys(ENVIRONMENT.families, 6)
    assert Counter((c.family, c.variant) for c in configs) == dict.fromkeys(builder.VARIANTS, 2)


# (T, U) -> (published, struck stage) of each update: p = ceil(T u / (U + 1)) + 1, struck p - g. By hand:
STRUCK = {
    # ceil(4 / 2) + 1; g = 1 below ten stages
    (4, 1): [(3, 2)],
    # ceil(6 / 3), ceil(12 / 3), each + 1
    (6, 2): [(3, 2), (5, 4)],
    # ceil(2.5, 5, 7.5) + 1; g = 1 + u mod 3 = 2, 3, 1
    (10, 3): [(4, 2), (6, 3), (9, 8)],
    # ceil(2.67, 5.33, 8, 10.67, 13.33) + 1; g = 2, 3, 1, 2, 3
    (16, 5): [(4, 2), (7, 4), (9, 8), (12, 10), (15, 12)],
    # the same steps of 2.67 up to 21.33; g = 2 + u mod 3 = 3, 4, 2, 3, 4, 2, 3, 4
    (24, 8): [(4, 1), (7, 3), (9, 7), (12, 9), (15, 11), (17, 15), (20, 17), (23, 19)],
    # steps of 36 / 13: ceil 3, 6, 9, 12, 14, 17, 20, 23, 25, 28, 31, 34
    (36, 12): [
        (4, 1), (7, 3), (10, 8), (13, 10), (15, 11), (18, 16), (21, 18), (24, 20), (26, 24),
        (29, 26), (32, 28), (35, 33),
    ],
    # steps of 54 / 19: ceil 3, 6, 9, 12, 15, 18, 20, 23, 26, 29, 32, 35, 37, 40, 43, 46, 49, 52
    (54, 18): [
        (4, 1), (7, 3), (10, 8), (13, 10), (16, 12), (19, 17), (21, 18), (24, 20), (27, 25),
        (30, 27), (33, 29), (36, 34), (38, 35), (41, 37), (44, 42), (47, 44), (50, 46), (53, 51),
    ],
}  # fmt: skip


@pytest.mark.parametrize("band", BANDS)
def test_updates_fire_and_strike_where_the_formula_says(band):
    T, U = builder.STAGES[band], builder.UPDATES[band]
    plan = builder.struck_stages(T, U)
    assert [(s.published, s.stage) for s in plan] == STRUCK[T, U]
    assert len({s.stage for s in plan}) == U
    assert all(1 <= s.stage < s.published <= T - 1 for s in plan)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_a_wider_task_has_the_same_lanes_and_more(configuration):
    narrow, wide = (task("128K", configuration, size=n) for n in (SIZE, SIZE + 3))
    for name in ("sources", "records", "components", "evidence", "credit_notes", "identity_maps", "map_entries"):
        ours, theirs = narrow.blueprint.tables[name], wide.blueprint.tables[name]
        assert {key: theirs[key] for key in ours} == ours
    assert narrow.blueprint.updates == wide.blueprint.updates
    added = set(wide.blueprint.tables["sources"]) - set(narrow.blueprint.tables["sources"])
    assert {wide.blueprint.tables["sources"][s].seq for s in added} == {SIZE + 1, SIZE + 2, SIZE + 3}


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_lanes_keep_their_calendar_and_the_late_one_books_after_the_cutoff(configuration):
    world = world_of(task("128K", configuration))
    for source in world.tables["sources"].values():
        late = source.booking_period > world.stage(source.stage).cutoff
        assert late == (source.seq - 1 == LATE_LANE)


# -- integration -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("configuration", INTEGRATION)
def test_every_source_has_one_contract_one_authority_and_whole_amounts(configuration):
    made = task("256K", configuration)
    for world in (everything_released(made), world_of(made)):
        for source in world.tables["sources"].values():
            contracts = [
                c
                for c in world.tables["contracts"].values()
                if c.format == source.format and c.effective_from <= source.booking_period <= c.effective_to
            ]
            assert contracts == [world.contract_for(source)]
            maps = [
                m
                for m in world.tables["identity_maps"].values()
                if m.identity_source == source.identity_source
                and m.effective_from <= source.booking_period <= m.effective_to
                and world.released(m)
            ]
            final = [m for m in maps if m.map_id not in {other.supersedes for other in maps}]
            assert final == [world.authority(source.identity_source, source.booking_period)]
            for rows in world.rows_by_order(source.source_id).values():
                assert len({r.rev for r in rows}) == len(rows)
                for row in rows:
                    assert minor_of(row.amount, contracts[0]) is not None
                    assert world.entities_of(final[0].map_id).get(account_of(row, contracts[0])) is not None


@pytest.mark.parametrize("configuration", INTEGRATION)
def test_contracts_abut_and_change_one_term_every_four_months(configuration):
    world = world_of(task("256K", configuration))
    for name in world.tables["formats"]:
        contracts = sorted(world.having("contracts", "format", name), key=lambda c: c.effective_from)
        for one, other in pairwise(contracts):
            assert MONTHS.index(other.effective_from) == MONTHS.index(one.effective_to) + 1
            terms = [(c.account_column, c.scale_exponent, c.sign) for c in (one, other)]
            assert sum(a != b for a, b in zip(*terms, strict=True)) == 1


@pytest.mark.parametrize("configuration", INTEGRATION)
@pytest.mark.parametrize("band", ["64K", "512K"])
def test_twins_share_map_month_and_account_and_lane_2_keeps_first(band, configuration):
    made = task(band, configuration)
    world = world_of(made)
    plan = STRUCK[len(world.stages), len(made.blueprint.updates)]
    for update, (_, stage) in zip(made.blueprint.updates, plan, strict=True):
        lanes = [world.source(s) for s in world.sources_of[world.stages[stage - 1].stage_id][:3]]
        assert [s.conflict_policy for s in lanes] == ["latest_revision", "latest_revision", "first"]
        assert lanes[0].identity_source == lanes[1].identity_source
        assert lanes[0].booking_period == lanes[1].booking_period
        used = [
            {account_of(r, world.contract_for(s)) for r in world.tables["records"][s.source_id].rows} for s in lanes[:2]
        ]
        shared = used[0] & used[1]
        if update.effect.kind == "supersession":
            entries, identity = (put.record for put in update.effect.puts)
            before = world.tables["identity_maps"][identity.supersedes]
            ((moved, _),) = set(entries.entries) - set(world.tables["map_entries"][before.map_id].entries)
            assert moved in shared
            assert (identity.effective_from, identity.effective_to) == (lanes[0].booking_period,) * 2
            assert identity.released_by == before.released_by  # nobody may see it before what it supersedes
        else:
            assert update.effect.subjects == tuple(s.source_id for s in lanes)


# -- receivables and maintenance -------------------------------------------------------------------------------------


@pytest.mark.parametrize("configuration", RECEIVABLES + MAINTENANCE)
def test_sources_come_back_to_an_object_in_order_and_within_their_lane(configuration):
    made = task("256K", configuration)
    world = world_of(made)
    visits = builder.VARIANTS[made.config.family, made.config.variant].visits
    orders = [i.payment_sources for i in world.tables["invoices"].values()]
    orders += [c.pack_sources for c in world.tables["components"].values()]
    assert max(map(len, orders)) == visits
    for order in orders:
        places = [world.place[s] for s in order]
        assert places == sorted(places)
        assert len({seq for _, seq in places}) == 1
        periods = [world.source(s).booking_period for s in order]
        assert periods == sorted(set(periods))


@pytest.mark.parametrize("configuration", RECEIVABLES)
def test_amounts_of_remittances_are_sane(configuration):
    made = task("512K", configuration)
    for world in (world_of(made), everything_released(made)):
        for invoice in world.tables["invoices"].values():
            assert invoice.amount_minor >= 1000
            assert invoice.reissue_of is None or world.tables["invoices"][invoice.reissue_of].reissue_of is None
        for note in world.tables["credit_notes"].values():
            assert note.amount_minor > 0
            assert (note.status == "approved") == (note.approved is not None)
        assert all(line.paid_minor > 0 for records in world.tables["records"].values() for line in records.lines)


class Watched(builder.Maintenance):  # type: ignore[misc, name-defined]
    """Notes which stage's visit brought each document."""

    def visit(self, k, lane, held, decoy, rng):
        before = set(self.tables["evidence"])
        super().visit(k, lane, held, decoy, rng)
        self.brought = getattr(self, "brought", {}) | dict.fromkeys(set(self.tables["evidence"]) - before, k)


@pytest.mark.parametrize("configuration", MAINTENANCE)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_evidence_decides_and_later_evidence_never_reaches_back(configuration, seed):
    built = Watched(ENVIRONMENT.config("256K", configuration), seed, SIZE)
    world = FinanceWorld(built.blueprint().tables)
    assert all(d.amount_minor > 0 for d in world.tables["evidence"].values())
    none = 0
    for component in world.tables["components"].values():
        for source in map(world.source, component.pack_sources):
            decisive = world.authoritative(component, source.booking_period)
            none += decisive is None
            if decisive is not None:
                assert decisive.class_ in admitted_classes()[component.class_]
                assert built.brought[decisive.document_id] <= world.stage(source.stage).ordinal
    assert none > 0  # some components have no evidence when they are first looked at


# -- the decoy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("band", ["64K", "256K"])
def test_the_decoy_is_a_wrong_selection_of_equal_effect(band, configuration):
    world = everything_released(task(band, configuration), updates=False)
    source = world.source(world.sources_of[world.stages[DECOY[0] - 1].stage_id][DECOY[1]])
    if source.kind == "integration":
        right = world.authority(source.identity_source, source.booking_period)
        contract = world.contract_for(source)
        for rows in world.rows_by_order(source.source_id).values():
            if row := head(rows, source.conflict_policy):
                account = account_of(row, contract)
                assert world.entities_of(right.map_id).get(account) == world.entities_of(right.supersedes).get(account)
    elif source.kind == "receivables":
        last = world.tables["records"][source.source_id].lines[-1]
        reissue = world.tables["invoices"][last.reference]
        original = world.tables["invoices"][reissue.reissue_of]
        assert original.payment_sources == (source.source_id,)
        assert world.notes_about(original.invoice_id) == []
        same = ("customer", "amount_minor", "tolerance_minor")
        assert [getattr(reissue, f) for f in same] == [getattr(original, f) for f in same]
    else:
        component = world.components_of(source.source_id)[-1]
        assert component.pack_sources == (source.source_id,)
        decisive = world.authoritative(component, source.booking_period)
        documents = world.having("evidence", "component", component.component_id)
        assert (decisive.amount_minor, "memo") in {(d.amount_minor, d.class_) for d in documents}


# -- the release -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_obligations_alternate_and_two_stand_on_restated_stages(configuration):
    made = task("256K", configuration)
    bench = Bench(made)
    bench.reference()
    tables = made.blueprint.tables
    assert len(tables["obligations"]) == 2 + 10 // 4
    bases = Counter(o.basis for o in tables["obligations"].values())
    assert bases == {"as_first_published": 2, "current": 2}
    restated = {s.stage_id for s in bench.world.stages if len(bench.world.publications_of(s.stage_id)) > 1}
    on_restated = {o.basis for o in tables["obligations"].values() if o.stage in restated}
    assert on_restated == {"as_first_published", "current"}
    assert sum(r.authority_limit_minor is None for r in tables["reviewers"].values()) == 3


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_updates_fire_at_their_publication_and_reveal_nothing_before(configuration):
    made = task("128K", configuration)
    run = generation.run_policy(made)
    plan, tables = STRUCK[6, 2], made.blueprint.tables
    new = [{put.key for put in u.effect.puts if put.key not in tables[put.table]} for u in made.blueprint.updates]
    fired = notices = 0
    for event in run.trace.raw:
        for keys in new[fired:]:  # what an update brings has no name before it fires
            assert not any(key.encode() in event.observation for key in keys)
        if event.tool == "list_notices":
            notices += event.observation.count(b'"notice_id"')
            assert notices == fired
        if event.tool == "publish_stage":
            published = json.loads(event.observation)["result"]["stages_published"]
            fired = sum(published >= at for at, _ in plan)
    assert run.gateway.world.fired == [1, 2]
    assert notices == 2


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_an_update_strikes_its_two_lanes_and_what_rests_on_them(configuration):
    """Struck details lie in lanes 0 and 1 from the struck stage on; in integration they are the twins and no others."""
    made = task("128K", configuration)
    world = world_of(made)
    run = generation.run_policy(made)
    redone = Counter(
        run.gateway.world.artifacts[ref].subject
        for event in run.trace.raw
        if event.tool in ("submit_normalization", "submit_allocation", "submit_adjustment")
        for ref in event.produced
        if not ref.endswith("@1")
    )
    places = {world.place[s] for s in redone}
    assert {(stage, seq) for _, stage in STRUCK[6, 2] for seq in (1, 2)} <= places
    assert {seq for _, seq in places} == {1, 2}
    if configuration in INTEGRATION:
        assert len(places) == 4
    # A = 4 S + 4 T + 2 + O + 5 a package made again + 4 a stage closed again
    sources, obligations = len(world.place), len(world.tables["obligations"])
    closed_again = sum(e.tool == "close_stage" for e in run.trace.raw) - 6
    expected = 4 * sources + 4 * 6 + 2 + obligations + 5 * redone.total() + 4 * closed_again
    assert run.trace.business_calls == expected
