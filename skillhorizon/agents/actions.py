"""The action protocol: what one response of an agent may say, and what is wrong with one that says something else.

A response is one JSON object, ``{"type": "actions", "actions": [{"name", "arguments", "skill_run_id"?}, …]}`` with 1
to 32 calls, or ``{"type": "final", "text": …}`` (paper B.2). Actions may stand in a fence with a little commentary on
each side; a final stands alone. Nothing here raises on whatever a model wrote.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

MOST_CALLS = 32
MOST_COMMENTARY = 1024
"""Characters on each side of a fence."""

EXPECTED = (
    'Answer with one JSON object: {"type":"actions","actions":[{"name":"TOOL","arguments":{…}}]} with '
    f'1 to {MOST_CALLS} calls, or {{"type":"final","text":"…"}} and nothing around it.'
)
_FENCE = "```"
_SHOWN = 120


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call as the agent wrote it. ``skill_run_id`` is a label of the envelope, no argument of the business."""

    name: Annotated[str, Meta(min_length=1)]
    arguments: dict[str, Any]
    skill_run_id: str | None = None


class Actions(msgspec.Struct, frozen=True):
    calls: tuple[Action, ...]


class _Actions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="actions"):
    actions: Annotated[tuple[Action, ...], Meta(min_length=1, max_length=MOST_CALLS)]


class Final(msgspec.Struct, frozen=True):
    """The wish to end the whole task."""

    text: str


class Malformed(msgspec.Struct, frozen=True):
    """A response of no accepted form: ``kind`` names the fault, ``problem`` says it in public.

    ``rejected`` is the name of the tool that the faulty action asked for, where one can be identified: that action is
    an attempt, and a refused one. A fault of the whole response (not JSON, too many calls) is no attempt.
    """

    kind: str
    problem: str
    rejected: str | None = None


Response = Actions | Final | Malformed

_WELL_FORMED = msgspec.json.Decoder(_Actions)


def parse(text: str | bytes) -> Response:
    """What a response says; whatever is wrong with it is a ``Malformed``."""
    try:
        data = (text.encode() if isinstance(text, str) else text.decode().encode()).strip()
    except UnicodeError:
        return Malformed("encoding", "the response is not valid Unicode text")
    try:
        return Actions(_WELL_FORMED.decode(data).actions)  # what most responses are, at the speed of the library
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass  # anything else is looked at closely, to say what it is
    if not data:
        return Malformed("empty", "the response is empty")
    whole = _decode(data)
    if not isinstance(whole, Malformed):
        return _response(whole, fenced=False)
    opened, closed = data.find(_FENCE.encode()), data.rfind(_FENCE.encode())
    if opened < 0:
        return whole
    if closed < opened + len(_FENCE):
        return Malformed("fence", "the fence around the JSON is not closed")
    before, after = data[:opened].decode().strip(), data[closed + len(_FENCE) :].decode().strip()
    if max(len(before), len(after)) > MOST_COMMENTARY:
        return Malformed("commentary", f"more than {MOST_COMMENTARY:,} characters stand beside the fenced JSON")
    inner = data[opened + len(_FENCE) : closed].removeprefix(b"json").removeprefix(b"JSON").strip()
    whole = _decode(inner)
    return whole if isinstance(whole, Malformed) else _response(whole, fenced=True)


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        return Malformed("nesting", "the JSON is nested too deeply")
    except (msgspec.DecodeError, ValueError) as error:
        return Malformed("json", f"the response is not one JSON object ({error})")


def _response(value: Any, fenced: bool) -> Response:
    if not isinstance(value, dict):
        return Malformed("object", f"the response is a JSON {_kind(value)}, not an object")
    kind = value.get("type")
    if kind == "final":
        return _final(value, fenced)
    if kind == "actions":
        return _actions(value)
    return Malformed("type", f'"type" is {_shown(kind)}, neither "actions" nor "final"')


def _final(value: dict[str, Any], fenced: bool) -> Response:
    if fenced:
        return Malformed("final", "a final stands alone, without a fence and without commentary")
    if unknown := sorted(set(value) - {"type", "text"}):
        return Malformed("final", f"a final has no field {_shown(unknown[0])}")
    if not isinstance(value.get("text"), str):
        return Malformed("final", 'a final has a "text" that is a string')
    return Final(value["text"])


def _actions(value: dict[str, Any]) -> Response:
    if unknown := sorted(set(value) - {"type", "actions"}):
        return Malformed("actions", f"a response with actions has no field {_shown(unknown[0])}")
    listed = value.get("actions")
    if not isinstance(listed, list) or not listed:
        return Malformed("actions", '"actions" is a list of at least one call')
    if len(listed) > MOST_CALLS:
        return Malformed("calls", f"{len(listed):,} calls in one response; at most {MOST_CALLS} are allowed")
    calls = []
    for number, item in enumerate(listed, 1):
        action = _action(item, f"action {number}")
        if isinstance(action, Malformed):
            return action
        calls.append(action)
    return Actions(tuple(calls))


def _action(item: Any, which: str) -> Action | Malformed:
    if not isinstance(item, dict):
        return Malformed("action", f"{which} is a JSON {_kind(item)}, not an object")
    name = item.get("name")
    if not isinstance(name, str) or not name:
        return Malformed("action", f'{which} has no "name" that is a string')
    if unknown := sorted(set(item) - {"name", "arguments", "skill_run_id"}):
        return Malformed("action", f"{which} has an unknown field {_shown(unknown[0])}", name)
    if not isinstance(item.get("arguments"), dict):
        return Malformed("action", f'{which} has no "arguments" that are an object', name)
    label = item.get("skill_run_id")
    if label is not None and not isinstance(label, str):
        return Malformed("action", f'{which} has a "skill_run_id" that is no string', name)
    return Action(name, item["arguments"], label)


def _kind(value: Any) -> str:
    names = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
