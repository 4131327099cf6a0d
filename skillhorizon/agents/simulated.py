"""Simulated agents: no language models, but the reference procedures carried out with documented weaknesses.

A simulated agent works through the same protocol, allowance and compaction as a model. What it would do is what the
environment's reference policy does; a ``Profile`` of named rates says how it fails at that. No outcome is drawn: a
wrong call is one of the plausible confusions that the environment knows, and what follows from it follows in the world.
Same profile, same seed: same run.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from skillhorizon.agents.compaction import Message
from skillhorizon.agents.harness import RULES, Harnessed, Reply, Rules
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Gateway, Observation
from skillhorizon.core.ids import stream
from skillhorizon.core.policy import Call, Confusion, Job, Memory, Policy, Steps
from skillhorizon.core.task import Task
from skillhorizon.core.tools import Tool

T = TypeVar("T")
Rate = Annotated[float, Meta(ge=0, le=1)]
Factor = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a simulated agent fails. The defaults are of one that does not.

    slip           probability that a consequential call (one that can be confused) is a wrong one, where the context is
                   empty and what the call rests on was read just now; it is multiplied
    slip_context   by 1 + this, where the context is as full as it gets before a compaction, in proportion below,
    slip_distance  and by 1 + this for each thousand calls since the oldest observation that the work rests on
    kept           probability that what left the context still stands in the summary when it is needed; else
    recall         probability that it is read again; else the agent goes by a summary that has lost it, and the next
                   consequential call is a wrong one
    heed           probability that a refusal of a wrong call is understood and the call put right; else it is repeated
    persistence    retries before a piece of work is given up
    stop           hazard of an early final: at each response this much for each thousand attempts made
    stop_stall     times 1 + this for each hundred attempts since a piece of work was completed
    confirm        probability that an early final is confirmed when the agent is asked
    redundancy     probability that a response repeats a recent query
    awareness      probability that a look at the notices is taken where the procedure wants one
    batch          calls in one response at most: it reads ahead further pages and skills, in vain where it is wrong
    shuffled       whether the pieces of work are taken in a random legal order
    """

    slip: Rate = 0.0
    slip_context: Factor = 0.0
    slip_distance: Factor = 0.0
    kept: Rate = 1.0
    recall: Rate = 1.0
    heed: Rate = 1.0
    persistence: Count = 3
    stop: Factor = 0.0
    stop_stall: Factor = 0.0
    confirm: Rate = 1.0
    redundancy: Rate = 0.0
    awareness: Rate = 1.0
    batch: Annotated[int, Meta(ge=1, le=8)] = 1
    shuffled: bool = False


PROFILES: dict[str, Profile] = {
    "diligent": Profile(
        slip=0.0003, slip_context=0.5, kept=0.9, recall=0.999, heed=0.95, persistence=4, stop=0.00002, stop_stall=1.0,
        redundancy=0.06, batch=2,
    ),
    "steady": Profile(
        slip=0.001, slip_context=1.0, slip_distance=0.2, kept=0.8, recall=0.99, heed=0.9, stop=0.0001, stop_stall=1.0,
        redundancy=0.04, awareness=0.99, batch=3,
    ),
    "forgetful": Profile(
        slip=0.0005, slip_context=2.0, slip_distance=1.0, kept=0.3, recall=0.9, heed=0.9, stop=0.00005, stop_stall=1.0,
        redundancy=0.08, awareness=0.97, batch=2,
    ),
    "hasty": Profile(
        slip=0.0015, slip_context=0.5, kept=0.8, recall=0.99, heed=0.8, persistence=1, stop=0.0015, stop_stall=2.0,
        confirm=0.9, redundancy=0.01, awareness=0.95, batch=4,
    ),
    "careless": Profile(
        slip=0.005, slip_context=1.0, slip_distance=0.5, kept=0.7, recall=0.97, heed=0.85, persistence=2, stop=0.0002,
        stop_stall=1.0, redundancy=0.02, awareness=0.9, batch=4,
    ),
    "stubborn": Profile(
        slip=0.003, slip_context=1.0, kept=0.7, recall=0.99, heed=0.1, persistence=40, stop=0.00002, redundancy=0.2,
        awareness=0.98,
    ),
}  # fmt: skip
"""The simulated agents by name; `params.yaml` has the same for the pipeline."""


class TrackingMemory(Memory):
    """A memory that tells which entries a piece of work used.

    ``queried`` are the keys that the policy has only ever looked up, each with its query at hand: these alone may be
    dropped, for the policy reads them again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.used: dict[Hashable, None] | None = None
        self._looked_up: set[Hashable] = set()
        self._taken: set[Hashable] = set()

    def lookup(self, key: Hashable, query: Steps[T]) -> Steps[T]:
        self._looked_up.add(key)
        if self.used is not None:
            self.used[key] = None
        return (yield from super().lookup(key, query))

    def get(self, key: Hashable, default: Any = None) -> Any:
        if self.used is not None:
            self.used[key] = None
        self._taken.add(key)
        return super().get(key, default)

    def __contains__(self, key: Hashable) -> bool:
        self._taken.add(key)
        return super().__contains__(key)

    def drop(self, keys: Sequence[Hashable]) -> None:
        """Forget those of the keys that the policy would read again."""
        self.forget(*[key for key in keys if key in self._looked_up and key not in self._taken])


class Work:
    """A piece of work under way: its procedure, the call that it wants to make, and what it has used."""

    def __init__(self, key: str, steps: Steps[None]) -> None:
        self.key = key
        self.steps = steps
        self.call: Call | None = None
        self.wrong: Call | None = None
        """the confusion that it makes instead"""
        self.decided = False
        """whether it is settled how ``call`` is made"""
        self.lost = False
        """whether it goes by something that a summary has lost"""
        self.looked_away = False
        self.refusals = 0
        self.calls = 0
        self.oldest: int | None = None
        """step of the oldest observation that it rests on"""
        self.used: dict[Hashable, None] = {}
        self.again: list[int] = []
        """steps whose calls it makes again first, to read what they showed"""


class Made(NamedTuple):
    """One call of a response: ``again`` what step ``step`` showed, a ``spare`` query, the work's ``own`` call, or a
    ``guess`` at what it will ask for next."""

    purpose: Literal["again", "spare", "own", "guess"]
    call: Call
    step: int = 0


Turn = list[Made] | None
"""The calls of a response, or None for a final."""

_RECENT = 20
_NOTHING_NEW: Observation = {"ok": True, "result": {"items": [], "next_cursor": None}}
_DONE = "All that I could find to do is done."
_EARLY = "I end here, though some of the work may be open."


class SimulatedMind:
    """One simulated agent in one run: a policy, its weaknesses, and a random stream of its own."""

    repeatable = True

    def __init__(
        self,
        policy: Policy,
        confusions: Callable[[Call, Memory], list[Confusion]],
        tools: Mapping[str, Tool],
        profile: Profile,
        rng: random.Random,
        trigger: int,
    ) -> None:
        self.policy = policy
        self.confusions = confusions
        self.tools = tools
        self.profile = profile
        self.rng = rng
        self.trigger = trigger
        self.memory = policy.memory = TrackingMemory()
        self.made: list[Call] = []
        """every attempted call; that of step n is at n - 1"""
        self.horizon = 0
        """first step whose observation is still in the context"""
        self.seen_again: dict[int, int] = {}
        """step whose call was made again -> the newest step that shows the same"""
        self.skills: list[str] = []
        self.shelf: dict[str, tuple[Observation, int]] = {}
        """skill -> what was read ahead of it, and at which step"""
        self.mistaken = False
        """whether any mistake was made: only then may a procedure meet what it cannot expect"""
        self.since_progress = 0
        self.failures: dict[str, int] = {}
        self.given_up: set[str] = set()
        self.recent: deque[Call] = deque(maxlen=_RECENT)
        self._size = self._counted = 0
        self._summarised = False
        self._turn: Turn = []
        self._life = self._live()

    # -- the protocol ----------------------------------------------------------------------------------------------

    def respond(self, messages: Sequence[Message]) -> Reply:
        self._look_at(messages)
        if self._turn == []:  # the first response of all
            self._turn = next(self._life)
        else:
            told = msgspec.json.decode(messages[-1].text)
            if "confirmation" in told:
                return self._confirmed()
            self._turn = self._life.send([result["observation"] for result in told["results"]])
        return _final(_EARLY) if self._turn is not None and self._stops() else self._said()

    def summarise(self, messages: Sequence[Message]) -> Reply:
        self._summarised = True
        return Reply(f"{len(self.made)} calls have been made, {len(self.given_up)} pieces of work were given up.")

    def _said(self) -> Reply:
        if self._turn is None:
            return _final(_DONE)
        listed = [{"arguments": made.call.arguments, "name": made.call.tool} for made in self._turn]
        return Reply(msgspec.json.encode({"type": "actions", "actions": listed}).decode())

    def _confirmed(self) -> Reply:
        """Asked whether it means it, an agent that has nothing left to do does; another may think again."""
        if self._turn is None:
            return _final(_DONE)
        return _final(_EARLY) if self.rng.random() < self.profile.confirm else self._said()

    def _stops(self) -> bool:
        profile = self.profile
        hazard = profile.stop * len(self.made) / 1000 * (1 + profile.stop_stall * self.since_progress / 100)
        return hazard > 0 and self.rng.random() < hazard

    def _look_at(self, messages: Sequence[Message]) -> None:
        """How full the context is, and after a compaction what is left in it."""
        if self._summarised:
            self._summarised = False
            self._size = self._counted = 0
            self.horizon = next((m.steps[0] for m in messages if m.steps), len(self.made) + 1)
        for number in range(self._counted, len(messages)):
            self._size += messages[number].tokens
        self._counted = len(messages)

    # -- the work --------------------------------------------------------------------------------------------------

    def _live(self) -> Generator[Turn, list[Observation], None]:
        work: Work | None = Work("opening", self.policy.opening())
        while work is not None:
            self._advance(work, None)
            while work.call is not None:
                turn = self._next_turn(work)
                observations = yield turn
                for made, observation in zip(turn, observations, strict=False):
                    self._came_of(work, made, observation)
                self._take_from_shelf(work)
            if not work.calls:
                self._failed(work)
            work = self._choose()
        while True:
            yield None

    def _choose(self) -> Work | None:
        wanted = (job for job in self._ready() if job.key not in self.given_up)
        if self.profile.shuffled:
            listed = list(wanted)
            job = self.rng.choice(listed) if listed else None
        else:
            job = next(wanted, None)
        return None if job is None else Work(job.key, job.steps())

    def _ready(self) -> Iterator[Job]:
        try:
            yield from self.policy.ready()
        except Exception:  # its own mistakes have confused it, and it finds no way on
            if not self.mistaken:
                raise

    def _next_turn(self, work: Work) -> list[Made]:
        assert work.call is not None
        profile = self.profile
        turn = [Made("again", self.made[step - 1], step) for step in work.again[: profile.batch]]
        if self.recent and profile.redundancy and self.rng.random() < profile.redundancy:
            turn.append(Made("spare", self.rng.choice(self.recent)))
        if len(turn) < len(work.again) or len(turn) >= max(profile.batch, 2):
            return turn
        if not work.decided:
            work.decided = True
            work.wrong = self._slip(work, work.call)
        turn.append(Made("own", work.wrong or work.call))
        if work.wrong is None:
            guesses = self._guesses(work.call)[: max(0, profile.batch - len(turn))]
            turn += [Made("guess", call) for call in guesses]
        return turn

    def _guesses(self, call: Call) -> list[Call]:
        """What the procedure may ask for next, whatever this call answers: the page after it, the other skills."""
        tool = self.tools.get(call.tool)
        if tool is None:
            return []
        if call.tool == "read_skill_file" and set(call.arguments) == {"skill"}:
            return [Call(call.tool, {"skill": name}) for name in self.skills if name != call.arguments["skill"]]
        if tool.page and call.arguments.get("cursor"):
            start = int(call.arguments["cursor"][1:]) + call.arguments.get("limit", tool.page)
            return [msgspec.structs.replace(call, arguments={**call.arguments, "cursor": f"p{start}"})]
        return []

    def _slip(self, work: Work, call: Call) -> Call | None:
        """A plausible wrong alternative of a consequential call, where the agent falls for one."""
        tool = self.tools.get(call.tool)
        if tool is None or not tool.counts_as_business:
            return None
        if not work.lost and self.rng.random() >= self._chance(work):
            return None
        confusions = self.confusions(call, self.memory)
        if not confusions:
            return None
        work.lost = False
        self.mistaken = True
        return self.rng.choice(confusions).call

    def _chance(self, work: Work) -> float:
        profile = self.profile
        if not profile.slip:
            return 0.0
        distance = 0 if work.oldest is None else len(self.made) - work.oldest
        filled = min(1.0, self._size / self.trigger)
        return profile.slip * (1 + profile.slip_context * filled) * (1 + profile.slip_distance * distance / 1000)

    # -- what came of it -------------------------------------------------------------------------------------------

    def _came_of(self, work: Work, made: Made, observation: Observation) -> None:
        call = made.call
        self.made.append(call)
        self.since_progress += 1
        self.memory.step = len(self.made)
        tool = self.tools.get(call.tool)
        if tool is not None and tool.kind == "query":
            self.recent.append(call)
            if call.tool == "read_task_brief" and observation["ok"]:
                self.skills = observation["result"]["skills"]
        if made.purpose == "again":
            work.again.remove(made.step)
            self.seen_again[made.step] = len(self.made)
        elif made.purpose == "own":
            self._answered(work, observation)
        elif made.purpose == "guess":
            if call.tool == "read_skill_file":
                self.shelf[call.arguments["skill"]] = (observation, len(self.made))
            elif work.call is not None and (work.call.tool, work.call.arguments) == (call.tool, call.arguments):
                self._advance(work, observation)

    def _answered(self, work: Work, observation: Observation) -> None:
        work.calls += 1
        if work.wrong is None or observation["ok"]:
            self._advance(work, observation)
            return
        work.refusals += 1
        if work.refusals > self.profile.persistence:
            self.given_up.add(work.key)
            self._leave(work)
        elif self.rng.random() < self.profile.heed:
            work.wrong = None

    def _take_from_shelf(self, work: Work) -> None:
        """Skill files that were read ahead and are still in the context need not be read again."""
        while work.call is not None and work.call.tool == "read_skill_file" and set(work.call.arguments) == {"skill"}:
            observation, step = self.shelf.pop(work.call.arguments["skill"], (_NOTHING_NEW, -1))
            if step < max(self.horizon, 1):
                return
            self._advance(work, observation)

    def _advance(self, work: Work, observation: Observation | None) -> None:
        """Let the procedure go on to its next call; it ends, or it finds itself refused and is left for now."""
        before = len(work.used)
        self.memory.used = work.used
        work.wrong, work.decided, work.refusals = None, False, 0
        try:
            work.call = next(work.steps) if observation is None else work.steps.send(observation)
            while work.call.tool == "list_notices" and self._looks_away(work):
                work.call = work.steps.send(_NOTHING_NEW)
        except StopIteration:
            work.call = None
            if work.calls:
                self.since_progress = 0
        except Exception:  # refused, or confused by what it cannot have met without an earlier mistake
            if not self.mistaken:
                raise
            self._failed(work)
        finally:
            self.memory.used = None
        if work.call is not None and len(work.used) > before:
            self._recall(work, [*work.used][before:])

    def _looks_away(self, work: Work) -> bool:
        if self.profile.awareness >= 1 or work.looked_away or self.rng.random() < self.profile.awareness:
            return False
        self.mistaken = work.looked_away = True
        return True

    def _recall(self, work: Work, keys: list[Hashable]) -> None:
        """What has left the context is read again, or is gone without the agent's knowing it."""
        for key in keys:
            step = self.memory.seen_at(key)
            if not step:  # not kept, or kept before anything was read
                continue
            newest = self.seen_again.get(step, step)
            work.oldest = newest if work.oldest is None else min(work.oldest, newest)
            if newest >= self.horizon or step in work.again:
                continue
            if self.rng.random() < self.profile.kept:
                continue
            call = self.made[step - 1]
            if self.rng.random() >= self.profile.recall:
                work.lost = True
            elif call.tool in self.tools and self.tools[call.tool].kind in ("query", "skill"):
                work.again.append(step)

    def _failed(self, work: Work) -> None:
        """Leave a piece of work; it may be taken up again from fresh reads, so many times."""
        self.failures[work.key] = self.failures.get(work.key, 0) + 1
        if self.failures[work.key] > self.profile.persistence:
            self.given_up.add(work.key)
        self._leave(work)

    def _leave(self, work: Work) -> None:
        work.call = None
        work.steps.close()
        self.memory.drop(list(work.used))


def _final(text: str) -> Reply:
    return Reply(msgspec.json.encode({"type": "final", "text": text}).decode())


class Simulated(Harnessed):
    """A simulated agent, not a language model: a profile under the rules of the harness."""

    repeatable = True

    def __init__(self, name: str, profile: Profile, rules: Rules = RULES) -> None:
        self.name = name
        self.profile = profile
        self.rules = rules

    def mind(self, task: Task, gateway: Gateway, seed: int) -> SimulatedMind:
        environment = task.environment
        return SimulatedMind(
            environment.policy(),
            environment.confusions,
            gateway.tools,
            self.profile,
            stream("simulated", self.name, task.id, seed),
            self.rules.compaction.trigger,
        )


SIMULATED = {name: Simulated(name, profile) for name, profile in PROFILES.items()}
WITHOUT_WEAKNESS = {"perfect": Profile(), "shuffled": Profile(shuffled=True)}
"""The reference procedures under the harness, in their own order and in a random legal one."""


def family(argument: str) -> Simulated:
    """``simulated:steady``, ``simulated:perfect``; rates set otherwise follow: ``simulated:steady,slip=0.01``.

    Raises ``InputError`` for an unknown profile or rate.
    """
    return Simulated(argument, profile_of(argument))


def profile_of(argument: str) -> Profile:
    """The profile of this name, with the rates that are set otherwise behind commas; raises ``InputError``."""
    name, *changes = argument.split(",")
    known = {**PROFILES, **WITHOUT_WEAKNESS}
    if name not in known:
        raise InputError(f"unknown profile {name!r}; the profiles are {', '.join(known)}")
    rates: dict[str, Any] = msgspec.to_builtins(known[name])
    for change in changes:
        rate, _, value = change.partition("=")
        rates[rate] = value
    try:
        return msgspec.convert(rates, Profile, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{argument!r} is no simulated agent: {error}") from None
