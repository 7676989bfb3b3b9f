"""The scenarios as data: what is replayed, in which company, and what a real API server does not allow."""

import json
from dataclasses import dataclass
from pathlib import Path

from controlplane import Json

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "scenarios.json"

# Steps that stop or blind the operator: their scenarios cannot share it with others.
DISTURBING = frozenset({"delay_node_watch", "restart_controller", "stop_controller"})

MATCHING = ("M", "N", "V")
"""Scenarios about which toleration matches need no server: tests/engine/test_scenarios.py plays them all."""
LONG = frozenset({"E01", "E02", "I02", "R09"})
"""Long waits for what others show in seconds, or the black box with refusals."""
REFUSED = frozenset({"U10"})
"""The API server refuses the removal of a toleration from a pod: test_scenarios.py shows that."""


@dataclass(frozen=True)
class Scenario:
    """One scenario of the file; times are seconds from the moment its initial objects exist."""

    id: str
    title: str
    nodes: list[Json]
    pods: list[Json]
    steps: list[Json]
    expectations: list[Json]
    raw: Json

    @property
    def lasts_seconds(self) -> float:
        """Until the last expectation is settled."""
        return max(expectation.get("until", expectation.get("not_after", 0)) for expectation in self.expectations)

    @property
    def is_disturbing(self) -> bool:
        return any(step["op"] in DISTURBING for step in self.steps)


def read_document() -> Json:
    return json.loads(VECTORS.read_text())


def replayed() -> dict[str, Scenario]:
    """Those that are replayed on a real API server, by id."""
    left_out = LONG | REFUSED
    return {name: one for name, one in load().items() if name not in left_out and not name.startswith(MATCHING)}


def load() -> dict[str, Scenario]:
    """Every scenario with a timeline, by id."""
    return {
        raw["id"]: Scenario(
            id=raw["id"],
            title=raw["title"],
            nodes=raw["initial"]["nodes"],
            pods=raw["initial"]["pods"],
            steps=raw["steps"],
            expectations=raw["expect"],
            raw=raw,
        )
        for raw in read_document()["scenarios"]
        if "steps" in raw
    }
