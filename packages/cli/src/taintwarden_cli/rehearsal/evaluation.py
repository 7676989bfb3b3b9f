"""The decisions of the operator's machine about one pod of a snapshot."""

import math
from collections.abc import Mapping
from contextlib import suppress

from taintwarden.controller.decoding.decoding import Decoder, PodIssue
from taintwarden.controller.decoding.times import moment, time_of
from taintwarden.controller.words.wording import relative, what_keeps
from taintwarden.engine.evaluate import TaintVerdict, acting_on, exclusion, node_exclusion
from taintwarden.engine.history import TaintHistory, decode_histories
from taintwarden.engine.limits import Refusal
from taintwarden.engine.limits.departures import OVERDUE_SECONDS
from taintwarden.engine.machine import ClaimView, history_name
from taintwarden.engine.model import Budget, Gates, Pod, Taint, Tolerations
from taintwarden.engine.policy import Policy
from taintwarden.kube.wire.kinds import Timestamp
from taintwarden_cli.rehearsal.manifests import BadInput
from taintwarden_cli.rehearsal.node_requirements import FullPod
from taintwarden_cli.rehearsal.rehearsal import Rehearsal, namespaced_name, stopped_clock
from taintwarden_cli.rehearsal.snapshot import Snapshot, is_kept_from_enforcing
from taintwarden_cli.rehearsal.sources import Source


class Evaluation:
    """A pod as the operator sees it, and what its machine decides. ``pod`` is None if the operator never acts on it.
    Raises BadInput if a policy selects by labels of the namespace that are not known, or a timestamp is invalid.
    """

    def __init__(self, snapshot: Snapshot, gates: Gates, rehearsal: Rehearsal, pod: FullPod) -> None:
        self.snapshot = snapshot
        self.gates = gates
        self.now = snapshot.now
        self.object = pod
        self.issues: list[PodIssue] = []
        self.pod = self._decode()
        self._view = rehearsal.view
        if self.pod is not None:  # the machine adds its devices
            uid = self.pod.uid
            self.pod = next((one for one in self._view.pods(self.pod.node) if one.uid == uid), self.pod)
        self.policies = rehearsal.policies
        self.policy_problems = rehearsal.policy_problems
        space = pod.metadata.namespace
        self.profiles = tuple(profile for profile in rehearsal.profiles if profile.namespace == space)
        named_problems = ((key.partition("/"), why) for key, why in rehearsal.profile_problems.items())
        self.profile_problems = {name: why for (namespace, _, name), why in named_problems if namespace == space}
        self.nodes = [node.node for name in sorted(self._view.nodes) if (node := self._view.node(name)) is not None]
        """The nodes of the snapshot: that of the pod, or all for a pod that is not bound."""
        self.node = next((one for one in self.nodes if one.name == pod.spec.node_name), None)
        self.dry_run_policies = {namespaced_name(one)[1] for one in snapshot.policies if is_kept_from_enforcing(one)}
        """Policies in mode Enforce that evict no pods because the operator runs with --dry-run."""
        self.namespace_labels = self._view.namespace_labels(self.object.metadata.namespace)
        self._check_namespace()
        self.recorded: Mapping[str, TaintHistory] = {}
        with suppress(ValueError):
            self.recorded = decode_histories(self.node.history) if self.node else {}

    def claims(self) -> list[ClaimView]:
        """The pod's claims, those of paused policies included: enforced ones first, then by deadline."""
        return [] if self.pod is None else list(self._view.claims(self.pod.uid))

    def taints(self) -> tuple[tuple[Taint, TaintHistory], ...]:
        """The taints of the pod's node and of its devices, with their histories."""
        node = self._view.node(self.pod.node) if self.pod else None
        if self.pod is None or node is None:
            return ()
        used = {use.device for use in self.pod.shared.devices}
        return (*node.taints, *(one for one in node.device_taints if (of := one[0].origin) and of.device in used))

    @property
    def tolerations(self) -> Tolerations:
        """All tolerations of the pod, those of profiles included."""
        return Tolerations() if self.pod is None else self._view.tolerations_of(self.pod.shared)

    def verdict(self, taint: Taint) -> TaintVerdict | None:
        """The verdict on ``taint`` for the pod; None if no policy acts on it.

        Claims of the same device may tolerate it differently: the one that evicts first counts.
        """
        if self.pod is None:
            return None
        bound_at = self.pod.bound_at
        found = [verdict for verdict in self._view.verdicts(self.pod.node, self.pod.shared) if verdict.taint == taint]
        return min(found, key=lambda verdict: verdict.evicts_at(bound_at) if verdict.evicts else math.inf, default=None)

    def acting_policy(self, taint: Taint) -> Policy | None:
        """The policy that acts on ``taint`` for the pod."""
        acting = acting_on(taint, (policy for policy in self.policies if self.refusal(policy) is None))
        return None if acting is None else acting[0]

    def refusal(self, policy: Policy) -> str | None:
        """Why ``policy`` does not act on this pod on this node, None if it does."""
        if self.node is not None:
            why = node_exclusion(policy, self.node.labels, do_not_evict=self.node.do_not_evict)
            if why is not None:
                return why
        return exclusion(policy, self.pod.shared, self.namespace_labels) if self.pod else None

    def budgets(self) -> list[tuple[Budget, Refusal | None]]:
        """The PodDisruptionBudgets that the API server checks for the pod, sorted by name, each with its refusal."""
        return [] if self.pod is None else self._view.budgets(self.pod)

    def _decode(self) -> Pod | None:
        try:
            return Decoder(stopped_clock(self.now), self.issues.append).pod(self.object)
        except ValueError as error:
            meta = self.object.metadata
            raise BadInput(f"Pod {meta.namespace}/{meta.name}: {error}") from error

    def _check_namespace(self) -> None:
        """Check that the namespace's labels are known if a policy selects by them. Without them the answer is wrong."""
        asking = [policy.name for policy in self.policies if policy.namespace_selector.requirements]
        if self.pod is not None and asking and self.namespace_labels is None:
            problem = self.snapshot.problems.get(Source.NAMESPACES, "")
            raise BadInput(f"policy {asking[0]} selects namespaces by their labels, and {problem}")

    def is_recorded(self, taint: Taint, machine_history: TaintHistory) -> bool:
        """True if the node, or the device, records when it got ``taint`` with this value."""
        history = self.recorded.get(history_name(taint))
        if history is not None:
            return history.value == taint.value
        if taint.origin is not None:
            return machine_history.added_at < self.now
        return any(one == taint and added is not None for one, added in self.node.taints) if self.node else False


def why_not_acted_on(pod: FullPod, now: float) -> str:
    """Why the operator never acts on ``pod``, which the decoder has skipped."""
    if not pod.spec.node_name:
        return "it is not bound to a node"
    if pod.metadata.deletion_timestamp is not None:
        return f"it is terminating{_grace_ends(pod, pod.metadata.deletion_timestamp, now)}"
    if pod.metadata.annotations is not None and pod.metadata.annotations.mirror is not None:
        return "it is a mirror pod, which only its node can remove"
    return f"it has finished: its phase is {pod.status.phase}"


def _grace_ends(pod: FullPod, deletion_timestamp: Timestamp, now: float) -> str:
    """The end of the grace period, which is the meaning of ``deletionTimestamp``, and what keeps the pod."""
    ends_at = time_of(deletion_timestamp, moment)
    if ends_at is None:
        return ""
    ends = "ended" if ends_at <= now else "ends"
    is_stuck = now > ends_at + OVERDUE_SECONDS
    named = f"; finalizer {', '.join(pod.metadata.finalizers)}" if pod.metadata.finalizers else ""
    why = f": {what_keeps(pod.metadata.finalizers, is_finished=pod.is_finished)}" if is_stuck else named
    return f", and its grace period {ends} at {deletion_timestamp}, {relative(ends_at, now)}{why}"
