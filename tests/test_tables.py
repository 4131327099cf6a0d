"""Tables 3 to 6: the published ones cell by cell, the measured ones on sets small enough to work out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from skillhorizon.analysis import tables
from skillhorizon.analysis.sources import Measured, Published
from skillhorizon.core import trace
from skillhorizon.core.bands import PAPER_BANDS
from skillhorizon.core.errors import InputError

DATA = Path(__file__).parents[1] / "data"
PUBLISHED = Published(DATA / "published")
TABLES = {
    "table03_environment_resources": tables.table03,
    "table04_calibration": tables.table04,
    "table05_bands": tables.table05,
    "table06_business_scale": tables.table06,
}


def facts(env: str, title: str, **more) -> dict:
    return {
        "env": env,
        "title": title,
        "families": ["f"],
        "skills": ["a", "b"],
        "seed_records": "generated",
        "resources": {"things": None},
        "fixed_factors": ["family"],
        "knob": "turn it",
        "work": ["Business calls"],
        **more,
    }


def write_set(folder: Path, about: dict, tasks: list[dict]) -> None:
    (folder / f"{about['env']}.json").write_text(json.dumps(about))
    trace.write_parquet(pa.Table.from_pylist(tasks), folder / f"{about['env']}.parquet")


@pytest.fixture
def sets(tmp_path) -> Path:
    """Two environments: finance with three tasks at 64K and one at 128K, field with one task."""
    names = ("band", "workload", "Work packages", "Logical stages", "Business calls")
    rows = [
        ("64K", 60_000, 20, 4, 100),
        ("64K", 65_536, 30, 4, 200),
        ("64K", 65_537, 63, 5, 330),
        ("128K", 100_000, 140, 6, 700),
    ]
    finance = facts(
        "finance",
        "FinanceOps",
        skills=list("abcdefghijkl"),
        resources={"invoices": None, "remittances": None},
        fixed_factors=["family", "variant", "seed"],
        work=list(names[2:]),
    )
    write_set(tmp_path, finance, [dict(zip(names, row, strict=True)) for row in rows])
    field = facts(
        "field",
        "FieldOps",
        seed_records={"devices": 18, "crews": 5, "other": 2},
        resources={"devices": 18, "crews": 5},
        work=["Devices", "Business calls"],
    )
    write_set(tmp_path, field, [{"band": "64K", "workload": 65_000, "Devices": 9, "Business calls": 207}])
    return tmp_path


# -- published -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_published_tables_are_the_transcribed_ones_cell_by_cell(name):
    table = TABLES[name](PUBLISHED)
    transcribed = pd.read_csv(DATA / "published" / f"{name}.csv", dtype=str, keep_default_na=False)
    assert list(table.columns) == list(transcribed.columns)
    assert table.astype("string").fillna("").to_numpy().tolist() == transcribed.to_numpy().tolist()


def test_published_table_6_has_a_range_for_every_environment_and_band():
    table = tables.table06(PUBLISHED)
    assert len(table) == 7 * 3 * 5
    assert list(dict.fromkeys(table["environment"])) == list(tables.ENVIRONMENTS)
    assert list(table["band"]) == list(PAPER_BANDS) * 21
    assert (table["min"] <= table["max"]).all()


# -- measured ------------------------------------------------------------------------------------------------------


def test_measured_table_3_counts_named_resources_and_all_seed_records(sets):
    table = tables.table03(Measured(sets))
    assert table.fillna(-1).to_numpy().tolist() == [
        ["FinanceOps", "invoices", -1, -1, "generated", 12],
        ["FinanceOps", "remittances", -1, -1, "generated", 12],
        ["FieldOps", "devices", 18, 25, "seeded", 2],
        ["FieldOps", "crews", 5, 25, "seeded", 2],
    ]


def test_measured_table_4_joins_the_fixed_factors(sets):
    assert tables.table04(Measured(sets)).to_numpy().tolist() == [
        ["FinanceOps", "family; variant; seed", "turn it"],
        ["FieldOps", "family", "turn it"],
    ]


def test_measured_table_5_holds_the_bands_in_use(sets):
    assert tables.table05(Measured(sets)).to_numpy().tolist() == [["64K", 0, 65_536], ["128K", 65_536, 131_072]]


def test_measured_table_6_holds_least_and_greatest_counts(sets):
    assert tables.table06(Measured(sets)).to_numpy().tolist() == [
        ["FinanceOps", "Work packages", "64K", 20, 63],
        ["FinanceOps", "Work packages", "128K", 140, 140],
        ["FinanceOps", "Logical stages", "64K", 4, 5],
        ["FinanceOps", "Logical stages", "128K", 6, 6],
        ["FinanceOps", "Business calls", "64K", 100, 330],
        ["FinanceOps", "Business calls", "128K", 700, 700],
        ["FieldOps", "Devices", "64K", 9, 9],
        ["FieldOps", "Business calls", "64K", 207, 207],
    ]


def test_a_source_of_some_environments_reads_no_other(sets):
    (sets / "field.json").write_text("not JSON")
    assert set(tables.table06(Measured(sets, "finance"))["environment"]) == {"FinanceOps"}


def test_a_missing_set_is_one_clear_line(sets, tmp_path):
    with pytest.raises(InputError, match="no task set of social"):
        tables.table06(Measured(sets, "social"))
    with pytest.raises(InputError, match="no task set of any environment"):
        tables.table03(Measured(tmp_path / "none"))
    with pytest.raises(InputError, match="no published table"):
        tables.table03(Published(tmp_path))


# -- beside --------------------------------------------------------------------------------------------------------


def test_overlap_of_table_6_by_hand(sets):
    overlap = tables.table06_overlap(PUBLISHED, Measured(sets)).set_index(["environment", "attribute", "band"])
    # paper 24–64; measured 20, 30, 63: two of three tasks; 24–63 of 20–63 is 40 of 44; of the paper's 41, 40
    packages = overlap.loc[("FinanceOps", "Work packages", "64K")]
    assert list(packages[["min_paper", "max_paper", "min_measured", "max_measured", "tasks"]]) == [24, 64, 20, 63, 3]
    assert packages["tasks_inside"] == pytest.approx(2 / 3)
    assert packages["range_inside"] == pytest.approx(40 / 44)
    assert packages["paper_covered"] == pytest.approx(40 / 41)
    # paper 54–132; measured 140: nothing in common
    assert list(overlap.loc[("FinanceOps", "Work packages", "128K")][-3:]) == [0, 0, 0]
    # paper 4; measured 4, 4, 5: half of the measured range, all of the paper's
    assert list(overlap.loc[("FinanceOps", "Logical stages", "64K")][-3:]) == [pytest.approx(2 / 3), 1 / 2, 1]
    # paper 6; measured 6
    assert list(overlap.loc[("FinanceOps", "Logical stages", "128K")][-3:]) == [1, 1, 1]
    # paper 126–300; measured 100, 200, 330: the paper's 175 of 231 numbers
    calls = overlap.loc[("FinanceOps", "Business calls", "64K")]
    assert list(calls[-3:]) == [pytest.approx(1 / 3), pytest.approx(175 / 231), 1]
    # paper 9–33; measured 9: one of 25
    assert list(overlap.loc[("FieldOps", "Devices", "64K")][-3:]) == [1, 1, 1 / 25]
    assert len(overlap) == 8


def test_table_5_beside_the_workloads(sets):
    overlap = tables.table05_overlap(PUBLISHED, Measured(sets))
    assert overlap.to_numpy().tolist() == [
        ["FinanceOps", "64K", 0, 65_536, 3, 60_000, 65_536, 65_537, pytest.approx(2 / 3)],
        ["FinanceOps", "128K", 65_536, 131_072, 1, 100_000, 100_000, 100_000, 1],
        ["FieldOps", "64K", 0, 65_536, 1, 65_000, 65_000, 65_000, 1],
    ]


def test_table_3_beside_counts_the_numbers_that_agree(sets):
    overlap = tables.table03_overlap(PUBLISHED, Measured(sets)).set_index("resource")
    assert overlap.loc["invoices", "agree"] == 1  # empty, empty and 12 skills, as in the paper
    assert overlap.loc["devices", "agree"] == 0  # 18, 25 and 2 against empty, empty and 9


def test_table_4_beside_counts_the_factors_that_are_shared(sets):
    overlap = tables.table04_overlap(PUBLISHED, Measured(sets)).set_index("environment")
    assert overlap.loc["FinanceOps", "agree"] == 3 / 4  # the number of stages is missing
    assert overlap.loc["FieldOps", "agree"] == 0  # profile; scenario


# -- files ---------------------------------------------------------------------------------------------------------


def test_files_are_complete_and_the_same_bytes_again(sets, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "published").symlink_to(DATA / "published")
    (data / "tasks").symlink_to(sets)
    files = tables.write_all(data)
    assert {f.relative_to(data / "results").as_posix() for f in files} == {
        *(f"{s}/table{t}.csv" for s in ("published", "measured") for t in ("03", "04", "05", "06_business_scale")),
        *(f"measured/table0{n}_overlap.csv" for n in (3, 4, 5, 6)),
    }
    before = [f.read_bytes() for f in files]
    assert [f.read_bytes() for f in tables.write_all(data)] == before
    assert b"\r" not in b"".join(before)
    scale = (data / "results" / "measured" / "table06_overlap.csv").read_text().splitlines()
    assert scale[1] == "FinanceOps,Work packages,64K,24,64,20,63,3,0.6667,0.9091,0.9756"


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    assert tables.main([]) == 2
    assert tables.main([str(tmp_path)]) == 2
    assert "no published table" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
