"""Queries of the field desk. Each list has a declared total order."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import asdict

from skillhorizon.core.errors import Rejected
from skillhorizon.core.tools import Id, Items, Name, tool
from skillhorizon.core.world import CURRENT
from skillhorizon.envs.field.records import Batch, Crew, Device, ServiceStatus, Trunk
from skillhorizon.envs.field.world import DeviceStatus, FieldWorld

ServiceId = Annotated[Id, Meta(description="A service's id.")]
DeviceId = Annotated[Id, Meta(description="A device's id.")]
DepotId = Annotated[Id, Meta(description="A depot's id.")]


# -- queries ---------------------------------------------------------------------------------------------------------


def _brief(world: FieldWorld, service_id: str) -> dict[str, Any]:
    service = world.service(service_id)
    return {
        "service_id": service_id,
        "depot_id": service.depot_id,
        "feed_ids": [f.parent_id for f in service.feeds],
        "device_count": len(service.device_ids),
        "status": world.by_service.status[service_id],
    }


@tool("query", page=20, order="service id")
def list_services(
    world: FieldWorld, depot_id: Id | None = None, feed_id: Id | None = None, status: ServiceStatus | None = None
) -> Items:
    """List services: depot, feeds, number of devices, status. `feed_id` keeps those fed by a service or supply."""
    if depot_id is not None:
        world.get("depots", depot_id)
    if feed_id is None:
        if status is None:
            found = world.services if depot_id is None else world.services_of.get(depot_id, [])
        else:
            found = world.by_service.ids(status, depot_id or "")
        return Items(found, lambda service_id: _brief(world, service_id))
    _holder(world, feed_id)
    table, statuses = world.tables["services"], world.by_service.status
    found = [
        s
        for s in world.children.get(feed_id, ())
        if depot_id in (None, table[s].depot_id) and status in (None, statuses[s])
    ]
    return Items(found, lambda service_id: _brief(world, service_id))


@tool("query")
def get_service(world: FieldWorld, service_id: ServiceId) -> dict[str, Any]:
    """Read a service: feeds, flows, limits, trunks, windows, boundary valves, status, certificate, what is open."""
    service = world.service(service_id)
    certificate, flow = world.certificate(service_id), world.newest_of("flow_reservation", service_id)
    live = world.live.get(service_id)
    return {
        **asdict(service),
        "status": world.by_service.status[service_id],
        "certificate": certificate and certificate.ref,
        **({"flow_reservation": flow.ref} if flow else {}),
        **({live.kind: live.ref} if live else {}),
    }


@tool("query", page=20, order="device id")
def list_devices(world: FieldWorld, service_id: Id | None = None, status: DeviceStatus | None = None) -> Items:
    """List devices: service, class, model, status. Of one service, in one status, or all."""
    statuses = world.by_device.status
    if service_id is not None:
        found = [d for d in sorted(world.service(service_id).device_ids) if status in (None, statuses[d])]
    else:
        found = world.devices if status is None else world.by_device.ids(status)

    def render(device_id: str) -> dict[str, Any]:
        d = world.device(device_id)
        return {
            "device_id": device_id,
            "service_id": d.service_id,
            "class": d.class_,
            "model": d.model,
            "status": statuses[device_id],
        }

    return Items(found, render)


@tool("query")
def get_device(world: FieldWorld, device_id: DeviceId) -> dict[str, Any]:
    """Read a device: nameplate, location, status, inspections with their readings, log, what was made for it."""
    device = world.device(device_id)
    made = {kind: world.newest_of(kind, device_id) for kind in ("diagnosis", "repair", "test")}
    fields = {name: getattr(device, name) for name in Device.__struct_fields__ if name != "class_"}
    return {
        **fields,
        "class": device.class_,
        "status": world.by_device.status[device_id],
        **{kind: artifact.ref for kind, artifact in made.items() if artifact is not None},
    }


@tool("query", page=20, order="window id")
def list_windows(world: FieldWorld, kind: Literal["planned", "contingency"] | None = None) -> Items:
    """List the maintenance windows with their first and last slot."""
    return Items([w for w in world.windows if kind in (None, w.kind)])


@tool("query", page=20, order="crew id")
def list_crews(world: FieldWorld, depot_id: DepotId, window_id: Id) -> Items:
    """List the crews of a depot: qualifications with the last slot of their validity, slots free in a window."""
    world.get("depots", depot_id)
    window = world.window(window_id)

    def render(crew_id: str) -> dict[str, Any]:
        crew: Crew = world.tables["crews"][crew_id]
        return {
            "crew_id": crew_id,
            "qualifications": crew.qualifications,
            "free_slots": world.free_slots(crew, window),
        }

    return Items(world.crews_of.get(depot_id, ()), render)


@tool("query", page=20, order="part id")
def list_parts(world: FieldWorld, model: Name) -> Items:
    """List the spare parts of a model: component, and the hardware revisions that each fits."""
    if model not in world.parts_of:
        raise Rejected("unknown_id", f"no model {model!r}", id=model)
    return Items(world.parts_of[model], world.tables["parts"].__getitem__)


@tool("query", page=20, order="batch id")
def list_stock(world: FieldWorld, depot_id: DepotId, part_id: Id) -> Items:
    """List the batches of a part in a depot and in the central store: units on hand and held, last slot of use."""
    world.get("depots", depot_id)
    world.get("parts", part_id)
    depots = dict.fromkeys((depot_id, world.central))
    found = sorted(b for depot in depots for b in world.batches_of.get((depot, part_id), ()))

    def render(batch_id: str) -> dict[str, Any]:
        batch: Batch = world.tables["batches"][batch_id]
        spent = world.spent.get(batch_id, 0)
        taken = batch.on_hand - world.ledgers["spares"].free(batch_id)
        return {
            "batch_id": batch_id,
            "depot_id": batch.depot_id,
            "on_hand": batch.on_hand - spent,
            "held": taken - spent,
            "use_by_slot": batch.use_by_slot,
            "status": batch.status,
        }

    return Items(found, render)


@tool("query", page=20, order="trunk id")
def list_trunks(world: FieldWorld) -> Items:
    """List the trunks: capacity, base load, flow reserved."""

    def render(trunk: Trunk) -> dict[str, Any]:
        reserved = trunk.capacity_lpm - trunk.base_lpm - world.ledgers["flow"].free(trunk.trunk_id)
        return {**asdict(trunk), "reserved_lpm": reserved}

    return Items(world.trunks, render)


@tool("query")
def get_record(
    world: FieldWorld, holder_id: Id, version: Annotated[int, Meta(ge=1, le=100_000)] | None = None
) -> dict[str, Any]:
    """Read the record of a supply point or service: outlet pressure, flow, contracted flow, in service from."""
    _holder(world, holder_id)
    record = world.certificate(holder_id)
    if record is not None and version is not None:
        record = world.artifacts.get(f"{record.id}@{version}")
    if record is None:
        raise Rejected("unknown_id", f"{holder_id} holds no such record", id=holder_id)
    return record.public()


@tool("query", page=20, order="service id")
def list_certificates(world: FieldWorld, status: Literal["current", "stale", "withdrawn"] | None = None) -> Items:
    """List the newest record of each service that holds one: reference, status, in service from."""
    if status is None:
        found = world.certified
    else:
        found = world.by_service.ids("commissioned" if status == CURRENT else status)

    def render(service_id: str) -> dict[str, Any]:
        record = world.certificate(service_id)
        assert record is not None, "only services that hold a record are listed"
        return {
            "service_id": service_id,
            "record": record.ref,
            "status": record.status,
            "in_service_from": record.content.in_service_from,
        }

    return Items(found, render)


def _holder(world: FieldWorld, holder_id: str) -> None:
    if holder_id not in world.tables["supplies"]:
        world.service(holder_id)
