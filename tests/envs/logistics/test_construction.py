"""What the builder of LogisticsOps promises of its tasks, over families, variants and topologies."""

from __future__ import annotations

import importlib
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from skillhorizon.core import generation
from skillhorizon.core.bands import BANDS
from skillhorizon.envs.logistics import ENVIRONMENT
from skillhorizon.envs.logistics.rules import in_force
from skillhorizon.envs.logistics.seed import seed_tables, true_class
from tests.envs.bench import Bench

builder = importlib.import_module("skillhorizon.envs.logistics.build")  # the package's own `build` is the function
CONFIGURATIONS = [c.id for c in ENVIRONMENT.configs("64K")]
TOPOLOGIES = ["carrier-disruption/seats/staggered", "carrier-disruption/seats/distributed"]
SIZE = {"64K": 5, "256K": 16, "512K": 9}


@cache
def made(configuration: str, band: str = "64K", seed: int = 3) -> Any:
    """The builder, with everything that it made."""
    found = builder.Builder(ENVIRONMENT.config(band, configuration), seed, SIZE[band])
    found.made = found.blueprint()
    return found


@pytest.mark.parametrize("band", BANDS)
def test_eighteen_configurations_in_every_band(band):
    configs = ENVIRONMENT.configs(band)
    assert len({c.id for c in configs}) == len(configs) == 18
    assert Counter(c.family for c in configs) == dict.fromkeys(ENVIRONMENT.families, 6)
    assert {c.options["legs"] for c in configs} == {builder.LEGS[band]}


# Which cohort each one continues, and from which further one it receives a unit, by hand.
FAMILY_TREES = {
    "staggered": ({1: 0, 2: 1, 3: 2, 4: 3}, {2: 0, 4: 2}),
    "distributed": ({1: 0, 2: 0, 3: 1, 4: 1}, {4: 0}),
}


@pytest.mark.parametrize("configuration", TOPOLOGIES)
@pytest.mark.parametrize("band", ["64K", "512K"])
def test_a_route_begins_half_way_on_its_parents_and_shares_its_services(configuration, band):
    b = made(configuration, band)
    parents, _ = FAMILY_TREES[b.config.pattern]
    for child, parent in parents.items():
        assert b.routes[child][: b.L - b.m + 1] == b.routes[parent][b.m :]
        assert b.on_route[child][: b.L - b.m] == b.on_route[parent][b.m :]
    for route, nodes in zip(b.routes, b.on_route, strict=True):
        assert len(set(route)) == b.L + 1
        assert [(n.origin, n.destination) for n in nodes] == list(pairwise(route))
        assert [after.slot - before.slot for before, after in pairwise(nodes)] == [1] * (b.L - 1)


@pytest.mark.parametrize("configuration", TOPOLOGIES)
@pytest.mark.parametrize("band", ["64K", "256K"])
def test_relay_units_are_handed_over_where_and_when_the_giver_leaves_them(configuration, band):
    b = made(configuration, band)
    if band == "64K":
        parents, elders = FAMILY_TREES[b.config.pattern]
        edges = {(e.giver, e.receiver, e.given_until, e.board_leg) for e in b.edges}
        # four legs: a parent gives after half of them, an elder at its end, both at the child's first hub
        assert edges == {(p, c, 2, 0) for c, p in parents.items()} | {(q, c, 4, 0) for c, q in elders.items()}
    for e in b.edges:
        assert b.routes[e.giver][e.given_until] == b.routes[e.receiver][e.board_leg]
        assert b.on_route[e.giver][e.given_until - 1].slot < b.on_route[e.receiver][e.board_leg].slot


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_cohorts_have_the_bookings_that_the_family_and_the_variant_ask_for(configuration):
    b = made(configuration)
    network = seed_tables()
    used: list[str] = []
    for c, bookings in enumerate(b.bookings):
        items = [network.items_of[x.booking_id] for x in bookings]
        assert sum(len(i) == 2 for i in items) == b.family.two_items
        classes = Counter(true_class(i.commodity, i.quantity) for of_one in items for i in of_one)
        del classes["general"]
        assert classes == Counter(b.family.classed[c % len(b.family.classed)])
        assert [x.alight_leg - x.board_leg for x in bookings] == list(builder.SPANS[b.config.pattern])
        assert [x.alight_leg for x in bookings] == [2, 2, 4, 4]
        least, most = b.variant.parties
        assert all(least <= x.party <= most for x in bookings)
        assert [x.mate_id for x in bookings] == [bookings[n ^ 1].booking_id for n in range(4)]
        used += [x.booking_id for x in bookings]
    assert len(set(used)) == len(used)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_of_each_leg_three_services_are_sound_and_two_of_them_permitted(configuration):
    b = made(configuration)
    for node in b.nodes:
        services, permits = b.services[node.number], b.permits[node.number]
        assert len({s.carrier_id for s in services}) == len(services) == 7
        assert len(permits) == 8
        sound = services[:3]
        assert all(node.start <= s.departure_min <= node.start + 205 for s in sound)
        assert all(s.arrival_min <= node.start + 359 for s in sound)
        heaviest: dict[str, int] = {}
        for movement in b.movements_on[node.number]:
            for class_, kg in b._heaviest(movement).items():
                heaviest[class_] = max(kg, heaviest.get(class_, 0))

        def permitted(service, permits=permits, heaviest=heaviest):
            return all(
                any(
                    p.covers(service) and p.handling_class == class_ and in_force(p, service.departure_min, kg)
                    for p in permits
                )
                for class_, kg in heaviest.items()
            )

        if heaviest:
            assert [permitted(s) for s in services].count(True) == 2
            assert not any(permitted(s) for s in services[3:])
            assert not {s.carrier_id for s in sound if permitted(s)} <= set(b.leaving)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_rooms_suffice_for_every_plan_of_the_house_rule_and_no_more_than_the_variant_spares(configuration):
    b = made(configuration)
    services = b.tables["services"]
    for plan in b.plans:
        seats: Counter[str] = Counter()
        kg: Counter[str] = Counter()
        for bookings in b.bookings:
            for x in bookings:
                for s in plan.itineraries[x.booking_id]:
                    seats[s.service_id] += x.party
                    kg[s.service_id] += b.hold_kg[x.booking_id]
        for movement, s in plan.movements.items():
            kg[s.service_id] += sum(ride.kg for ride in b.rides[movement])
        assert all(n <= services[s].seats for s, n in seats.items())
        assert all(n <= services[s].kg for s, n in kg.items())
        if len(b.plans) == 1:
            assert all(services[s].seats == n + b.variant.spare_seats for s, n in seats.items() if n)
            if not b.variant.spare_kg:
                assert all(services[s].kg == n for s, n in kg.items() if n)
    assert all(s[6].seats == s[6].kg == 0 for s in ([services[x.service_id] for x in of] for of in b.services))


@pytest.mark.parametrize("configuration", [c for c in CONFIGURATIONS if "disruption" in c])
@pytest.mark.parametrize("band", ["64K", "256K"])
def test_a_withdrawal_breaks_few_of_the_bookings_accepted_by_then_and_a_manifest(configuration, band):
    b = made(configuration, band)
    # 20 bookings: from 1 to 2, after two of five cohorts. 64 bookings: 4 to 5 in all, so 2 to 3 each, after six and
    # twelve of sixteen.
    after, low, high = ([2], 1, 2) if band == "64K" else ([6, 12], 2, 3)
    assert [u.at for u in b.made.updates] == [4 * n for n in after]
    for update, cohorts, plan in zip(b.made.updates, after, b.plans, strict=False):
        gone = update.effect

        def struck(service, gone=gone):
            return service.carrier_id == gone.carrier_id and service.departure_min >= gone.from_min

        accepted = [x.booking_id for bookings in b.bookings[:cohorts] for x in bookings]
        assert low <= sum(any(map(struck, plan.itineraries[x])) for x in accepted) <= high
        assert any(struck(s) for (c, _), s in plan.movements.items() if c < cohorts)
        assert (gone.from_min - 600) % 480 == 0


@pytest.mark.parametrize("configuration", TOPOLOGIES)
def test_one_listing_never_shows_two_legs_of_the_network(configuration):
    b = made(configuration, "256K")
    slots: dict[tuple[str, str], list[int]] = {}
    for node in b.nodes:
        slots.setdefault((node.origin, node.destination), []).append(node.slot)
    assert all(after - before > 6 for times in slots.values() for before, after in pairwise(sorted(times)))


def test_a_wider_task_keeps_the_bookings_goods_and_routes_of_a_narrower_one():
    config = ENVIRONMENT.configs("64K")[0]
    narrow, wide = (builder.Builder(config, 4, n) for n in (4, 6))
    for b in (narrow, wide):
        b.blueprint()
    assert wide.routes[:4] == narrow.routes
    assert wide.bookings[:4] == narrow.bookings
    assert [c.goods for c in wide.consignments[:4]] == [c.goods for c in narrow.consignments]


@pytest.mark.parametrize("configuration", TOPOLOGIES)
def test_the_reference_holds_what_the_last_plan_of_the_house_rule_says(configuration):
    b = made(configuration)
    bench = Bench(ENVIRONMENT.build(b.config, 3, SIZE["64K"]))
    bench.reference()
    for booking_id, services in b.plans[-1].itineraries.items():
        legs = bench.world.newest_of("itinerary", booking_id).content.legs
        assert [leg.service_id for leg in legs] == [s.service_id for s in services]
    for (c, k), service in b.plans[-1].movements.items():
        manifest = bench.world.newest_of("manifest", b.consignments[c].consignment_id, k).content
        assert manifest.service_id == service.service_id


def test_depth_grows_with_the_cohorts_where_they_follow_each_other_and_slowly_where_they_branch():
    staggered, distributed = (made(c, "256K").made.graph.measures for c in TOPOLOGIES)
    assert staggered["depth"] > 2 * distributed["depth"]
    assert staggered["longest_reuse"] == 2
    assert distributed["reuse_needs"] > 0


@pytest.mark.parametrize("band", ["2M", "4M"])
def test_the_widest_bands_can_be_built(band):
    config = ENVIRONMENT.configs(band)[8]
    task = ENVIRONMENT.build(config, 1)
    assert task.blueprint.scale == {"Bookings": 4 * ENVIRONMENT.guess(config), "Legs": 8}


def test_the_next_planned_seed_differs():
    config = ENVIRONMENT.configs("64K")[0]
    one, other = (ENVIRONMENT.build(config, seed) for seed in (1, 1 + generation.SEED_STEP))
    assert one.digest != other.digest
