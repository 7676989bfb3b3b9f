"""The input of every check: a snapshot, and the view of the operator's machine that is fed from it."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from taintwarden.api.node_affinity import AFFINITY_ANNOTATION
from taintwarden.api.placement_labels import Kept, keys_of
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.machine import NodeView
from taintwarden.engine.model import Gates, PodClass, Policy, Taint
from taintwarden_cli.doctor.doctor_snapshot import DoctorSnapshot, FullBudget, WebhookConfiguration
from taintwarden_cli.doctor.inventory import PendingPods, PodGroup
from taintwarden_cli.rehearsal.node_candidates import Candidate, Candidates
from taintwarden_cli.rehearsal.pending import PendingDiagnosis, diagnose
from taintwarden_cli.rehearsal.rehearsal import Rehearsal, at_once, named
from taintwarden_cli.status.policy_status import PolicySummary, summarize
from taintwarden_placement.admission.own_objects import INJECT

OURS = "taintwarden.io"
"""How the names of our webhooks end, whatever their configurations are called."""


def is_ours(configuration: WebhookConfiguration) -> bool:
    """Whether it is a configuration of ours."""
    return any(webhook.name.endswith(f".{OURS}") for webhook in configuration.webhooks)


class Context:
    """A snapshot, and the operator's decisions on it. Checks read nothing else.

    Args:
        snapshot: the objects of the cluster.
        gates: which operators are enabled, if the operator's Deployment does not specify it.

    """

    def __init__(self, snapshot: DoctorSnapshot, gates: Gates) -> None:
        self.snapshot = snapshot
        self.gates = snapshot.operator.gates if snapshot.operator else gates
        rehearsal = Rehearsal(snapshot, self.gates, at_once(snapshot.now))
        rehearsal.teach()
        self.view = rehearsal.view
        self.candidates = Candidates(snapshot, rehearsal, self.gates)
        self.policies, self.policy_problems = rehearsal.policies, rehearsal.policy_problems
        self.profiles, self.profile_problems = rehearsal.profiles, rehearsal.profile_problems
        self._verdicts: dict[tuple[str, PodClass], tuple[TaintVerdict, ...]] = {}
        self._budgets = {f"{one.metadata.namespace}/{one.metadata.name}": one for one in snapshot.budgets}
        self.opted_in = [one.metadata.name for one in snapshot.namespaces if one.metadata.labels.get(INJECT) == "true"]
        """The namespaces that have injection enabled."""
        self.mutating = next(filter(is_ours, snapshot.mutating), None)
        """Our MutatingWebhookConfiguration, if it exists."""

    @cached_property
    def summaries(self) -> list[PolicySummary]:
        """The status of each policy, summarized."""
        stored = [one for one in self.snapshot.policies if named(one)[1]]
        return summarize(stored, (), self.snapshot.now).policies

    @property
    def halted(self) -> set[str]:
        """The policies that a tripped guard, zones that are all Full or a pause stops while pods have deadlines."""
        return {one.name for one in self.summaries if one.is_halted or (one.is_paused and one.status.pending)}

    @property
    def groups(self) -> Sequence[PodGroup]:
        """Pods and templates by owner."""
        return self.snapshot.groups

    @property
    def running(self) -> Iterator[PodGroup]:
        """The groups with pods on nodes."""
        return (group for group in self.groups if not group.template)

    @cached_property
    def nodes(self) -> dict[str, NodeView]:
        """The nodes as the operator's machine has them, by name."""
        return {name: node for name in self.view.nodes if (node := self.view.node(name)) is not None}

    @cached_property
    def carried(self) -> frozenset[Kept]:
        """The keys whose labels of placement nodes carry."""
        return frozenset(kept for node in self.nodes.values() for kept in keys_of(node.node.labels))

    @cached_property
    def taints(self) -> dict[Taint, list[str]]:
        """Every taint of any node, with its nodes."""
        found: dict[Taint, list[str]] = {}
        for name, node in self.nodes.items():
            for taint, _ in node.taints:
                found.setdefault(taint, []).append(name)
        return found

    def verdicts(self, node: str, group: PodGroup) -> tuple[TaintVerdict, ...]:
        """The verdicts on pods of a group if they were on a node."""
        key = (node, group.pod_class)
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = self.view.verdicts(node, group.pod_class)
        return found

    def evaluated(self, group: PodGroup) -> Iterator[tuple[str, int, tuple[TaintVerdict, ...]]]:
        """The verdicts on a group's pods, with each node and the number of pods on it."""
        for name, count in sorted(group.pods.items()):
            if name in self.nodes:
                yield name, count, self.verdicts(name, group)

    @cached_property
    def pending(self) -> list[tuple[PendingPods, PendingDiagnosis]]:
        """The pods for which the scheduler found no node, each with why."""
        nodes = [view.node for view in self.nodes.values()]
        found: list[tuple[PendingPods, PendingDiagnosis]] = []
        for pods in self.snapshot.pending:
            candidate = self.candidates.of(pods.pod)
            labels = self.view.namespace_labels(pods.pod.metadata.namespace) or {}
            found.append((pods, diagnose(pods.pod, candidate, candidate.distinct(nodes), labels, len(nodes))))
        return found

    def written(self, group: PodGroup) -> Candidate:
        """A pod of a group, as it is stored or would be created."""
        shape = group.shape
        text = dict(shape.annotations).get(AFFINITY_ANNOTATION)
        return self.candidates.of_class(shape.pod_class, shape.place, text)

    def injects(self, group: PodGroup) -> bool:
        """Whether new pods of the group get missing native tolerations."""
        declined = group.pod_class.labels.get(INJECT) == "false"
        return not declined and self.mutating is not None and group.pod_class.namespace in self.opted_in

    def budgets(self, group: PodGroup) -> list[FullBudget]:
        """The PodDisruptionBudgets that select a group's pods, by name."""
        found = (self._budgets[str(one)] for one in self.view.budgets_of(group.pod_class))
        return [one for one in found if isinstance(one, FullBudget)]

    def selecting(self, policy: Policy) -> list[str]:
        """The nodes that a policy acts on."""
        return [name for name, node in self.nodes.items() if policy in node.policies]

    def may_leave(self, group: PodGroup) -> list[Policy]:
        """The policies that may evict the group's pods from their nodes."""
        here = [self.nodes[name] for name in group.pods if name in self.nodes]
        policies = self.view.policies_for(group.pod_class)
        return [policy for policy in policies if any(policy in node.policies for node in here)]
