"""What every environment proves (see the design's list): the same tests over all of them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pandas as pd
import pytest

from skillhorizon import envs
from skillhorizon.core import bands, generation
from skillhorizon.core.errors import COMMON_CODES
from skillhorizon.core.policy import Call
from skillhorizon.core.trace import Trace
from tests.envs.bench import ENVIRONMENTS, SEED, Bench, calibrated, configurations

PUBLISHED = "data/published"


@pytest.mark.parametrize(("env", "configuration"), list(configurations("64K")))
def test_reference_and_five_random_legal_orders_score_full(env, configuration):
    task = calibrated(env, "64K", configuration)
    assert bands.band("64K").target[0] <= task.workload <= bands.band("64K").target[1]
    for order in (None, *map(random.Random, range(5))):
        evaluation = generation.run_policy(task, order).evaluation
        assert evaluation.success, [g for g in evaluation.local if not g.met][:2] + evaluation.delivery
        assert evaluation.lgc == 1


@pytest.mark.parametrize("band", ["128K", "256K", "512K", "1M"])
@pytest.mark.parametrize(("env", "configuration"), list(configurations("128K", per_family=1)))
def test_larger_bands_land_and_score_full_in_any_order(env, configuration, band):
    environment = envs.load(env)
    family = configuration.partition("/")[0]
    config = [c for c in environment.configs(band) if c.family == family][-1]
    task, reference = generation.generate(environment, config, SEED)
    least, most = bands.band(band).target
    assert least <= task.workload <= most
    assert reference.evaluation.success
    assert generation.run_policy(task, random.Random(1)).evaluation.success


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_business_scale_lies_in_the_ranges_of_table_6(env):
    environment = envs.load(env)
    ranges = pd.read_csv(f"{PUBLISHED}/table06_business_scale.csv")
    ranges = ranges[ranges.environment == environment.title].set_index(["attribute", "band"])
    cells = []
    for config in environment.configs("64K"):
        task = calibrated(env, "64K", config.id)
        assert task.measures is not None
        scale = {**task.blueprint.scale, "Business calls": task.measures.A}
        assert set(scale) == set(ranges.index.get_level_values("attribute"))
        cells += [
            ranges.loc[(name, "64K"), "min"] <= n <= ranges.loc[(name, "64K"), "max"] for name, n in scale.items()
        ]
    assert sum(cells) >= 0.9 * len(cells)


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_skills_and_seed_records_number_as_in_table_3(env):
    environment = envs.load(env)
    rows = pd.read_csv(f"{PUBLISHED}/table03_environment_resources.csv")
    rows = rows[rows.environment == environment.title]
    assert len(environment.skills) == rows.skills.iloc[0]
    records = sum(len(table) for table in environment.seed_tables().values())
    if (rows.seed_records_kind == "generated").all():
        assert records == 0
    else:
        assert records == rows.seed_records.iloc[0]


@pytest.mark.parametrize(("env", "configuration"), list(configurations("64K", per_family=1)))
def test_doing_nothing_scores_nothing_and_the_idle_labels_are_true(env, configuration):
    bench = Bench(calibrated(env, "64K", configuration))
    evaluation = bench.evaluate()
    assert evaluation.goals_met == 0
    assert not evaluation.success
    scoring = bench.task.environment.scoring
    for goal in evaluation.local:
        assert {p.name for p in scoring.local_predicates if not p.idle} == set(goal.failed)
    assert [p.name for p in scoring.delivery_predicates if not p.idle] == evaluation.delivery_failed


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_tasks_and_traces_are_the_same_in_another_process(env):
    """Another PYTHONHASHSEED, another process: same task digests, same trace digests."""
    chosen = [c for e, c in configurations("64K", per_family=1) if e == env]
    script = (
        "import json, sys\n"
        "from skillhorizon import envs\n"
        "from skillhorizon.core import generation\n"
        "env, seed, *chosen = sys.argv[1:]\n"
        "e = envs.load(env)\n"
        "made = [generation.generate(e, e.config('64K', c), int(seed)) for c in chosen]\n"
        "print(json.dumps([[t.digest, r.trace.digest, r.gateway.state_digest()] for t, r in made]))\n"
    )
    command = [sys.executable, "-c", script, env, str(SEED), *chosen]
    outputs = [
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": s}, capture_output=True, text=True, check=True)
        for s in ("1", "77")
    ]
    here = []
    for configuration in chosen:
        task = calibrated(env, "64K", configuration)
        run = generation.run_policy(task)
        here.append([task.digest, run.trace.digest, run.gateway.state_digest()])
    assert [json.loads(o.stdout) for o in outputs] == [here, here]


@pytest.mark.parametrize(("env", "configuration"), list(configurations("64K", per_family=1)))
def test_replaying_the_calls_gives_the_same_observations_to_the_byte(env, configuration):
    task = calibrated(env, "64K", configuration)
    run = generation.run_policy(task)
    again = task.open_unlimited()
    for event in run.trace.raw:
        call = json.loads(event.call)
        again.call(call["name"], call["arguments"], module=event.module, goal=event.goal)
    assert Trace(again.events).digest == run.trace.digest
    assert again.state_digest() == run.gateway.state_digest()
    assert [e.observation for e in again.events] == [e.observation for e in run.trace.raw]


@pytest.mark.parametrize(("env", "configuration"), list(configurations("64K", per_family=1)))
def test_another_seed_is_another_task_and_a_wider_task_keeps_the_narrower_ones_ids(env, configuration):
    environment = envs.load(env)
    config = environment.config("64K", configuration)
    size = environment.guess(config)
    one, other, wider = (environment.build(config, s, n) for s, n in ((1, size), (2, size), (1, size + 1)))
    assert one.digest != other.digest
    assert len(set(one.graph) & set(wider.graph)) > 0.5 * len(one.graph)


@pytest.mark.parametrize(("env", "configuration"), list(configurations("64K", per_family=1)))
def test_the_reference_is_never_refused_and_names_module_and_goal(env, configuration):
    run = generation.run_policy(calibrated(env, "64K", configuration))
    assert all(e.ok for e in run.trace.raw)
    assert all(e.module for e in run.trace.raw if e.kind == "business")
    required = {g.goal for g in run.evaluation.local}
    assert required <= {e.goal for e in run.trace.raw if e.check}


@pytest.mark.parametrize(("env", "configuration"), list(configurations("64K", per_family=1)))
def test_updates_fire_and_invalidate_accepted_work(env, configuration):
    """Where a task has updates all fire, and what they void was accepted before."""
    task = calibrated(env, "64K", configuration)
    run = generation.run_policy(task)
    assert sorted(run.gateway.world.fired) == [u.ordinal for u in task.blueprint.updates]
    accepted: set[str] = set()
    for event in run.trace.raw:
        assert set(event.invalidated) <= accepted | ({event.goal} if event.check and event.goal else set())
        if event.check and event.goal:
            accepted.add(event.goal)


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_observations_never_show_the_scoring_side(env):
    """A canary in every artifact's private basis shows in no observation, whatever is read."""
    configuration = next(c for e, c in configurations("64K", per_family=1) if e == env)
    bench = Bench(calibrated(env, "64K", configuration))
    made: list[Call] = []
    bench.reference(lambda call, memory: made.append(call) or call)
    world = bench.world
    for ref, artifact in list(world.artifacts.items()):
        artifact = type(artifact)(**{f: getattr(artifact, f) for f in artifact.__struct_fields__} | {"basis": "canary"})
        world.artifacts[ref] = artifact
        if world.newest[artifact.id].version == artifact.version:
            world.newest[artifact.id] = artifact
    world._digests.clear()
    before = bench.gateway.state_digest()
    tools = bench.gateway.tools
    seen = b""
    for ref in world.artifacts:
        bench.do("get_artifact", ref=ref)
    for call in made:
        if tools[call.tool].kind in ("query", "skill"):
            bench.gateway.call(call.tool, call.arguments)
    for event in bench.gateway.events[len(made) :]:
        seen += event.observation
    assert len(seen) > 10_000
    assert b"canary" not in seen
    assert bench.gateway.state_digest() == before, "reading changed the state"


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_refusal_codes_are_a_closed_list_and_schemas_fit_every_client(env):
    environment = envs.load(env)
    for tool in environment.tools.values():
        schema = tool.schema
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert not {"anyOf", "oneOf", "allOf", "$ref"} & set(schema)
        assert not set(tool.refusals) & (COMMON_CODES - {"bad_argument", "unknown_id", "stale_input"})
        assert tool.description.endswith((".", ")"))
        assert len(tool.name) <= 64


@pytest.mark.parametrize(("env", "configuration"), list(configurations("64K", per_family=1)))
def test_the_graph_is_that_of_the_brief(env, configuration):
    """Every local goal is a module of the graph or the subject of one, and the graph is connected work."""
    task = calibrated(env, "64K", configuration)
    goals = {g.goal for g in Bench(task).evaluate().local}
    subjects = {data["subject"] for _, data in task.graph.nodes(data=True)}
    assert {g.partition(":")[2] for g in goals} <= subjects
    measures = task.graph.measures
    assert measures["depth"] > 2
    assert measures["joins"] > 0
