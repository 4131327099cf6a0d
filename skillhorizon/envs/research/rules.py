"""Order and arithmetic of the review: pure functions over values. Rule numbers are those of the protocol.

All numbers are exact: decimal strings become fractions, and what is submitted is quantised half-even (effects and
coefficients to 6 places, variances to 8, q to 4). The next step consumes the quantised values.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

SKILLS = Path(__file__).parent / "skills"

Population = Literal["adults", "older_adults", "adolescents", "perinatal"]
POPULATIONS: tuple[Population, ...] = ("adults", "older_adults", "adolescents", "perinatal")
Metric = Literal["mean_difference", "mean_level"]
Kind = Literal["article", "preprint", "secondary"]
Judgement = Literal["low", "some", "high"]
Verdict = Literal["above", "below", "inconclusive", "mixed"]
Rule = Literal[
    "retracted", "withdrawn", "design", "population", "sample", "metric", "analysis", "follow_up", "no_calibration"
]

EFFECT, VARIANCE, Q = 6, 8, 4
"""Decimal places of effects and coefficients, of variances, of the heterogeneity statistic."""
Z_SQUARED = Fraction("3.8416")
MISSING_LIMIT = 20
"""Percent of missing outcomes above which a report is at high risk."""


# -- exact decimals --------------------------------------------------------------------------------------------------


def number(text: str) -> Fraction:
    """The exact value of a decimal string."""
    whole, _, part = text.partition(".")
    return Fraction(int(whole + part), 10 ** len(part))


def fixed(value: Fraction, places: int) -> str:
    """A decimal string with so many places, rounded half-even; zero has no sign."""
    scaled = round(value * 10**places)
    digits = f"{abs(scaled):0{places + 1}d}"
    return f"{'-' if scaled < 0 else ''}{digits[:-places]}.{digits[-places:]}"


# -- tables that the skills carry ------------------------------------------------------------------------------------


def _table(skill: str, name: str) -> list[dict[str, str]]:
    with (SKILLS / skill / "references" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def kind_ranks() -> dict[str, int]:
    """Rule 2: rank of each kind of report; the first speaks for a study."""
    return {r["kind"]: int(r["rank"]) for r in _table("acquire-and-resolve-works", "report-kinds.csv")}


@cache
def exclusion_order() -> dict[str, int]:
    """Rule 3: place of each exclusion rule."""
    return {r["rule"]: int(r["order"]) for r in _table("screen-and-appraise-reports", "exclusion-rules.csv")}


# -- identity and eligibility ----------------------------------------------------------------------------------------


def cohort_key(cohort_id: str, enrolled: Any) -> str:
    """Rule 1."""
    return f"{cohort_id}|{enrolled.from_}|{enrolled.to}|{enrolled.n}"


def rank(kind: str, day: int, work_id: str) -> tuple[int, int, str]:
    """Rule 2: the report with the least rank speaks for its study."""
    return kind_ranks()[kind], -day, work_id


def judgement_of(conduct: Any) -> Judgement:
    """Rule 4."""
    answers = (conduct.concealed, conduct.blinded, conduct.outcome_registered, conduct.protocol_followed)
    if answers.count("no") >= 2 or conduct.missing_percent > MISSING_LIMIT:
        return "high"
    return "low" if all(a == "yes" for a in answers) else "some"


# -- choices among calibrations --------------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """What the choice between calibrations looks at. ``anchor`` is its lowest link work, ``round`` its ordinal."""

    id: str
    round: int
    scope: frozenset[str]
    depth: int
    anchor: str


def parent_among(candidates: Iterable[Candidate], populations: Iterable[str], before: int) -> Candidate | None:
    """Rule 8: largest intersection with the link's populations, largest own scope, least depth, lowest link work."""
    wanted = frozenset(populations)
    earlier = (c for c in candidates if c.round < before)
    return min(earlier, key=lambda c: (-len(c.scope & wanted), -len(c.scope), c.depth, c.anchor), default=None)


def calibration_among(candidates: Iterable[Candidate], population: str, until: int) -> Candidate | None:
    """Rule 9: smallest scope that covers the population, least depth, lowest link work, of rounds up to ``until``."""
    covering = (c for c in candidates if c.round <= until and population in c.scope)
    return min(covering, key=lambda c: (len(c.scope), c.depth, c.anchor), default=None)


# -- effects ---------------------------------------------------------------------------------------------------------


def effect_of(metric: str, factor: str, treated: Any, control: Any, cluster: Any) -> tuple[str, str]:
    """Rule 6: effect and variance in the instrument's points."""
    f = number(factor)
    inflation = 1 + (cluster.size - 1) * number(cluster.icc) if cluster else Fraction(1)
    effect, variance = number(treated.mean), number(treated.sd) ** 2 / treated.n
    if metric == "mean_difference":
        effect -= number(control.mean)
        variance += number(control.sd) ** 2 / control.n
    return fixed(f * effect, EFFECT), fixed(f * f * variance * inflation, VARIANCE)


def link_of(from_: Any, to: Any, opposed: bool) -> tuple[str, str]:
    """Rule 7: slope and intercept of a link."""
    slope = number(to.sd) / number(from_.sd) * (-1 if opposed else 1)
    return fixed(slope, EFFECT), fixed(number(to.mean) - slope * number(from_.mean), EFFECT)


Line = tuple[str, str]
"""Slope and intercept."""


def composed(routes: Sequence[tuple[Line, Line | None]]) -> Line:
    """Rule 8: the mean of the routes, each a link followed by its parent's map (None: it ends at the reference)."""
    slopes, intercepts = Fraction(0), Fraction(0)
    for (a, b), parent in routes:
        c, d = map(number, parent) if parent else (Fraction(1), Fraction(0))
        slopes += number(a) * c
        intercepts += c * number(b) + d
    return fixed(slopes / len(routes), EFFECT), fixed(intercepts / len(routes), EFFECT)


def calibrated(metric: str, effect: str, variance: str, line: Line) -> tuple[str, str]:
    """Rule 10."""
    slope, intercept = map(number, line)
    moved = slope * number(effect) + (intercept if metric == "mean_level" else 0)
    return fixed(moved, EFFECT), fixed(slope * slope * number(variance), VARIANCE)


class Pooled(NamedTuple):
    effect: str
    variance: str
    q: str
    verdict: Verdict


def pooled(null: str, items: Sequence[tuple[str, str]]) -> Pooled:
    """Rule 11 over (effect, variance) pairs with positive variances.

    Integers throughout: with effects E/10^6 and variances V/10^8 the weights are P/V over P, the product of all V, so
    that no fraction has to be brought to lowest terms on the way.
    """
    effects = [int(e.replace(".", "")) for e, _ in items]
    variances = [int(v.replace(".", "")) for _, v in items]
    product = 1
    for v in variances:
        product *= v
    weights = [product // v for v in variances]
    total = sum(weights)
    first = sum(w * e for w, e in zip(weights, effects, strict=True))
    second = sum(w * e * e for w, e in zip(weights, effects, strict=True))
    effect = Fraction(first, total * 10**EFFECT)
    variance = Fraction(product, total * 10**VARIANCE)
    q = Fraction(second * total - first * first, product * total * 10 ** (2 * EFFECT - VARIANCE))
    return Pooled(
        fixed(effect, EFFECT),
        fixed(variance, VARIANCE),
        fixed(q, Q),
        _verdict(effect - number(null), variance, q, len(items)),
    )


def _verdict(distance: Fraction, variance: Fraction, q: Fraction, k: int) -> Verdict:
    if k > 1 and q > 2 * (k - 1):
        return "mixed"
    if distance**2 >= Z_SQUARED * variance:
        return "above" if distance > 0 else "below"
    return "inconclusive"
