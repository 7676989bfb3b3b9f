"""PodDisruptionBudgets: they are respected, and a pod that waits for one delays no other pod."""

import time

from blackbox.box import FINE, LEAVES, NO_LIMIT, Box
from e2e.stories import SLACK_SECONDS, taint

BAD = taint("900")
OBSERVED_SECONDS = 4
RETRY_SECONDS = 10
LATER_SECONDS = 3


def test_a_budget_that_allows_one_at_a_time_is_kept(box: Box) -> None:
    box.cluster.create_pdb("web", box.namespace, {"app": "web"}, disruptions_allowed=1)
    box.enforce()
    node = box.node()
    pods = [box.pod(f"web-{index}", node, labels={"app": "web"}) for index in range(3)]
    tainted = box.taint(node, BAD)
    for left in (2, 1, 0):
        box.wait(lambda left=left: box.left(pods) == left, RETRY_SECONDS + SLACK_SECONDS, f"{left} pods to be left")
        if left == 2:
            staying = [pod for pod in pods if box.watch.evicted_at(pod.uid) is None]
            box.stays(*staying, until=tainted + OBSERVED_SECONDS)
            box.wait(lambda: box.status().get("blocked") == 2, 30, "the status to say who waits")
            assert (box.explains(staying[0]), box.status_code()) == (LEAVES, FINE)
        assert sum(box.accepted().values()) == 3 - left
        box.cluster.set_disruptions_allowed("web", box.namespace, 1)


def test_pods_that_wait_for_a_budget_hold_no_other(box: Box) -> None:
    blocked, other = box.add_namespaces(2)
    box.cluster.create_pdb("all", blocked, {})
    box.enforce(limits=NO_LIMIT | {"evictionsPerSecond": 10, "burst": 1})
    node = box.node()
    waiting, others = box.crowd([blocked], 60, node), box.crowd([other], 20, node)
    for number in range(60):
        box.cluster.report_phase(f"pod-{number}", blocked, "Running")
    tainted = box.taint(node, BAD)
    assert box.last_gone(others, tainted, 20) <= 2 + LATER_SECONDS
    box.stays(*waiting, until=time.monotonic())
    box.cluster.set_disruptions_allowed("all", blocked, 60)
    box.last_gone(waiting, time.monotonic(), 6 + RETRY_SECONDS + LATER_SECONDS)
    assert set(box.accepted(blocked).values()) == {1}
