"""Reference tokens: o200k_base over canonical strings (paper A.3.1). Works offline from the shipped vocabulary."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from unittest import mock

import tiktoken
import tiktoken_ext.openai_public as openai_public

from skillhorizon.core.errors import InputError

SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_PACKAGE = Path(__file__).resolve().parents[1]
_PLACES = (_PACKAGE / "_data", _PACKAGE.parent / "data" / "tokenizer")


def vocabulary_path() -> Path:
    """Where the vocabulary lies: in the installed package, or in the checkout."""
    for place in _PLACES:
        if (path := place / "o200k_base.tiktoken").is_file():
            return path
    raise InputError("the tokenizer's vocabulary o200k_base.tiktoken is missing from data/tokenizer")


@cache
def encoding() -> tiktoken.Encoding:
    """The genuine o200k_base; refuses a vocabulary with another SHA-256."""
    data = vocabulary_path().read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise InputError("the tokenizer's vocabulary has been altered: its SHA-256 differs from o200k_base's")
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in data.splitlines())}
    # tiktoken's own definition (split pattern, special tokens), with its download replaced by the shipped file.
    with mock.patch.object(openai_public, "load_tiktoken_bpe", return_value=ranks):
        return tiktoken.Encoding(**openai_public.o200k_base())


@lru_cache(maxsize=2**15)  # as many as the calls and observations of the longest runs
def count(text: str | bytes) -> int:
    """Tokens of one string; special tokens are ordinary text."""
    return len(encoding().encode_ordinary(text.decode() if isinstance(text, bytes) else text))


def count_each(texts: Sequence[bytes]) -> list[int]:
    """Tokens of each string. Equal strings are tokenised once; every occurrence still counts."""
    return [count(text) for text in texts]
