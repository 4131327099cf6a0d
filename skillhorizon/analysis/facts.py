"""What a page about a task begins with."""

from __future__ import annotations

import pandas as pd

from skillhorizon.core.task import Task


def facts(task: Task) -> pd.DataFrame:
    """One column, named after the task: its configuration, workload, budget and digest, and its graph's measures."""
    values = {
        "configuration": task.config.id,
        "workload": task.workload,
        "budget": task.budget,
        "digest": task.digest[:16],
        **task.graph.measures,
    }
    return pd.Series(values, name=task.id).to_frame()
