from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from skillhorizon.core.bands import BANDS, PAPER_BANDS, band, band_of, calibrate
from skillhorizon.core.errors import InputError


def test_the_bands_are_those_of_table_5_and_two_longer_ones():
    assert [(b.name, b.lower, b.upper) for b in BANDS.values()] == [
        ("64K", 0, 65_536),
        ("128K", 65_536, 131_072),
        ("256K", 131_072, 262_144),
        ("512K", 262_144, 524_288),
        ("1M", 524_288, 1_048_576),
        ("2M", 1_048_576, 2_097_152),
        ("4M", 2_097_152, 4_194_304),
    ]
    assert tuple(BANDS)[:5] == PAPER_BANDS


@pytest.mark.parametrize(
    ("tokens", "name"),
    [
        (0, None),
        (1, "64K"),
        (65_536, "64K"),
        (65_537, "128K"),
        (131_072, "128K"),
        (131_073, "256K"),
        (262_144, "256K"),
        (262_145, "512K"),
        (524_288, "512K"),
        (524_289, "1M"),
        (1_048_576, "1M"),
        (1_048_577, "2M"),
        (2_097_152, "2M"),
        (2_097_153, "4M"),
        (4_194_304, "4M"),
        (4_194_305, None),
    ],
)
def test_a_band_excludes_its_lower_bound_and_includes_its_upper_one(tokens, name):
    assert band_of(tokens) == name
    assert [b.name for b in BANDS.values() if b.holds(tokens)] == ([name] if name else [])


def test_the_target_is_the_upper_part_of_the_band():
    """85 % of 65,536 are 55,705.6."""
    assert band("64K").target == (55_706, 65_536)
    for b in BANDS.values():
        assert all(b.holds(end) for end in b.target)


def test_an_unknown_band_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"unknown band '64k'; the bands are 64K, 128K"):
        band("64k")


# -- calibration ---------------------------------------------------------------------------------------------------

TARGET = (55_706, 65_536)
GUESSES = (10, 50, 120, 400, 1_000)


def search(cost: Callable[[int], int], guess: int, smallest: int = 4, largest: int = 10_000) -> tuple[int | None, int]:
    """The workload that landed, and how many runs it took."""
    runs = 0

    def measure(size: int) -> tuple[int, str]:
        nonlocal runs
        runs += 1
        assert smallest <= size <= largest
        return cost(size), f"run at {size}"

    found = calibrate(measure, TARGET, guess, smallest, largest)
    if found is None:
        return None, runs
    assert (found.workload, found.result, found.runs) == (cost(found.size), f"run at {found.size}", runs)
    return found.workload, runs


@pytest.mark.parametrize(
    ("cost", "most_runs"),
    [
        pytest.param(lambda s: 520 * s, 3, id="linear"),
        pytest.param(lambda s: 50_000 + 100 * s, 4, id="large fixed part"),
        pytest.param(lambda s: max(0, 900 * s - 20_000), 5, id="negative fixed part"),
        pytest.param(lambda s: int(520 * s * (1 + 0.08 * math.sin(s * 12.9898))), 8, id="noisy"),
        pytest.param(lambda s: 9_000 * math.ceil(s / 20), 5, id="coarse, and one step lands"),
        pytest.param(lambda s: int(100 * s * math.log(s + 1)), 6, id="bent"),
        pytest.param(lambda s: 1_000 if s < 700 else 60_000 if s < 720 else 900_000, 24, id="a jump"),
    ],
)
def test_calibration_lands_in_few_runs(cost, most_runs):
    for guess in GUESSES:
        workload, runs = search(cost, guess)
        assert workload is not None
        assert TARGET[0] <= workload <= TARGET[1]
        assert runs <= most_runs


def test_of_all_sizes_that_land_the_one_nearest_to_the_aim_is_found_from_any_guess():
    """The aim lies a quarter below the upper end: 65,536 - 9,830 / 4 = 63,078.5. 121 * 520 = 62,920."""
    assert {search(lambda s: 520 * s, guess)[0] for guess in (*GUESSES, 4, 110, 126, 10_000)} == {62_920}


@pytest.mark.parametrize(
    ("cost", "most_runs"),
    [
        pytest.param(lambda s: 40_000 * math.ceil(s / 20), 12, id="too coarse"),
        pytest.param(lambda s: 100, 8, id="always too small"),
        pytest.param(lambda s: 0, 8, id="nothing"),
        pytest.param(lambda s: 10**7, 8, id="always too large"),
        pytest.param(lambda s: 520 * s if s < 100 else 10**6, 30, id="a jump over the target"),
    ],
)
def test_calibration_gives_up_where_no_size_lands(cost, most_runs):
    for guess in GUESSES:
        workload, runs = search(cost, guess)
        assert workload is None
        assert runs <= most_runs


def test_the_ends_of_the_knob_and_of_the_target_count():
    assert search(lambda s: 55_706, 5, 5, 5) == (55_706, 1)
    assert search(lambda s: 65_536, 900, 5, 5) == (65_536, 1)
    assert search(lambda s: 55_705 if s < 10_000 else 65_536, 4)[0] == 65_536
    assert search(lambda s: 65_536 if s == 4 else 65_537, 9_000)[0] == 65_536


def test_a_step_never_leaps_to_a_run_many_times_too_large():
    """A first measure that says nearly nothing must not send the search to the far end of the knob."""
    tried: list[int] = []

    def measure(size: int) -> tuple[int, None]:
        tried.append(size)
        return 600 * max(0, size - 40), None

    assert calibrate(measure, TARGET, 41, 1, 1_000_000) is not None
    assert max(tried) <= 4 * 145
