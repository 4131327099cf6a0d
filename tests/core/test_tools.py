from __future__ import annotations

from typing import Annotated, Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema
from msgspec import Meta

from skillhorizon.core.errors import Rejected
from skillhorizon.core.tools import Arguments, Id, Items, Tool, page_of, tool, toolbox
from skillhorizon.core.world import World
from tests.toy import ENVIRONMENT

TOOLS = ENVIRONMENT.tools
WORLD = World({})


class Point(Arguments, frozen=True):
    x: int
    y: int = 0


@tool("query")
def measure(
    world: World,
    size: Annotated[int, Meta(ge=1, le=30, description="How large.")],
    point: Point,
    kind: str | None = None,
) -> Any:
    """Measure
    something."""
    return [size, point.x, point.y, kind]


@tool("query", page=3, order="number")
def list_numbers(world: World, below: int = 10) -> Items:
    """List numbers."""
    return Items(range(below), lambda n: n * n, {"below": below})


def code_of(of: Tool, arguments: Any) -> str:
    with pytest.raises(Rejected) as refusal:
        of.run(WORLD, msgspec.json.encode(arguments))
    return refusal.value.code


# -- schemas -------------------------------------------------------------------------------------------------------


def objects(schema: Any) -> list[dict[str, Any]]:
    """Every schema of an object with named fields inside a schema."""
    found = []
    if isinstance(schema, dict):
        if "properties" in schema:
            found.append(schema)
        found += [o for inner in schema.values() for o in objects(inner)]
    elif isinstance(schema, list):
        found += [o for inner in schema for o in objects(inner)]
    return found


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_schema_is_one_closed_object_that_every_client_understands(name):
    schema = TOOLS[name].schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "$ref", "enum", "not"} & schema.keys()
    assert all(o["additionalProperties"] is False for o in objects(schema))
    own = objects(schema)[0]
    assert set(own.get("required", [])) <= set(own["properties"])
    assert TOOLS[name].description.strip()


@pytest.mark.parametrize("name", sorted(TOOLS))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_the_schema_allows_the_decoder_takes(name, data):
    arguments = data.draw(from_schema(TOOLS[name].schema))
    msgspec.json.decode(msgspec.json.encode(arguments), type=TOOLS[name].arguments)


def test_a_schema_lists_descriptions_bounds_defaults_and_what_is_required():
    schema = measure.schema
    assert schema["properties"]["size"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 30,
        "description": "How large.",
    }
    assert schema["required"] == ["size", "point"]
    assert schema["properties"]["kind"]["default"] is None
    assert schema["$defs"]["Point"]["required"] == ["x"]
    assert list_numbers.schema["properties"]["limit"]["maximum"] == 3
    assert list_numbers.schema["required"] == []


# -- arguments -----------------------------------------------------------------------------------------------------


def test_arguments_arrive_in_their_types_with_defaults():
    assert measure.run(WORLD, b'{"size":2,"point":{"x":1}}') == [2, 1, 0, None]
    assert measure.run(WORLD, b'{"point":{"y":4,"x":1},"kind":"k","size":30}') == [30, 1, 4, "k"]


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        [],
        "text",
        {},
        {"size": 2},
        {"size": 2, "point": {"x": 1}, "colour": "red"},
        {"size": 2, "point": {"x": 1, "z": 1}},
        {"size": 0, "point": {"x": 1}},
        {"size": 31, "point": {"x": 1}},
        {"size": 25.0, "point": {"x": 1}},
        {"size": True, "point": {"x": 1}},
        {"size": "2", "point": {"x": 1}},
        {"size": None, "point": {"x": 1}},
        {"size": 2, "point": {"x": 1.0}},
        {"size": 2, "point": {"x": False}},
        {"size": 2, "point": [1, 0]},
        {"size": 2, "point": {"x": 1}, "kind": 5},
    ],
    ids=str,
)
def test_arguments_of_another_form_are_refused(arguments):
    assert code_of(measure, arguments) == "bad_argument"


@pytest.mark.parametrize("encoded", [b"", b"{", b"\xff", b'{"size":2,"point":{"x":1}} x', b"[" * 100_000])
def test_what_is_no_json_is_refused(encoded):
    with pytest.raises(Rejected, match="measure: "):
        measure.run(WORLD, encoded)


# -- pages ---------------------------------------------------------------------------------------------------------


def numbers(**arguments: Any) -> tuple[list[int], str | None]:
    page = list_numbers.run(WORLD, msgspec.json.encode(arguments))
    return page["items"], page["next_cursor"]


def test_pages_follow_each_other_to_the_last_row():
    assert numbers() == ([0, 1, 4], "p3")
    assert numbers(cursor="p3") == ([9, 16, 25], "p6")
    assert numbers(cursor="p9") == ([81], None)
    assert numbers(cursor="p8", limit=2) == ([64, 81], None)
    assert numbers(limit=1, cursor="p3") == ([9], "p4")
    assert numbers(below=3) == ([0, 1, 4], None)
    assert numbers(below=0) == ([], None)


@given(below=st.integers(0, 40), limit=st.integers(1, 3))
def test_walking_the_pages_gives_every_row_once_in_order(below, limit):
    rows: list[int] = []
    cursor: str | None = "p0"
    while cursor:
        items, cursor = numbers(below=below, limit=limit, cursor=cursor)
        assert len(items) <= limit
        rows += items
    assert rows == [n * n for n in range(below)]


@pytest.mark.parametrize(
    "cursor", ["", "3", "p", "p-1", "p3.0", "P3", "p 3", "p999999999", "p11", "xp3", "p3x", 3, [3]]
)
def test_a_cursor_that_no_page_gave_is_refused(cursor):
    assert code_of(list_numbers, {"cursor": cursor}) == "bad_argument"


@pytest.mark.parametrize("limit", [0, -1, 4, 3.0, True, "3", None])
def test_a_limit_outside_the_declared_one_is_refused(limit):
    assert code_of(list_numbers, {"limit": limit}) == "bad_argument"


def test_a_page_says_once_what_holds_for_all_its_rows():
    assert list_numbers.run(WORLD, b"{}")["below"] == 10


def test_rows_outside_the_page_are_not_rendered():
    rendered: list[int] = []
    page_of(Items(range(1000), lambda n: rendered.append(n)), 3, "p6")
    assert rendered == [6, 7, 8]


# -- declarations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "read_only", "charged", "counts"),
    [
        ("query", True, True, False),
        ("business", False, True, True),
        ("script", True, True, True),
        ("skill", True, True, False),
        ("declaration", True, False, False),
    ],
)
def test_the_kind_says_what_is_read_only_charged_and_counted_into_a(kind, read_only, charged, counts):
    """Paper 3.1 and B.1: A counts operations and script runs; only declarations are free."""

    @tool(kind)
    def example(world: World) -> None:
        """Example."""

    assert (example.read_only, example.charged, example.counts_as_business) == (read_only, charged, counts)


def test_the_description_is_the_docstring_in_one_line_with_the_order_of_a_list():
    assert measure.description == "Measure something."
    assert list_numbers.description == "List numbers. Paged, ordered by number."


def test_a_tool_without_a_docstring_or_with_half_a_page_is_no_tool():
    def silent(world: World) -> None: ...

    with pytest.raises(TypeError, match="no docstring"):
        tool("query")(silent)
    for half in ({"page": 5}, {"order": "id"}):
        with pytest.raises(TypeError, match="both"):
            tool("query", **half)


def test_a_toolbox_holds_the_tools_of_its_modules_by_name():
    class Module:
        second = list_numbers
        first = measure
        other = Id

    assert list(toolbox(Module)) == ["list_numbers", "measure"]
