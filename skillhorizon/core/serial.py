"""Canonical serialisation: compact UTF-8 JSON with sorted keys, and digests over it (paper A.3.1)."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder(order="sorted")

UNENCODABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""What ``canonical`` raises on values that JSON cannot carry (lone surrogates, huge integers, deep nesting)."""


def canonical(value: Any) -> bytes:
    """Compact UTF-8 JSON with sorted keys; raises one of ``UNENCODABLE`` for what JSON cannot carry."""
    return _encoder.encode(value)


def digest(*values: Any) -> str:
    """SHA-256 (hex) over the canonical form of each value in turn."""
    state = hashlib.sha256()
    for value in values:
        state.update(value if isinstance(value, bytes) else canonical(value))
        state.update(b"\n")
    return state.hexdigest()


def short_digest(data: bytes) -> str:
    """8 hex characters for one observation: they tell two apart and are stored by the million. What a whole run saw is
    proved by its trace digest."""
    return hashlib.blake2b(data, digest_size=4).hexdigest()
