"""Demands that a pod and its profiles make on a node."""

import pytest

from scheduling.scene import ABOVE, NEWER, Scene, pod, required
from taintwarden.engine.affinity import NOWHERE, NodeAffinity, NodeOperator, NodeRequirement
from taintwarden.engine.model import Profile, Toleration
from taintwarden.engine.selectors import EVERYTHING, LabelSelector, Requirement, SelectorOperator

KUBELET = NodeAffinity(((NodeRequirement("kubelet", NodeOperator.SEMVER_GT, ("1.31.99",)),),))
ANNOTATION = "annotation taintwarden.io/node-affinity"


@pytest.fixture
def scene() -> Scene:
    return Scene()


def sources(scene: Scene, **parts: object) -> list[tuple[str, NodeAffinity]]:
    return [(one.source, one.affinity) for one in scene.demands.of(pod(**parts)).affinities]


def test_a_plain_pod_has_only_native_demands(scene):
    assert scene.demands.of(pod()).is_native


def test_the_annotations_of_a_pod_are_demanded(scene):
    demand = scene.demands.of(pod(tolerations=[ABOVE], affinity=required(NEWER)))
    assert demand.tolerations.annotated == (Toleration("sla", "Gt", "950", "NoSchedule"),)
    assert [(one.source, one.affinity) for one in demand.affinities] == [(ANNOTATION, KUBELET)]


def test_pods_of_a_workload_demand_the_same(scene):
    first, second = (scene.demands.of(pod(tolerations=[ABOVE], affinity=required(NEWER))) for _ in range(2))
    assert (first, hash(first)) == (second, hash(second))


def test_profiles_that_select_the_pod_are_demanded(scene):
    gold = LabelSelector((Requirement("app", SelectorOperator.IN, ("web",)),))
    scene.profile(Profile("shop", "gold", gold, (Toleration("sla", "Gt", "990"),), KUBELET))
    scene.profile(Profile("other", "gold", EVERYTHING, (), KUBELET))
    demand = scene.demands.of(pod(app="web"))
    assert [one.value for one in demand.tolerations.extended] == ["990"]
    assert sources(scene, app="web") == [("profile gold", KUBELET)]
    assert sources(scene, app="db") == []


def test_an_invalid_affinity_matches_no_node_and_has_a_reason(scene):
    (found,) = scene.demands.of(pod(affinity="{")).affinities
    assert found.affinity == NOWHERE
    assert found.fault.startswith("metadata.annotations[taintwarden.io/node-affinity]: Invalid value: ")


def test_the_text_of_faults_is_bounded(scene):
    (found,) = scene.demands.of(pod(affinity=required(*[NEWER | {"values": ["x" * 200]}] * 16))).affinities
    assert len(found.fault) <= 403
