from __future__ import annotations

import subprocess
import sys
from itertools import permutations

import pytest

from skillhorizon.core.composition import Module, Need, TaskGraph


def graph(needs: dict[str, str], stages: dict[str, int] | None = None) -> TaskGraph:
    """``{"d": "b c"}``: d needs b and c. Each module lies in the stage given, else in 1."""
    return TaskGraph.of(
        Module(key, "k", (stages or {}).get(key, 1), f"of {key}", tuple(Need(n, "content") for n in of.split()))
        for key, of in needs.items()
    )


def test_an_empty_task_and_a_single_module():
    assert graph({}).measures == {
        "modules": 0, "needs": 0, "depth": 0, "joins": 0, "reuse_needs": 0, "longest_reuse": 0,
    }  # fmt: skip
    assert graph({"a": ""}).measures == {
        "modules": 1, "needs": 0, "depth": 1, "joins": 0, "reuse_needs": 0, "longest_reuse": 0,
    }  # fmt: skip


def test_a_chain_is_as_deep_as_it_is_long_and_joins_nothing():
    """a - b - c - d, a stage each."""
    chain = graph({"a": "", "b": "a", "c": "b", "d": "c"}, {"a": 1, "b": 2, "c": 3, "d": 4})
    assert (chain.depth, chain.joins, chain.reuse_spans) == (4, 0, [])


def test_depth_counts_the_longest_chain_and_joins_the_modules_with_two_needs_or_more():
    """
    a - b - e - f
     \\ c /   /        d stands alone but for f; e joins b and c, f joins e, d and a.
    d ------/
    """
    drawn = graph({"a": "", "b": "a", "c": "a", "d": "", "e": "b c", "f": "e d a"})
    assert drawn.measures == {
        "modules": 6, "needs": 7, "depth": 4, "joins": 2, "reuse_needs": 0, "longest_reuse": 0,
    }  # fmt: skip


def test_reuse_spans_are_the_stages_between_where_a_need_leaps_over_one():
    """Stages: a 1, b 2, c 4, d 7. a-b spans 1 (no reuse), b-c 2, a-c 3, a-d 6, c-d 3."""
    reuse = graph({"a": "", "b": "a", "c": "b a", "d": "a c"}, {"a": 1, "b": 2, "c": 4, "d": 7})
    assert reuse.reuse_spans == [6, 3, 3, 2]
    assert (reuse.measures["reuse_needs"], reuse.measures["longest_reuse"]) == (4, 6)


def test_nodes_and_edges_carry_what_the_modules_say():
    made = TaskGraph.of([Module("a", "quote", 2, "par-1"), Module("b", "route", 3, "rte-1", (Need("a", "quantity"),))])
    assert made.nodes["a"] == {"kind": "quote", "stage": 2, "subject": "par-1"}
    assert list(made.edges(data=True)) == [("a", "b", {"kind": "quantity"})]


def test_modules_may_be_listed_in_any_order():
    modules = [Module("a", "k", 1, "s"), Module("b", "k", 1, "s", (Need("a", "content"),)), Module("c", "k", 1, "s")]
    assert len({TaskGraph.of(order).canonical_digest() for order in permutations(modules)}) == 1


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ({"a": "a"}, "circle"),
        ({"a": "c", "b": "a", "c": "b"}, "circle"),
        ({"a": "b"}, "a needs b, which does not exist"),
        ({"a": "", "b": "a a"}, "b needs a twice"),
    ],
)
def test_circles_and_needs_that_mean_nothing_are_refused(needs, message):
    with pytest.raises(ValueError, match=message):
        graph(needs)


def test_two_modules_of_one_key_are_refused():
    with pytest.raises(ValueError, match="one key"):
        TaskGraph.of([Module("a", "k", 1, "s"), Module("a", "k", 2, "s")])


def test_the_digest_changes_with_every_part():
    def one(
        key: str = "b", kind: str = "k", stage: int = 2, subject: str = "s", need: str = "a", of: str = "content"
    ) -> str:
        modules = [Module("a", "k", 1, "s"), Module("z", "k", 1, "s")]
        return TaskGraph.of([*modules, Module(key, kind, stage, subject, (Need(need, of),))]).canonical_digest()  # type: ignore[arg-type]

    changed = [one(key="c"), one(kind="l"), one(stage=3), one(subject="t"), one(need="z"), one(of="validity")]
    assert len({one(), *changed}) == 1 + len(changed)


def test_the_digest_is_the_same_in_another_process():
    program = (
        "from skillhorizon.core.composition import *\n"
        "m = [Module('b', 'k', 2, 's', (Need('a', 'content'), Need('c', 'validity'))), Module('a', 'k', 1, 's'),"
        " Module('c', 'k', 1, 's')]\n"
        "print(TaskGraph.of(m).canonical_digest())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": s}, capture_output=True, check=True
        ).stdout
        for s in ("1", "2")
    }
    assert len(said) == 1
