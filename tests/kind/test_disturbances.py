"""Disturbances while pods are evicted: late kubelets, a drain."""

import time

from controlplane import Cluster, wait_until
from controlplane.availability import Availability
from kind.installation import Installation, KubeCtl
from kind.nodes import without_kubelet
from kind.scene import LEAVE_SECONDS, SLACK_SECONDS, Scene

SILENT_SECONDS = 10.0
REPLICAS, MINIMUM = 4, 3


def is_leaving(scene: Scene, name: str) -> bool:
    return "deletionTimestamp" in scene.cluster.get("pods", name, scene.name)["metadata"]


def evicted(scene: Scene) -> list[str]:
    """The names of pods, for each time that one was evicted by the operator."""
    events = [one for one in scene.cluster.items("events", scene.name) if one["reason"] == "Evicted"]
    return sorted(
        name for one in events for name in [one["regarding"]["name"]] * (one.get("series") or {}).get("count", 1)
    )


def test_a_kubelet_that_reports_late_delays_no_other_pod(scene: Scene, operator: Installation) -> None:
    """Its pod is evicted once, and is there until the kubelet is back."""
    late, other, *_ = scene.workers
    uids = {name: scene.pod(name, on=node, grace_seconds=1) for name, node in (("late", late), ("web", other))}
    scene.wait_running(2)
    scene.policy()
    scene.wait_enforcing()
    with without_kubelet(late):
        scene.taint(late)
        wait_until(lambda: is_leaving(scene, "late"), LEAVE_SECONDS, "the first pod to be evicted")
        assert scene.wait_gone("web", uids["web"], scene.taint(other)) < 1 + SLACK_SECONDS
        time.sleep(SILENT_SECONDS)  # nothing tells that nothing happens
        assert is_leaving(scene, "late")
    scene.wait_gone("late", uids["late"], time.monotonic())
    wait_until(lambda: evicted(scene) == ["late", "web"], LEAVE_SECONDS, "an Event for each of the two")
    operator.wait_complete()


def test_a_drain_at_the_same_time_keeps_the_budget(scene: Scene, cluster: Cluster, on_cluster: KubeCtl) -> None:
    """Each pod leaves once, by one of the two, and the drain ends without a fault."""
    node, own = scene.workers[0], {"kubernetes.io/hostname": scene.workers[0]}
    scene.workload("replicasets", "web", scene.template(nodeSelector=own, grace_seconds=1), replicas=REPLICAS)
    scene.wait_running(REPLICAS)
    cluster.patch("replicasets", "web", {"spec": {"template": {"spec": {"nodeSelector": None}}}}, scene.name)
    budget = {"minAvailable": MINIMUM, "selector": {"matchLabels": {"app": "web"}}}
    cluster.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": budget}, scene.name)
    scene.policy()
    scene.wait_enforcing()
    here = set(scene.running())
    with Availability(cluster) as availability:
        since = scene.taint(node)
        try:
            on_cluster("drain", node, f"--pod-selector=story={scene.name}", "--timeout=120s")
            running = scene.wait_running(REPLICAS, off=node)
        finally:
            on_cluster("uncordon", node)
        counts = availability.counts(f"{scene.name}/web", since)
        left = availability.departures(f"{scene.name}/web", since)
    assert min(count.available for count in counts) >= MINIMUM
    assert {one.name for one in left} == here
    assert all(one.evicted for one in left)
    assert not here & running.keys()
    assert len(evicted(scene)) == len(set(evicted(scene)))
    assert set(evicted(scene)) <= here
