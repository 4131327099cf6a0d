"""What is committed is whole: every table and figure of the paper, from both sources, and totals that reconcile."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from skillhorizon import params
from skillhorizon.analysis import mea, mea_tables, plots, recovery, results
from skillhorizon.analysis.frames import MEASURED, PUBLISHED, read
from skillhorizon.analysis.populations import Traces

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "data" / "results"
PNG = b"\x89PNG\r\n\x1a\n"
SOURCES = (PUBLISHED, MEASURED)
TABLES = [f"table{number:02}" for number in range(1, 22)]
FIGURES = [f"figure{number}" for number in range(1, 8)]

pytestmark = pytest.mark.skipif(
    params.load(ROOT / "params.yaml").profile != "paper", reason="what is there belongs to another profile"
)


def measured(name: str) -> pd.DataFrame:
    return read(RESULTS / MEASURED / f"{name}.csv")


def test_the_paper_has_21_tables_and_7_figures_and_so_has_the_code():
    assert list(results.TABLES) == TABLES
    assert ["figure1", *plots.FIGURES] == FIGURES


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_there_as_csv_html_and_latex(name, source):
    frame = read(RESULTS / source / f"{results.TABLES[name].file or name}.csv")
    assert len(frame) > 0
    assert not frame.columns.duplicated().any()
    html = (RESULTS / "typeset" / source / f"{name}.html").read_text()
    tex = (RESULTS / "typeset" / source / f"{name}.tex").read_text()
    rows = sum(len(sheet.rows) for sheet in results.sheets(name, frame))
    assert html.count("<tr>") - html.count("<thead>") == rows
    assert tex.count(r" \\" + "\n") - tex.count(r"\toprule") == rows
    assert ("simulated agents, not language models" if source == MEASURED else "Published") in tex


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_there_as_png_and_svg_and_says_whose_numbers_it_shows(name, source):
    path = ROOT / "figures" / source / name
    assert path.with_suffix(".png").read_bytes().startswith(PNG)
    svg = path.with_suffix(".svg").read_text()
    words = " ".join(re.findall(r"<!-- (.*?) -->", svg, re.S))  # texts are drawn as paths, and noted beside
    expected = "simulated agents, not language models" if source == MEASURED else "Published: language models"
    assert expected in " ".join(words.split())


def test_the_report_holds_them_all():
    text = (RESULTS / "report.html").read_text()
    assert all(f"id='{name}'" in text for name in [*TABLES, *FIGURES])
    assert text.count("data:image/svg+xml;base64,") >= 2 * len(FIGURES)
    assert not re.search(r"(src|href)=['\"](?!#|data:)|@import|url\(", text)


# -- totals of the measured results --------------------------------------------------------------------------------


def test_every_assigned_execution_has_one_end():
    """S + F + B = executions, and the executions are agents times tasks."""
    ends = measured("facts_endpoints")
    assert (ends[["S", "F", "B"]].sum(axis=1) == ends["executions"]).all()
    tasks = sum(len(pd.read_parquet(path, columns=["seed"])) for path in (ROOT / "data" / "tasks").glob("*.parquet"))
    assert set(ends["executions"]) == {tasks} == {1050}
    assert list(ends["model"]) == sorted(params.load(ROOT / "params.yaml").evaluate.agents)


def test_successes_agree_from_table_to_table():
    ends = measured("facts_endpoints").set_index("model")
    costs = measured("table11").set_index("model")["n_success"]
    overall = measured("table01").query("metric == 'TS' and band == 'Overall'").set_index("model")["value"]
    shared = measured("table20").set_index("configuration")
    assert (costs == ends["S"]).all()
    assert ((100 * ends["S"] / ends["executions"]) - overall).abs().max() < 1e-3
    assert (
        shared[["success", "final_failure", "budget_exhausted"]].to_numpy() == ends[["S", "F", "B"]].to_numpy()
    ).all()


def test_table_1_is_the_mean_of_table_9():
    cells = measured("table09")
    means = cells.groupby(["model", "band"])[["lgc", "ts"]].mean()
    for metric in ("lgc", "ts"):
        printed = measured("table01").query("metric == @metric.upper() and band != 'Overall'")
        printed = printed.set_index(["model", "band"])["value"].sort_index()
        assert (means[metric].sort_index() - printed).abs().max() < 1e-3
    assert cells.groupby(["model", "band"])["n"].sum().eq(210).all()


def test_failed_finals_are_those_that_did_not_exhaust_their_allowance():
    finals = measured("table12")
    ends = measured("facts_endpoints")
    assert finals["all_finals"].sum() <= ends["F"].sum()
    assert (finals["events"] <= finals["measured"]).all()
    assert (finals["measured"] <= finals["all_finals"]).all()
    same = measured("facts_stopping_sensitivity").query("unused_above_pct == 50").reset_index(drop=True)
    assert (same["events"] == finals["events"]).all()
    assert measured("table19").groupby("band")["n"].sum().to_dict() == dict(
        zip(finals["band"], finals["measured"], strict=True)
    )


def test_populations_of_recovery_agree():
    """Table 15 by model adds up to Table 16 by band, whose three outcomes add up to 100 %."""
    by_model = measured("table15").groupby("band")[["eligible_executions", "first_failure_cycles"]].sum()
    by_band = measured("table16").set_index("band").sort_index()
    assert (by_model["eligible_executions"] == by_band["executions"]).all()
    assert (by_model["first_failure_cycles"] == by_band["failed_goals"]).all()
    outcomes = by_band[["recovered_pct", "rechecked_no_pass_pct", "no_recheck_pct"]].sum(axis=1)
    assert (outcomes - 100).abs().max() < 1e-3
    cohort = measured("facts_prefix_cohort").set_index("band").sort_index()
    assert (cohort["cycles"] <= by_band["failed_goals"]).all()
    assert (cohort["executions"] <= by_band["executions"]).all()


def test_every_limit_of_retries_looks_at_the_same_cycles():
    """From the cached traces; the populations are those of the committed Table 15."""
    points = recovery.figure5a(recovery.failed_cycles(Traces(ROOT / "data")))
    keys = ["model", "band"]
    assert set(points["x"]) == set(recovery.RETRIES)
    assert points.groupby(keys)[["executions", "cycles"]].nunique().eq(1).all(axis=None)
    found = points[points["x"] == 7].set_index(keys)[["executions", "cycles"]].sort_index()
    printed = measured("table15").set_index(keys)[["eligible_executions", "first_failure_cycles"]].sort_index()
    assert found.to_numpy().tolist() == printed.to_numpy().tolist()
    assert (points.pivot(index=keys, columns="x", values="value_pct").diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)


def test_thresholds_of_delivery_share_their_successes():
    """A success has all its goals, so every threshold has the same numerator, and no smaller denominator below."""
    table = measured("table13")
    assert table.groupby("band")["successes"].nunique().eq(1).all()
    wide = table.pivot(index="band", columns="q_pct", values="eligible")
    assert (wide.diff(axis=1).iloc[:, 1:] <= 0).all(axis=None)
    assert table.groupby("band")["successes"].first().sum() == measured("facts_endpoints")["S"].sum()


# -- the comparison with MEA ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared() -> mea_tables.Comparison:
    found = mea_tables.read(ROOT / "data")
    assert found is not None
    return found


def test_tables_of_mea_hold_what_the_runs_say(compared):
    tables = mea_tables.tables(compared, ROOT / "data" / "published")
    names = ("conditions", "bands", "ends", "overhead", "gain", "paired_gain", "published")
    assert set(tables) == {f"mea_{n}" for n in names}
    assert all(table.source == (PUBLISHED if name == "mea_published" else MEASURED) for name, table in tables.items())
    raw = pd.read_parquet(ROOT / "data" / "traces" / "mea" / "runs.parquet")
    raw = raw[raw["slip"].isna() & (raw["condition"] == mea.SINGLE)]
    profile = raw["agent_profile"].iloc[0]
    (sheet,) = tables["mea_conditions"].sheets
    row = next(r for r in sheet.rows if r[1] == mea.SINGLE)
    own = raw[raw["agent_profile"] == profile]
    assert row[2] == f"{len(own):,}"
    assert row[3].startswith(f"{100 * own['success'].mean():.1f} [")
    assert row[4].startswith(f"{100 * own['lgc'].mean():.1f} [")
    ts = tables["mea_bands"].sheets[0]
    first = next(r for r in ts.rows if r[1] == mea.SINGLE)[2]
    of_band = own[own["band"] == ts.heads[2]]
    assert first.startswith(f"{100 * of_band['success'].mean():.1f} [")


def test_environments_have_the_paper_s_names(compared):
    assert set(compared.runs["env"]) <= {f"{name}Ops" for name in (
        "Social", "Doc", "Logistics", "Field", "Finance", "Research", "Factory"
    )}  # fmt: skip


def test_figures_of_mea_are_drawn(compared):
    assert set(mea_tables.figures(compared)) == {"mea_ts", "mea_lgc", "mea_rates", "mea_run"}
