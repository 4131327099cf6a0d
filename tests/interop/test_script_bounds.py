"""Scripts run in the server, so what a caller hands them must not take it down: time and memory at the size limit."""

from __future__ import annotations

import copy
import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import skillhorizon as sh
from skillhorizon.core.errors import Rejected
from skillhorizon.core.generation import run_policy
from skillhorizon.core.serial import canonical
from skillhorizon.interop.mcp_server import MAX_ARGUMENT_BYTES
from tests.support import ENVIRONMENTS, SMALLEST

SECONDS = 10  # the slowest takes about one where nothing else runs
MEGABYTES = 256
VALUES = [2**53 - 1, -(2**53), "1e999999999", "9" * 4000, "0." + "0" * 100_000 + "1", 1e308, "1/3", None, [], {}]

Path = tuple[Any, ...]


def used_inputs(env: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Of each script of the environment, its largest input in the reference runs of one task a family."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for family in sh.environment(env).families:
        for event in run_policy(sh.generate(env, family, band=SMALLEST)).trace.raw:
            if event.tool == "run_skill_script":
                call = json.loads(event.call)["arguments"]
                key = (call["skill"], call["script"])
                found[key] = max(found.get(key, {}), call["input"], key=lambda i: len(canonical(i)))
    return found


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in a value; of a list its first item stands for all."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key)
        yield from places(item, (*path, key))


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def other(value: Any, number: int) -> Any:
    """The same with other names, so that nothing is a duplicate."""
    if isinstance(value, dict):
        return {k: other(v, number) for k, v in value.items()}
    if isinstance(value, list):
        return [other(v, number) for v in value]
    return f"{value[:-5]}{number:05d}" if isinstance(value, str) and "-" in value[1:] else value


def attacks(honest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The honest input with one value replaced by a monstrous one, and with one list, or each of the outermost ones in
    equal shares, drawn out to the limit."""
    for path in places(honest):
        for value in VALUES:
            changed = copy.deepcopy(honest)
            at(changed, path[:-1])[path[-1]] = value
            yield changed
    lists = [path for path in places(honest) if isinstance(at(honest, path), list) and at(honest, path)]
    for together in [*([path] for path in lists), [path for path in lists if len(path) == 1]]:
        for vary in (other, lambda item, _: item):
            drawn = copy.deepcopy(honest)
            for path in together:
                items = at(honest, path)
                count = MAX_ARGUMENT_BYTES // len(together) // (len(canonical(items[-1])) + 1)
                at(drawn, path[:-1])[path[-1]] = [vary(items[n % len(items)], n) for n in range(count)]
            yield drawn


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_no_input_within_the_limit_holds_a_script_up_or_fills_the_memory(env):
    library = sh.environment(env).skills
    inputs = used_inputs(env)
    assert set(inputs) == {(name, script) for name, skill in library.skills.items() for script in skill.scripts}
    before = peak_megabytes()
    answered = 0
    for (skill, script), honest in inputs.items():
        for attack in attacks(honest):
            began = time.process_time()
            with suppress(Rejected):
                library[skill].run(script, attack)
                answered += 1
            assert time.process_time() - began < SECONDS, (script, str(attack)[:200])
    assert answered, "every attack was refused for its form: they prove nothing"
    assert peak_megabytes() - before < MEGABYTES


def peak_megabytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak >> (20 if sys.platform == "darwin" else 10)
