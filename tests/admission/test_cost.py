"""Reviews as large and as hostile as tenants may send them: each is answered in tens of thousands of steps."""

import json

import msgspec
import pytest

from admission.workloads import ANNOTATION, Json, review
from taintwarden.controller.clock import system_clock
from taintwarden.engine import events
from taintwarden.engine.affinity import NodeAffinity, NodeOperator, NodeRequirement
from taintwarden.engine.model import Profile
from taintwarden.engine.operators import ALL_GATES
from taintwarden.engine.policy import Policy, TaintSelector
from taintwarden.engine.selectors import EVERYTHING
from taintwarden_placement.admission.cluster_state import ClusterState
from taintwarden_placement.admission.webhooks import AdmissionRequest, AdmissionWebhooks
from taintwarden_placement.serving.reviews import MAX_BODY_BYTES, Review
from taintwarden_placement.webhook_process import admission_webhooks
from work import steps

MOST_STEPS = 60_000
"""With decoding: a few milliseconds. What is read by C, a megabyte of JSON at most, takes tens more."""
EXTENDED = json.dumps([{"key": f"k{n}", "operator": "Gt", "value": str(n), "effect": "NoExecute"} for n in range(100)])
POD = {"group": "", "version": "v1", "kind": "Pod"}
AFFINITY = "taintwarden.io/node-affinity"
TERM = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
FAULTY = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["!"] * 32}] * 16}
VERSION = {"matchExpressions": [{"key": "a", "operator": "SemverGt", "values": ["1.0"]}]}


def pod(*, annotations: Json | None = None, labels: Json | None = None, **spec: object) -> Json:
    annotations = {ANNOTATION: EXTENDED} if annotations is None else annotations
    return {"metadata": {"name": "web", "annotations": annotations, "labels": labels or {}}, "spec": spec}


def required(terms: list[Json]) -> Json:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


HOSTILE = {
    "80,000 tolerations": pod(tolerations=[{"key": "a"}] * 80_000),
    "a thousand tolerations": pod(tolerations=[{"key": f"a{n}", "operator": "Exists"} for n in range(1_000)]),
    "labels": pod(labels={f"k{n}": "v" * 63 for n in range(10_000)}),
    "environment": pod(containers=[{"env": [{"name": "a"}] * 60_000}]),
    "unknown annotations": pod(annotations={f"taintwarden.io/x{n}": "1" for n in range(9_000)}),
    "node affinity in the annotation": pod(
        annotations={AFFINITY: json.dumps(required([VERSION] * 10_000)["nodeAffinity"])}
    ),
    "faults of node affinity in the annotation": pod(
        annotations={AFFINITY: json.dumps(required([FAULTY] * 16)["nodeAffinity"], separators=(",", ":"))}
    ),
    "terms of node affinity that multiply": pod(
        affinity=required([TERM] * 60), annotations={AFFINITY: json.dumps(required([VERSION] * 16)["nodeAffinity"])}
    ),
    "terms of affinity": pod(affinity=required([TERM] * 15_000)),
    "terms that multiply": pod(affinity=required([TERM] * 60)),
}


def decode(body: bytes) -> AdmissionRequest:
    return msgspec.json.decode(body, type=Review).request


@pytest.fixture(scope="module")
def webhook() -> AdmissionWebhooks:
    known = ClusterState()
    taints = tuple(TaintSelector(f"k{n}", placement=True) for n in range(10))
    known.feed(events.PoliciesChanged((Policy(name="p", taints=taints),)))
    return admission_webhooks(known, system_clock, ALL_GATES)


@pytest.mark.parametrize("review_of", ["validate", "mutate"])
@pytest.mark.parametrize("obj", HOSTILE.values(), ids=list(HOSTILE))
def test_a_hostile_pod_costs_little(webhook, obj, review_of):
    body = json.dumps(review(kind=POD, object=obj), separators=(",", ":")).encode()
    assert len(body) < MAX_BODY_BYTES
    assert steps(lambda: getattr(webhook, review_of)(decode(body))) < MOST_STEPS


def test_a_pod_with_more_tolerations_than_count_is_allowed_with_a_warning(webhook):
    body = json.dumps(review(kind=POD, object=HOSTILE["80,000 tolerations"]), separators=(",", ":")).encode()
    request = decode(body)
    for response in (webhook.validate(request), webhook.mutate(request)):
        assert not response.refusals
        assert not response.patch
        text = "spec.tolerations has 80000 items, more than 250: the pod is too large to be checked"
        assert response.warnings == (text,)


def test_pod_with_the_most_tolerations_is_checked(webhook):
    given = pod(tolerations=[{"key": "a", "operator": "Exists"}] * 250)
    request = decode(json.dumps(review(kind=POD, object=given)).encode())
    assert not any("too large" in told for told in webhook.validate(request).warnings)


def test_many_affinities_of_profiles_are_prepared_once_for_all_terms():
    known = ClusterState()
    known.feed(events.NamespaceSeen("shop", {"taintwarden.io/inject": "true"}))
    for number in range(300):
        affinity = NodeAffinity(((NodeRequirement(f"l{number}", NodeOperator.EXISTS),),))
        known.feed(events.ProfileSeen(Profile("shop", f"p{number}", EVERYTHING, (), affinity)))
    webhook = admission_webhooks(known, system_clock, ALL_GATES)
    body = json.dumps(review(kind=POD, object=pod(affinity=required([TERM] * 64)))).encode()
    assert steps(lambda: webhook.mutate(decode(body))) < 450_000
