"""What the shipped accounts may do on a real API server, with their tokens: rights, and what bounds them further."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from controlplane import ApiError, Cluster, ControlPlane, Target
from controlplane.manifests import access_documents
from controlplane.target import MANIFESTS
from controlplane.waiting import wait_until
from e2e import webhook_setup

Json = dict[str, Any]
HEARD_SECONDS = 30
POLICY: Json = {
    "apiVersion": "taintwarden.io/v1alpha1",
    "kind": "TaintEvictionPolicy",
    "metadata": {"name": "tried", "annotations": {"taintwarden.io/guard-reset": "1", "who": "me"}},
    "spec": {"mode": "DryRun", "taints": [{"key": "tried"}]},
}
NODE, POD = "tried", "tried"


class Tried:
    """The accounts, and objects that they try to change."""

    def __init__(self, target: Target) -> None:
        self.admin = target.client
        self.operator = target.operator_client()
        self.webhook = target.webhook_client()

    def close(self) -> None:
        self.operator.close()
        self.webhook.close()


@pytest.fixture(scope="module")
def tried(own_control_plane: ControlPlane) -> Iterator[Tried]:
    made = Tried(own_control_plane)
    admin = made.admin
    admin.create_node(NODE)
    admin.patch("nodes", NODE, {"metadata": {"annotations": {"who": "me"}, "labels": {"who": "me"}}})
    admin.create("taintevictionpolicies", POLICY)
    admin.create_pod(POD, "default", node=NODE)
    webhook_setup.install(admin, 1)
    wait_until(
        lambda: is_refused(lambda: cordon(made.operator)), HEARD_SECONDS, "the admission policies to be heard of"
    )
    yield made
    webhook_setup.remove(admin)
    admin.delete("taintevictionpolicies", "tried")
    admin.delete("pods", POD, "default", grace_seconds=0)
    admin.delete("nodes", NODE)
    made.close()


def is_refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except ApiError as error:
        if error.status in (403, 422):
            return True
        raise
    return False


def cordon(cluster: Cluster) -> None:
    cluster.patch("nodes", NODE, {"spec": {"unschedulable": True}}, dryRun="All")


def dry(resource: str, name: str, patch: Json, namespace: str = "", **more: str) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.patch(resource, name, patch, namespace, dryRun="All", **more)


def metadata(**fields: object) -> Json:
    return {"metadata": fields}


def condition(kind: str) -> Json:
    return {"type": kind, "status": "True", "reason": "DeletionByTaintwarden", "message": "tried"}


OWNER = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "00000000-0000-0000-0000-000000000000"}]
ALLOWED = {
    "the history of a node": dry("nodes", NODE, metadata(annotations={"taintwarden.io/taint-history": "{}"})),
    "a label of placement": dry("nodes", NODE, metadata(labels={"value.taintwarden.io/sla": "940"})),
    "a label of placement with a prefix": dry("nodes", NODE, metadata(labels={"a.b.effect.taintwarden.io/sla": "x"})),
    "the end of a guard's reset": dry(
        "taintevictionpolicies", "tried", metadata(annotations={"taintwarden.io/guard-reset": None})
    ),
    "the status of a policy": dry(
        "taintevictionpolicies", "tried", {"status": {"observedGeneration": 1}}, subresource="status"
    ),
    "the condition DisruptionTarget": dry(
        "pods",
        POD,
        {"status": {"conditions": [condition("DisruptionTarget")]}},
        "default",
        subresource="status",
        kind="strategic",
    ),
}
REFUSED = {
    "a cordon": dry("nodes", NODE, {"spec": {"unschedulable": True}}),
    "a taint": dry("nodes", NODE, {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}),
    "a label of a node": dry("nodes", NODE, metadata(labels={"topology.kubernetes.io/zone": "elsewhere"})),
    "a label that only looks like ours": dry("nodes", NODE, metadata(labels={"value.taintwarden.io.evil.io/x": "1"})),
    "the end of a label of a node": dry("nodes", NODE, metadata(labels={"who": None})),
    "an annotation of a node": dry("nodes", NODE, metadata(annotations={"who": "you"})),
    "the end of an annotation of a node": dry("nodes", NODE, metadata(annotations={"who": None})),
    "an owner of a node": dry("nodes", NODE, metadata(ownerReferences=OWNER)),
    "a finalizer of a node": dry("nodes", NODE, metadata(finalizers=["a.io/b"])),
    "the status of a node": dry("nodes", NODE, {"status": {"phase": "x"}}, subresource="status"),
    "the mode of a policy": dry("taintevictionpolicies", "tried", {"spec": {"mode": "Enforce"}}),
    "a label of a policy": dry("taintevictionpolicies", "tried", metadata(labels={"a": "b"})),
    "another annotation of a policy": dry("taintevictionpolicies", "tried", metadata(annotations={"who": None})),
    "a reset of a guard": dry(
        "taintevictionpolicies", "tried", metadata(annotations={"taintwarden.io/guard-reset": "2"})
    ),
    "an owner of a policy": dry("taintevictionpolicies", "tried", metadata(ownerReferences=OWNER)),
    "the address of a pod": dry("pods", POD, {"status": {"podIP": "10.9.9.9"}}, "default", subresource="status"),
    "a label of a pod": dry("pods", POD, metadata(labels={"app": "evil"}), "default", subresource="status"),
    "an annotation of a pod": dry("pods", POD, metadata(annotations={"a": "b"}), "default", subresource="status"),
    "another condition of a pod": dry(
        "pods", POD, {"status": {"conditions": [condition("Ready")]}}, "default", subresource="status", kind="strategic"
    ),
}


@pytest.mark.parametrize("change", ALLOWED.values(), ids=list(ALLOWED))
def test_the_operator_may_change(tried, change):
    change(tried.operator)


@pytest.mark.parametrize("change", REFUSED.values(), ids=list(REFUSED))
def test_the_operator_may_not_change(tried, change):
    assert is_refused(lambda: change(tried.operator))


@pytest.mark.parametrize("change", [*ALLOWED.values(), *REFUSED.values()], ids=[*ALLOWED, *REFUSED])
def test_the_webhook_may_change_none_of_it(tried, change):
    assert is_refused(lambda: change(tried.webhook))


def test_the_policies_concern_nobody_else(tried):
    for change in (REFUSED["a cordon"], REFUSED["the mode of a policy"], REFUSED["a label of a node"]):
        change(tried.admin)


def test_the_operator_may_not_touch_webhooks(tried):
    for resource in webhook_setup.CONFIGURATIONS.values():
        assert is_refused(lambda resource=resource: tried.operator.get(resource, "taintwarden"))
    assert is_refused(lambda: tried.operator.get("secrets", webhook_setup.NAME, webhook_setup.NAMESPACE))


def test_every_verb_on_every_resource_is_what_the_roles_say(tried, own_control_plane):
    """Asked of the API server itself, for all that it serves."""
    granted = {account: set() for account in ("taintwarden", "taintwarden-webhook")}
    documents = [one for folder in MANIFESTS for one in access_documents(folder)]
    roles = {(one["kind"], one["metadata"]["name"]): one["rules"] for one in documents if "rules" in one}
    for binding in documents:
        if binding["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            for rule in roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]:
                granted[binding["subjects"][0]["name"]] |= {
                    (group, resource, verb)
                    for group in rule["apiGroups"]
                    for resource in rule["resources"]
                    for verb in rule["verbs"]
                }
    for account, client in (("taintwarden", tried.operator), ("taintwarden-webhook", tried.webhook)):
        body = {"spec": {"namespace": webhook_setup.NAMESPACE}}
        review = client.create("authorization.k8s.io/v1/selfsubjectrulesreviews", body)["status"]
        found = {
            (group, resource, verb)
            for rule in review["resourceRules"]
            for group in rule.get("apiGroups", [""])
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        everybodys = {one for one in found if one[0] in ("authorization.k8s.io", "authentication.k8s.io")}
        assert found - everybodys == granted[account]


def test_no_admission_policy_reaches_webhook_configurations(tried):
    """Why the certificate of the webhooks is bounded by rights alone: API servers ask no policy about these."""
    for resource in webhook_setup.CONFIGURATIONS.values():
        webhooks = tried.admin.get(resource, "taintwarden")["webhooks"]
        assert webhooks
        tried.webhook.patch(resource, "taintwarden", metadata(labels={"a": "b"}), dryRun="All")
        assert is_refused(partial(tried.webhook.patch, resource, "another", metadata(labels={"a": "b"}), dryRun="All"))
