"""Puts the facts about a pod through the operator's own translation and machine."""

from collections.abc import Iterable, Mapping

import msgspec

from taintwarden.cli.conditions import is_kept_from_enforcing
from taintwarden.cli.facts import Facts
from taintwarden.cli.manifests import BadInput
from taintwarden.controller.cache import PodIssue, Translator
from taintwarden.controller.policies import PolicyBook
from taintwarden.controller.profiles import ProfileBook
from taintwarden.engine.evaluate import TaintVerdict, acting_policy, exclusion, selects_node
from taintwarden.engine.history import TaintHistory, decode_histories
from taintwarden.engine.machine import Machine, events
from taintwarden.engine.machine.events import Event
from taintwarden.engine.machine.inventory import NodeState, history_name
from taintwarden.engine.machine.pending import Pending
from taintwarden.engine.model import Gates, Instant, Mode, Node, Pod, Policy, Profile, Taint
from taintwarden.kube.objects import PodObject


class Judged:
    """A pod as the operator sees it, and what its machine says. ``pod`` is None where it never acts.

    Raises:
        BadInput: a policy asks for the namespace's labels, which are not known; or a timestamp of the pod is none.

    """

    def __init__(self, facts: Facts, gates: Gates) -> None:
        self.facts = facts
        self.gates = gates
        self.now = facts.now
        self.problems: dict[str, str] = {}
        """Policies that are not valid, with the reason."""
        self.profile_problems: dict[str, str] = {}
        """Profiles that are not valid, with the reason."""
        self.issues: list[PodIssue] = []
        translator = Translator(lambda: Instant(self.now, self.now), self.issues.append)
        self.pod = self._translate(translator)
        self.node: Node | None = None if facts.node is None else translator.node(facts.node)
        self.policies = self._valid_policies()
        self.rehearsed_policies = {one["metadata"].get("name") for one in facts.policies if is_kept_from_enforcing(one)}
        """Policies that are to enforce, and do not since the operator runs with --dry-run."""
        self.profiles = self._valid_profiles()
        self._check_namespace()
        self._machine = self._run(self.policies)
        # What a paused policy would do is told too: people look before they switch it on.
        paused = any(policy.mode is Mode.PAUSED for policy in self.policies)
        self._rehearsal = self._run(_unpaused(self.policies)) if paused else self._machine
        self.recorded = self._recorded()

    @property
    def pending(self) -> Pending | None:
        """The pod's place in the machine's queue, if it has a deadline."""
        return self._machine.pending.get(self.pod.uid) if self.pod else None

    @property
    def rehearsed(self) -> Pending | None:
        """The same, if no policy were paused."""
        return self._rehearsal.pending.get(self.pod.uid) if self.pod else None

    def taints(self) -> list[tuple[Taint, TaintHistory]]:
        """The taints of the pod's node with their histories."""
        return list(self._state(self._machine).taints()) if self.pod else []

    def verdict(self, taint: Taint) -> TaintVerdict | None:
        """What ``taint`` means for the pod, as if no policy were paused; None: no policy acts on it."""
        if self.pod is None:
            return None
        verdicts = self._rehearsal.verdicts_for(self._state(self._rehearsal), self.pod.shared)
        return next((verdict for verdict in verdicts if verdict.taint == taint), None)

    def acting(self, taint: Taint) -> Policy | None:
        """The policy that acts on ``taint`` for the pod."""
        return acting_policy(taint, (policy for policy in self.policies if self.refusal(policy) is None))

    def refusal(self, policy: Policy) -> str | None:
        """Why ``policy`` does not touch this pod on this node, None if it does."""
        if self.node is not None and not selects_node(policy, self.node.labels):
            return "nodeSelector does not select the node"
        return exclusion(policy, self.pod.shared, self.facts.namespace_labels) if self.pod else None

    def _translate(self, translator: Translator) -> Pod | None:
        try:
            return translator.pod(self.facts.pod)
        except ValueError as error:
            meta = self.facts.pod.metadata
            msg = f"Pod {meta.namespace}/{meta.name}: {error}"
            raise BadInput(msg) from error

    def _check_namespace(self) -> None:
        """Without its labels the engine takes a namespace for not selected: that would be no explanation."""
        asking = [policy.name for policy in self.policies if policy.namespace_selector.requirements]
        if self.pod is not None and asking and self.facts.namespace_labels is None:
            msg = f"policy {asking[0]} selects namespaces by their labels, and {self.facts.namespace_problem}"
            raise BadInput(msg)

    def _run(self, policies: tuple[Policy, ...]) -> Machine:
        machine = Machine(gates=self.gates)
        for event in self._events(policies):
            machine.step(event, Instant(self.now, self.now))
        return machine

    def _events(self, policies: tuple[Policy, ...]) -> Iterable[Event]:
        yield events.PoliciesChanged(policies)
        for profile in self.profiles:
            yield events.ProfileSeen(profile)
        if self.facts.namespace_labels is not None:
            yield events.NamespaceSeen(self.facts.pod.metadata.namespace, self.facts.namespace_labels)
        if self.node is not None:
            yield events.NodeSeen(self.node)
        if self.pod is not None:
            yield events.PodSeen(self.pod)
        yield events.Synced()
        yield events.Woke()

    def _state(self, machine: Machine) -> NodeState:
        assert self.pod is not None, "asked only about pods that the operator acts on"  # noqa: S101
        return machine.nodes[self.pod.node]

    def _recorded(self) -> Mapping[str, TaintHistory]:
        try:
            return decode_histories(self.node.history) if self.node else {}
        except ValueError:
            return {}

    def is_recorded(self, taint: Taint) -> bool:
        """Whether the node says since when it carries ``taint`` with this value."""
        history = self.recorded.get(history_name(taint))
        if history is not None:
            return history.value == taint.value
        return any(one == taint and added is not None for one, added in self.node.taints) if self.node else False

    def _valid_policies(self) -> tuple[Policy, ...]:
        """Those in force, by name; the others' faults go to ``problems``."""
        valid: list[Policy] = []
        PolicyBook(valid.extend, self._policy_invalid).load(self.facts.policies)
        return tuple(sorted(valid, key=lambda policy: policy.name))

    def _valid_profiles(self) -> tuple[Profile, ...]:
        """Those in force, by name; the others' faults go to ``profile_problems``."""
        book = ProfileBook(lambda _: None, self._profile_invalid)
        book.load(self.facts.profiles)
        return tuple(sorted(book.valid.values(), key=lambda profile: profile.name))

    def _profile_invalid(self, key: str, _: str, reason: str) -> None:
        self.profile_problems[key.partition("/")[2]] = " ".join(reason.split())

    def _policy_invalid(self, name: str, _: str, reason: str) -> None:
        self.problems[name] = " ".join(reason.split())


def _unpaused(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    return tuple(
        msgspec.structs.replace(policy, mode=Mode.DRY_RUN) if policy.mode is Mode.PAUSED else policy
        for policy in policies
    )


def untouchable(pod: PodObject) -> str:
    """Why the operator never acts on ``pod``, which the translation has left out."""
    if not pod.spec.node_name:
        return "it is not bound to a node"
    if pod.metadata.deletion_timestamp is not None:
        return f"it is terminating since {pod.metadata.deletion_timestamp}"
    if pod.metadata.annotations is not None and pod.metadata.annotations.mirror is not None:
        return "it is a mirror pod, which only its node can remove"
    return f"it has finished: its phase is {pod.status.phase}"
