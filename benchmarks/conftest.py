"""Prints, beside pytest-benchmark's times, what they mean: calls, tokens and megabytes."""

from __future__ import annotations


def pytest_terminal_summary(terminalreporter, config) -> None:
    session = getattr(config, "_benchmarksession", None)
    if session is None or not session.benchmarks:
        return
    terminalreporter.section("figures")
    for bench in session.benchmarks:
        figures = ", ".join(f"{name} {value}" for name, value in bench.extra_info.items())
        terminalreporter.write_line(f"{bench.group} | {bench.name} | median {bench.stats.median:.4f} s | {figures}")
