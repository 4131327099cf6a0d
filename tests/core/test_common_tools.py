from __future__ import annotations

from typing import Any

from skillhorizon.core.gateway import Gateway
from tests.toy.world import SKILLS, ToyWorld


def result(gateway: Gateway, name: str, **arguments: Any) -> Any:
    observation = gateway.call(name, arguments)
    assert observation["ok"], observation
    return observation["result"]


def code(gateway: Gateway, name: str, **arguments: Any) -> str:
    return str(gateway.call(name, arguments)["error"]["code"])


def test_the_brief_is_the_tasks_public_side(gateway, task):
    assert result(gateway, "read_task_brief") == task.brief


def test_skills_are_listed_read_and_run(gateway):
    (listed,) = result(gateway, "list_skills")["items"]
    assert listed["name"] == "quote-parcel"
    text = (SKILLS / "quote-parcel" / "SKILL.md").read_text(encoding="utf-8")
    assert result(gateway, "read_skill_file", skill="quote-parcel") == {
        "skill": "quote-parcel",
        "path": "SKILL.md",
        "text": text,
    }
    figures = {"grams": 2000, "cents_per_kg": 150, "surcharge": 35}
    assert result(gateway, "run_skill_script", skill="quote-parcel", script="price", input=figures) == {
        "output": {"cents": 335}
    }
    assert code(gateway, "read_skill_file", skill="quote-parcel", path="../../world.py") == "unknown_id"
    assert code(gateway, "read_skill_file", skill="no-such") == "unknown_id"
    assert code(gateway, "run_skill_script", skill="quote-parcel", script="no_such", input={}) == "unknown_id"


def test_declarations_are_labels(gateway):
    assert result(gateway, "begin_skill", skill="quote-parcel") == {"skill_run_id": "run-1", "skill": "quote-parcel"}
    assert result(gateway, "begin_skill", skill="anything") == {"skill_run_id": "run-2", "skill": "anything"}
    ended = {"skill": "quote-parcel", "outcome": "blocked"}
    assert result(gateway, "finish_skill", **ended) == ended
    assert code(gateway, "finish_skill", skill="quote-parcel", outcome="certified") == "bad_argument"


def test_notices_are_listed_from_a_sequence_on_page_by_page(gateway):
    for n in range(1, 46):
        gateway.world.announce("kind", [f"sub-{n:05d}"], f"text {n}")
    first = result(gateway, "list_notices")
    assert [n["sequence"] for n in first["items"]] == list(range(1, 21))
    assert first["next_cursor"] == "p20"
    assert first["items"][0] == {
        "notice_id": "ntc-0001",
        "sequence": 1,
        "kind": "kind",
        "subject_ids": ["sub-00001"],
        "text": "text 1",
    }
    last = result(gateway, "list_notices", since=20, cursor="p20")
    assert ([n["sequence"] for n in last["items"]], last["next_cursor"]) == ([41, 42, 43, 44, 45], None)
    assert result(gateway, "list_notices", since=45)["items"] == []
    assert result(gateway, "list_notices", since=10**30)["items"] == []
    assert code(gateway, "list_notices", since=-1) == "bad_argument"


def test_artifacts_are_listed_without_and_read_with_their_content(gateway):
    world: ToyWorld = gateway.world
    subjects = list(world.tables["parcels"])
    for subject in subjects:
        world.publish("quote", subject, {"cents": 1}, [], basis={"secret": 1})
    old, new = (world.publish("closure", subjects[0], {}, []).ref for _ in range(2))
    page = result(gateway, "list_artifacts", kind="quote", limit=3)
    assert [row["ref"] for row in page["items"]] == sorted(f"quo-{s[4:]}@1" for s in subjects)[:3]
    assert page["items"][0].keys() == {"ref", "kind", "subject", "status"}
    assert [r["ref"] for r in result(gateway, "list_artifacts", subject_id=subjects[0])["items"]] == [
        old, new, f"quo-{subjects[0][4:]}@1",
    ]  # fmt: skip
    assert [r["ref"] for r in result(gateway, "list_artifacts", status="superseded")["items"]] == [old]
    read = result(gateway, "get_artifact", ref=old)
    assert (read["status"], read["cause"], read["content"]) == ("superseded", new, {})
    assert "basis" not in read
    assert code(gateway, "get_artifact", ref="quo-00000@1") == "unknown_id"
