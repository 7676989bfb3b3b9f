"""A node that is reclaimed: its pods leave in time to stop, whatever they tolerate and however many they are."""

from blackbox.box import Box
from e2e.stories import SLACK_SECONDS, taint, toleration

NOTICE_SECONDS, STOP_SECONDS, MANY = 15, 5, 120
SPOT = taint("", "spot")


def test_a_pod_leaves_in_time_to_stop(box: Box) -> None:
    box.enforce(taints=[{"key": "spot"}], reclaim={"deadlineSeconds": NOTICE_SECONDS})
    node = box.node()
    longer = toleration("Exists", seconds=600, key="spot")
    pod = box.pod("longer", node, longer, grace_seconds=STOP_SECONDS)
    at_once = box.pod("at-once", node, grace_seconds=STOP_SECONDS)
    reclaimed = box.taint(node, SPOT)
    box.leaves(at_once, reclaimed)
    assert box.last_gone([pod], reclaimed, NOTICE_SECONDS) <= NOTICE_SECONDS - STOP_SECONDS + 1


def test_neither_rate_nor_guard_holds_a_reclaimed_node(box: Box) -> None:
    slow = {"evictionsPerSecond": 1, "burst": 1, "guard": {"minPods": 1, "maxPercent": 1}}
    box.enforce(taints=[{"key": "spot"}], reclaim={"deadlineSeconds": NOTICE_SECONDS}, limits=slow)
    node = box.node()
    pods = box.crowd(box.add_namespaces(2), MANY // 2, node)
    assert box.last_gone(pods, box.taint(node, SPOT), NOTICE_SECONDS) <= NOTICE_SECONDS - 1 - SLACK_SECONDS


def test_budgets_hold_on_a_reclaimed_node(box: Box) -> None:
    box.cluster.create_pdb("web", box.namespace, {"app": "web"})
    box.enforce(taints=[{"key": "spot"}], reclaim={"deadlineSeconds": NOTICE_SECONDS})
    node = box.node()
    pod = box.pod("web", node, labels={"app": "web"})
    other = box.pod("other", node)
    reclaimed = box.taint(node, SPOT)
    box.leaves(other, reclaimed)
    box.stays(pod, until=reclaimed + 4)
