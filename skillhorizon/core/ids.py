"""Opaque ids and random streams, both functions of a seed and a natural key, never of call order."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 5


def _hash(*key: object) -> int:
    text = "\x1f".join(map(str, key))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")


def stream(*key: object) -> random.Random:
    """A random stream of its own for a natural key such as ``(seed, "source", stage, lane)``."""
    return random.Random(_hash(*key))


class Ids:
    """Ids of one task: a kind prefix and five base-32 characters, drawn without replacement.

    The characters are unique over all prefixes, so an artifact made at run time may take the characters of its subject
    under a prefix of its own and cannot collide. They follow from seed and key alone; only where two keys draw the same
    characters (some 150 times among 100,000) does the one that comes second draw again.
    """

    def __init__(self, *seed: object) -> None:
        self._seed = seed
        self._taken: set[str] = set()
        self._drawn: set[tuple[object, ...]] = set()

    def avoid(self, ids: Iterable[str]) -> None:
        """Never draw the characters of these ids: those of shared seed records, among which the task's own stand."""
        self._taken.update(i.partition("-")[2] for i in ids)

    def new(self, prefix: str, *key: object) -> str:
        """The id of the object with this natural key; raises ``ValueError`` on a second draw of one key."""
        if (prefix, *key) in self._drawn:
            raise ValueError(f"{prefix} {key} has its id already")
        self._drawn.add((prefix, *key))
        for attempt in range(1000):
            value = _hash(*self._seed, prefix, *key, attempt)
            characters = ""
            for _ in range(_LENGTH):
                value, index = divmod(value, 32)
                characters += _ALPHABET[index]
            if characters not in self._taken and not characters.isdigit():
                self._taken.add(characters)
                return f"{prefix}-{characters}"
        raise ValueError(f"no free id left for {prefix} {key}")


def derived(prefix: str, subject: str, ordinal: int | None = None) -> str:
    """The id of an artifact about ``subject``: its characters under another prefix, e.g. ``nrm-7qk2m``."""
    characters = subject.partition("-")[2]
    if not characters:
        raise ValueError(f"{subject!r} is no id to derive another from")
    return f"{prefix}-{characters}" if ordinal is None else f"{prefix}-{characters}-{ordinal}"
