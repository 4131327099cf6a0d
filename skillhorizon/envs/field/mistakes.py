"""Plausible mistakes around the reference procedure: wrong alternatives of its consequential calls."""

from __future__ import annotations

from skillhorizon.core.policy import Memory, Mistakes, confusing
from skillhorizon.envs.field.policy import (
    Row,
    flagged_channels,
    permit_needed,
    signature_in,
    usable_for,
    valid_codes,
    valves_in_order,
)
from skillhorizon.envs.field.rules import loss_kpa, taken_lpm


def _wrong_diagnoses(given: Row, memory: Memory) -> Mistakes:
    """Only where the wrong code names another component: the same component would be the right repair."""
    device, table = memory.get(("device", given["device_id"])), memory.get("references/fault-signatures.csv", [])
    right = next((s for s in table if s["fault_code"] == given["fault_code"]), None)
    if device is None or right is None:
        return
    *older, latest = device["inspections"]
    out = [r for r in latest["readings"] if not r["low"] <= r["value"] <= r["high"]]
    overdue = [r["channel"] for r in out if r["calibration"] == "overdue"]
    seen = [("older_round_read", flagged_channels(inspection)) for inspection in older]
    seen += [("overdue_channel_counted", {kept, o}) for o in overdue for kept in given["channels"]]
    for kind, channels in seen:
        signature = signature_in(table, device["class"], channels)
        if signature is not None and signature["component"] != right["component"]:
            yield kind, {"fault_code": signature["fault_code"], "channels": sorted(channels)}


def _wrong_plans(given: Row, memory: Memory) -> Mistakes:
    service = memory.get(("service", given["service_id"]))
    windows = {w["window_id"]: w for w in memory.get("windows", [])}
    if service is None or given["window_id"] not in windows:
        return
    start = windows[given["window_id"]]["start_slot"]
    offered = [windows[w] for w in service["window_ids"] if w in windows]
    for window in offered:
        if given["kind"] == "planned" and window["start_slot"] < start:
            yield "window_too_early", {"window_id": window["window_id"]}
    if given["kind"] == "corrective":
        devices = [memory.get(("device", d)) for d in service["device_ids"]]
        if None not in devices:
            yield (
                "whole_service_in_scope",
                {"device_ids": service["device_ids"], "permit_class": permit_needed(devices)},
            )
        yield "dependents_forgotten", {"dependents": []}
        yield "planned_window_for_corrective_work", {"window_id": offered[0]["window_id"]}
    yield from _superseded_parents(given["parent_records"], memory, service)
    permits = ("cold_work", "electrical", "confined_space")
    yield "weaker_permit", {"permit_class": permits[max(0, permits.index(given["permit_class"]) - 1)]}


def _superseded_parents(cited: list[str], memory: Memory, service: Row) -> Mistakes:
    for feed in service["feeds"]:
        newest, before = memory.get(("record", feed["parent_id"])), memory.get(("superseded", feed["parent_id"]))
        if newest is not None and before is not None:
            refs = [before["ref"] if ref == newest["ref"] else ref for ref in cited]
            yield "superseded_parent_cited", {"parent_records": refs}


def _wrong_closings(given: Row, memory: Memory) -> Mistakes:
    yield "order_not_reversed", {"valve_order": given["valve_order"][::-1]}


def _wrong_openings(given: Row, memory: Memory) -> Mistakes:
    yield "order_reversed", {"valve_order": given["valve_order"][::-1]}
    service = memory.get(("service", memory.get(("plan", given["plan"]))))
    if service is not None:
        every = [{**v, "normal": "open"} for v in service["boundary"]]
        yield "closed_valve_operated", {"valve_order": valves_in_order({"boundary": every})}


def _wrong_crews(given: Row, memory: Memory) -> Mistakes:
    """A lapsed crew. One with more skills than needed is accepted and costs only where skills run out."""
    device = memory.get(("device", given["device_id"]))
    service = memory.get(("service", device["service_id"])) if device is not None else None
    for window in memory.get("windows", []):
        key = ("crews", service["depot_id"] if service is not None else "", window["window_id"])
        if not window["start_slot"] <= given["slot"] <= window["end_slot"]:
            continue
        for crew in memory.get(key, []):
            for slot in crew["free_slots"]:
                if not valid_codes(crew, slot):
                    yield "lapsed_crew", {"crew_id": crew["crew_id"], "slot": slot}


def _wrong_spares(given: Row, memory: Memory) -> Mistakes:
    """Batches in stocks already read: out of use, or of a part for other revisions."""
    device = memory.get(("device", given["device_id"]))
    service = memory.get(("service", device["service_id"])) if device is not None else None
    if device is None or service is None:
        return
    parts = {p["part_id"]: p for p in memory.get(("parts", device["model"]), [])}
    stocks = {p: memory.get(("stock", service["depot_id"], p), []) for p in parts}
    right = next((p for p, rows in stocks.items() for b in rows if b["batch_id"] == given["batch_id"]), None)
    if right is None:
        return
    chosen = next(b for b in stocks[right] if b["batch_id"] == given["batch_id"])
    for batch in stocks[right]:
        earlier = batch["depot_id"] == chosen["depot_id"] and batch["use_by_slot"] < chosen["use_by_slot"]
        if batch["status"] == "quarantine":
            yield "quarantined_batch", {"batch_id": batch["batch_id"]}
        elif earlier and batch["on_hand"] > batch["held"]:
            yield "expired_batch", {"batch_id": batch["batch_id"]}
    for part_id, rows in stocks.items():
        if part_id != right and parts[part_id]["component"] == parts[right]["component"]:
            for batch in rows:
                if usable_for(batch, chosen["use_by_slot"]):
                    yield "part_of_other_revision", {"batch_id": batch["batch_id"]}


def _wrong_tests(given: Row, memory: Memory) -> Mistakes:
    device = memory.get(("device", given["device_id"]))
    yield "a_step_too_low", {"test_kpa": given["test_kpa"] - 5}
    if device is not None:
        yield "factor_forgotten", {"test_kpa": device["design_kpa"]}
        factor = 100 * given["test_kpa"] // device["design_kpa"]
        yield "nameplate_pressure", {"test_kpa": 5 * -(-device["rated_kpa"] * factor // 500)}


def _wrong_flows(given: Row, memory: Memory) -> Mistakes:
    amount = given["amount_lpm"]
    yield "makeup_padded", {"amount_lpm": amount + 5}
    yield "makeup_rounded_down", {"amount_lpm": amount - 5}
    yield "makeup_not_rounded", {"amount_lpm": amount - 2}
    service = memory.get(("service", given["service_id"]))
    if service is not None:
        full = sum(feed["share_lpm"] for feed in service["feeds"])
        uncut = 5 * -(-(service["own_lpm"] + service["contracted_lpm"] - full) // 5)
        if uncut < amount:
            yield "full_share_under_curtailment", {"amount_lpm": uncut}


def _wrong_commissionings(given: Row, memory: Memory) -> Mistakes:
    service = memory.get(("service", given["service_id"]))
    if service is None:
        return
    yield from _superseded_parents(given["parent_records"], memory, service)
    pressures = []
    for feed in service["feeds"]:
        offer = memory.get(("superseded", feed["parent_id"])) or memory.get(("record", feed["parent_id"]))
        if offer is None:
            return
        content = offer["content"]
        taken = taken_lpm(feed["share_lpm"], content["flow_lpm"], content["contracted_lpm"])
        pressures.append(content["outlet_kpa"] - loss_kpa(feed["loss_coeff"], taken))
    yield "superseded_pressure", {"inlet_kpa": min(pressures)}
    limits = service["limits"]
    yield "setpoint_too_high", {"setpoint_kpa": given["setpoint_kpa"] + limits["step_kpa"]}
    if given["setpoint_kpa"] - limits["step_kpa"] < limits["min_outlet_kpa"]:
        yield "setpoint_too_low", {"setpoint_kpa": given["setpoint_kpa"] - limits["step_kpa"]}
    yield "test_left_out", {"tests": given["tests"][:-1]}


def _wrong_returns(given: Row, memory: Memory) -> Mistakes:
    if given["units"]:
        yield "repair_not_counted", {"crew_hours": given["crew_hours"] - 4}
        *rest, last = given["units"]
        kept = [{**last, "quantity": last["quantity"] - 1}] if last["quantity"] > 1 else []
        yield "unit_not_counted", {"units": [*rest, *kept]}


def _wrong_acceptances(given: Row, memory: Memory) -> Mistakes:
    yield "depot_forgotten", {"returns": given["returns"][:-1]}


confusions = confusing(
    {
        "submit_diagnosis": _wrong_diagnoses,
        "plan_isolation": _wrong_plans,
        "open_isolation": _wrong_openings,
        "close_isolation": _wrong_closings,
        "reserve_crew": _wrong_crews,
        "reserve_spare": _wrong_spares,
        "test_device": _wrong_tests,
        "reserve_flow": _wrong_flows,
        "commission_service": _wrong_commissionings,
        "post_resource_return": _wrong_returns,
        "request_acceptance": _wrong_acceptances,
    }
)
