"""Webhooks of others that take their time for an eviction."""

from collections.abc import Iterator

import pytest

from blackbox.box import Box
from blackbox.webhook import LABEL, TIMEOUT_SECONDS, SlowWebhook, serving
from controlplane import ControlPlane
from e2e.stories import taint

HUNG, OTHERS, PODS = 40, 20, 2
SLOW_SECONDS, MANY, NOTICE_SECONDS = 1.5, 80, 48
"""Equal to 200 pods within a notice of 120 s."""
BAD = taint("900")


@pytest.fixture(scope="module")
def webhook(control_plane: ControlPlane) -> Iterator[SlowWebhook]:
    with serving(control_plane) as webhook:
        yield webhook


def test_a_webhook_that_does_not_answer_delays_no_other_namespace(box: Box, webhook: SlowWebhook) -> None:
    """Pods of other namespaces are evicted before the first call that hangs has ended."""
    asking, others = box.add_namespaces(HUNG, {LABEL: "true"}), box.add_namespaces(OTHERS)
    webhook.seconds = TIMEOUT_SECONDS + 2
    box.enforce()
    node = box.node()
    waiting, leaving = box.crowd(asking, PODS, node), box.crowd(others, PODS, node)
    assert box.last_gone(leaving, box.taint(node, BAD), 2 * TIMEOUT_SECONDS) < TIMEOUT_SECONDS
    assert box.left(waiting) == len(waiting)
    webhook.seconds = 0.0


def test_a_slow_webhook_does_not_keep_pods_beyond_the_end_of_their_node(box: Box, webhook: SlowWebhook) -> None:
    namespaces = box.add_namespaces(1, {LABEL: "true"})
    webhook.seconds = SLOW_SECONDS
    box.enforce(reclaim={"deadlineSeconds": NOTICE_SECONDS})
    node = box.node()
    pods = box.crowd(namespaces, MANY, node)
    assert box.last_gone(pods, box.taint(node, BAD), NOTICE_SECONDS + 1) <= NOTICE_SECONDS
    assert set(box.accepted(namespaces[0]).values()) == {1}
    webhook.seconds = 0.0
