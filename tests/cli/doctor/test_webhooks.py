"""Webhooks that are missing, cannot be trusted, do not answer, or block."""

import msgspec
import pytest

from cli.doctor.scene import asking
from cli.world import namespace
from taintwarden_cli.rehearsal.deployments import Deployment, webhook_problem

ASKS = namespace(**{"taintwarden.io/inject": "true"})
away = asking("webhook-not-answering")


def webhook(
    kind="Mutating", name="acme-taintwarden", bundle="Q0E=", policy="Ignore", hook="pods.mutate.taintwarden.io"
):
    hook = {"name": hook, "clientConfig": {"caBundle": bundle} if bundle else {}, "failurePolicy": policy}
    return {"kind": f"{kind}WebhookConfiguration", "metadata": {"name": name}, "webhooks": [hook]}


def test_namespace_that_asks_for_an_absent_webhook_is_found():
    assert len(away(ASKS)) == len(away(ASKS, webhook(name="taintwarden", hook="pods.example.com"))) == 1
    assert away(ASKS, webhook()) == away(namespace()) == away(namespace(**{"taintwarden.io/inject": "false"})) == []


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_webhook_without_ca_bundle_or_with_policy_fail_is_found(kind):
    (untrusted,) = away(webhook(kind, bundle=""))
    (closed,) = away(webhook(kind, policy="Fail"))
    assert "has no caBundle" in untrusted.message
    assert untrusted.remedy.startswith("taintwarden webhook-trust --namespace ")
    assert "has failurePolicy Fail" in closed.message


@pytest.mark.parametrize(
    "one", [webhook(), webhook("Validating"), webhook(hook="pods.example.com", bundle="", policy="Fail")]
)
def test_good_and_foreign_webhooks_are_no_finding(one):
    assert away(one) == []


def test_webhooks_without_a_ready_replica_are_found():
    (found,) = away(webhook(), webhook_problem="no replica is ready")
    assert (found.subject.name, found.message) == ("acme-taintwarden", "no replica is ready")


OPERATOR = {"metadata": {"name": "taintwarden"}, "spec": {"template": {"spec": {"containers": [{"args": ["run"]}]}}}}
HOOKS = {"metadata": {"name": "hooks"}, "spec": {"template": {"spec": {"containers": [{"args": ["webhook"]}]}}}}


@pytest.mark.parametrize(
    ("deployments", "why"),
    [
        ([], ""),
        ([OPERATOR], "no Deployment of namespace x runs the webhook"),
        ([OPERATOR, HOOKS], "no replica of Deployment x/hooks, the webhook, is ready"),
        ([OPERATOR, HOOKS | {"status": {"readyReplicas": 1}}], ""),
    ],
)
def test_a_webhook_that_was_deleted_is_as_dead_as_one_that_is_not_ready(deployments, why):
    told = webhook_problem(msgspec.convert(deployments, list[Deployment]), "x")
    assert told == (why and f"{why}: new pods get no placement and no native tolerations")
