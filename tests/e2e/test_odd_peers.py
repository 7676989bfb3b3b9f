"""Peers that are slow or odd, on a real API server: webhooks that hang or refuse, and nodes that stop working twice."""

import contextlib
import datetime
import socket
import time
from collections.abc import Iterator

import pytest

from controlplane import ControlPlane, EvictionDenial, Json, sleep_until, wait_until
from e2e.stories import (
    NO_LIMITS,
    POLICY_LABEL,
    SLACK_SECONDS,
    Scene,
    Stories,
    Story,
    Told,
    calls,
    taint,
    telling,
    toleration,
)

RECLAIMED, RATED, DEAD = "odd-reclaimed", "odd-rated", "odd-dead"
FIRST, SECOND = "odd-first", "odd-second"
FLAG = "flag"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
PER_SECOND = 10
POLICIES = {
    RECLAIMED: {"reclaim": {"deadlineSeconds": 120}},
    RATED: {"limits": {**NO_LIMITS, "evictionsPerSecond": PER_SECOND, "burst": 1}},
    DEAD: {"taints": [{"key": NOT_READY}, {"key": UNREACHABLE}]},
    FIRST: {},
    SECOND: {"nodeSelector": {"matchLabels": {POLICY_LABEL: FIRST}}, "taints": [{"key": FLAG}], "paused": True},
}
STORIES = Stories()
WEBHOOKS = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
HANGS_LABEL = "taintwarden-e2e/hangs"
HANGS_SECONDS = 10
HEARD_SECONDS = 30
OBSERVED_SECONDS = 6
LEAVE_SECONDS = 10
"""Refused pods are tried again for minutes."""
GRACE_SECONDS, SWAPPED_SECONDS = 8, 4


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    denial, folder = EvictionDenial(own_control_plane.client), tmp_path_factory.mktemp("odd")
    denial.install()
    try:
        with telling(request, own_control_plane, folder, STORIES, POLICIES) as told:
            yield told
    finally:
        denial.remove()


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


def test_a_server_that_refuses_is_asked_no_more_often_than_the_rate(
    own_control_plane: ControlPlane, told: Told
) -> None:
    told.wait()
    [scene] = [scene for story, scene in told.scenes.items() if story.play is refused_pods_delay_no_other]
    moments = sorted(
        datetime.datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp()
        for entry in calls(own_control_plane, scene.namespace)
    )
    late = scene.slack(*(one - (time.time() - time.monotonic()) for one in (moments[0], moments[-1])))
    assert 0 < len(moments) <= PER_SECOND * (moments[-1] - moments[0] + late) + 1  # calls arrive less evenly than sent


def others(scene: Scene, number: int, node: str) -> str:
    """Running pods of another namespace on a node, which is removed with the scene. Returns the namespace."""
    namespace = f"{scene.namespace}-others"
    scene.cluster.create_namespace(namespace)
    for index in range(number):
        scene.cluster.create_pod(f"other-{index}", namespace, node, grace_seconds=0)
    return namespace


@STORIES.under(RECLAIMED)
def a_webhook_that_hangs_in_one_namespace_delays_no_other(scene: Scene) -> None:
    node = scene.node()
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # connections wait here, and nothing is ever read
        hanging = hanging_webhook(scene, deaf.getsockname()[1], seconds=1)
        scene.cluster.create(WEBHOOKS, hanging)
        namespace = others(scene, 40, node)
        try:
            scene.cluster.patch("namespaces", namespace, {"metadata": {"labels": {HANGS_LABEL: "true"}}})
            wait_asked(scene, namespace)
            scene.cluster.patch(WEBHOOKS, scene.namespace, hanging_webhook(scene, deaf.getsockname()[1]))
            pods = [scene.pod(f"web-{index}", node, toleration("Exists", "", 2)) for index in range(12)]
            tainted = scene.taint(node, taint("940"))
            for pod in pods:
                scene.leaves(pod, tainted, 2, slack=2 * SLACK_SECONDS)
            assert len(scene.cluster.items("pods", namespace)) == 40, "the webhook is asked, and does not answer"
        finally:
            scene.taint(node)
            scene.cluster.delete(WEBHOOKS, hanging["metadata"]["name"])
            scene.cluster.remove_namespace(namespace)


def wait_asked(scene: Scene, namespace: str) -> None:
    """Wait until the API server asks the webhook about evictions from a namespace: it hears of both a moment later."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other-0", "namespace": namespace}}
    path = f"/api/v1/namespaces/{namespace}/pods/other-0/eviction"
    is_asked = lambda: "hangs.example.com" in scene.cluster.refusal("POST", path, eviction)  # noqa: E731
    wait_until(is_asked, HEARD_SECONDS, "the webhook to be asked")


def hanging_webhook(scene: Scene, port: int, seconds: int = HANGS_SECONDS) -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}
    webhook = {
        "name": "hangs.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {HANGS_LABEL: "true"}},
        "timeoutSeconds": seconds,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"metadata": {"name": scene.namespace}, "webhooks": [webhook]}


@STORIES.under(FIRST)
def a_policy_that_acts_again_makes_no_second_call(scene: Scene) -> None:
    """Two policies want the pod to leave, and a webhook keeps the call of one of them."""
    node = scene.node()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        scene.cluster.create(WEBHOOKS, hanging_webhook(scene, port, seconds=1))
        try:
            scene.cluster.create_pod("other-0", scene.namespace)
            scene.cluster.patch("namespaces", scene.namespace, {"metadata": {"labels": {HANGS_LABEL: "true"}}})
            wait_asked(scene, scene.namespace)
            scene.cluster.patch(WEBHOOKS, scene.namespace, hanging_webhook(scene, port))
            pod = scene.pod("web", node)
            connections = accepted_so_far(deaf)
            tainted = scene.taint(node, taint("940"), taint("x", FLAG))
            deaf.settimeout(HEARD_SECONDS)
            connections.append(deaf.accept()[0])  # the call of the first policy
            scene.cluster.patch("taintevictionpolicies", SECOND, {"spec": {"paused": False}})
            scene.stays(pod, until=tainted + HANGS_SECONDS + OBSERVED_SECONDS)
        finally:
            scene.cluster.delete(WEBHOOKS, scene.namespace)
    for connection in connections:
        connection.close()
    scene.leaves(pod, time.monotonic(), slack=HANGS_SECONDS + LEAVE_SECONDS + SLACK_SECONDS)


def accepted_so_far(server: socket.socket) -> list[socket.socket]:
    """The connections that wait. Nothing is read from them, as if nobody were there."""
    found: list[socket.socket] = []
    server.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        while True:
            found.append(server.accept()[0])
    return found


@STORIES.under(RATED)
def refused_pods_delay_no_other(scene: Scene) -> None:
    node = scene.node()
    for index in range(60):
        scene.cluster.create_pod(f"refused-{index}", scene.namespace, node)
    denial = EvictionDenial(scene.cluster)
    denial.deny(scene.namespace)
    namespace = others(scene, 1, node)
    tainted = scene.taint(node, taint("940"))
    try:
        scene.wait(lambda: not scene.cluster.find("pods", "other-0", namespace), LEAVE_SECONDS, "the other to leave")
        sleep_until(tainted + OBSERVED_SECONDS)
    finally:
        scene.taint(node)
        denial.allow(scene.namespace)
        scene.cluster.remove_namespace(namespace)


@STORIES.under(DEAD)
def a_node_that_is_unreachable_after_it_was_not_ready_has_one_grace(scene: Scene) -> None:
    node = scene.node()
    keys = (NOT_READY, UNREACHABLE)
    pod = scene.pod("web", node, *(toleration("Exists", "", GRACE_SECONDS, key) for key in keys))
    failed = scene.taint(node, dead(NOT_READY))
    time.sleep(SWAPPED_SECONDS)
    scene.taint(node, dead(UNREACHABLE))
    scene.leaves(pod, failed, GRACE_SECONDS)


def dead(key: str) -> Json:
    """A taint as node-lifecycle-controller adds it."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"key": key, "effect": "NoExecute", "timeAdded": now}
