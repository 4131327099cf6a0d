"""What executions cost (paper D.1, Table 11).

Attempts are charged attempts, compactions are adopted summaries; of a run that was continued, the shared part is
counted once, since it is one execution. Utilisation is 100 U / B with the run's own allowance. U / R compares the
successful executions with the reference's calls.
"""

from __future__ import annotations

import pandas as pd

from skillhorizon.analysis.populations import plain


def table11(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 11: totals and median utilisation by model, and median and 90th percentile of U / R of its successes."""
    groups = runs.assign(used=100 * runs["attempts"] / runs["B"]).groupby("model", observed=True)
    won = runs[runs["success"]]
    ratios = (won["attempts"] / won["R"]).groupby(won["model"], observed=True)
    table = pd.DataFrame(
        {
            "attempts": groups["attempts"].sum(),
            "compactions": groups["compactions"].sum(),
            "median_utilization_pct": groups["used"].median(),
            "n_success": groups["success"].sum().astype(int),
            "success_median_u_over_r": ratios.median(),
            "success_p90_u_over_r": ratios.quantile(0.9),
        }
    )
    return plain(table.rename_axis("model").reset_index())
