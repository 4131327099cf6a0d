"""Compaction as appendix B has it: the estimate, what stays, one replacement or stages, what is adopted."""

from __future__ import annotations

import msgspec
import pytest

from skillhorizon.agents import compaction
from skillhorizon.agents.compaction import Limits, Message, estimate, message, plan
from skillhorizon.agents.harness import SUMMARISE, Reply, Rules
from skillhorizon.core import tokens
from tests.test_harness import FINAL, Script, acts, held

LIMITS = Limits()
SYSTEM, TASK = Message("system", "s", 5_000), Message("user", "t", 1_000)
ASK = Message("user", "a summary, please", 100)


def pair(said: int, shown: int, *steps: int) -> list[Message]:
    return [Message("assistant", "a", said), Message("user", "r", shown, steps)]


def dialogue(*sizes: int) -> list[Message]:
    """Instructions, and a pair of so many tokens for each call."""
    return [SYSTEM, TASK, *(m for step, size in enumerate(sizes, 1) for m in pair(100, size - 100, step))]


# -- the estimate --------------------------------------------------------------------------------------------------


def test_an_estimate_is_the_tokens_of_the_texts_plus_256_and_16_a_message():
    messages = [message("system", "hello world"), message("user", "one two three"), message("assistant", "yes")]
    assert [m.tokens for m in messages] == [2, 3, 1]
    assert estimate(messages, LIMITS) == 6 + 256 + 3 * 16
    assert estimate([], LIMITS) == 256


def test_parts_are_counted_by_themselves_and_read_as_one():
    made = message("user", "one", b" two", " three", steps=(4, 5))
    assert (made.text, made.tokens, made.steps) == ("one two three", 3, (4, 5))
    assert message("user", "\ud800").text == "?"


# -- what stays ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "before_last", "kept"),
    [
        # 5,000 + 1,000 + 256 + 16 * 6 = 6,352 beside the pairs; 64,000 must not be reached
        (30_000, 27_647, 4),  # 63,999
        (30_000, 27_648, 2),  # 64,000: only the last pair, 36,320
        (57_679, 20_000, 2),  # 6,000 + 256 + 16 * 4 + 57,679 = 63,999
        (57_680, 20_000, 0),
    ],
)
def test_four_two_or_no_messages_stay_below_64000_tokens_with_the_instructions(last, before_last, kept):
    found = plan(dialogue(50_000, 80_000, before_last, last), 2, ASK, LIMITS)
    assert found is not None
    assert (found.mode, len(found.retained)) == ("full", kept)
    assert estimate([*found.initial, *found.retained], LIMITS) < 64_000
    assert found.initial == [SYSTEM, TASK]
    assert [m.role for m in found.retained] == ["assistant", "user"] * (kept // 2)
    assert found.evicted == (1, 4 - kept // 2)


def test_what_is_retained_are_whole_pairs_of_action_and_result():
    """Behind a summary and a single pair no four messages are pairs."""
    summary = Message("user", "summary", 900)
    found = plan([SYSTEM, TASK, summary, *pair(100, 190_000, 1), *pair(100, 10_000, 2)], 2, ASK, LIMITS)
    assert [len(found.retained), len(found.older)] == [2, 3]
    few = [SYSTEM, TASK, summary, *pair(100, 9_000, 7)]
    assert plan(few, 2, ASK, LIMITS) is None  # nothing but the earlier summary would go


# -- stages --------------------------------------------------------------------------------------------------------


def test_a_prefix_that_does_not_fit_the_guard_is_summarised_in_stages():
    """Pairs of 100,000: 6,000 + 100 + 256 + 16 * 3 = 6,404 beside them, and 100,032 a pair; four fit in 480,000."""
    messages = dialogue(*[100_000] * 6)
    first = plan(messages, 2, ASK, LIMITS)
    assert (first.mode, len(first.older), len(first.rest), len(first.retained)) == ("staged", 8, 4, 0)
    assert estimate(first.request(ASK), LIMITS) == 6_404 + 4 * 100_032 <= 480_000
    assert first.evicted == (1, 4)
    summary = Message("user", "summary", 2_000)
    changed = first.with_summary(summary)
    assert changed == [SYSTEM, TASK, summary, *messages[10:]]
    second = plan(changed, 2, ASK, LIMITS)
    assert (second.mode, second.evicted) == ("full", (5, 6))


def test_a_single_message_beyond_the_guard_cannot_be_summarised():
    assert plan(dialogue(500_000), 2, ASK, LIMITS) is None


# -- adoption ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "summary", "complete", "before", "after", "adopted"),
    [
        ("full", "s", True, 250_000, 199_999, True),
        ("full", "s", True, 250_000, 200_000, False),
        ("full", " \n", True, 250_000, 10_000, False),
        ("full", "s", False, 250_000, 10_000, False),
        ("staged", "s", True, 700_000, 400_000, True),
        ("staged", "s", True, 700_000, 700_000, False),
        ("staged", "", True, 700_000, 400_000, False),
    ],
)
def test_a_summary_is_adopted_when_it_is_complete_not_empty_and_makes_the_input_small_enough(
    mode, summary, complete, before, after, adopted
):
    replacement = compaction.Replacement(mode, [], [], [], [])
    assert compaction.adoptable(replacement, summary, complete, before, after, LIMITS) is adopted


@pytest.mark.parametrize(
    "wrong",
    [
        {"trigger": 9, "guard": 8},
        {"retained": (4, 2)},
        {"retained": (3, 0)},
        {"retained": ()},
        {"keep": 1},
        {"base": -1},
    ],
)
def test_limits_that_contradict_themselves_are_refused(wrong):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Limits)


# -- in a conversation ---------------------------------------------------------------------------------------------

READS = [acts("list_routes"), acts("list_rates"), acts("list_windows"), acts("read_task_brief")]


def small(mind: Script, **more: int) -> tuple:
    """A conversation whose limits are just above its instructions."""
    probe = Script()
    held(probe)
    start = sum(m.tokens for m in probe.seen[0]) + 256 + 16 * 2
    limits = {"trigger": start + 400, "guard": start + 4_000, "kept_below": start + 350, **more}
    return held(mind, rules=Rules(compaction=Limits(**limits)))


def test_a_compaction_replaces_the_older_messages_and_is_recorded():
    mind = Script(*READS, summaries=["All routes and rates have been read."] * 9)
    gateway, outcome = small(mind)
    assert outcome.end == "submitted"
    adopted = [c for c in outcome.compactions if c.adopted]
    assert adopted
    first = adopted[0]
    asked = mind.summarised[0]
    assert asked[-1].text == SUMMARISE
    assert asked[:2] == mind.seen[0]
    request = mind.seen[first.decision - 1]
    assert request[:2] == mind.seen[0]
    assert request[2].role == "user"
    assert "All routes and rates have been read." in request[2].text
    assert len(request) == 3 + first.retained_messages
    assert first.tokens_after == sum(m.tokens for m in request) + 256 + 16 * len(request) < first.tokens_before
    gone = range(first.evicted_steps[0], first.evicted_steps[1] + 1)
    shown = {step for m in request for step in m.steps}
    assert shown.isdisjoint(gone)
    assert shown | set(gone) == {e.step for e in gateway.events if e.decision < first.decision}
    assert gateway.used == 4  # a summary is no attempt
    event = next(e for e in gateway.events if e.decision >= first.decision)
    assert event.context_tokens < first.tokens_before


@pytest.mark.parametrize("summary", [" ", Reply("half a summ", "max_tokens"), "word " * 5_000])
def test_a_summary_that_is_not_adopted_leaves_the_history_as_it_was(summary):
    mind = Script(*READS, summaries=[summary] * 9)
    _, outcome = small(mind)
    assert outcome.end == "submitted"
    assert outcome.compactions
    assert not any(c.adopted for c in outcome.compactions)
    assert [len(request) for request in mind.seen] == [2, 4, 6, 8, 10, 12]
    assert len({c.decision for c in outcome.compactions}) == len(outcome.compactions)  # asked once a response


def test_a_conversation_that_outgrows_the_guard_fails():
    mind = Script(*READS, summaries=[""] * 9)
    _, outcome = small(mind, guard=1, trigger=1)
    assert (outcome.end, outcome.decisions) == ("failed", 0)
    assert "cannot be cut" in outcome.why


def test_requests_for_summaries_are_accounted():
    mind = Script(*READS, summaries=["All routes and rates have been read."] * 9)
    _, outcome = small(mind)
    asked = [*mind.seen, *mind.summarised]
    assert outcome.request_tokens == sum(estimate(request, LIMITS) for request in asked)
    said = [*READS, FINAL, FINAL, *["All routes and rates have been read."] * len(mind.summarised)]
    assert outcome.response_tokens == sum(tokens.count(text.encode()) for text in said)
