"""The input of every check: a snapshot, and the view of an operator's machine that was fed with it."""

from collections.abc import Iterator
from functools import cached_property

from taintwarden.api.node_affinity import AFFINITY_ANNOTATION
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.machine import NodeView
from taintwarden.engine.model import Gates, PodClass, Taint, Toleration
from taintwarden.engine.operators import Operator
from taintwarden.engine.policy import Policy
from taintwarden_cli.doctor.doctor_snapshot import DoctorSnapshot, WebhookConfiguration
from taintwarden_cli.doctor.inventory import PodGroup
from taintwarden_cli.rehearsal.node_candidates import UnscheduledPod, UnscheduledPods
from taintwarden_cli.rehearsal.rehearsal import namespaced_name, rehearse
from taintwarden_cli.rehearsal.snapshot import FullBudget
from taintwarden_cli.status.lasting_problems import why_never_allows
from taintwarden_cli.status.policy_status import PolicySummary, summarize
from taintwarden_cli.status.problems import RIGHTS_REMEDY, Problem, ProblemKind
from taintwarden_placement.admission.own_objects import INJECT

_CHECKED = (ProblemKind.NEVER, ProblemKind.INVALID, ProblemKind.NO_NODE)
"""Kinds of problems that other checks report."""


def is_of_taintwarden(configuration: WebhookConfiguration) -> bool:
    """True if the configuration has webhooks of Taintwarden, whatever its own name."""
    return any(webhook.name.endswith(".taintwarden.io") for webhook in configuration.webhooks)


class Context:
    """A snapshot, and the operator's decisions on it. Checks read nothing else.

    ``gates``: the enabled toleration operators, if the Deployment of Taintwarden is not known.
    """

    def __init__(self, snapshot: DoctorSnapshot, gates: Gates) -> None:
        self.snapshot = snapshot
        self.gates = snapshot.operator.gates if snapshot.operator else gates
        rehearsal = rehearse(snapshot, self.gates)
        self.view = rehearsal.view
        self.groups = snapshot.groups
        """Pods and templates by owner."""
        self.unscheduled_pods = UnscheduledPods(rehearsal, self.gates)
        self.policies, self.policy_problems = rehearsal.policies, rehearsal.policy_problems
        self.profiles, self.profile_problems = rehearsal.profiles, rehearsal.profile_problems
        self._verdicts: dict[tuple[str, PodClass], tuple[TaintVerdict, ...]] = {}
        self._budgets = {f"{budget.metadata.namespace}/{budget.metadata.name}": budget for budget in snapshot.budgets}
        self.opted_in = [one.metadata.name for one in snapshot.namespaces if one.metadata.labels.get(INJECT) == "true"]
        """The namespaces that have injection enabled."""
        self.mutating = next(filter(is_of_taintwarden, snapshot.mutating), None)
        """Taintwarden's MutatingWebhookConfiguration; None if it does not exist."""

    @cached_property
    def summaries(self) -> list[PolicySummary]:
        """The summary of each policy, with the findings of the inspection."""
        stored = [one for one in self.snapshot.policies if namespaced_name(one)[1]]
        found = summarize(stored, (), self.snapshot.now).policies
        for policy in found:
            if (more := self.snapshot.findings.get(policy.name)) is not None:
                policy.add_findings(more)
        return found

    def has_check_of_its_own(self, policy: PolicySummary, problem: Problem) -> bool:
        """True if another check reports the problem in more detail, such as budgets that never allow an eviction."""
        budgets = [self._budgets.get(str(one)) for one in policy.status.blocked_budgets] or [None]
        never_allow = all(budget is not None and why_never_allows(budget) for budget in budgets)
        is_about_rights = problem.remedy == RIGHTS_REMEDY and self.snapshot.rights is not None
        return problem.kind in _CHECKED or is_about_rights or (problem.kind is ProblemKind.BUDGET and never_allow)

    @property
    def running_groups(self) -> Iterator[PodGroup]:
        """The groups with pods on nodes."""
        return (group for group in self.groups if not group.template)

    @cached_property
    def nodes(self) -> dict[str, NodeView]:
        """The nodes in the operator's machine, by name."""
        return {name: node for name in self.view.nodes if (node := self.view.node(name)) is not None}

    @cached_property
    def taints(self) -> dict[Taint, list[str]]:
        """Taint -> names of the nodes that have it."""
        found: dict[Taint, list[str]] = {}
        for name, node in self.nodes.items():
            for taint, _ in node.taints:
                found.setdefault(taint, []).append(name)
        return found

    def verdicts(self, node: str, group: PodGroup) -> tuple[TaintVerdict, ...]:
        """The verdicts on pods of a group, assuming that they run on the node."""
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

    def unscheduled_pod(self, group: PodGroup) -> UnscheduledPod:
        """A replacement pod of the group, with the native tolerations that the webhook injects."""
        shape = group.shape
        extended = self.view.tolerations_of(shape.pod_class).extended if self.injects(group) else ()
        natives = tuple(Toleration(toleration.key, Operator.EXISTS) for toleration in extended if toleration.key)
        text = dict(shape.annotations).get(AFFINITY_ANNOTATION)
        return self.unscheduled_pods.of_class(shape.pod_class, shape.node_requirements, text, natives)

    def injects(self, group: PodGroup) -> bool:
        """True if the webhook adds missing native tolerations to new pods of the group."""
        declined = group.pod_class.labels.get(INJECT) == "false"
        return not declined and self.mutating is not None and group.pod_class.namespace in self.opted_in

    def budgets(self, group: PodGroup) -> list[FullBudget]:
        """The PodDisruptionBudgets that select a group's pods, sorted by name."""
        return [self._budgets[str(budget)] for budget in self.view.budgets_of(group.pod_class)]

    def evicting_policies(self, group: PodGroup) -> list[Policy]:
        """The policies that may evict the group's pods from their nodes."""
        here = [self.nodes[name] for name in group.pods if name in self.nodes]
        policies = self.view.policies_for(group.pod_class)
        return [policy for policy in policies if any(policy in node.policies for node in here)]
