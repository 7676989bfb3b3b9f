"""When pods went, from the API server's audit log: watching them would cost the server as much as a subject does."""

from datetime import datetime

from bench.cluster import ControlPlane
from bench.population import Json


def removals(control_plane: ControlPlane) -> list[float]:
    """The wall clock time of every eviction or deletion that was granted, in order."""
    return sorted(moment(entry) for entry in control_plane.audit() if is_removal(entry) and code(entry) < 300)


def refusals(control_plane: ControlPlane) -> int:
    """How many evictions and deletions were refused."""
    return sum(is_removal(entry) and code(entry) >= 300 for entry in control_plane.audit())


def is_removal(entry: Json) -> bool:
    reference = entry["objectRef"]
    return reference["resource"] == "pods" and (entry["verb"] == "delete" or reference.get("subresource") == "eviction")


def code(entry: Json) -> int:
    return entry["responseStatus"]["code"]


def moment(entry: Json) -> float:
    return datetime.fromisoformat(entry["stageTimestamp"]).timestamp()
