"""Pods and templates as the webhook completed them, and nodes as the operator labels them."""

import json
from typing import Any

from admission.patching import patched
from cli.world import Json, node, pod, policy, taint, toleration
from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile
from taintwarden.controller.clock import system_clock
from taintwarden.engine import events
from taintwarden.engine.model import Taint
from taintwarden.engine.operators import ALL_GATES
from taintwarden.engine.policy import TaintSelector
from taintwarden_placement.admission.cluster_state import ClusterState
from taintwarden_placement.admission.webhooks import AdmissionRequest, GroupVersionKind
from taintwarden_placement.node_labels import neutral_labels, node_labels, version_labels
from taintwarden_placement.webhook_process import admission_webhooks

ABOVE = {"key": "sla", "operator": "Gt", "value": "950", "effect": "NoSchedule"}
EXISTS = toleration("Exists", effect="NoSchedule")
DRIVER = "example.com/driver"
NOT_THERE = neutral_labels(["sla"])
PLACES = policy("placing", taints=[{"key": "sla", "effects": [], "placement": True}])
LISTS = policy("versions", versionLabels=[DRIVER])
INJECT = {"taintwarden.io/inject": "true"}


def pending(*tolerations: Json, **more: Any) -> Json:
    return pod(*tolerations, **{"spec": {"nodeName": ""}, "status": {"phase": "Pending"}} | more)


def owned(obj: Json, kind: str = "ReplicaSet", name: str = "web-1") -> Json:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner]}}


def named(name: str, *taints: Json, **labels: str) -> Json:
    found = node(*taints, labels=labels)
    return {**found, "metadata": {**found["metadata"], "name": name, "uid": name}}


def shut(value: str) -> Json:
    return taint(value, effect="NoSchedule")


def says(value: str) -> dict[str, str]:
    """The labels of a node with this value."""
    return node_labels([Taint("sla", value, "NoSchedule")], [TaintSelector("sla", placement=True)]).labels


def numbered(**labels: str) -> Json:
    return named("a", **labels, **version_labels(labels, [DRIVER]).labels)


def newer(version: str) -> Json:
    expression = {"key": DRIVER, "operator": "SemverGt", "values": [version]}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def annotated(affinity: Json | str) -> Json:
    text = affinity if isinstance(affinity, str) else json.dumps(affinity)
    return {"taintwarden.io/node-affinity": text}


def stored(obj: Json, *world: Json) -> Json:
    """The pod, or the DaemonSet, as the webhook completed it when these policies and profiles were in force."""
    known = ClusterState()
    webhook = admission_webhooks(known, system_clock, ALL_GATES)
    policies = tuple(parse_policy(one) for one in world if one["kind"] == "TaintEvictionPolicy")
    known.feed(events.PoliciesChanged(policies))
    for one in world:
        if one["kind"] == "TolerationProfile":
            known.feed(events.ProfileSeen(parse_profile(one)))
    kind = (
        GroupVersionKind("apps", "v1", "DaemonSet") if obj["kind"] == "DaemonSet" else GroupVersionKind("", "v1", "Pod")
    )
    return patched(
        obj, webhook.mutate(AdmissionRequest(uid="u", kind=kind, name="web", namespace="shop", object=obj)).patch
    )
