"""Everything that is measured from traces, by the names of the published files.

``measures(Traces("data"))`` reads each table of the traces once and gives frames in the columns of
``data/published/<name>.csv``, with intervals ``x_low`` and ``x_high`` beside them.
"""

from __future__ import annotations

from contextlib import suppress

import pandas as pd

from skillhorizon.analysis import consumers, costs, outcomes, recovery, sampling, scale, stopping, visibility
from skillhorizon.analysis.populations import Traces, endpoints
from skillhorizon.core.errors import InputError


def measures(traces: Traces) -> dict[str, pd.DataFrame]:
    """Name of a table or figure -> its numbers; facts that the text states beside them are under ``facts_…``."""
    return {**of_runs(traces), **of_events(traces)}


def of_runs(traces: Traces) -> dict[str, pd.DataFrame]:
    """What the ends of runs say."""
    runs = traces.runs
    found = {
        "table01_main_results": outcomes.table01(runs),
        "table09_env_results": outcomes.table09(runs),
        "table10_family_results": outcomes.table10(runs),
        "table11_costs": costs.table11(runs),
        "table12_stopping": stopping.table12(runs),
        "table13_conditional_delivery": outcomes.table13(runs),
        "table19_stopping_models": stopping.table19(runs),
        "table20_interfaces": outcomes.table20(runs),
        "table21_high_completion": outcomes.table21(runs),
        "figure2": outcomes.figure2(runs),
        "figure3a": scale.figure3a(runs),
        "figure3b": stopping.figure3b(runs),
        "figure4a": outcomes.figure4a(runs),
        "figure4b": outcomes.figure4b(runs),
        "figure7": scale.figure7(runs),
        "facts_endpoints": endpoints(runs),
        "facts_low_completion": outcomes.low_completion(runs),
        "facts_stopping_sensitivity": stopping.sensitivity(runs),
    }
    with suppress(InputError):  # a smaller profile has no such tasks
        found["figure6"] = sampling.figure6(runs)
    return found


def of_events(traces: Traces) -> dict[str, pd.DataFrame]:
    """What takes a look into the runs, call by call."""
    runs = traces.runs
    failed = recovery.failed_cycles(traces)
    found = {
        "table15_recovery_populations": recovery.table15(failed),
        "table16_recovery_outcomes": recovery.table16(failed),
        "figure5": recovery.figure5(failed, traces.prefixes, runs),
        "figure5a_models": recovery.figure5a(failed),
        "facts_unresolved": recovery.unresolved(failed),
        "facts_prefix_cohort": recovery.cohort_size(failed),
    }
    targets = visibility.targets(traces)
    found |= {
        "table02_dependency_continuity": visibility.table02(targets, runs),
        "table17_compaction_visibility": visibility.table17(targets),
        "table18_compaction_outcomes": visibility.table18(runs),
        "facts_pairs": visibility.pairs(targets, runs),
    }
    found["table14_socialops_rejections"] = consumers.table14(consumers.matched_attempts(traces))
    return found
