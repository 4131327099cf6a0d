"""``@tool``: one declaration from which the schema, the MCP form, the charging rule and the documentation come.

A tool is a function of the world and its arguments. Its annotations are the argument schema, its docstring is the
description, its kind says what is charged and what counts into A.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import msgspec
from msgspec import Meta

from skillhorizon.core.errors import Rejected
from skillhorizon.core.world import World

Kind = Literal["query", "business", "script", "skill", "declaration"]

Id = Annotated[str, Meta(min_length=1, max_length=40, description="An id.")]
Ref = Annotated[str, Meta(min_length=3, max_length=48, description="A reference id@version.")]
Name = Annotated[str, Meta(min_length=1, max_length=64, description="A name.")]
Text = Annotated[str, Meta(max_length=4000, description="Free text.")]
Int = Annotated[int, Meta(ge=-(2**53) + 1, le=2**53 - 1)]
Cursor = Annotated[str, Meta(pattern="^p[0-9]{1,8}$", description="next_cursor of the page before.")]


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Base of structured arguments nested in a tool's own: unknown fields are refused."""


def refuse_repeats(kind: str, keys: Iterable[Any]) -> None:
    """A key that stands twice in an argument is a bad argument."""
    seen = set()
    for key in keys:
        if key in seen:
            raise Rejected("bad_argument", f"{kind} {key!r} is named twice")
        seen.add(key)


class Items(NamedTuple):
    """What a paged query returns: all rows in their declared total order, and what the page says once.

    ``render`` turns one row of the page into its public form; rows outside the page are never touched.
    """

    rows: Sequence[Any]
    render: Callable[[Any], Any] | None = None
    extra: dict[str, Any] | None = None


class Tool:
    """A declared operation. ``run(world, arguments)`` validates the arguments (JSON) and executes."""

    def __init__(
        self,
        function: Callable[..., Any],
        kind: Kind,
        refusals: Sequence[str],
        page: int | None,
        order: str,
        checks: bool,
    ) -> None:
        self.function = function
        self.name = function.__name__
        self.kind: Kind = kind
        self.refusals = tuple(refusals)
        self.page = page
        self.checks = checks
        self.description = self._describe(function, order)
        hints = get_type_hints(function, include_extras=True)
        fields: list[Any] = []
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            default = parameter.default
            optional = () if default is inspect.Parameter.empty else (default,)
            fields.append((parameter.name, hints[parameter.name], *optional))
        self.own_arguments = len(fields)
        if page:
            limit = Annotated[int, Meta(ge=1, le=page, description=f"Rows a page, at most {page}.")]
            fields += [("limit", limit, page), ("cursor", Cursor | None, None)]
        self.arguments = msgspec.defstruct(
            f"{self.name}_arguments", fields, bases=(Arguments,), frozen=True, forbid_unknown_fields=True
        )
        self._decoder = msgspec.json.Decoder(self.arguments)

    @property
    def read_only(self) -> bool:
        return self.kind != "business"

    @property
    def charged(self) -> bool:
        """Whether an attempt takes one of the allowance: all but declarations (paper B.1)."""
        return self.kind != "declaration"

    @property
    def counts_as_business(self) -> bool:
        """Whether a reference call counts into A: operations and script runs (paper 3.1)."""
        return self.kind in ("business", "script")

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments: an object at the top level, unknown fields refused."""
        (own,), components = msgspec.json.schema_components([self.arguments], ref_template="#/$defs/{name}")
        schema = components.pop(own["$ref"].rpartition("/")[2])
        schema.pop("title", None)
        return {**schema, "$defs": components} if components else schema

    def run(self, world: World, arguments: bytes) -> Any:
        """The result for arguments in JSON; raises ``Rejected`` and leaves the state as it was."""
        try:
            values = msgspec.structs.astuple(self._decoder.decode(arguments))
        except (msgspec.DecodeError, RecursionError) as error:
            raise Rejected("bad_argument", f"{self.name}: {error}") from None
        if not self.page:
            return self.function(world, *values)
        result = self.function(world, *values[: self.own_arguments])
        return page_of(result, values[-2], values[-1])

    @staticmethod
    def _describe(function: Callable[..., Any], order: str) -> str:
        text = re.sub(r"\s+", " ", inspect.getdoc(function) or "").strip()
        if not text:
            raise TypeError(f"tool {function.__name__} has no docstring")
        return f"{text} Paged, ordered by {order}." if order else text


def page_of(items: Items, limit: int, cursor: str | None) -> dict[str, Any]:
    """One page as ``{"items": […], "next_cursor": …}`` and what ``extra`` adds."""
    start = int(cursor[1:]) if cursor else 0
    if start > len(items.rows):
        raise Rejected("bad_argument", f"cursor {cursor} lies behind the last of {len(items.rows)} rows")
    end = start + limit
    rows: Iterable[Any] = items.rows[start:end]
    page: dict[str, Any] = {
        "items": [items.render(row) for row in rows] if items.render else rows,
        "next_cursor": f"p{end}" if end < len(items.rows) else None,
    }
    return {**page, **items.extra} if items.extra else page


def tool(
    kind: Kind, *, refusals: Sequence[str] = (), page: int | None = None, order: str = "", checks: bool = True
) -> Callable[[Callable[..., Any]], Tool]:
    """Declare a function as a tool.

    kind      what it is: ``query``, ``business``, ``script``, ``skill`` or ``declaration``
    refusals  its own refusal codes; with a goal attempted, each is a failed check
    page      default and greatest ``limit`` of a list; the function then returns ``Items``
    order     the total order of that list, for the description
    checks    whether acceptance passes the attempted goal's check
    """
    if bool(page) != bool(order):
        raise TypeError("a paged tool declares both its page size and its order")
    return lambda function: Tool(function, kind, refusals, page, order, checks)


def toolbox(*modules: Any) -> dict[str, Tool]:
    """All tools declared in some modules, by name, sorted."""
    tools = [value for module in modules for value in vars(module).values() if isinstance(value, Tool)]
    return {t.name: t for t in sorted(tools, key=lambda t: t.name)}
