"""The operator's own verdicts on what a snapshot holds: its translation, its policies in force, its evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from taintwarden.api.errors import InvalidObject
from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile
from taintwarden.cli.diagnosis.census import Group
from taintwarden.cli.diagnosis.snapshot import Snapshot
from taintwarden.cli.diagnosis.sources import Source
from taintwarden.controller.cache import Translator
from taintwarden.engine.evaluate import TaintVerdict, selects_node
from taintwarden.engine.machine.inventory import NodeState
from taintwarden.engine.machine.verdicts import Verdicts
from taintwarden.engine.model import Gates, Instant, Policy, Profile, Taint


class Look:
    """A snapshot, and what the operator makes of it. Checks ask nothing else.

    Args:
        snapshot: what was read.
        gates: which operators may match, where the operator's Deployment does not say.

    """

    def __init__(self, snapshot: Snapshot, gates: Gates) -> None:
        self.snapshot = snapshot
        self.gates = snapshot.operator.gates if snapshot.operator else gates
        self.policies: list[Policy] = []
        """Those that are valid as stored."""
        self.policy_problems: dict[str, str] = {}
        """Why others are not, by name."""
        self.profiles: list[Profile] = []
        self.profile_problems: dict[tuple[str, str], str] = {}
        """By namespace and name."""
        self._learn()
        self.verdicts = Verdicts(self.gates)
        self.verdicts.set_policies(self.policies)
        for namespace in snapshot.namespaces:
            self.verdicts.set_namespace(namespace.metadata.name, namespace.metadata.labels)
        for profile in self.profiles:
            self.verdicts.set_profile(profile.namespace, profile.name, profile)

    def knows(self, source: Source) -> bool:
        """Whether it was read."""
        return source not in self.snapshot.problems

    @property
    def groups(self) -> Sequence[Group]:
        """Pods and templates by owner."""
        return self.snapshot.groups

    @property
    def running(self) -> Iterator[Group]:
        """Those that are pods on nodes."""
        return (group for group in self.groups if not group.template)

    @cached_property
    def states(self) -> Mapping[str, NodeState]:
        """The nodes as the operator's machine has them."""
        now = self.snapshot.now
        translator = Translator(lambda: Instant(now, now))
        found: dict[str, NodeState] = {}
        for obj in self.snapshot.nodes:
            node = translator.node(obj)
            state = found[node.name] = NodeState(node.name)
            state.update(node, now)
        return found

    @cached_property
    def taints(self) -> dict[Taint, list[str]]:
        """Every taint that some node carries, with the nodes."""
        found: dict[Taint, list[str]] = {}
        for name, state in self.states.items():
            for taint, _ in state.taints():
                found.setdefault(taint, []).append(name)
        return found

    def judged(self, group: Group) -> Iterator[tuple[NodeState, int, tuple[TaintVerdict, ...]]]:
        """The verdicts on a group's pods: each node with how many of them are there."""
        for name, count in sorted(group.pods.items()):
            state = self.states.get(name)
            if state is not None:
                yield state, count, self.verdicts.of(state, group.pod_class)

    def selecting(self, policy: Policy) -> list[str]:
        """The nodes that a policy acts on."""
        return [name for name, state in self.states.items() if state.node and selects_node(policy, state.node.labels)]

    def may_leave(self, group: Group) -> list[Policy]:
        """The policies that may evict the group's pods where they are."""
        policies = self.verdicts.selecting(group.pod_class)
        here = [self.states[name] for name in group.pods if name in self.states]
        return [policy for policy in policies if any(policy in self.verdicts.select(state) for state in here)]

    def _learn(self) -> None:
        for stored in self.snapshot.policies:
            try:
                self.policies.append(parse_policy(stored))
            except InvalidObject as error:
                self.policy_problems[named(stored)[1]] = _one_line(error)
        for stored in self.snapshot.profiles:
            try:
                self.profiles.append(parse_profile(stored))
            except InvalidObject as error:
                self.profile_problems[named(stored)] = _one_line(error)


def named(stored: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace and name of a stored object."""
    meta = stored.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    return str(meta.get("namespace") or ""), str(meta.get("name") or "")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
