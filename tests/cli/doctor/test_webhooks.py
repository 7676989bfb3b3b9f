"""Webhooks that are missing, cannot be trusted, or stand in the way; and pods that they missed."""

import pytest

from cli.doctor.scene import asking, replicas
from cli.world import namespace, toleration

ASKS = namespace(**{"taintwarden.io/inject": "true"})
STRICT = toleration("Gt", "950")
missing, untrusted, unanswered, closed, skipped = map(
    asking,
    ("webhook-missing", "webhook-untrusted", "webhook-unanswered", "webhook-fails-closed", "injection-skipped"),
)


def webhook(
    kind="Mutating", name="acme-taintwarden", bundle="Q0E=", policy="Ignore", hook="pods.mutate.taintwarden.io"
):
    hook = {"name": hook, "clientConfig": {"caBundle": bundle} if bundle else {}, "failurePolicy": policy}
    return {"kind": f"{kind}WebhookConfiguration", "metadata": {"name": name}, "webhooks": [hook]}


def test_namespace_that_asks_in_vain():
    assert len(missing(ASKS)) == len(missing(ASKS, webhook(name="taintwarden", hook="pods.example.com"))) == 1
    assert (
        missing(ASKS, webhook())
        == missing(namespace())
        == missing(namespace(**{"taintwarden.io/inject": "false"}))
        == []
    )


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_webhook_without_authority_or_failing_closed(kind):
    assert len(untrusted(webhook(kind, bundle=""))) == 1
    assert len(closed(webhook(kind, policy="Fail"))) == 1


@pytest.mark.parametrize(
    "one", [webhook(), webhook("Validating"), webhook(hook="pods.example.com", bundle="", policy="Fail")]
)
def test_good_webhooks_and_those_of_others_are_left_in_peace(one):
    assert untrusted(one) == closed(one) == []


def test_webhooks_that_do_not_answer():
    (found,) = unanswered(webhook("Validating"), webhooks_answer=False)
    assert found.subject.name == "acme-taintwarden"
    assert "the API server admits a pod" in found.message


@pytest.mark.parametrize("answer", [True, None])
def test_webhooks_that_answer_or_were_not_tried_are_left_in_peace(answer):
    assert unanswered(webhook("Validating"), webhooks_answer=answer) == []
    assert unanswered(webhooks_answer=False) == []


def test_pods_that_the_webhook_missed():
    (found,) = skipped(ASKS, webhook(), replicas(3, extended=[STRICT]))
    assert (found.pods, found.template) == (3, False)


def test_pods_with_their_companion_or_without_a_wish_are_left_in_peace():
    declines = replicas(3, extended=[STRICT], labels={"taintwarden.io/inject": "false"})
    assert skipped(ASKS, webhook(), replicas(3, toleration("Exists"), extended=[STRICT])) == []
    assert skipped(ASKS, webhook(), declines) == []
    assert skipped(namespace(), webhook(), replicas(3, extended=[STRICT])) == []
