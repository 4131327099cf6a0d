"""What the works say beside their figures. The abstract's figure is that of completers, which no rule counts."""

from __future__ import annotations

import random
from typing import Any

import msgspec

_DESIGNS = {
    "parallel_trial": "a parallel-group randomised trial",
    "cluster_trial": "a cluster-randomised trial",
    "crossover_trial": "a randomised crossover trial",
    "case_series": "a consecutive case series",
    "single_arm": "a single-arm trial",
    "registry_cohort": "a cohort drawn from a registry",
    "validation_study": "a validation study in one sample",
}
_POPULATIONS = {
    "adults": "adults",
    "older_adults": "older adults",
    "adolescents": "adolescents",
    "perinatal": "women in the perinatal period",
}
_ABSTRACT = (
    "The direction of the finding did not change when sites were left out one at a time.",
    "No serious event was attributed to taking part.",
    "Use of other services was similar throughout the period of observation.",
    "The authors call for a longer follow-up in a wider range of settings.",
    "Staff reported that the procedures fitted into their ordinary week.",
    "Costs were recorded but are reported elsewhere.",
    "Participants who moved away were followed up by telephone where possible.",
    "Satisfaction was high and did not depend on the distance to the site.",
    "Results by site are given in a supplement and are not repeated here.",
    "A plain-language summary was prepared together with former participants.",
)
_METHODS = (
    "Assessments were carried out at the place of care by staff trained for the purpose.",
    "Questionnaires were filled in on paper and entered twice.",
    "Missing items were handled as the instrument's manual prescribes.",
    "Reminders were sent by post one week before each assessment.",
    "An independent committee looked at the data once, half-way through enrolment.",
    "Departures from the plan of analysis are listed in an appendix.",
    "Translations were checked by back-translation and by a small pilot.",
    "Interviewers met monthly to compare difficult answers.",
    "Travel to assessments was paid for, and a small thank-you was given at the end.",
    "Sites were visited twice a year to compare records with their sources.",
    "The number to enrol was calculated for the main instrument before recruitment began.",
    "Those who could not come in were assessed at home by the same staff.",
)
_TRAITS = (
    "living alone", "in paid work", "completed secondary school", "earlier episode of care", "daily medication",
    "long-standing illness", "carer for someone else", "born abroad", "current smoker", "any hospital stay last year",
    "speaks another language at home", "owns a car", "took part in a group before", "pain on most days",
    "sleeps less than six hours", "receives an allowance", "saw a specialist last year", "lives in a rural district",
    "member of a sports club", "needs help with forms", "uses a walking aid", "wears a hearing aid",
    "moved within five years", "has a regular doctor",
)  # fmt: skip


class Characteristic(msgspec.Struct, frozen=True):
    """A line of the table of those enrolled: mean and deviation, or number and share."""

    characteristic: str
    treated: str
    control: str | None


def _share(n: int, rng: random.Random) -> str:
    count = rng.randint(n // 10, n - n // 10)
    return f"{count} ({100 * count // max(n, 1)}%)"


def _table(n: int, arms: bool, rows: int, rng: random.Random) -> tuple[Characteristic, ...]:
    half = n // 2 if arms else n
    ages = [f"{rng.randint(16, 78)}.{rng.randint(0, 9)} ({rng.randint(4, 13)}.{rng.randint(0, 9)})" for _ in range(2)]
    made = [Characteristic("age, years", ages[0], ages[1] if arms else None)]
    for trait in rng.sample(_TRAITS, min(rows, len(_TRAITS))):
        made.append(Characteristic(trait, _share(half, rng), _share(n - half, rng) if arms else None))
    return tuple(made)


def _filled(first: list[str], stock: tuple[str, ...], count: int, rng: random.Random) -> str:
    return " ".join([*first, *rng.sample(stock, min(count, len(stock)))])


def texts(
    work: dict[str, Any], figure: str, amount: int, rng: random.Random
) -> tuple[str, str, tuple[Characteristic, ...]]:
    """Abstract, methods and table of those enrolled; ``amount`` of sentences and lines is spread over the three."""
    sentences = amount * 2 // 5
    population = _POPULATIONS.get(work["population"], "people of several populations")
    abstract = [f"We report {_DESIGNS[work['design']]} among {population}.", figure]
    methods = [f"{work['n']} people were enrolled; outcomes were missing for {work['missing']} percent of them."]
    if work["cluster"]:
        methods.append("Sites were allocated as whole clusters, which the reported deviations do not account for.")
    return (
        _filled(abstract, _ABSTRACT, sentences // 2, rng),
        _filled(methods, _METHODS, sentences - sentences // 2, rng),
        _table(work["n"], work["arms"], amount - sentences, rng),
    )
