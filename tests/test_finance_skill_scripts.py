"""The FinanceOps skill scripts: values worked by hand, what they refuse, and their shell form."""

import csv
import importlib.util
import json
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest

SKILLS = Path(__file__).parents[1] / "skillhorizon" / "envs" / "finance" / "skills"
SCRIPTS = {
    "normalize": SKILLS / "normalize-source" / "scripts" / "normalize.py",
    "aggregate": SKILLS / "aggregate-source" / "scripts" / "aggregate.py",
    "adjust": SKILLS / "derive-component-adjustments" / "scripts" / "adjust.py",
    "allocate": SKILLS / "allocate-remittances" / "scripts" / "allocate.py",
    "roll_forward": SKILLS / "close-stage" / "scripts" / "roll_forward.py",
}


def load(name):
    spec = importlib.util.spec_from_file_location(f"finance_skill_{name}", SCRIPTS[name])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUN = {name: load(name).run for name in SCRIPTS}


# --- normalize -------------------------------------------------------------------------------

COLUMNS = ["order", "rev", "kind", "amount", "debit", "credit", "row"]
ROWS = [
    # ord-b: a correction listed before the sale that it replaces, and a metadata row after both.
    ["ord-b", 2, "correction", "80.50", "acc-2", "acc-9", "row-1"],
    ["ord-b", 3, "metadata", "999.99", "acc-1", "acc-9", "row-2"],
    ["ord-b", 1, "sale", "75.00", "acc-1", "acc-9", "row-3"],
    # ord-a: withdrawn by a row that is neither the last listed nor of the highest revision.
    ["ord-a", 2, "withdrawal", "0", "acc-1", "acc-9", "row-4"],
    ["ord-a", 1, "sale", "-12.3", "acc-1", "acc-9", "row-5"],
    ["ord-a", 3, "correction", "11", "acc-1", "acc-9", "row-6"],
    # ord-c: metadata alone.
    ["ord-c", 1, "metadata", "5.00", "acc-1", "acc-9", "row-7"],
    # ord-d: on an account that has no entry.
    ["ord-d", 1, "sale", "1.00", "acc-3", "acc-9", "row-8"],
]
ENTRIES = [
    {"account": "acc-1", "entity": "ent-x"},
    {"account": "acc-2", "entity": "ent-y"},
    {"account": "acc-9", "entity": "ent-z"},
]
NORMALIZE = {
    "columns": COLUMNS,
    "rows": ROWS,
    "entries": ENTRIES,
    "account_column": "debit",
    "scale_exponent": 2,
    "sign": -1,
    "policy": "latest_revision",
}


def test_latest_revision_takes_the_last_amount_and_drops_withdrawn_orders():
    # ord-a withdrawn, ord-c has no amount; ord-b: revision 2 on acc-2, -1 * 80.50 * 100 = -8050;
    # ord-d: acc-3 is not among the entries.
    assert RUN["normalize"](NORMALIZE) == {
        "items": [{"order": "ord-b", "row": "row-1", "entity": "ent-y", "minor": -8050}],
        "excluded_orders": ["ord-a", "ord-c"],
        "unmapped_accounts": ["acc-3"],
    }


def test_first_keeps_the_lowest_amount_whatever_followed():
    # Withdrawals do not count: ord-a revision 1, -1 * -12.3 * 100 = 1230; ord-b revision 1,
    # -1 * 75.00 * 100 = -7500, on acc-1.
    assert RUN["normalize"](NORMALIZE | {"policy": "first"}) == {
        "items": [
            {"order": "ord-a", "row": "row-5", "entity": "ent-x", "minor": 1230},
            {"order": "ord-b", "row": "row-3", "entity": "ent-x", "minor": -7500},
        ],
        "excluded_orders": ["ord-c"],
        "unmapped_accounts": ["acc-3"],
    }


def test_contract_decides_column_scale_and_sign():
    # Both rows credit acc-9. Exponent 0 and sign 1 leave the amounts as they are: 80, and 1.00 = 1,
    # as a fraction of zeros is exact.
    rows = [["ord-b", 2, "correction", "80", "acc-2", "acc-9", "row-1"], ROWS[7]]
    answer = RUN["normalize"](NORMALIZE | {"rows": rows, "account_column": "credit", "scale_exponent": 0, "sign": 1})
    assert [(item["order"], item["entity"], item["minor"]) for item in answer["items"]] == [
        ("ord-b", "ent-z", 80),
        ("ord-d", "ent-z", 1),
    ]
    assert answer["unmapped_accounts"] == []


def test_order_of_rows_and_columns_means_nothing():
    columns = COLUMNS[::-1]
    rows = [row[::-1] for row in ROWS[::-1]]
    for policy in ("first", "latest_revision"):
        listed = NORMALIZE | {"policy": policy}
        assert RUN["normalize"](listed | {"columns": columns, "rows": rows}) == RUN["normalize"](listed)


@pytest.mark.parametrize(
    ("amount", "exponent", "minor"),
    [
        ("-0.05", 2, 5),  # the sign of a negative amount below one unit is kept; sign is -1
        ("0.10", 1, -1),  # 0.1 is exact in tenths, the trailing zero adds nothing
        ("123456789012345678.12", 2, -12345678901234567812),  # more digits than a float holds
        ("0", 2, 0),
        ("007", 0, -7),
    ],
)
def test_amounts_are_exact(amount, exponent, minor):
    rows = [["ord-a", 1, "sale", amount, "acc-1", "acc-9", "row-1"]]
    (item,) = RUN["normalize"](NORMALIZE | {"rows": rows, "scale_exponent": exponent})["items"]
    assert item["minor"] == minor
    assert type(item["minor"]) is int


def test_only_the_amount_that_counts_has_to_be_exact():
    # At exponent 1 the superseded 75.25 would not be exact, the head 80.5 is: -805.
    rows = [
        ["ord-b", 1, "sale", "75.25", "acc-1", "acc-9", "row-1"],
        ["ord-b", 2, "correction", "80.5", "acc-1", "acc-9", "row-2"],
        ["ord-b", 3, "metadata", "", "", "", "row-3"],
    ]
    (item,) = RUN["normalize"](NORMALIZE | {"rows": rows, "scale_exponent": 1})["items"]
    assert item["minor"] == -805


# --- aggregate -------------------------------------------------------------------------------

AGGREGATE = {
    "postings": [
        {"entity": "ent-x", "minor": 700},
        {"entity": "ent-y", "minor": -250},
        {"entity": "ent-x", "minor": -50},
        {"entity": "ent-z", "minor": 30},
        {"entity": "ent-z", "minor": -30},
    ]
}


def test_aggregate_adds_by_entity_and_drops_zeros():
    # ent-x 700 - 50 = 650; ent-y -250; ent-z 30 - 30 = 0, absent.
    assert RUN["aggregate"](AGGREGATE) == {"totals": {"ent-x": 650, "ent-y": -250}}
    assert RUN["aggregate"]({"postings": []}) == {"totals": {}}


# --- adjust ----------------------------------------------------------------------------------

ADJUST = {
    "components": [
        {"component": "cmp-2", "class": "accrual", "entity": "ent-x", "carrying_minor": 5000},
        {"component": "cmp-1", "class": "provision", "entity": "ent-y", "carrying_minor": -300},
        {"component": "cmp-3", "class": "deferral", "entity": "ent-x", "carrying_minor": 900},
    ],
    "evidence": [
        {"component": "cmp-3", "document": "doc-8", "amount_minor": 900},
        {"component": "cmp-2", "document": "doc-7", "amount_minor": 4200},
    ],
}


def test_adjust_brings_the_carrying_amount_to_the_document():
    # cmp-2: 4200 - 5000 = -800; cmp-1 has no document: 0; cmp-3: 900 - 900 = 0 with its document.
    assert RUN["adjust"](ADJUST) == {
        "items": [
            {"component": "cmp-2", "document": "doc-7", "entity": "ent-x", "minor": -800},
            {"component": "cmp-1", "document": None, "entity": "ent-y", "minor": 0},
            {"component": "cmp-3", "document": "doc-8", "entity": "ent-x", "minor": 0},
        ]
    }


def test_class_table_admits_two_document_classes_each():
    path = SKILLS / "derive-component-adjustments" / "references" / "component-classes.csv"
    with path.open(newline="") as lines:
        table = {row["class"]: row["admitted_document_classes"].split() for row in csv.DictReader(lines)}
    assert table == {
        "accrual": ["statement", "invoice"],
        "provision": ["contract", "opinion"],
        "prepayment": ["invoice", "contract"],
        "deferral": ["contract", "statement"],
    }


# --- allocate --------------------------------------------------------------------------------


def invoice(name, amount, tolerance=0, **credits):
    return {
        "invoice": name,
        "amount_minor": amount,
        "tolerance_minor": tolerance,
        "credits": [{"credit": credit, "amount_minor": minor} for credit, minor in credits.items()],
    }


def line(seq, paid, name):
    return {"line": f"lin-{seq}", "seq": seq, "paid_minor": paid, "invoice": name}


ALLOCATE = {
    "lines": [line(4, 2000, "inv-c"), line(3, 700, "inv-a"), line(1, 600, "inv-a"), line(2, 1490, "inv-b")],
    "invoices": [
        invoice("inv-a", 2000, 5, note_2=100, note_1=200),
        invoice("inv-b", 1500, 10),
        invoice("inv-c", 1000, 10),
    ],
    "prior": [
        {"invoice": "inv-a", "minor": 300},
        {"invoice": "inv-a", "minor": 200},
        {"invoice": "inv-c", "minor": 400},
    ],
}


def test_allocate_by_hand():
    # inv-a: 2000 - 300 credits - 500 before = 1200 open. Line 1 pays 600, rest 600 > 5, nothing
    #   written off. Line 3: 600 open, 700 paid, 600 applied, 100 unapplied.
    # inv-b: 1500 open, 1490 paid, rest 10 <= 10 is written off.
    # inv-c: 1000 - 400 = 600 open, 2000 paid, 1400 unapplied.
    notes = ["note_1", "note_2"]
    assert RUN["allocate"](ALLOCATE) == {
        "items": [
            {"line": "lin-1", "invoice": "inv-a", "credits": notes, "applied": 600, "writeoff": 0, "unapplied": 0},
            {"line": "lin-2", "invoice": "inv-b", "credits": [], "applied": 1490, "writeoff": 10, "unapplied": 0},
            {"line": "lin-3", "invoice": "inv-a", "credits": notes, "applied": 600, "writeoff": 0, "unapplied": 100},
            {"line": "lin-4", "invoice": "inv-c", "credits": [], "applied": 600, "writeoff": 0, "unapplied": 1400},
        ]
    }


@pytest.mark.parametrize(
    ("amount", "tolerance", "credit", "prior", "paid", "expected"),
    [
        (1000, 10, 0, 0, 989, (989, 0, 0)),  # rest 11 is one more than the tolerance
        (1000, 10, 0, 0, 990, (990, 10, 0)),  # rest 10 is just within it
        (1000, 10, 0, 0, 1000, (1000, 0, 0)),  # no rest
        (1000, 0, 0, 0, 999, (999, 0, 0)),  # without a tolerance nothing is written off
        (1000, 10, 700, 400, 50, (0, 0, 50)),  # credits and earlier payments exceed the invoice
        (1000, 10, 600, 395, 0, (0, 5, 0)),  # open 5, nothing paid, the rest within the tolerance
    ],
)
def test_allocate_limits(amount, tolerance, credit, prior, paid, expected):
    (item,) = RUN["allocate"](
        {
            "lines": [line(1, paid, "inv-a")],
            "invoices": [invoice("inv-a", amount, tolerance, note=credit)],
            "prior": [{"invoice": "inv-a", "minor": prior}],
        }
    )["items"]
    assert (item["applied"], item["writeoff"], item["unapplied"]) == expected


def test_a_written_off_rest_is_no_longer_open_for_the_next_line():
    # Line 1 applies 95 and writes off 5; line 2 finds nothing open.
    items = RUN["allocate"](
        {"lines": [line(1, 95, "inv-a"), line(2, 5, "inv-a")], "invoices": [invoice("inv-a", 100, 5)], "prior": []}
    )["items"]
    assert [(item["applied"], item["writeoff"], item["unapplied"]) for item in items] == [(95, 5, 0), (0, 0, 5)]


# --- roll forward ----------------------------------------------------------------------------

ROLL_FORWARD = {
    "opening": {"ent-w": 70, "ent-x": 1000, "ent-y": -200},
    "views": [{"ent-x": -400, "ent-y": 150}, {"ent-y": 50, "ent-z": 25}, {"ent-x": 100, "ent-z": -25}],
}


def test_roll_forward_by_hand():
    # movement: x -400 + 100 = -300; y 150 + 50 = 200; z 25 - 25 = 0, absent.
    # closing: w 70; x 1000 - 300 = 700; y -200 + 200 = 0, absent. gross: 300 + 200 = 500.
    assert RUN["roll_forward"](ROLL_FORWARD) == {
        "movement": {"ent-x": -300, "ent-y": 200},
        "closing": {"ent-w": 70, "ent-x": 700},
        "gross": 500,
    }


def test_roll_forward_of_a_first_stage_without_views():
    assert RUN["roll_forward"]({"opening": {}, "views": []}) == {"movement": {}, "closing": {}, "gross": 0}


# --- what every script owes ------------------------------------------------------------------

EXAMPLES = {
    "normalize": NORMALIZE,
    "aggregate": AGGREGATE,
    "adjust": ADJUST,
    "allocate": ALLOCATE,
    "roll_forward": ROLL_FORWARD,
}


def changed(name, *path, to):
    """A copy of the script's example with the value at the path replaced (or added)."""
    example = deepcopy(EXAMPLES[name])
    *parents, last = path
    place = example
    for step in parents:
        place = place[step]
    place[last] = to
    return example


def again(name, *path):
    """A copy of the script's example with the last entry of the list at the path repeated."""
    example = deepcopy(EXAMPLES[name])
    place = example
    for step in path:
        place = place[step]
    place.append(deepcopy(place[-1]))
    return example


FAULTS = [
    ("normalize", changed("normalize", "account_column", to="row"), "account_column"),
    ("normalize", changed("normalize", "scale_exponent", to=True), "scale_exponent"),
    ("normalize", changed("normalize", "scale_exponent", to=-1), "scale_exponent"),
    ("normalize", changed("normalize", "scale_exponent", to=10**9), "scale_exponent"),
    ("normalize", changed("normalize", "sign", to=0), "sign"),
    ("normalize", changed("normalize", "sign", to=1.0), "sign"),
    ("normalize", changed("normalize", "policy", to="latest"), "policy"),
    ("normalize", changed("normalize", "columns", 0, to="memo"), "unknown column 'memo'"),
    ("normalize", changed("normalize", "columns", 0, to=["order"]), "unknown column"),
    ("normalize", changed("normalize", "columns", 0, to="rev"), "columns must name each"),
    ("normalize", changed("normalize", "columns", to=COLUMNS[1:]), "columns must name each"),
    ("normalize", changed("normalize", "rows", 0, to=ROWS[0][1:]), "array of 7 cells"),
    ("normalize", changed("normalize", "rows", 0, to={}), "array of 7 cells"),
    ("normalize", changed("normalize", "rows", 0, 1, to="2"), "rev"),
    ("normalize", changed("normalize", "rows", 0, 1, to=True), "rev"),
    ("normalize", changed("normalize", "rows", 0, 2, to="refund"), "unknown kind 'refund'"),
    ("normalize", changed("normalize", "rows", 0, 3, to=80), "amount"),
    ("normalize", changed("normalize", "rows", 0, 3, to="80.505"), "not exact in minor units"),
    ("normalize", changed("normalize", "rows", 0, 3, to="8e1"), "plain decimal"),
    ("normalize", changed("normalize", "rows", 0, 3, to="1,000"), "plain decimal"),
    ("normalize", changed("normalize", "rows", 0, 3, to=""), "plain decimal"),
    ("normalize", changed("normalize", "rows", 0, 3, to="٣"), "plain decimal"),
    ("normalize", changed("normalize", "rows", 0, 3, to="5\n"), "plain decimal"),
    ("normalize", changed("normalize", "rows", 0, 1, to=1), "two amounts of revision 1"),
    ("normalize", again("normalize", "rows"), "row 'row-8' appears twice"),
    ("normalize", again("normalize", "entries"), "account 'acc-9' has two entries"),
    ("normalize", changed("normalize", "entries", 0, "map", to="map-1"), "entry must have exactly"),
    ("aggregate", changed("aggregate", "postings", 0, "minor", to=1.0), "minor"),
    ("aggregate", changed("aggregate", "postings", 0, "minor", to="1"), "minor"),
    ("aggregate", changed("aggregate", "postings", 0, "minor", to=False), "minor"),
    ("aggregate", changed("aggregate", "postings", 0, "order", to="ord-a"), "posting must have exactly"),
    ("aggregate", changed("aggregate", "postings", 0, to=[]), "posting must be an object"),
    ("aggregate", changed("aggregate", "postings", to={}), "postings"),
    ("adjust", changed("adjust", "components", 0, "carrying_minor", to=None), "carrying_minor"),
    ("adjust", changed("adjust", "evidence", 0, "document", to=None), "document"),
    ("adjust", changed("adjust", "evidence", 0, "component", to="cmp-9"), "'cmp-9', which is not listed"),
    ("adjust", again("adjust", "components"), "component 'cmp-3' appears twice"),
    ("adjust", again("adjust", "evidence"), "component 'cmp-2' has two documents"),
    ("allocate", changed("allocate", "lines", 0, "invoice", to="inv-z"), "invoice 'inv-z' is not listed"),
    ("allocate", changed("allocate", "prior", 0, "invoice", to="inv-z"), "invoice 'inv-z' is not listed"),
    ("allocate", changed("allocate", "lines", 0, "paid_minor", to=-1), "paid_minor"),
    ("allocate", changed("allocate", "lines", 0, "seq", to=1), "same seq"),
    ("allocate", changed("allocate", "lines", 0, "line", to="lin-1"), "same line"),
    ("allocate", changed("allocate", "lines", 0, "seq", to="4"), "seq"),
    ("allocate", changed("allocate", "invoices", 0, "credits", to=["note_1"]), "credit must be an object"),
    ("allocate", changed("allocate", "invoices", 0, "tolerance_minor", to=-5), "tolerance_minor"),
    ("allocate", again("allocate", "invoices"), "invoice 'inv-c' appears twice"),
    ("allocate", again("allocate", "invoices", 0, "credits"), "credit note twice"),
    ("roll_forward", changed("roll_forward", "opening", "ent-w", to=True), "'ent-w'"),
    ("roll_forward", changed("roll_forward", "views", 0, "ent-x", to=0.5), "'ent-x'"),
    ("roll_forward", changed("roll_forward", "views", 0, to=[]), "view must be an object"),
    ("roll_forward", changed("roll_forward", "opening", to=None), "opening"),
]
for _name, _example in EXAMPLES.items():
    FAULTS += [
        (_name, {key: value for key, value in _example.items() if key != missing}, "input must have exactly")
        for missing in _example
    ]
    FAULTS += [
        (_name, _example | {"note": 1}, "input must have exactly"),
        (_name, [_example], "input must be an object"),
        (_name, None, "input must be an object"),
    ]


@pytest.mark.parametrize(("name", "arguments", "message"), FAULTS)
def test_bad_input_is_a_value_error_that_says_what_is_wrong(name, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        RUN[name](arguments)


@pytest.mark.parametrize("name", SCRIPTS)
def test_input_is_left_as_it_was(name):
    before = deepcopy(EXAMPLES[name])
    RUN[name](EXAMPLES[name])
    assert EXAMPLES[name] == before


def shell(name, text):
    return subprocess.run([sys.executable, "-I", SCRIPTS[name]], input=text, capture_output=True, timeout=60)


@pytest.mark.parametrize("name", SCRIPTS)
def test_shell_form_answers_one_compact_object(name):
    done = shell(name, json.dumps(EXAMPLES[name]).encode())
    expected = json.dumps(RUN[name](EXAMPLES[name]), sort_keys=True, separators=(",", ":"))
    assert (done.returncode, done.stdout.decode().rstrip("\r\n"), done.stderr) == (0, expected, b"")
