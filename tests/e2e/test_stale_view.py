"""What the operator sees is old, on a real API server: limit `view`.

Outages are in the faults of make chaos, restarts and a server that stands still in tests/blackbox.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controlplane import ControlPlane, Link, Operator, wait_until
from controlplane.client import resource_path
from e2e.pod_watch import PodWatch
from e2e.stories import (
    SLACK_SECONDS,
    Scene,
    policies,
    taint,
    toleration,
)

SILENT_SECONDS = 15  # longer than a watch may be silent before a node is read
FRESH = "fresh"


@pytest.fixture(scope="class")
def scene(own_control_plane: ControlPlane, link: Link, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    cluster, folder = own_control_plane.client, tmp_path_factory.mktemp("fresh")
    kubeconfig = own_control_plane.operator_kubeconfig(link.url)
    with (
        policies(cluster, {FRESH: {}}),
        Operator(kubeconfig, folder) as operator,
        PodWatch(cluster, "fresh") as watch,
    ):
        operator.wait_leading()
        scene = Scene(cluster, operator, watch, "fresh", FRESH)
        cluster.create_namespace(scene.namespace)
        yield scene
        scene.clear()


@pytest.fixture(scope="class")
def link(own_control_plane: ControlPlane) -> Link:
    return own_control_plane.link()


@contextmanager
def held(link: Link) -> Iterator[None]:
    """Watches of nodes lag; reads of nodes and all other watches stay fast."""
    link.conditions.held_path = resource_path("nodes")
    yield
    link.conditions.held_path = ""


class TestWhatItSeesIsOld:
    """A pod bound just after a taint went must not be judged by the taint: upstream evicts it."""

    @staticmethod
    def knows(scene: Scene, link: Link, *nodes: str) -> bool:
        """Whether the history that the operator writes is written, and has come back in the watch."""
        found = [scene.cluster.get("nodes", node)["metadata"] for node in nodes]
        return all(
            "taintwarden.io/taint-history" in node.get("annotations", {})
            and link.has_delivered(resource_path("nodes"), node["resourceVersion"])
            for node in found
        )

    def test_a_pod_is_judged_by_the_node_it_was_bound_to(self, scene: Scene, link: Link) -> None:
        cleaned, tainted = scene.node(taint("940"), name="cleaned"), scene.node(taint("940"), name="tainted")
        began = time.monotonic()
        before = [scene.pod(f"before-{node}", node) for node in (cleaned, tainted)]
        for pod in before:
            scene.leaves(pod, began)
        wait_until(lambda: self.knows(scene, link, cleaned, tainted), 10, "the operator to see what it wrote")
        with held(link):
            scene.taint(cleaned)
            bound = time.monotonic()
            spared, leaves = scene.pod("spared", cleaned), scene.pod("leaves", tainted)
            scene.leaves(leaves, bound)
            scene.stays(spared, until=bound + 5)
        scene.stays(spared, until=time.monotonic() + SLACK_SECONDS)

    def test_a_value_that_recovers_while_the_watch_is_silent_spares_its_pods(self, scene: Scene, link: Link) -> None:
        """A connection may be open and dead: a node of which nothing is heard is read before pods of it are evicted."""
        node = scene.node(taint("980"), name="silent")
        pod = scene.pod("recovered", node, toleration("Gt", "950", SILENT_SECONDS))
        fell = scene.taint(node, taint("940"))
        scene.event(pod, "EvictionScheduled")
        with held(link):
            scene.taint(node, taint("980"))
            scene.stays(pod, until=fell + SILENT_SECONDS + SLACK_SECONDS)
        scene.event(pod, "EvictionCancelled")
