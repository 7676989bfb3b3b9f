"""Applies events of streams: updates the known nodes, pods and policies, and evaluates pods or queues them for it."""

import math
from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from taintwarden.engine import commands, events
from taintwarden.engine.derived import with_derived
from taintwarden.engine.machine.backlog import Backlog
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.machine.freshness import Freshness
from taintwarden.engine.machine.guarding import Guarding
from taintwarden.engine.machine.judging import Judging
from taintwarden.engine.machine.outbox import Outbox, history_key
from taintwarden.engine.machine.source import SourceHost, TaintSource
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Instant, Node, Pod, Profile, WallTime
from taintwarden.engine.policy import labels_of

NewSource = Callable[[SourceHost], TaintSource]


class Intake:
    """Stores the nodes, pods, policies, profiles and namespaces that streams deliver. Limits store the other objects.

    Args:
        world: the state.
        judging: evaluates pods.
        backlog: pods to be evaluated again.
        freshness: records how far the node stream has progressed.
        outbox: writes to nodes.
        guarding: records changes that may cause a wave.
        new_source: creates a source of taints besides those of nodes, such as that of devices; None: there is none.

    """

    def __init__(
        self,
        world: World,
        judging: Judging,
        backlog: Backlog,
        freshness: Freshness,
        outbox: Outbox,
        guarding: Guarding,
        new_source: NewSource | None,
    ) -> None:
        self._world = world
        self._source = None if new_source is None else new_source(self)
        self._judging = judging
        self._backlog = backlog
        self._freshness = freshness
        self._outbox = outbox
        self._guarding = guarding

    # -- nodes --------------------------------------------------------------------------------------------------

    def update_node(self, node: Node, *, listed: bool) -> None:
        """Store a node that was listed, added or modified. Evaluate its pods unless the update is only a heartbeat."""
        world = self._world
        state = world.cluster.state(node.name)
        if world.verdicts.derivations:
            node = with_derived(node, world.verdicts.derivations)
        known = state.node
        if known is not None and known.uid != node.uid:
            self._forget_node(node.name)  # the state of the old node does not apply
            state, known = world.cluster.replace_node(node.name), None
        if known is not None and not listed and node.resource_version < known.resource_version:
            return
        self._freshness.node_seen(state, node.resource_version)
        was_unreadable, state.unreadable_from = state.unreadable_from, None
        if known is not None and known.history != node.history and self._outbox.wrote_history(node.name, node.history):
            state.node = known = replace(known, history=node.history)
        is_lost = self._outbox.is_overwritten(node)
        if state.is_heartbeat(node) and not (listed or was_unreadable or is_lost):
            if known is not None and known.drained != node.drained:
                world.note_change(node.name)
            state.store_heartbeat(node, world.now.wall)
            return
        is_relabelled = known is None or known.labels != node.labels
        seen_until = min(was_unreadable or world.now.wall, world.complete_until())
        is_gap = listed or was_unreadable is not None
        stored, faults = state.update(node, world.now.wall, seen_until=seen_until, gap=is_gap)
        if stored and self._source is not None:
            self._source.restore(state, stored, seen_until, is_new=known is None)
        if world.source is not None:
            world.source.refresh(state)
        if is_relabelled:
            world.spread.relabel(node.name)
        for fault in faults:
            world.report(commands.UnreadableHistory(node.name, node.uid, fault))
        self._judging.evaluate_node(state, may_wait=not listed)

    def remove_node(self, name: str) -> None:
        """Remove a node that was deleted, and end the claims on its pods."""
        cluster = self._world.cluster
        self._world.note_change(name)
        state = cluster.nodes.get(name)
        if state is None:
            return
        self._judging.node_gone(state.pods.values())
        if state.pods:
            self._world.verdicts.recount_pods(cluster.replace_node(name))
        else:
            del cluster.nodes[name]
        self._forget_node(name)
        self._world.spread.relabel(name)

    def _forget_node(self, name: str) -> None:
        self._outbox.forget(history_key(name))
        self._world.limiter.zones.forget_node(name)
        self._freshness.forget_node(name)

    def nodes_listed(self, event: events.NodesListed) -> None:
        """Remove the nodes that a complete list lacks."""
        for name in [name for name in self.nodes if name not in event.names]:
            self.remove_node(name)
        self._freshness.nodes_listed(event.resource_version)

    def node_unreadable(self, name: str) -> None:
        """Record that the newest version of a node cannot be decoded. Until one can, no pod of the node is evicted."""
        state = self._world.cluster.nodes.get(name)
        if state is not None:
            state.unreadable_from = state.unreadable_from or self._world.now.wall

    # -- pods ---------------------------------------------------------------------------------------------------

    def update_pod(self, pod: Pod) -> None:
        """Store a running pod that was listed, added or modified, and evaluate it."""
        pod, taints_changed = self._store_pod(pod)
        state = self._world.cluster.nodes[pod.node]
        if taints_changed:
            self._judging.evaluate_node(state)
        else:
            self._judging.evaluate_pod(state, pod)

    def _store_pod(self, pod: Pod) -> tuple[Pod, bool]:
        """Store a pod. Returns it as stored, and True if the taints that a source adds to its node changed."""
        world = self._world
        self._remove_from_other_node(pod)
        known = world.cluster.pod(pod.node, pod.uid)
        source = self._source if world.source is not None or (known or pod).shared.devices else None
        if source is not None:
            pod = source.equip(pod)
        if known is not None and known.bound_at < pod.bound_at:
            # The object states its binding time in whole seconds. The earlier time known may be more exact.
            pod = replace(pod, bound_at=known.bound_at)
        world.cluster.put_pod(pod)
        if known is None:  # after a restore of etcd a pod that terminated may run again
            world.limiter.departures.end(pod.uid, pod.node)
            if world.verdicts.features.bounce:
                world.limiter.bounces.pod_added(pod)
            if world.limiter.guards.by_policy:
                world.limiter.guards.pod_added(pod)
        self._count_pod(pod, known)
        if known is not None:
            self._judging.pod_changed(known, pod)
        return pod, source is not None and source.replace_pod(world.cluster.nodes[pod.node], known, pod)

    def _remove_from_other_node(self, pod: Pod) -> None:
        """Remove a pod with claims from its previous node, if a restore of etcd has bound it to another one.

        A call in progress concerns the pod, not its node, so the outcome of the call applies on the new node.
        """
        evictee = self._world.claims.evictees.get(pod.uid)
        if evictee is not None and evictee.node != pod.node:
            self.remove_pod(pod.uid, evictee.node)
            evictee.move(pod.node)

    def _count_pod(self, pod: Pod, known: Pod | None) -> None:
        """Update the numbers of running pods by policy, workload and topology domain."""
        limiter, spread = self._world.limiter, self._world.spread
        if known is None or known.shared is not pod.shared:
            verdicts, state = self._world.verdicts, self._world.cluster.nodes[pod.node]
            verdicts.count_pods(state, pod.shared, 1)
            if known is not None:
                verdicts.count_pods(state, known.shared, -1)
        if known is None:
            spread.pod_added(pod)
        elif known.shared is not pod.shared:
            spread.changed(known, pod)
        limiter.workloads.seen(pod, known)

    def remove_pod(self, uid: str, node: str, until: float | None = None, pod: Pod | None = None) -> None:
        """Remove a pod that was deleted or finished, or (``pod``) that terminates and should be gone at ``until``."""
        world = self._world
        world.note_change(node)
        state, known = world.cluster.nodes.get(node), world.cluster.remove_pod(node, uid)
        if until is None:
            world.limiter.departures.end(uid, node)
        elif (leaving := known or pod) is not None:
            self._begin_departure(leaving, WallTime(until))
        if state is not None and known is not None:
            world.verdicts.count_pods(state, known.shared, -1)
            world.limiter.gone(known, world.now)
            world.spread.gone(known)
            source = self._source if world.source is not None or known.shared.devices else None
            if source is not None and source.replace_pod(state, known, None):
                self._backlog.add_nodes([node])
        self._judging.pod_gone(uid)

    def _begin_departure(self, pod: Pod, until: WallTime) -> None:
        """Record that a pod terminates, and which policies evict it: by its claims, or else by an evaluation."""
        world = self._world
        policies = [claim.policy.name for claim in world.claims.of(pod.uid) if claim.is_enforced]
        world.limiter.departures.begin(pod, until, world.now, policies)
        if not policies:
            self._judging.evaluate_departures(pod.node)

    def pods_listed(self, event: events.PodsListed) -> None:
        """Remove the pods that a complete list lacks or has on another node."""
        cluster, departures = self._world.cluster, self._world.limiter.departures
        for state in list(cluster.nodes.values()):
            for uid in [uid for uid in state.pods if event.nodes.get(uid) != state.name]:
                self.remove_pod(uid, state.name)
                moved = cluster.pod(event.nodes.get(uid, ""), uid)
                if moved is not None:  # claims and limits know pods by UID: remove it, then add it again
                    self.remove_pod(uid, moved.node)
                    self.update_pod(moved)
        for uid, node in departures.uids():
            if event.nodes.get(uid) != node:  # the pod itself was removed when it began to terminate
                departures.end(uid, node)

    # -- a source of other taints -----------------------------------------------------------------------------------

    def process_source_event(self, event: events.SourceEvent) -> None:
        """Pass an event to the source of taints."""
        if self._source is not None:
            self._source.process_event(event)

    @property
    def nodes(self) -> Mapping[str, NodeState]:
        """All nodes, by name."""
        return self._world.cluster.nodes

    @property
    def now(self) -> Instant:
        """The time of the step."""
        return self._world.now

    @property
    def is_synced(self) -> bool:
        """True once all lists that decisions need were delivered."""
        return self._world.synced

    def store_pod(self, pod: Pod) -> None:
        """Store a pod again, with the source's newest data."""
        self._store_pod(pod)

    def evaluate_node(self, state: NodeState) -> None:
        """Evaluate the pods of a node at once, unless it changes too often."""
        self._judging.evaluate_node(state, may_wait=True)

    def evaluate_later(self, names: Iterable[str]) -> None:
        """Queue these nodes, to be evaluated before any pod is evicted."""
        self._backlog.add_nodes(names)

    def retry_refused(self, key: str) -> None:
        """Retry the pods whose refusal has this key."""
        self._world.limiter.freed.add(key)

    # -- policies, profiles, namespaces -------------------------------------------------------------------------

    def policies_changed(self, event: events.PoliciesChanged) -> None:
        """Replace the policies in force."""
        world = self._world
        before = world.verdicts.derivations
        world.verdicts.set_policies(event.policies)
        had_source, world.source = world.source, self._source if world.verdicts.features.devices else None
        if world.source is not None and had_source is None:
            world.source.recheck_all()
        if world.verdicts.derivations != before:
            self._derive_again()
        world.limiter.configure(world.verdicts.policies, world.now)
        if world.limiter.workloads.labels != (labels := labels_of(world.verdicts.policies)):
            pods = (pod for state in self.nodes.values() for pod in state.pods.values())
            world.limiter.workloads.count_by(labels, pods)
        self._guarding.policies_changed()
        world.evictions.keep_only({(policy.name, policy.uid) for policy in world.verdicts.policies})
        for state in world.cluster.nodes.values():
            state.policies = None
        self._backlog.add_all()

    def _derive_again(self) -> None:
        """Derive the taints of all nodes again. The caller has to queue all pods for evaluation."""
        world = self._world
        for state in world.cluster.nodes.values():
            if state.node is not None:
                node = with_derived(state.node, world.verdicts.derivations)
                if node.taints != state.node.taints:
                    state.update(node, world.now.wall, seen_until=-math.inf, gap=False)

    def set_profile(self, namespace: str, name: str, profile: Profile | None) -> None:
        """Store a profile; None: it was deleted."""
        if self._world.verdicts.set_profile(namespace, name, profile):
            how = "was deleted" if profile is None else "was created or changed"
            self._guarding.profile_changed(namespace, f"TolerationProfile {namespace}/{name} {how}")
            self._backlog.add_namespace(namespace)

    def set_namespace(self, name: str, labels: dict[str, str] | None) -> None:
        """Store the labels of a namespace; None: it was deleted."""
        if self._world.verdicts.set_namespace(name, labels):
            self._backlog.add_namespace(name, is_relabelled=True)
