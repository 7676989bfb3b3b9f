"""A wave of evictions while the operator itself is replaced, and what the operator needs for it."""

import time

from controlplane import OPERATOR_NAMESPACE, wait_until
from kind.installation import Installation
from kind.scene import Scene

PODS = 16
RATE = 1.0
IMAGE = "registry.k8s.io/pause:3.10"
RESTARTED = "taintwarden-e2e/restarted-at"
MEMORY_LIMIT_BYTES = 100 * 2**20


def test_an_upgrade_in_the_middle_of_a_wave_loses_nothing(scene: Scene, operator: Installation) -> None:
    """Every pod is evicted once, at the rate of the policy over both replicas."""
    node = scene.workers[0]
    pause = {"image": IMAGE, "command": None}
    for number in range(PODS):
        scene.pod(f"web-{number}", on=node, grace_seconds=1, container=pause)
    scene.wait_running(PODS, seconds=120)
    scene.policy(limits={"evictionsPerSecond": RATE, "burst": 1, "guard": {"minPods": 50}})
    scene.wait_enforcing()
    began = scene.taint(node)
    wait_until(lambda: len(scene.running()) <= PODS - 3, 60, "the wave to begin")
    stamp = {"spec": {"template": {"metadata": {"annotations": {RESTARTED: str(began)}}}}}
    operator.cluster.patch("deployments", "taintwarden", stamp, OPERATOR_NAMESPACE)
    wait_until(lambda: not scene.pods(), 180, "all to be gone")
    assert time.monotonic() - began > (PODS - 1) / RATE * 0.8
    operator.wait_complete()
    events = scene.cluster.items("events", scene.name)
    evicted = [one["regarding"]["name"] for one in events if one["reason"] == "Evicted"]
    assert len(evicted) == len(set(evicted))


def test_replicas_stay_within_their_limits(operator: Installation) -> None:
    """No replica was ended for its memory, none is near its limit, and nothing is throttled: it has no CPU limit."""
    for pod in operator.pods():
        assert operator.metric(pod, "process_resident_memory_bytes") < MEMORY_LIMIT_BYTES
        assert operator.metric(pod, "taintwarden_stale_view") == 0
        [status] = pod["status"]["containerStatuses"]
        assert status.get("lastState", {}).get("terminated", {}).get("reason") != "OOMKilled"
        [container] = pod["spec"]["containers"]
        assert "cpu" not in container["resources"]["limits"]
