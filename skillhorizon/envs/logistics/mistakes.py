"""Plausible mistakes around the reference procedure: wrong alternatives of its consequential calls."""

from __future__ import annotations

from collections.abc import Iterator

from skillhorizon.core.policy import Memory, Mistakes, confusing
from skillhorizon.envs.logistics.policy import Row, lowest_permit, permit_holds
from skillhorizon.envs.logistics.rules import connection_min


def _wrong_itineraries(given: Row, memory: Memory) -> Mistakes:
    booking = memory.get(("booking", given["booking_id"]))
    options = memory.get(("options", given["booking_id"]))
    allowance = memory.get(("allowance", given["booking_id"]))
    if booking is None or options is None or allowance is None:
        return
    for place, option in enumerate(options):
        before, there, minima = option["before"], option["there"], option["minima"]
        for service in option["services"]:
            chosen = [*given["service_ids"]]
            chosen[place] = service["service_id"]
            spare = service["departure_min"] - there
            needed = connection_min(minima, before, service["carrier_id"], allowance)
            if service["status"] == "withdrawn":
                if spare >= needed:
                    yield "withdrawn_service_remembered", {"service_ids": chosen}
            elif service["free_seats"] < booking["party"]:
                if spare >= needed:
                    yield "full_service_taken", {"service_ids": chosen}
            elif 0 <= spare < needed:
                if before is None:
                    yield "check_in_time_overlooked", {"service_ids": chosen}
                elif spare >= needed - allowance:
                    yield "allowance_forgotten", {"service_ids": chosen}
                else:
                    yield "connection_too_short", {"service_ids": chosen}


def _wrong_tags(given: Row, memory: Memory) -> Mistakes:
    item, classes = memory.get(("item", given["item_id"])), memory.get("classes", {})
    if item is None or item["commodity"] not in classes or given["handling_class"] == "general":
        return
    itinerary = memory.get(("itinerary", item["booking_id"]))
    base = classes[item["commodity"]][0]
    in_hold = {"handling_class": "general", "carriage": "hold", "itinerary": itinerary}
    if base != given["handling_class"]:
        yield "threshold_overlooked", in_hold if base == "general" else {"handling_class": base}
    else:
        yield "classed_item_sent_to_the_hold", in_hold


def _wrong_manifests(given: Row, memory: Memory) -> Mistakes:
    consignment_id, leg = given["consignment_id"], given["leg"]
    context = memory.get(("movement", consignment_id, leg))
    if context is None:
        return
    pieces, heaviest, permits = context["pieces"], context["heaviest"], context["permits"]
    for service in context["services"]:
        in_time = service["departure_min"] >= context["earliest"]
        right = [lowest_permit(permits, service, class_, kg) for class_, kg in sorted(heaviest.items())]
        if service["status"] == "withdrawn" and in_time and all(right):
            yield "withdrawn_service_remembered", {"service_id": service["service_id"], "permit_ids": right}
        elif service["status"] == "open" and not in_time and all(right) and service["free_kg"] >= given["load_kg"]:
            yield "handoff_too_short", {"service_id": service["service_id"], "permit_ids": right}
        for changes in _unlawful(given, context, service) if in_time else ():
            yield "permit_not_in_force", changes
    for unit_id in given["unit_ids"]:
        rest = [u for u in given["unit_ids"] if u != unit_id]
        changes = {"unit_ids": rest, "load_kg": given["load_kg"] - pieces[unit_id]["kg"]}
        if unit_id in context["given"] and leg == 0:
            yield "promised_unit_left_behind", changes
    for kind, prefix in (("load_without_bags", "itm-"), ("load_without_relays", "unt-")):
        own = context["own"]
        forgotten = sum(pieces[u]["kg"] for u in given["unit_ids"] if u.startswith(prefix) and u not in own)
        if 0 < forgotten < given["load_kg"]:
            yield kind, {"load_kg": given["load_kg"] - forgotten}
    before, older = (memory.get(("manifest", consignment_id, leg - n)) for n in (1, 2))
    if before in given["sources"] and older:
        yield "manifest_of_another_leg", {"sources": [older if s == before else s for s in given["sources"]]}


def _unlawful(given: Row, context: Row, service: Row) -> Iterator[Row]:
    """The same goods under permits of the service's carrier of which one does not hold."""
    cited = []
    lawful = True
    for class_, kg in sorted(context["heaviest"].items()):
        such = [
            p for p in context["permits"] if p["carrier_id"] == service["carrier_id"] and p["handling_class"] == class_
        ]
        bad = [p["permit_id"] for p in such if not permit_holds(p, service, class_, kg)]
        if not such:
            return
        lawful = lawful and not bad
        cited.append(min(bad) if bad else min(p["permit_id"] for p in such))
    mine = service["service_id"] == given["service_id"]
    if not lawful and service["status"] == "open" and (mine or service["free_kg"] >= given["load_kg"]):
        yield {"service_id": service["service_id"], "permit_ids": cited}


def _wrong_seats(given: Row, memory: Memory) -> Mistakes:
    context = memory.get(("reached", given["booking_id"]))
    if context is None:
        return
    reached, cohort_id, hub_id, due = context
    for transfer in memory.get(("transfers", cohort_id, hub_id), []):
        changes = {"transfer_id": transfer["transfer_id"]}
        met = [transfer["departure_min"] >= minute for minute in reached.values()]
        if transfer["arrival_min"] > due:
            yield "transfer_too_late", changes
        elif any(met) and not all(met):
            yield "transfer_fits_one_mate", changes
        elif not any(met):
            yield "transfer_too_early", changes


def _wrong_deliveries(given: Row, memory: Memory) -> Mistakes:
    for place, proof in enumerate(given["proofs"]):
        name = proof["proof"].partition("@")[0]
        if name.startswith("mnf-"):
            _, characters, leg = name.split("-")
            older = memory.get(("manifest", f"cns-{characters}", int(leg) - 1))
            if older:
                proofs = [*given["proofs"]]
                proofs[place] = {**proof, "proof": older}
                yield "manifest_of_another_leg", {"proofs": proofs}
    if len(given["proofs"]) > 1:
        yield "item_forgotten", {"proofs": given["proofs"][:-1]}


def _wrong_freight(given: Row, memory: Memory) -> Mistakes:
    others = [u for u in memory.get(("aboard", given["manifest"]), []) if u not in given["unit_ids"]]
    for unit_id in others:
        if unit_id.startswith("unt-"):
            yield "promised_unit_delivered", {"unit_ids": [*given["unit_ids"], unit_id]}
    if len(given["unit_ids"]) > 1:
        yield "unit_forgotten", {"unit_ids": given["unit_ids"][:-1]}


def _wrong_submissions(given: Row, memory: Memory) -> Mistakes:
    for name in ("itinerary", "seat", "delivery"):
        identity, _, version = given[name].partition("@")
        if int(version) > 1:
            yield f"old_{name}_kept", {name: f"{identity}@{int(version) - 1}"}


confusions = confusing(
    {
        "confirm_itinerary": _wrong_itineraries,
        "check_in_baggage": _wrong_tags,
        "issue_manifest": _wrong_manifests,
        "join_transfer": _wrong_seats,
        "deliver_baggage": _wrong_deliveries,
        "deliver_consignment": _wrong_freight,
        "submit_itinerary": _wrong_submissions,
    }
)
