"""The reference procedure of the campaign desk, and the plausible mistakes around it.

Brief by brief in the order of waves and lanes: bind, derive, draft, register, book, publish, measure, report, deploy.
Briefs, pools and evidence are read once and remembered; reports of parents, slots and exposures always anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from skillhorizon.core.policy import Job, Memory, Mistakes, Steps, ask, ask_all, confusing, run_script
from skillhorizon.envs.social.world import GRACE, LEAD, WINDOW, contribution, winner_of

SKILLS = (
    "deploy-winning-variant",
    "derive-variant-audiences",
    "prepare-evidenced-drafts",
    "publish-due-posts",
    "repair-withdrawn-rights",
    "report-deduplicated-results",
    "schedule-within-limits",
    "select-licensed-assets",
)
ROOM = 400
"""Hours that a grant should still last when its asset is chosen."""
_REPORTED = ("reported", "deploying", "done")

Answer = dict[str, Any]


class SocialPolicy:
    """Knows only what the tools answered. ``memory`` holds observations; the rest is the state of its own work."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.brief: Answer = {}
        self.parents: dict[str, list[str]] = {}
        """brief -> its parents, in the order of waves and lanes"""
        self.stage: dict[str, str] = {}
        """brief -> planned, prepared, booked, published, reported, deploying or done"""
        self.due: dict[str, int] = {}
        """brief -> tick of what it waits for"""
        self.posts: dict[tuple[str, str], Answer] = {}
        """(brief, role) -> its post"""
        self.booked: dict[str, Answer] = {}
        """post -> its tick and audiences, until it is out"""
        self.withdrawn: set[str] = set()
        self.notices_read = 0
        self.now = 0
        self.closed = False

    # -- the plan --------------------------------------------------------------------------------------------------

    def opening(self) -> Steps[None]:
        self.brief = yield from ask("read_task_brief")
        yield from ask("list_skills")
        for skill in SKILLS:
            yield from ask("read_skill_file", skill=skill)
        for brief in (yield from ask_all("list_briefs")):
            self.parents[brief["brief_id"]] = brief["parents"]
            self.stage[brief["brief_id"]] = "planned"

    def ready(self) -> Iterator[Job]:
        """What waits for a tick is ready once the clock is there, or when nothing else waits for an earlier one."""
        horizon = max(self.now, min(self.due.values(), default=0))
        everything = True
        for brief_id, stage in self.stage.items():
            if stage == "done":
                continue
            everything = False
            if stage == "planned":
                if all(self.stage[parent] in _REPORTED for parent in self.parents[brief_id]):
                    yield Job(f"prepare:{brief_id}", partial(self._prepare, brief_id))
            elif stage == "prepared":
                yield Job(f"schedule:{brief_id}", partial(self._schedule_arms, brief_id))
            elif stage == "reported":
                yield Job(f"draft:{brief_id}", partial(self._schedule_deployment, brief_id))
            elif self.due[brief_id] <= horizon:
                step = {"booked": self._publish_arms, "published": self._report, "deploying": self._deploy}[stage]
                yield Job(f"{stage}:{brief_id}", partial(step, brief_id))
        if everything and not self.closed:
            yield Job("close", self._close)

    def _close(self) -> Steps[None]:
        yield from self._read_notices(None)
        yield from ask_all("list_brief_posts", status="scheduled")
        self.closed = True

    def _advance(self, tick: int, module: str) -> Steps[None]:
        if tick > self.now:
            self.memory.keep("booked ticks", {p["tick"] for p in self.booked.values()})
            answer = yield from ask("advance_clock", module=module, to_tick=tick)
            self.now = answer["now"]

    # -- preparing an experiment -----------------------------------------------------------------------------------

    def _prepare(self, brief_id: str) -> Steps[None]:
        module = f"experiment:{brief_id}"
        brief = yield from self._brief(brief_id, module)
        reports = yield from self._parent_reports(brief_id, module)
        yield from ask(
            "open_brief",
            module=module,
            goal=f"binding:{brief_id}",
            brief_id=brief_id,
            parent_reports=[report["report"] for report in reports.values()],
        )
        lists = yield from self._derive(brief, reports, module)
        yield from self._reactivate(brief, sorted({*lists["control"], *lists["challenger"]}), module)
        yield from self._pool(brief, module)
        yield from self._evidence(brief, module)
        parent_cta = reports[brief["cta_parent"]]["winner"]["cta_id"] if brief["cta_parent"] else None
        ctas = {"control": parent_cta or brief["opening_cta"], "challenger": brief["challenger_cta"]}
        for role, cta_id in ctas.items():
            yield from self._draft(brief, role, lists[role], cta_id, module)
        yield from self._read_notices(module)
        yield from ask(
            "register_experiment",
            module=module,
            goal=f"experiment:{brief_id}",
            brief_id=brief_id,
            control_post_id=self.posts[brief_id, "control"]["post_id"],
            challenger_post_id=self.posts[brief_id, "challenger"]["post_id"],
        )
        self.stage[brief_id] = "prepared"

    def _brief(self, brief_id: str, module: str) -> Steps[Answer]:
        query = ask("read_brief", module=module, brief_id=brief_id)
        return (yield from self.memory.lookup(("brief", brief_id), query))

    def _report_of(self, brief_id: str, module: str) -> Steps[Answer]:
        query = ask("read_report", module=module, brief_id=brief_id)
        return (yield from self.memory.lookup(("report", brief_id), query))

    def _parent_reports(self, brief_id: str, module: str) -> Steps[dict[str, Answer]]:
        """Read anew: a parent may have reported again since."""
        self.memory.forget(*(("report", parent) for parent in self.parents[brief_id]))
        reports = {}
        for parent in self.parents[brief_id]:
            reports[parent] = yield from self._report_of(parent, module)
        return reports

    def _pool(self, brief: Answer, module: str) -> Steps[list[Answer]]:
        query = ask_all("list_assets", module=module, tag=brief["asset_tag"])
        return (yield from self.memory.lookup(("pool", brief["asset_tag"]), query))

    def _evidence(self, brief: Answer, module: str) -> Steps[list[str]]:
        query = self._find_evidence(brief, module)
        return (yield from self.memory.lookup(("evidence", brief["brief_id"]), query))

    def _audiences(self, audience_ids: Iterable[str], module: str) -> Steps[dict[str, Answer]]:
        """What is remembered of some audiences, or else read anew."""
        found = {a: self.memory.get(("audience", a)) for a in audience_ids}
        unknown = [a for a in found if found[a] is None]
        for start in range(0, len(unknown), 8):
            chunk = unknown[start : start + 8]
            for audience in (yield from ask_all("list_audiences", module=module, audience_ids=chunk)):
                found[audience["audience_id"]] = audience
                self.memory.keep(("audience", audience["audience_id"]), audience)
        return found

    def _derive(self, brief: Answer, reports: dict[str, Answer], module: str) -> Steps[dict[str, list[str]]]:
        """The list of each arm."""
        brief_id = brief["brief_id"]
        winners = [reports[parent]["winner"]["audience_ids"] for parent in brief["audience_parents"]]
        inherited = list(dict.fromkeys(a for audiences in winners for a in audiences)) or brief["opening_audiences"]
        consents = yield from ask_all(
            "list_consents",
            module=module,
            channel=brief["channel"],
            audience_ids=sorted(inherited),
            consent_batch_id=brief["consent_batch_id"],
        )
        new = [c["audience_id"] for c in consents if c["consent_batch_id"]]
        usable = [c["audience_id"] for c in consents if c["status"] == "granted"]
        audiences = yield from self._audiences(usable, module)
        arguments = {
            "inherited": inherited,
            "new": new,
            "consents": [{name: c[name] for name in ("audience_id", "status", "roles")} for c in consents],
            "reach": {a: audiences[a]["reach"] for a in usable},
            "audience_limit": brief["audience_limit"],
        }
        goal = f"experiment:{brief_id}"
        skill = "derive-variant-audiences"
        lists = yield from run_script(skill, "combine_audiences", arguments, module=module, goal=goal)
        self.memory.keep(("lists", brief_id), {**lists, "new": new})
        return lists

    def _reactivate(self, brief: Answer, audience_ids: list[str], module: str) -> Steps[None]:
        audiences = yield from self._audiences(audience_ids, module)
        for audience_id, audience in audiences.items():
            if audience["status"] != "resting" or audience["active_from"] is not None:
                continue
            rows = yield from ask_all(
                "list_exposures",
                module=module,
                audience_ids=[audience_id],
                from_tick=self.now - 4 * audience["half_life_hours"],
                to_tick=self.now,
            )
            past = [row for row in rows if row["state"] == "past"]
            self.memory.keep(("seen", audience_id), past)
            answer = yield from ask(
                "reactivate_audience",
                module=module,
                goal=f"reactivation:{brief['brief_id']}",
                brief_id=brief["brief_id"],
                audience_id=audience_id,
                basis_publication_id=past[-1]["publication_id"],
            )
            self.memory.keep(("audience", audience_id), {**audience, "active_from": answer["active_from"]})

    def _find_evidence(self, brief: Answer, module: str) -> Steps[list[str]]:
        """Pages until two posts of different campaigns fit."""
        wanted = brief["evidence"]
        query = {name: wanted[name] for name in ("brand", "topic", "from_tick", "to_tick")}
        rows: list[Answer] = []
        page: Answer = {"next_cursor": "p0"}
        chosen: dict[str, str] = {}
        while len(chosen) < 2 and page["next_cursor"]:
            more = {"cursor": page["next_cursor"]} if rows else {}
            page = yield from ask("list_posts", module=module, **query, **more)
            rows += page["items"]
            for post in page["items"]:
                if post["objective"] == wanted["objective"] and post["status"] == "live" and len(chosen) < 2:
                    chosen.setdefault(post["campaign_id"], post["post_id"])
        self.memory.keep(("past posts", brief["brief_id"]), rows)
        return list(chosen.values())

    def _draft(self, brief: Answer, role: str, audience_ids: list[str], cta_id: str, module: str) -> Steps[None]:
        brief_id = brief["brief_id"]
        audiences = yield from self._audiences(audience_ids, module)
        names = ", ".join(audiences[a]["name"] for a in audience_ids)
        answer = yield from ask(
            "create_draft",
            module=module,
            goal=f"{role}_approval:{brief_id}",
            brief_id=brief_id,
            role=role,
            audience_ids=audience_ids,
            cta_id=cta_id,
            copy=f"{brief['title']}, {role} for {names}.",
        )
        self.posts[brief_id, role] = answer
        self.memory.keep(("post", answer["post_id"]), answer)
        yield from self._attach(brief, answer, module)
        evidence = yield from self._evidence(brief, module)
        cited = yield from ask(
            "cite_evidence",
            module=module,
            goal=f"{role}_approval:{brief_id}",
            post_id=answer["post_id"],
            evidence_post_ids=evidence,
        )
        yield from self._approve(brief_id, role, cited["post"], module)

    def _attach(self, brief: Answer, post: Answer, module: str) -> Steps[str]:
        role = post["role"]
        pool = yield from self._pool(brief, module)
        asset_id, grant_id = self._asset(brief, pool, role)
        answer = yield from ask(
            "attach_asset",
            module=module,
            goal=f"{role}_approval:{brief['brief_id']}",
            post_id=post["post_id"],
            asset_id=asset_id,
            grant_id=grant_id,
        )
        version: str = answer["post"]
        return version

    def _asset(self, brief: Answer, pool: list[Answer], role: str) -> tuple[str, str]:
        """The first asset of the format with a grant that covers the post for long enough."""
        for asset in pool:
            for grant in asset["grants"]:
                if (
                    asset["format"] == brief["format"]
                    and grant["grant_id"] not in self.withdrawn
                    and _covers(grant, brief["channel"], role, self.now)
                    and grant["until_tick"] >= self.now + ROOM
                ):
                    return asset["asset_id"], grant["grant_id"]
        raise LookupError(f"no asset of {brief['asset_tag']} may be used as {role}")

    def _approve(self, brief_id: str, role: str, post: str, module: str) -> Steps[None]:
        yield from ask("request_approval", module=module, goal=f"{role}_approval:{brief_id}", post=post)

    # -- notices ---------------------------------------------------------------------------------------------------

    def _read_notices(self, module: str | None) -> Steps[None]:
        notices = yield from ask_all("list_notices", module=module, since=self.notices_read)
        for notice in notices:
            self.notices_read = notice["sequence"]
            self.withdrawn.update(notice["subject_ids"])
            yield from self._repair(notice["notice_id"], module)

    def _repair(self, notice_id: str, module: str | None) -> Steps[None]:
        rows = yield from ask_all("list_brief_posts", module=module, status="rights_void")
        affected = [row for row in rows if notice_id in row["voided_by"]]
        yield from ask(
            "acknowledge_notice",
            module=module or f"notice:{notice_id}",
            goal=f"notice:{notice_id}",
            notice_id=notice_id,
            affected_post_ids=[row["post"].partition("@")[0] for row in affected],
        )
        for row in affected:
            part = "deployment" if row["role"] == "deployment" else "experiment"
            own = f"{part}:{row['brief_id']}"
            brief = yield from self._brief(row["brief_id"], own)
            version = yield from self._attach(brief, self.posts[row["brief_id"], row["role"]], own)
            yield from self._approve(row["brief_id"], row["role"], version, own)

    # -- booking and publishing ------------------------------------------------------------------------------------

    def _schedule_arms(self, brief_id: str) -> Steps[None]:
        yield from self._book(brief_id, ["control", "challenger"], f"experiment:{brief_id}")
        self.stage[brief_id] = "booked"

    def _book(self, brief_id: str, roles: list[str], module: str) -> Steps[None]:
        """Book the first tick that fits all posts of the event."""
        brief = yield from self._brief(brief_id, module)
        posts = [self.posts[brief_id, role] for role in roles]
        found = yield from self._audiences(sorted({a for post in posts for a in post["audience_ids"]}), module)
        audiences = list(found.values())
        tick: int | None = None
        start = max(self.now + LEAD, *(a["active_from"] or 0 for a in audiences))
        while tick is None:
            page = yield from ask("list_slots", module=module, channel=brief["channel"], from_tick=start)
            slots = {slot["tick"]: slot["slot_id"] for slot in page["items"] if slot["free"] >= len(posts)}
            start = page["items"][-1]["tick"] + 1
            if slots:
                tick = yield from self._first_fit(brief, roles, posts, audiences, list(slots), module)
        self.memory.keep(("slots", brief_id), slots)
        for role, post in zip(roles, posts, strict=True):
            answer = yield from ask(
                "schedule_post",
                module=module,
                goal=f"{role}_slot:{brief_id}",
                post_id=post["post_id"],
                slot_id=slots[tick],
            )
            self.booked[post["post_id"]] = {"tick": answer["tick"], "audience_ids": post["audience_ids"]}
        self.due[brief_id] = min(self.booked[post["post_id"]]["tick"] for post in posts)

    def _first_fit(
        self,
        brief: Answer,
        roles: list[str],
        posts: list[Answer],
        audiences: list[Answer],
        ticks: list[int],
        module: str,
    ) -> Steps[int | None]:
        half_lives = {a["audience_id"]: a["half_life_hours"] for a in audiences}
        # within a cooldown another event may stand in the way, and what is booked later must still fit
        last = ticks[-1] + max(a["cooldown_hours"] for a in audiences)
        end = max([last, *(p["tick"] for p in self.booked.values() if half_lives.keys() & p["audience_ids"])])
        rows = yield from self._exposures(half_lives, ticks[0], end, module)
        for post in posts:
            self.memory.keep(("forecast", post["post_id"]), rows)
        own: dict[str, list[int]] = {}
        for row in rows:
            if "post_id" in row:
                own.setdefault(row["audience_id"], []).append(row["at"])
        arguments = {
            "audiences": [
                {
                    **{name: a[name] for name in ("audience_id", "half_life_hours", "load_cap", "cooldown_hours")},
                    "active_from": a["active_from"] or 0,
                    "added": brief["weight"] * sum(a["audience_id"] in post["audience_ids"] for post in posts),
                }
                for a in audiences
            ],
            "exposures": rows,
            "own_ticks": own,
            "ticks": ticks,
        }
        goal = f"{roles[0]}_slot:{brief['brief_id']}"
        output = yield from run_script("schedule-within-limits", "forecast_load", arguments, module=module, goal=goal)
        tick: int | None = output["first_ok"]
        return tick

    def _exposures(self, half_lives: dict[str, int], tick: int, end: int, module: str) -> Steps[list[Answer]]:
        """All rows that may be live at ``tick``, and those up to ``end``."""
        return (
            yield from ask_all(
                "list_exposures",
                module=module,
                audience_ids=sorted(half_lives),
                from_tick=tick - 8 * max(half_lives.values()) + 1,
                to_tick=end,
            )
        )

    def _publish_arms(self, brief_id: str) -> Steps[None]:
        yield from self._publish(brief_id, ["control", "challenger"], f"experiment:{brief_id}")
        self.stage[brief_id] = "published"

    def _publish(self, brief_id: str, roles: list[str], module: str) -> Steps[None]:
        """One post after the other, each on exposures read after the one before."""
        for role in roles:
            post = self.posts[brief_id, role]
            post_id = post["post_id"]
            yield from self._advance(self.booked[post_id]["tick"], module)
            audiences = yield from self._audiences(post["audience_ids"], module)
            half_lives = {a: audience["half_life_hours"] for a, audience in audiences.items()}
            rows = yield from self._exposures(half_lives, self.now, self.now, module)
            self.memory.keep(("exposures", post_id), (rows, half_lives, self.now))
            arguments = {"post_id": post_id, "now": self.now, "half_lives": half_lives, "exposures": rows}
            goal = f"{role}_publication:{brief_id}"
            skill = "publish-due-posts"
            output = yield from run_script(skill, "publication_evidence", arguments, module=module, goal=goal)
            answer = yield from ask("publish_post", module=module, goal=goal, **output)
            del self.booked[post_id]
            self.due[brief_id] = answer["tick"] + WINDOW

    # -- reporting and deploying -----------------------------------------------------------------------------------

    def _report(self, brief_id: str) -> Steps[None]:
        module, goal = f"report:{brief_id}", f"report:{brief_id}"
        yield from self._advance(self.due[brief_id], module)
        measured: dict[str, Answer] = {}
        rows: dict[str, list[Answer]] = {}
        for role in ("control", "challenger"):
            post_id = self.posts[brief_id, role]["post_id"]
            measured[role] = yield from ask(
                "measure_post", module=module, goal=f"{role}_measurement:{brief_id}", post_id=post_id
            )
            identity = measured[role]["measurement"].partition("@")[0]
            rows[role] = yield from ask_all("list_conversions", module=module, measurement_id=identity)
        delivered = {role: answer["delivered"] for role, answer in measured.items()}
        self.memory.keep(("measured", brief_id), (rows, delivered))
        reports = yield from self._parent_reports(brief_id, module)
        fields = ("hour", "member_id")
        counted = {role: [{name: row[name] for name in fields} for row in listed] for role, listed in rows.items()}
        arguments = {"conversions": counted, "exclude_members": sorted(_members(reports.values()))}
        self.memory.keep(("excluded", brief_id), arguments["exclude_members"])
        skill = "report-deduplicated-results"
        output = yield from run_script(skill, "dedupe_conversions", arguments, module=module, goal=goal)
        counts = {role: len(members) for role, members in output["credited"].items()}
        arguments = {"credited": counts, "delivered": delivered}
        picked = yield from run_script(skill, "pick_winner", arguments, module=module, goal=goal)
        answer = yield from ask(
            "submit_report",
            module=module,
            goal=goal,
            brief_id=brief_id,
            measurements=[answer["measurement"] for answer in measured.values()],
            credited=output["credited"],
            winner=picked["winner"],
        )
        self.memory.keep(("report", brief_id), answer)
        del self.due[brief_id]
        self.stage[brief_id] = "reported"

    def _schedule_deployment(self, brief_id: str) -> Steps[None]:
        module = f"deployment:{brief_id}"
        brief = yield from self._brief(brief_id, module)
        report = yield from self._report_of(brief_id, module)
        winner = report["winner"]
        yield from self._draft(brief, "deployment", winner["audience_ids"], winner["cta_id"], module)
        yield from self._read_notices(module)
        yield from self._book(brief_id, ["deployment"], module)
        self.stage[brief_id] = "deploying"

    def _deploy(self, brief_id: str) -> Steps[None]:
        module = f"deployment:{brief_id}"
        yield from self._publish(brief_id, ["deployment"], module)
        report = yield from self._report_of(brief_id, module)
        yield from ask(
            "confirm_deployment",
            module=module,
            goal=f"brief:{brief_id}",
            brief_id=brief_id,
            post_id=self.posts[brief_id, "deployment"]["post_id"],
            report=report["report"],
        )
        del self.due[brief_id]
        self.stage[brief_id] = "done"


def _members(reports: Iterable[Answer]) -> set[str]:
    return {m for report in reports for members in report["credited"].values() for m in members}


def _covers(grant: Answer, channel: str, role: str, now: int) -> bool:
    """Rule 4, as far as it is known."""
    covered = channel in grant["channels"] and role in grant["roles"] and "withdrawn_at" not in grant
    return covered and grant["from_tick"] <= now < grant["until_tick"]


# -- plausible mistakes ----------------------------------------------------------------------------------------------


_NO_REPORT: Answer = {"winner": {"role": "control", "audience_ids": [], "cta_id": None}}


def _wrong_drafts(given: Answer, memory: Memory) -> Mistakes:
    brief = memory.get(("brief", given["brief_id"]))
    lists = memory.get(("lists", given["brief_id"]))
    if brief is None or lists is None:
        return
    audiences, role = given["audience_ids"], given["role"]
    if role == "deployment":
        return
    batch = [a for a in audiences if a in lists["new"]]
    if batch and len(audiences) > 1:
        yield "batch_audience_omitted", {"audience_ids": [a for a in audiences if a != batch[-1]]}
    other = lists["challenger" if role == "control" else "control"]
    if set(other) != set(audiences):
        yield "list_of_the_other_arm", {"audience_ids": other}
    if inherited := [a for a in audiences if a not in lists["new"]]:
        for spare in lists["dropped"]:
            if spare not in lists["new"]:
                yield "ranked_otherwise", {"audience_ids": [spare if a == inherited[-1] else a for a in audiences]}
        for parent in brief["audience_parents"]:
            lost = memory.get(("lists", parent), {"control": [], "challenger": []})
            won = memory.get(("report", parent), _NO_REPORT)["winner"]
            for a in lost["challenger" if won["role"] == "control" else "control"]:
                if a not in audiences and a not in won["audience_ids"]:
                    yield "losers_audience", {"audience_ids": [*(x for x in audiences if x != inherited[-1]), a]}
    if role == "control":
        yield "call_of_the_other_arm", {"cta_id": brief["challenger_cta"]}
        for parent in brief["audience_parents"]:
            won = memory.get(("report", parent), _NO_REPORT)["winner"]
            yield "call_of_another_parent", {"cta_id": won["cta_id"] or given["cta_id"]}
        source = memory.get(("brief", brief["cta_parent"]))
        if source and source["opening_cta"]:
            for cta_id in (source["opening_cta"], source["challenger_cta"]):
                yield "losers_call", {"cta_id": cta_id}
    elif brief["opening_cta"]:
        yield "call_of_the_other_arm", {"cta_id": brief["opening_cta"]}


def _wrong_assets(given: Answer, memory: Memory) -> Mistakes:
    post = memory.get(("post", given["post_id"]))
    brief = memory.get(("brief", post["brief_id"])) if post else None
    if post is None or brief is None:
        return
    pool = memory.get(("pool", brief["asset_tag"]), [])
    grants = {grant["grant_id"]: grant for asset in pool for grant in asset["grants"]}
    chosen = grants.get(given["grant_id"], {"until_tick": 0})
    for asset in pool:
        for grant in asset["grants"]:
            choice = {"asset_id": asset["asset_id"], "grant_id": grant["grant_id"]}
            if post["role"] not in grant["roles"] or brief["channel"] not in grant["channels"]:
                if grant["until_tick"] > 0 and asset["format"] == brief["format"]:
                    yield "grant_of_another_use", choice
            elif grant["until_tick"] < 0:
                yield "grant_that_is_over", choice
            elif asset["format"] != brief["format"]:
                yield "asset_of_another_format", choice
            elif post["role"] == "deployment" and grant["until_tick"] < chosen["until_tick"]:
                yield "asset_that_ends_early", choice


def _wrong_evidence(given: Answer, memory: Memory) -> Mistakes:
    post = memory.get(("post", given["post_id"]))
    brief = memory.get(("brief", post["brief_id"])) if post else None
    if post is None or brief is None:
        return
    kept = given["evidence_post_ids"][0]
    rows = memory.get(("past posts", post["brief_id"]), [])
    campaign = next((r["campaign_id"] for r in rows if r["post_id"] == kept), None)
    for row in rows:
        fits = row["objective"] == brief["evidence"]["objective"]
        choice = {"evidence_post_ids": [kept, row["post_id"]]}
        if row["post_id"] in given["evidence_post_ids"]:
            continue
        if row["status"] != "live":
            yield "post_that_was_corrected", choice
        elif not fits:
            yield "evidence_of_another_objective", choice
        elif row["campaign_id"] == campaign:
            yield "evidence_of_one_campaign", choice


def _wrong_slots(given: Answer, memory: Memory) -> Mistakes:
    post = memory.get(("post", given["post_id"]))
    slots = memory.get(("slots", post["brief_id"])) if post else None
    if slots is None or post["role"] != "challenger":
        return
    tick = next((t for t, slot_id in slots.items() if slot_id == given["slot_id"]), None)
    cooldown = max(
        memory.get(("audience", a), {"cooldown_hours": WINDOW})["cooldown_hours"] for a in post["audience_ids"]
    )
    for later, slot_id in slots.items():
        if tick is not None and later >= tick + cooldown:
            yield "arms_in_different_ticks", {"slot_id": slot_id}
            return


def _wrong_advances(given: Answer, memory: Memory) -> Mistakes:
    if given["to_tick"] in memory.get("booked ticks", ()):
        yield "clock_past_a_due_post", {"to_tick": given["to_tick"] + GRACE + 1}


def _wrong_publications(given: Answer, memory: Memory) -> Mistakes:
    read = memory.get(("exposures", given["post_id"]))
    if read is None:
        return
    rows, half_lives, now = read

    def declare(listed: list[Answer], lives: dict[str, int]) -> dict[str, Any]:
        sources: list[str] = []
        loads = dict.fromkeys(lives, 0)
        for row in listed:
            if row["audience_id"] in lives and row["state"] == "past" and row["at"] <= now:
                left = contribution(row["points"], now - row["at"], lives[row["audience_id"]])
                loads[row["audience_id"]] += left
                sources += [row["publication_id"]] if left else []
        return {"historical_publication_ids": sorted(sources), "audience_loads": loads}

    known = [row for row in memory.get(("forecast", given["post_id"]), []) if row["state"] == "past"]
    yield "exposures_read_before", declare(known, half_lives)
    before = [row for row in rows if "post_id" not in row or row["at"] < now]
    if len(before) < len(rows):
        yield "evidence_before_the_other_arm", declare(before, half_lives)
    repeated = sorted(set(given["historical_publication_ids"]))
    if len(repeated) < len(given["historical_publication_ids"]):
        yield "repeats_removed", {"historical_publication_ids": repeated}
    if len(rows) > 20:
        yield "page_unread", declare(rows[:20], half_lives)
    swapped = {a: 72 - hours for a, hours in half_lives.items()}
    yield "half_life_of_another", {"audience_loads": declare(rows, swapped)["audience_loads"]}
    yield "loads_read_before", {"audience_loads": declare(known, half_lives)["audience_loads"]}


def _wrong_reports(given: Answer, memory: Memory) -> Mistakes:
    measured = memory.get(("measured", given["brief_id"]))
    if measured is None:
        return
    rows, delivered = measured
    excluded = set(memory.get(("excluded", given["brief_id"]), ()))

    def report(credited: dict[str, list[str]]) -> dict[str, Any]:
        counts = {role: len(members) for role, members in credited.items()}
        return {"credited": credited, "winner": winner_of(counts, delivered)}

    def attribute(barred: set[str], sign: int) -> dict[str, list[str]]:
        best: dict[str, tuple[int, int]] = {}
        for place, role in enumerate(("control", "challenger")):
            for row in rows[role]:
                if row["member_id"] not in barred:
                    claim = (sign * row["hour"], place)
                    best[row["member_id"]] = min(best.get(row["member_id"], claim), claim)
        return {
            role: sorted(m for m, (_, at) in best.items() if at == place)
            for place, role in enumerate(("control", "challenger"))
        }

    yield "last_touch", report(attribute(excluded, -1))
    if excluded:
        yield "members_of_parents_kept", report(attribute(set(), 1))
    yield "page_of_conversions_unread", report({**given["credited"], "control": given["credited"]["control"][:-1]})


def _wrong_acknowledgements(given: Answer, memory: Memory) -> Mistakes:
    if len(given["affected_post_ids"]) > 1:
        yield "affected_post_forgotten", {"affected_post_ids": given["affected_post_ids"][:-1]}


def _wrong_reactivations(given: Answer, memory: Memory) -> Mistakes:
    for row in memory.get(("seen", given["audience_id"]), [])[:-1]:
        yield "earlier_publication_as_basis", {"basis_publication_id": row["publication_id"]}


confusions = confusing(
    {
        "create_draft": _wrong_drafts,
        "attach_asset": _wrong_assets,
        "cite_evidence": _wrong_evidence,
        "schedule_post": _wrong_slots,
        "advance_clock": _wrong_advances,
        "publish_post": _wrong_publications,
        "submit_report": _wrong_reports,
        "acknowledge_notice": _wrong_acknowledgements,
        "reactivate_audience": _wrong_reactivations,
    }
)
