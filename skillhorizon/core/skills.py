"""Agent Skills packages: a folder with SKILL.md (front matter and instructions), scripts/ and references/.

A script is a function ``run(arguments) -> dict`` and also a program: one JSON object on standard input, one on
standard output. The environment calls the function; the arithmetic is the same code.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from skillhorizon.core.errors import InputError, Rejected
from skillhorizon.core.serial import canonical

Script = Callable[[dict[str, Any]], dict[str, Any]]


class Skill:
    """One package on disk. Reading and running never leave its folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if "SKILL.md" not in self.files:
            raise InputError(f"{path} has no SKILL.md of its own")
        try:
            parts = self.texts["SKILL.md"].split("---\n", 2)
            front = yaml.safe_load(parts[1]) if len(parts) == 3 and not parts[0] else None
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            raise InputError(f"{path.name}: {' '.join(str(error).split())}") from None
        if not isinstance(front, dict) or front.get("name") != path.name or not front.get("description"):
            raise InputError(f"{path.name}/SKILL.md needs a description and the name of its folder")
        self.name: str = front["name"]
        self.description: str = " ".join(str(front["description"]).split())

    @cached_property
    def files(self) -> dict[str, Path]:
        """Readable files by their path in the package, sorted; what a link reaches outside is none."""
        root = self.path.resolve()
        inside = {p.relative_to(self.path).as_posix(): p for p in sorted(self.path.rglob("*")) if p.is_file()}
        return {
            name: path
            for name, path in inside.items()
            if "__pycache__" not in name and path.resolve().is_relative_to(root)
        }

    @cached_property
    def texts(self) -> dict[str, str]:
        return {name: path.read_text(encoding="utf-8") for name, path in self.files.items()}

    @cached_property
    def scripts(self) -> dict[str, Script]:
        """``run`` of each script by its name without suffix."""
        found: dict[str, Script] = {}
        for name, path in self.files.items():
            if name.startswith("scripts/") and path.suffix == ".py":
                spec = importlib.util.spec_from_file_location(f"{self.name}.{path.stem}", path)
                if spec is None or spec.loader is None:
                    raise InputError(f"{self.name}/{name} cannot be loaded")
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                found[path.stem] = module.run
        return found

    def read(self, path: str) -> str:
        """Text of a file of the package; refuses ``unknown_id`` for anything else, so no path leads out of it."""
        if path not in self.texts:
            raise Rejected("unknown_id", f"skill {self.name} has no file {path!r}", files=list(self.texts))
        return self.texts[path]

    def run(self, script: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What the script computes over its arguments; refuses ``script_failed`` when it cannot."""
        return self._run(script, arguments)[0]

    def encoded(self, script: str, arguments: dict[str, Any]) -> bytes:
        """The same as ``run``, in canonical form."""
        return self._run(script, arguments)[1]

    def _run(self, script: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        if script not in self.scripts:
            raise Rejected("unknown_id", f"skill {self.name} has no script {script!r}", scripts=list(self.scripts))
        try:
            output = self.scripts[script](arguments)
            return output, canonical(output)  # what JSON cannot carry is no answer either
        except ValueError as error:
            raise Rejected("script_failed", f"{script}: {error}") from None
        except Exception as error:  # as from a shell, where a crash is the script's and not the caller's
            raise Rejected("script_failed", f"{script}: {type(error).__name__}: {error}") from None


class SkillLibrary:
    """The public skills of one environment, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.skills = {p.parent.name: Skill(p.parent) for p in sorted(folder.glob("*/SKILL.md"))}

    def __getitem__(self, name: str) -> Skill:
        if name not in self.skills:
            raise Rejected("unknown_id", f"no skill {name!r}", id=name)
        return self.skills[name]

    def __len__(self) -> int:
        return len(self.skills)

    def catalog(self) -> list[dict[str, str]]:
        return [{"name": s.name, "description": s.description} for s in self.skills.values()]
