"""Rights of the publisher's account on a real API server, and admission of its object.

Its loop with a real Prometheus is in test_slo_loop.py.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from controlplane import ApiError, Cluster, ControlPlane, Json, wait_until
from controlplane.manifests import access_documents
from controlplane.target import MANIFESTS, PUBLISHER, PUBLISHER_SERVICE_ACCOUNT
from e2e.conftest import FEATURE_GATES
from e2e.test_rights_tried import bound, everybodys, is_refused, metadata, reviewed, rights
from monitoring.loop import allow

pytestmark = pytest.mark.timeout(180)

SEEN_SECONDS = 30.0


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs a control plane of its own, not --kubeconfig")
    with ControlPlane(tmp_path_factory.mktemp("publisher"), feature_gates=FEATURE_GATES) as started:
        started.apply_crds()
        started.apply_manifests()
        started.apply_manifests(PUBLISHER)
        started.start_controller_manager("clusterrole-aggregation-controller")
        allow(started, "sla", "example.com/sla", "mass", "bad", "tested")
        yield started


# -- the account ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def account(ground: ControlPlane) -> Iterator[Cluster]:
    """Client with the publisher's token, once the API server has the publisher's keys."""
    client = Cluster(ground.server, ground.ca, token=ground.token(PUBLISHER_SERVICE_ACCOUNT))
    client.wait_allowed("publish", "taintwarden.io", "taintkeys", name="sla")
    yield client
    client.close()


KEY = ("taintwarden.io", "taintkeys", "publish")
"""No such resource exists."""


def granted() -> set[tuple[str, str, str]]:
    """Rights that the shipped roles grant."""
    documents = [one for folder in (*MANIFESTS, PUBLISHER) for one in access_documents(folder)]
    given = (one for one in documents if one["kind"] in ("Role", "ClusterRole"))
    roles = {(one["kind"], one["metadata"]["name"]): one.get("rules", []) for one in given}
    return rights(rule for role in bound(documents, {PUBLISHER_SERVICE_ACCOUNT}) for rule in roles[role])


def test_the_account_has_exactly_the_rights_of_its_roles(ground, account):
    assert reviewed(account) == granted() | {KEY} | everybodys(ground.client)


TRIED = "tried"
KIND = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintPublisher"}
FULL = '{"publisher":"sla","effects":["NoExecute"],"value":"1","from":1.0,"at":"2026-01-01T00:00:00Z"}'


def taint(key: str, value: str = "1") -> Json:
    return {"key": key, "value": value, "effect": "NoExecute"}


BEFORE = [taint("tested"), taint("mine"), taint("mass")]
"""The publisher has a record of the first one only."""


def change(
    taints: list[Json] | None = None, annotations: Json | None = None, **more: Any
) -> Callable[[Cluster], object]:
    body: Json = {"metadata": {"annotations": annotations or {}, **more.pop("metadata", {})}}
    spec = more | ({} if taints is None else {"taints": taints})
    return lambda cluster: cluster.patch("nodes", TRIED, body | ({"spec": spec} if spec else {}), dryRun="All")


TESTED = "published.taintwarden.io/tested"
MASS = "published.taintwarden.io/mass"
ALLOWED = {
    "a new value, with its record": change([taint("tested", "2"), *BEFORE[1:]], {TESTED: FULL + " "}),
    "a removal with its record": change(BEFORE[1:], {TESTED: None}),
    "another key, with a record": change(
        [*BEFORE, taint("example.com/sla")], {"example.com.published.taintwarden.io/sla": FULL}
    ),
    "a record alone": change(None, {MASS: FULL}),
    "nothing": change(),
}
REFUSED = {
    "a key without the right": change([*BEFORE, taint("other")], {"published.taintwarden.io/other": FULL}),
    "a key of Kubernetes": change(
        [*BEFORE, taint("node.kubernetes.io/x")], {"node.kubernetes.io.published.taintwarden.io/x": FULL}
    ),
    "a taint that it did not write": change([BEFORE[0], BEFORE[2]]),
    "a value that it did not write": change([*BEFORE[:2], taint("mass", "2")]),
    "a removal of what has no record": change(BEFORE[:2]),
    "a taint without a record": change([*BEFORE, taint("example.com/sla")]),
    "a record of a key without the right": change(None, {"published.taintwarden.io/other": FULL}),
    "another annotation": change(None, {"who": "you"}),
    "an annotation that looks like a record": change(None, {"published.taintwarden.io.evil.io/sla": FULL}),
    "the end of another annotation": change(None, {"who": None}),
    "a cordon": change(unschedulable=True),
    "the pods' addresses": change(podCIDR="10.0.0.0/24", podCIDRs=["10.0.0.0/24"]),
    "a label": change(metadata={"labels": {"a": "b"}}),
    "the end of a label": change(metadata={"labels": {"kubernetes.io/os": None}}),
    "a finalizer": change(metadata={"finalizers": ["a.io/b"]}),
    "an owner": change(
        metadata={
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "00000000-0000-0000-0000-000000000000"}
            ]
        }
    ),
    "the status": lambda cluster: cluster.patch(
        "nodes", TRIED, {"status": {"phase": "x"}}, subresource="status", dryRun="All"
    ),
    "the spec of an object": lambda cluster: cluster.patch(
        "taintpublishers", TRIED, {"spec": {"mode": "Publish"}}, dryRun="All"
    ),
    "a label of an object": lambda cluster: cluster.patch(
        "taintpublishers", TRIED, metadata(labels={"a": "b"}), dryRun="All"
    ),
    "another finalizer of an object": lambda cluster: cluster.patch(
        "taintpublishers", TRIED, metadata(finalizers=["a.io/b"]), dryRun="All"
    ),
}


def refused_now(account: Cluster) -> set[str]:
    return {name for name, one in REFUSED.items() if is_refused(partial(one, account))}


@pytest.fixture(scope="module")
def tried(ground: ControlPlane, account: Cluster) -> Iterator[ControlPlane]:
    """A node and an object to change."""
    admin = ground.client
    admin.create_node(TRIED, taints=BEFORE, annotations={TESTED: FULL, "who": "me"})
    spec = {"key": "tried", "url": "http://127.0.0.1:1", "query": "up", "round": 1}
    admin.create("taintpublishers", {**KIND, "metadata": {"name": TRIED}, "spec": spec})
    wait_until(lambda: refused_now(account) == set(REFUSED), SEEN_SECONDS, "the admission policies to be heard of")
    yield ground
    admin.delete("taintpublishers", TRIED)
    admin.delete("nodes", TRIED)


def test_the_publisher_may_change_its_taints_and_their_records_and_nothing_else(tried, account):
    for change in ALLOWED.values():
        change(account)
    assert refused_now(account) == set(REFUSED)


def test_the_publisher_may_set_its_finalizer(tried, account):
    account.patch("taintpublishers", TRIED, metadata(finalizers=["publisher.taintwarden.io/taints"]), dryRun="All")


def test_the_admission_policies_do_not_restrict_other_users(tried):
    for name in set(REFUSED) - {"the pods' addresses", "an owner", "a finalizer"}:
        REFUSED[name](tried.client)


# -- the object --------------------------------------------------------------------------------------------------------


REFUSALS = (
    ({"key": "node.kubernetes.io/unreachable"}, "must not be a key of Kubernetes"),
    ({"steps": [0, 940]}, "exactly one of steps and round"),
    ({"steps": [900, 940], "round": ""}, "must be 0 in the first step"),
    ({"steps": [0, 940, 900], "round": ""}, "must increase from step to step"),
    ({"url": "http://user:secret@prometheus"}, "without user and query"),
    ({"maxChangedNodes": "0%"}, "a percentage between"),
    ({"effects": []}, "at least 1"),
)


def publish(ground: ControlPlane, **fields: Any) -> None:
    spec = {"key": "tried", "url": "http://127.0.0.1:1", "query": "up", "round": 1} | fields
    body = {**KIND, "metadata": {"name": "refused"}, "spec": {name: one for name, one in spec.items() if one != ""}}
    ground.client.create("taintpublishers", body, dryRun="All")


def test_the_api_server_refuses_an_invalid_publisher(ground):
    publish(ground)
    for fields, said in REFUSALS:
        with pytest.raises(ApiError, match=said):
            publish(ground, **fields)


def test_a_key_cannot_be_changed(tried):
    with pytest.raises(ApiError, match="cannot be changed"):
        tried.client.patch("taintpublishers", TRIED, {"spec": {"key": "other"}})
