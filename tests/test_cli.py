"""The command line: documents, exit statuses, and one clear line for whatever a user can get wrong."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from skillhorizon import api, cli, envs
from skillhorizon.core import progress, trace
from skillhorizon.core.errors import InputError
from skillhorizon.skill_check import check_folder
from tests.support import ENVIRONMENTS, SMALLEST, assert_refused, command, small_task, told
from tests.toy.world import SKILLS as TOY_SKILLS

FIRST = ENVIRONMENTS[0]


@pytest.fixture
def saved(tmp_path):
    """A task file of the first environment."""
    path = tmp_path / "task.json"
    small_task(FIRST).save(path)
    return path


def document(capsys, *arguments):
    status, out, err = told(capsys, *arguments, "--json")
    assert err == ""
    return status, json.loads(out)


# -- documents and text --------------------------------------------------------------------------------------------


def test_envs(capsys):
    status, found = document(capsys, "envs")
    assert status == 0
    assert [e["name"] for e in found["environments"]] == ENVIRONMENTS
    assert all(e["families"] and e["skills"] and e["tools"] for e in found["environments"])
    assert all(e["configurations"][SMALLEST] for e in found["environments"])
    status, out, err = told(capsys, "envs")
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ENVIRONMENTS


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_generate_run_evaluate_replay(env, capsys, tmp_path):
    path, journal = tmp_path / "task.json", tmp_path / "journal"
    status, made = document(capsys, "generate", env, "--seed", 0, "-o", path)
    task = small_task(env)
    assert status == 0
    assert (made["id"], made["digest"], made["path"]) == (task.id, task.digest, str(path))
    assert (made["workload"], made["measures"]["R"], made["budget"]) == (task.workload, task.measures.R, task.budget)
    assert api.load_task(path).digest == task.digest

    status, ran = document(capsys, "run", path, "--agent", "reference", "--journal", journal)
    assert status == 0
    assert [*ran][: len(trace.RUN_COLUMNS)] == list(trace.RUN_COLUMNS)
    assert (ran["success"], ran["lgc"], ran["end"], ran["tool_calls"]) == (True, 1, "submitted", task.measures.R)
    assert len(ran["local"]) == ran["goals_required"]
    assert all(g["met"] for g in ran["local"])
    assert all(r["met"] for r in ran["delivery"])

    assert document(capsys, "evaluate", journal) == (0, ran)
    assert document(capsys, "replay", journal) == (0, ran)


def test_text_is_short_and_says_the_same(capsys, saved, tmp_path):
    journal = tmp_path / "journal"
    status, out, err = told(capsys, "generate", FIRST)
    assert (status, err) == (0, "")
    assert small_task(FIRST).id in out
    assert "not saved" in out

    status, out, err = told(capsys, "run", saved, "--agent", "noop", "--journal", journal)
    assert (status, err) == (1, "")
    assert "LGC 0.000" in out
    assert "no task success" in out
    assert len(out.splitlines()) <= 5

    assert told(capsys, "evaluate", journal) == (1, out, "")
    status, out, err = told(capsys, "replay", journal)
    assert (status, err) == (0, "")
    assert "0 calls made again" in out


def test_a_run_without_success_has_status_1_and_a_whole_document(capsys, saved):
    status, ran = document(capsys, "run", saved, "--agent", "random", "--seed", 3)
    assert status == 1
    assert ran["success"] is False
    assert (ran["agent"], ran["seed"]) == ("random", 3)


# -- the same everywhere -------------------------------------------------------------------------------------------


SESSION = """
import json, sys
from skillhorizon.cli import main
for env in json.loads(sys.argv[1]):
    assert main(["generate", env, "--seed", "5", "-o", f"{env}.json", "--json"]) == 0
    assert main(["run", f"{env}.json", "--agent", "shuffled", "--seed", "6", "--json"]) == 0
    assert main(["run", f"{env}.json", "--agent", "random", "--seed", "6", "--json"]) == 1
"""
"""A generation and two runs in every environment, in one process because a process takes a second to begin."""


def test_processes_with_other_hash_seeds_make_the_same_tasks_and_the_same_traces(tmp_path):
    found = []
    for hash_seed in ("1", "4242"):
        (folder := tmp_path / hash_seed).mkdir()
        done = subprocess.run(
            [sys.executable, "-c", SESSION, json.dumps(ENVIRONMENTS)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert (done.returncode, done.stderr) == (0, "")
        for digest in ("digest", "task_digest", "trace_digest", "state_digest"):
            assert done.stdout.count(f'"{digest}": "') >= len(ENVIRONMENTS)
        found.append((done.stdout, [(folder / f"{env}.json").read_bytes() for env in ENVIRONMENTS]))
    assert found[0] == found[1]


# -- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["required", "COMMAND"]),
        (["envs", "extra"], ["unrecognized arguments: extra"]),
        (["environments"], ["invalid choice: 'environments'"]),
        (["generate"], ["required: ENV"]),
        (["generate", "marketing"], ["unknown environment 'marketing'", FIRST]),
        (["generate", FIRST, "--band", "65K"], ["unknown band '65K'", "128K"]),
        (["generate", FIRST, "--family", "cars"], ["no family 'cars'", "its families are"]),
        (["generate", FIRST, "--configuration", "a/b/c"], ["no configuration 'a/b/c'", "it has"]),
        (["generate", FIRST, "--seed", "x"], ["--seed", "'x'"]),
        (["generate", FIRST, "--seed", "-1"], ["a seed is a whole number"]),
        (["generate", FIRST, "-o", "no/such/folder/task.json"], ["no/such/folder is not a folder"]),
        (["validate", "--orders", "0"], ["--orders", "'0' is no positive whole number"]),
        (["validate", "--processes", "-1"], ["--processes", "'-1' is no positive whole number"]),
        (["export", "harbor", "--out", "x", "--tasks", "1.5"], ["--tasks", "'1.5' is no positive whole number"]),
        (["run"], ["required: TASK, --agent"]),
        (["run", "none.json"], ["required: --agent"]),
        (["run", "none.json", "--agent", "noop"], ["cannot read none.json"]),
        (["run", "none.json", "--agent", "noop", "--resume"], ["--resume needs --journal"]),
        (["evaluate", "none"], ["no journal at none"]),
        (["replay", "none"], ["no journal at none"]),
        (["skills"], ["required", "COMMAND"]),
        (["skills", "check", "marketing"], ["unknown environment 'marketing'"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_is_one_clear_line(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refused(told(capsys, *arguments), *words)
    if arguments and arguments[0] != "skills":
        assert_refused(told(capsys, *arguments, "--json"), *words)
    assert not list(tmp_path.iterdir())


def test_an_unknown_agent_is_refused_and_no_journal_begun(capsys, saved, tmp_path):
    answer = told(capsys, "run", saved, "--agent", "nobody", "--journal", tmp_path / "journal")
    assert_refused(answer, "unknown agent 'nobody'", "noop, random, reference, shuffled")
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("not a task", "is not a task file"),
        ('{"format": 99}', "version 99"),
        (None, "has been altered"),
    ],
)
def test_a_wrong_task_file_is_refused(content, words, capsys, saved):
    saved.write_text(saved.read_text().replace('"R": ', '"R": 1') if content is None else content)
    assert_refused(told(capsys, "run", saved, "--agent", "noop"), saved.name, words)


def test_an_existing_file_is_never_overwritten(capsys, saved, tmp_path):
    for path in (saved, tmp_path / "notes.txt"):
        if path != saved:
            path.write_bytes(b"mine\x00")
        before = path.read_bytes()
        assert_refused(told(capsys, "generate", FIRST, "-o", path), f"{path} exists already")
        assert_refused(told(capsys, "run", saved, "--agent", "noop", "--journal", path), f"{path} exists already")
        assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "task.json"]


def test_a_journal_in_no_folder_is_refused(capsys, saved, tmp_path):
    answer = told(capsys, "run", saved, "--agent", "noop", "--journal", tmp_path / "none" / "journal")
    assert_refused(answer, "cannot create", "journal")


@pytest.mark.parametrize(("number", "words"), [(errno.EACCES, "Permission denied"), (errno.ENOSPC, "No space left")])
def test_a_file_that_cannot_be_written_is_refused(number, words, capsys, tmp_path, monkeypatch):
    def refuse(self, data):
        raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert_refused(told(capsys, "generate", FIRST, "-o", tmp_path / "task.json"), "task.json", words)


def test_in_a_process_of_its_own_bad_input_has_the_same_form():
    done = command("generate", "marketing")
    assert_refused((done.returncode, done.stdout, done.stderr), "unknown environment 'marketing'")


# -- interruptions -------------------------------------------------------------------------------------------------


def test_an_interruption_has_status_130(capsys, saved, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "run", interrupted)
    assert told(capsys, "run", saved, "--agent", "noop") == (130, "", "skillhorizon: interrupted\n")


def test_a_reader_that_has_gone_is_no_error():
    with subprocess.Popen(
        [sys.executable, "-m", "skillhorizon", "envs"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_a_fault_of_the_program_is_not_dressed_up_as_bad_input(capsys, saved, monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(api, "run", broken)
    with pytest.raises(ZeroDivisionError):
        told(capsys, "run", saved, "--agent", "noop")


# -- progress ------------------------------------------------------------------------------------------------------


def test_progress_is_shown_on_a_terminal_only(capsys, monkeypatch):
    with progress.watch(lambda: 3, "work", 10):
        pass
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.watch(lambda: 3, "work", 10):
        pass
    out, err = capsys.readouterr()
    assert out == ""
    assert "work" in err


# -- the command ---------------------------------------------------------------------------------------------------


def test_the_package_installs_the_command():
    (script,) = [e for e in entry_points(group="console_scripts") if e.name == "skillhorizon"]
    assert script.load() is cli.main


@pytest.mark.parametrize("arguments", [["--help"], ["generate", "--help"], ["skills", "check", "--help"]])
def test_help_is_there(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        told(capsys, *arguments)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: skillhorizon")


# -- skill packages ------------------------------------------------------------------------------------------------


def test_all_skill_packages_keep_the_format_and_their_scripts_the_contract(capsys):
    status, found = document(capsys, "skills", "check")
    assert status == 0
    assert found["ok"]
    assert {s["environment"] for s in found["skills"]} == set(ENVIRONMENTS)
    assert len(found["skills"]) == sum(len(envs.load(name).skills) for name in ENVIRONMENTS)


def test_the_packages_of_one_environment_can_be_checked(capsys):
    status, out, err = told(capsys, "skills", "check", FIRST)
    assert (status, err) == (0, "")
    assert out.endswith("all in order\n")
    assert out.startswith(f"{len(envs.load(FIRST).skills)} skills")


def test_the_toy_packages_are_in_order():
    assert not [problem for report in check_folder(TOY_SKILLS) for problem in report.problems]


FRONT = "---\nname: {name}\ndescription: Does it.\n---\nDo it.\n"
SCRIPT = """
import json, sys
def fail(status=2, **answer):
    print(json.dumps(answer)); sys.exit(status)
"""
BROKEN = {
    "no-front-matter": ("Do it.\n", None, "frontmatter"),
    "another-name": (FRONT.format(name="a-name"), None, "must match skill name"),
    "field-too-many": (FRONT.format(name="field-too-many\nversion: 1"), None, "Unexpected fields"),
    "no-description": ("---\nname: no-description\n---\n", None, "description"),
    "no-text": (b"\xff\xfe", None, "UTF-8"),
    "status": (FRONT.format(name="status"), "fail(0, error='no')", "exits with status 0, not 2"),
    "traceback": (FRONT.format(name="traceback"), "1 / 0", "exits with status 1, not 2"),
    "noisy": (FRONT.format(name="noisy"), "print('!', file=sys.stderr); fail(error='no')", "writes to standard error"),
    "mute": (FRONT.format(name="mute"), "sys.exit(2)", "does not print one JSON object"),
    "no-error": (FRONT.format(name="no-error"), "fail(result=1)", "does not print one JSON object"),
    "accepts": (FRONT.format(name="accepts"), "json.load(sys.stdin); fail(0)", "no such field"),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("skills")
    for name, (text, script, _) in BROKEN.items():
        (folder / name / "scripts").mkdir(parents=True)
        (folder / name / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
        if script:
            (folder / name / "scripts" / "do.py").write_text(SCRIPT + script)
    (folder / "empty").mkdir()
    return folder, {r.skill: r for r in check_folder(folder)}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_package_is_found(name, reports):
    problems = reports[1][name].problems
    assert any(BROKEN[name][2].lower() in problem.lower() for problem in problems), problems


def test_a_folder_without_a_skill_is_found(reports):
    assert reports[1]["empty"].problems


def test_a_failed_check_has_status_1_and_names_the_problems(reports, capsys, monkeypatch):
    folder, found = reports
    (root := folder.parent / "env").mkdir()
    (root / "skills").symlink_to(folder)
    monkeypatch.setattr(envs, "folder", lambda name: root)
    status, out, err = told(capsys, "skills", "check", FIRST)
    assert (status, err) == (1, "")
    assert f"{FIRST}/mute: do.py on 'no JSON' does not print" in out
    assert out.splitlines()[-1].startswith(f"{len(found)} skills with 6 scripts: ")


def test_a_clear_line_has_no_line_break(capsys, monkeypatch, saved):
    def refuse(*arguments):
        raise InputError("one\ntwo")

    monkeypatch.setattr(api, "run", refuse)
    assert_refused(told(capsys, "run", saved, "--agent", "noop"), "one two")
