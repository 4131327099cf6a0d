"""Each refusal code of ResearchOps, once for every tool that declares it: refused, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skillhorizon.core.world import CURRENT
from skillhorizon.envs.research.records import Reviewer
from tests.envs.bench import Bench
from tests.envs.research.support import RESEARCH, before, done, in_last_round

CASES: dict[tuple[str, str], Callable[[], tuple[Bench, dict[str, Any]]]] = {}


def case(tool: str, code: str):
    """Declare a function that returns a bench and the arguments that the tool must refuse with this code."""

    def declare(make):
        CASES[tool, code] = make
        return make

    return declare


def older(ref: str) -> str:
    identity, _, version = ref.partition("@")
    return f"{identity}@{int(version) - 1}"


def renewed(name: str) -> Callable[[dict[str, Any], Any], bool]:
    """Whether the argument is a later version than the first."""
    return lambda given, world: not given[name].endswith("@1")


def contributed(bench: Bench, round_id: str | None = None) -> list[Any]:
    found = [bench.world.newest[i] for i in bench.world.newest if i.startswith("con-")]
    return [a for a in found if a.status == CURRENT and round_id in (None, a.content.round_id)]


def annotate_again(bench: Bench, work_id: str) -> None:
    """The same annotation once more: what rested on the one before is stale."""
    content = bench.world.about("annotation", work_id).content
    given = {name: getattr(content, name) for name in content.__struct_fields__ if name != "work_id"}
    bench.do("annotate_study", work=bench.world.work(work_id).ref, **given)


# -- rounds and works ------------------------------------------------------------------------------------------------


@case("read_work", "not_acquired")
def _():
    bench, given = before("acquire_work")
    return bench, {"work_id": given["work_id"]}


@case("read_outcomes", "not_acquired")
def _():
    bench, given = before("acquire_work")
    return bench, {"work_id": given["work_id"]}


@case("open_round", "round_order")
def _():
    bench, _ = before("open_round")
    return bench, {"round_id": bench.world.rounds[1]}


@case("open_round", "wrong_state")
def _():
    bench, _ = before("acquire_work")
    return bench, {"round_id": bench.world.rounds[0]}


@case("list_round_works", "wrong_state")
def _():
    bench, _ = before("acquire_work")
    return bench, {"round_id": bench.world.rounds[1]}


@case("acquire_work", "not_listed")
def _():
    bench, given = before("acquire_work", in_last_round)
    return bench, {**given, "work_id": bench.world.round(bench.world.rounds[0]).works[0]}


@case("acquire_work", "unknown_id")
def _():
    bench, given = before("acquire_work")
    return bench, {**given, "work_id": bench.world.tables["rounds"][bench.world.last].works[0]}


@case("acquire_work", "wrong_state")
def _():
    bench, given = before("acquire_work", in_last_round)
    return bench, {**given, "round_id": bench.world.rounds[0]}


@case("resolve_identity", "wrong_state")
def _():
    bench, given = before("acquire_work")
    keys = {"registry_key": None, "cohort_key": None, "study_id": "new"}
    return bench, {"work_id": given["work_id"], "primary": given["work_id"], **keys}


@case("resolve_identity", "unknown_id")
def _():
    bench, given = before("resolve_identity", lambda given, world: len(world.reports) > 1)
    return bench, {**given, "primary": next(iter(bench.world.reports))}


@case("screen_work", "missing_rule")
def _():
    bench, given = before("screen_work")
    return bench, {**given, "decision": "exclude", "rule": None}


@case("screen_work", "bad_argument")
def _():
    bench, given = before("screen_work")
    return bench, {**given, "decision": "include", "rule": "design"}


@case("screen_work", "not_primary")
def _():
    bench, _ = before("submit_synthesis", lambda given, world: bool(world.works["linked"]))
    return bench, {"work_id": bench.world.works["linked"][0], "decision": "include"}


@case("appraise_work", "wrong_state")
def _():
    bench, given = before("screen_work")
    reviewer = bench.world.panels[bench.world.open_id][0].author_id
    return bench, {"work_id": given["work_id"], "reviewer_id": reviewer, "judgement": "low"}


@case("appraise_work", "unknown_id")
def _():
    bench, given = before("appraise_work")
    return bench, {**given, "reviewer_id": bench.world.panels[bench.world.last][0].author_id}


@case("appraise_work", "reviewer_quota")
def _():
    """All appraisals of a round given to one reviewer, until nothing of the quota is left."""
    bench, _ = before("commit_round")
    world = bench.world
    ledger = world.ledgers["reviewers"]
    works = [w for w in world.round(world.open_id).works if world.appraisal(w)]
    for reviewer in world.panels[world.open_id]:
        mine = [w for w in works if reviewer.author_id not in world.catalogue.authors_of[world.work(w).paper_id]]
        if len(mine) > reviewer.quota:
            break
    for work_id in mine:
        held = world.appraisal(work_id).content
        if held.reviewer_id == reviewer.author_id:
            continue
        given = {"work_id": work_id, "reviewer_id": reviewer.author_id, "judgement": held.judgement}
        if not ledger.free(f"{world.open_id}/{reviewer.author_id}"):
            return bench, given
        bench.do("appraise_work", **given)
    raise AssertionError("the quota is never used up")


@case("appraise_work", "reviewer_is_author")
def _():
    bench, given = before("appraise_work")
    world = bench.world
    author = world.catalogue.authors_of[world.work(given["work_id"]).paper_id][0]
    world.put("reviewers", f"{world.open_id}/{author}", Reviewer(world.open_id, author, 1))
    return bench, {**given, "reviewer_id": author}


# -- annotations and calibrations ------------------------------------------------------------------------------------


@case("annotate_link", "stale_input")
def _():
    bench, given = before("annotate_link", renewed("work"))
    return bench, {**given, "work": older(given["work"])}


@case("annotate_link", "wrong_state")
def _():
    bench, given = before("annotate_link")
    bench.do("screen_work", work_id=given["work"][:9], decision="exclude", rule="sample")
    return bench, given


@case("annotate_link", "unknown_id")
def _():
    bench, given = before("annotate_link")
    return bench, {**given, "row": 99}


@case("annotate_study", "stale_input")
def _():
    bench, given = before("annotate_study", renewed("work"))
    return bench, {**given, "work": older(given["work"])}


@case("annotate_study", "bad_argument")
def _():
    bench, given = before("annotate_study")
    return bench, {**given, "variance": "0.00000000"}


@case("annotate_study", "not_primary")
def _():
    bench, given = before("annotate_study", lambda given, world: bool(world.works["linked"]))
    world = bench.world
    linked = world.work(world.works["linked"][0])
    return bench, {**given, "work": linked.ref, "row": 1}


@case("establish_calibration", "stale_input")
def _():
    bench, given = before("establish_calibration", lambda given, world: not given["routes"][0]["link"].endswith("@1"))
    route = given["routes"][0]
    return bench, {**given, "routes": [{**route, "link": older(route["link"])}, *given["routes"][1:]]}


def derived_one(given: dict[str, Any], world: Any) -> bool:
    return given["routes"][0]["parent"] is not None


@case("establish_calibration", "route_mismatch")
def _():
    bench, given = before("establish_calibration", derived_one)
    return bench, {**given, "routes": [{**given["routes"][0], "parent": None}, *given["routes"][1:]]}


@case("establish_calibration", "scope_mismatch")
def _():
    bench, given = before("establish_calibration")
    return bench, {**given, "populations": given["populations"][:1]}


@case("establish_calibration", "wrong_state")
def _():
    bench, given = before("establish_calibration", derived_one)
    return bench, {**given, "calibration_id": given["routes"][0]["parent"].partition("@")[0]}


@case("establish_calibration", "unknown_id")
def _():
    bench, given = before("establish_calibration")
    return bench, {**given, "calibration_id": "cal-none0-101"}


def test_a_parent_is_of_an_earlier_round():
    """A link of the open round ends where another calibration of the same round starts."""
    bench, given = before("establish_calibration", lambda given, world: bool(world.calibrations_of))
    world = bench.world
    instrument_id, made = next(iter(world.calibrations_of.items()))
    parent = world.newest[made[0]]
    link = world.artifacts[given["routes"][0]["link"]]
    content = {n: getattr(link.content, n) for n in link.content.__struct_fields__ if n != "work_id"}
    content["to_instrument_id"] = instrument_id
    answer = bench.do("annotate_link", work=world.work(link.subject).ref, **content)
    routes = [{"link": answer["annotation"], "parent": parent.ref}]
    shared = sorted(set(parent.content.populations) & set(content["populations"]))
    error = bench.assert_refused(
        "route_mismatch", "establish_calibration", **{**given, "routes": routes, "populations": shared}
    )
    assert error["details"] == {"parent": parent.ref}


# -- contributions ---------------------------------------------------------------------------------------------------


@case("interpret_study", "stale_input")
def _():
    bench, given = before("interpret_study", renewed("annotation"))
    return bench, {**given, "annotation": older(given["annotation"])}


@case("interpret_study", "instrument_mismatch")
def _():
    bench, given = before("interpret_study")
    used = bench.world.artifacts[given["calibration"]].content.from_instrument_id
    other = next(i for instrument, ids in bench.world.calibrations_of.items() if instrument != used for i in ids)
    return bench, {**given, "calibration": bench.world.newest[other].ref}


@case("interpret_study", "population_out_of_scope")
def _():
    bench, given = before("interpret_study")
    content = bench.world.artifacts[given["annotation"]].content
    covered = bench.world.artifacts[given["calibration"]].content.populations
    other = next(p for p in ("perinatal", "adolescents", "adults", "older_adults") if p not in covered)
    fields = {n: getattr(content, n) for n in content.__struct_fields__ if n != "work_id"} | {"population": other}
    answer = bench.do("annotate_study", work=bench.world.work(content.work_id).ref, **fields)
    return bench, {**given, "annotation": answer["annotation"]}


@case("contribute_study", "stale_input")
def _():
    bench, given = before("contribute_study", renewed("interpretation"))
    return bench, {**given, "interpretation": older(given["interpretation"])}


@case("contribute_study", "incomplete_bindings")
def _():
    bench, given = before("contribute_study", lambda given, world: len(given["bindings"]) > 2)
    return bench, {**given, "bindings": given["bindings"][:-1]}


@case("contribute_study", "foreign_binding")
def _():
    bench, given = before("contribute_study")
    found = (a for a in bench.world.artifacts.values() if a.kind == "annotation" and a.status == CURRENT)
    other = next(a.ref for a in found if a.ref not in given["bindings"])
    return bench, {**given, "bindings": [*given["bindings"], other]}


@case("contribute_study", "wrong_section")
def _():
    bench, given = before("contribute_study")
    other = next(s.section_id for s in bench.world.sections if s.section_id != given["section_id"])
    return bench, {**given, "section_id": other}


@case("contribute_study", "wrong_state")
def _():
    bench, given = before("contribute_study")
    work_id = bench.world.artifacts[given["interpretation"]].subject
    bench.do("screen_work", work_id=work_id, decision="exclude", rule="design")
    return bench, given


@case("withdraw_contribution", "wrong_state")
def _():
    bench, _ = before("commit_round")
    ref = contributed(bench)[0].ref
    bench.do("withdraw_contribution", contribution=ref, reason="linked")
    return bench, {"contribution": ref, "reason": "linked"}


@case("withdraw_contribution", "stale_input")
def _():
    bench, _ = before("commit_round", in_last_round)
    ref = next(a.ref for a in contributed(bench) if a.version > 1)
    return bench, {"contribution": older(ref), "reason": "linked"}


# -- syntheses, notices, reviews -------------------------------------------------------------------------------------


@case("submit_synthesis", "unaccounted_contribution")
def _():
    bench, given = before("submit_synthesis", lambda given, world: len(given["pooled"]) > 1)
    return bench, {**given, "pooled": given["pooled"][1:]}


@case("submit_synthesis", "stale_input")
def _():
    bench, given = before("submit_synthesis", lambda given, world: any(not r.endswith("@1") for r in given["pooled"]))
    pooled = [r if r.endswith("@1") else older(r) for r in given["pooled"]]
    return bench, {**given, "pooled": pooled}


@case("submit_synthesis", "unknown_id")
def _():
    bench, given = before("submit_synthesis")
    other = next(s.section_id for s in bench.world.sections if s.section_id != given["section_id"])
    return bench, {**given, "section_id": other}


@case("settle_notice", "affected_open")
def _():
    bench, _ = before("list_stale")
    return bench, {"notice_id": bench.world.notices[0].notice_id, "revised": 0, "withdrawn": 0}


@case("settle_notice", "unknown_id")
def _():
    bench, given = before("settle_notice")
    return bench, {**given, "notice_id": "ntc-0099"}


@case("commit_round", "open_notice")
def _():
    bench, _ = before("list_stale")
    return bench, {"round_id": bench.world.open_id, "syntheses": []}


@case("commit_round", "open_work")
def _():
    bench, _ = before("acquire_work")
    return bench, {"round_id": bench.world.open_id, "syntheses": []}


@case("commit_round", "stale_input")
def _():
    bench, given = before("commit_round")
    annotate_again(bench, contributed(bench)[0].content.work_id)
    return bench, given


@case("commit_round", "unused_calibration")
def _():
    """Every study of the round that uses one of its calibrations is excluded after all."""
    bench, given = before("commit_round")
    world = bench.world
    made = {a.id: world.artifacts[a.content.interpretation].content.calibration for a in contributed(bench)}
    unused = next(iter(made.values()))
    for contribution in contributed(bench):
        if made[contribution.id] == unused:
            bench.do("withdraw_contribution", contribution=contribution.ref, reason="withdrawn")
            bench.do("screen_work", work_id=contribution.content.work_id, decision="exclude", rule="design")
    left = {
        s.section_id: [a.ref for a in contributed(bench) if a.content.section_id == s.section_id]
        for s in world.sections
    }
    syntheses = [
        bench.do(
            "submit_synthesis", round_id=given["round_id"], section_id=section_id, pooled=refs, set_aside=[],
            effect="0.000000", variance="1.00000000", q="0.0000", verdict="mixed",
        )["synthesis"]
        for section_id, refs in left.items()
    ]  # fmt: skip
    return bench, {**given, "syntheses": syntheses}


@case("release_review", "flow_sum")
def _():
    bench, given = before("release_review")
    return bench, {"flow": {**given["flow"], "links": given["flow"]["links"] + 1}}


@case("release_review", "stale_input")
def _():
    bench, given = before("release_review")
    annotate_again(bench, contributed(bench)[0].content.work_id)
    return bench, given


@case("release_review", "wrong_state")
def _():
    bench, _ = before("commit_round")
    return bench, {"flow": {"reports": 0, "links": 0, "linked": 0, "excluded": {}, "included": 0, "pooled": 0}}


@pytest.mark.parametrize(("tool", "code"), list(CASES), ids=lambda value: value)
def test_it_is_refused_and_changes_nothing(tool, code):
    bench, arguments = CASES[tool, code]()
    bench.assert_refused(code, tool, **arguments)


def test_every_declared_code_has_its_case():
    declared = {(t.name, code) for t in RESEARCH.own_tools.values() for code in t.refusals}
    assert declared <= set(CASES)


def test_after_the_release_everything_is_frozen():
    bench = done()
    world = bench.world
    contribution = contributed(bench)[0].ref
    bench.assert_refused("wrong_state", "withdraw_contribution", contribution=contribution, reason="linked")
    bench.assert_refused("wrong_state", "open_round", round_id=world.last)
    bench.assert_refused("wrong_state", "commit_round", round_id=world.last, syntheses=[])


def test_the_last_round_may_be_mended_and_committed_again():
    bench, given = before("release_review")
    world = bench.world
    review = world.newest_of("review", world.last)
    answer = bench.do("commit_round", round_id=world.last, syntheses=review.content.syntheses)
    assert answer["review"] == f"{review.id}@2"
    bench.do("release_review", **given)
    assert bench.evaluate().success
