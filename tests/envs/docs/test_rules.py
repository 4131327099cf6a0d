"""Rules 3 to 14 on figures worked out on paper, by the world and by the skill's script alike."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from types import SimpleNamespace

import msgspec
import pytest

from skillhorizon.core.errors import Rejected
from skillhorizon.envs.docs.records import Booking, Charter, Consumer, Entry, FieldTerm, Lot, Reservation, Statement
from skillhorizon.envs.docs.rules import (
    SKILLS,
    Given,
    Terms,
    affected,
    covers,
    entitlements,
    merged,
    quota_digest,
    reconcile,
    statement_of,
    taken_fields,
)
from skillhorizon.envs.docs.world import DocsWorld

PATH = SKILLS / "reconcile-interface-contracts" / "scripts" / "reconcile_contract.py"
_SPEC = importlib.util.spec_from_file_location("docs_reconcile", PATH)
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
run = _MODULE.run


def lot(grant: str, amount: int, expires: int, *purposes: str, owner: str = "pag-a") -> Lot:
    return Lot(grant, owner, purposes or ("search",), amount, expires)


def plain(value):
    return json.loads(msgspec.json.encode(value))


# A page of purpose "search", effective on day 120, horizon 150, demand 100, on service svc-1.
CHARTER = Charter("search", 120, 150, 100)
FIELDS = (
    (FieldTerm("rows", "count", 500, False), "blk-1"),
    (FieldTerm("wait", "duration", 80, True), "blk-2"),
)
CONSUMERS = (
    Consumer("pag-x", "search", 127, 5, 300),  # 5 of 8 shares
    Consumer("pag-y", "archive", 127, 3, 60),  # 3 of 8 shares, at most 60
)
TERMS = Terms("pag-p", CHARTER, ("rows", "size"), "svc-1", FIELDS, {}, CONSUMERS)
PARENTS = [
    Given(
        (
            Entry("rows", "count", 450, True, "pag-a", "blk-a"),
            Entry("size", "size", 90, False, "pag-a", "blk-b"),
        ),
        (lot("grt-2", 70, 130), lot("grt-9", 40, 119)),  # the second expired a day before the page takes effect
    ),
    Given(
        (Entry("wait", "duration", 80, False, "pag-b", "blk-c"),),
        (lot("grt-2", 50, 130), lot("grt-5", 30, 128, "archive")),
    ),
]
GRANTS = (lot("grt-1", 200, 160, "search", "archive", owner="pag-p"),)

# Received, by (expiry, grant): grt-9 40 (119), grt-5 30 (128), grt-2 70 + 50 = 120 (130), grt-1 200 (160).
# Used: grt-9 has expired, grt-5 serves only archive; 100 of grt-2's 120, so the reservation ends on day 130.
# Left: 40 + 30 + 20 + 200 = 290. pag-x: min(300, 290 * 5 // 8 = 181) = 181: 20 of grt-2 (search, 127 <= 130), then 161
# of grt-1. pag-y: min(60, 290 * 3 // 8 = 108) = 60: 30 of grt-5, then 30 of grt-1, of which 39 were left.
# Retained: grt-9 40 and grt-1 200 - 161 - 30 = 9.
# rows: 450 inherited < 500 own, required since one says so; size only inherited; wait: 80 both, inherited goes first.
CONTENT = {
    "fields": [
        {"name": "rows", "type": "count", "limit": 450, "required": True, "bound_by": "pag-a", "set_in": "blk-a"},
        {"name": "size", "type": "size", "limit": 90, "required": False, "bound_by": "pag-a", "set_in": "blk-b"},
        {"name": "wait", "type": "duration", "limit": 80, "required": True, "bound_by": "pag-b", "set_in": "blk-c"},
    ],
    "received": plain(
        [
            lot("grt-9", 40, 119),
            lot("grt-5", 30, 128, "archive"),
            lot("grt-2", 120, 130),
            lot("grt-1", 200, 160, "search", "archive", owner="pag-p"),
        ]
    ),
    "used": plain([lot("grt-2", 100, 130)]),
    "allotments": [
        {
            "consumer": "pag-x",
            "lots": plain([lot("grt-2", 20, 130), lot("grt-1", 161, 160, "search", "archive", owner="pag-p")]),
        },
        {
            "consumer": "pag-y",
            "lots": plain(
                [lot("grt-5", 30, 128, "archive"), lot("grt-1", 30, 160, "search", "archive", owner="pag-p")]
            ),
        },
    ],
    "retained": plain([lot("grt-9", 40, 119), lot("grt-1", 9, 160, "search", "archive", owner="pag-p")]),
    "reservation": {"service_id": "svc-1", "amount": 100, "from_day": 120, "until_day": 130},
}


def script_form(terms: Terms, parents: list[Given], grants: tuple[Lot, ...]) -> dict:
    return {
        "terms": {
            "page_id": terms.page_id,
            **plain(terms.charter),
            "carry": list(terms.carry),
            "service_id": terms.service_id,
            "fields": [{**plain(term), "block_id": block} for term, block in terms.fields],
            "consumers": plain(terms.consumers),
        },
        "parents": [
            {"page_id": f"pag-{n}", "fields": plain(p.fields), "lots": plain(p.lots)} for n, p in enumerate(parents)
        ],
        "grants": plain(grants),
    }


INPUT = script_form(TERMS, PARENTS, GRANTS)


def test_a_contract_worked_by_hand():
    assert plain(reconcile(TERMS, PARENTS, GRANTS)) == CONTENT


def test_the_script_comes_to_the_same():
    assert run(INPUT) == CONTENT


def test_the_statement_of_that_contract():
    # used 100; allotted 20 + 161 and 30 + 30; until the last day of the reservation
    expected = Statement({"rows": 450, "size": 90, "wait": 80}, 100, {"pag-x": 181, "pag-y": 60}, 130)
    assert statement_of(reconcile(TERMS, PARENTS, GRANTS)) == expected


def test_the_reservation_ends_at_the_horizon_where_quota_lasts_longer():
    terms = TERMS._replace(carry=("rows",), consumers=())
    content = reconcile(terms, [], (lot("grt-1", 100, 151),))
    assert content.reservation == Booking("svc-1", 100, 120, 150)


def test_expiry_on_the_effective_day_still_serves():
    content = reconcile(TERMS._replace(carry=("rows",), consumers=()), [], (lot("grt-1", 100, 120),))
    assert content.reservation.until_day == 120


@pytest.mark.parametrize(("grant", "purposes"), [(99, ("search",)), (100, ("archive",))])
def test_a_demand_that_cannot_be_met_is_refused_by_both(grant, purposes):
    grants = (lot("grt-1", grant, 200, *purposes),)
    terms = TERMS._replace(carry=("rows",), consumers=())
    with pytest.raises(Rejected) as refused:
        reconcile(terms, PARENTS[:0], grants)
    assert refused.value.code == "quota_short"
    with pytest.raises(ValueError, match="rule 5"):
        run(script_form(terms, [], grants))


def test_types_must_agree():
    parents = [Given((Entry("rows", "size", 1, False, "pag-a", "blk-a"),), ())]
    with pytest.raises(Rejected) as refused:
        reconcile(TERMS, parents, GRANTS)
    assert refused.value.code == "schema_mismatch"
    with pytest.raises(ValueError, match="rule 3"):
        run(script_form(TERMS, parents, GRANTS))


def test_a_carried_field_needs_a_limit_from_somewhere():
    with pytest.raises(Rejected) as refused:
        reconcile(TERMS, [], GRANTS)  # nobody limits "size"
    assert refused.value.code == "schema_mismatch"
    with pytest.raises(ValueError, match="rule 3"):
        run(script_form(TERMS, [], GRANTS))


@pytest.mark.parametrize(
    ("entries", "winner"),
    [
        # equal limits: the inherited entry before the own block (which stands on pag-p)
        ([("pag-z", "blk-z", 500)], "pag-z"),
        # two inherited ones: the lower page
        ([("pag-z", "blk-z", 400), ("pag-c", "blk-c", 400)], "pag-c"),
        # no tie: the least, here the own block's 500
        ([("pag-c", "blk-c", 501)], "pag-p"),
    ],
)
def test_ties_of_limits(entries, winner):
    parents = [Given((Entry("rows", "count", limit, False, page, block),), ()) for page, block, limit in entries]
    terms = TERMS._replace(carry=("rows",), consumers=())
    content = reconcile(terms, parents, GRANTS)
    assert next(e.bound_by for e in content.fields if e.name == "rows") == winner
    assert run(script_form(terms, parents, GRANTS)) == plain(content)


def test_entitlements_round_down_and_keep_the_limit():
    # 100 * 1 // 3 = 33 twice, 100 * 1 // 3 = 33 but at most 20
    three = [Consumer(f"pag-{n}", "search", 1, 1, limit) for n, limit in enumerate((50, 33, 20))]
    assert entitlements(three, 100) == [33, 33, 20]


def test_lots_of_one_grant_are_one_lot():
    assert merged([lot("grt-b", 5, 9), lot("grt-a", 1, 9), lot("grt-b", 7, 9)]) == (
        lot("grt-a", 1, 9),
        lot("grt-b", 12, 9),
    )


def test_the_digest_is_of_everything_but_the_fields():
    content = reconcile(TERMS, PARENTS, GRANTS)
    other_fields = msgspec.structs.replace(content, fields=())
    other_quota = msgspec.structs.replace(content, retained=())
    assert quota_digest(other_fields) == quota_digest(content) != quota_digest(other_quota)
    assert len(quota_digest(content)) == 12


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"amount": 101, "from_day": 119}, True),
        ({"amount": 99}, False),
        ({"from_day": 121}, False),
        ({"until_day": 129}, False),
        ({"until_day": 131}, False),  # outlives grt-2, which is used
        ({"service_id": "svc-2"}, False),
    ],
)
def test_which_reservations_cover(change, good):
    held = {"service_id": "svc-1", "amount": 100, "from_day": 120, "until_day": 130, **change}
    content = reconcile(TERMS, PARENTS, GRANTS)
    assert covers(Reservation("pag-p", "tem-1", **held), content.reservation, content.used) == good


def test_fields_taken_follow_the_import_block():
    terms = TERMS._replace(imports={"pag-b": ("wait",)})
    assert taken_fields(terms, "pag-b") == ("wait",)
    assert taken_fields(terms, "pag-a") == ("rows", "size")


def test_impact_goes_through_pages_that_carry_the_field():
    """q -> a carries f, a -> b carries f, a -> c imports f, c -> d does not take it, q -> e imports another field."""
    children = {"q": ["a", "e"], "a": ["b", "c"], "c": ["d"]}
    takes = {("a", "q"): "fg", ("e", "q"): "g", ("b", "a"): "fg", ("c", "a"): "f", ("d", "c"): "h"}
    assert affected("q", "f", children, lambda child, parent: takes[child, parent]) == {"q", "a", "b", "c"}
    assert affected("q", "g", children, lambda child, parent: takes[child, parent]) == {"q", "a", "b", "e"}


def test_script_and_world_agree_on_random_terms():
    rng = random.Random(4)
    agreed = short = 0
    for _ in range(300):
        purposes = ("search", "archive", "pricing")
        lots = [
            lot(f"grt-{n}", rng.randint(1, 90), 110 + rng.randint(0, 40), *rng.sample(purposes, rng.randint(1, 3)))
            for n in range(rng.randint(1, 9))
        ]
        halves = tuple(msgspec.structs.replace(x, amount=x.amount // 2 + 1) for x in lots[::2])
        consumers = tuple(
            Consumer(f"pag-{n}", rng.choice(purposes), 120 + rng.randint(0, 9), rng.randint(1, 9), rng.randint(0, 200))
            for n in range(rng.randint(0, 4))
        )
        terms = TERMS._replace(
            charter=Charter(rng.choice(purposes), 120, 150, rng.randint(1, 120)), carry=("rows",), consumers=consumers
        )
        parents = [Given(PARENTS[0].fields, halves), Given(PARENTS[1].fields, ())]
        form = script_form(terms, parents, tuple(lots))
        try:
            content = reconcile(terms, parents, lots)
        except Rejected:
            short += 1
            with pytest.raises(ValueError, match="rule 5"):
                run(form)
            continue
        agreed += 1
        assert run(form) == plain(content)
        # nothing is lost and nothing made: used, allotted and retained are what was received
        parts = [*content.used, *(x for a in content.allotments for x in a.lots), *content.retained]
        assert merged(parts) == content.received
    assert agreed > 100
    assert short > 20


@pytest.mark.parametrize(
    "spoil",
    [
        lambda given: given.pop("grants"),
        lambda given: given["terms"].pop("carry"),
        lambda given: given["terms"].update(demand="100"),
        lambda given: given["terms"].update(demand=True),
        lambda given: given["terms"]["consumers"].append(given["terms"]["consumers"][0]),
        lambda given: given["terms"]["consumers"][0].update(weight=0),
        lambda given: given["terms"]["fields"].append(given["terms"]["fields"][0]),
        lambda given: given["parents"].append(given["parents"][0]),
        lambda given: given["parents"][0]["lots"][0].update(amount=-1),
        lambda given: given["grants"].append({**given["grants"][0], "expires_on": 1}),
        lambda given: given["parents"].append([]),
    ],
)
def test_the_script_refuses_bad_input(spoil):
    given = json.loads(json.dumps(INPUT))
    spoil(given)
    with pytest.raises(ValueError, match=r"\w"):
        run(given)


def test_the_script_leaves_its_input_alone_and_runs_from_a_shell():
    given = json.loads(json.dumps(INPUT))
    run(given)
    assert given == INPUT
    done = subprocess.run([sys.executable, str(PATH)], input=json.dumps(INPUT).encode(), capture_output=True)
    assert (done.returncode, json.loads(done.stdout)) == (0, CONTENT)
    failed = subprocess.run([sys.executable, str(PATH)], input=b"{}", capture_output=True)
    assert failed.returncode == 2
    assert json.loads(failed.stdout)["error"]


def test_the_governing_block_is_the_one_decided_last():
    table = {name: SimpleNamespace(decided_on=day) for name, day in (("blk-1", 91), ("blk-2", 100), ("blk-3", 95))}
    world = SimpleNamespace(
        tables={"blocks": table}, approved={"pag-p": {"field:rows": ["blk-1", "blk-2"], "charter": ["blk-3"]}}
    )
    assert [b.decided_on for b in DocsWorld.governing(world, "pag-p")] == [100, 95]
