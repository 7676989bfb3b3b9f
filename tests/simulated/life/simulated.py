"""A town in simulated time: the real machine, the real webhook, and a scheduler and controllers that are simple."""

import json
from typing import Any

from admission.patching import patched
from limits_off import LIMITS_OFF
from simulated.cluster import Simulation
from simulated.life.life import matches, true_labels
from simulated.life.town import REQUIRED, Json
from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile
from taintwarden.controller.clock import system_clock
from taintwarden.engine import events
from taintwarden.engine.model import Gates, Node, Taint, Toleration
from taintwarden.engine.operators import ALL_GATES, Match, match
from taintwarden_cli.explain.explaining import explain
from taintwarden_cli.rehearsal.files import snapshot_from_files
from taintwarden_cli.rehearsal.manifests import Document
from taintwarden_placement.admission.cluster_state import ClusterState
from taintwarden_placement.admission.webhooks import AdmissionRequest, GroupVersionKind
from taintwarden_placement.node_labels import wanted_labels
from taintwarden_placement.node_labels.names import LabelSubject, subjects_of
from taintwarden_placement.webhook_process import admission_webhooks

NAMESPACE = "default"
SETTLE_SECONDS = 40.0
POOL = {"pool": "town"}
"""Labels that pods select: there are also nodes without them."""
REPELLING = ("NoSchedule", "NoExecute")


class SimulatedTown:
    """See :class:`Town`."""

    key = "sla"
    namespace = NAMESPACE

    def __init__(self) -> None:
        self.sim = Simulation(())
        self.sim.kubelet = lambda pod: (0.0, 0.0)
        self._policy: Json | None = None
        self._profile: Json | None = None
        self._inject = False
        self._webhook = True
        self.has_operator = True
        self._templates: dict[str, str | None] = {}
        self._number = 0
        self._mismatches: list[str] = []
        self._seen: dict[str, Json] = {}
        """The labels of each node before the last change."""
        self._labelled: dict[str, tuple[Any, ...]] = {}
        """Node -> its labels and taints, and the policies, when it last needed no other labels."""
        self.known = ClusterState()
        self.door = admission_webhooks(self.known, system_clock, ALL_GATES)
        foreign = [{"key": self.key, "value": "999", "effect": "NoExecute"}]
        self.sim.create_node("foreign", foreign, labels={"pool": "other"})
        self.sim.start()

    # -- what happens ------------------------------------------------------------------------------------------------

    def set_taint(self, node: str, value: str | None, effect: str) -> None:
        taints = [] if value is None else [{"key": self.key, "value": value, "effect": effect}]
        self.sim.set_taints(node, taints)
        self._look()

    def add_node(self, value: str | None, effect: str) -> str:
        self._number += 1
        name = f"n{self._number}"
        taints = [] if value is None else [{"key": self.key, "value": value, "effect": effect}]
        self.sim.create_node(name, taints, labels=dict(POOL))
        return name

    def remove_node(self, node: str) -> None:
        self.sim.delete_node(node)
        for key, pod in list(self.sim.pods.items()):
            if pod["spec"]["nodeName"] == node:
                self.sim.delete_pod(key)
        self._seen.pop(node, None)

    def set_policy(self, spec: Json | None) -> None:
        head = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy"}
        meta = {"name": "p", "uid": "p", "generation": 1}
        whole = {**head, "metadata": meta, "spec": {"limits": LIMITS_OFF, **(spec or {})}}
        self._policy = None if spec is None else whole
        parsed = () if spec is None else (parse_policy(whole),)
        self.known.feed(events.PoliciesChanged(parsed))
        self.sim.change_policies(parsed)

    def set_profile(self, value: str | None) -> None:
        if value is None:
            self._profile = None
            self.known.feed(events.ProfileGone(NAMESPACE, "p"))
            self.sim.feed(events.ProfileGone(NAMESPACE, "p"))
            return
        head = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TolerationProfile"}
        spec = {"tolerations": [self._above(value)]}
        self._profile = {**head, "metadata": {"name": "p", "namespace": NAMESPACE}, "spec": spec}
        seen = events.ProfileSeen(parse_profile(self._profile))
        self.known.feed(seen)
        self.sim.feed(seen)

    def _above(self, value: str) -> Json:
        return {"key": self.key, "operator": "Gt", "value": value}

    def set_injection(self, *, on: bool) -> None:
        self._inject = on

    def set_webhook(self, *, on: bool) -> None:
        self._webhook = on

    def set_operator(self, *, on: bool) -> None:
        if on and not self.has_operator:
            self.sim.start()
            if self._profile is not None:
                self.sim.feed(events.ProfileSeen(parse_profile(self._profile)))
        elif self.has_operator and not on:
            self.sim.kill()
        self.has_operator = on

    def create(self, name: str, value: str | None) -> None:
        self._templates[name] = value
        self._create_pods()

    def delete(self, name: str) -> None:
        del self._templates[name]
        if f"{NAMESPACE}/{name}" in self.sim.pods:
            self.sim.delete_pod(f"{NAMESPACE}/{name}")

    def delete_pod(self, name: str) -> None:
        if f"{NAMESPACE}/{name}" in self.sim.pods:
            self.sim.delete_pod(f"{NAMESPACE}/{name}")
        self._create_pods()

    def remove_labels(self) -> bool:
        """Remove the labels unless something names them, as the command does."""
        kept = LabelSubject(self.key)
        named = any(kept in _named(pod) for pod in self.sim.pods.values())
        placing = self._policy is not None and self._policy["spec"]["taints"][0].get("placement")
        if named or placing:
            return False
        for name in list(self.sim.nodes):
            labels = self.sim.nodes[name]["metadata"]["labels"]
            rest = {one: text for one, text in labels.items() if kept not in subjects_of([one])}
            if rest != labels:
                self.sim.set_labels(name, rest)
                self.sim.run(self.sim.at + 0.02)
        self._look()
        return True

    # -- controllers, kubelets and the scheduler ----------------------------------------------------------------------

    def settle(self) -> None:
        end = self.sim.at + SETTLE_SECONDS
        while self.sim.at < end:
            self.sim.run(self.sim.at + 0.5)
            self._label()
            self._look()
            self._create_pods()
            self._schedule()

    def _label(self) -> None:
        """Set the labels at once, as the operator's labeller does."""
        for name, node in list(self.sim.nodes.items()) if self.has_operator else ():
            labels = node["metadata"]["labels"]
            state = (self.sim.policies, list(node["spec"]["taints"]), dict(labels))
            if self._labelled.get(name) == state:
                continue
            taints = tuple((Taint(one["key"], one["value"], one["effect"]), None) for one in node["spec"]["taints"])
            wanted = wanted_labels(Node(name, name, labels, taints, 1), self.sim.policies).applied_to(labels)
            if wanted != labels:
                self.sim.set_labels(name, wanted)
            else:
                self._labelled[name] = state

    def _create_pods(self) -> None:
        for name, value in self._templates.items():
            if f"{NAMESPACE}/{name}" in self.sim.pods:
                continue
            annotations = {} if value is None else {"taintwarden.io/tolerations": json.dumps([self._above(value)])}
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
            metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations, "ownerReferences": [owner]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeSelector": dict(POOL)}}
            if self._webhook and self._inject:
                asked = AdmissionRequest(
                    uid="u", kind=GroupVersionKind("", "v1", "Pod"), name=name, namespace=NAMESPACE, object=pod
                )
                pod = patched(pod, self.door.mutate(asked).patch)
            spec = pod["spec"]
            self.sim.create_pod(
                name, "", spec.get("tolerations", ()), annotations=annotations, owners=[owner], phase="Pending"
            )
            self.sim.pods[f"{NAMESPACE}/{name}"]["spec"] |= {
                field: spec[field] for field in ("affinity", "nodeSelector") if field in spec
            }

    def _schedule(self) -> None:
        for key, pod in list(self.sim.pods.items()):
            if pod["spec"]["nodeName"] or "deletionTimestamp" in pod["metadata"]:
                continue
            node = next((name for name, node in sorted(self.sim.nodes.items()) if _suits(pod, node)), None)
            if node is None:
                message = {"type": "PodScheduled", "status": "False", "message": "0 nodes are available"}
                pod["status"]["conditions"] = [message]
            else:
                pod["status"]["phase"] = "Running"
                self.sim.bind_pod(key, node)

    def _look(self) -> None:
        """Which pods have stopped matching their node, although what the taints say would match."""
        for name, node in self.sim.nodes.items():
            before, labels = self._seen.get(name), node["metadata"]["labels"]
            if before == labels:
                continue
            for pod in self.sim.pods.values():
                stopped = before is not None and matches(pod, before) and not matches(pod, labels)
                if pod["spec"]["nodeName"] == name and stopped and matches(pod, true_labels(node, self.key)):
                    self._mismatches.append(f"{pod['metadata']['name']} on {name}: {before} -> {labels}")
            self._seen[name] = dict(labels)

    # -- what is seen -------------------------------------------------------------------------------------------------

    def nodes(self) -> dict[str, Json]:
        return {name: node for name, node in self.sim.nodes.items() if name != "foreign"}

    def pods(self) -> dict[str, Json]:
        alive = (pod for pod in self.sim.pods.values() if "deletionTimestamp" not in pod["metadata"])
        return {pod["metadata"]["name"]: pod for pod in alive}

    def mismatches(self) -> list[str]:
        return self._mismatches

    def explain(self, name: str) -> tuple[str, str]:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {}}}
        namespace["metadata"]["labels"] = {"taintwarden.io/inject": str(self._inject).lower()}
        nodes = [{"apiVersion": "v1", "kind": "Node", **node} for node in self.sim.nodes.values()]
        pod = {"apiVersion": "v1", "kind": "Pod", **self.sim.pods[f"{NAMESPACE}/{name}"]}
        ours = [one for one in (self._policy, self._profile) if one is not None]
        documents = [Document("town", index, 1, one) for index, one in enumerate([pod, namespace, *nodes, *ours], 1)]
        answer = explain(snapshot_from_files(documents, NAMESPACE, name, self.sim.instant.wall), Gates())
        return answer.reason, answer.remedy or ""


def _named(pod: Json) -> set[LabelSubject]:
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
    keys = [one["key"] for term in required.get("nodeSelectorTerms", ()) for one in term.get("matchExpressions", ())]
    return set(subjects_of(keys))


def _suits(pod: Json, node: Json) -> bool:
    """The scheduler's plugins for taints and node affinity."""
    labels = node["metadata"]["labels"]
    native = [Toleration(**_snake(one)) for one in pod["spec"].get("tolerations") or ()]
    taints = (Taint(one["key"], one["value"], one["effect"]) for one in node["spec"]["taints"])
    repelled = any(
        not any(match(one, taint) is Match.HOLDS for one in native) for taint in taints if taint.effect in REPELLING
    )
    selects = all(labels.get(name) == value for name, value in (pod["spec"].get("nodeSelector") or {}).items())
    return not repelled and selects and matches(pod, labels)


def _snake(one: Json) -> dict[str, Any]:
    return {name: one.get(name, "") for name in ("key", "operator", "value", "effect")}
