from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillhorizon.core.errors import COMMON_CODES, Rejected
from skillhorizon.core.gateway import Event, Gateway, _nested_too_deeply
from skillhorizon.core.serial import canonical
from skillhorizon.core.tools import tool, toolbox
from skillhorizon.core.world import Artifact, Update, World
from tests.toy import ENVIRONMENT
from tests.toy.build import CANARY

CONFIG = ENVIRONMENT.config("64K", "letters/chain")


class Desk:
    """Short hands on the toy's two operations. Parcel n lies in route n // 4 and in zone n % 3."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        world = gateway.world
        self.parcels = list(world.tables["parcels"])
        self.routes = list(world.tables["routes"])
        self.windows = sorted(world.tables["windows"])
        self.rates = sorted(world.tables["rates"].values(), key=lambda r: r.zone)
        self.depot = world.brief["depot"]

    def quote(self, n: int, zone: int | None = None, window: str | None = None, **more: Any) -> Event:
        arguments = {
            "parcel_id": self.parcels[n],
            "rate_id": self.rates[n % 3 if zone is None else zone].rate_id,
            "cents": 100,
            "place": {"window_id": window or self.windows[0]},
            **more,
        }
        self.gateway.call("quote_parcel", arguments)
        return self.gateway.events[-1]

    def close(self, r: int, *refs: str) -> Event:
        group = self.depot if r == len(self.routes) else self.routes[r]
        self.gateway.call("close_group", {"group_id": group, "inputs": refs})
        return self.gateway.events[-1]

    def ref(self, n: int, version: int = 1) -> str:
        return f"quo-{self.parcels[n][4:]}@{version}"


@pytest.fixture
def desk(gateway: Gateway) -> Desk:
    return Desk(gateway)


# -- observations --------------------------------------------------------------------------------------------------


def test_an_accepted_call_is_answered_by_its_result(gateway, desk):
    parcel = gateway.world.tables["parcels"][desk.parcels[0]]
    assert gateway.call("get_parcel", {"parcel_id": desk.parcels[0]}) == {
        "ok": True,
        "result": msgspec.to_builtins(parcel),
    }


def test_a_refused_call_is_answered_by_code_message_and_details(gateway):
    assert gateway.call("get_parcel", {"parcel_id": "par-00000"}) == {
        "ok": False,
        "error": {"code": "unknown_id", "message": "no parcel 'par-00000'", "details": {"id": "par-00000"}},
    }


def test_the_event_keeps_the_canonical_strings_of_call_and_observation(gateway):
    observation = gateway.call("list_parcels", {"route_id": "röute", "limit": 2})
    event = gateway.events[0]
    assert event.call == '{"arguments":{"limit":2,"route_id":"röute"},"name":"list_parcels"}'.encode()
    assert event.observation == canonical(observation)


def test_no_arguments_are_empty_arguments(gateway):
    """Not a number is null in JSON, and so the same."""
    none: list[Any] = [None, {}, float("nan")]
    for arguments in none:
        assert gateway.call("list_routes", arguments)["ok"]
    assert {e.call for e in gateway.events} == {b'{"arguments":{},"name":"list_routes"}'}


def test_a_changed_observation_or_argument_does_not_reach_the_world(gateway, desk):
    arguments = {"group_id": desk.routes[0], "inputs": [desk.quote(n).produced[0] for n in range(4)]}
    gateway.call("close_group", arguments)
    brief = gateway.call("read_task_brief")
    ref = gateway.events[4].produced[0]
    closure = gateway.call("get_artifact", {"ref": ref})
    before, same = gateway.state_digest(), copy.deepcopy(closure)
    arguments["inputs"].clear()
    brief["result"].clear()
    closure["result"]["content"]["cents"] = 0
    closure["result"]["inputs"].append("quo-00000@1")
    assert gateway.state_digest() == before
    assert gateway.call("get_artifact", {"ref": ref}) == same
    assert gateway.call("read_task_brief")["result"]["depot"] == desk.depot


def test_further_reads_do_not_change_the_state(gateway, desk):
    desk.quote(0)
    before = gateway.state_digest()
    for name, known in gateway.tools.items():
        if known.kind != "business":
            ids = {
                "parcel_id": desk.parcels[0],
                "route_id": desk.routes[0],
                "ref": desk.ref(0),
                "skill": "quote-parcel",
            }
            arguments = {k: v for k, v in ids.items() if k in known.schema["properties"]}
            if name == "finish_skill":
                arguments["outcome"] = "completed"
            if name == "run_skill_script":
                arguments |= {"script": "price", "input": {"grams": 1, "cents_per_kg": 1, "surcharge": 1}}
            assert gateway.call(name, arguments)["ok"], name
    assert gateway.state_digest() == before


def test_the_private_goal_shows_in_no_observation(task):
    from skillhorizon.core.generation import run_policy

    run = run_policy(task)
    assert CANARY in canonical(task.blueprint.goal).decode()
    assert not any(CANARY.encode() in e.observation for e in run.trace.raw)


def test_frames_show_the_whole_business_state(gateway, desk):
    desk.quote(0)
    frames = gateway.frames()
    assert set(frames) == {"parcels", "routes", "rates", "windows", "artifacts", "notices"}
    assert list(frames["parcels"]["parcel_id"]) == desk.parcels
    assert frames["artifacts"].loc[0, "ref"] == desk.ref(0)
    assert "basis" not in frames["artifacts"]


# -- charging ------------------------------------------------------------------------------------------------------


def test_every_attempt_is_charged_but_declarations(gateway, desk):
    used = []
    for name, arguments in (
        ("list_routes", {}),
        ("list_routes", {"limit": -1}),
        ("no_such_tool", {}),
        ("begin_skill", {"skill": "quote-parcel"}),
        ("begin_skill", {"skill": 5}),
        ("finish_skill", {"skill": "quote-parcel", "outcome": "completed"}),
        ("read_skill_file", {"skill": "quote-parcel"}),
        ("run_skill_script", {"skill": "quote-parcel", "script": "price", "input": {}}),
        ("quote_parcel", {}),
    ):
        gateway.call(name, arguments)
        used.append(gateway.used)
    assert used == [1, 2, 3, 3, 3, 3, 4, 5, 6]
    assert [e.charged for e in gateway.events] == [True, True, True, False, False, False, True, True, True]
    assert gateway.remaining is None


def test_the_run_is_exhausted_after_the_last_permitted_attempt(task):
    gateway = task.open(budget=2)
    assert gateway.call("list_routes")["ok"]
    assert gateway.remaining == 1
    assert gateway.call("no_such_tool")["error"]["code"] == "unknown_tool"
    assert gateway.remaining == 0
    before = gateway.state_digest()
    for name in ("list_routes", "quote_parcel", "no_such_tool"):
        error = gateway.call(name)["error"]
        assert (error["code"], error["details"]) == ("budget_exhausted", {"budget": 2})
    assert (gateway.used, gateway.remaining) == (2, 0)
    assert gateway.state_digest() == before
    assert gateway.call("begin_skill", {"skill": "quote-parcel"})["ok"]
    assert [e.charged for e in gateway.events] == [True, True, False, False, False, False]


def test_a_reading_role_reads_and_computes_but_changes_nothing(task):
    gateway = task.open(role="read_only")
    desk, before = Desk(gateway), gateway.state_digest()
    assert gateway.call("list_routes")["ok"]
    script = {"skill": "quote-parcel", "script": "price", "input": {"grams": 1, "cents_per_kg": 1, "surcharge": 1}}
    assert gateway.call("run_skill_script", script)["ok"]
    refused = desk.quote(0)
    assert (refused.code, refused.charged, refused.check) == ("not_permitted", True, None)
    assert gateway.used == 3
    assert gateway.state_digest() == before


def test_several_roles_share_one_world_and_one_allowance(task):
    gateway = task.open(budget=10)
    desk = Desk(gateway)
    desk.quote(0)
    assert gateway.call("close_group", {"group_id": "rte-00000", "inputs": []}, role="read_only")["ok"] is False
    assert gateway.call("get_artifact", {"ref": desk.ref(0)}, role="read_only")["ok"]
    assert [(e.role, e.code) for e in gateway.events] == [
        ("full", None),
        ("read_only", "not_permitted"),
        ("read_only", None),
    ]
    assert gateway.remaining == 7


# -- hostile calls -------------------------------------------------------------------------------------------------


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


PRICED = {"skill": "quote-parcel", "script": "price"}
HOSTILE: list[Any] = [
    None, 0, True, 2.5, float("nan"), float("inf"), "", "list_routes", "\ud800", b"bytes", (), [], {}, {1, 2}, 3j,
    object(), Unprintable(), Unprintable, len, 10**30, 10**5000, nested(70), nested(900), nested(100_000),
    {"parcel_id": "\udfff"}, {"parcel_id": float("nan")}, {"parcel_id": 10**5000}, {1: 2}, {None: 1}, {(): 1},
    {"parcel_id": Unprintable()}, {"parcel_id": nested(70)}, {"parcel_id": "x" * 100_000}, [{}], {"": ""},
    PRICED | {"input": {"grams": 10**4299, "cents_per_kg": 10**4299, "surcharge": 0}},
    PRICED | {"input": {"grams": nested(60), "cents_per_kg": {}, "surcharge": None}},
]  # fmt: skip


def attempt(gateway: Gateway, name: Any, arguments: Any) -> Event:
    """One call that must be answered, charged as its kind is, and change nothing where it is refused."""
    before, used, steps = gateway.state_digest(), gateway.used, len(gateway.events)
    observation = gateway.call(name, arguments)
    event = gateway.events[-1]
    assert len(gateway.events) == steps + 1
    assert canonical(observation) == event.observation
    known = gateway.tools.get(name) if isinstance(name, str) else None
    assert gateway.used - used == event.charged == (known is None or known.kind != "declaration")
    assert msgspec.json.decode(event.call).keys() == {"arguments", "name"}
    if observation["ok"]:
        assert event.kind in ("query", "skill", "script", "declaration") or event.produced
    else:
        error = observation["error"]
        assert error.keys() == {"code", "message", "details"}
        assert error["code"] in COMMON_CODES | set(known.refusals if known else ())
        assert gateway.state_digest() == before
        assert event.produced == event.invalidated == ()
    return event


@pytest.mark.parametrize("name", [*ENVIRONMENT.tools, "no_such_tool", *(h for h in HOSTILE if not isinstance(h, dict))],
                         ids=lambda n: n if type(n) is str and n.isascii() else type(n).__name__)  # fmt: skip
def test_no_name_with_hostile_arguments_breaks_the_gateway(gateway, name):
    for arguments in HOSTILE:
        assert attempt(gateway, name, arguments).step == len(gateway.events)


def test_what_is_no_name_is_an_unknown_tool_even_where_it_prints_like_one(gateway):
    class Sly:
        def __repr__(self) -> str:
            return "list_routes"

    for name in (Sly(), ["list_routes"], b"list_routes", None, "\ud800list_routes", " list_routes", "list_routes\x00"):
        assert attempt(gateway, name, {}).code == "unknown_tool"


def test_a_failing_script_is_a_refusal_whatever_it_fails_with(gateway):
    event = attempt(gateway, "run_skill_script", HOSTILE[-2])
    assert event.code == "script_failed"
    event = attempt(gateway, "run_skill_script", {"skill": "quote-parcel", "script": "price", "input": {"grams": "x"}})
    assert event.code == "script_failed"
    assert b"must have exactly the fields grams, cents_per_kg, surcharge" in event.observation


@pytest.mark.parametrize("text", ["", "]" * 9, "[" * 9, "}{][", '"[', "\\]", "},{" * 99])
@pytest.mark.parametrize(("depth", "code"), [(62, "script_failed"), (63, "bad_argument")])
def test_brackets_in_texts_are_no_nesting(task, text, depth, code):
    """With many brackets about, with and without escapes: 64 may be open at once, whatever stands in the texts."""
    given = {"x": nested(depth), text: [[text]] * 50, "rows": [{"text": text}] * 90}
    event = attempt(task.open(), "run_skill_script", {"skill": "quote-parcel", "script": "price", "input": given})
    assert event.code == code


@pytest.mark.parametrize("depth", [60, 62, 63, 64, 65, 500, 5_000])
def test_how_deep_arguments_may_nest_does_not_depend_on_who_calls(task, depth):
    def deeper(levels: int, then: Callable[[], Event]) -> Event:
        return deeper(levels - 1, then) if levels else then()

    def call() -> Event:
        arguments = {"skill": "quote-parcel", "script": "price", "input": {"[": '"[{', "x": nested(depth)}}
        return attempt(task.open(), "run_skill_script", arguments)

    room = sys.getrecursionlimit() - len_of_stack() - 200
    near, far = call(), deeper(room, call)
    assert near == far
    assert near.code == ("script_failed" if depth + 2 <= 64 else "bad_argument")


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


tricky = st.text(st.sampled_from('[]{}"\\,: é'), max_size=6)


@given(
    st.recursive(
        tricky | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(tricky, inner, max_size=3),
        max_leaves=30,
    )
)
@settings(max_examples=300)
def test_nesting_is_measured_by_the_brackets_outside_of_texts(value):
    with pytest.MonkeyPatch.context() as patch:
        for deepest in (1, 2, 3, 5):
            patch.setattr("skillhorizon.core.gateway._DEEPEST", deepest)
            assert _nested_too_deeply(canonical(value)) == (depth_of(value) > deepest)


def len_of_stack() -> int:
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    return depth


@cache
def half_done() -> tuple[Event, ...]:
    """A reference run's calls up to the first closure after the update."""
    from skillhorizon.core.generation import run_policy

    events = run_policy(ENVIRONMENT.build(CONFIG, 1, 12)).trace.raw
    closures = [e.step for e in events if e.tool == "close_group"]
    return tuple(events[: closures[1]])


@cache
def pool() -> list[Any]:
    """Values that stand in the observations of the half done run, and a few that do not."""
    text = b" ".join(e.observation + e.call for e in half_done()).decode()
    words = {
        w for w in text.replace('"', " ").replace(":", " ").split() if 2 < len(w) < 40 and "-" in w and "{" not in w
    }
    return sorted(w.strip(",[]{}") for w in words)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary(max_size=4)
    | st.deferred(lambda: st.sampled_from(pool())),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=5),
    max_leaves=8,
)


def seen(*prefixes: str) -> st.SearchStrategy[Any]:
    """Values that begin so, among those that were seen."""
    return st.deferred(lambda: st.sampled_from([v for v in pool() if v.startswith(prefixes)]))


FITTING: dict[str, st.SearchStrategy[Any]] = {
    "parcel_id": seen("par-"),
    "rate_id": seen("rat-"),
    "route_id": seen("rte-"),
    "group_id": seen("rte-", "dep-"),
    "subject_id": seen("par-", "rte-"),
    "ref": seen("quo-", "cls-"),
    "companion": st.none() | seen("quo-"),
    "inputs": st.lists(seen("quo-", "cls-"), max_size=5),
    "place": st.fixed_dictionaries({"window_id": seen("win-")}),
    "cents": st.integers(0, 1000),
    "limit": st.integers(1, 4),
    "since": st.integers(0, 3),
    "cursor": st.integers(0, 12).map(lambda n: f"p{n}"),
    "kind": st.sampled_from(["quote", "closure"]),
    "status": st.sampled_from(["current", "superseded", "stale", "withdrawn"]),
    "outcome": st.sampled_from(["completed", "abandoned", "blocked"]),
    "skill": st.just("quote-parcel"),
    "path": st.sampled_from(["SKILL.md", "references/zones.csv", "../SKILL.md"]),
    "script": st.just("price"),
    "input": st.fixed_dictionaries({f: st.integers(-1, 10**6) for f in ("grams", "cents_per_kg", "surcharge")}),
}


@st.composite
def likely_calls(draw: st.DrawFn) -> tuple[str, Any]:
    """A tool with arguments of its own names, whose values fit; in one call of four one of them does not."""
    name = draw(st.sampled_from(["quote_parcel", "close_group", *sorted(ENVIRONMENT.tools)]))
    schema = ENVIRONMENT.tools[name].schema
    required = {f: FITTING[f] for f in schema["required"]}
    optional = {f: FITTING[f] for f in schema["properties"] if f not in required}
    arguments = draw(st.fixed_dictionaries(required, optional=optional))
    if arguments and draw(st.integers(0, 3)) == 0:
        arguments[draw(st.sampled_from(sorted(arguments)))] = draw(json_values | seen(""))
    return name, arguments


@settings(max_examples=120)
@given(st.lists(likely_calls() | st.tuples(st.text() | json_values, json_values), min_size=1, max_size=12))
def test_no_sequence_of_calls_breaks_the_gateway_and_all_of_them_can_be_replayed(calls):
    gateway = ENVIRONMENT.build(CONFIG, 1, 12).open()
    repeat(half_done(), gateway)
    for name, arguments in calls:
        attempt(gateway, name, arguments)
        assert gateway.world.ledgers["windows"].conserved()
    again = ENVIRONMENT.build(CONFIG, 1, 12).open()
    repeat(gateway.events, again)
    assert [(e.call, e.observation) for e in again.events] == [(e.call, e.observation) for e in gateway.events]
    assert again.state_digest() == gateway.state_digest()


def repeat(events: Iterable[Event], gateway: Gateway) -> None:
    for event in events:
        call = msgspec.json.decode(event.call)
        gateway.call(call["name"], call["arguments"])


# -- checks, cycles, invalidation (paper C.2) ----------------------------------------------------------------------


def test_checks_cycles_and_invalidations_on_a_run_worked_out_by_hand(gateway, desk):
    """Quotes of zone 0 (parcels 0, 3, 6, 9) fall with the first closure; the second only renames the rate."""
    p, r = desk.parcels, desk.routes
    refs = [desk.ref(n) for n in range(4)]
    renewed = [desk.ref(0, 2), refs[1], refs[2], desk.ref(3, 2)]

    desk.quote(0, zone=1)  # 1: a rate of another zone, a business failure of parcel 0
    desk.quote(0, window="win-00000")  # 2: an unknown id is no check
    for n in range(4):
        desk.quote(n)  # 3 to 6: accepted
    desk.close(1)  # 7: the route before it is open
    desk.close(0, *refs[:3])  # 8: a part is missing
    desk.close(0, *refs)  # 9: accepted; the update strikes parcels 0 and 3, and so the route
    gateway.call("get_artifact", {"ref": refs[0]}, goal=f"route:{r[0]}")  # 10: a read, for the route's second cycle
    gateway.call("close_group", {"group_id": r[0]})  # 11: a schema error is no check
    desk.close(0, *refs)  # 12: stale inputs, a failure in the second cycle
    desk.quote(0)  # 13: accepted again
    desk.quote(3)  # 14
    desk.close(0, *renewed)  # 15: accepted; the second update changes no value
    desk.quote(0)  # 16: a new version of accepted work keeps its cycle, and strikes the route by itself
    desk.close(0, *renewed)  # 17: superseded input
    gateway.call("begin_skill", {"skill": "quote-parcel"})  # 18

    rows = [(e.goal, e.cycle, e.check, e.reason, e.invalidated) for e in gateway.events]
    parcel, route = [f"parcel:{i}" for i in p], [f"route:{i}" for i in r]
    assert rows == [
        (parcel[0], 1, False, "wrong_rate", ()),
        (None, None, None, None, ()),
        (parcel[0], 1, True, None, ()),
        (parcel[1], 1, True, None, ()),
        (parcel[2], 1, True, None, ()),
        (parcel[3], 1, True, None, ()),
        (route[1], 1, False, "not_closed", ()),
        (route[0], 1, False, "incomplete", ()),
        (route[0], 1, True, None, tuple(sorted([parcel[0], parcel[3], route[0]]))),
        (route[0], 2, None, None, ()),
        (None, None, None, None, ()),
        (route[0], 2, False, "stale_input", ()),
        (parcel[0], 2, True, None, ()),
        (parcel[3], 2, True, None, ()),
        (route[0], 2, True, None, ()),
        (parcel[0], 2, True, None, (route[0],)),
        (route[0], 3, False, "stale_input", ()),
        (None, None, None, None, ()),
    ]
    closure = f"cls-{r[0][4:]}"
    produced = {e.step: e.produced for e in gateway.events if e.produced}
    assert produced == {
        **{n + 3: (refs[n],) for n in range(4)},
        9: (f"{closure}@1",),
        13: (desk.ref(0, 2),),
        14: (desk.ref(3, 2),),
        15: (f"{closure}@2",),
        16: (desk.ref(0, 3),),
    }
    assert [n.sequence for n in gateway.world.notices] == [1, 2]
    assert [(e.step, e.decision, e.position) for e in gateway.events] == [(n, n, 0) for n in range(1, 19)]


def test_what_the_caller_says_of_a_call_is_kept_and_what_the_operation_attempts_comes_first(gateway, desk):
    gateway.call("list_rates", {}, module="quote:x", goal="parcel:x", decision=7, position=2, context_tokens=99)
    event = gateway.events[0]
    assert (event.module, event.goal, event.cycle) == ("quote:x", "parcel:x", 1)
    assert (event.decision, event.position, event.context_tokens) == (7, 2, 99)
    gateway.call("close_group", {"group_id": desk.depot, "inputs": []}, goal="parcel:x")
    assert gateway.events[1].goal == f"depot:{desk.depot}"


@tool("business", refusals=("too_hot",))
def bake(world: World, degrees: int) -> str:
    """Bake: refused when too hot, judged burnt above 250, undone above 240."""
    world.attempt("loaf:1")
    if degrees > 300:
        raise Rejected("too_hot", "too hot")
    if degrees < 0:
        raise Rejected("wrong_state", "the oven is off")
    if degrees > 250:
        world.judge("taste:1", False, "burnt")
    elif degrees > 240:
        world.judge("taste:1", True)
    return "baked"


@tool("business", checks=False)
def knead(world: World) -> str:
    """Knead: work on the loaf that certifies nothing."""
    world.attempt("loaf:1")
    world.count("kneaded")
    return "kneaded"


@tool("query")
def smell(world: World) -> int:
    """Smell: a look at the counter."""
    return world.counters.get("kneaded", 0)


def bakery(*updates: Update, world: type[World] = World) -> Gateway:
    return Gateway(world({}, updates), toolbox(sys.modules[__name__]))


def test_a_verdict_of_the_operation_stands_in_for_acceptance():
    gateway = bakery()
    for degrees in (200, 260, 245, 301, -1):
        gateway.call("bake", {"degrees": degrees})
    gateway.call("knead")
    assert [(e.ok, e.goal, e.check, e.reason) for e in gateway.events] == [
        (True, "loaf:1", True, None),
        (True, "taste:1", False, "burnt"),
        (True, "taste:1", True, None),
        (False, "loaf:1", False, "too_hot"),
        (False, "loaf:1", None, None),
        (True, "loaf:1", None, None),
    ]


class Pantry(World):
    """Dough is stale while the flour is spoilt, bread while its dough is."""

    prefixes: ClassVar[Mapping[str, str]] = {"dough": "dgh", "bread": "brd"}
    spoilt = False

    def staleness(self, artifact: Artifact, cause: str) -> str | None:
        return cause if self.spoilt and artifact.kind == "dough" else super().staleness(artifact, cause)


@tool("business")
def make(world: Pantry, kind: str, inputs: list[str], good: bool = True) -> list[str]:
    """Make something for the one goal, well or not."""
    world.attempt("meal:1")
    if not good:
        world.judge("meal:1", False, "tasteless")
    world.publish(kind, "pan-00001", {}, inputs, reads=["flour", *(i.partition("@")[0] for i in inputs)], goal="meal:1")
    return world.invalidated


@tool("business")
def flour(world: Pantry, spoilt: bool) -> list[str]:
    """Spoil the flour, or replace it."""
    world.spoilt = spoilt
    world.changed("flour", cause="the flour")
    return world.invalidated


def test_only_acceptance_makes_a_goal_that_can_be_invalidated_and_each_acceptance_only_once():
    gateway = Gateway(Pantry({}), toolbox(sys.modules[__name__]))
    for name, arguments in (
        ("make", {"kind": "dough", "inputs": [], "good": False}),
        ("flour", {"spoilt": True}),  # strikes work that was never accepted
        ("flour", {"spoilt": False}),
        ("make", {"kind": "dough", "inputs": []}),
        ("make", {"kind": "bread", "inputs": ["dgh-00001@2"]}),
        ("flour", {"spoilt": True}),  # strikes two artifacts of one accepted goal
        ("flour", {"spoilt": False}),  # both are valid again, which is no acceptance
        ("flour", {"spoilt": True}),
        ("flour", {"spoilt": False}),
        ("make", {"kind": "dough", "inputs": [], "good": False}),  # strikes the bread, still of no accepted goal
        ("make", {"kind": "dough", "inputs": []}),
        ("flour", {"spoilt": True}),
    ):
        assert gateway.call(name, arguments, goal="meal:1")["ok"]
    goal, none = ("meal:1",), ()
    assert [(e.cycle, e.check, e.reason, e.invalidated) for e in gateway.events] == [
        (1, False, "tasteless", none),
        (1, None, None, none),
        (1, None, None, none),
        (1, True, None, none),
        (1, True, None, none),
        (1, None, None, goal),
        (2, None, None, none),
        (2, None, None, none),
        (2, None, None, none),
        (2, False, "tasteless", none),
        (2, True, None, none),
        (2, None, None, goal),
    ]


def test_updates_fire_after_accepted_operations_and_never_by_reading():
    class Fires(World):
        def apply_update(self, update: Update) -> None:
            self.announce("update", [], str(update.ordinal))

    gateway = bakery(Update(1, "kneaded", 1, None), Update(2, "kneaded", 3, None), world=Fires)
    gateway.world.count("kneaded", 1)
    fired = []
    for name, arguments in (("smell", {}), ("bake", {"degrees": 301}), ("bake", {}), ("knead", {}), ("smell", {}),
                            ("knead", {}), ("knead", {})):  # fmt: skip
        gateway.call(name, arguments)
        fired.append([n.text for n in gateway.world.notices])
    assert fired == [[], [], [], ["1"], ["1"], ["1", "2"], ["1", "2"]]


def test_a_refusal_inside_an_update_is_a_fault_of_the_environment_and_no_answer():
    class Faulty(World):
        def apply_update(self, update: Update) -> None:
            raise Rejected("wrong_state", "an update must not refuse")

    with pytest.raises(Rejected):
        bakery(Update(1, "kneaded", 1, None), world=Faulty).call("knead")
