"""The environments as Inspect tasks: ``inspect eval skillhorizon/docs -T band=64K --model …``.

The solver is this project's conversation (protocol, allowance, confirmation, compaction) with Inspect's model in it;
the scorer replays the calls that the sample's log holds and scores the state they leave, so ``inspect score`` scores a
log anew. ``inspect view`` shows the conversation. Metrics are LGC and TS as shares, with standard errors.

Inspect finds the tasks by the entry point of the group ``inspect_ai`` in ``pyproject.toml``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, ModelOutput, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from skillhorizon import api
from skillhorizon.agents import harness
from skillhorizon.agents.compaction import Message
from skillhorizon.agents.harness import Conversation, Entry, Rules
from skillhorizon.agents.models import ModelMind
from skillhorizon.agents.protocol import Outcome
from skillhorizon.core import task as tasks
from skillhorizon.interop.task_files import chosen

CALLS = "skillhorizon:calls"
"""Where the log of a sample keeps its calls: ``[[name, arguments], …]``."""
OUTCOME = "skillhorizon:outcome"


def make(env: str) -> Callable[..., Task]:
    """The Inspect task of one environment."""

    def environment_task(
        band: str = "64K",
        family: str | None = None,
        tasks: int = 10,
        first_seed: int = 0,
        set: str | None = None,
        entry: Entry = "brief",
    ) -> Task:
        """One environment of SkillHorizon.

        band        workload band: 64K, 128K, 256K, 512K, 1M (and 2M, 4M)
        family      one task family, by default all
        tasks       how many tasks
        first_seed  fresh tasks are generated from this seed on
        set         instead of fresh ones, the first tasks of the released set below a data folder
        entry       whether the first message holds the brief, or only ``read_task_brief`` gives it
        """
        files = chosen(env, band, family, tasks, first_seed, set)
        return Task(
            dataset=MemoryDataset([_sample(file) for file in files], name=f"{env}-{band}"),
            solver=conversation(entry),
            scorer=final_state(),
            name=env,
        )

    return task(name=env)(environment_task)


def _sample(file: tasks.TaskFile) -> Sample:
    """The input is shown, not used: the conversation opens in its own words."""
    name = "-".join(
        [file.config.env, file.config.band, file.config.id.replace("/", "."), str(file.seed), str(file.size)]
    )
    return Sample(id=name, input=f"The business task {name}.", metadata={"task": msgspec.to_builtins(file)})


def _task(metadata: dict[str, Any]) -> tasks.Task:
    return api.rebuild(msgspec.convert(metadata["task"], tasks.TaskFile), "the sample's task")


@solver
def conversation(entry: Entry = "brief") -> Solver:
    """Inspect's active model under the action protocol."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        work = _task(state.metadata)
        gateway = work.open()
        rules = Rules(entry=entry)
        talk = Conversation(gateway, harness.opening(work, gateway, rules), rules, record=False)
        outcome = Outcome("stopped", "Inspect ended the sample")
        try:
            outcome = await harness.converse_async(talk, ModelMind(get_model()))
        finally:  # a limit of Inspect's ends a sample here, and what was done until then is scored
            state.messages = [_shown(m) for m in talk.messages]
            state.output = ModelOutput.from_content(str(state.model), talk.messages[-1].text)
            state.completed = True
            state.store.set(CALLS, [[e.tool, msgspec.json.decode(e.call)["arguments"]] for e in gateway.events])
            state.store.set(OUTCOME, msgspec.to_builtins(outcome))
        return state

    return solve


@scorer(metrics={"lgc": [mean(), stderr()], "ts": [mean(), stderr()]})
def final_state() -> Scorer:
    """LGC and TS of the state that the sample's calls leave (paper C.1)."""

    async def score(state: TaskState, target: Target) -> Score:
        gateway = _task(state.metadata).open()
        calls: list[tuple[str, Any]] = state.store.get(CALLS, [])
        for name, arguments in calls:
            gateway.call(name, arguments)
        evaluation = api.evaluate(_task(state.metadata), gateway)
        missed = [f"{g.goal}: {', '.join(g.failed.values())}" for g in evaluation.local if not g.met][:5]
        outcome: dict[str, Any] = state.store.get(OUTCOME, {})
        return Score(
            value={"lgc": evaluation.lgc, "ts": float(evaluation.success)},
            explanation="; ".join([*missed, *evaluation.delivery_failed]) or "every goal is met",
            metadata={"end": outcome.get("end"), "attempts": gateway.used, "budget": gateway.budget},
        )

    return score


def _shown(message: Message) -> ChatMessageSystem | ChatMessageUser | ChatMessageAssistant:
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    return kinds[message.role](content=message.text)


docs = make("docs")
factory = make("factory")
field = make("field")
finance = make("finance")
logistics = make("logistics")
research = make("research")
social = make("social")
