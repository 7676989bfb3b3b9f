"""The scenarios as data: what is replayed, in which company, and what a real API server does not allow."""

import json
from dataclasses import dataclass
from pathlib import Path

from controlplane import Json

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "scenarios.json"

# Steps that stop or blind the operator: their scenarios cannot share it with others.
DISTURBING = frozenset({"delay_node_watch", "restart_controller", "stop_controller"})
VERSION_OPERATORS = frozenset({"SemverEq", "SemverGt", "SemverLt"})

ZONES = "no timeline: it classifies zones by counts of nodes; replayed by the tests of the zone health limit"
# Each reason is checked in test_scenarios.py.
NOT_REPLAYED = {
    "U10": "the API server refuses the removal of a toleration from a pod",
    "Z02": ZONES,
    "Z06": ZONES,
    "Z07": ZONES,
    "Z08": ZONES,
    "Z09": ZONES,
    "Z10": ZONES,
}


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


def read_document(path: Path = VECTORS) -> Json:
    return json.loads(path.read_text())


def load(path: Path = VECTORS, expectations: str = "expect") -> dict[str, Scenario]:
    """Every scenario with a timeline, by id."""
    return {
        raw["id"]: Scenario(
            id=raw["id"],
            title=raw["title"],
            nodes=raw["initial"]["nodes"],
            pods=raw["initial"]["pods"],
            steps=raw["steps"],
            expectations=raw[expectations],
            raw=raw,
        )
        for raw in read_document(path)["scenarios"]
        if "steps" in raw
    }


def carried(tolerations: list[Json]) -> tuple[list[Json], dict[str, str]]:
    """How a pod carries tolerations on a real server: its own tolerations, and its annotations.

    The server refuses version operators. They go where the product says: into the annotation, beside a native
    `Exists` for the key, which the annotation narrows.
    """
    extended = [toleration for toleration in tolerations if toleration.get("operator") in VERSION_OPERATORS]
    if not extended:
        return tolerations, {}
    native = [
        {"key": toleration["key"], "operator": "Exists", "effect": toleration["effect"]}
        if toleration in extended
        else toleration
        for toleration in tolerations
    ]
    return native, {"taintwarden.io/tolerations": json.dumps(extended)}
