"""A small toy task and a Gateway on its world, fresh for every test."""

from __future__ import annotations

import hypothesis
import pytest

from skillhorizon.core.gateway import Gateway
from skillhorizon.core.task import Task
from tests.toy import ENVIRONMENT

# The same examples in every run: a test that fails fails for everybody.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True)
hypothesis.settings.load_profile("same")


@pytest.fixture
def task() -> Task:
    """Twelve parcels in three routes, each closed after the one before it; the twelfth has a companion."""
    return ENVIRONMENT.build(ENVIRONMENT.config("64K", "letters/chain"), seed=1, size=12)


@pytest.fixture
def gateway(task: Task) -> Gateway:
    return task.open()
