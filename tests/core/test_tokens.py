from __future__ import annotations

import base64
import hashlib
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhorizon.core import tokens
from skillhorizon.core.errors import InputError


@pytest.fixture
def fresh(monkeypatch):
    """The encoding is built anew in the test, and after it."""
    tokens.encoding.cache_clear()
    yield monkeypatch
    tokens.encoding.cache_clear()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("antidisestablishmentarianism", [493, 129901, 376, 160388, 21203, 2367]),
        ("2 + 2 = 4", [17, 659, 220, 17, 314, 220, 19]),
        ("お誕生日おめでとう", [8930, 9697, 243, 128225, 8930, 17693, 4344, 48669]),
    ],
)
def test_the_encodings_published_for_o200k_base_come_out(text, ids):
    """Values of OpenAI's cookbook, "How to count tokens with tiktoken", comparison of encodings."""
    assert tokens.encoding().encode_ordinary(text) == ids
    assert tokens.count(text) == tokens.count(text.encode()) == len(ids)


def test_the_vocabulary_is_the_one_that_tiktoken_itself_verifies():
    """The digest stands in tiktoken_ext/openai_public.py as the expected hash of o200k_base."""
    import inspect

    import tiktoken_ext.openai_public as public

    assert hashlib.sha256(tokens.vocabulary_path().read_bytes()).hexdigest() == tokens.SHA256
    assert tokens.SHA256 in inspect.getsource(public.o200k_base)


def test_the_encoding_has_all_tokens_and_the_name():
    encoding = tokens.encoding()
    assert encoding.name == "o200k_base"
    lines = tokens.vocabulary_path().read_bytes().splitlines()
    assert len(lines) == 199_998
    assert encoding.n_vocab == 200_019  # <|endofprompt|> has the id 200018
    for line in lines[::5000]:
        token, rank = line.split()
        assert encoding.decode_single_token_bytes(int(rank)) == base64.b64decode(token)


@given(st.text())
def test_encoding_and_decoding_gives_the_text_back_in_no_more_tokens_than_bytes(text):
    encoding = tokens.encoding()
    assert encoding.decode(encoding.encode_ordinary(text)) == text
    assert (text != "") <= tokens.count(text) <= len(text.encode())


@pytest.mark.parametrize("special", ["<|endoftext|>", "<|endofprompt|>"])
def test_special_tokens_are_ordinary_text(special):
    assert tokens.count(special) > 1
    assert not set(tokens.encoding().encode_ordinary(special)) & {199_999, 200_018}


def test_every_occurrence_counts():
    texts = [b"2 + 2 = 4", b"", b"2 + 2 = 4", b"antidisestablishmentarianism"]
    assert tokens.count_each(texts) == [7, 0, 7, 6]


def test_counting_needs_no_network(fresh):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    for name in ("socket", "create_connection", "getaddrinfo"):
        fresh.setattr(socket, name, refuse)
    assert tokens.count("2 + 2 = 4") == 7


def test_an_altered_vocabulary_is_refused(fresh, tmp_path):
    data = bytearray(tokens.vocabulary_path().read_bytes())
    data[-2] ^= 1
    (tmp_path / "o200k_base.tiktoken").write_bytes(data)
    fresh.setattr(tokens, "_PLACES", (tmp_path,))
    with pytest.raises(InputError, match="has been altered"):
        tokens.count("text")


def test_a_missing_vocabulary_is_refused(fresh, tmp_path):
    fresh.setattr(tokens, "_PLACES", (tmp_path,))
    with pytest.raises(InputError, match=r"o200k_base\.tiktoken is missing"):
        tokens.count("text")
