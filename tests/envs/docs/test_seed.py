"""The standing portfolio: counts, references that hold, distributions, and that no task's id stands in it."""

from __future__ import annotations

from collections import Counter

import pytest

from skillhorizon.envs import docs
from skillhorizon.envs.docs.build import LANES
from skillhorizon.envs.docs.seed import COUNTS, seed_ids, seed_tables

TABLES = seed_tables()
REFERENCES = {
    "people": {"team_id": "teams"},
    "projects": {"team_id": "teams", "tracker_id": "trackers"},
    "project_members": {"project_id": "projects", "person_id": "people"},
    "pages": {"project_id": "projects", "head_revision": "revisions"},
    "blocks": {"page_id": "pages"},
    "page_links": {"from_page": "pages", "to_page": "pages"},
    "tracker_items": {"tracker_id": "trackers", "page_id": "pages"},
    "revisions": {"page_id": "pages", "author_id": "people"},
    "comments": {"page_id": "pages", "person_id": "people"},
    "decisions": {"page_id": "pages", "revision_id": "revisions"},
    "signoffs": {"decision_id": "decisions", "page_id": "pages", "person_id": "people"},
}


def test_counts_are_those_of_table_3():
    assert {name: len(rows) for name, rows in TABLES.items()} == COUNTS
    assert sum(COUNTS.values()) == 22_612
    assert (COUNTS["projects"], COUNTS["pages"], COUNTS["blocks"]) == (140, 1_600, 6_400)


@pytest.mark.parametrize("table", REFERENCES)
def test_references_hold(table):
    for record in TABLES[table].values():
        for field, target in REFERENCES[table].items():
            assert getattr(record, field) in TABLES[target]


def test_every_project_has_two_reviewers_of_each_role_from_outside():
    for project_id, project in TABLES["projects"].items():
        members = TABLES.members_of[project_id]
        assert len(members) == 9
        outside = Counter(m.role for m in members if TABLES["people"][m.person_id].team_id != project.team_id)
        assert outside == {"engineering": 2, "security": 2}


def test_sizes_are_spread_and_every_project_has_earlier_editions():
    pages = Counter(p.project_id for p in TABLES["pages"].values())
    assert len(pages) == 140
    assert min(pages.values()) >= 5
    assert max(pages.values()) > 2 * min(pages.values())
    assert set(Counter(b.page_id for b in TABLES["blocks"].values()).values()) == {4}


def test_it_cannot_be_written():
    with pytest.raises(TypeError):
        TABLES["pages"]["pag-xxxxx"] = None


def test_no_id_of_a_task_stands_in_the_seed_world():
    environment = docs.ENVIRONMENT
    characters = {i.partition("-")[2] for i in seed_ids()}
    for config in environment.configs("256K")[:4]:
        task = environment.build(config, 2, 30)
        own = {key.partition("-")[2] for rows in task.blueprint.tables.values() for key in rows}
        assert not own & characters
        assert len({row["project_id"] for row in task.brief["pages"]}) == LANES
