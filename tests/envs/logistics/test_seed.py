"""The standing network: counts, references that hold, distributions, and that no task's id stands in it."""

from __future__ import annotations

from collections import Counter

import pytest

from skillhorizon.envs.logistics import ENVIRONMENT
from skillhorizon.envs.logistics.seed import CLASSES, COUNTS, MINIMA, commodities, seed_tables, true_class

TABLES = seed_tables()
REFERENCES = {
    "lanes": {"hub_a": "hubs", "hub_b": "hubs"},
    "hub_minima": {"hub_id": "hubs"},
    "passengers": {"home_hub_id": "hubs"},
    "flights": {"carrier_id": "carriers", "lane_id": "lanes", "origin": "hubs", "destination": "hubs"},
    "bookings": {"passenger_id": "passengers"},
    "booking_segments": {"booking_id": "bookings", "flight_id": "flights"},
    "baggage_items": {"booking_id": "bookings"},
    "waybills": {"carrier_id": "carriers", "origin": "hubs", "destination": "hubs"},
    "custody_events": {"waybill_id": "waybills", "hub_id": "hubs"},
}


def test_counts_are_those_of_table_3():
    assert {name: len(rows) for name, rows in TABLES.items()} == COUNTS
    assert sum(COUNTS.values()) == 21_150
    assert (COUNTS["passengers"], COUNTS["flights"], COUNTS["bookings"]) == (850, 320, 4_100)


@pytest.mark.parametrize("table", REFERENCES)
def test_references_hold(table):
    for record in TABLES[table].values():
        for field, target in REFERENCES[table].items():
            assert getattr(record, field) in TABLES[target]


def test_every_pair_of_hubs_is_a_lane_and_every_hub_has_its_seven_minima():
    assert len(TABLES.block_min) == 24 * 23
    assert all(70 <= minutes <= 150 for minutes in TABLES.block_min.values())
    for minima in TABLES.minima.values():
        assert all(least <= minima[kind] <= most for kind, (least, most) in MINIMA.items())


def test_bookings_have_two_connecting_segments_and_one_or_two_items():
    flights = TABLES["flights"]
    for segments in TABLES.segments_of.values():
        first, second = (flights[s.flight_id] for s in segments)
        assert first.destination == second.origin
    assert Counter(map(len, TABLES.items_of.values())) == {1: 3_050, 2: 1_050}
    seconds = [items[1] for items in TABLES.items_of.values() if len(items) == 2]
    assert {true_class(i.commodity, i.quantity) for i in seconds} == {"general"}
    assert {b.party for b in TABLES["bookings"].values()} == {1, 2, 3, 4}


def test_every_waybill_has_four_events_in_order_of_time():
    for waybill_id, events in TABLES.events_of.items():
        assert [e.kind for e in events] == ["received", "loaded", "unloaded", "handed over"]
        assert [e.hub_id for e in events[1:3]] == [
            getattr(TABLES["waybills"][waybill_id], f) for f in ("origin", "destination")
        ]
        assert sorted(e.minute for e in events) == [e.minute for e in events]


def test_forty_commodities_in_five_classes_some_by_threshold():
    table = commodities()
    assert len(table) == 40
    assert {c.base for c in table.values()} == set(CLASSES)
    assert {c.above for c in table.values() if c.above} == set(CLASSES) - {"general"}
    assert all((c.threshold is None) == (c.above is None) for c in table.values())
    firsts = Counter(true_class(i[0].commodity, i[0].quantity) for i in TABLES.items_of.values())
    assert set(firsts) == set(CLASSES)
    assert min(firsts.values()) > 400


def test_no_id_of_a_task_stands_in_it():
    task = ENVIRONMENT.build(ENVIRONMENT.configs("64K")[0], 1)
    shared = {i.partition("-")[2] for i in TABLES.ids}
    for name, rows in task.blueprint.tables.items():
        if name not in ("rebookings", "passenger_files"):
            assert not {key.partition("-")[2] for key in rows} & shared
    assert task.blueprint.tables["rebookings"].keys() <= TABLES["bookings"].keys()


def test_it_cannot_be_written():
    with pytest.raises(TypeError):
        TABLES["bookings"]["bkg-xxxxx"] = None
