"""Agents that need no model: the reference, the same work in another order, nothing at all, and blind activity."""

from __future__ import annotations

import random
import re
from typing import Any

from skillhorizon.agents.protocol import Agent, Outcome
from skillhorizon.core.gateway import Gateway, Observation
from skillhorizon.core.ids import stream
from skillhorizon.core.policy import Call, Refused, drive
from skillhorizon.core.task import Task


class Exhausted(Exception):
    """The allowance is used up; no further attempt is made."""


def allowed(gateway: Gateway, tool: str) -> bool:
    """Whether the allowance has an attempt left for this tool; declarations need none."""
    known = gateway.tools.get(tool)
    return gateway.remaining is None or gateway.remaining > 0 or (known is not None and not known.charged)


class Procedure:
    """Carries the environment's reference policy out, in its own order or in a random legal one."""

    def __init__(self, shuffled: bool = False) -> None:
        self.shuffled = shuffled

    def act(self, task: Task, gateway: Gateway, seed: int) -> Outcome:
        def perform(call: Call) -> Observation:
            if not allowed(gateway, call.tool):
                raise Exhausted
            return gateway.call(call.tool, call.arguments, module=call.module, goal=call.goal)

        try:
            drive(task.environment.policy(), perform, stream("shuffled", seed) if self.shuffled else None)
        except Exhausted:
            return Outcome("exhausted")
        except Refused as refusal:
            return Outcome("failed", str(refusal))
        return Outcome("submitted")


class Noop:
    """Declares the work finished without a call: what it scores, the empty state scores."""

    def act(self, task: Task, gateway: Gateway, seed: int) -> Outcome:
        return Outcome("submitted")


CALLS = 2000
_WHOLE = 0.02  # share of whole arguments that are no legal object at all
_OMIT = 0.6  # share of optional arguments left out
_FITTING = 0.9  # share of strings taken from what was seen under the same name
_KEPT = 400  # values remembered per name
_WORDS = (
    "alpha",
    "draft",
    "final",
    "p20",
    "USD",
    "0",
    "2031-01-31",
)
_REFS, _IDS = "@", "#"  # where every reference and every id is kept, beside its name
_REF = re.compile(r"[a-z]+-[0-9a-z]{5}(-[0-9]+)?@[0-9]+")
_ID = re.compile(r"[a-z]+-[0-9a-z]{5}(-[0-9]+)?")


class RandomCalls:
    """Calls tools at random with arguments of the right form: ids, references and words that it saw under the
    same name. It knows nothing of the work, so what it reaches is the floor of the scores.
    """

    def __init__(self, calls: int = CALLS) -> None:
        self.calls = calls

    def act(self, task: Task, gateway: Gateway, seed: int) -> Outcome:
        rng = stream("random", seed)
        seen = Seen(rng)
        schemas = {name: tool.schema for name, tool in sorted(gateway.tools.items())}
        tools = list(schemas)
        for _ in range(self.calls):
            if gateway.remaining is not None and gateway.remaining <= 0:
                return Outcome("exhausted")
            tool = rng.choice(tools)
            observation = gateway.call(tool, seen.arguments(schemas[tool]))
            seen.harvest("", observation.get("result"))  # a refusal would only echo what was made up
        return Outcome("stopped")


class Seen:
    """Values observed so far by the name they stood under, and arguments made of them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._values: dict[str, dict[Any, None]] = {}

    def harvest(self, name: str, value: Any) -> None:
        """Keep every scalar in an observation under its key; items of a list stand under the list's singular."""
        if isinstance(value, dict):
            for key, inner in value.items():
                self.harvest(key, inner)
        elif isinstance(value, list):
            for inner in value:
                self.harvest(name.removesuffix("s"), inner)
        elif value is not None:
            self._keep(name, value)
            if isinstance(value, str) and _REF.fullmatch(value):
                self._keep(_REFS, value)
            elif isinstance(value, str) and _ID.fullmatch(value):
                self._keep(_IDS, value)

    def arguments(self, schema: dict[str, Any]) -> Any:
        """Arguments after a tool's schema; a few are no object at all."""
        if self.rng.random() < _WHOLE:
            return self.rng.choice([None, [], "arguments", {"unheard_of": 1}])
        return self._value("", schema, schema.get("$defs", {}))

    def _value(self, name: str, schema: dict[str, Any], defs: dict[str, Any]) -> Any:
        rng = self.rng
        if "$ref" in schema:
            return self._value(name, defs[schema["$ref"].rpartition("/")[2]], defs)
        if "anyOf" in schema:
            return self._value(name, rng.choice(schema["anyOf"]), defs)
        if "enum" in schema:
            return rng.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, defs)
        if kind == "array":
            return self._array(name, schema, defs)
        if kind == "string":
            return self._string(name, schema)
        if kind == "integer":
            return self._integer(name, schema)
        if kind == "number":
            return rng.choice([0, 1, 0.5, -1.25])
        if kind == "boolean":
            return rng.random() < 0.5
        if kind == "null":
            return None
        return self._any()

    def _object(self, schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
        required = schema.get("required", ())
        made = {
            key: self._value(key, inner, defs)
            for key, inner in schema.get("properties", {}).items()
            if key in required or self.rng.random() >= _OMIT
        }
        if not made and schema.get("additionalProperties") is not False:
            for key in self._sample(list(self._values), 3):
                inner = schema.get("additionalProperties")
                made[key] = self._value(key, inner, defs) if isinstance(inner, dict) else self._any(key)
        return made

    def _array(self, name: str, schema: dict[str, Any], defs: dict[str, Any]) -> list[Any]:
        forms = schema.get("prefixItems")
        if forms is None:
            most = min(schema.get("maxItems", 3), schema.get("minItems", 0) + 3)
            forms = [schema.get("items", {})] * self.rng.randint(schema.get("minItems", 0), most)
        singular = name.removesuffix("s")
        return [self._value(singular, form if isinstance(form, dict) else {}, defs) for form in forms]

    def _string(self, name: str, schema: dict[str, Any]) -> str:
        """Seen under the same name, with or without ``_id``; else any of that form; now and then any word."""
        rng = self.rng
        if "pattern" in schema:
            return f"p{rng.randint(0, 40)}"
        base = name.removesuffix("_id")
        reference = "reference" in schema.get("description", "").lower() or name.endswith("ref")
        places = (name, base if base != name else f"{name}_id", _REFS if reference else _IDS)
        known = next((found for place in places if (found := self._strings(place))), [])
        if known and rng.random() < _FITTING:
            return rng.choice(known)[: schema.get("maxLength")]
        ids = self._strings(_IDS)
        return f"{rng.choice(ids)}@{rng.randint(1, 2)}" if reference and ids else rng.choice(_WORDS)

    def _strings(self, place: str) -> list[str]:
        return [value for value in self._values.get(place, ()) if isinstance(value, str)]

    def _integer(self, name: str, schema: dict[str, Any]) -> int:
        rng = self.rng
        known = [v for v in self._values.get(name, ()) if type(v) is int]
        if known and rng.random() < 0.5:
            return rng.choice(known)
        least = schema.get("minimum", -3)
        return rng.randint(max(least, -3), max(least, min(schema.get("maximum", 20), 20)))

    def _any(self, name: str | None = None) -> Any:
        names = list(self._values) if name is None else [name]
        known = list(self._values[self.rng.choice(names)]) if names else []
        return self.rng.choice(known) if known else 0

    def _sample(self, items: list[str], most: int) -> list[str]:
        return self.rng.sample(items, self.rng.randint(0, min(most, len(items))))

    def _keep(self, name: str, value: Any) -> None:
        values = self._values.setdefault(name, {})
        if len(values) < _KEPT:
            values.setdefault(value)
        elif value not in values and self.rng.random() < 0.1:
            values.pop(self.rng.choice(list(values)))
            values[value] = None


SCRIPTED: dict[str, Agent] = {
    "reference": Procedure(),
    "shuffled": Procedure(shuffled=True),
    "noop": Noop(),
    "random": RandomCalls(),
}
