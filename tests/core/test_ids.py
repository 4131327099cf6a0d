from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise

import pytest

from skillhorizon.core.ids import Ids, derived, stream

FORM = re.compile(r"src-[0-9a-hjkmnp-tv-z]{5}")


@pytest.fixture(scope="module")
def many() -> list[str]:
    ids = Ids("test", 1)
    return [ids.new("src", n) for n in range(200_000)]


def test_two_hundred_thousand_ids_do_not_collide(many):
    assert len(set(many)) == len(many)


def test_an_id_is_a_prefix_and_five_characters_that_are_never_all_digits(many):
    assert all(FORM.fullmatch(i) for i in many)
    assert not any(i[4:].isdigit() for i in many)


def test_characters_are_unique_over_all_prefixes():
    ids = Ids("test", 2)
    drawn = [ids.new(prefix, n)[4:] for n in range(20_000) for prefix in ("src", "stg")]
    assert len(set(drawn)) == len(drawn)


def test_avoided_characters_are_never_drawn():
    first, second = Ids("test", 3), Ids("test", 3)
    seeded = [first.new("src", n) for n in range(500)]
    second.avoid(i.replace("src", "pag") for i in seeded)
    drawn = [second.new("src", n) for n in range(500)]
    assert not {i[4:] for i in drawn} & {i[4:] for i in seeded}
    assert len(set(drawn)) == 500


def test_an_id_follows_from_seed_and_key_not_from_the_order_of_drawing():
    keys = list(range(2_000))
    forward, backward = Ids("seed"), Ids("seed")
    one = {k: forward.new("src", k) for k in keys}
    other = {k: backward.new("src", k) for k in reversed(keys)}
    assert one == other
    assert Ids("another").new("src", 0) != one[0]


def test_ids_say_nothing_of_the_order_of_their_keys(many):
    ascending = sum(a < b for a, b in pairwise(many))
    assert 0.49 < ascending / len(many) < 0.51


def test_a_key_has_one_id():
    ids = Ids("seed")
    ids.new("src", 1, "a")
    ids.new("stg", 1, "a")
    with pytest.raises(ValueError, match="has its id already"):
        ids.new("src", 1, "a")


def test_characters_of_shared_records_are_avoided():
    """A set that holds the very characters that a key would draw first: it draws others, and other keys do not mind."""
    first = Ids("seed").new("src", 1)
    ids = Ids("seed")
    ids.avoid([f"bkg-{first[4:]}", "flt-00000"])
    assert ids.new("src", 1)[4:] != first[4:]
    assert ids.new("src", 2) == Ids("seed").new("src", 2)


def test_a_derived_id_takes_the_characters_of_its_subject():
    assert derived("nrm", "src-7qk2m") == "nrm-7qk2m"
    assert derived("vew", "src-7qk2m", 3) == "vew-7qk2m-3"
    with pytest.raises(ValueError, match="'release' is no id"):
        derived("rvw", "release")


def test_a_stream_is_a_function_of_its_key_alone():
    first = [stream("s", 1).random() for _ in range(3)]
    assert len(set(first)) == 1
    assert stream("s", 2).random() != first[0]
    assert stream("s", 1, "x").random() != first[0]


def test_ids_and_streams_are_the_same_in_another_process_with_another_hash_seed():
    program = (
        "from skillhorizon.core.ids import Ids, stream\n"
        "print(Ids('a', 1).new('src', 'k', 2), stream('s', ('t', 3)).random())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {f"{Ids('a', 1).new('src', 'k', 2)} {stream('s', ('t', 3)).random()}\n"}
