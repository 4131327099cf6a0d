from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhorizon.core.serial import UNENCODABLE, canonical, digest, short_digest

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_canonical_is_compact_utf8_json_with_sorted_keys(value):
    """The standard library, told the same four things, gives the same bytes."""
    written = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert canonical(value) == written.encode()


@given(values)
def test_canonical_survives_a_round_trip(value):
    assert canonical(json.loads(canonical(value))) == canonical(value)


def test_a_whole_number_and_a_float_are_two_values():
    assert canonical([25, 25.0, True]) == b"[25,25.0,true]"


def test_keys_sort_by_code_point():
    assert canonical({"b": 1, "a": 1, "B": 1, "é": 1, "aa": 1}) == '{"B":1,"a":1,"aa":1,"b":1,"é":1}'.encode()


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, {"a": {(1,): 2}}, "\ud800", 10**5000],
    ids=["object", "key", "inner key", "lone surrogate", "number of 5001 digits"],
)
def test_what_json_cannot_carry_raises_one_of_the_known_errors(value):
    with pytest.raises(UNENCODABLE):
        canonical(value)


def test_bottomless_nesting_raises_one_of_the_known_errors():
    value: list[object] = []
    value.append(value)
    with pytest.raises(UNENCODABLE):
        canonical(value)


def test_digest_is_the_sha256_of_the_lines():
    assert digest({"b": 1, "a": [2]}, b"raw", "text") == hashlib.sha256(b'{"a":[2],"b":1}\nraw\n"text"\n').hexdigest()


def test_digest_tells_where_one_value_ends():
    assert len({digest("a", "b"), digest("ab"), digest("a\nb"), digest(["a", "b"]), digest("b", "a")}) == 5


def test_a_short_digest_is_eight_hex_characters_of_the_content():
    assert short_digest(b"one") == short_digest(b"one") != short_digest(b"two")
    assert len(short_digest(b"one")) == 8
    int(short_digest(b"one"), 16)
