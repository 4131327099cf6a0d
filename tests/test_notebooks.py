"""Notebooks: the project's own keep the rules, the rules find what breaks them, and the runner repeats to the byte."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from skillhorizon import notebook
from skillhorizon.core.errors import InputError

ROOT = Path(__file__).parents[1]
PARAMETERS = 'name = "quick"\nnumber = 3'


def write(path: Path, *cells, kernel: str = "python3") -> Path:
    """A notebook of code cells; a cell is its source, or the source and what else it has."""
    nb = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": kernel, "display_name": "x", "language": "python"}})
    for number, cell in enumerate(cells):
        source, more = (cell, {}) if isinstance(cell, str) else cell
        nb.cells.append(nbformat.v4.new_code_cell(source, id=str(number), **more))
    path.write_text(nbformat.writes(nb))
    return path


def tagged(source: str = PARAMETERS) -> tuple[str, dict]:
    return source, {"metadata": {"tags": ["parameters"]}}


def result(text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_output("execute_result", {"text/plain": text}, execution_count=1)


def outputs(path: Path) -> list:
    return [output for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", [])]


# -- the project's own ---------------------------------------------------------------------------------------------


def test_the_project_s_notebooks_keep_the_rules():
    assert notebook.lint(ROOT / "notebooks", ROOT / "dvc.yaml") == []


def test_every_numbered_notebook_is_run_by_a_stage():
    run = {Path(e.notebook).name for e in notebook.executions(ROOT / "dvc.yaml")}
    assert {p.name for p in (ROOT / "notebooks").glob("[0-9]*.ipynb")} <= run


def test_defaults_never_touch_committed_data():
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        defaults = notebook.parameters_of(notebook.read(path), path.name)
        assert defaults.get("profile", "quick") == "quick", path.name
        assert defaults.get("out", "../build").startswith("../build"), path.name


# -- rules ---------------------------------------------------------------------------------------------------------


def good(folder: Path, name: str = "a.ipynb") -> Path:
    compared = f"{notebook.COMPARED}\nnumber", {"outputs": [result("3")], "execution_count": 2}
    return write(folder / name, tagged(), "x = number", compared)


def test_a_good_notebook_breaks_no_rule(tmp_path):
    assert notebook.lint_notebook(good(tmp_path)) == []


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([tagged(), ("3", {"outputs": [result("3")]})], "cell 1 has stored outputs"),
        ([tagged(), f"{notebook.COMPARED}\n3"], "cell 1 is compared by nbval and has no stored output"),
        ([tagged(), ("3", {"execution_count": 7})], "cell 1 keeps a trace of its execution"),
        ([tagged(), ("3", {"metadata": {"execution": {}}})], "cell 1 keeps a trace of its execution"),
        ([tagged(), "\n".join(["x = 1"] * 25)], "cell 1 has 25 lines"),
        (["x = 1"], "0 cells tagged 'parameters'"),
        ([tagged(), tagged()], "2 cells tagged 'parameters'"),
        ([tagged("import os")], "more than assignments"),
        ([tagged("x = y")], "default of parameter 'x' is not a literal"),
    ],
)
def test_a_broken_rule_is_found(tmp_path, cells, words):
    (problem,) = notebook.lint_notebook(write(tmp_path / "a.ipynb", *cells))
    assert words in problem
    assert problem.startswith("a.ipynb")


def test_another_kernel_is_found(tmp_path):
    (problem,) = notebook.lint_notebook(write(tmp_path / "a.ipynb", tagged(), kernel="conda-env-x"))
    assert "'conda-env-x', not 'python3'" in problem


def test_a_file_that_is_no_notebook_is_found(tmp_path):
    (tmp_path / "a.ipynb").write_text("[]")
    (tmp_path / "b.ipynb").write_text("{")
    assert all("is not a notebook" in p for p in notebook.lint(tmp_path, stages(tmp_path, "true")))


def stages(folder: Path, cmd: str, deps: tuple[str, ...] = ("a.ipynb",), matrix: bool = False) -> Path:
    head = "stages:\n  s:\n" + ("    matrix: {env: [a, b]}\n" if matrix else "")
    listed = "".join(f"      - {d}\n" for d in deps)
    path = folder / "dvc.yaml"
    path.write_text(f"{head}    cmd: >-\n      {cmd}\n    deps:\n{listed}")
    return path


RUN = "python -m skillhorizon.notebook run a.ipynb out.ipynb"


def test_a_stage_that_fits_breaks_no_rule(tmp_path):
    good(tmp_path)
    for matrix in (False, True):
        assert (
            notebook.lint(tmp_path, stages(tmp_path, f"{RUN} -p name ${{item.env}} -p number 1", matrix=matrix)) == []
        )


@pytest.mark.parametrize(
    ("cmd", "deps", "words"),
    [
        (f"{RUN} -p name x -p number 1 -p nmae y", ("a.ipynb",), "hands over 'nmae', which is no parameter"),
        (f"{RUN} -p name x", ("a.ipynb",), "leaves parameter 'number' of a.ipynb at its default"),
        (f"{RUN} -p name x -p number 1", ("b.py",), "runs a.ipynb and does not depend on it"),
        (RUN.replace("a.ipynb", "z.ipynb"), ("z.ipynb",), "runs z.ipynb, which is not there"),
    ],
)
def test_a_stage_that_does_not_fit_its_notebook_is_found(tmp_path, cmd, deps, words):
    good(tmp_path)
    (problem,) = notebook.lint(tmp_path, stages(tmp_path, cmd, deps))
    assert words in problem
    assert problem.startswith("stage s ")


# -- running -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy(tmp_path_factory) -> Path:
    """A notebook that leaves all that differs between runs: streams in pieces, bars, timings, ids, numbers."""
    source = """
import sys, time
for _ in range(3):
    print("line", flush=True)
    time.sleep(0.02)
    print("bar\\r", end="", file=sys.stderr, flush=True)
"""
    return write(
        tmp_path_factory.mktemp("noisy") / "a.ipynb", tagged(), source, "name, number", "import os; os.getcwd()"
    )


def test_parameters_reach_the_notebook_and_runs_are_the_same_bytes(noisy, tmp_path):
    outs = [tmp_path / name / "deep" / "out.ipynb" for name in "ab"]
    for out in outs:
        notebook.run(noisy, out, {"name": "other", "number": 4})
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert [p.name for p in outs[0].parent.iterdir()] == ["out.ipynb"]
    stream, shown, folder = outputs(outs[0])
    assert (stream.name, stream.text) == ("stdout", "line\n" * 3)
    assert shown.data["text/plain"] == "('other', 4)"
    assert folder.data["text/plain"] == repr(str(noisy.parent))
    text = outs[0].read_text()
    assert "papermill" not in text
    assert "bar" not in "".join(str(o) for o in outputs(outs[0]))


def test_an_unknown_parameter_is_refused_before_any_work(noisy, tmp_path, capsys):
    with pytest.raises(InputError, match="no parameter 'nmae'; it has name, number"):
        notebook.run(noisy, tmp_path / "out.ipynb", {"nmae": 1})
    assert notebook.main(["run", str(noisy), str(tmp_path / "out.ipynb"), "-p", "nmae", "1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_missing_notebook_is_refused(tmp_path):
    assert notebook.main(["run", str(tmp_path / "no.ipynb"), str(tmp_path / "out.ipynb")]) == 2


def test_a_cell_that_raises_leaves_the_result_before(tmp_path, capsys):
    broken = write(tmp_path / "a.ipynb", tagged(), "1 / number")
    out = tmp_path / "out" / "a.ipynb"
    assert notebook.main(["run", str(broken), str(out), "-p", "number", "2"]) == 0
    before = out.read_bytes()
    assert notebook.main(["run", str(broken), str(out), "-p", "number", "0"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert out.read_bytes() == before
    assert [p.name for p in out.parent.iterdir()] == ["a.ipynb"]


def test_bad_input_that_a_cell_meets_is_one_line_and_status_2(tmp_path, capsys):
    refusing = write(
        tmp_path / "a.ipynb", tagged(), "from skillhorizon.core.errors import InputError\nraise InputError('slip: no')"
    )
    assert notebook.main(["run", str(refusing), str(tmp_path / "out.ipynb")]) == 2
    assert capsys.readouterr().err == "error: slip: no\n"
    assert not (tmp_path / "out.ipynb").exists()


def test_refreshing_keeps_the_compared_outputs_alone(tmp_path):
    path = write(tmp_path / "a.ipynb", tagged(), "number", f"{notebook.COMPARED}\nnumber + 1")
    notebook.refresh(path)
    assert notebook.lint_notebook(path) == []
    assert [o.data["text/plain"] for o in outputs(path)] == ["4"]
    before = path.read_bytes()
    notebook.refresh(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0.5", 0.5), ("true", True), ("null", None), ("64K", "64K"), ("../data", "../data"), ("[1]", [1])],
)
def test_values_on_the_command_line_are_json_or_text(text, value):
    assert notebook.value_of(text) == value
