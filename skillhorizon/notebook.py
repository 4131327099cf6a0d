"""Running notebooks as stages of the pipeline, and the rules that they keep.

``python -m skillhorizon.notebook run NOTEBOOK OUT -p name value …``   execute, normalise, put in place
``python -m skillhorizon.notebook refresh NOTEBOOK …``                 renew the outputs that nbval compares
``python -m skillhorizon.notebook lint``                               say what breaks a rule

As in Jupyter and nbval, the kernel's working directory is the notebook's own folder; paths are relative to it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import nbformat
import yaml

from skillhorizon.core.errors import InputError

KERNEL = "python3"
COMPARED = "# NBVAL_CHECK_OUTPUT"
MOST_LINES = 25
STRIPPED = (
    "metadata.papermill",
    "cell.metadata.papermill",
    "cell.metadata.execution",
    # which patch release of Python ran it says nothing about the result
    "metadata.language_info",
)


class Failed(Exception):
    """A cell raised; the message holds its traceback."""


# -- running -------------------------------------------------------------------------------------------------------


def run(notebook: str | Path, out: str | Path, parameters: Mapping[str, Any]) -> None:
    """Execute a notebook with parameters and write it to ``out``, the same bytes for the same results.

    Raises ``InputError`` for parameters that it does not have or a cell refuses, and ``Failed`` when a cell raises
    anything else; ``out`` is then left as it was.
    """
    notebook, out = Path(notebook), Path(out)
    known = parameters_of(read(notebook), str(notebook))
    if unknown := [name for name in parameters if name not in known]:
        raise InputError(f"{notebook} has no parameter {unknown[0]!r}; it has {', '.join(known)}")
    _put(normalised(_execute(notebook, parameters)), out)


def refresh(notebook: str | Path) -> None:
    """Execute a notebook with its own defaults and keep in it the outputs that nbval compares."""
    notebook = Path(notebook)
    executed = normalised(_execute(notebook, {}))
    for cell in _code(executed):
        if COMPARED not in cell.source:
            cell.outputs, cell.execution_count = [], None
    _put(executed, notebook)


def normalised(executed: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Without what differs from run to run: timings, ids, how a stream was cut into pieces, progress bars."""
    from nbstripout import strip_output

    plain = strip_output(executed, keep_output=True, keep_count=True, keep_id=False, extra_keys=list(STRIPPED))
    for cell in _code(plain):
        outputs: list[Any] = []
        for output in cell.outputs:
            if output.output_type != "stream":
                outputs.append(output)
            elif output.name == "stdout" and outputs and outputs[-1].output_type == "stream":
                outputs[-1].text += output.text
            elif output.name == "stdout":
                outputs.append(output)
        cell.outputs = outputs
    return plain


def read(notebook: Path) -> nbformat.NotebookNode:
    try:
        return nbformat.read(notebook, as_version=4)
    except OSError as error:
        raise InputError(f"cannot read {notebook}: {error.strerror}") from None
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, AttributeError) as error:
        raise InputError(f"{notebook} is not a notebook: {str(error).splitlines()[0][:100]}") from None


def parameters_of(nb: nbformat.NotebookNode, name: str) -> dict[str, Any]:
    """The parameters and their defaults: the plain assignments of the one cell tagged ``parameters``."""
    tagged = [cell for cell in _code(nb) if "parameters" in cell.metadata.get("tags", [])]
    if len(tagged) != 1:
        raise InputError(f"{name} has {len(tagged)} cells tagged 'parameters', not one")
    found = {}
    for statement in ast.parse(tagged[0].source).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if len(targets) != 1 or not isinstance(targets[0], ast.Name):
            raise InputError(f"{name}: the cell of parameters has more than assignments to names")
        try:
            found[targets[0].id] = ast.literal_eval(statement.value)
        except ValueError:
            raise InputError(f"{name}: the default of parameter {targets[0].id!r} is not a literal") from None
    return found


class _Terminal:
    """Where a kernel's standard error goes: all of it to a terminal, elsewhere no progress bars."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        if self._stream.isatty() or "\r" not in text:
            self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()


def _execute(notebook: Path, parameters: Mapping[str, Any]) -> nbformat.NotebookNode:
    import papermill
    from papermill.exceptions import PapermillExecutionError

    try:
        return papermill.execute_notebook(
            notebook,
            None,
            dict(parameters),
            kernel_name=KERNEL,
            cwd=notebook.parent,
            progress_bar=False,
            stderr_file=_Terminal(sys.stderr),
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )
    except PapermillExecutionError as error:
        if error.ename == InputError.__name__:
            raise InputError(error.evalue) from None
        raise Failed(f"{notebook}: a cell raised\n{error}") from None


def _put(nb: nbformat.NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(nbformat.writes(nb) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def _code(nb: nbformat.NotebookNode) -> list[Any]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


# -- rules ---------------------------------------------------------------------------------------------------------


class Execution(NamedTuple):
    """A notebook that a stage of dvc.yaml runs, with the names of the parameters that it hands over."""

    stage: str
    notebook: str
    parameters: tuple[str, ...]
    dependencies: tuple[str, ...]


def lint(notebooks: str | Path = "notebooks", pipeline: str | Path = "dvc.yaml") -> list[str]:
    """All that breaks a rule, a line each; paths of stages are relative to the folder of ``pipeline``."""
    pipeline = Path(pipeline)
    listed = {path.resolve(): path for path in sorted(Path(notebooks).glob("*.ipynb"))}
    problems = [problem for path in listed.values() for problem in lint_notebook(path)]
    for execution in executions(pipeline):
        path = pipeline.parent / execution.notebook
        if path.resolve() not in listed:
            problems.append(f"stage {execution.stage} runs {execution.notebook}, which is not there")
            continue
        problems += _lint_execution(execution, path)
    return problems


def lint_notebook(path: Path) -> list[str]:
    """What breaks a rule in one notebook, whoever runs it."""
    problems = []
    try:
        nb = read(path)
        parameters_of(nb, path.name)
    except InputError as error:
        return [str(error)]
    if (kernel := nb.metadata.get("kernelspec", {}).get("name")) != KERNEL:
        problems.append(f"{path.name}: its kernel is {kernel!r}, not {KERNEL!r}")
    for number, cell in enumerate(nb.cells):
        if cell.cell_type != "code":
            continue
        compared = COMPARED in cell.source
        where = f"{path.name}: cell {number}"
        if cell.outputs and not compared:
            problems.append(f"{where} has stored outputs, and nbval does not compare them")
        if compared and (not cell.outputs or cell.execution_count is None):
            problems.append(f"{where} is compared by nbval and has no stored output; `refresh` puts it there")
        if (not compared and cell.execution_count is not None) or "execution" in cell.metadata:
            problems.append(f"{where} keeps a trace of its execution")
        if (lines := len(cell.source.splitlines())) >= MOST_LINES:
            problems.append(f"{where} has {lines} lines; {MOST_LINES - 1} are allowed")
    return problems


def executions(pipeline: str | Path) -> list[Execution]:
    """The notebooks that the stages of a pipeline run."""
    stages = yaml.safe_load(Path(pipeline).read_text(encoding="utf-8")).get("stages", {})
    found = []
    for stage, definition in stages.items():
        definition = definition.get("do", definition)
        commands = definition.get("cmd", "")
        for command in [commands] if isinstance(commands, str) else commands:
            words = shlex.split(command)
            if "skillhorizon.notebook" not in words:
                continue
            asked = _parser().parse_args(words[words.index("skillhorizon.notebook") + 1 :])
            dependencies = tuple(d if isinstance(d, str) else next(iter(d)) for d in definition.get("deps", []))
            found.append(Execution(stage, asked.notebook, tuple(name for name, _ in asked.parameters), dependencies))
    return found


def _lint_execution(execution: Execution, path: Path) -> list[str]:
    problems = []
    where = f"stage {execution.stage}"
    try:
        known = parameters_of(read(path), path.name)
    except InputError:
        return []
    for name in execution.parameters:
        if name not in known:
            problems.append(f"{where} hands over {name!r}, which is no parameter of {path.name}")
    for name in known:
        if name not in execution.parameters:
            problems.append(f"{where} leaves parameter {name!r} of {path.name} at its default")
    if execution.notebook not in execution.dependencies:
        problems.append(f"{where} runs {execution.notebook} and does not depend on it")
    return problems


# -- command line --------------------------------------------------------------------------------------------------


def value_of(text: str) -> Any:
    """A parameter from the command line: JSON where it is JSON (``3``, ``true``, ``null``), else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m skillhorizon.notebook")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="execute a notebook and put the normalised result in place")
    running.add_argument("notebook")
    running.add_argument("out")
    running.add_argument(
        "-p", dest="parameters", nargs=2, metavar=("NAME", "VALUE"), action="append", default=[], help="a parameter"
    )
    renewing = commands.add_parser("refresh", help="renew the outputs that nbval compares")
    renewing.add_argument("notebooks", nargs="+")
    commands.add_parser("lint", help="say what breaks a rule")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 done, 1 a cell raised or a rule is broken, 2 wrong usage or input."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.command == "run":
            run(asked.notebook, asked.out, {name: value_of(text) for name, text in asked.parameters})
        elif asked.command == "refresh":
            for notebook in asked.notebooks:
                refresh(notebook)
        elif problems := lint():
            print("\n".join(problems))
            return 1
    except (InputError, Failed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
