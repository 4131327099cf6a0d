"""The public interface: environments, tasks, runs, scores, replays. ``import skillhorizon as sh`` has all of it.

Whatever a user can get wrong raises ``InputError`` with one clear line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from skillhorizon import agents, envs
from skillhorizon.agents.protocol import End, Outcome
from skillhorizon.core import bands
from skillhorizon.core.environment import Environment
from skillhorizon.core.errors import InputError
from skillhorizon.core.evaluation import Evaluation
from skillhorizon.core.gateway import Event, Gateway
from skillhorizon.core.ids import stream
from skillhorizon.core.journal import Journal
from skillhorizon.core.progress import watch
from skillhorizon.core.task import Task, TaskConfig, TaskFile, decode_task_file, read_task_file
from skillhorizon.core.world import World

if TYPE_CHECKING:
    from skillhorizon.core.trace import Trace

LARGEST_SEED = 2**53 - 1
INTERRUPTED = Outcome("stopped", "interrupted")
"""The end of a run whose journal records none."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run of an agent on a task: how it ended, what it scored, what it did.

    ``seed`` is the agent's. ``trace`` holds the events and their digest.
    """

    task: Task
    agent: str
    seed: int
    outcome: Outcome
    evaluation: Evaluation
    trace: Trace
    gateway: Gateway

    @property
    def id(self) -> str:
        """Made of what determines the run, so two different runs never share it."""
        return self.trace.run_id

    @property
    def end(self) -> End:
        return self.outcome.end

    @property
    def why(self) -> str | None:
        """Why it ended so, in one line, where there is something to say."""
        return self.outcome.why

    @property
    def calls(self) -> int:
        return self.trace.calls

    @property
    def tokens(self) -> int:
        """o200k_base tokens of all calls and observations; counted when first asked for."""
        return self.trace.tokens

    def row(self) -> dict[str, Any]:
        """The run's row in the table of runs: exactly the columns ``core.trace.RUN_COLUMNS``."""
        from skillhorizon.core.trace import run_row

        return run_row(
            self.task,
            self.trace,
            self.evaluation,
            agent=self.agent,
            seed=self.seed,
            end=self.end,
            budget=self.gateway.budget,
            state_digest=self.gateway.state_digest(),
            decisions=self.outcome.decisions,
            compactions=sum(c.adopted for c in self.outcome.compactions),
            request_tokens=self.outcome.request_tokens,
            response_tokens=self.outcome.response_tokens,
            cost=self.outcome.cost,
        )


# -- environments and tasks ----------------------------------------------------------------------------------------


def environments() -> list[str]:
    """Names of the environments, sorted."""
    return list(envs.names())


def environment(name: str) -> Environment:
    """Its ``families``, ``configs(band)``, ``tools``, ``skills``, ``seed_tables()`` and ``build(config, seed)``."""
    return envs.load(name)


def generate(
    env: str | Environment,
    family: str | None = None,
    band: str = "64K",
    seed: int = 0,
    configuration: str | None = None,
) -> Task:
    """A task of the environment, calibrated into the band and measured by its reference run.

    The seed draws the configuration, from one family's or from all, unless ``configuration`` names it
    (``family/variant/pattern``). Same arguments, same task.
    """
    from skillhorizon.core import generation

    where = environment(env) if isinstance(env, str) else env
    return generation.generate(where, choose(where, family, band, _seed(seed), configuration), seed)[0]


def choose(
    env: Environment, family: str | None = None, band: str = "64K", seed: int = 0, configuration: str | None = None
) -> TaskConfig:
    """The configuration that ``generate`` takes for these arguments."""
    configs = env.configs(bands.band(band).name)
    if family is not None:
        if family not in env.families:
            raise InputError(f"{env.name} has no family {family!r}; its families are {', '.join(env.families)}")
        configs = [c for c in configs if c.family == family]
    if configuration is not None:
        configs = [c for c in configs if c.id == configuration]
        if not configs:
            among = f" of family {family}" if family else ""
            known = ", ".join(c.id for c in env.configs(band) if family in (None, c.family))
            raise InputError(f"{env.name} has no configuration {configuration!r}{among} at {band}; it has {known}")
    if not configs:
        raise InputError(f"{env.name} has no tasks at {band}")
    return stream("configuration", env.name, family, band, seed).choice(configs)


def load_task(path: str | Path) -> Task:
    """The task of a task file, built again and compared with the file's digest."""
    return rebuild(read_task_file(path), str(path))


def rebuild(file: TaskFile, name: str) -> Task:
    """The task of a recipe; ``InputError`` (which begins with ``name``) where it comes out with another digest."""
    config = file.config
    try:
        env = environment(config.env)
        if env.config(bands.band(config.band).name, config.id) != config:
            raise InputError(f"{env.name} has other options for {config.id!r} at {config.band}")
    except InputError as error:
        raise InputError(f"{name} cannot be built here: {error}") from None
    smallest, largest = env.sizes_of(config)
    if smallest <= file.size <= largest:
        task = Task(env, config, file.seed, file.size, file.measures)
        if task.digest == file.digest:
            return task
    raise InputError(f"{name} has been altered, or another version made it: the task built from it differs")


# -- runs ----------------------------------------------------------------------------------------------------------


def run(
    task: Task, agent: str = "reference", seed: int = 0, journal: str | Path | None = None, resume: bool = False
) -> Run:
    """Let an agent work on a fresh world within the task's budget, and score what it leaves.

    With ``journal`` every call is on disk before the agent sees its observation. ``resume`` takes an interrupted run
    up: the recorded calls are made again and compared, then the run goes on.
    """
    worker = agents.agent(agent)
    with recording(journal, task, agent, seed, resume) as written:
        gateway = task.open(journal=written)
        outcome = carry_out(worker, task, agent, seed, gateway, written)
    return _scored(task, agent, seed, outcome, gateway)


@contextmanager
def recording(
    path: str | Path | None, task: Task, agent: str, seed: int = 0, resume: bool = False
) -> Iterator[Journal | None]:
    """The journal of a run while it is at work; None for a run without one."""
    if path is None:
        if resume:
            raise InputError("only a journaled run can be resumed; name its journal")
        _seed(seed)
        yield None
        return
    with closing(record(path, task, agent, seed, resume)) as journal:
        yield journal


def record(path: str | Path, task: Task, agent: str, seed: int = 0, resume: bool = False) -> Journal:
    """The journal of a run, from which ``replay`` scores it: a new one, or with ``resume`` that of the same run."""
    meta = {"task": msgspec.to_builtins(task.file()), "agent": agent, "seed": _seed(seed)}
    return _resumed(path, meta) if resume else Journal.create(path, meta)


def carry_out(
    worker: agents.Agent, task: Task, agent: str, seed: int, gateway: Gateway, journal: Journal | None
) -> Outcome:
    """How the work of an agent at a gateway ends, which its journal is told."""
    with watch(lambda: len(gateway.events), f"calls of {agent}", gateway.budget):
        outcome = worker.act(task, gateway, seed)
    if gateway.replaying:
        raise InputError(f"the journal holds more calls than the {len(gateway.events)} that {agent} makes here")
    if journal is not None:
        journal.finish(msgspec.to_builtins(outcome))
    return outcome


def _resumed(path: str | Path, meta: dict[str, Any]) -> Journal:
    journal = Journal.load(path)
    for name, value in meta.items():
        if journal.meta.get(name) != value:
            journal.close()
            which = "task" if name == "task" else f"{name}, {journal.meta.get(name)!r}"
            raise InputError(f"{path} cannot be resumed: it is the journal of another {which}")
    return journal


def _scored(task: Task, agent: str, seed: int, outcome: Outcome, gateway: Gateway) -> Run:
    from skillhorizon.core.trace import Trace

    trace = Trace(gateway.events, f"{task.id}-{agent}-{seed}", gateway.world.artifacts)
    evaluation = evaluate(task, gateway)
    return Run(task, agent, seed, outcome, evaluation, trace, gateway)


def evaluate(task: Task, world: World | Gateway | Run) -> Evaluation:
    """Score the state that a run left, or has reached so far."""
    if isinstance(world, Run):
        world = world.gateway
    if isinstance(world, Gateway):
        world = world.world
    return task.environment.scoring.evaluate(world, task.blueprint.goal)


def replay(source: Run | str | Path) -> Run:
    """Make a run's calls again on a fresh world; ``InputError`` where call or observation differs by a byte.

    ``source`` is a run or the path of its journal, which needs nothing beside it; of an interrupted run, what there
    is.
    """
    if isinstance(source, Run):
        return rescored(source.task, source.agent, source.seed, source.outcome, source.gateway)
    journal = Journal.load(source)
    try:
        task, agent, seed, outcome = _contents(journal)
        gateway = task.open(journal=journal)
        gateway.catch_up()
    finally:
        journal.close()
    return _scored(task, agent, seed, outcome, gateway)


def rescored(task: Task, agent: str, seed: int, outcome: Outcome, made: Gateway) -> Run:
    """The run that consists of the calls made at a gateway, whose world may be elsewhere: made again on a fresh world
    here, compared, and scored."""
    gateway = task.open(budget=made.budget, role=made.role)
    for event in made.events:
        call = msgspec.json.decode(event.call)
        gateway.call(
            call["name"],
            call["arguments"],
            module=event.module,
            goal=event.goal,
            decision=event.decision,
            position=event.position,
            context_tokens=event.context_tokens,
            role=event.role,
        )
        again: Event = gateway.events[-1]
        if (again.call, again.observation) != (event.call, event.observation):
            raise InputError(f"call {event.step} of the replay differs from the run: another task or version")
    return _scored(task, agent, seed, outcome, gateway)


class _Meta(msgspec.Struct):
    """What ``run`` writes into a journal before the first call."""

    task: dict[str, Any]
    agent: str
    seed: int


def _contents(journal: Journal) -> tuple[Task, str, int, Outcome]:
    """What a journal says of its run. A run without a recorded end was interrupted."""
    name = str(journal.path)
    try:
        meta = msgspec.convert(journal.meta, _Meta)
        outcome = INTERRUPTED if journal.end is None else msgspec.convert(journal.end, Outcome)
    except msgspec.ValidationError as error:
        raise InputError(f"{name} is not the journal of a run ({error})") from None
    file = decode_task_file(msgspec.json.encode(meta.task), name)
    return rebuild(file, name), meta.agent, meta.seed, outcome


def _seed(seed: int) -> int:
    if type(seed) is not int or not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"a seed is a whole number from 0 to {LARGEST_SEED}, not {seed!r}")
    return seed
