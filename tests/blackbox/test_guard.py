"""A wave that is too large waits for a person, or for its values to be repaired."""

import time

from blackbox.box import ACT, FINE, LEAVES, NO_LIMIT, Box
from controlplane import sleep_until
from e2e.stories import PodRef, taint

GOOD, ZERO = taint("980"), taint("0")
ALLOWED, ON_A_NODE, FEW, MANY = 5, 6, 14, 60
SETTLE_SECONDS, OBSERVED_SECONDS, SHORTEST_WINDOW = 2, 3, 60
GUARDED = NO_LIMIT | {"guard": {"minPods": ALLOWED, "maxPercent": 1, "settleSeconds": SETTLE_SECONDS}}
ABOVE = {"taintwarden.io/tolerations": '[{"key": "sla", "operator": "Gt", "value": "950"}]'}


def crowded(box: Box, number: int, name: str = "n") -> tuple[list[str], list[PodRef]]:
    """Create `number` good nodes, with pods of two namespaces, half of them each."""
    nodes = [box.node(GOOD, name=f"{name}{index}") for index in range(number)]
    namespaces = box.namespaces or box.add_namespaces(2)
    half = ON_A_NODE // 2
    pods = [pod for node in nodes for pod in box.crowd(namespaces, half, node, prefix=node, annotations=ABOVE)]
    return nodes, pods


def healthy(box: Box, number: int) -> None:
    """Create `number` good nodes without pods: most of the zone."""
    for index in range(number):
        box.node(GOOD, name=f"healthy{index}")


def wave(box: Box, nodes: list[str]) -> float:
    """A monitoring fault: the value of all of these nodes is 0."""
    return [box.taint(node, ZERO) for node in nodes][-1]


def trips(box: Box, nodes: list[str], pods: list[PodRef]) -> None:
    """The guard holds all of these pods."""
    fell = wave(box, nodes)
    box.wait_condition("GuardTripped", "True")
    box.stays(*pods, until=fell + SETTLE_SECONDS + OBSERVED_SECONDS)


def release(box: Box) -> float:
    """Release the guard by the command line. Returns the moment."""
    began = time.monotonic()
    done = box.run_command("guard", "reset", box.policy, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    return began


def test_a_guard_of_a_hundred_percent_holds_no_wave(box: Box) -> None:
    box.enforce(limits=NO_LIMIT | {"guard": {"maxPercent": 100}})
    node = box.node(GOOD)
    pods = box.crowd(box.add_namespaces(2), MANY, node, annotations=ABOVE)
    box.last_gone(pods, wave(box, [node]), 15)


def test_a_wave_within_the_guard_leaves(box: Box) -> None:
    box.enforce(limits=GUARDED)
    [node], _ = crowded(box, 1)
    pods = [box.pod(f"web-{index}", node) for index in range(ALLOWED)]
    box.last_gone(pods, time.monotonic(), 15)
    assert box.status_code() == FINE


def test_a_wave_of_half_of_few_pods_leaves_when_others_go_too(box: Box) -> None:
    """The pods that are deleted meanwhile lower what the guard allows, but not below what it has reserved."""
    bad, fine = box.node(GOOD, name="bad"), box.node(GOOD, name="fine")
    namespaces = box.add_namespaces(1)
    pods, _ = (box.crowd(namespaces, FEW // 2, node, prefix=node, annotations=ABOVE) for node in (bad, fine))
    box.enforce(limits=NO_LIMIT | {"evictionsPerSecond": 1, "burst": 1, "guard": {}})
    fell = wave(box, [bad])
    box.wait(lambda: box.left(pods) <= FEW // 2 - 2, 15, "two to leave")
    box.cluster.delete_all("pods", *namespaces, fieldSelector=f"spec.nodeName={fine}")
    box.last_gone(pods, fell, 30)
    assert box.status_code() == FINE


def test_a_release_evicts_exactly_the_held_pods(box: Box) -> None:
    box.enforce(limits=GUARDED)
    healthy(box, 3)
    first, held = crowded(box, 2, "first")
    second, others = crowded(box, 1, "second")
    trips(box, first, held)
    assert box.status_code() == ACT
    assert box.explains(held[0]) == LEAVES
    released = release(box)
    box.last_gone(held, released, 15)
    for node in first:
        box.taint(node, GOOD)
    box.wait_condition("GuardTripped", "False")
    trips(box, second, others)


def test_a_pace_lets_the_allowance_leave_and_says_how_many_are_left(box: Box) -> None:
    """No more pods leave before the window is over; the others leave when a person releases them."""
    pace = GUARDED["guard"] | {"action": "Pace", "windowSeconds": SHORTEST_WINDOW}
    box.enforce(limits=GUARDED | {"guard": pace})
    healthy(box, 3)
    nodes, pods = crowded(box, 2)
    fell = wave(box, nodes)
    message = box.wait_condition("GuardTripped", "True")["message"]
    box.wait(lambda: box.left(pods) == len(pods) - ALLOWED, 15, "the allowance to leave")
    assert f"evictions continue at a pace of {ALLOWED} in 1m" in message
    says = f"{len(pods) - ALLOWED} left, until about "
    box.wait(lambda: says in box.wait_condition("GuardTripped", "True")["message"], 15, "the number of those left")
    assert box.status_code() == ACT
    sleep_until(fell + SHORTEST_WINDOW / 2)
    assert box.left(pods) == len(pods) - ALLOWED
    released = release(box)
    box.last_gone(pods, released, 15)


def test_a_trip_names_who_wrote_the_taint(box: Box) -> None:
    box.enforce(limits=GUARDED)
    nodes, pods = crowded(box, 2)
    trips(box, nodes, pods)
    managed = box.cluster.get("nodes", nodes[0])["metadata"]["managedFields"]
    [writer] = [one for one in managed if "f:taints" in one["fieldsV1"].get("f:spec", {})]
    named = f"last written by {writer['manager']} (Update, {writer['time']})"

    def cause() -> str:
        status: str = box.cluster.get("taintevictionpolicies", box.policy)["status"]["guard"]["cause"]
        return status

    box.wait(lambda: named in cause(), 15, f"the cause to say {named}")
    assert named in box.run_command("status", box.policy, "-o", "json").stdout


def test_a_release_is_refused_where_nothing_is_held(box: Box) -> None:
    box.enforce(limits=GUARDED)
    crowded(box, 1)
    assert box.run_command("guard", "reset", box.policy, "--yes").returncode == 1


def test_values_that_are_repaired_node_by_node_evict_no_pod(box: Box) -> None:
    """No pod leaves even when the number of remaining pods fits into the guard's allowance."""
    box.enforce(limits=GUARDED)
    healthy(box, 4)
    nodes, pods = crowded(box, 3)
    trips(box, nodes, pods)
    for node in nodes:
        box.stays(*pods, until=box.taint(node, GOOD) + SETTLE_SECONDS + 1)
    box.wait_condition("GuardTripped", "False")
    box.stays(*pods, until=time.monotonic() + SETTLE_SECONDS)
    assert not any(box.accepted(namespace) for namespace in box.namespaces)
    assert box.status_code() == FINE
