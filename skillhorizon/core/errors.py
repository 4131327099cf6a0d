"""The two kinds of failure: a refusal an agent may cause, and input a user must mend."""

from __future__ import annotations

from typing import Any

COMMON_CODES = frozenset(
    {
        "bad_argument",
        "unknown_id",
        "stale_input",
        "wrong_state",
        "script_failed",
        "budget_exhausted",
        "unknown_tool",
        "not_permitted",
    }
)
"""Refusal codes that every environment has; each tool adds its own closed list."""


class Rejected(Exception):
    """A public refusal. The state is as it was before the call.

    ``message`` says which public fact was violated and ``details`` name objects, rules and
    limits; neither ever holds the right value.
    """

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


class InputError(Exception):
    """Bad input from a user of the package: one clear line, exit status 2, nothing overwritten."""
