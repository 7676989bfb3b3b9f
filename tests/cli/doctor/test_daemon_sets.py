"""Templates of DaemonSets, by which alone their controller decides."""

import json

import pytest

from cli.doctor.scene import asking, workload
from cli.placed import ABOVE, EXISTS, INJECT, NOT_THERE, PLACES, named, says, shut, stored
from cli.world import namespace, policy

incomplete = asking("daemonset-incomplete")
INJECTED = namespace(**INJECT)
WEBHOOK = {"kind": "MutatingWebhookConfiguration", "metadata": {}, "webhooks": [{"name": "pods.mutate.taintwarden.io"}]}
NODE = named("a", shut("980"), **says("980"))


def agent(*tolerations, extended=(ABOVE,)):
    metadata = {"annotations": {"taintwarden.io/tolerations": json.dumps(extended)}}
    return workload("DaemonSet", "agent", {"metadata": metadata, "spec": {"tolerations": list(tolerations)}})


def found(*world, node=NODE):
    [only] = incomplete(*world, node)
    return only.message, only.remedy


def test_a_template_without_native_tolerations_in_a_namespace_with_injection():
    message, remedy = found(agent(), PLACES, INJECTED, WEBHOOK)
    assert message.startswith("its template has no native toleration for sla")
    assert remedy == "kubectl rollout restart daemonset/agent -n shop"


def test_a_template_that_keeps_pods_off_no_node():
    message, remedy = found(agent(EXISTS), PLACES, namespace(), WEBHOOK)
    assert message == "nothing in its template keeps pods off nodes whose value of sla is not tolerated"
    assert remedy.startswith("kubectl label namespace shop taintwarden.io/inject=true; then kubectl rollout restart")


def test_a_key_that_no_policy_places_by():
    _, remedy = found(agent(EXISTS), policy(), INJECTED, WEBHOOK)
    assert remedy.startswith("set placement for sla in a policy; then kubectl rollout restart")


def test_a_template_of_an_earlier_toleration():
    """The webhook was away when its author changed it."""
    completed = stored(agent(), PLACES)
    text = json.dumps([{**ABOVE, "value": "990"}])
    completed["spec"]["template"]["metadata"]["annotations"]["taintwarden.io/tolerations"] = text
    message, remedy = found(completed, PLACES, INJECTED, WEBHOOK)
    assert message.endswith("is not the one that it would get now, for sla")
    assert remedy == "kubectl rollout restart daemonset/agent -n shop"


def test_a_template_that_names_labels_which_no_node_has():
    message, _ = found(stored(agent(), PLACES), policy(), INJECTED, WEBHOOK, node=named("a", shut("980")))
    assert "for sla" in message


@pytest.mark.parametrize(
    "world",
    [
        (stored(agent(), PLACES), PLACES, INJECTED, WEBHOOK),
        (stored(agent(), PLACES), policy(), INJECTED, WEBHOOK, named("b", **NOT_THERE)),
        (agent(), PLACES, namespace(), WEBHOOK),
        (agent(extended=[{"key": "sla", "operator": "Exists"}]), policy(), namespace()),
    ],
)
def test_templates_about_which_there_is_nothing_to_say_here(world):
    """Without native tolerations and injection, another check finds it."""
    nodes = [] if any(one["kind"] == "Node" for one in world) else [NODE]
    assert incomplete(*world, *nodes) == []
