"""Check that the known state of a due pod's node is new enough to evict the pod.

The state is new enough if the node stream has sent something lately and has reached the pod's version. Otherwise the
node is read: a pod that was bound just after a taint was removed must not be evicted because of it, an open connection
may be dead, and a stream that resumes delivers delayed events, with old values, first.

A read does not change the known state. If it returns the version that the stream has delivered, the state is confirmed.
If it returns a newer one, the claim waits until the stream has delivered it, since changes in between may matter.
"""

import math

from taintwarden.engine.commands import CheckNode
from taintwarden.engine.limits.refusal import VIEW, Refusal, RefusalScope
from taintwarden.engine.machine.claims import Claim
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import MonotonicTime, later

NODE_CHECK = "the node is read again before the eviction"


class Freshness:
    """Records how far the node stream has progressed, when it last sent something, and which nodes are being read."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._reached = -1
        self._last_event_at = MonotonicTime(-math.inf)
        self._trusted_from = MonotonicTime(0.0)
        """Time from which the node stream is expected to deliver no delayed events."""
        self._reading: dict[str, MonotonicTime] = {}
        """Node -> time at which its read was requested."""
        self._refused: dict[str, None] = {}
        """Nodes whose pods wait for a read."""
        self._again_at: dict[str, MonotonicTime] = {}
        """Node -> earliest time of its next read after one that proved nothing. All of its pods share the read."""

    def stream_reached(self, resource_version: int) -> None:
        """Record that the node stream has delivered everything up to this version."""
        self._reached = max(self._reached, resource_version)
        self._note_event()

    def _note_event(self) -> None:
        now, timings = self._world.now.monotonic, self._world.timings
        if now > self._last_event_at + timings.max_silence:
            self._trusted_from = later(now, timings.delayed_events)
        self._last_event_at = now

    def nodes_listed(self, resource_version: int) -> None:
        """Record a list, which replaces what is known. After a restore of etcd, versions may be lower than before."""
        self._reached = resource_version
        self._last_event_at = self._trusted_from = self._world.now.monotonic
        for state in self._world.cluster.nodes.values():
            state.confirmed_version = state.awaited_version = -1
        for name in list(self._refused):
            self._release(name)

    def is_proven(self, claim: Claim) -> bool:
        """True if the known state of a due claim's node is new enough to evict its pod."""
        state, now = self._world.cluster.nodes[claim.node], self._world.now.monotonic
        if state.awaited_version >= 0 or state.unreadable_from is not None:
            return False
        if claim.version > self._reached and claim.version > state.confirmed_version:
            return False
        silence = self._world.timings.max_silence
        is_recent = self._trusted_from <= now <= self._last_event_at + silence
        return is_recent or now <= state.confirmed_at + silence

    def require_fresh_node(self, claim: Claim) -> Refusal | None:
        """Why the pod of a due claim waits for a read of its node, which is requested; None if it need not wait."""
        if self.is_proven(claim):
            return None
        node, now, again_at = claim.node, self._world.now.monotonic, self._again_at.get(claim.node)
        self._refused[node] = None
        if again_at is not None and now >= again_at:
            again_at = None
        if again_at is None and node not in self._reading and self._world.cluster.nodes[node].awaited_version < 0:
            self._reading[node] = now
            self._world.issue(CheckNode(node))
        return Refusal(VIEW, again_at, RefusalScope.PODS, f"node-check/{node}", NODE_CHECK, is_brief=True)

    def read_answered(self, name: str, version: int | None, pods_version: int) -> None:
        """Process the end of a read. ``version``: None if the node is gone or nothing answered. See ``NodeChecked``."""
        began = self._reading.pop(name, None)
        state = self._world.cluster.nodes.get(name)
        if state is None or began is None:
            return
        known = None if state.node is None else state.node.resource_version
        if version is not None and known == version:
            state.confirmed_at = began
            state.confirmed_version = max(state.confirmed_version, pods_version)
            self._release(name)
        elif version is not None and (known is None or known < version):
            state.awaited_version = version
        else:  # the stream is ahead of the read, or has yet to report the deletion, or nothing answered
            self._again_at[name] = later(self._world.now.monotonic, self._world.timings.write_failed[0])
            self._release(name)

    def node_seen(self, state: NodeState, version: int) -> None:
        """Record that the stream has delivered this version of a node."""
        self._note_event()
        if 0 <= state.awaited_version <= version:
            state.awaited_version = -1
            self._release(state.name)

    def forget_node(self, name: str) -> None:
        """Drop the reads of a node that is gone or replaced by one with its name."""
        self._reading.pop(name, None)
        self._again_at.pop(name, None)
        self._release(name)

    def _release(self, name: str) -> None:
        """Let the waiting pods of a node continue."""
        if self._refused.pop(name, "") is None:
            self._world.limiter.freed.add(f"node-check/{name}")
