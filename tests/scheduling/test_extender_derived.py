"""The scheduler extender counts taints that policies derive, which schedulers do not know."""

from typing import Any

import msgspec
import pytest

from scheduling.scene import Scene, pod_json
from taintwarden.engine.model import Effect, NodeInfo, SourceKind, ValueSource
from taintwarden.engine.policy import Mode, Policy, TaintSelector
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden_placement.scheduling.demands import UnboundPod
from taintwarden_placement.scheduling.extender import ExtenderArgs, SchedulerExtender
from taintwarden_placement.scheduling.node_filters import MAX_TAINTS, NodeReader

KUBELET = ValueSource(SourceKind.NODE_INFO, NodeInfo.KUBELET_VERSION)
NEWER = {"key": "kubelet", "operator": "SemverGt", "value": "1.35.0"}
OLD, NEW = "v1.34.1", "v1.36.1"


def reader(*effects: Effect) -> NodeReader:
    found = NodeReader()
    found.set_policies([Policy(name="p", taints=(TaintSelector("kubelet", effects, source=KUBELET),))])
    return found


def node(version: str, *taints: Any, labels: Any = ()) -> NodeObject:
    status = {"nodeInfo": {"kubeletVersion": version}}
    body = {"metadata": {"labels": dict(labels)}, "spec": {"taints": list(taints)}, "status": status}
    return msgspec.convert(body, NodeObject)


@pytest.fixture
def scene() -> Scene:
    """A node with an old kubelet, and one with a new kubelet."""
    found, read = Scene(), reader(Effect.NO_EXECUTE)
    found.nodes |= {"old": read(node(OLD)), "new": read(node(NEW))}
    found.extender = SchedulerExtender(
        found.nodes.get,
        found.demands,
        found.filters,
        found.node_changes,
        lambda *_: None,
        derived=lambda: read.derived,
        shows_values=True,
    )
    return found


async def fitting(scene: Scene, **pod: Any) -> list[str] | None:
    asked = msgspec.convert(pod_json(native=pod.pop("native", ()), **pod), UnboundPod)
    return (await scene.extender.filter(ExtenderArgs(asked, ["old", "new"]))).node_names


async def test_a_pod_that_compares_fits_only_the_new_kubelet(scene):
    assert await fitting(scene, tolerations=[NEWER]) == ["new"]


async def test_a_native_toleration_is_compared_too(scene):
    native = [{"key": "kubelet", "operator": "Equal", "value": NEW}]
    assert await fitting(scene, native=native) == ["new"]


async def test_another_pod_fits_both_nodes(scene):
    assert await fitting(scene) == ["old", "new"]
    assert await fitting(scene, tolerations=[{"key": "sla", "operator": "Exists"}]) == ["old", "new"]


def test_a_taint_of_the_spec_counts_instead():
    facts = reader(Effect.NO_EXECUTE, Effect.NO_SCHEDULE)(
        node(OLD, {"key": "kubelet", "value": "v9", "effect": "NoExecute"})
    )
    assert [str(taint) for taint in facts.taints] == ["kubelet=v9:NoExecute", f"kubelet={OLD}:NoSchedule"]


def test_a_derived_taint_may_have_the_effect_prefer_no_schedule():
    facts = reader(Effect.PREFER_NO_SCHEDULE)(node(OLD))
    assert [str(taint) for taint in facts.taints] == [f"kubelet={OLD}:PreferNoSchedule"]


@pytest.mark.parametrize("mode", [Mode.DRY_RUN, Mode.PAUSED])
def test_a_policy_that_does_not_enforce_restricts_no_pod(mode):
    found = NodeReader()
    found.set_policies([Policy(name="p", taints=(TaintSelector("kubelet", source=KUBELET),), mode=mode)])
    assert (found(node(OLD)).taints, found.derived) == ((), {})


def test_a_node_that_the_policy_does_not_select_has_no_derived_taint():
    spot = LabelSelector((Requirement("spot", SelectorOperator.EXISTS),))
    found = NodeReader()
    assert found.set_policies(
        [Policy(name="p", taints=(TaintSelector("kubelet", source=KUBELET),), node_selector=spot)]
    )
    assert found(node(OLD)).taints == ()
    assert found(node(OLD, labels={"spot": "yes"})).taints != ()


def test_equal_taints_are_one_object_until_there_are_too_many():
    found = NodeReader()
    [taint] = found(node(OLD, {"key": "a", "effect": "NoSchedule"})).taints
    assert found(node(NEW, {"key": "a", "effect": "NoSchedule"})).taints[0] is taint
    for number in range(MAX_TAINTS):
        found(node(OLD, {"key": f"k{number}", "effect": "NoSchedule"}))
    assert found(node(NEW, {"key": "a", "effect": "NoSchedule"})).taints[0] is not taint


def test_nodes_are_read_again_only_for_other_taints_or_other_nodes():
    policy, found = Policy(name="p", taints=(TaintSelector("kubelet", source=KUBELET),)), NodeReader()
    assert found.set_policies([policy])
    assert not found.set_policies([msgspec.structs.replace(policy, generation=2)])
    assert found.set_policies([msgspec.structs.replace(policy, mode=Mode.DRY_RUN)])
