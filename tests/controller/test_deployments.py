"""Which Deployments can start a replacement first, and which ReplicaSets they control."""

from typing import Any

import msgspec
import pytest

from taintwarden.controller.decoding.deployments import deployment, revision
from taintwarden.engine.model import Deployment, Revision
from taintwarden.kube.wire.kinds import DeploymentObject, WorkloadObject

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
COMPLETE = {"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}


def stored(spec: dict[str, Any] | None = None, **status: int) -> Deployment:
    meta = {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 3}
    body = {"metadata": meta, "spec": {"replicas": 1} | (spec or {}), "status": COMPLETE | status}
    return deployment(msgspec.convert(body, DeploymentObject))


def rolling(**update: object) -> dict[str, Any]:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": update}}


def test_a_deployment_of_one_replica_with_default_strategy_replaces_first():
    assert stored() == Deployment("shop", "web", "u", "7", can_replace=True)


@pytest.mark.parametrize(
    ("spec", "can_replace"),
    [
        ({"replicas": 2}, False),
        ({"paused": True}, False),
        ({"strategy": {"type": "Recreate"}}, False),
        (rolling(maxSurge=1, maxUnavailable=0), True),
        (rolling(maxSurge=0, maxUnavailable=1), False),
        (rolling(maxSurge=1, maxUnavailable=1), False),
        (rolling(maxSurge="1%", maxUnavailable="99%"), True),
        (rolling(maxSurge="0%", maxUnavailable="100%"), False),
        (rolling(maxSurge="25%", maxUnavailable="100%"), False),
        (rolling(maxSurge="9" * 5_000 + "%"), False),
        (rolling(maxSurge="many"), False),
    ],
)
def test_a_strategy_that_removes_the_pod_first_or_a_pause_forbids_replacement(spec, can_replace):
    assert stored(spec).can_replace is can_replace


@pytest.mark.parametrize(
    "status", [{"observedGeneration": 2}, {"updatedReplicas": 0}, {"replicas": 2}, {"availableReplicas": 0}]
)
def test_a_rollout_in_progress_forbids_replacement(status):
    assert not stored(**status).can_replace


def test_the_annotation_of_the_pod_template_is_read_and_bounded():
    template = {"metadata": {"annotations": {RESTARTED_AT: "x" * 1_000}}}
    assert stored({"template": template}).restarted_at == "x" * 64


def replica_set(*owners: dict[str, Any]) -> WorkloadObject:
    template = {"metadata": {"annotations": {RESTARTED_AT: "then"}}}
    return msgspec.convert({"metadata": {"ownerReferences": owners}, "spec": {"template": template}}, WorkloadObject)


@pytest.mark.parametrize(
    ("owner", "found"),
    [
        ({"kind": "Deployment", "uid": "u", "controller": True}, Revision("u", "then")),
        ({"kind": "Deployment", "uid": "u"}, None),
        ({"kind": "Rollout", "uid": "u", "controller": True}, None),
    ],
)
def test_a_replica_set_belongs_to_the_deployment_that_controls_it(owner, found):
    assert revision(replica_set(owner)) == found


def test_a_replica_set_without_an_owner_belongs_to_no_deployment():
    assert revision(replica_set()) is None
