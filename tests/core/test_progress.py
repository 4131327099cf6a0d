from __future__ import annotations

import io
import os
import sys
from typing import Any

import pytest

from skillhorizon.core import progress


def square(n: int) -> tuple[int, int]:
    if n == 7:
        raise ValueError("seven")
    return n * n, os.getpid()


def test_tracking_passes_everything_on_and_says_nothing_where_nobody_looks(capsys):
    assert list(progress.track(iter("abc"), "letters", 3)) == ["a", "b", "c"]
    with progress.watch(lambda: 1, "work"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_terminal_is_shown_a_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert list(progress.track([1, 2], "numbers")) == [1, 2]
    with progress.watch(lambda: 1, "work", 5):
        pass
    assert "numbers" in terminal.getvalue()
    assert "work" in terminal.getvalue()


def test_work_over_processes_keeps_the_order_of_the_items():
    done: list[Any] = progress.parallel(square, iter(range(6)), "squares", 2)
    assert [n for n, _ in done] == [0, 1, 4, 9, 16, 25]
    assert os.getpid() not in {process for _, process in done}


def test_work_for_one_process_stays_in_this_one():
    assert progress.parallel(square, [3, 4], "squares", 1) == [(9, os.getpid()), (16, os.getpid())]
    assert progress.parallel(square, [3], "squares", 8) == [(9, os.getpid())]
    assert progress.parallel(square, [], "squares", 8) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failure_is_raised_here(processes):
    with pytest.raises(ValueError, match="seven"):
        progress.parallel(square, [1, 7, 2], "squares", processes)
