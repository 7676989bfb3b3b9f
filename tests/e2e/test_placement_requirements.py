"""Assumptions of placement about node affinity, checked with the real API server and scheduler.

A pod for each pair of requirement and node requires both, so that its binding shows if the node meets the requirement.
"""

import uuid
from collections.abc import Iterator
from itertools import product

import pytest

from controlplane import ApiError, Cluster, Json, WorkingCluster, wait_until
from controlplane.binaries import is_before
from controlplane.cluster import SCHEDULER
from placement.node_selector import term_holds
from taintwarden.engine.model import Taint
from taintwarden.engine.policy import TaintSelector
from taintwarden_placement.node_labels import node_labels

SECONDS = 90
DOMAIN = "placement-forms.example"
"""Not Taintwarden's domain: an operator of other tests may run here, and removes labels of it that match no taint."""
KEY, VALUE, VERSION = "sla", f"value.{DOMAIN}/sla", f"version.{DOMAIN}/sla"
HIGH, LOW, LOW_VERSION = (
    f"{name}-or-{end}.{DOMAIN}/sla" for name, end in (("value", "max"), ("value", "min"), ("version", "min"))
)
ABSENT = {"key": VALUE, "operator": "DoesNotExist"}
MAX = 2**63 - 1


def repeated(value: str | None) -> dict[str, str]:
    """The labels of a node with this taint, or without one, in the other domain."""
    taints = [] if value is None else [Taint(KEY, value)]
    labels = node_labels(taints, [TaintSelector(KEY, placement=True)]).labels
    return {label.replace("taintwarden.io", DOMAIN): one for label, one in labels.items()}


NODES: dict[str, dict[str, str]] = {
    "absent": {},
    "valueless": repeated(""),
    "left-out": repeated("0950"),
    "leading-zero": {VALUE: "0950"},
    "zero": {VALUE: "0"},
    "low": {VALUE: "940"},
    "equal": {VALUE: "950"},
    "high": {VALUE: "980"},
    "greatest": {VALUE: str(MAX)},
    "beyond": {VALUE: str(MAX + 1)},
    "decimal": {VALUE: "99.5"},
    "text": {VALUE: "gold"},
    "version": repeated("v1.28.3"),
    "none": repeated(None),
}


def asks(operator: str, *values: str, key: str = VALUE) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


FORMS: dict[str, list[Json]] = {
    "gt": [asks("Gt", "950")],
    "gt-zero": [asks("Gt", "0")],
    "gt-edge": [asks("Gt", str(MAX - 1))],
    "lt": [asks("Lt", "950")],
    "lt-greatest": [asks("Lt", str(MAX))],
    "in": [asks("In", "950", "gold")],
    "in-empty": [asks("In", "")],
    "valueless": [asks("In", ""), {"key": VERSION, "operator": "DoesNotExist"}],
    "absent": [ABSENT],
    "newer": [asks("Gt", "10028000000021", key=VERSION)],
    "same": [asks("In", "10028000000031", key=VERSION)],
    "high": [asks("Gt", "950", key=HIGH)],
    "low": [asks("Lt", "5", key=LOW)],
    "named": [asks("In", "gold", str(MAX), key=HIGH)],
    "older": [asks("Lt", "10028000000041", key=LOW_VERSION)],
}


@pytest.fixture(scope="module")
def admitted(working_cluster: WorkingCluster) -> Iterator[dict[str, set[str]]]:
    """The nodes on which the scheduler puts a pod, by requirement."""
    cluster, namespace = working_cluster.client, f"forms-{uuid.uuid4().hex[:6]}"
    cluster.create_namespace(namespace)
    for node, labels in NODES.items():
        cluster.create_node(f"{namespace}-{node}", {**labels, "forms": namespace})
    is_here = lambda node: {"key": "metadata.name", "operator": "In", "values": [f"{namespace}-{node}"]}  # noqa: E731
    create(cluster, namespace, "probe", {"matchFields": [is_here([*NODES][-1])]})
    is_placed = lambda: cluster.get("pods", "probe", namespace)["spec"].get("nodeName")  # noqa: E731
    wait_until(is_placed, SECONDS, "the scheduler to know the nodes: it hears of nodes and pods in any order")
    cluster.delete("pods", "probe", namespace, grace_seconds=0)
    for form, node in product(FORMS, NODES):
        create(cluster, namespace, f"{form}.{node}", {"matchExpressions": FORMS[form], "matchFields": [is_here(node)]})
    wait_until(lambda: all(is_decided(pod) for pod in cluster.items("pods", namespace)), SECONDS, "every pod's place")
    placed = [pod["metadata"]["name"] for pod in cluster.items("pods", namespace) if pod["spec"].get("nodeName")]
    yield {form: {name.split(".")[1] for name in placed if name.split(".")[0] == form} for form in FORMS}
    cluster.remove_namespace(namespace)
    cluster.delete_all("nodes", labelSelector=f"forms={namespace}")


def create(cluster: Cluster, namespace: str, name: str, term: Json) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    cluster.create_pod(name, namespace, spec={"schedulerName": SCHEDULER, "affinity": {"nodeAffinity": required}})


def is_decided(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return bool(pod["spec"].get("nodeName")) or any(one.get("reason") == "Unschedulable" for one in conditions)


def test_the_scheduler_matches_requirements_as_the_simulation_does(admitted: dict[str, set[str]]) -> None:
    """Leading zeros are read as a number, numbers compare to the last digit, empty labels are above and below none."""
    assert admitted == {
        form: {node for node, labels in NODES.items() if term_holds({"matchExpressions": terms}, labels)}
        for form, terms in FORMS.items()
    }


@pytest.mark.skipif(is_before(31), reason="Kubernetes 1.30 takes any bound in a pod's node affinity")
@pytest.mark.parametrize("bound", ["-5", "+5", " 5"])
def test_the_api_server_refuses_a_bound_that_is_no_label_value(working_cluster: WorkingCluster, bound: str) -> None:
    """A pod that got such a requirement could not be created: a negative bound has to be written otherwise."""
    with pytest.raises(ApiError, match="matchExpressions") as refused:
        create(working_cluster.client, "default", "refused", {"matchExpressions": [asks("Gt", bound)]})
    assert refused.value.status == 422
