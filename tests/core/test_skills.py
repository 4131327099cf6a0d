from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import skills_ref

from skillhorizon.core.errors import InputError, Rejected
from skillhorizon.core.skills import Skill, SkillLibrary
from tests.toy.world import SKILLS

PACKAGE = SKILLS / "quote-parcel"
GOOD = {"grams": 1501, "cents_per_kg": 200, "surcharge": 35}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package beside a secret file, to be filled by a test."""
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "a-skill"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: a-skill\ndescription: What it\n  is for.\n---\nText.\n")
    return folder


def code_of(refusal: pytest.ExceptionInfo[Rejected]) -> str:
    return refusal.value.code


def test_the_public_validator_takes_the_toys_package():
    assert skills_ref.validate(PACKAGE) == []


def test_a_package_knows_its_name_description_and_files(package):
    skill = Skill(package)
    assert (skill.name, skill.description) == ("a-skill", "What it is for.")
    assert list(skill.files) == ["SKILL.md"]
    assert list(Skill(PACKAGE).files) == ["SKILL.md", "references/zones.csv", "scripts/price.py"]


def test_a_file_is_read_as_it_is():
    for name in ("SKILL.md", "references/zones.csv", "scripts/price.py"):
        assert Skill(PACKAGE).read(name) == (PACKAGE / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "scripts/../../secret.txt", "./SKILL.md", "scripts/../SKILL.md", "SKILL.md/", "/SKILL.md",
     "scripts", "scripts\\..\\..\\secret.txt", "skill.md", "%2e%2e/secret.txt", "SKILL.md\x00", ""],
)  # fmt: skip
def test_no_path_leads_out_of_the_package_or_to_what_is_no_file_of_it(package, path):
    with pytest.raises(Rejected) as refusal:
        Skill(package).read(path)
    assert code_of(refusal) == "unknown_id"
    assert refusal.value.details == {"files": ["SKILL.md"]}


def test_an_absolute_path_is_refused(package):
    for path in (package / "SKILL.md", package.parent / "secret.txt", Path("/etc/hostname")):
        with pytest.raises(Rejected):
            Skill(package).read(str(path))


def test_a_link_out_of_the_package_is_no_file_of_it(package):
    (package / "out.txt").symlink_to(package.parent / "secret.txt")
    (package / "relative.txt").symlink_to("../secret.txt")
    (package / "folder").symlink_to(package.parent, target_is_directory=True)
    (package / "scripts" / "out.py").symlink_to(Path(json.__file__))
    (package / "inside.txt").symlink_to("SKILL.md")
    skill = Skill(package)
    assert list(skill.files) == ["SKILL.md", "inside.txt"]
    assert skill.scripts == {}
    for path in ("out.txt", "relative.txt", "folder/secret.txt", "scripts/out.py"):
        with pytest.raises(Rejected):
            skill.read(path)


def test_a_package_whose_skill_md_lies_elsewhere_is_none(package):
    (package / "SKILL.md").rename(package.parent / "SKILL.md")
    (package / "SKILL.md").symlink_to("../SKILL.md")
    with pytest.raises(InputError, match=r"no SKILL\.md of its own"):
        Skill(package)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Text only.\n",
        "---\nname: a-skill\ndescription: d\n",
        "\n---\nname: a-skill\ndescription: d\n---\n",
        "---\nname: another\ndescription: d\n---\n",
        "---\nname: a-skill\n---\n",
        "---\n- a\n---\n",
        "---\nname: [\n---\n",
    ],
)
def test_a_package_without_proper_front_matter_is_refused(package, text):
    (package / "SKILL.md").write_text(text)
    with pytest.raises(InputError, match="a-skill") as refusal:
        Skill(package)
    assert "\n" not in str(refusal.value)


def test_a_package_that_is_no_text_is_refused(package):
    (package / "SKILL.md").write_bytes(b"---\nname: \xff\n---\n")
    with pytest.raises(InputError, match="a-skill"):
        Skill(package)


# -- scripts -------------------------------------------------------------------------------------------------------


def shell(text: str) -> tuple[int, dict[str, object]]:
    """The script as a program, far from the package."""
    done = subprocess.run(
        [sys.executable, "-I", str(PACKAGE / "scripts" / "price.py")],
        input=text,
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_a_script_computes_the_same_in_process_and_from_a_shell():
    """1501 g at 200 cents a kilogram are 300.2 cents, hence 301, and 35 of surcharge."""
    assert Skill(PACKAGE).run("price", dict(GOOD)) == {"cents": 336}
    assert shell(json.dumps(GOOD)) == (0, {"cents": 336})


@pytest.mark.parametrize(
    "bad", [{}, {**GOOD, "x": 1}, {**GOOD, "grams": 1.5}, {**GOOD, "grams": True}, {**GOOD, "grams": -1}]
)
def test_bad_input_gives_one_error_in_process_and_from_a_shell(bad):
    with pytest.raises(Rejected) as refusal:
        Skill(PACKAGE).run("price", bad)
    assert code_of(refusal) == "script_failed"
    status, answer = shell(json.dumps(bad))
    assert (status, f"price: {answer['error']}") == (2, refusal.value.message)


def test_a_program_refuses_what_is_no_json():
    assert shell("no json")[0] == 2


def test_an_unknown_script_is_refused_with_the_known_ones():
    with pytest.raises(Rejected) as refusal:
        Skill(PACKAGE).run("no_such", {})
    assert (code_of(refusal), refusal.value.details) == ("unknown_id", {"scripts": ["price"]})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('too much')", "broken: too much"),
        ("return {'x': arguments['missing']}", "broken: KeyError: 'missing'"),
        ("return 1 / 0", "broken: ZeroDivisionError: division by zero"),
        ("return run(arguments)", "broken: RecursionError: maximum recursion depth exceeded"),
        ("return {'x': object()}", "broken: TypeError: Encoding objects of type object is unsupported"),
    ],
)
def test_a_script_that_fails_in_any_way_is_refused(package, body, message):
    (package / "scripts" / "broken.py").write_text(f"def run(arguments):\n    {body}\n")
    with pytest.raises(Rejected) as refusal:
        Skill(package).run("broken", {})
    assert code_of(refusal) == "script_failed"
    assert refusal.value.message.startswith(message)


# -- libraries -----------------------------------------------------------------------------------------------------


def test_a_library_lists_its_packages_by_name(tmp_path):
    for name in ("second", "first"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: The {name}.\n---\n")
    (tmp_path / "no-package").mkdir()
    library = SkillLibrary(tmp_path)
    assert library.catalog() == [
        {"name": "first", "description": "The first."},
        {"name": "second", "description": "The second."},
    ]
    assert len(library) == 2
    with pytest.raises(Rejected) as refusal:
        library["no-package"]
    assert (code_of(refusal), refusal.value.details) == ("unknown_id", {"id": "no-package"})
