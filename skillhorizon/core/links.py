"""What a trace keeps of contents: which artifacts a query showed in whole, and which calls repeat a script's output.

The events hold references and digests, no arguments and no observations, so both are found while the run is at hand
and kept as two small tables beside them:

``sightings``  step, refs            a query returned these versions with their content (paper E.4)
``matches``    step, source, sources  the call's arguments contain the whole output of a script run (paper E.2)

A call matches a script run of an earlier response when every field of the output, of which there is at least one, is
an argument of the same value: lists are compared as multisets, so repeats count and their order does not, and numbers
keep their types (1 is not 1.0). ``source`` is the newest such run's step, ``sources`` the number of them. Calls of the
same response do not count, for their arguments were written before the output came. A call is matched once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from skillhorizon.core.gateway import Event
from skillhorizon.core.serial import canonical
from skillhorizon.core.world import Artifact


def sightings(events: Iterable[Event], artifacts: Mapping[str, Artifact]) -> list[dict[str, Any]]:
    """Rows of ``sightings``. ``artifacts`` are those of the run, by reference.

    An object of an answer shows an artifact when it holds its reference, as ``ref`` or under the artifact's kind,
    beside all fields of its content, or beside the content itself. A list that names artifacts, a view that leaves a
    field out and a reference to another artifact show none.
    """
    rows = []
    for event in events:
        if event.kind == "query" and event.ok and b"@" in event.observation:
            refs = sorted(set(_shown(msgspec.json.decode(event.observation), artifacts)))
            if refs:
                rows.append({"step": event.step, "refs": refs})
    return rows


def matches(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Rows of ``matches``, in the order of the calls."""
    outputs: dict[tuple[str, ...], dict[bytes, list[int]]] = {}
    waiting: list[tuple[int, dict[str, Any]]] = []
    rows, decision = [], None
    for event in events:
        if event.decision != decision:
            # only now has the agent seen what the last response returned
            for step, output in waiting:
                fields = tuple(sorted(output))
                outputs.setdefault(fields, {}).setdefault(_value(output), []).append(step)
            waiting, decision = [], event.decision
        if event.kind == "script" and event.ok:
            output = msgspec.json.decode(event.observation)["result"].get("output")
            if isinstance(output, dict) and output and "error" not in output:
                waiting.append((event.step, output))
        elif event.kind == "business" and outputs:
            arguments = msgspec.json.decode(event.call)["arguments"]
            if isinstance(arguments, dict) and (steps := _sources(arguments, outputs)):
                rows.append({"step": event.step, "source": max(steps), "sources": len(steps)})
    return rows


def _sources(arguments: dict[str, Any], outputs: dict[tuple[str, ...], dict[bytes, list[int]]]) -> list[int]:
    steps = []
    for fields, known in outputs.items():
        if all(field in arguments for field in fields):
            steps += known.get(_value({field: arguments[field] for field in fields}), [])
    return steps


def _value(value: Any) -> bytes:
    return canonical(_unordered(value))


def _unordered(value: Any) -> Any:
    """Lists in a fixed order, so that equal multisets have equal bytes. Canonical bytes keep 1 and 1.0 apart."""
    if isinstance(value, dict):
        return {key: _unordered(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_unordered(item) for item in value), key=canonical)
    return value


def _shown(value: Any, artifacts: Mapping[str, Artifact]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str):
                found = artifacts.get(item)
                if found is not None and key in ("ref", found.kind) and _is_whole(value, found):
                    yield item
            else:
                yield from _shown(item, artifacts)
    elif isinstance(value, list):
        for item in value:
            yield from _shown(item, artifacts)


def _is_whole(view: dict[str, Any], artifact: Artifact) -> bool:
    content = msgspec.to_builtins(artifact.content)
    if not isinstance(content, dict) or not content:
        return view.get("ref") == artifact.ref and "content" in view
    inner = view.get("content")
    return content.keys() <= view.keys() or (isinstance(inner, dict) and content.keys() <= inner.keys())
