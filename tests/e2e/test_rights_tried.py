"""Rights of the shipped accounts on a real API server, with their tokens, and the policies that bound them further."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest

from api.policy_cases import policy
from controlplane import ApiError, Cluster, ControlPlane, Target, webhook_setup
from controlplane.client import group_path
from controlplane.manifests import access_documents
from controlplane.target import MANIFESTS
from controlplane.waiting import wait_until

Json = dict[str, Any]
HEARD_SECONDS = 30
POLICY = policy({"mode": "DryRun", "taints": [{"key": "tried"}]}, "tried")
POLICY["metadata"]["annotations"] = {"taintwarden.io/guard-reset": "1", "who": "me"}
NODE, POD, DEPLOYMENT = "tried", "tried", "tried"
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"


class Tried:
    """The accounts, and objects that they try to change."""

    def __init__(self, target: Target) -> None:
        self.admin = target.client
        self.operator = target.operator_client()
        self.webhook = target.webhook_client()
        self.trust = target.trust_client()

    def of(self, account: str) -> Cluster:
        return dict(zip(ACCOUNTS, (self.operator, self.webhook, self.trust), strict=True))[account]

    def close(self) -> None:
        self.operator.close()
        self.webhook.close()
        self.trust.close()


@pytest.fixture(scope="module")
def tried(own_control_plane: ControlPlane) -> Iterator[Tried]:
    made = Tried(own_control_plane)
    admin = made.admin
    admin.create_node(NODE)
    admin.patch("nodes", NODE, {"metadata": {"annotations": {"who": "me"}, "labels": {"who": "me"}}})
    admin.patch("nodes", NODE, {"status": STATUS}, subresource="status", kind="strategic")
    admin.create("taintevictionpolicies", POLICY)
    admin.create_pod(POD, "default", node=NODE)
    own = {"app": DEPLOYMENT}
    pods = {"metadata": {"labels": own}, "spec": {"containers": [{"name": "main", "image": "main"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": own}, "template": pods}
    admin.create("deployments", {"metadata": {"name": DEPLOYMENT}, "spec": spec}, "default")
    webhook_setup.install(admin, 1)
    wait_until(lambda: refused_now(made) == set(REFUSED), HEARD_SECONDS, "the admission policies to be heard of")
    yield made
    webhook_setup.remove(admin)
    admin.delete("taintevictionpolicies", "tried")
    admin.delete("deployments", DEPLOYMENT, "default")
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


def template(**fields: object) -> Json:
    return {"spec": {"template": {"metadata": fields}}}


def node_status(**fields: object) -> Callable[[Cluster], object]:
    return dry("nodes", NODE, {"status": fields}, subresource="status", kind="strategic")


def condition(kind: str) -> Json:
    return {"type": kind, "status": "True", "reason": "DeletionByTaintwarden", "message": "tried"}


STATUS = {
    "conditions": [condition("Known"), condition("taintwarden.io/Drained")],
    "images": [{"names": ["known"], "sizeBytes": 1}],
}
OWNER = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "00000000-0000-0000-0000-000000000000"}]
ALLOWED = {
    "the history of a node": dry("nodes", NODE, metadata(annotations={"taintwarden.io/taint-history": "{}"})),
    "a label of placement": dry("nodes", NODE, metadata(labels={"value.taintwarden.io/sla": "940"})),
    "a label of placement for one comparison": dry(
        "nodes", NODE, metadata(labels={"a.value-or-max.taintwarden.io/sla": "940"})
    ),
    "a label of placement with a prefix": dry("nodes", NODE, metadata(labels={"a.b.effect.taintwarden.io/sla": "x"})),
    "the end of a guard's reset": dry(
        "taintevictionpolicies", "tried", metadata(annotations={"taintwarden.io/guard-reset": None})
    ),
    "the status of a policy": dry(
        "taintevictionpolicies", "tried", {"status": {"observedGeneration": 1}}, subresource="status"
    ),
    "a restart of a Deployment": dry("deployments", DEPLOYMENT, template(annotations={RESTARTED_AT: "now"}), "default"),
    "the condition DisruptionTarget": dry(
        "pods",
        POD,
        {"status": {"conditions": [condition("DisruptionTarget")]}},
        "default",
        subresource="status",
        kind="strategic",
    ),
    "the condition Drained": node_status(conditions=[condition("taintwarden.io/Drained")]),
    "the end of the condition Drained": node_status(
        conditions=[{"type": "taintwarden.io/Drained", "$patch": "delete"}]
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
    "another condition of a node": node_status(conditions=[condition("Ready")]),
    "the end of another condition of a node": node_status(conditions=[{"type": "Known", "$patch": "delete"}]),
    "another condition of a node with ours": node_status(
        conditions=[condition("taintwarden.io/Drained"), condition("Ready")]
    ),
    "the phase of a node": node_status(phase="Running"),
    "the capacity of a node": node_status(capacity={"cpu": "7"}),
    "what is allocatable on a node": node_status(allocatable={"cpu": "7"}),
    "the addresses of a node": node_status(addresses=[{"type": "InternalIP", "address": "10.9.9.9"}]),
    "the images of a node": node_status(images=[{"names": ["evil"], "sizeBytes": 1}]),
    "the end of the images of a node": node_status(images=None),
    "the volumes of a node": node_status(volumesInUse=["kubernetes.io/csi/evil"]),
    "the attached volumes of a node": node_status(volumesAttached=[{"name": "evil", "devicePath": "/dev/x"}]),
    "the kubelet of a node": node_status(nodeInfo={"kubeletVersion": "v9"}),
    "a label of a node by its status": dry("nodes", NODE, metadata(labels={"evil": "1"}), subresource="status"),
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
    "the image of a Deployment": dry(
        "deployments",
        DEPLOYMENT,
        {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "evil"}]}}}},
        "default",
        kind="strategic",
    ),
    "the replicas of a Deployment": dry("deployments", DEPLOYMENT, {"spec": {"replicas": 9}}, "default"),
    "another annotation of a Deployment's pods": dry(
        "deployments", DEPLOYMENT, template(annotations={"a": "b"}), "default"
    ),
    "a label of a Deployment's pods": dry("deployments", DEPLOYMENT, template(labels={"a": "b"}), "default"),
    "a label of a Deployment": dry("deployments", DEPLOYMENT, metadata(labels={"a": "b"}), "default"),
    "another condition of a pod": dry(
        "pods", POD, {"status": {"conditions": [condition("Ready")]}}, "default", subresource="status", kind="strategic"
    ),
}


def refused_now(tried: Tried) -> set[str]:
    """Names of the changes that are refused now. The server observes each policy and each binding by itself."""
    return {name for name, change in REFUSED.items() if is_refused(partial(change, tried.operator))}


def test_the_operator_may_change_what_is_its_own_and_nothing_else(tried):
    for change in ALLOWED.values():
        change(tried.operator)
    assert refused_now(tried) == set(REFUSED)


def test_the_webhook_may_change_none_of_it(tried):
    changes = ALLOWED | REFUSED
    assert {name for name, change in changes.items() if is_refused(partial(change, tried.webhook))} == set(changes)


def test_the_admission_policies_do_not_restrict_other_users(tried):
    for change in (REFUSED["a cordon"], REFUSED["the mode of a policy"], REFUSED["a label of a node"]):
        change(tried.admin)


# -- every verb on every resource -----------------------------------------------------------------------------------


Right = tuple[str, str, str]
"""Group, resource with its subresource, verb."""
ACCOUNTS = ["taintwarden", "taintwarden-webhook", "taintwarden-webhook-trust"]
LIMITED = ("taintwarden.io", "accounts", "limit")
"""By which the admission policies find the operator's account. No such resource exists."""
EVERYBODY = {"system:authenticated", "system:serviceaccounts"}
"""Groups of every account. Kubernetes gives them rights of its own, more of them in each release."""
METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
NAMES = ("tried-name", "taintwarden", webhook_setup.NAME)
"""A name without rights, and those that rights are bounded to."""


def rights(rules: Iterable[Json]) -> set[Right]:
    """Rights that these rules grant."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule.get("apiGroups", [""])
        for resource in rule.get("resources", [])
        for verb in rule["verbs"]
    }


def bound(documents: Iterable[Json], subjects: set[str]) -> Iterator[tuple[str, str]]:
    """Kind and name of the roles that are bound to one of these subjects."""
    for binding in documents:
        if binding["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            named = {subject["name"] for subject in binding.get("subjects", [])}
            if named & subjects:
                yield binding["roleRef"]["kind"], binding["roleRef"]["name"]


def granted(account: str) -> set[Right]:
    """Rights that the shipped roles grant."""
    documents = [one for folder in MANIFESTS for one in access_documents(folder)]
    roles = {(one["kind"], one["metadata"]["name"]): one["rules"] for one in documents if "rules" in one}
    return rights(rule for role in bound(documents, {account}) for rule in roles[role])


def everybodys(admin: Cluster) -> set[Right]:
    """Rights that Kubernetes itself grants to every account."""
    given = [
        one | {"kind": "ClusterRoleBinding"}
        for one in admin.items("clusterrolebindings")
        if one["metadata"].get("labels", {}).get("kubernetes.io/bootstrapping") == "rbac-defaults"
    ]
    roles = [admin.get("clusterroles", name) for _, name in bound(given, EVERYBODY)]
    return rights(rule for role in roles for rule in role["rules"])


def reviewed(client: Cluster) -> set[Right]:
    """Rights of the account as the API server reports them to its own token."""
    body = {"spec": {"namespace": webhook_setup.NAMESPACE}}
    return rights(client.create("authorization.k8s.io/v1/selfsubjectrulesreviews", body)["status"]["resourceRules"])


def served(admin: Cluster) -> Iterator[tuple[str, str, bool]]:
    """Group version, resource (with its subresource) and whether it has a namespace, of all that the server has."""
    versions = ["v1"]
    for group in admin.request("GET", "/apis")["groups"]:
        versions += [one["groupVersion"] for one in group["versions"]]
    for version in versions:
        for one in admin.request("GET", group_path(version))["resources"]:
            yield version, one["name"], one["namespaced"]


def may(client: Cluster, version: str, resource: str, verb: str, *, namespaced: bool) -> bool:
    """Return True if a call passes authorization. It changes nothing: a dry run for an object that does not exist."""
    plural, _, subresource = resource.partition("/")
    whole = f"{group_path(version)}/namespaces/{webhook_setup.NAMESPACE}" if namespaced else group_path(version)
    query: Json = {} if METHODS[verb] == "GET" else {"dryRun": "All"}
    if verb == "watch":
        query |= {"watch": "1", "timeoutSeconds": "1"}
    is_one = verb in ("get", "update", "patch", "delete") or bool(subresource)
    paths = [f"{whole}/{plural}" + (f"/{name}" if is_one else "") for name in (NAMES if is_one else NAMES[:1])]
    for path in paths:
        try:
            client.request(
                METHODS[verb],
                f"{path}/{subresource}" if subresource else path,
                None if METHODS[verb] in ("GET", "DELETE") else {},
                query,
                "merge" if verb == "patch" else "",
            )
        except ApiError as error:
            if not (error.status == 403 and " cannot " in str(error)):
                return True
        except json.JSONDecodeError:  # a watch: each of its lines is JSON
            return True
        else:
            return True
    return False


@pytest.mark.parametrize("account", ACCOUNTS)
def test_an_account_has_exactly_the_rights_of_its_roles(tried, account):
    assert reviewed(tried.of(account)) == granted(account) | everybodys(tried.admin)


@pytest.mark.parametrize("account", ACCOUNTS)
def test_every_verb_on_every_resource_is_allowed_as_the_roles_grant(tried, account):
    """Called with the account's own token, one after the other, for all that the API server has."""
    resources = list(served(tried.admin))
    assert len(resources) > 100
    found = {
        (version.rpartition("/")[0], resource, verb)
        for version, resource, namespaced in resources
        for verb in METHODS
        if may(tried.of(account), version, resource, verb, namespaced=namespaced)
    }
    assert found == granted(account) - {LIMITED} | everybodys(tried.admin)


def test_no_admission_policy_reaches_webhook_configurations(tried):
    """API servers apply no admission policy to these, so only an account that no process uses may change them."""
    for resource in webhook_setup.CONFIGURATIONS.values():
        webhooks = tried.admin.get(resource, "taintwarden")["webhooks"]
        assert webhooks
        tried.trust.patch(resource, "taintwarden", metadata(labels={"a": "b"}), dryRun="All")
        assert is_refused(partial(tried.trust.patch, resource, "another", metadata(labels={"a": "b"}), dryRun="All"))


# -- without what bounds the rights ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unbounded(tried: Tried) -> Iterator[Tried]:
    """Policies without bindings. Comes last, since each earlier test of the module needs them."""
    bindings = [one["metadata"]["name"] for one in tried.admin.items("validatingadmissionpolicybindings")]
    ours = [name for name in bindings if name.startswith("taintwarden")]
    assert ours
    for name in ours:
        tried.admin.delete("validatingadmissionpolicybindings", name)
    wait_until(lambda: not refused_now(tried), HEARD_SECONDS, "the policies to be gone")
    yield tried
    for folder in MANIFESTS:
        for document in access_documents(folder):
            tried.admin.apply(document)
    wait_until(lambda: refused_now(tried) == set(REFUSED), HEARD_SECONDS, "the policies to be back")


def test_without_the_admission_policies_only_rights_bound_the_operator(unbounded):
    """The policies refuse all of these changes, and nothing else does."""
    assert not refused_now(unbounded)
