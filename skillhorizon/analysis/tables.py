"""Tables 3 to 6 of the paper, each a function ``source -> DataFrame``, and how far the measured agree.

``python -m skillhorizon.analysis.tables DATA`` writes ``DATA/results/{published,measured}/table….csv`` from
``DATA/published`` and ``DATA/tasks``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from skillhorizon.analysis.sources import BANDS, CALIBRATION, RESOURCES, Measured, Published, Source
from skillhorizon.core import bands
from skillhorizon.core.errors import InputError

ENVIRONMENTS = ("FinanceOps", "FieldOps", "SocialOps", "LogisticsOps", "ResearchOps", "DocOps", "FactoryOps")
"""In the order of the paper's tables."""


def table03(source: Source) -> pd.DataFrame:
    """Table 3, resources of each environment: named resources, seed records in all, skills."""
    whole = dict.fromkeys(("count", "seed_records", "skills"), "Int64")
    return _ordered(source.resources()[list(RESOURCES)].astype(whole))


def table04(source: Source) -> pd.DataFrame:
    """Table 4, calibration: what is fixed and what is turned to reach a band."""
    return _ordered(source.calibration()[list(CALIBRATION)])


def table05(source: Source) -> pd.DataFrame:
    """Table 5, the workload bands in tokens."""
    whole = dict.fromkeys(("lower_exclusive", "upper_inclusive"), "Int64")
    return _ordered(source.bands()[list(BANDS)].astype(whole))


def table06(source: Source) -> pd.DataFrame:
    """Table 6, business scale: least and greatest count of each kind of work, by environment and band."""
    keys = ["environment", "attribute", "band"]
    ranges = source.work().groupby(keys, sort=False)["value"].agg(["min", "max"]).astype("Int64")
    return _ordered(ranges.reset_index())


def table03_overlap(published: Source, measured: Source) -> pd.DataFrame:
    """Table 3 beside the paper's; ``agree`` is the share of a row's three numbers that do, both empty included."""
    numbers = ["count", "seed_records", "skills"]
    both = _beside(table03(published), table03(measured), ["environment", "resource"])
    agree = [both[f"{n}_paper"].eq(both[f"{n}_measured"]).fillna(False) | _both_empty(both, n) for n in numbers]
    return both.assign(agree=sum(a.astype(int) for a in agree) / len(numbers))


def table04_overlap(published: Source, measured: Source) -> pd.DataFrame:
    """Table 4 beside the paper's; ``agree`` is the share of the paper's fixed factors that are fixed here too."""
    both = _beside(table04(published), table04(measured), ["environment"])

    def shared(row: pd.Series) -> float:
        paper, own = (set(str(row[f"fixed_factors_{s}"]).split("; ")) for s in ("paper", "measured"))
        return len(paper & own) / len(paper)

    return both.assign(agree=both.apply(shared, axis=1))


def table05_overlap(published: Source, measured: Measured) -> pd.DataFrame:
    """Workloads of the tasks, by environment and band, beside the paper's band; the share that lies inside."""
    tasks = measured.workloads().merge(table05(published), on="band")
    inside = (tasks["workload"] > tasks["lower_exclusive"]) & (tasks["workload"] <= tasks["upper_inclusive"])
    groups = tasks.assign(inside=inside).groupby(["environment", *BANDS], sort=False)
    return _ordered(
        groups.agg(
            tasks=("workload", "size"),
            workload_min=("workload", "min"),
            workload_median=("workload", "median"),
            workload_max=("workload", "max"),
            tasks_inside=("inside", "mean"),
        ).reset_index()
    )


def table06_overlap(published: Source, measured: Source) -> pd.DataFrame:
    """Table 6 beside the paper's, and how far they overlap. All ranges are whole numbers with both ends.

    tasks_inside   share of the measured tasks whose count lies in the paper's range
    range_inside   share of the measured range that lies in the paper's range
    paper_covered  share of the paper's range that lies in the measured range
    """
    keys = ["environment", "attribute", "band"]
    both = _beside(table06(published), table06(measured), keys)
    work = measured.work().merge(both, on=keys)
    inside = work["value"].between(work["min_paper"], work["max_paper"])
    counted = work.assign(inside=inside).groupby(keys)["inside"].agg(tasks="size", tasks_inside="mean")
    both = both.merge(counted.reset_index(), on=keys)
    low, high = both[["min_paper", "min_measured"]].max(axis=1), both[["max_paper", "max_measured"]].min(axis=1)
    common = (high - low + 1).clip(lower=0)
    return both.assign(
        range_inside=common / (both["max_measured"] - both["min_measured"] + 1),
        paper_covered=common / (both["max_paper"] - both["min_paper"] + 1),
    )


def write_all(data: str | Path) -> list[Path]:
    """Write every table from ``data/published`` and ``data/tasks`` below ``data/results``; returns the files."""
    data = Path(data)
    published, measured = Published(data / "published"), Measured(data / "tasks")
    files = {}
    for name, source in (("published", published), ("measured", measured)):
        files[f"{name}/table03"] = table03(source)
        files[f"{name}/table04"] = table04(source)
        files[f"{name}/table05"] = table05(source)
        files[f"{name}/table06_business_scale"] = table06(source)
    files["measured/table03_overlap"] = table03_overlap(published, measured)
    files["measured/table04_overlap"] = table04_overlap(published, measured)
    files["measured/table05_overlap"] = table05_overlap(published, measured)
    files["measured/table06_overlap"] = table06_overlap(published, measured)
    return [_write(frame, data / "results" / f"{name}.csv") for name, frame in files.items()]


def _ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows by environment as the paper lists them, then by attribute as they come, then by band."""
    keys: dict[str, pd.Series] = {}
    if "environment" in frame:
        keys["environment"] = _ranks(frame["environment"], ENVIRONMENTS)
    if "attribute" in frame:
        pairs = frame["environment"] + "/" + frame["attribute"]
        keys["attribute"] = _ranks(pairs, pairs.unique())
    if "band" in frame:
        keys["band"] = _ranks(frame["band"], bands.BANDS)
    order = pd.DataFrame(keys).sort_values(list(keys), kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def _ranks(column: pd.Series, order: Iterable[str]) -> pd.Series:
    """Place of each value in an order; unknown ones come last."""
    places = {value: number for number, value in enumerate(order)}
    return column.map(lambda value: places.get(value, len(places)))


def _beside(paper: pd.DataFrame, measured: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Rows that both have: the paper's columns with their suffix, then the measured with theirs."""
    both = paper.merge(measured, on=keys, suffixes=("_paper", "_measured"))
    values = [c for c in paper.columns if c not in keys]
    return both[[*keys, *(f"{c}_{side}" for side in ("paper", "measured") for c in values)]]


def _both_empty(both: pd.DataFrame, column: str) -> pd.Series:
    return both[f"{column}_paper"].isna() & both[f"{column}_measured"].isna()


def _write(frame: pd.DataFrame, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    frame.round(4).to_csv(temporary, index=False, lineterminator="\n")
    os.replace(temporary, path)
    return path


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m skillhorizon.analysis.tables DATA", file=sys.stderr)
        return 2
    try:
        for path in write_all(arguments[0]):
            print(path.as_posix())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
