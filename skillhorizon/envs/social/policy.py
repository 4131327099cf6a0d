"""The reference procedure of the campaign desk, and the plausible mistakes around it.

Brief by brief in the order of waves and lanes: bind, derive, draft, register, book, publish, measure, report, deploy.
Briefs, pools and evidence are read once and remembered; reports of parents, slots and exposures always anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from skillhorizon.core.policy import Job, Memory, Steps, ask, ask_all, run_script
from skillhorizon.envs.social.records import LEAD, WINDOW

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
