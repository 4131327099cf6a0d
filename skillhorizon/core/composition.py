"""Tasks as graphs of skill-grounded modules: a networkx DAG, and its measures (paper 3.1).

A node is a module (its key names it), with attributes ``kind``, ``stage`` (its place in the long order of work) and
``subject``. An edge says that a later module needs something of an earlier one; its ``kind`` says what: ``validity``,
``quantity``, ``content`` or ``provenance``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
import networkx as nx

from skillhorizon.core.serial import digest

NeedKind = Literal["validity", "quantity", "content", "provenance"]


class Need(msgspec.Struct, frozen=True):
    """What a module needs of another one."""

    of: str
    kind: NeedKind


class Module(msgspec.Struct, frozen=True):
    """A unit of work: ``kind`` (what is done), ``subject`` (to which object), ``stage`` (when, at the earliest)."""

    key: str
    kind: str
    stage: int
    subject: str
    needs: tuple[Need, ...] = ()


class TaskGraph(nx.DiGraph):
    """The modules of one task and their needs."""

    @classmethod
    def of(cls, modules: Iterable[Module]) -> TaskGraph:
        """Refuses a need of an unknown module and a cycle (``ValueError``)."""
        graph = cls()
        listed = list(modules)
        for module in listed:
            graph.add_node(module.key, kind=module.kind, stage=module.stage, subject=module.subject)
        if graph.number_of_nodes() != len(listed):
            raise ValueError("two modules have one key")
        for module in listed:
            for need in module.needs:
                if need.of not in graph:
                    raise ValueError(f"{module.key} needs {need.of}, which does not exist")
                if graph.has_edge(need.of, module.key):
                    raise ValueError(f"{module.key} needs {need.of} twice; an edge has one kind")
                graph.add_edge(need.of, module.key, kind=need.kind)
        if not nx.is_directed_acyclic_graph(graph):
            raise ValueError("the modules need each other in a circle")
        return graph

    @property
    def depth(self) -> int:
        """Modules on the longest chain of needs."""
        return nx.dag_longest_path_length(self, weight="none", default_weight=1) + 1 if len(self) else 0

    @property
    def joins(self) -> int:
        """Modules that need two or more others."""
        return sum(degree >= 2 for _, degree in self.in_degree())

    @property
    def reuse_spans(self) -> list[int]:
        """For each need that reaches back over at least one whole stage, how many stages it spans; descending."""
        stages = nx.get_node_attributes(self, "stage")
        return sorted((s for u, v in self.edges if (s := stages[v] - stages[u]) > 1), reverse=True)

    @property
    def measures(self) -> dict[str, Any]:
        spans = self.reuse_spans
        return {
            "modules": len(self),
            "needs": self.number_of_edges(),
            "depth": self.depth,
            "joins": self.joins,
            "reuse_needs": len(spans),
            "longest_reuse": spans[0] if spans else 0,
        }

    def canonical_digest(self) -> str:
        nodes = sorted((key, sorted(data.items())) for key, data in self.nodes(data=True))
        edges = sorted((u, v, data["kind"]) for u, v, data in self.edges(data=True))
        return digest([nodes, edges])
