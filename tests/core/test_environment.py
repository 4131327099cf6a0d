from __future__ import annotations

import pytest

from skillhorizon.core.errors import InputError
from tests.toy import ENVIRONMENT, tools

COMMON = [
    "begin_skill", "finish_skill", "get_artifact", "list_artifacts", "list_notices", "list_skills", "read_skill_file",
    "read_task_brief", "run_skill_script",
]  # fmt: skip


def test_the_tools_are_the_environments_own_and_the_common_ones_by_name():
    own = ["close_group", "get_parcel", "list_parcels", "list_rates", "list_routes", "list_windows", "quote_parcel"]
    assert list(ENVIRONMENT.tools) == sorted([*COMMON, *own])
    assert ENVIRONMENT.tools["quote_parcel"] is tools.quote_parcel


def test_a_configuration_is_found_by_its_id():
    assert [c.id for c in ENVIRONMENT.configs("64K")] == ["crates/chain", "letters/chain", "crates/fan", "letters/fan"]
    found = ENVIRONMENT.config("128K", "letters/fan")
    assert (found.env, found.family, found.pattern, found.band) == ("toy", "letters", "fan", "128K")
    with pytest.raises(InputError, match="toy has no configuration 'letters/star' at 64K"):
        ENVIRONMENT.config("64K", "letters/star")


def test_a_task_is_built_at_the_guessed_size_unless_another_is_given():
    config = ENVIRONMENT.config("64K", "letters/fan")
    assert ENVIRONMENT.build(config, 1).size == 100
    task = ENVIRONMENT.build(config, 1, 7)
    assert (task.size, task.blueprint.scale, len(task.graph)) == (7, {"Parcels": 7, "Routes": 2}, 10)


def test_the_tool_table_says_of_each_tool_what_it_is():
    table = {row["tool"]: row for row in ENVIRONMENT.tool_table()}
    assert list(table) == list(ENVIRONMENT.tools)
    assert table["quote_parcel"] == {
        "tool": "quote_parcel", "kind": "business", "read_only": False, "charged": True, "counts_into_A": True,
        "refusals": ["wrong_rate", "wrong_companion", "window_full"], "description": tools.quote_parcel.description,
    }  # fmt: skip
    assert {t for t, row in table.items() if not row["charged"]} == {"begin_skill", "finish_skill"}
    assert {t for t, row in table.items() if not row["read_only"]} == {"quote_parcel", "close_group"}
    assert {t for t, row in table.items() if row["counts_into_A"]} == {
        "quote_parcel",
        "close_group",
        "run_skill_script",
    }
