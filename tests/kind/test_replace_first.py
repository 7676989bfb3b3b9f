"""A client of a one-replica Deployment notices nothing while its node is emptied with ``replaceFirst``."""

import time
from collections.abc import Iterator

import pytest

from controlplane import OPERATOR_NAMESPACE, Cluster, Json, wait_until
from controlplane.target import OPERATOR_SERVICE_ACCOUNT
from kind.installation import Installation
from kind.scene import LEAVE_SECONDS, RUN_SECONDS, Scene

ROLE, RESTARTED_AT = "taintwarden-replace", "kubectl.kubernetes.io/restartedAt"
PORT = 8080
# The kubelet sends SIGTERM while some nodes still send requests here: a server that cares answers these for a while. It
# needs longer to start, so that a node without a replacement is noticed.
SERVER = f"""\
import http.server, signal, sys, threading, time
time.sleep(8)
server = http.server.ThreadingHTTPServer(("", {PORT}), http.server.BaseHTTPRequestHandler)
http.server.BaseHTTPRequestHandler.do_GET = lambda self: (self.send_response(200), self.end_headers())
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=lambda: (time.sleep(3), server.shutdown())).start())
server.serve_forever()
"""
CLIENT = """\
import sys, time, urllib.request
while True:
    try:
        urllib.request.urlopen(sys.argv[1], timeout=2).close()
        print("served", flush=True)
    except OSError as error:
        print("failed", error, flush=True)
    time.sleep(0.05)
"""
READY = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}


@pytest.fixture(scope="module")
def may_ask(cluster: Cluster) -> Iterator[None]:
    """The right that the component replace-first gives."""
    account = {"kind": "ServiceAccount", "name": OPERATOR_SERVICE_ACCOUNT, "namespace": OPERATOR_NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE}
    cluster.create("clusterrolebindings", {"metadata": {"name": ROLE}, "roleRef": role, "subjects": [account]})
    yield
    cluster.delete("clusterrolebindings", ROLE)


def serve(scene: Scene, node: str) -> None:
    """Start Deployment web on a node, behind a Service with a client."""
    template = scene.template(container={"command": ["python3", "-c", SERVER], "readinessProbe": READY})
    for other in scene.workers:
        scene.cluster.patch("nodes", other, {"spec": {"unschedulable": other != node}})
    scene.workload("deployments", "web", template, replicas=1)
    scene.wait_running()
    for other in scene.workers:
        scene.cluster.patch("nodes", other, {"spec": {"unschedulable": False}})
    port = {"port": PORT, "targetPort": PORT}
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [port]}}
    address = scene.cluster.create("v1/services", service, scene.name)["spec"]["clusterIP"]
    calm = next(one for one in scene.workers if one != node)
    command = ["python3", "-c", CLIENT, f"http://{address}:{PORT}"]
    client = scene.template(on=calm, container={"command": command})
    client["metadata"] |= {"name": "client", "labels": {}}
    scene.cluster.create("pods", client, scene.name)
    wait_until(lambda: "served" in client_log(scene), RUN_SECONDS, "the client to be served")


def client_log(scene: Scene) -> str:
    """Output of the client so far."""
    path = f"/api/v1/namespaces/{scene.name}/pods/client/log"
    pod = scene.cluster.get("pods", "client", scene.name)
    return str(scene.cluster.request("GET", path)) if pod["status"].get("phase") == "Running" else ""


def empty(scene: Scene, eviction: Json, *, budget: bool = False) -> tuple[int, int]:
    """Empty the node of the Deployment; returns how many requests were served and failed meanwhile."""
    node = scene.workers[0]
    serve(scene, node)
    if budget:
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        scene.cluster.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": spec}, scene.name)
    scene.policy(eviction=eviction)
    scene.wait_enforcing()
    before = client_log(scene)
    scene.taint(node)
    scene.wait_running(off=node)
    wait_until(lambda: node not in nodes(scene), LEAVE_SECONDS, f"{node} to be empty")
    time.sleep(1)  # the last requests
    lines = client_log(scene)[len(before) :].splitlines()
    return sum(one == "served" for one in lines), sum(one.startswith("failed") for one in lines)


def nodes(scene: Scene) -> set[str]:
    return {pod["spec"].get("nodeName", "") for pod in scene.pods()}


@pytest.mark.parametrize("budget", [False, True], ids=["alone", "with-a-budget-that-never-allows"])
def test_no_request_fails_while_a_node_is_emptied_with_a_replacement_first(
    scene: Scene, may_ask: None, budget: bool
) -> None:
    served, failed = empty(scene, {"replaceFirst": {"timeoutSeconds": 120}}, budget=budget)
    assert (failed, served > 20) == (0, True)


def test_requests_fail_while_a_node_is_emptied_without_it(scene: Scene, may_ask: None) -> None:
    _, failed = empty(scene, {})
    assert failed > 0


def start_alone(scene: Scene, timeout: int) -> tuple[str, str]:
    """Start Deployment web, whose pods may run on one node only. Returns its pod's name and UID."""
    on = {"kubernetes.io/hostname": scene.workers[0]}
    scene.workload("deployments", "web", scene.template(nodeSelector=on), replicas=1)
    [name] = scene.wait_running()
    scene.policy(eviction={"replaceFirst": {"timeoutSeconds": timeout}})
    scene.wait_enforcing()
    return name, scene.cluster.get("pods", name, scene.name)["metadata"]["uid"]


def test_a_new_leader_asks_no_second_time_and_evicts_the_pod_when_its_time_is_over(scene: Scene, may_ask: None) -> None:
    name, uid = start_alone(scene, timeout=60)
    since = scene.taint(scene.workers[0])
    wait_until(lambda: restarts(scene), LEAVE_SECONDS, "the request")
    operator = Installation(scene.cluster)
    operator.crash(operator.leader())
    took = scene.wait_gone(name, uid, since, 60 + 2 * LEAVE_SECONDS)
    assert (took > 58, len(restarts(scene))) == (True, 1)


def test_a_quota_that_forbids_the_replacement_has_the_pod_evicted_after_the_timeout(
    scene: Scene, may_ask: None
) -> None:
    name, uid = start_alone(scene, timeout=20)
    quota = {"metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}}}
    scene.cluster.create("v1/resourcequotas", quota, scene.name)
    wait_until(lambda: scene.cluster.get("v1/resourcequotas", "one", scene.name)["status"].get("used"), 30, "a count")
    since = scene.taint(scene.workers[0])
    took = scene.wait_gone(name, uid, since, 20 + LEAVE_SECONDS)
    assert (took > 18, len(restarts(scene))) == (True, 1)


def restarts(scene: Scene) -> list[str]:
    """The values that the annotation had, by the ReplicaSets."""
    found = [one["spec"]["template"]["metadata"] for one in scene.cluster.items("replicasets", scene.name)]
    return [one["annotations"][RESTARTED_AT] for one in found if RESTARTED_AT in one.get("annotations", {})]
