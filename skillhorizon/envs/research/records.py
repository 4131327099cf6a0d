"""Records of a review, contents of what is made in it, and what is kept beside those contents.

Days count from 1 January 1970; numbers that enter arithmetic are decimal strings; weeks are inclusive.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from skillhorizon.core.world import Record
from skillhorizon.envs.research.catalog import Characteristic
from skillhorizon.envs.research.rules import Judgement, Kind, Line, Metric, Population, Rule, Verdict
from skillhorizon.envs.research.seed import Enrolled

Role = Literal["link", "study"]
Answer = Literal["yes", "no", "unclear"]
Analysis = Literal["intention_to_treat", "per_protocol", "completers"]
Status = Literal["open", "linked", "excluded", "contributed", "calibrating"]
RoundState = Literal["waiting", "open", "committed"]


# -- records of a task -----------------------------------------------------------------------------------------------


class Protocol(Record, frozen=True):
    """Constants of the review; weeks are inclusive."""

    reference_instrument_id: str
    minimum_n: int
    minimum_link_sample: int
    min_weeks: int
    max_weeks: int


class Section(Record, frozen=True):
    section_id: str
    ordinal: int
    title: str
    topics: tuple[str, ...]
    metric: Metric
    null: str
    populations: tuple[Population, ...]
    designs: tuple[str, ...]


class Round(Record, frozen=True):
    """``works`` are the listed ones, by id."""

    round_id: str
    ordinal: int
    state: RoundState
    works: tuple[str, ...]


class Reviewer(Record, frozen=True):
    round_id: str
    author_id: str
    quota: int


class Conduct(msgspec.Struct, frozen=True):
    concealed: Answer
    blinded: Answer
    outcome_registered: Answer
    protocol_followed: Answer
    missing_percent: int


class Cluster(msgspec.Struct, frozen=True):
    size: int
    icc: str


class Work(Record, frozen=True):
    """A report of one paper. ``version`` counts its corrections; links have no population of their own."""

    work_id: str
    paper_id: str
    version: int
    round_id: str
    section_id: str
    role: Role
    kind: Kind
    day: int
    design: str
    cohort: str | None
    registry_id: str | None
    enrolled: Enrolled
    population: Population | None
    conduct: Conduct
    cluster: Cluster | None
    abstract: str
    methods: str
    baseline: tuple[Characteristic, ...]

    @property
    def ref(self) -> str:
        return f"{self.work_id}@{self.version}"


class Arm(msgspec.Struct, frozen=True):
    mean: str
    sd: str
    n: int


class StudyRow(msgspec.Struct, frozen=True):
    row: int
    instrument: str
    unit: str
    metric: Metric
    weeks: int
    analysis: Analysis
    treated: Arm
    control: Arm | None


class Measured(msgspec.Struct, frozen=True):
    instrument: str
    mean: str
    sd: str


class LinkRow(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """Both instruments in points, on one sample."""

    row: int
    from_: Measured
    to: Measured
    populations: tuple[Population, ...]
    sample: int


class Outcomes(Record, frozen=True):
    """The rows of one work, all of its role's kind."""

    rows: tuple[Any, ...]

    def at(self, number: int) -> Any:
        """The row with this number, or None."""
        return next((r for r in self.rows if r.row == number), None)


class Receipt(Record, frozen=True):
    work_id: str
    round_id: str


class Settlement(Record, frozen=True):
    notice_id: str
    revised: int
    withdrawn: int


class Put(msgspec.Struct, frozen=True):
    table: str
    key: str
    record: Any


class Change(msgspec.Struct, frozen=True):
    """Effect of an update: records as they stand from now on, and the keys of what was read of them."""

    kind: str
    subjects: tuple[str, ...]
    text: str
    puts: tuple[Put, ...]
    keys: tuple[str, ...]


# -- contents of artifacts -------------------------------------------------------------------------------------------


class Identity(msgspec.Struct, frozen=True):
    work_id: str
    registry_key: str | None
    cohort_key: str | None
    study_id: str


class Study(msgspec.Struct, frozen=True):
    """A new version for each change of the primary report."""

    study_id: str
    primary: str


class Screening(msgspec.Struct, frozen=True):
    work_id: str
    decision: Literal["include", "exclude"]
    rule: Rule | None


class Appraisal(msgspec.Struct, frozen=True):
    work_id: str
    reviewer_id: str
    judgement: Judgement


class LinkAnnotation(msgspec.Struct, frozen=True):
    work_id: str
    row: int
    from_instrument_id: str
    to_instrument_id: str
    populations: tuple[str, ...]
    slope: str
    intercept: str

    @property
    def line(self) -> Line:
        return self.slope, self.intercept


class StudyAnnotation(msgspec.Struct, frozen=True):
    work_id: str
    row: int
    metric: Metric
    instrument_id: str
    unit: str
    population: str
    effect: str
    variance: str


class Route(msgspec.Struct, frozen=True):
    link: str
    parent: str | None


class Calibration(msgspec.Struct, frozen=True):
    """``round_id`` is the round that established it; ``works`` are those of its links, ``depth`` 1 for a direct one."""

    round_id: str
    section_id: str
    from_instrument_id: str
    routes: tuple[Route, ...]
    works: tuple[str, ...]
    populations: tuple[str, ...]
    slope: str
    intercept: str
    depth: int

    @property
    def line(self) -> Line:
        return self.slope, self.intercept


class Interpretation(msgspec.Struct, frozen=True):
    work_id: str
    annotation: str
    calibration: str
    effect: str
    variance: str


class Contribution(msgspec.Struct, frozen=True):
    round_id: str
    section_id: str
    study: str
    work_id: str
    interpretation: str
    bindings: tuple[str, ...]
    effect: str
    variance: str


class Synthesis(msgspec.Struct, frozen=True):
    round_id: str
    section_id: str
    pooled: tuple[str, ...]
    set_aside: tuple[str, ...]
    effect: str
    variance: str
    q: str
    verdict: Verdict


class Review(msgspec.Struct, frozen=True):
    round_id: str
    syntheses: tuple[str, ...]


class Flow(msgspec.Struct, frozen=True):
    """How many reports came in, and where each of them went; ``pooled`` counts contributions."""

    reports: int
    links: int
    linked: int
    excluded: dict[str, int]
    included: int
    pooled: int


# -- kept beside the contents ----------------------------------------------------------------------------------------


class Extracted(msgspec.Struct, frozen=True):
    """Beside an annotation: the row as it was, and whether the values follow from it."""

    row: Any
    right: bool


class Mapped(msgspec.Struct, frozen=True):
    """Beside a calibration: all link annotations of its ancestry, the parents due by link work, and the verdict."""

    ancestry: tuple[str, ...]
    due: dict[str, str | None]
    right: bool
