"""What the builder promises: a graph without dead ends, no slack, defects and decoys where the family has them."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from skillhorizon.core import generation
from skillhorizon.core.policy import Call, Memory
from skillhorizon.core.world import CURRENT, STALE
from skillhorizon.envs import load
from skillhorizon.envs.factory.records import LARGEST_START
from skillhorizon.envs.factory.rules import graded
from skillhorizon.envs.factory.seed import plant, seed_tables
from tests.envs.bench import Bench, calibrated

FACTORY = load("factory")
BUILT = [
    pytest.param(c, seed, id=f"{c.band}-{c.id}-{seed}")
    for band in ("64K", "256K")
    for c in FACTORY.configs(band)
    for seed in (1, 2)
]


def grades(task, order):
    outcomes = task.blueprint.tables["outcomes"][order.order_id].deviations
    dimensions = plant().dimensions[order.product_id]
    return [graded(dimensions, d, plant().reworkable)[0] for d in outcomes]


def starts(task, order):
    """Units that the order must start: what it asks for and what it cannot save."""
    first = grades(task, order)[: order.quantity]
    return order.quantity + first.count("scrap") + max(0, first.count("rework") - order.rework_permit)


@pytest.mark.parametrize(("config", "seed"), BUILT)
def test_supply_and_demand_agree_to_the_unit(config, seed):
    task = FACTORY.build(config, seed)
    tables = task.blueprint.tables
    orders = tables["orders"]
    demand: Counter[str] = Counter()
    tight: Counter[str] = Counter()
    stock: Counter[str] = Counter()
    certs: dict[str, list[int]] = {}
    for order in orders.values():
        need = starts(task, order)
        assert need <= LARGEST_START
        for line in order.lines:
            if line.supplier_order:
                demand[line.supplier_order] += need
                tight[line.supplier_order] += need * (line.fit == "A")
                supplier = orders[line.supplier_order]
                assert supplier.level < order.level
                product = seed_tables()["products"][supplier.product_id]
                assert product.product_id == line.component
                assert product.interface in seed_tables()["products"][order.product_id].accepts
            else:
                stock[line.material] += need * line.per_unit
                certs.setdefault(line.material, []).append(line.min_cert)
        suppliers = [line.supplier_order for line in order.lines if line.supplier_order]
        assert len(set(suppliers)) == len(suppliers) == (0 if order.level == 1 else 2)
    levels = int(config.options["levels"])
    for order in orders.values():
        assert order.terminal == (order.level == levels)
        if not order.terminal:
            assert order.quantity == demand[order.order_id] > 0
        found = grades(task, order)
        good = found[: starts(task, order)].count("A")
        rest = found[: starts(task, order)]
        assert all(grade in "AB" for grade in found[order.quantity :])
        saved = min(rest.count("rework"), order.rework_permit)
        assert rest.count("A") + rest.count("B") + saved == order.quantity
        assert good == (tight[order.order_id] or min(order.quantity // 2, order.quantity - saved))
    for material, needed in stock.items():
        lots = [lot for lot in tables["lots"].values() if lot.material_id == material]
        usable = [lot for lot in lots if lot.state == "released" and lot.cert >= min(certs[material])]
        assert sum(lot.quantity_left for lot in usable) == needed
        assert all(lot.cert >= max(certs[material]) for lot in usable)
        assert len(usable) in (1, 2, 3)
        assert len(lots) == len(usable) + 2


@pytest.mark.parametrize(("config", "seed"), BUILT)
def test_defects_and_permits_are_those_of_the_family(config, seed):
    task = FACTORY.build(config, seed)
    orders = task.blueprint.tables["orders"].values()
    n = len(orders)
    reworkable = {o.order_id: grades(task, o).count("rework") for o in orders}
    scraps = [o for o in orders if "scrap" in grades(task, o)]
    marked = [o for o in orders if reworkable[o.order_id]]
    if config.family == "equipment-windows":
        assert (len(scraps), len(marked)) == (n // 6, 0)
        assert {o.rework_permit for o in orders} == {0}
    elif config.family == "selective-rework":
        assert (len(scraps), len(marked)) == (n // 12, n // 4)
        assert all(o.rework_permit == reworkable[o.order_id] + 1 for o in marked)
    else:
        assert len(marked) == n // 6 + n // 12
        assert n // 12 - 1 <= len(scraps) <= n // 12
        short = [o for o in marked if o.rework_permit < reworkable[o.order_id]]
        assert len(short) == n // 12
        assert all((o.rework_permit, reworkable[o.order_id]) == (1, 2) for o in short)
    for defective in (True, False):
        permits = {o.rework_permit for o in orders if (o in marked) == defective}
        if config.family != "equipment-windows" and n > 24:
            assert permits == ({2, 3} if config.family == "selective-rework" else {1, 2}), "permits tell nothing"


@pytest.mark.parametrize("config", FACTORY.configs("64K"), ids=lambda c: c.id)
def test_updates_strike_the_upper_levels_when_two_fifths_and_seven_tenths_are_complete(config):
    task = FACTORY.build(config, 3)
    n = task.blueprint.scale["Orders"]
    assert [u.at for u in task.blueprint.updates] == [-(-2 * n // 5), -(-7 * n // 10)]
    kinds = [type(u.effect).__name__.lower() for u in task.blueprint.updates]
    assert (
        kinds
        == {
            "equipment-windows": ["maintenance", "maintenance"],
            "selective-rework": ["drift", "maintenance"],
            "constrained-rework": ["drift", "drift"],
        }[config.family]
    )
    effects = [u.effect for u in task.blueprint.updates]
    assert effects[0] != effects[1]
    lapsed = task.blueprint.tables["calibrations"].values()
    assert len(lapsed) == (36 if config.family == "equipment-windows" else 6)
    assert all(c.void or c.units_run == c.valid_units for c in lapsed)


def test_there_are_fifteen_configurations_in_every_band():
    for band in ("64K", "128K", "256K", "512K", "1M", "2M", "4M"):
        configs = FACTORY.configs(band)
        assert len({c.id for c in configs}) == 15
        assert Counter(c.family for c in configs) == dict.fromkeys(FACTORY.families, 5)


def test_every_refusal_code_is_explained_in_a_skill():
    taught = " ".join(FACTORY.skills[s["name"]].read("SKILL.md") for s in FACTORY.skills.catalog())
    codes = {code for tool in FACTORY.own_tools.values() for code in tool.refusals}
    assert not {code for code in codes if f"`{code}`" not in taught}


@pytest.mark.parametrize("family", FACTORY.families)
def test_no_observation_shows_what_a_unit_truly_is(family):
    """The hidden tables are never named, and where they are exchanged only readings and verdicts of gauges differ."""
    config = next(c for c in FACTORY.configs("64K") if c.family == family)
    bench = Bench(calibrated("factory", "64K", config.id))
    bench.reference()
    for event in bench.gateway.events:
        assert not any(word in event.observation for word in (b'"outcomes"', b'"deviations"', b'"walks"', b'"key"'))
    world = bench.world
    calls = [("list_units", {"order_id": o.order_id}) for o in world.by_level[None]]
    calls += [("get_batch", {"batch": ref}) for ref, a in world.artifacts.items() if a.kind == "batch"]
    calls += [("get_artifact", {"ref": ref}) for ref in world.artifacts]
    seen = [bench.do(tool, **arguments) for tool, arguments in calls]
    outcomes = world.tables["outcomes"]
    for order_id, true in list(outcomes.items()):
        outcomes[order_id] = type(true)(tuple(tuple(d + 1_000 for d in row) for row in true.deviations))
    for (tool, arguments), earlier in zip(calls, seen, strict=True):
        now = bench.do(tool, **arguments)
        if tool == "list_units":
            for items in (now["items"], earlier["items"]):
                for unit in items:
                    del unit["readings_um"]
        assert now == earlier


@pytest.mark.parametrize("family", FACTORY.families)
def test_what_the_operations_enforce_holds_after_any_run(family):
    """Lineage, single use, no overlap on a cell, runs under good calibrations, complete observations."""
    config = next(c for c in FACTORY.configs("64K") if c.family == family)
    world = generation.run_policy(calibrated("factory", "64K", config.id)).gateway.world
    check_invariants(world)


def check_invariants(world) -> None:
    used: Counter[str] = Counter()
    spans: dict[str, list[tuple[int, int]]] = {}
    drawn: Counter[str] = Counter()
    for artifact in world.artifacts.values():
        content = artifact.content
        if artifact.kind == "booking" and world.booking_state[artifact.ref] in ("open", "run"):
            spans.setdefault(content.cell_id, []).append((content.start, content.end))
        if artifact.kind == "batch" and artifact.version == 1:
            allocation = world.artifacts[content.allocation].content
            assert len(content.unit_ids) == allocation.units
            used.update(u for taken in allocation.inputs for u in taken.unit_ids)
        if artifact.kind == "allocation" and artifact.status != "withdrawn":
            drawn.update({part.lot_id: part.quantity for taken in content.inputs for part in taken.lots})
        if artifact.kind == "disposition":
            order = world.order(artifact.subject)
            assert set(order.mandatory) <= world.observed[content.batch]
            assert content.calibration == world.artifacts[content.batch].content.calibration
    assert all(count == 1 for count in used.values())
    assert all(world.unit(u).place == "used" for u in used)
    for cell_spans in spans.values():
        cell_spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(cell_spans))
    assert all(c.units_run <= c.valid_units for c in world.tables["calibrations"].values())
    assert all(lot.quantity_left >= 0 for lot in world.tables["lots"].values())
    assert world.ledgers["bench"].conserved()
    for order in world.by_level[None]:
        progress = world.progress(order.order_id)
        units = [world.unit(u) for u in world.units_of[order.order_id]]
        waiting = sum(u.verdict is None for u in units)
        verdicts = Counter(u.verdict for u in units)
        assert progress.started == len(units)
        assert progress.accepted == verdicts["A"] + verdicts["B"]
        assert (progress.scrapped, progress.on_hold) == (verdicts["scrap"], verdicts["rework"])
        assert progress.started == progress.accepted + progress.scrapped + progress.on_hold + waiting
        assert progress.reworked == sum(u.reworks for u in units) <= order.rework_permit
        assert progress.shipped == sum(u.place == "shipped" for u in units)
        opened = [world.artifacts[a] for a in world.open_allocations]
        allocated = sum(a.content.units for a in opened if a.subject == order.order_id)
        assert progress.in_process == allocated + waiting + progress.on_hold
        assert set(world.free_units[order.order_id]) == {u.unit_id for u in units if u.accepted and u.place == "stock"}
    for level, totals in world.totals.items():
        for name, total in totals.items():
            assert total == sum(getattr(world.progress(o.order_id), name) for o in world.by_level[level])
    assert world.on_hold == sum(p.on_hold for p in world.tables["order_progress"].values())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", FACTORY.families)
def test_what_the_operations_enforce_holds_whatever_is_done_in_between(family, seed):
    """Between the reference's calls bookings are cancelled or doubled, allocations released, verdicts turned, units
    sent to the bench; the reference goes on until it is refused. Each status is what the rules give on the end."""
    config = next(c for c in FACTORY.configs("64K") if c.family == family)
    bench = Bench(calibrated("factory", "64K", config.id))
    world, rng = bench.world, random.Random(seed)
    first = rng.randrange(20, 200)

    def meddle(call: Call, memory: Memory) -> Call:
        if len(bench.gateway.events) > first and rng.random() < 0.5:
            tool, arguments = rng.choice(MEDDLING)(world, rng)
            if arguments:
                bench.gateway.call(tool, arguments)
        return call

    bench.reference(meddle)
    check_invariants(world)
    for artifact in world.artifacts.values():
        if artifact.status in (CURRENT, STALE):
            assert (world.staleness(artifact, "") is None) == (artifact.status == CURRENT), artifact


def _cancel(world, rng):
    return "cancel_booking", {"booking": rng.choice(world.bookings["open"])} if world.bookings["open"] else {}


def _double(world, rng):
    if not world.bookings["open"]:
        return "book_cell", {}
    booking = world.artifacts[rng.choice(world.bookings["open"])].content
    fields = ("allocation", "program_id", "revision", "cell_id", "calibration")
    start = booking.end + rng.randrange(200)
    return "book_cell", {f: getattr(booking, f) for f in fields} | {
        "start": start,
        "ticks": booking.end - booking.start,
    }


def _release(world, rng):
    return "release_allocation", {"allocation": rng.choice([*world.open_allocations])} if world.open_allocations else {}


def _turn(world, rng):
    if not world.tables["units"]:
        return "finalize_units", {}
    unit = world.unit(rng.choice([*world.tables["units"]]))
    batch = f"{unit.batch_id}@{unit.version}"
    verdicts = {u.unit_id: u.verdict or "B" for u in world.units_in(world.artifacts[batch])}
    verdicts[unit.unit_id] = rng.choice(("A", "B", "rework", "scrap"))
    return "finalize_units", {"batch": batch, "calibration": unit.calibration, "verdicts": verdicts}


def _bench(world, rng):
    held = [u for u in world.tables["units"].values() if u.verdict == "rework"]
    if not held:
        return "rework_units", {}
    unit = rng.choice(held)
    day = rng.randrange(9)
    return "rework_units", {"batch": f"{unit.batch_id}@{unit.version}", "unit_ids": [unit.unit_id], "day": day}


MEDDLING = [_cancel, _double, _release, _turn, _turn, _bench]
