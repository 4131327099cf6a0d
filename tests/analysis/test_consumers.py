"""Which calls repeat a script's output, what queries show, and what consumers refuse (E.2, E.4)."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from skillhorizon.analysis import consumers
from skillhorizon.core import links
from skillhorizon.core.gateway import Event
from skillhorizon.core.serial import canonical
from skillhorizon.core.world import Artifact
from tests.analysis.handmade import events, runs


class Told:
    """Raw events as a gateway keeps them, one response each unless told otherwise."""

    def __init__(self) -> None:
        self.raw: list[Event] = []

    def add(
        self, tool: str, kind: str, arguments: Any, result: Any, ok: bool = True, decision: int | None = None
    ) -> int:
        step = len(self.raw) + 1
        answer = {"ok": True, "result": result} if ok else {"ok": False, "error": result}
        self.raw.append(
            Event(
                step, decision or step, 0, tool, kind, True, ok, None, None, None, None, None, None, (), (),
                canonical({"arguments": arguments, "name": tool}), canonical(answer), None, "full",
            )
        )  # fmt: skip
        return step

    def script(self, output: Any, **more: Any) -> int:
        return self.add("run_skill_script", "script", {}, {"output": output}, **more)

    def publish(self, arguments: Any, **more: Any) -> int:
        return self.add("publish_post", "business", arguments, {}, **more)


OUTPUT = {"post_id": "pst-aaaaa-1", "historical_publication_ids": ["x", "y", "y"], "audience_loads": {"aud-1": 3}}


def matched(told: Told) -> list[tuple[int, int, int]]:
    return [(row["step"], row["source"], row["sources"]) for row in links.matches(told.raw)]


def test_a_consumer_matches_all_earlier_runs_with_its_values_and_counts_once():
    told = Told()
    told.script(OUTPUT)  # 1
    told.script({**OUTPUT, "audience_loads": {"aud-1": 4}})  # 2: other loads
    told.script(OUTPUT)  # 3
    told.publish({**OUTPUT, "historical_publication_ids": ["y", "x", "y"]})  # 4: order of the list does not matter
    assert matched(told) == [(4, 3, 2)]


def test_repeats_and_types_of_numbers_are_kept():
    told = Told()
    told.script(OUTPUT)
    told.publish({**OUTPUT, "historical_publication_ids": ["x", "y"]})
    told.publish({**OUTPUT, "audience_loads": {"aud-1": 3.0}})
    told.publish({**OUTPUT, "audience_loads": {"aud-1": True}})
    told.publish({**OUTPUT, "post_id": "pst-bbbbb-1"})
    told.publish("no object at all")
    assert matched(told) == []


def test_calls_of_the_same_response_and_failed_scripts_do_not_count():
    told = Told()
    told.script(OUTPUT, decision=1)
    told.publish(OUTPUT, decision=1)  # written before the output came
    told.publish(OUTPUT, decision=2)
    assert matched(told) == [(3, 1, 1)]
    failed = Told()
    failed.script(OUTPUT, ok=False)
    failed.script({"error": "no such field"})
    failed.script({})
    failed.publish({**OUTPUT, "error": "no such field"})
    assert matched(failed) == []


def artifact(ref: str) -> Artifact:
    name, version = ref.split("@")
    return Artifact(name, int(version), "contract", "pag-aaaaa", {"flow": 1, "parents": []}, (), "current")


ARTIFACTS = {ref: artifact(ref) for ref in ("ctr-aaaaa@1", "ctr-bbbbb@1", "ctr-ccccc@2")}


def test_a_query_shows_an_artifact_beside_the_whole_of_its_content():
    told = Told()
    whole = {"flow": 9, "parents": ["ctr-bbbbb@1"]}
    told.add("get_artifact", "query", {}, {"ref": "ctr-aaaaa@1", "content": whole, "before": "ctr-ccccc@2"})
    told.add("list_artifacts", "query", {}, {"items": [{"ref": "ctr-bbbbb@1", "status": "current"}]})  # no content
    told.add("list_pages", "query", {}, {"items": [{"contract": "ctr-ccccc@2", "flow": 9}]})  # a field is left out
    told.add("list_contracts", "query", {}, {"items": [{"contract": r, **whole} for r in ("ctr-ccccc@2", "ctr-x@1")]})
    told.add("submit", "business", {}, {"ref": "ctr-bbbbb@1", "content": whole})  # published, which its event tells
    assert links.sightings(told.raw, ARTIFACTS) == [
        {"step": 1, "refs": ["ctr-aaaaa@1"]},
        {"step": 4, "refs": ["ctr-ccccc@2"]},
    ]


def test_rejections_are_counted_by_reason_and_rates_averaged_within_executions():
    def publish(code: str | None = None, **more: Any) -> dict[str, Any]:
        return {"tool": "publish_post", "ok": code is None, "code": code, **more}

    told = events(
        publish("required_historical_sources"),  # r1: 1 of 3 matched attempts rejected
        publish(),
        publish("schema"),  # not matched
        {"tool": "submit_report", "ok": False, "code": "double_credit"},  # another consumer
        publish(),
        publish("current_audience_loads", run_id="r2"),  # r2: 2 of 2
        publish("current_audience_loads", run_id="r2"),
        publish(run_id="r3"),  # r3, 128K: 0 of 1
        publish("schema", run_id="r4"),  # no match: not eligible
    )
    pairs = [("r1", 1), ("r1", 2), ("r1", 4), ("r1", 5), ("r2", 1), ("r2", 2), ("r2", 2), ("r3", 1)]
    social = {"env": "social"}
    frame = runs(social, social, {**social, "band": "128K"}, social)
    attempts = consumers.matched(told, pd.DataFrame(pairs, columns=["run_id", "step"]), frame)
    table = consumers.table14(attempts)
    value = {(r.section, r.key, r.metric): r.value for r in table.itertuples()}
    assert value["reason", "Required historical source identities", "attempts"] == 1
    assert value["reason", "Current decayed audience loads", "attempts"] == 2
    assert value["reason", "Schema", "attempts"] == 0
    assert (value["total", "Rejected", "attempts"], value["total", "Matched", "attempts"]) == (3, 6)
    assert (value["band", "64K", "eligible_executions"], value["band", "128K", "eligible_executions"]) == (2, 1)
    # (1/3 + 2/2) / 2, while 3 of 5 attempts of the band were rejected
    assert value["band", "64K", "mean_rejection_rate_pct"] == pytest.approx(200 / 3)
    assert value["band", "128K", "mean_rejection_rate_pct"] == 0.0
    assert consumers.table14(attempts.iloc[:0]).empty
