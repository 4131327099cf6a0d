"""The facts with which a page about a task begins."""

from __future__ import annotations

import pytest

from skillhorizon.analysis.facts import facts
from skillhorizon.core.errors import InputError
from skillhorizon.core.task import Task
from tests.support import small_task


def test_facts_are_one_column_of_the_task():
    task = small_task("toy")
    frame = facts(task)
    assert list(frame.columns) == [task.id]
    column = frame[task.id]
    assert column["configuration"] == task.config.id
    assert (column["workload"], column["budget"]) == (task.workload, task.budget)
    assert task.digest.startswith(column["digest"])
    assert {name: column[name] for name in task.graph.measures} == task.graph.measures


def test_a_task_that_has_not_been_measured_has_none():
    task = small_task("toy")
    with pytest.raises(InputError, match="has not been measured"):
        facts(Task(task.environment, task.config, task.seed, task.size))
