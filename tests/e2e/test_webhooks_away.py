"""The webhook is away, or does not answer: pods are created all the same, and whole again when it is back."""

import os
import signal
import time
from typing import Any

import pytest

from admission.workloads import ANNOTATION, exists, extended, gt
from controlplane import Cluster, Webhook, webhook_setup
from controlplane.waiting import sleep_until, wait_until

Json = dict[str, Any]
AWAY_SECONDS = 5
SERVED_SECONDS = 2.5
"""Less than a replica serves after SIGTERM. Only answers until then are judged."""
EVERY_SECONDS = 0.25
GOOD = extended(gt())


@pytest.fixture
def injected(cluster: Cluster, namespace: str, webhook: Webhook) -> str:
    webhook_setup.inject(cluster, namespace)
    return namespace


def create(cluster: Cluster, namespace: str, name: str, annotation: str = GOOD) -> Json:
    """A pod that both webhooks have to do with."""
    return cluster.create_pod(name, namespace, annotations={ANNOTATION: annotation})


def is_completed(pod: Json) -> bool:
    return exists(effect="NoExecute") in pod["spec"]["tolerations"]


def test_without_a_webhook_no_pod_is_refused(cluster, injected, webhook: Webhook):
    assert is_completed(create(cluster, injected, "before"))
    webhook.kill9()
    began = time.monotonic()
    for number in range(int(AWAY_SECONDS / EVERY_SECONDS)):
        sleep_until(began + number * EVERY_SECONDS)
        assert not is_completed(create(cluster, injected, f"away-{number}"))
    webhook.start()
    names = iter(range(1000))
    wait_until(lambda: is_completed(create(cluster, injected, f"after-{next(names)}")), 30, "a completed pod")


def test_a_webhook_that_gets_sigterm_keeps_answering_for_a_while(cluster, injected, webhook: Webhook):
    os.kill(webhook.process.pid, signal.SIGTERM)
    ends = time.monotonic() + SERVED_SECONDS
    last, number = create(cluster, injected, "last"), 0
    while time.monotonic() < ends:
        assert is_completed(last)
        time.sleep(EVERY_SECONDS)  # each is asked for at another moment of the time in which it still answers
        last, number = create(cluster, injected, f"last-{number}"), number + 1
    assert number
    wait_until(lambda: not webhook.process.is_running, 30, "its end")
    assert webhook.process.exit_code == 0
    webhook.start()


def test_a_webhook_that_does_not_answer_refuses_no_pod(cluster, injected, webhook: Webhook):
    webhook_setup.wait_completed(cluster, injected)
    os.kill(webhook.process.pid, signal.SIGSTOP)
    try:
        assert not is_completed(create(cluster, injected, "stuck", extended(gt("0950"))))
    finally:
        os.kill(webhook.process.pid, signal.SIGCONT)
    names = iter(range(1000))
    wait_until(lambda: is_completed(create(cluster, injected, f"after-{next(names)}")), 30, "a completed pod")
