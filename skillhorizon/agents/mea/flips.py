"""How far an auditor can be relied on: the same work in the same state, audited again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from skillhorizon.agents.mea.loop import Limits
from skillhorizon.agents.mea.roles import Auditor, Changes, Desk, OutOfCalls, RoleFailed
from skillhorizon.agents.mea.state import Audit, Contract, Criterion, Report
from skillhorizon.core.gateway import Gateway
from skillhorizon.core.task import Task

NO_VERDICT = None
Verdict = tuple[str, str, tuple[tuple[str, str], ...]] | None
"""Completion, integrity, status of each requirement; None where an audit came to none."""


def verdict(audit: Audit) -> Verdict:
    """What of an audit decides anything; words and evidence may differ."""
    return audit.completion, audit.integrity, tuple(sorted((f.requirement, f.status) for f in audit.findings))


def flip_rate(verdicts: Sequence[Verdict]) -> float:
    """Share of the pairs of audits of one state that disagree, 0 to 1; NaN for fewer than two audits.

    An auditor that says the opposite with probability p, each time anew, has an expected rate of 2 p (1 - p).
    """
    pairs = list(combinations(verdicts, 2))
    return sum(a != b for a, b in pairs) / len(pairs) if pairs else float("nan")


def audited(make: Callable[[], Auditor], task: Task, gateway: Gateway, times: int = 5) -> list[Verdict]:
    """Verdicts of so many auditors, each with no memory of the others, on all that was done at a gateway.

    Each may read as much as in a round of the loop; what it reads changes nothing.
    """
    limits = Limits()
    calls = tuple(event.step for event in gateway.events if event.role == "full")
    contract = Contract(
        "What the brief asks for.", (Criterion("brief", "all that the brief asks for is done"),), len(calls)
    )
    verdicts: list[Verdict] = []
    for _ in range(times):
        desk = Desk(gateway, "read_only", limits.audit_calls, limits.tokens)
        try:
            verdicts.append(verdict(make().audit(task, contract, Report("finished", calls=calls), Changes(), desk)))
        except (RoleFailed, OutOfCalls):
            verdicts.append(NO_VERDICT)
    return verdicts
