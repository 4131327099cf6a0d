"""The report: one HTML file with all tables and figures, published beside measured, and what each number means.

``python -m skillhorizon.analysis.report DATA FIGURES`` reads the CSVs of ``DATA/results/{published,measured}`` and the
figures of ``FIGURES/{published,measured}``, and writes ``DATA/results/report.html`` and, table by table,
``DATA/results/typeset/{published,measured}/table….html`` and ``….tex``.
"""

from __future__ import annotations

import base64
import html as markup
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from skillhorizon.analysis import frames, plots, results, structure
from skillhorizon.analysis.frames import MEASURED, PUBLISHED, SIMULATED, SOURCES, Frames
from skillhorizon.core.errors import InputError

DEFINITIONS = (
    "populations", "outcomes", "scale", "stopping", "cycles", "recovery", "visibility", "consumers", "costs",
    "sampling", "intervals", "settings", "tables",
)  # fmt: skip
"""The modules that define what is measured: their docstrings are the report's definitions."""

FIGURES = {"figure1": f"Figure 1. {structure.TITLE}", **{name: plots.title(name) for name in plots.FIGURES}}

_STYLE = """
:root { --ink: #1d2733; --soft: #5f6b78; --line: #d8dee5; --published: #0072b2; --measured: #c2570c; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1500px; padding: 1.5rem 2rem 4rem; color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", sans-serif; }
h1 { font-size: 1.7rem; margin: .5rem 0; } h2 { margin: 3rem 0 .5rem; border-bottom: 2px solid var(--line); }
h3 { margin: 2.2rem 0 .4rem; font-size: 1.08rem; } p { max-width: 52rem; }
nav { columns: 3; font-size: .9rem; margin: 1rem 0; } nav a { display: block; } a { color: var(--published); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(640px, 100%), 1fr)); gap: 1.2rem; }
.side { border: 1px solid var(--line); border-top: 4px solid var(--published); border-radius: 6px; padding: .6rem .8rem;
  overflow-x: auto; }
.side.measured { border-top-color: var(--measured); }
.side > h4 { margin: 0 0 .5rem; font-size: .8rem; color: var(--published); font-weight: 600; }
.side.measured > h4 { color: var(--measured); }
.side img { width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .8rem; font-variant-numeric: tabular-nums; margin-bottom: .8rem; }
caption { text-align: left; font-style: italic; color: var(--soft); padding-bottom: .2rem; }
th, td { padding: .18rem .6rem; text-align: right; vertical-align: top; white-space: nowrap; }
th.t, td.t { text-align: left; white-space: normal; } thead th { border-bottom: 1.5px solid var(--ink); }
tbody tr:nth-child(even) { background: #f6f8fa; } small { color: var(--soft); font-size: .72rem; }
.none { color: var(--soft); font-style: italic; }
.doc { white-space: pre-wrap; max-width: 62rem; margin: .3rem 0 .8rem; } .doc code, code { font-size: .9em; }
dt { font-weight: 600; margin-top: .5rem; } dd { margin-left: 1.2rem; white-space: pre-wrap; max-width: 60rem; }
"""


def frames_of(folder: Path) -> dict[str, pd.DataFrame]:
    """The CSVs of a folder of results, by name of their frame; facts keep their whole name."""
    found = {}
    for path in sorted(folder.glob("*.csv")):
        if path.stem.endswith("_overlap"):
            continue
        found[frames.key(path.stem)] = frames.read(path)
    return found


def report(sides: dict[str, Frames], figures: Path) -> str:
    """The HTML text. ``sides`` are the frames of both sources, ``figures`` the folder with a folder for each."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
        f"<title>SkillHorizon: published and measured</title><style>{_STYLE}</style>",
        "<h1>SkillHorizon: every table and figure, published and measured</h1>",
        "<p>Left, in blue, what the paper printed about language models. Right, in orange, what this project's traces "
        f"give by the same code. <strong>The right side is about {SIMULATED}</strong>: profiles of named weaknesses "
        "over the reference procedures. They exercise every measurement from end to end and say nothing about any "
        "model, so the two sides are to be compared in form, not in value. Brackets hold 95 % intervals, which the "
        "paper does not print.</p>",
        _contents(),
        "<h2 id='figures'>Figures</h2>",
    ]
    for name, title in FIGURES.items():
        images = {source: _image(figures / source / f"{name}.svg", title) for source in SOURCES}
        parts.append(_pair(name, title, images))
    parts.append("<h2 id='tables'>Tables</h2>")
    for name in results.TABLES:
        cells = {source: results.html(name, own[name]) for source, own in sides.items() if name in own}
        parts.append(_pair(name, results.title(name), cells))
    parts += ["<h2 id='facts'>Measured beside the tables</h2>", *_facts(sides.get(MEASURED, {}))]
    parts += ["<h2 id='definitions'>How each number is defined</h2>", *_definitions(), "</html>"]
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


def _contents() -> str:
    entries = {**FIGURES, **{name: results.title(name) for name in results.TABLES}}
    entries |= {"facts": "Measured beside the tables", "definitions": "How each number is defined"}
    links = "".join(f"<a href='#{name}'>{markup.escape(title)}</a>" for name, title in entries.items())
    return f"<nav>{links}</nav>"


def _pair(name: str, title: str, cells: dict[str, str]) -> str:
    sides = "".join(
        f"<div class='side {source}'><h4>{markup.escape(label)}</h4>"
        f"{cells.get(source) or '<p class=none>not made: there are no traces</p>'}</div>"
        for source, label in SOURCES.items()
    )
    return f"<h3 id='{name}'>{markup.escape(title)}</h3><div class='pair'>{sides}</div>"


def _image(path: Path, title: str) -> str:
    """The picture inside the page: an SVG as data, so that names in one cannot meet names in another."""
    if not path.is_file():
        return ""
    data = base64.b64encode(path.read_bytes()).decode()
    return f"<img alt='{markup.escape(title)}' src='data:image/svg+xml;base64,{data}'>"


def _facts(measured: Frames) -> Iterator[str]:
    for name, frame in measured.items():
        if name.startswith("facts_"):
            heads = {str(c): (str(c).replace("_", " "), 1 if frame[c].dtype.kind == "f" else 0) for c in frame}
            sheet = results.plain(frame, heads)
            title = name.removeprefix("facts_").replace("_", " ").capitalize()
            body = f"<h4>{SOURCES[MEASURED]}</h4>{results.sheet_html(sheet)}"
            yield f"<h3>{title}</h3><div class='side measured'>{body}</div>"


def _definitions() -> Iterator[str]:
    for name in DEFINITIONS:
        module = importlib.import_module(f"skillhorizon.analysis.{name}")
        yield f"<h3 id='{name}'>{name.capitalize()}</h3><div class='doc'>{_prose(module.__doc__)}</div><dl>"
        for function, made in vars(module).items():
            if inspect.isfunction(made) and made.__module__ == module.__name__ and not function.startswith("_"):
                yield f"<dt><code>{name}.{function}</code></dt><dd>{_prose(made.__doc__)}</dd>"
        yield "</dl>"


def _prose(doc: str | None) -> str:
    text = markup.escape(inspect.cleandoc(doc or ""))
    pieces = text.split("``")
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
    print(results.put(folder / "report.html", report(sides, figures)).as_posix())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
