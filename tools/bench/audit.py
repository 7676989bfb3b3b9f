"""Times of evictions from the API server's audit log. A watch would cost the server as much as a subject does."""

from datetime import datetime

from bench.cluster import ControlPlane
from bench.population import Json


def removals(control_plane: ControlPlane) -> list[float]:
    """Return the wall clock times of all successful evictions and deletions, in order."""
    return sorted(moment(entry) for entry in control_plane.audit() if is_removal(entry) and code(entry) < 300)


def refusals(control_plane: ControlPlane) -> int:
    """Return the number of refused evictions and deletions."""
    return sum(is_removal(entry) and code(entry) >= 300 for entry in control_plane.audit())


def is_removal(entry: Json) -> bool:
    reference = entry["objectRef"]
    return reference["resource"] == "pods" and (entry["verb"] == "delete" or reference.get("subresource") == "eviction")


def code(entry: Json) -> int:
    return entry["responseStatus"]["code"]


def moment(entry: Json) -> float:
    return datetime.fromisoformat(entry["stageTimestamp"]).timestamp()
