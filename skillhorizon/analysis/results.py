"""Tables 1 to 21, typeset: the same code for the paper's numbers and for this project's.

``sheets(name, frame)`` lays a frame out as the paper's table is laid out; ``html`` and ``latex`` write it, ``write``
the CSV. Numbers keep the paper's decimals. An interval stands in brackets behind its value.
"""

from __future__ import annotations

import html as markup
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from skillhorizon.analysis.frames import MODELS, SOURCES, Frames, bands_of, in_order

MISSING = "–"
NOTHING = "no execution that this table speaks of"
LONG = 36
"""Characters from which on a text is set as a paragraph."""

Layout = Callable[[pd.DataFrame], "list[Sheet]"]


class Sheet(NamedTuple):
    """One block of a table: heads of the columns, of which the first ``stub`` name the row, and rows of text."""

    heads: list[str]
    rows: list[list[str]]
    stub: int = 1
    title: str = ""


class Item(NamedTuple):
    """What a table is called and how it is laid out. ``file`` is the stem of its CSV."""

    title: str
    layout: Layout
    file: str = ""


# -- numbers -------------------------------------------------------------------------------------------------------


def number(value: Any, decimals: int = 1) -> str:
    """A number as the paper prints it, thousands grouped; text as it is."""
    if value is None or pd.isna(value):
        return MISSING
    return value if isinstance(value, str) else f"{value:,.{decimals}f}"


def values(frame: pd.DataFrame, column: str, decimals: int = 1) -> pd.Series:
    """A column as text, with its interval where the frame has one."""
    text = frame[column].map(lambda v: number(v, decimals)).astype(object)
    low, high = f"{column}_low", f"{column}_high"
    if low not in frame or high not in frame:
        return text
    given = frame[low].notna() & frame[high].notna()
    ends = [f" [{number(a, decimals)}, {number(b, decimals)}]" for a, b in zip(frame[low], frame[high], strict=True)]
    return text.where(~given, text + pd.Series(ends, index=frame.index, dtype=object))


def plain(frame: pd.DataFrame, columns: dict[str, tuple[str, int]], stub: int = 1, title: str = "") -> Sheet:
    """Columns as they stand, each under a head and with its decimals; what the frame lacks is left out."""
    kept = {name: how for name, how in columns.items() if name in frame}
    cells = [values(frame, name, decimals) for name, (_, decimals) in kept.items()]
    rows = [list(row) for row in zip(*cells, strict=True)]
    return Sheet([head for head, _ in kept.values()], _merged(rows, stub), stub, title)


def crossed(
    frame: pd.DataFrame, rows: dict[str, str], column: str, text: pd.Series, order: Sequence[Any], title: str = ""
) -> Sheet:
    """``text`` of each row of the frame, put where its row keys meet its value of ``column``."""
    if frame.empty:
        return Sheet([*rows.values()], [], len(rows), title)
    cells = dict(zip(zip(*(frame[k] for k in [*rows, column]), strict=True), text, strict=True))
    keys = list(dict.fromkeys(zip(*(frame[k] for k in rows), strict=True)))
    body = [[*(number(k, 0) for k in key), *(cells.get((*key, c), MISSING) for c in order)] for key in keys]
    return Sheet([*rows.values(), *(number(c, 0) for c in order)], _merged(body, len(rows)), len(rows), title)


def _merged(rows: list[list[str]], stub: int) -> list[list[str]]:
    """A name that repeats from the row above, with all before it, is printed once."""
    merged = []
    for above, row in zip([[], *rows], rows, strict=False):
        same = 0
        while same < stub - 1 and above[: same + 1] == row[: same + 1]:
            same += 1
        merged.append(["" if i < same else cell for i, cell in enumerate(row)])
    return merged


def _pair(frame: pd.DataFrame, first: str, second: str, decimals: int = 1, by: str = " / ") -> pd.Series:
    plain_cells = frame[[first, second]]  # two intervals in one cell could not be read
    return values(plain_cells, first, decimals) + by + values(plain_cells, second, decimals)


# -- layouts -------------------------------------------------------------------------------------------------------


def _table01(frame: pd.DataFrame) -> list[Sheet]:
    order = [*(b for b in bands_of(frame) if b != "Overall"), "Overall"]
    return [crossed(frame, {"model": "Model", "metric": "Metric"}, "band", values(frame, "value"), order)]


def _table02(frame: pd.DataFrame) -> list[Sheet]:
    return [
        crossed(
            part, {"metric": "Metric"}, "group", _by_metric(part), in_order(part["group"], ()), _words(str(section))
        )._replace(heads=["Metric", *map(_words, in_order(part["group"], ()))])
        for section, part in _named(frame).groupby("section", sort=False)
    ]


_DECIMALS = {"additional_checks": 2, "mean_tool_calls": 0}
_METRICS = {
    "first_check_acceptance_pct": "First-check acceptance (%)",
    "first_pass_pct": "First pass (%)",
    "ever_accepted_pct": "Ever accepted (%)",
    "additional_checks": "Additional checks",
    "lgc_pct": "LGC (%)",
    "ts_pct": "TS (%)",
    "mean_tool_calls": "Mean tool calls",
}


def _by_metric(frame: pd.DataFrame) -> pd.Series:
    """The values of a long frame, each with the decimals of its metric."""
    decimals = frame["metric"].map({_METRICS[m]: d for m, d in _DECIMALS.items()}).fillna(1).astype(int)
    parts = [values(part, "value", d) for d, part in frame.groupby(decimals)]
    return pd.concat(parts).reindex(frame.index) if parts else pd.Series([], dtype=object)


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(metric=frame["metric"].map(lambda m: _METRICS.get(m, m)))


def _words(name: str) -> str:
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]


def _table03(frame: pd.DataFrame) -> list[Sheet]:
    shown = frame.assign(seed_records=frame["seed_records"].astype(object))
    shown.loc[frame["seed_records_kind"] == "generated", "seed_records"] = "generated"
    rows = []
    for (environment, records, skills), part in shown.groupby(["environment", "seed_records", "skills"], sort=False):
        named = [
            name if pd.isna(count) else f"{number(count, 0)} {name}"
            for name, count in zip(part["resource"], part["count"], strict=True)
        ]
        rows.append([str(environment), ", ".join(named), number(records, 0), number(skills, 0)])
    return [Sheet(["Environment", "Resources", "Seed records", "Skills"], rows)]


def _table05(frame: pd.DataFrame) -> list[Sheet]:
    heads = {
        "band": ("Band", 0),
        "lower_exclusive": ("More than (tokens)", 0),
        "upper_inclusive": ("At most (tokens)", 0),
    }
    return [plain(frame, heads)]


def _table06(frame: pd.DataFrame) -> list[Sheet]:
    whole = frame[["min", "max"]].map(lambda v: number(v, 0))
    text = whole["min"].where(frame["min"] == frame["max"], whole["min"] + "–" + whole["max"])
    return [crossed(frame, {"environment": "Environment", "attribute": "Count"}, "band", text, bands_of(frame))]


def _table09(frame: pd.DataFrame) -> list[Sheet]:
    rows = {"environment": "Environment", "model": "Model"}
    if "lgc_low" not in frame:
        return [crossed(frame, rows, "band", _pair(frame, "lgc", "ts"), bands_of(frame), "LGC / TS (%)")]
    return [
        crossed(frame, rows, "band", values(frame, column), bands_of(frame), title)
        for column, title in (("lgc", "LGC (%)"), ("ts", "TS (%)"))
    ]


def _table10(frame: pd.DataFrame) -> list[Sheet]:
    rows = {"environment": "Environment", "family": "Family", "n": "n"}
    return [crossed(frame, rows, "model", _pair(frame, "lgc", "ts"), in_order(frame["model"], ()), "LGC / TS (%)")]


def _table12(frame: pd.DataFrame) -> list[Sheet]:
    shown = frame.assign(finals=_pair(frame, "measured", "all_finals", 0))
    heads = {
        "band": ("Workload", 0),
        "finals": ("Measured / all finals", 0),
        "events": ("Events", 0),
        "measured_rate_pct": ("Measured rate (%)", 1),
        "all_assigned_pct": ("All assigned (%)", 1),
    }
    return [plain(shown, heads)]


def _table13(frame: pd.DataFrame) -> list[Sheet]:
    order = sorted(frame["q_pct"].unique())
    sheet = crossed(frame, {"band": "Workload"}, "q_pct", values(frame, "task_success_pct"), order)
    return [sheet._replace(heads=["Workload", *(f"q = {number(q, 0)} %" for q in order)])]


def _table14(frame: pd.DataFrame) -> list[Sheet]:
    reasons = frame[frame["section"].isin(["reason", "total"])]
    by_band = frame[frame["section"] == "band"]
    rate = by_band["metric"] == "mean_rejection_rate_pct"
    text = values(by_band, "value", 0).where(~rate, values(by_band, "value", 1))
    names = {"eligible_executions": "Eligible executions", "mean_rejection_rate_pct": "Mean rejection rate (%)"}
    shown = by_band.assign(metric=by_band["metric"].map(lambda m: names.get(m, m)))
    order = bands_of(by_band.rename(columns={"key": "band"}))
    return [
        plain(reasons, {"key": ("Public rejection reason", 0), "value": ("Attempts", 0)}),
        crossed(shown, {"metric": "Workload"}, "key", text, order),
    ]


def _table15(frame: pd.DataFrame) -> list[Sheet]:
    text = _pair(frame, "eligible_executions", "first_failure_cycles", 0)
    title = "Eligible executions / first-failure cycles"
    return [crossed(frame, {"model": "Model"}, "band", text, bands_of(frame), title)]


def _table17(frame: pd.DataFrame) -> list[Sheet]:
    shown = _named(frame)
    shown["under"] = shown["metric"] + ", " + shown["group"]
    rows = {"environment": "Environment", "executions": "Executions"}
    return [crossed(shown, rows, "under", _by_metric(shown), in_order(shown["under"], ()))]


def _columns(stub: int = 1, **heads: tuple[str, int]) -> Layout:
    """The layout of a table that prints its columns as they stand."""
    return lambda frame: [plain(frame, heads, stub)]


TABLES: dict[str, Item] = {
    "table01": Item("Main results: local-goal completion and task success (%)", _table01),
    "table02": Item("Dependency checks and task outcomes across compaction", _table02),
    "table03": Item("Resources, seed records and skills of each environment", _table03),
    "table04": Item(
        "Calibration: what is fixed, what is turned",
        _columns(
            environment=("Environment", 0), fixed_factors=("Fixed", 0), scale_adjustment=("How scale is adjusted", 0)
        ),
    ),
    "table05": Item("Workload bands", _table05),
    "table06": Item(
        "Business scale: least and greatest count per environment and band", _table06, "table06_business_scale"
    ),
    "table07": Item(
        "Generation settings",
        _columns(
            model=("Model", 0),
            model_identifier=("Identifier", 0),
            reasoning_setting=("Reasoning", 0),
            max_output_tokens=("Most output tokens", 0),
        ),
    ),
    "table08": Item(
        "Local goals and what delivery asks beyond them",
        _columns(
            environment=("Environment", 0),
            local_goal_unit=("Local goal", 0),
            local_completion=("Complete when", 0),
            additional_task_requirements=("Delivery also needs", 0),
        ),
    ),
    "table09": Item("Results by environment", _table09),
    "table10": Item("Results by task family, pooled over bands", _table10),
    "table11": Item(
        "Cumulative costs, and costs of the successful relative to the reference",
        _columns(
            model=("Model", 0),
            attempts=("Attempts", 0),
            compactions=("Compactions", 0),
            median_utilization_pct=("Median utilization (%)", 1),
            n_success=("Successes", 0),
            success_median_u_over_r=("Median U/R", 2),
            success_p90_u_over_r=("P90 U/R", 2),
        ),
    ),
    "table12": Item("Failed finals with LGC below 25 % and unused allowance above 50 %", _table12),
    "table13": Item("Task success (%) among executions with LGC of at least q", _table13),
    "table14": Item("SocialOps: refusals after a matching successful script output", _table14),
    "table15": Item("Populations of the recovery curves", _table15),
    "table16": Item(
        "What became of failed goals",
        _columns(
            band=("Workload", 0),
            executions=("Executions", 0),
            failed_goals=("Failed goals", 0),
            recovered_pct=("Recovered (%)", 1),
            rechecked_no_pass_pct=("Rechecked, no pass (%)", 1),
            no_recheck_pct=("No recheck (%)", 1),
        ),
    ),
    "table17": Item("Checks with required inputs retained in or removed from the active context", _table17),
    "table18": Item(
        "Outcomes with and without compaction, equal weights over shared strata",
        _columns(
            compaction=("Compaction", 0),
            executions=("Executions", 0),
            lgc_pct=("LGC (%)", 1),
            ts_pct=("TS (%)", 1),
            mean_tool_calls=("Mean tool calls", 0),
        ),
    ),
    "table19": Item(
        "Stopping at unsuccessful finals, by model",
        _columns(
            2,
            model=("Model", 0),
            band=("Workload", 0),
            n=("n", 0),
            median_lgc_pct=("Median LGC (%)", 1),
            median_unused_allowance_pct=("Median unused allowance (%)", 1),
            low_progress_high_allowance_pct=("Low progress, high allowance (%)", 1),
        ),
    ),
    "table20": Item(
        "The same tasks under two interfaces",
        _columns(
            configuration=("Configuration", 0),
            success=("Success", 0),
            final_failure=("Failed final", 0),
            budget_exhausted=("Budget exhausted", 0),
            ts_pct=("TS (%)", 1),
        ),
    ),
    "table21": Item(
        "High completion without delivery in the largest band",
        _columns(
            environment=("Environment", 0),
            lgc=("LGC (%)", 1),
            ts=("TS (%)", 1),
            high_completion_failures=("Failures with LGC ≥ 75 %", 0),
        ),
    ),
}
"""The tables by name of their frame, in the paper's order."""

_OF_AGENTS = {"Model": "Agent", "Reasoning": "Rates of failure"}
"""Heads that are called otherwise where no row is about a model."""

OF_THE_SET = ("table03", "table04", "table05", "table06")


def sheets(name: str, frame: pd.DataFrame) -> list[Sheet]:
    """The blocks of a table. Shape: as in the paper, bands in their order and all else as the frame has it."""
    found = TABLES[name].layout(frame)
    if "model" in frame and not set(MODELS) & set(frame["model"]):
        found = [sheet._replace(heads=[_OF_AGENTS.get(h, h) for h in sheet.heads]) for sheet in found]
    return found


def title(name: str) -> str:
    return f"Table {int(name[5:7])}. {TABLES[name].title}"


# -- typesetting ---------------------------------------------------------------------------------------------------


def html(name: str, frame: pd.DataFrame) -> str:
    """The table as HTML, one ``<table>`` a block."""
    if frame.empty:
        return f"<p class='none'>{NOTHING}</p>"
    return "\n".join(sheet_html(sheet) for sheet in sheets(name, frame))


def sheet_html(sheet: Sheet) -> str:
    kinds = [_kind(sheet, column) for column in range(len(sheet.heads))]

    def row(cells: Sequence[str]) -> str:
        parts = []
        for kind, cell in zip(kinds, cells, strict=True):
            value, interval, rest = cell.partition(" [")
            body = markup.escape(value) + (f" <small>[{markup.escape(rest)}</small>" if interval else "")
            parts.append(f"<td{kind}>{body}</td>")
        return f"<tr>{''.join(parts)}</tr>"

    caption = f"<caption>{markup.escape(sheet.title)}</caption>" if sheet.title else ""
    heads = "".join(f"<th{kind}>{markup.escape(h)}</th>" for kind, h in zip(kinds, sheet.heads, strict=True))
    body = "\n".join(row(cells) for cells in sheet.rows)
    return f"<table>{caption}<thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table>"


def _kind(sheet: Sheet, column: int) -> str:
    """How a column is set: numbers flush right, names flush left, long text left and in lines."""
    if _is_numeric(sheet, column):
        return ""
    longest = _longest(sheet, column)
    return ' class="t w x"' if longest > 3 * LONG else ' class="t w"' if longest > LONG else ' class="t"'


def latex(name: str, frame: pd.DataFrame, note: str = "") -> str:
    """The table as LaTeX (booktabs), with its caption and ``note``."""
    return sheets_latex(name, TABLES[name].title, [] if frame.empty else sheets(name, frame), note)


def sheets_latex(name: str, title: str, blocks_of: Sequence[Sheet], note: str = "") -> str:
    """Blocks as one LaTeX table, which can be referred to as ``tab:<name>``."""
    blocks = "\n\n".join(map(_latex, blocks_of)) or NOTHING
    caption = _escaped(f"{title}. {note}".strip())
    label = f"tab:{name}"
    return f"\\begin{{table}}\n\\centering\\small\n\\caption{{{caption}}}\\label{{{label}}}\n{blocks}\n\\end{{table}}\n"


def _latex(sheet: Sheet) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(_escaped(c) for c in cells) + r" \\"

    kinds = "".join("r" if _is_numeric(sheet, i) else _paragraph(sheet, i) for i in range(len(sheet.heads)))
    rows = [line(row) for row in sheet.rows]
    head = f"\\emph{{{_escaped(sheet.title)}}}\\\\\n" if sheet.title else ""
    inner = "\n".join([r"\toprule", line(sheet.heads), r"\midrule", *rows, r"\bottomrule"])
    return f"{head}\\begin{{tabular}}{{{kinds}}}\n{inner}\n\\end{{tabular}}"


def _paragraph(sheet: Sheet, column: int) -> str:
    return "p{0.28\\linewidth}" if _longest(sheet, column) > LONG else "l"


def _longest(sheet: Sheet, column: int) -> int:
    return max((len(row[column]) for row in sheet.rows), default=0)


def _is_numeric(sheet: Sheet, column: int) -> bool:
    """Whether a column that names no row holds numbers: with intervals, as ranges or as pairs, or none."""
    return column >= sheet.stub and any(_NUMBER.fullmatch(row[column]) for row in sheet.rows)


_NUMBER = re.compile(r"–|[-−]?\d[\d.,\s/–\-−\[\]]*")


_LATEX = str.maketrans(
    {
        "&": r"\&",
        "%": r"\%",
        "_": r"\_",
        "#": r"\#",
        "$": r"\$",
        "–": "--",
        "≥": r"$\geq$",
        "×": r"$\times$",
        "≤": r"$\leq$",
    }
)


def _escaped(text: str) -> str:
    return text.translate(_LATEX)


def _inline(name: str, frame: pd.DataFrame) -> str:
    """The table for a page that has styles of its own, such as a notebook: text is flush left all the same."""
    text = html(name, frame).replace("<caption>", "<caption style='text-align:left'>")
    return re.sub(r' class="t[^"]*"', " style='text-align:left'", text)


class Shown(NamedTuple):
    """A table as a notebook shows it, one source or several side by side."""

    name: str
    sides: Frames

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<div style='margin-right:2em'><em>{markup.escape(SOURCES[source])}</em>{_inline(self.name, frame)}</div>"
            for source, frame in self.sides.items()
        )
        head = markup.escape(title(self.name))
        return f"<b>{head}</b><div style='display:flex;flex-wrap:wrap;align-items:flex-start'>{cells}</div>"

    def __repr__(self) -> str:
        lines = [title(self.name)]
        for source, frame in self.sides.items():
            lines += [SOURCES[source], *([NOTHING] if frame.empty else [])]
            for sheet in [] if frame.empty else sheets(self.name, frame):
                widths = [max(len(row[i]) for row in [sheet.heads, *sheet.rows]) for i in range(len(sheet.heads))]
                for row in [sheet.heads, *sheet.rows]:
                    lines.append("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
        return "\n".join(lines)


def show(name: str, **sides: Frames) -> Shown:
    """A table of the frames of each source that has it: ``show("table01", published=…, measured=…)``."""
    return Shown(name, {source: found[name] for source, found in sides.items() if name in found})


# -- files ---------------------------------------------------------------------------------------------------------


def write(frames: Frames, source: str, folder: str | Path, *names: str) -> list[Path]:
    """Write frames of a source as ``<folder>/<source>/….csv``: what is named, else all facts and all tables but those
    of the task set alone, which ``analysis.tables`` writes.

    Returns the files. The same frames give the same bytes.
    """
    files = []
    for name in names or [n for n in frames if n.startswith(("table", "facts_")) and n not in OF_THE_SET]:
        if name in frames:
            file = TABLES[name].file or name if name in TABLES else name
            text = frames[name].round(4).to_csv(index=False, lineterminator="\n")
            files.append(put(Path(folder) / source / f"{file}.csv", text))
    return files


def metrics(frames: Frames) -> dict[str, dict[str, float]]:
    """What ``dvc metrics`` compares: by agent, LGC and TS by band and over all, in percent."""
    table = frames["table01"]
    found: dict[str, dict[str, float]] = {}
    for model, metric, band, value in zip(*(table[c] for c in ("model", "metric", "band", "value")), strict=True):
        found.setdefault(str(model), {})[f"{metric} {band}"] = round(float(value), 2)
    return found


def put(path: Path, text: str) -> Path:
    """Write a text in one step, so that a reader sees the old or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
    return path
