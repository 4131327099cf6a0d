"""The report: one HTML file with all tables and figures, published beside measured, and what each number means.

``python -m skillhorizon.analysis.report DATA FIGURES`` reads the CSVs of ``DATA/results/{published,measured}`` and the
figures of ``FIGURES/{published,measured}``, and writes ``DATA/results/report.html`` and, table by table,
``DATA/results/typeset/{published,measured}/table….html`` and ``….tex``. The comparison with MEA (``DATA/traces/mea``)
and the growth of the tasks have sections of their own; tables and figures of the first go to ``DATA/results/mea``.
"""

from __future__ import annotations

import base64
import html as markup
import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from skillhorizon.analysis import figures as pictures
from skillhorizon.analysis import (
    frames,
    horizons,
    mea_tables,
    outcomes,
    plots,
    populations,
    recovery,
    results,
    stopping,
    structure,
    visibility,
)
from skillhorizon.analysis.frames import MEASURED, PUBLISHED, SIMULATED, SOURCES, Frames
from skillhorizon.core.errors import InputError

DEFINITIONS = (
    "populations", "outcomes", "scale", "stopping", "cycles", "recovery", "visibility", "consumers", "costs",
    "sampling", "intervals", "settings", "tables", "horizons", "mea",
)  # fmt: skip
"""The modules that define what is measured: their docstrings are the report's definitions."""

FIGURES = {"figure1": f"Figure 1. {structure.TITLE}", **{name: plots.title(name) for name in plots.FIGURES}}

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2733; --soft: #55616e; --line: #d8dee5; --stripe: #f4f6f9;
  --published: #0067a5; --measured: #a8480a; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e4e9ee; --soft: #a3aebb; --line: #38424d;
  --stripe: #1c2229; --published: #6cb8ee; --measured: #f0a060; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 3.2rem; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 1560px; padding: 0 clamp(.8rem, 2.5vw, 2rem) 4rem; color: var(--ink);
  background: var(--paper); font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 1rem 0 .5rem; }
h2 { margin: 3rem 0 .5rem; border-bottom: 2px solid var(--line); }
h3 { margin: 2.2rem 0 .4rem; font-size: 1.08rem; } p { max-width: 52rem; } a { color: var(--published); }
.bar { position: sticky; top: 0; z-index: 1; background: var(--paper); border-bottom: 1px solid var(--line);
  display: flex; gap: 1.2rem; padding: .5rem 0; overflow-x: auto; white-space: nowrap; font-size: .9rem; }
.contents { columns: 19rem auto; column-gap: 2rem; font-size: .9rem; margin: 1rem 0; }
.contents a { display: block; break-inside: avoid; padding: .12rem 0 .12rem 1rem; text-indent: -1rem; }
.pair { display: flex; flex-wrap: wrap; gap: 1.2rem; align-items: flex-start; }
.pair > .side { flex: 1 1 auto; max-width: 100%; } .pair > .picture { flex: 1 1 min(34rem, 100%); }
.side { border: 1px solid var(--line); border-top: 4px solid var(--published); border-radius: 6px; padding: .6rem .8rem;
  min-width: 0; }
.side.measured { border-top-color: var(--measured); }
.side > h4 { margin: 0 0 .5rem; font-size: .8rem; color: var(--published); font-weight: 600; }
.side.measured > h4 { color: var(--measured); }
.scroll { overflow-x: auto; max-width: 100%; }
.side img { display: block; width: 100%; min-width: 34rem; max-width: 60rem; height: auto;
  background: #fff; border-radius: 3px; }
table { border-collapse: collapse; font-size: .8rem; font-variant-numeric: tabular-nums; margin-bottom: .8rem; }
caption { text-align: left; font-style: italic; color: var(--soft); padding-bottom: .2rem; }
th, td { padding: .18rem .5rem; text-align: right; vertical-align: top; white-space: nowrap; }
th.t, td.t { text-align: left; } td.w { white-space: normal; min-width: 11rem; max-width: 17rem; }
td.x { max-width: 30rem; }
th { vertical-align: bottom; white-space: normal; } thead th { border-bottom: 1.5px solid var(--ink); }
tbody tr:nth-child(even) { background: var(--stripe); } small { color: var(--soft); font-size: .72rem; }
.none { color: var(--soft); font-style: italic; }
p { margin: .4rem 0; overflow-wrap: anywhere; } code { font-size: .9em; overflow-wrap: anywhere; }
pre { font: inherit; font-size: .92em; white-space: pre; overflow-x: auto; margin: .4rem 0; font-family: ui-monospace,
  monospace; } dt { font-weight: 600; margin-top: .5rem; overflow-wrap: anywhere; } dd { margin-left: 1.2rem; }
summary { cursor: pointer; font-size: .9rem; }
@media print { .bar, .contents { display: none; } .side { break-inside: avoid; } .side img { min-width: 0; } }
"""

SECTIONS = {
    "figures": "Figures",
    "tables": "Tables",
    "facts": "Measured beside the tables",
    "growth": "How work grows with the horizon",
    "mea": "MEA beside one context",
    "definitions": "How each number is defined",
}
"""The parts of the page, in order, by their anchors."""

DEPENDENCIES = "dependencies"
FACTS = {
    "facts_endpoints": ("How executions ended", populations.endpoints),
    "facts_low_completion": ("Executions below a quarter of their goals", outcomes.low_completion),
    "facts_stopping_sensitivity": ("Early finals at other thresholds of unused allowance", stopping.sensitivity),
    "facts_unresolved": ("Failed goals that were not recovered", recovery.unresolved),
    "facts_prefix_cohort": ("Population of the budget prefixes", recovery.cohort_size),
    "facts_pairs": ("Population of the comparison across compaction", visibility.pairs),
}
"""What the text states beside the tables, and the function that measures it."""

OF_THE_TASKS = "measured here: generated tasks, no agent"
LABELS = {"figure1": "measured here: one released task and its reference run, no agent"}
"""of measured pictures that no simulated agent has a part in"""
ELSEWHERE = "published: language models, another paper and other benchmarks"


class Beside(NamedTuple):
    """What is in ``folder`` of the comparison with MEA: tables, and titles of figures, by the stem of their files."""

    tables: dict[str, mea_tables.Table]
    figures: dict[str, str]
    folder: Path


def frames_of(folder: Path) -> dict[str, pd.DataFrame]:
    """The CSVs of a folder of results, by name of their frame; facts keep their whole name."""
    found = {}
    for path in sorted(folder.glob("*.csv")):
        if path.stem.endswith("_overlap") or path.stem == DEPENDENCIES:
            continue
        found[frames.key(path.stem)] = frames.read(path)
    return found


def report(
    sides: dict[str, Frames],
    figures: Path,
    dependencies: pd.DataFrame,
    stated: pd.DataFrame,
    beside: Beside | None = None,
) -> str:
    """The HTML text.

    sides         frames of both sources
    figures       the folder with a folder of figures for each source
    dependencies  how work grows, as ``analysis.horizons`` has it
    stated        numbers of the paper's text, columns fact_id, value, unit, where
    beside        the comparison with MEA
    """
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>SkillHorizon: published and measured</title><style>{_STYLE}</style></head><body>",
        f"<nav class='bar' aria-label='Parts'>{_links({'top': 'Top', **SECTIONS})}</nav>",
        "<h1 id='top'>SkillHorizon: every table and figure, published and measured</h1>",
        "<p>In blue, what the paper printed about language models. In orange, what this project's traces give by the "
        f"same code. <strong>All that is orange is about {SIMULATED}</strong>: profiles of named weaknesses over the "
        "reference procedures. They exercise every measurement from end to end and say nothing about any model, so the "
        "two are to be compared in form, not in value. Brackets hold 95 % intervals, which the paper does not "
        "print.</p>",
        _contents(),
        _head("figures"),
    ]
    for name, title in FIGURES.items():
        images = {source: _image(figures / source / f"{name}.svg", title) for source in SOURCES}
        parts.append(_pair(name, title, images))
    parts.append(_head("tables"))
    for name in results.TABLES:
        cells = {source: results.html(name, own[name]) for source, own in sides.items() if name in own}
        parts.append(_pair(name, results.title(name), cells))
    parts += [_head("facts"), *_facts(sides.get(MEASURED, {}), stated)]
    parts += [_head("growth"), *_growth(dependencies, figures), _head("mea"), *_mea(beside)]
    parts += [_head("definitions"), *_definitions(), "</body></html>"]
    return "\n".join(parts) + "\n"


def write_typeset(sides: dict[str, Frames], folder: Path) -> list[Path]:
    """Every table of both sources as an HTML fragment and as LaTeX; returns the files."""
    files = []
    for source, own in sides.items():
        for name in results.TABLES:
            if name in own:
                path = folder / source / name
                files.append(results.put(path.with_suffix(".html"), results.html(name, own[name]) + "\n"))
                note = SOURCES[source][:1].upper() + SOURCES[source][1:] + "."
                files.append(results.put(path.with_suffix(".tex"), results.latex(name, own[name], note)))
    return files


def write_mea(compared: mea_tables.Comparison, published: Path, folder: Path) -> Beside:
    """The tables and figures of the comparison with MEA, each in files of its own below ``folder``."""
    tables, drawn = mea_tables.tables(compared, published), mea_tables.figures(compared)
    for name, table in tables.items():
        note = f"{_label(table.source)[:1].upper()}{_label(table.source)[1:]}."
        results.put(folder / f"{name}.csv", table.frame.round(4).to_csv(index=False, lineterminator="\n"))
        results.put(folder / f"{name}.html", "\n".join(map(results.sheet_html, table.sheets)) + "\n")
        results.put(folder / f"{name}.tex", results.sheets_latex(name, table.title, table.sheets, note))
    for name, (_, figure) in drawn.items():
        pictures.save(figure, folder / name)
    return Beside(tables, {name: title for name, (title, _) in drawn.items()}, folder)


def _if_there(path: Path) -> pd.DataFrame:
    return frames.read(path) if path.is_file() else pd.DataFrame()


def _head(name: str) -> str:
    return f"<h2 id='{name}'>{markup.escape(SECTIONS[name])}</h2>"


def _links(entries: Mapping[str, str]) -> str:
    return "".join(f"<a href='#{name}'>{markup.escape(title)}</a>" for name, title in entries.items())


def _contents() -> str:
    entries = {**FIGURES, **{name: results.title(name) for name in results.TABLES}}
    entries |= {name: title for name, title in SECTIONS.items() if name not in ("figures", "tables")}
    return f"<nav class='contents' aria-label='Contents'>{_links(entries)}</nav>"


def _pair(name: str, title: str, cells: dict[str, str]) -> str:
    labels = {MEASURED: LABELS.get(name, "")}
    sides = "".join(_side(source, cells.get(source, ""), labels.get(source, "")) for source in SOURCES)
    return f"<h3 id='{name}'>{markup.escape(title)}</h3><div class='pair'>{sides}</div>"


def _side(source: str, body: str, label: str = "") -> str:
    """A box that says whose numbers it holds; what is too wide scrolls inside it, never the page."""
    shown = f"<div class='scroll' tabindex='0'>{body}</div>" if body else "<p class='none'>not made: no traces</p>"
    kind = " picture" if body.startswith("<img") else ""
    return f"<div class='side {source}{kind}'><h4>{markup.escape(label or SOURCES[source])}</h4>{shown}</div>"


def _image(path: Path, title: str) -> str:
    """The picture inside the page: an SVG as data, so that names in one cannot meet names in another."""
    if not path.is_file():
        return ""
    data = base64.b64encode(path.read_bytes()).decode()
    return f"<img alt='{markup.escape(title)}' src='data:image/svg+xml;base64,{data}'>"


def _facts(measured: Frames, stated: pd.DataFrame) -> Iterator[str]:
    for name, (title, made_by) in FACTS.items():
        if name in measured:
            frame = measured[name].rename(columns={"model": "agent"})
            frame = frame[sorted(frame, key=lambda column: column not in ("agent", "band", "unused_above_pct"))]
            ends = {f"{column}{end}" for column in frame for end in ("_low", "_high")}
            heads = {c: (_head_of(c), 1 if frame[c].dtype.kind == "f" else 0) for c in map(str, frame) if c not in ends}
            shown = _side(MEASURED, results.sheet_html(results.plain(frame, heads)))
            yield f"<h3 id='{name}'>{title}</h3>{_prose(made_by.__doc__)}{shown}"
    if len(stated):
        heads = {"fact_id": ("Fact", 0), "value": ("Value", 0), "unit": ("Unit", 0), "where": ("Where", 0)}
        words = stated.assign(fact_id=stated["fact_id"].str.replace("_", " "))
        body = f"<details><summary>{len(stated)} numbers</summary>{results.sheet_html(results.plain(words, heads))}"
        yield f"<h3 id='stated'>What the paper's text states</h3>{_side(PUBLISHED, body + '</details>')}"


def _head_of(column: str) -> str:
    words = column.replace("_pct", " (%)").replace("_", " ")
    return words if len(words) == 1 else words[:1].upper() + words[1:]


def _growth(dependencies: pd.DataFrame, figures: Path) -> Iterator[str]:
    """What ``analysis.horizons`` made: the paper describes dependency graphs, and prints no numbers of them."""
    yield (
        "<p>Not in the paper. Medians and ranges over the released tasks, which no agent has a part in. Depth is the "
        "number of modules on the longest chain of needs, a join is a module that needs two or more others, a reuse is "
        "a need that reaches back over at least one whole stage.</p>"
    )
    heads = {str(c): (str(c), 0) for c in dependencies}
    heads |= {"env": ("Environment", 0), "band": ("Band", 0), "tasks": ("Tasks", 0)}
    table = results.sheet_html(results.plain(dependencies, heads, 2)) if len(dependencies) else ""
    yield _side(MEASURED, _image(figures / MEASURED / "horizon_growth.svg", SECTIONS["growth"]) + table, OF_THE_TASKS)


def _mea(beside: Beside | None) -> Iterator[str]:
    if beside is None:
        yield "<p class='none'>not made: the stage mea has not run</p>"
        return
    yield (
        f"<p>Not in the paper. The same executors ({SIMULATED}) work on the same tasks with the same allowance: in one "
        "growing context, and under manage-execute-audit, where a manager keeps the state of the task, each contract "
        "begins in a fresh context, and an auditor that can only read checks what was done.</p>"
    )
    for name, title in beside.figures.items():
        shown = _side(MEASURED, _image(beside.folder / f"{name}.svg", title), _label(MEASURED))
        yield f"<h3 id='{name}'>{markup.escape(title)}</h3>{shown}"
    for name, table in beside.tables.items():
        shown = _side(table.source, "\n".join(map(results.sheet_html, table.sheets)), _label(table.source))
        yield f"<h3 id='{name}'>{markup.escape(table.title)}</h3><p>{markup.escape(table.text)}</p>{shown}"


def _label(source: str) -> str:
    """Whose numbers are shown in the comparison with MEA."""
    return {MEASURED: f"{SOURCES[MEASURED]}; not in the paper", PUBLISHED: ELSEWHERE}[source]


def _definitions() -> Iterator[str]:
    for name in DEFINITIONS:
        module = importlib.import_module(f"skillhorizon.analysis.{name}")
        yield f"<h3 id='defined_{name}'>{name.capitalize()}</h3>{_prose(module.__doc__)}<dl>"
        for function, made in vars(module).items():
            if inspect.isfunction(made) and made.__module__ == module.__name__ and not function.startswith("_"):
                yield f"<dt><code>{name}.{function}</code></dt><dd>{_prose(made.__doc__)}</dd>"
        yield "</dl>"


def _prose(doc: str | None) -> str:
    """A docstring as paragraphs; a block that is laid out in columns keeps its lines."""
    blocks = inspect.cleandoc(doc or "").split("\n\n")
    return "".join(
        f"<pre>{_marked(block)}</pre>" if re.search(r"\S {2,}\S|\n ", block) else f"<p>{_marked(block)}</p>"
        for block in blocks
    )


def _marked(text: str) -> str:
    pieces = markup.escape(text).split("``")
    return "".join(f"<code>{piece}</code>" if place % 2 else piece for place, piece in enumerate(pieces))


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m skillhorizon.analysis.report DATA FIGURES", file=sys.stderr)
        return 2
    folder, figures = Path(arguments[0]) / "results", Path(arguments[1])
    try:
        sides: dict[str, Frames] = {source: frames_of(folder / source) for source in SOURCES}
        if not sides[PUBLISHED]:
            raise InputError(f"no published tables in {folder / PUBLISHED}; the stage `published` makes them")
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_typeset(sides, folder / "typeset")
    compared = mea_tables.read(arguments[0])
    paper = Path(arguments[0]) / "published"
    beside = write_mea(compared, paper, folder / "mea") if compared else None
    grown, stated = (_if_there(path) for path in (folder / MEASURED / f"{DEPENDENCIES}.csv", paper / "text_facts.csv"))
    grown = grown.replace({"env": horizons.titles(arguments[0])})
    print(results.put(folder / "report.html", report(sides, figures, grown, stated, beside)).as_posix())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
