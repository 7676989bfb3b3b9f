"""A control plane with the publisher and what it is allowed, and nodes whose availability it reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controlplane import ControlPlane
from controlplane.target import PUBLISHER
from e2e.conftest import FEATURE_GATES
from monitoring.loop import LABELS, Loop, allow, measured

KEYS = ("sla", "example.com/sla", "mass", "bad", "tested")
"""What the account may publish here."""
RECORD = "published.taintwarden.io/sla"


@contextmanager
def installed(folder: Path) -> Iterator[ControlPlane]:
    """A control plane with what is shipped for operator and publisher."""
    with ControlPlane(folder, feature_gates=FEATURE_GATES) as started:
        started.apply_crds()
        started.apply_manifests()
        started.apply_manifests(PUBLISHER)
        started.start_controller_manager("clusterrole-aggregation-controller")
        allow(started, *KEYS)
        yield started


@contextmanager
def running(control_plane: ControlPlane, names: list[str]) -> Iterator[Loop]:
    """Nodes with a good availability, and what turns it into taints."""
    for name in names:
        control_plane.client.create_node(name, LABELS)
    with measured(control_plane, names) as loop:
        yield loop
