"""The command ``skillhorizon``.

Results go to standard output, as short text or with ``--json`` as one JSON document; progress goes to standard error
and only to a terminal. Exit status: 0 done; 1 the run did not succeed or the check failed; 2 wrong usage or bad
input, with one line on standard error and nothing overwritten; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec

from skillhorizon.core.errors import InputError

if TYPE_CHECKING:
    from skillhorizon.api import Run
    from skillhorizon.core.task import Task

DONE, NO_SUCCESS, BAD_INPUT, INTERRUPTED, NO_READER = 0, 1, 2, 130, 141


class Answer(NamedTuple):
    """What a command says: an exit status, one JSON document, and the same in short for people."""

    status: int
    document: dict[str, Any]
    lines: Sequence[str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        options = _parser().parse_args(arguments)
        answer: Answer | None = options.command(options)
        if answer is None:  # it has talked to another program
            return DONE
        if options.json:
            print(msgspec.json.format(msgspec.json.encode(answer.document), indent=1).decode())
        else:
            print(*answer.lines, sep="\n")
        sys.stdout.flush()
        return answer.status
    except InputError as error:
        return _complain(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it closes
        return NO_READER
    except OSError as error:
        return _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        print("skillhorizon: interrupted", file=sys.stderr)
        return INTERRUPTED


def _complain(text: str) -> int:
    print("skillhorizon:", " ".join(text.split()), file=sys.stderr)
    return BAD_INPUT


# -- commands ------------------------------------------------------------------------------------------------------


def _envs(options: argparse.Namespace) -> Answer:
    from skillhorizon import envs
    from skillhorizon.core.bands import PAPER_BANDS

    found: list[dict[str, Any]] = [
        {
            "name": env.name,
            "title": env.title,
            "families": list(env.families),
            "skills": len(env.skills),
            "tools": len(env.tools),
            "configurations": {band: [c.id for c in env.configs(band)] for band in PAPER_BANDS},
        }
        for env in map(envs.load, envs.names())
    ]
    lines = [
        f"{e['name']:10} {e['title']}: {e['skills']} skills, {e['tools']} tools; families {', '.join(e['families'])}"
        for e in found
    ]
    return Answer(DONE, {"environments": found}, lines or ["there is no environment"])


def _generate(options: argparse.Namespace) -> Answer:
    from skillhorizon import api

    if options.output is not None:
        _free(options.output)
    _tell(f"calibrating a task of {options.env} at {options.band}")
    task = api.generate(options.env, options.family, options.band, options.seed, options.configuration)
    if options.output is not None:
        task.save(options.output)
    saved = f"saved to {options.output}" if options.output else "not saved; -o FILE keeps it"
    lines = [
        task.id,
        f"workload {task.workload:,} tokens, allowance {task.budget:,} calls, {len(task.graph):,} modules",
        f"digest {task.digest}",
        saved,
    ]
    return Answer(DONE, {**_about(task), "path": options.output}, lines)


def _run(options: argparse.Namespace) -> Answer:
    from skillhorizon import api

    if options.resume and options.journal is None:
        raise InputError("--resume needs --journal FILE")
    task = api.load_task(options.task)
    work = api.run
    if options.mcp:
        from skillhorizon.interop import mcp_client

        work = mcp_client.run
    run = work(task, options.agent, options.seed, options.journal, options.resume)
    return _scored(run, options.journal)


def _evaluate(options: argparse.Namespace) -> Answer:
    from skillhorizon import api

    return _scored(api.replay(options.journal), options.journal)


def _replay(options: argparse.Namespace) -> Answer:
    from skillhorizon import api

    run = api.replay(options.journal)
    lines = [
        f"{run.calls:,} calls made again, every observation the same",
        f"trace  {run.trace.digest}",
        f"state  {run.gateway.state_digest()}",
    ]
    return Answer(DONE, _result(run, options.journal), lines)


def _serve(options: argparse.Namespace) -> None:
    from skillhorizon import api
    from skillhorizon.interop import mcp_server

    if options.http is None and (options.shared or options.allow_host):
        raise InputError("--shared and --allow-host need --http")
    task = api.load_task(options.task)
    shared = options.shared or options.http is None
    desks = mcp_server.Desks(task, options.journal, options.resume, shared, options.harness)
    if options.http is None:
        mcp_server.serve_stdio(desks)
    else:
        mcp_server.serve_http(desks, options.http, options.allow_host, lambda url: print(url, flush=True))


def _export_harbor(options: argparse.Namespace) -> Answer:
    from skillhorizon import envs
    from skillhorizon.core.progress import track
    from skillhorizon.interop import harbor_export, task_files

    wanted = [(env, band) for env in options.env or envs.names() for band in options.band or ["64K"]]
    files = [
        file
        for env, band in track(wanted, "environments and bands", len(wanted))
        for file in task_files.chosen(env, band, None, options.tasks, options.first_seed, options.set)
    ]
    written = harbor_export.export(track(files, "task folders", len(files)), options.out)
    return Answer(DONE, {"ok": True, "tasks": [str(p) for p in written]}, [f"{len(written)} tasks in {options.out}"])


def _validate(options: argparse.Namespace) -> Answer:
    from skillhorizon import envs, validate

    names = options.env or envs.names()
    for name in names:
        envs.load(name)
    if options.beyond:
        return _beyond(names)
    verdicts = validate.validate(
        options.data, options.work, names, options.band, options.processes or os.cpu_count() or 1, options.orders
    )
    faults = [f"{v.task}: {fault}" for v in verdicts for fault in v.faults]
    table = validate.summary(verdicts).to_string(index=False) if verdicts else "no task of these bands"
    invalid = sum(bool(v.faults) for v in verdicts)
    lines = [*faults, table, f"{len(verdicts)} tasks: " + (f"{invalid} are not valid" if invalid else "all valid")]
    return Answer(NO_SUCCESS if faults or not verdicts else DONE, {"ok": not faults, "tasks": verdicts}, lines)


def _beyond(names: Sequence[str]) -> Answer:
    import pandas as pd

    from skillhorizon import validate
    from skillhorizon.core.progress import track

    wanted = [(name, band) for name in names for band in validate.BEYOND]
    reached = [validate.beyond(*pair) for pair in track(wanted, "tasks beyond the released bands", len(wanted))]
    table = pd.DataFrame([msgspec.structs.asdict(r) for r in reached]).to_string(index=False)
    return Answer(DONE, {"ok": True, "tasks": reached}, [table, f"{len(reached)} tasks: all valid"])


def _params(options: argparse.Namespace) -> Answer:
    from skillhorizon import params

    found = params.load(options.file)
    chosen = found.profiles[found.profile]
    factor = found.budget_factor if chosen.budget_factor is None else chosen.budget_factor
    trigger = found.agents.rules.compaction.trigger
    lines = [
        f"profile {found.profile}: {chosen.tasks} tasks a band ({', '.join(chosen.bands)}), B = R + ceil({factor:g} A)",
        f"environments {', '.join(found.environments)}",
        f"agents {', '.join(found.evaluate.agents)}; compaction from {trigger:,} tokens on",
    ]
    return Answer(DONE, {"ok": True, "params": msgspec.to_builtins(found)}, lines)


def _skills_check(options: argparse.Namespace) -> Answer:
    from skillhorizon import envs
    from skillhorizon.skill_check import check_folder

    folders = {name: envs.folder(name) / "skills" for name in options.env or envs.names()}
    reports = [(name, r) for name, folder in folders.items() for r in check_folder(folder)]
    faults = [f"{name}/{r.skill}: {problem}" for name, r in reports for problem in r.problems]
    scripts = sum(r.scripts for _, r in reports)
    document = {
        "ok": not faults,
        "skills": [{"environment": name, **r._asdict(), "ok": not r.problems} for name, r in reports],
    }
    verdict = f"{len(faults)} problems" if faults else "all in order"
    lines = [*faults, f"{len(reports)} skills with {scripts} scripts: {verdict}"]
    return Answer(NO_SUCCESS if faults else DONE, document, lines)


# -- what they say -------------------------------------------------------------------------------------------------


def _about(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "environment": task.config.env,
        "family": task.config.family,
        "configuration": task.config.id,
        "band": task.config.band,
        "seed": task.seed,
        "size": task.size,
        "workload": task.workload,
        "measures": task.measures,
        "budget": task.budget,
        "graph": task.graph.measures,
        "scale": task.blueprint.scale,
        "digest": task.digest,
    }


def _result(run: Run, journal: str | None) -> dict[str, Any]:
    score = run.evaluation
    return {
        **run.row(),
        "why": run.why,
        "task_digest": run.task.digest,
        "local": [{"goal": g.goal, "met": g.met, "failed": g.failed} for g in score.local],
        "delivery": [{"name": r.name, "met": r.met, "reason": r.reason} for r in score.delivery],
        "journal": journal,
    }


def _scored(run: Run, journal: str | None) -> Answer:
    score = run.evaluation
    allowance = f" of {run.gateway.budget:,}" if run.gateway.budget is not None else ""
    lines = [
        f"{run.agent} on {run.task.id}: {run.end}" + (f" ({run.why})" if run.why else ""),
        f"local goals {score.goals_met} of {len(score.local)} (LGC {score.lgc:.3f}), "
        + ("task success" if score.success else f"no task success; missing: {_missing(run)}"),
        f"{run.calls:,} calls ({run.trace.attempts:,}{allowance} attempts), {run.tokens:,} tokens",
    ]
    return Answer(DONE if score.success else NO_SUCCESS, _result(run, journal), lines)


def _missing(run: Run) -> str:
    goals = [g.goal for g in run.evaluation.local if not g.met]
    shown = [*goals[:3], f"{len(goals) - 3} more goals"] if len(goals) > 4 else goals
    return ", ".join([*shown, *run.evaluation.delivery_failed])


def _free(path: str) -> None:
    """Refuse a file that could not be written in the end, before the work is done."""
    if os.path.lexists(path):
        raise InputError(f"{path} exists already")
    if not Path(path).parent.is_dir():
        raise InputError(f"{Path(path).parent} is not a folder")


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"{text} …", file=sys.stderr)


# -- usage ---------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Wrong usage is one line like any other bad input."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive whole number")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="skillhorizon", description="Long business tasks of any size, and where agents break on them."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(where: Any, name: str, function: Callable[[argparse.Namespace], Answer | None], text: str) -> _Parser:
        added: _Parser = where.add_parser(name, help=text, description=text)
        added.set_defaults(command=function)
        added.add_argument("--json", action="store_true", help="one JSON document on standard output")
        return added

    command(commands, "envs", _envs, "List the environments.")

    generate = command(commands, "generate", _generate, "Make a task, calibrated into a workload band.")
    generate.add_argument("env", metavar="ENV")
    generate.add_argument("--band", default="64K", help="64K (default), 128K, 256K, 512K, 1M, …")
    generate.add_argument("--seed", type=int, default=0, metavar="N")
    generate.add_argument("--family", metavar="F", help="draw the configuration from this family only")
    generate.add_argument("--configuration", metavar="C", help="this configuration: family/variant/pattern")
    generate.add_argument("-o", dest="output", metavar="FILE", help="keep the task in a file, which must not exist")

    run = command(commands, "run", _run, "Let an agent work on a task and score the outcome.")
    run.add_argument("task", metavar="TASK", help="a task file")
    run.add_argument("--agent", required=True, metavar="A", help="reference, shuffled, noop, random, steady, …")
    run.add_argument("--seed", type=int, default=0, metavar="N", help="the agent's seed")
    run.add_argument("--journal", metavar="FILE", help="record every call before it is answered; must not exist")
    run.add_argument("--resume", action="store_true", help="go on with the interrupted run of the journal")
    run.add_argument("--mcp", action="store_true", help="the world in an MCP server of its own, each call over it")

    serve = command(commands, "serve", _serve, "Serve a task to any MCP client, on standard input and output.")
    serve.add_argument("task", metavar="TASK", help="a task file")
    serve.add_argument("--http", metavar="HOST:PORT", help="serve over HTTP instead, a world for each session")
    serve.add_argument("--journal", metavar="FILE", help="record every call; further sessions beside it: FILE-2, …")
    serve.add_argument("--resume", action="store_true", help="go on with journals that exist")
    serve.add_argument("--shared", action="store_true", help="one world for all sessions")
    serve.add_argument("--harness", action="store_true", help="for run --mcp: calls name their role, results the event")
    serve.add_argument("--allow-host", action="append", default=[], metavar="H", help="a host name to answer to")

    export = commands.add_parser("export", help="Write tasks in the format of another harness.")
    formats = export.add_subparsers(title="commands", required=True, metavar="COMMAND")
    harbor = command(formats, "harbor", _export_harbor, "Write task folders for Harbor, the world a service.")
    harbor.add_argument("--out", required=True, metavar="DIR", help="where to; must not exist or be empty")
    harbor.add_argument("--env", action="append", metavar="ENV", help="environments; by default all")
    harbor.add_argument("--band", action="append", metavar="B", help="workload bands; by default 64K")
    harbor.add_argument("--tasks", type=_positive, default=1, metavar="N", help="tasks of each environment and band")
    harbor.add_argument("--first-seed", type=int, default=0, metavar="N", help="fresh tasks begin at this seed")
    harbor.add_argument("--set", metavar="DIR", help="the first tasks of the set below this data folder instead")

    evaluate = command(commands, "evaluate", _evaluate, "Score the run in a journal, finished or not.")
    evaluate.add_argument("journal", metavar="JOURNAL")

    replay = command(commands, "replay", _replay, "Make a journal's calls again and compare every observation.")
    replay.add_argument("journal", metavar="JOURNAL")

    validate = command(
        commands, "validate", _validate, "Build every task of the released sets again and run it in legal orders."
    )
    validate.add_argument("--env", action="append", metavar="E", help="this environment; may be repeated")
    validate.add_argument("--band", action="append", metavar="B", help="this band; may be repeated")
    validate.add_argument("--beyond", action="store_true", help="instead, a fresh task of each at 2M and 4M")
    validate.add_argument("--orders", type=_positive, default=1, metavar="N", help="random legal orders each (1)")
    validate.add_argument("--processes", type=_positive, metavar="N", help="by default as many as there are cores")
    validate.add_argument("--data", default="data", metavar="DIR", help="where tasks/ and traces/ are (data)")
    validate.add_argument("--work", default=".validate", metavar="DIR", help="what has been validated (.validate)")

    params = command(commands, "params", _params, "Check the parameters of the pipeline, and say what they ask for.")
    params.add_argument("file", nargs="?", default="params.yaml", metavar="FILE", help="by default params.yaml")

    skills = commands.add_parser("skills", help="Look after the skill packages.")
    of_skills = skills.add_subparsers(title="commands", required=True, metavar="COMMAND")
    check = command(of_skills, "check", _skills_check, "Check the packages' format and their scripts' shell form.")
    check.add_argument("env", nargs="*", metavar="ENV", help="environments; by default all")
    return parser
