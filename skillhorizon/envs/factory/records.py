"""Records of the plant, contents of what is made on it, and its updates.

Ticks are quarters of an hour, 96 a day; lengths are integer µm.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from skillhorizon.core.world import Record
from skillhorizon.envs.factory.seed import DAY

LARGEST_START = 60
HORIZON = 4 * DAY
"""A calendar is listed for so many ticks."""
Verdict = Literal["A", "B", "rework", "scrap"]
GRADES = ("A", "B")
Deviations = tuple[int, ...]


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """What goes into one unit: of a material where ``material`` is set, else units of ``supplier_order``."""

    line: int
    per_unit: int
    material: str | None = None
    min_cert: int | None = None
    supplier_order: str | None = None
    component: str | None = None
    fit: Literal["any", "A"] | None = None


class Order(Record, frozen=True):
    order_id: str
    level: int
    product_id: str
    quantity: int
    terminal: bool
    lines: tuple[Line, ...]
    mandatory: tuple[str, ...]
    rework_permit: int


class Progress(Record, frozen=True):
    """Units of an order; ``in_process`` are allocated, run without verdict, or on hold."""

    started: int = 0
    accepted: int = 0
    on_hold: int = 0
    reworked: int = 0
    scrapped: int = 0
    shipped: int = 0
    in_process: int = 0


class Lot(Record, frozen=True):
    lot_id: str
    material_id: str
    cert: int
    state: Literal["released", "quarantined"]
    quantity_left: int


class Unit(Record, frozen=True):
    """The ``ordinal``-th unit started of its order, in the batch version where it is now."""

    unit_id: str
    order_id: str
    ordinal: int
    batch_id: str
    version: int
    program_id: str
    calibration: str
    ready: int
    verdict: Verdict | None = None
    reworks: int = 0
    place: Literal["stock", "allocated", "used", "shipped"] = "stock"

    @property
    def accepted(self) -> bool:
        return self.verdict in GRADES


class Capture(Record, frozen=True):
    """One instrument's record of a batch version: its kind and the range of its values."""

    capture_id: str
    batch: str
    kind: str
    low: int
    high: int


class Shift(Record, frozen=True):
    """Ticks of the day at which all cells open and close."""

    opens: int
    closes: int


class Closure(Record, frozen=True):
    """A cell closed by a notice, from ``start`` up to but not including ``end``."""

    cell_id: str
    start: int
    end: int


# -- hidden from every observation -----------------------------------------------------------------------------------


class Outcomes(msgspec.Struct, frozen=True):
    """True deviations from nominal of the units of an order in the order of their start, µm by dimension."""

    deviations: tuple[Deviations, ...]


class Walk(msgspec.Struct, frozen=True):
    """Where a tool's later calibrations will find it, as the key of a random stream."""

    key: str


# -- updates ---------------------------------------------------------------------------------------------------------


class Drift(msgspec.Struct, frozen=True, tag=True):
    """Tools of a family have drifted: their calibrations are void from now on (rule 13)."""

    tool_family: str


class Maintenance(msgspec.Struct, frozen=True, tag=True):
    """Cells close for a day, each from its clock on (rule 14)."""

    cells: tuple[str, ...]


# -- contents of artifacts -------------------------------------------------------------------------------------------


class Drawn(msgspec.Struct, frozen=True):
    lot_id: str
    quantity: int


class Input(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an allocation takes for one line."""

    line: int
    unit_ids: tuple[str, ...] = ()
    lots: tuple[Drawn, ...] = ()


class Allocation(msgspec.Struct, frozen=True):
    """``ready`` is the tick from which every input is there."""

    order_id: str
    units: int
    ready: int
    inputs: tuple[Input, ...]


class Booking(msgspec.Struct, frozen=True):
    order_id: str
    allocation: str
    program_id: str
    revision: int
    cell_id: str
    calibration: str
    start: int
    end: int


class Batch(msgspec.Struct, frozen=True):
    """One version of a batch: the run, or the rework of some of its units on a bench ``day``."""

    order_id: str
    allocation: str
    booking: str
    program_id: str
    cell_id: str
    calibration: str
    end: int
    unit_ids: tuple[str, ...]
    day: int | None = None


class Observation(msgspec.Struct, frozen=True):
    batch: str
    captures: tuple[str, ...]


class Disposition(msgspec.Struct, frozen=True):
    batch: str
    calibration: str
    verdicts: dict[str, str]


class Completion(msgspec.Struct, frozen=True):
    """An order's quantity is accepted."""

    order_id: str
    quantity: int


class Shipment(msgspec.Struct, frozen=True):
    order_id: str
    unit_ids: tuple[str, ...]


class LevelTotals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Units of all orders of a level."""

    level: int
    started: int
    accepted: int
    reworked: int
    scrapped: int
    shipped: int


class Close(msgspec.Struct, frozen=True):
    levels: tuple[LevelTotals, ...]
