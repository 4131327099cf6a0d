"""Tables, figures and report: the paper's cells as printed, its relations, our own layout, and both sides labelled."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import msgspec
import numpy as np
import pandas as pd
import pytest
import yaml

from skillhorizon.analysis import consistency, frames, plots, report, results, settings, structure
from skillhorizon.analysis.frames import MEASURED, PUBLISHED, SIMULATED
from tests.support import small_task

ROOT = Path(__file__).parents[1]
PUBLISHED_FOLDER = ROOT / "data" / "published"
SAMPLE = ROOT / "tests" / "sample"


@pytest.fixture(autouse=True)
def _no_window():
    with mpl.rc_context({"backend": "agg"}):
        yield


@pytest.fixture(scope="module")
def paper() -> dict[str, pd.DataFrame]:
    return frames.published(PUBLISHED_FOLDER)


@pytest.fixture(scope="module")
def measured() -> dict[str, pd.DataFrame]:
    found = frames.measured(SAMPLE)
    found["table07"] = settings.table07({"careless": None})
    found["table08"] = settings.table08([small_task("toy").environment])
    return found


def row(name: str, paper, *stub: str, sheet: int = 0) -> list[str]:
    """The cells behind the row of a table that begins with ``stub``; repeated names are printed once."""
    names: list[str] = []
    found = results.sheets(name, paper[name])[sheet]
    for cells in found.rows:
        own = cells[: found.stub]
        names = [cell or above for cell, above in zip(own, names or own, strict=True)]
        if names == list(stub):
            return cells[found.stub :]
    raise AssertionError(f"{name} has no row {stub}")


def text_of(figure) -> str:
    return " ".join(t.get_text() for t in figure.findobj(mpl.text.Text))


# -- tables --------------------------------------------------------------------------------------------------------


def test_cells_are_printed_as_in_the_paper(paper):
    """Read off the paper, one of each form."""
    assert row("table01", paper, "Grok 4.6", "TS") == ["90.0", "81.4", "74.8", "60.5", "52.4", "71.8"]
    assert row("table02", paper, "Mean tool calls", sheet=1) == ["303", "1,159"]
    assert row("table06", paper, "FinanceOps", "Logical stages") == ["4", "6", "10", "16", "24"]
    assert row("table09", paper, "FactoryOps", "Gemini 3.8 Flash")[3:] == ["5.5 / 0.0", "11.5 / 0.0"]
    assert row("table10", paper, "FieldOps", "Mesh convergence", "75")[0] == "93.2 / 77.3"
    assert row("table11", paper, "GPT-5.6 Sol") == ["1,134,881", "2,898", "82.3", "195", "1.11", "1.35"]
    assert row("table12", paper, "1M") == ["706 / 742", "381", "54.0", "36.3"]
    assert row("table13", paper, "512K") == ["74.5", "75.9", "83.1", "100.0"]
    assert row("table14", paper, "Current decayed audience loads") == ["1,222"]
    assert row("table14", paper, "Mean rejection rate (%)", sheet=1) == ["3.4", "5.6", "10.1", "12.4", "16.5"]
    assert row("table15", paper, "GPT-5.6 Sol")[-1] == "180 / 4,234"
    assert row("table17", paper, "LogisticsOps", "159") == ["77.1", "67.0", "97.3", "91.7", "0.49", "1.05"]
    assert row("table18", paper, "None") == ["1,116", "37.0", "23.4", "303"]


@pytest.mark.parametrize("name", results.TABLES)
def test_every_number_of_the_paper_stands_in_the_typeset_tables(name, paper):
    frame = paper[name]
    numeric = frame.select_dtypes("number").melt(value_name="number")["number"].dropna()
    printed = {float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*\.?\d*", results.html(name, frame))}
    assert set(numeric.astype(float)) <= printed
    tex = results.latex(name, frame)
    assert printed - {float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*\.?\d*", tex)} == set()
    assert tex.count(r"\begin{tabular}") == tex.count(r"\end{tabular}") == len(results.sheets(name, frame))


def test_files_hold_the_published_cells(paper, tmp_path):
    of_runs = results.write(paper, PUBLISHED, tmp_path)  # `analysis.tables` writes the others
    assert {f.stem for f in of_runs} == {*results.TABLES} - {*results.OF_THE_SET}
    files = results.write(paper, PUBLISHED, tmp_path, *results.TABLES)
    assert {f.stem for f in files} == {*results.TABLES} - {"table06"} | {"table06_business_scale"}
    for file in files:
        name = frames.key(file.stem)
        source = next(PUBLISHED_FOLDER.glob(f"{name}_*.csv"))
        assert file.read_text() == source.read_text().replace("\r\n", "\n") or frames.read(file).equals(
            frames.read(source)
        ), name


def test_an_interval_stands_in_brackets_and_only_where_it_is_given():
    frame = pd.DataFrame({"a": ["x", "y"], "v": [1.25, 2.0], "v_low": [1.0, np.nan], "v_high": [1.55, np.nan]})
    sheet = results.plain(frame, {"a": ("A", 0), "v": ("V", 1)})
    assert sheet.rows == [["x", "1.2 [1.0, 1.6]"], ["y", "2.0"]]
    assert "<td>1.2 <small>[1.0, 1.6]</small></td>" in results.sheet_html(sheet)


def test_signs_of_the_paper_survive_both_typesettings():
    sheet = results.Sheet(["a & b", "n_x"], [["<b>", "5 %"]])
    assert "a &amp; b" in results.sheet_html(sheet)
    assert "&lt;b&gt;" in results.sheet_html(sheet)
    table = pd.DataFrame({"environment": ["a & b_c 5 %"], "fixed_factors": ["x"], "scale_adjustment": ["≥ 3"]})
    assert r"a \& b\_c 5 \% & x & $\geq$ 3 \\" in results.latex("table04", table)


# -- relations -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checked() -> pd.DataFrame:
    return consistency.checks(PUBLISHED_FOLDER).set_index("claim")


@pytest.mark.parametrize("claim", [claim for claim, *_ in consistency.RELATIONS])
def test_the_paper_agrees_with_itself(claim, checked):
    assert checked.loc[claim, "agrees"], checked.loc[claim]


@pytest.mark.parametrize(
    ("file", "line", "old", "new", "claims"),
    [
        ("table09_env_results", "FinanceOps,Grok 4.6,1M,55.8,20.0", "20.0", "23.3", ["TS of a band", "Table 11"]),
        ("table16_recovery_outcomes", "1M,737,14575", "14575", "14576", ["Table 16, executions"]),
        ("table12_stopping", "256K,518,543,79", "543,79", "543,80", ["Table 12, measured rate"]),
        ("table17_compaction_visibility", "DocOps,277,first_pass_pct,removed,67.6", "67", "76", ["Table 17, Overall"]),
    ],
)
def test_one_wrong_digit_is_found(file, line, old, new, claims, tmp_path):
    shutil.copytree(PUBLISHED_FOLDER, tmp_path / "p")
    path = tmp_path / "p" / f"{file}.csv"
    text = path.read_text()
    assert text.count(line) == line.count(old) == 1
    path.write_text(text.replace(line, line.replace(old, new)))
    checked = consistency.checks(tmp_path / "p")
    broken = " ".join(checked.loc[~checked["agrees"], "claim"])
    assert all(claim in broken for claim in claims), broken


# -- measured ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", results.TABLES)
def test_measured_tables_have_the_layout_of_the_published_ones(name, paper, measured):
    assert set(paper[name].columns) <= set(measured[name].columns)

    blocks = 0 if measured[name].empty else len(results.sheets(name, measured[name]))
    assert results.html(name, measured[name]).count("<table>") == blocks


def test_agents_are_not_called_models(paper, measured):
    assert results.sheets("table01", paper["table01"])[0].heads[0] == "Model"
    assert results.sheets("table01", measured["table01"])[0].heads[0] == "Agent"


def test_measured_totals_reconcile(measured):
    ends = measured["facts_endpoints"]
    assert (ends[["S", "F", "B"]].sum(axis=1) == ends["executions"]).all()
    cells = measured["table09"]
    assert cells.groupby("model")["n"].sum().to_dict() == ends.set_index("model")["executions"].to_dict()
    overall = measured["table01"].query("band == 'Overall' and metric == 'TS'").set_index("model")["value"]
    pooled = (cells["ts"] * cells["n"]).groupby(cells["model"]).sum() / cells.groupby("model")["n"].sum()
    pd.testing.assert_series_equal(overall, pooled, check_names=False)
    np.testing.assert_allclose(measured["figure4a"].groupby("band")["pct"].sum(), 100)
    for column in (c for c in measured["table16"] if c.endswith("_low")):
        value = column.removesuffix("_low")
        inside = measured["table16"][value].between(measured["table16"][column], measured["table16"][f"{value}_high"])
        assert inside.all()


def test_metrics_are_the_cells_of_table_1(measured):
    found = results.metrics(measured)
    table = measured["table01"].query("model == 'hasty' and metric == 'LGC' and band == '64K'")
    assert found["hasty"]["LGC 64K"] == round(table["value"].item(), 2)
    assert set(found) == {"careless", "forgetful", "hasty"}


def test_without_other_agents_the_reference_is_measured(tmp_path):
    shutil.copytree(SAMPLE / "tasks", tmp_path / "tasks")
    shutil.copytree(SAMPLE / "traces" / "reference", tmp_path / "traces" / "reference")
    found = frames.measured(tmp_path)
    assert set(found["table01"]["value"]) == {100.0}
    for name, (_, make) in plots.FIGURES.items():
        assert SIMULATED in text_of(make(found, MEASURED)), name
    assert "no execution that this table speaks of" in results.html("table18", found["table18"])
    for name in set(results.TABLES) & set(found):
        assert results.html(name, found[name])


def test_settings_of_a_simulated_agent_are_its_rates():
    class Profile(msgspec.Struct):
        slip: float = 0.0
        batch: int = 1

    class Agent:
        profile = Profile(slip=0.25)

    table = settings.table07({"a": Agent(), "b": object()}).set_index("model")
    assert table.loc["a", "reasoning_setting"] == "slip 0.25"
    assert table.loc["b", "reasoning_setting"] is None or pd.isna(table.loc["b", "reasoning_setting"])


def test_goals_are_told_in_the_evaluator_s_words():
    env = small_task("toy").environment
    table = settings.table08([env])
    first = env.scoring.local_predicates[0].test.__doc__.strip().splitlines()[0].rstrip(".")
    assert table["local_completion"].item().startswith(first)
    assert table["additional_task_requirements"].item().count(";") == len(env.scoring.delivery_predicates) - 1


# -- figures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", plots.FIGURES)
def test_both_sides_of_a_figure_have_the_same_panels_and_say_whose_numbers_they_are(name, paper, measured):
    make = plots.FIGURES[name][1]
    left, right = make(paper, PUBLISHED), make(measured, MEASURED)
    assert "Published: language models" in text_of(left)
    assert SIMULATED in text_of(right)
    lettered = re.compile(r"\([a-d]\) [A-Z]")
    assert lettered.findall(text_of(left)) == lettered.findall(text_of(right))
    if name in ("figure2", "figure7"):
        assert len(left.axes) == len(right.axes) == 8


def test_figure_2_draws_table_9(paper):
    axes = next(a for a in plots.figure2(paper, PUBLISHED).axes if a.get_title() == "LogisticsOps")
    heights = {tuple(line.get_ydata()) for line in axes.lines}
    assert (100.0, 96.7, 100.0, 96.7, 83.3) in heights
    assert len(heights) == 5


def test_figure_5_says_where_the_text_has_no_numbers(paper):
    assert text_of(plots.figure5(paper, PUBLISHED)).count("no number in the text") == 2


def test_figures_repeat_to_the_byte(paper, tmp_path):
    for folder in ("a", "b"):
        plots.write(paper, PUBLISHED, tmp_path / folder, "figure4")
    for suffix in ("png", "svg"):
        first, second = (tmp_path / f / PUBLISHED / f"figure4.{suffix}" for f in "ab")
        assert first.read_bytes() == second.read_bytes()


def test_figure_1_marks_what_an_update_makes_stale():
    task = small_task("toy")
    modules = list(task.graph)
    events = pd.DataFrame(
        {
            "step": [1, 2, 3],
            "goal": [modules[0], modules[1], None],
            "check": [True, True, None],
            "invalidated": [[], [], [modules[0], "elsewhere"]],
            "call_tokens": [10, 20, 30],
            "observation_tokens": [1, 2, 3],
        }
    )
    drawn = structure.of_task(task, events)
    assert drawn.stale == {modules[0]}
    figure = structure.figure1(drawn, MEASURED)
    assert "3 calls and observations, L = 66 tokens" in text_of(figure)
    accepted = next(a for a in figure.axes if a.get_ylabel() == "Goals accepted").lines[0]
    assert list(accepted.get_ydata()) == [1, 2, 1]


def test_figure_1_does_not_depend_on_hashes():
    """Texts hash differently in every process."""
    code = (
        "from skillhorizon.analysis import structure; from tests.support import small_task;"
        "print(structure._places(small_task('docs').graph))"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(shown) == 1


def test_the_paper_s_figure_1_has_its_eight_units():
    text = text_of(structure.figure1(structure.published(), PUBLISHED))
    assert all(f"m{n}" in text for n in range(1, 9))
    assert "the text does not say" in text.replace("\n", " ")


# -- report --------------------------------------------------------------------------------------------------------


def test_the_report_holds_everything_and_needs_nothing(paper, measured, tmp_path, capsys):
    data, pictures = tmp_path / "data", tmp_path / "figures"
    results.write(paper, PUBLISHED, data / "results", *results.TABLES)
    results.write(measured, MEASURED, data / "results", *results.TABLES, *report.FACTS)
    plots.write(paper, PUBLISHED, pictures, "figure6")
    assert report.main([str(data), str(pictures)]) == 0
    text = (data / "results" / "report.html").read_text()
    assert all(f"id='{name}'" in text for name in [*results.TABLES, *report.FIGURES])
    assert all(f"id='defined_{name}'" in text for name in report.DEFINITIONS)
    assert text.count("data:image/svg+xml;base64,") == 1
    assert not re.search(r"(src|href)=['\"](?!#|data:)", text)
    assert text.count(SIMULATED) >= 28
    assert "An execution is one assigned pair of an agent and a task" in text
    typeset = {p.relative_to(data / "results" / "typeset").as_posix() for p in (data / "results").rglob("*.tex")}
    assert typeset == {f"{side}/{name}.tex" for side in (PUBLISHED, MEASURED) for name in results.TABLES}
    assert report.main([str(data), str(pictures)]) == 0
    assert (data / "results" / "report.html").read_text() == text


def test_every_link_of_the_report_leads_somewhere_and_wide_tables_scroll_in_a_labelled_box(paper, measured):
    text = report.report({PUBLISHED: paper, MEASURED: measured}, Path("none"), pd.DataFrame(), pd.DataFrame())
    anchors = re.findall(r" id='([^']+)'", text)
    assert len(set(anchors)) == len(anchors)
    assert set(re.findall(r"href='#([^']+)'", text)) <= set(anchors)
    assert set(report.SECTIONS) <= set(anchors)
    boxes = re.findall(r"<div class='side (published|measured)[^>]*><h4>([^<]+)</h4>(.*?)</div>(?:</div>)?", text, re.S)
    assert sum(body.count("<table") for *_, body in boxes) == text.count("<table")
    assert all(body.startswith("<div class='scroll'") for *_, body in boxes if "<table" in body)
    for source, label, _ in boxes:
        assert label.startswith("published: " if source == PUBLISHED else "measured here: ")


def test_text_is_set_flush_left_and_numbers_right_whatever_they_begin_with():
    rows = [["a", "12 invoices", "generated", "–", "3–4"], ["b", "9 crews", "7", "1.5 [1.0, 2.0]", "10 / 12"]]
    html = results.sheet_html(results.Sheet(["n", "what", "records", "mean", "range"], rows))
    assert re.findall(r"<th( class=\"t\")?>", html) == [' class="t"', ' class="t"', "", "", ""]
    assert '<td class="t">12 invoices</td><td>generated</td><td>–</td><td>3–4</td>' in html


def test_the_report_shows_mea_and_growth_apart_from_the_paper(tmp_path, paper, capsys):
    data, pictures = tmp_path / "data", tmp_path / "figures"
    (data / "traces").mkdir(parents=True)
    for name in ("published", "tasks", "traces/mea"):
        (data / name).symlink_to(ROOT / "data" / name)
    results.write(paper, PUBLISHED, data / "results", *results.TABLES)
    (data / "results" / MEASURED).mkdir()
    shutil.copy(ROOT / "data" / "results" / MEASURED / "dependencies.csv", data / "results" / MEASURED)
    assert report.main([str(data), str(pictures)]) == 0
    text = (data / "results" / "report.html").read_text()
    growth = text[text.index("<h2 id='growth'") : text.index("<h2 id='mea'")]
    section = text[text.index("<h2 id='mea'") : text.index("<h2 id='definitions'")]
    assert growth.count("FactoryOps") == 1
    assert section.count(f"measured here: {SIMULATED}; not in the paper") == section.count("side measured") == 10
    assert section.count(report.ELSEWHERE) == section.count("side published") == 1
    assert section.count("data:image/svg+xml;base64,") == 4
    assert not re.search(r"(src|href)=['\"](?!#|data:)", section)
    made = {p.name: p.read_bytes() for p in (data / "results" / "mea").iterdir()}
    assert len(made) == 7 * 3 + 4 * 2
    assert report.main([str(data), str(pictures)]) == 0
    assert {p.name: p.read_bytes() for p in (data / "results" / "mea").iterdir()} == made
    assert (data / "results" / "report.html").read_text() == text


def test_a_report_without_tables_is_one_clear_line(tmp_path, capsys):
    assert report.main([str(tmp_path), str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: no published tables in ")
    assert err.count("\n") == 1


def test_stages_own_every_table_and_figure_of_both_sides():
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    made = {
        next(iter(out)) if isinstance(out, dict) else out
        for stage in stages.values()
        for kind in ("outs", "plots", "metrics")
        for out in stage.get(kind, [])
    }
    for side in (PUBLISHED, MEASURED):
        files = {f"data/results/{side}/{results.TABLES[name].file or name}.csv" for name in results.TABLES}
        assert files <= made
        assert {f"figures/{side}/figure{n}.{kind}" for n in range(1, 8) for kind in ("png", "svg")} <= made
