from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ledger import Ledger
from skillhorizon.core.world import CURRENT, STALE, SUPERSEDED, WITHDRAWN, Artifact, Record, Update, World


class Fact(Record, frozen=True):
    fact_id: str
    value: int
    remark: str = ""


class Papers(World):
    """A draft follows from facts, a report from drafts and reports."""

    prefixes: ClassVar[Mapping[str, str]] = {"draft": "drf", "report": "rpt", "note": "nte"}

    def __init__(self, *state: Any) -> None:
        super().__init__(*state)
        self.asked: list[str] = []

    def apply_update(self, update: Update) -> None:
        self.announce("update", [], f"update {update.effect}")


def papers() -> Papers:
    facts = {f: Fact(f, n) for n, f in enumerate(("fct-00001", "fct-00002"))}
    return Papers({"facts": facts, "remarks": {}})


def subject(n: int) -> str:
    return f"sub-{n:05d}"


def statuses(world: World) -> dict[str, str]:
    return {ref: a.status for ref, a in world.artifacts.items()}


# -- records -------------------------------------------------------------------------------------------------------


def test_records_artifacts_and_notices_cannot_be_changed_in_place():
    world = papers()
    artifact = world.publish("draft", subject(1), {}, [])
    world.announce("news", ["sub-00001"], "text")
    for value, field in ((world.get("facts", "fct-00001"), "value"), (artifact, "status"), (world.notices[0], "text")):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(value, field, 1)


def test_an_unknown_record_is_refused_by_its_table_and_id():
    world = papers()
    for table in ("facts", "no_such_table"):
        with pytest.raises(Rejected) as refusal:
            world.get(table, "fct-99999")
        assert (refusal.value.code, refusal.value.details) == ("unknown_id", {"id": "fct-99999"})


def test_the_tasks_own_record_hides_the_shared_seed_record_of_its_key():
    seed = {"facts": {"fct-00001": Fact("fct-00001", 1), "fct-00002": Fact("fct-00002", 2)}}
    world = Papers({"facts": {"fct-00002": Fact("fct-00002", 20)}}, (), None, seed)
    assert [world.get("facts", f).value for f in ("fct-00001", "fct-00002")] == [1, 20]
    world.amend("facts", "fct-00001", value=10)
    assert world.get("facts", "fct-00001") == Fact("fct-00001", 10)
    assert seed["facts"]["fct-00001"].value == 1


def test_two_worlds_of_one_blueprint_share_no_state():
    tables = {"facts": {"fct-00001": Fact("fct-00001", 1)}}
    first, second = Papers(tables), Papers(tables)
    first.amend("facts", "fct-00001", value=2)
    first.put("facts", "fct-00003", Fact("fct-00003", 3))
    assert second.tables["facts"] == {"fct-00001": Fact("fct-00001", 1)} == tables["facts"]


@pytest.mark.parametrize("name", ["artifacts", "notices", "progress", "ledgers"])
def test_a_table_cannot_take_a_name_of_the_core(name):
    with pytest.raises(ValueError, match=name):
        Papers({name: {}})


# -- artifacts -----------------------------------------------------------------------------------------------------


def test_a_new_version_supersedes_the_one_before_which_stays_readable():
    world = papers()
    first = world.publish("draft", subject(1), {"n": 1}, ["fct-00001@1"], goal="paper:1", module="m")
    second = world.publish("draft", subject(1), {"n": 2}, ["fct-00001@1"])
    assert (first.ref, second.ref) == ("drf-00001@1", "drf-00001@2")
    old = world.artifact("drf-00001@1")
    assert (old.status, old.cause, old.content) == (SUPERSEDED, "drf-00001@2", {"n": 1})
    assert (old.goal, old.module, old.inputs) == ("paper:1", "m", ("fct-00001@1",))
    assert world.newest["drf-00001"] == second
    assert world.published == ["drf-00001@1", "drf-00001@2"]


def test_only_a_current_artifact_of_the_wanted_kind_is_taken_as_input():
    world = papers()
    for _ in range(2):
        world.publish("draft", subject(1), {}, [])
    assert world.current("drf-00001@2", "draft").version == 2
    for ref, kind, code in (
        ("drf-00001@1", None, "stale_input"),
        ("drf-00001@2", "report", "unknown_id"),
        ("drf-00001@3", None, "unknown_id"),
        ("drf-00001", None, "unknown_id"),
    ):
        with pytest.raises(Rejected) as refusal:
            world.current(ref, kind)
        assert refusal.value.code == code
    with pytest.raises(Rejected) as refusal:
        world.current("drf-00001@1")
    assert refusal.value.details == {"ref": "drf-00001@1", "status": "superseded"}


def test_an_old_version_that_is_withdrawn_does_not_become_the_newest():
    world = papers()
    for _ in range(2):
        world.publish("draft", subject(1), {}, [])
    world.withdraw("drf-00001@1", "taken back")
    assert world.newest["drf-00001"].version == 2
    assert statuses(world) == {"drf-00001@1": WITHDRAWN, "drf-00001@2": CURRENT}


def test_what_an_observation_shows_of_an_artifact_leaves_out_the_private_basis():
    artifact = papers().publish(
        "draft", subject(1), {"n": 1}, ["fct-00001@1"], basis={"secret": 7}, goal="g", module="m"
    )
    assert artifact.public() == {
        "ref": "drf-00001@1",
        "kind": "draft",
        "subject": "sub-00001",
        "status": "current",
        "cause": None,
        "inputs": ("fct-00001@1",),
        "content": {"n": 1},
    }


def test_ordinals_make_several_artifacts_of_one_subject():
    world = papers()
    refs = [world.publish("draft", subject(1), {}, [], ordinal=n).ref for n in (None, 1, 2, 1)]
    assert refs == ["drf-00001@1", "drf-00001-1@1", "drf-00001-2@1", "drf-00001-1@2"]


def test_artifacts_are_listed_by_id_then_by_version_as_a_number():
    world = papers()
    for _ in range(11):
        world.publish("draft", subject(2), {}, [])
    world.publish("draft", subject(1), {}, [])
    world.publish("report", subject(2), {}, ["drf-00002@11"])
    everything = [a.ref for a in world.list_artifacts(None, None, None)]
    assert everything == ["drf-00001@1", *(f"drf-00002@{v}" for v in range(1, 12)), "rpt-00002@1"]
    assert [a.ref for a in world.list_artifacts("draft", subject(1), None)] == ["drf-00001@1"]
    assert [a.ref for a in world.list_artifacts(None, subject(2), CURRENT)] == ["drf-00002@11", "rpt-00002@1"]
    assert [a.ref for a in world.list_artifacts("report", None, None)] == ["rpt-00002@1"]
    assert world.list_artifacts("draft", None, STALE) == []


def test_stale_artifacts_are_listed_as_long_as_they_are():
    world = papers()
    for n in (2, 1):
        world.publish("draft", subject(n), {}, [])
        world.publish("report", subject(n), {}, [f"drf-{n:05d}@1"])
    for n in (2, 1):
        world.publish("draft", subject(n), {}, [])
    assert [a.ref for a in world.list_artifacts(None, None, STALE)] == ["rpt-00001@1", "rpt-00002@1"]
    assert [a.ref for a in world.list_artifacts("report", subject(2), STALE)] == ["rpt-00002@1"]
    assert world.list_artifacts("draft", None, STALE) == []
    world.publish("report", subject(1), {}, ["drf-00001@2"])
    assert [a.ref for a in world.list_artifacts(None, None, STALE)] == ["rpt-00002@1"]


# -- staleness -----------------------------------------------------------------------------------------------------


def test_superseding_an_input_makes_stale_what_consumed_it_and_on_down_the_graph():
    world = papers()
    world.publish("draft", subject(1), {}, [])
    world.publish("draft", subject(2), {}, [])
    world.publish("report", subject(1), {}, ["drf-00001@1"])
    world.publish("report", subject(2), {}, ["drf-00002@1"])
    world.publish("note", subject(1), {}, ["rpt-00001@1", "rpt-00002@1"])
    world.begin_call()
    world.publish("draft", subject(1), {}, [])
    assert statuses(world) == {
        "drf-00001@1": SUPERSEDED,
        "drf-00001@2": CURRENT,
        "drf-00002@1": CURRENT,
        "rpt-00001@1": STALE,
        "rpt-00002@1": CURRENT,
        "nte-00001@1": STALE,
    }
    assert world.invalidated == ["nte-00001@1", "rpt-00001@1"]
    assert world.artifacts["nte-00001@1"].cause == "drf-00001 superseded by version 2"


def test_a_withdrawn_artifact_makes_its_consumers_stale_and_stays_withdrawn():
    world = papers()
    world.publish("draft", subject(1), {}, [])
    world.publish("report", subject(1), {}, ["drf-00001@1"])
    world.withdraw("drf-00001@1", "taken back")
    world.publish("draft", subject(1), {}, [])
    old = world.artifacts["drf-00001@1"]
    assert (old.status, old.cause) == (WITHDRAWN, "taken back")
    assert world.artifacts["rpt-00001@1"].status == STALE


class Ruled(Papers):
    """Each artifact is stale by the rule kept under its reference, a function of the only fact."""

    fact = 0
    rules: ClassVar[dict[str, Any]] = {}

    def staleness(self, artifact: Artifact, cause: str) -> str | None:
        self.asked.append(artifact.ref)
        rule = self.rules.get(artifact.ref)
        if rule is None:
            return super().staleness(artifact, cause)
        return cause if rule(self) else None

    def turn(self, fact: int) -> None:
        self.fact = fact
        self.asked.clear()
        self.begin_call()
        self.changed("fact", cause=f"the fact is {fact}")


def test_what_is_superseded_or_withdrawn_is_not_asked_any_more_and_stays_so():
    world = Ruled({})
    for _ in range(2):
        world.publish("draft", subject(1), {}, [], reads=["fact"])
    world.publish("draft", subject(2), {}, [], reads=["fact"])
    world.withdraw("drf-00002@1", "taken back")
    world.turn(1)
    assert world.asked == ["drf-00001@2"]
    assert statuses(world) == {"drf-00001@1": SUPERSEDED, "drf-00001@2": CURRENT, "drf-00002@1": WITHDRAWN}


def test_what_becomes_valid_again_makes_its_consumers_valid_again():
    class World(Ruled):
        rules: ClassVar[dict[str, Any]] = {"drf-00001@1": lambda w: w.fact == 1}

    world = World({})
    world.publish("draft", subject(1), {}, [], reads=["fact"])
    world.publish("report", subject(1), {}, ["drf-00001@1"])
    world.turn(1)
    assert set(statuses(world).values()) == {STALE}
    assert world.invalidated == ["drf-00001@1", "rpt-00001@1"]
    world.turn(2)
    assert set(statuses(world).values()) == {CURRENT}
    assert {a.cause for a in world.artifacts.values()} == {None}
    assert world.invalidated == []


def test_each_consumer_is_asked_once_after_all_that_it_consumed_has_settled():
    """Z falls only if both X and Y do. Fact 1 strikes W and so Y; fact 2 strikes X and heals W and so Y."""

    class World(Ruled):
        rules: ClassVar[dict[str, Any]] = {
            "drf-00001@1": lambda w: w.fact == 2,
            "drf-00002@1": lambda w: w.fact == 1,
            "nte-00001@1": lambda w: STALE == w.artifacts["drf-00001@1"].status == w.artifacts["rpt-00002@1"].status,
        }

    world = World({})
    x = world.publish("draft", subject(1), {}, [], reads=["fact"])
    w = world.publish("draft", subject(2), {}, [], reads=["fact"])
    y = world.publish("report", subject(2), {}, [w.ref])
    z = world.publish("note", subject(1), {}, [x.ref, y.ref])
    world.turn(1)
    assert world.asked == [x.ref, w.ref, y.ref, z.ref]
    assert world.invalidated == [w.ref, y.ref]
    world.turn(2)
    assert world.asked == [x.ref, w.ref, y.ref, z.ref]
    assert world.invalidated == [x.ref]
    assert statuses(world) == {x.ref: STALE, w.ref: CURRENT, y.ref: CURRENT, z.ref: CURRENT}


def test_a_change_of_what_nobody_read_asks_nobody():
    class World(Ruled):
        rules: ClassVar[dict[str, Any]] = {"drf-00001@1": lambda w: True}

    world = World({})
    world.publish("draft", subject(1), {}, ["fct-00001@1"], reads=["fct-00001:value"])
    world.changed("fct-00001", "fct-00001:remark", cause="another part of the same record")
    assert world.asked == []
    world.changed("fct-00001:value", cause="the part that was read")
    assert world.asked == ["drf-00001@1"]
    assert world.artifacts["drf-00001@1"].status == STALE


steps = st.lists(
    st.tuples(
        st.sampled_from(["publish", "publish", "publish", "withdraw"]), st.integers(0, 5), st.lists(st.integers(0, 20))
    ),
    max_size=25,
)


@given(steps)
def test_an_artifact_is_current_exactly_while_all_that_it_consumed_is(script):
    """Against a recomputation from the provenance alone, over random graphs, versions and withdrawals."""
    world = papers()
    for action, n, picks in script:
        refs = list(world.artifacts)
        if action == "publish":
            inputs = dict.fromkeys(refs[p % len(refs)] for p in picks) if refs else {}
            usable = [r for r in inputs if world.artifacts[r].status == CURRENT and r[:9] != f"drf-{n:05d}"]
            world.publish("draft", subject(n), {}, usable)
        elif refs:
            ref = refs[n % len(refs)]
            if world.artifacts[ref].status in (CURRENT, STALE):
                world.withdraw(ref, "taken back")
        live = {r: a for r, a in world.artifacts.items() if a.status in (CURRENT, STALE)}

        def supported(ref: str, live: dict[str, Artifact] = live) -> bool:
            return ref in live and all(supported(i) for i in live[ref].inputs)

        assert {r: a.status == CURRENT for r, a in live.items()} == {r: supported(r) for r in live}


def test_an_artifact_that_read_nothing_is_never_asked():
    world = Ruled({})
    world.publish("draft", subject(1), {}, [])
    world.publish("report", subject(1), {}, ["drf-00001@1"], reads=[])
    world.publish("draft", subject(1), {}, [])
    assert world.asked == []
    assert world.artifacts["rpt-00001@1"].status == CURRENT


# -- notices, updates, clock ---------------------------------------------------------------------------------------


def test_notices_are_numbered_in_their_order():
    world = papers()
    world.announce("rate", ["rat-00001"], "first")
    world.announce("rate", [], "second")
    assert [(n.notice_id, n.sequence, n.subject_ids, n.text) for n in world.notices] == [
        ("ntc-0001", 1, ("rat-00001",), "first"),
        ("ntc-0002", 2, (), "second"),
    ]


def test_an_update_fires_once_when_its_counter_reaches_the_trigger():
    world = Papers({}, [Update(1, "closed", 2, "A"), Update(2, "opened", 1, "B"), Update(3, "closed", 2, "C")])
    seen = []
    for counter, amount in (("closed", 1), ("closed", 2), ("closed", 1), ("opened", 1), ("opened", 1)):
        world.count(counter, amount)
        world.fire_updates()
        world.fire_updates()
        seen.append([n.text for n in world.notices])
    assert seen == [
        [],
        ["update A", "update C"],
        ["update A", "update C"],
        ["update A", "update C", "update B"],
        ["update A", "update C", "update B"],
    ]
    assert world.fired == [1, 3, 2]


def test_a_world_without_updates_of_its_own_takes_none():
    world = World({}, [Update(1, "closed", 0, None)])
    with pytest.raises(TypeError, match="declares no updates"):
        world.fire_updates()


def test_the_clock_only_goes_forward():
    world = papers()
    world.advance(5)
    world.advance(5)
    with pytest.raises(ValueError, match="cannot go back to 4"):
        world.advance(4)
    assert world.clock == 5


# -- digests -------------------------------------------------------------------------------------------------------


def _reserve(world: World) -> None:
    world.ledgers["seats"].reserve("s1", 1, "o", "h")


def _cut(world: World) -> None:
    world.ledgers["seats"].capacity["s1"] = 1


@pytest.mark.parametrize(
    ("touch", "table"),
    [
        (lambda w: w.amend("facts", "fct-00001", value=9), "facts"),
        (lambda w: w.put("remarks", "r", Fact("r", 1)), "remarks"),
        (lambda w: w.publish("draft", subject(1), {}, []), "artifacts"),
        (lambda w: w.withdraw("rpt-00007@1", "taken back"), "artifacts"),
        (lambda w: w.announce("k", [], "t"), "notices"),
        (lambda w: w.count("closed"), "progress"),
        (lambda w: w.advance(1), "progress"),
        (_reserve, "ledgers"),
        (_cut, "ledgers"),
    ],
)
def test_touching_one_table_changes_its_digest_and_no_other(touch, table):
    world = papers()
    world.ledgers["seats"] = Ledger({"s1": 2})
    world.publish("report", subject(7), {}, [])
    before, whole = world.table_digests(), world.state_digest()
    assert world.table_digests() == before
    touch(world)
    after = world.table_digests()
    assert [name for name in before if before[name] != after[name]] == [table]
    assert before.keys() == after.keys()
    assert world.state_digest() != whole


def test_an_update_that_has_fired_is_part_of_the_state():
    class Quiet(World):
        def apply_update(self, update: Update) -> None:
            pass

    world = Quiet({}, [Update(1, "closed", 0, None)])
    before = world.table_digests()
    world.fire_updates()
    assert [name for name, digest in world.table_digests().items() if digest != before[name]] == ["progress"]


def test_the_digest_is_that_of_the_content_not_of_the_order_of_insertion():
    rows = {f"fct-{n:05d}": Fact(f"fct-{n:05d}", n) for n in range(20)}
    forward, backward = Papers({"facts": rows}), Papers({"facts": dict(reversed(rows.items()))})
    assert forward.state_digest() == backward.state_digest()


def test_labels_of_skill_runs_are_no_business_state():
    world = papers()
    before = world.state_digest()
    world.skill_runs += 1
    world.attempt("paper:1")
    world.judge("paper:1", False, "no")
    assert world.state_digest() == before
