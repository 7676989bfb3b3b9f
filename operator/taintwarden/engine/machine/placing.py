"""Places (``concurrentNodes``), updated twice a second: drained and idle nodes lose theirs, waiting ones get them."""

from collections.abc import Iterator
from itertools import islice

from taintwarden.engine import commands
from taintwarden.engine.events import WriteOutcome
from taintwarden.engine.limit_settings import MAX_PLACES, share_of
from taintwarden.engine.limits.places import Nodes
from taintwarden.engine.limits.refusal import NAMESPACE_RATE, OVERALL_RATE, PLACE, POLICY_RATE
from taintwarden.engine.machine.claims import Claim, Phase
from taintwarden.engine.machine.outbox import Outbox
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Instant, MonotonicTime, later
from taintwarden.engine.policy import Mode, Policy

UPDATE_SECONDS = 0.5
"""Seconds between two updates. One update adds at most twice as much to the idle time of a node."""
MAX_CHECKED_NODES = 100
"""Maximum number of waiting nodes that are checked in one update."""
RATES = (POLICY_RATE, OVERALL_RATE, NAMESPACE_RATE)
"""Rate limits. A pod that one of them refuses counts as waiting only for a place, since they soon admit again."""


class Placing:
    """Assigns places to nodes, and stores them before pods leave. Only leaders use it."""

    def __init__(self, world: World, outbox: Outbox) -> None:
        self._world = world
        self._outbox = outbox
        self._updated_at = self._next_update_at = MonotonicTime(0.0)
        self._is_moving = False
        """True if pods of a node with a place terminate. The node may be drained without another event."""

    def next_in(self, now: Instant) -> float | None:
        """Seconds until the next update; None if no update is needed."""
        nodes = self._world.limiter.places.by_policy.values()
        is_needed = self._is_moving or any(node.changed or node.waiting for node in nodes)
        return max(0.0, self._next_update_at - now.monotonic) if is_needed else None

    def check_places(self) -> None:
        """End places. Retry the pods of a waiting node for each free place, at least until one needs only a place."""
        world, now = self._world, self._world.now.monotonic
        if now < self._next_update_at:
            return
        passed, self._is_moving = now - self._updated_at, False
        self._updated_at, self._next_update_at = now, later(now, UPDATE_SECONDS)
        for policy in world.verdicts.policies:
            nodes = world.limiter.places.by_policy.get(policy.name)
            if nodes is not None:
                nodes.changed = False
                if policy.mode is Mode.ENFORCE:
                    self._check_places(policy, nodes, min(passed, 2 * UPDATE_SECONDS) if nodes.others_wait else 0.0)
                else:
                    nodes.waiting.clear()

    def _check_places(self, policy: Policy, nodes: Nodes, idle: float) -> None:
        nodes.most, nodes.others_wait = min(MAX_PLACES, self._max_places(policy)), False
        if nodes.is_new:
            self._add_leaving_nodes(policy, nodes)
        for node in list(nodes.begun):
            self._update_node(policy.name, nodes, node, idle)
        retried, nodes.passed_over = 0, {}
        for node in list(islice(nodes.in_order(), MAX_CHECKED_NODES)):
            if retried < nodes.free or not nodes.others_wait:
                retried += self._retry_node(policy.name, nodes, node)
            elif all(claim.due_at > self._world.now.wall for claim in self._claims(policy.name, node)):
                del nodes.waiting[node]

    def _max_places(self, policy: Policy) -> int:
        """Maximum number of nodes with a place."""
        most = policy.limits.concurrent_nodes
        assert most is not None  # noqa: S101 - the limit concerns the policy
        states = self._world.cluster.nodes.values() if isinstance(most, str) else ()
        return share_of(most, sum(node.node is not None and policy in (node.policies or ()) for node in states))

    def _add_leaving_nodes(self, policy: Policy, nodes: Nodes) -> None:
        """Give places to the nodes that pods leave already when the limit is added, even if they are too many."""
        nodes.is_new, wall = False, self._world.now.wall
        leaving = [departure for departure in self._world.limiter.departures.leaving() if not departure.is_stuck(wall)]
        found = [departure.pod.node for departure in leaving if policy.name in departure.policies]
        calls = [evictee.call for evictee in self._world.claims.evictees.values() if evictee.call is not None]
        found += [call.claim.node for call in calls if call.claim.policy.name == policy.name]
        for node in [*dict.fromkeys(found)][:MAX_PLACES]:
            nodes.take(node, wall)

    def _claims(self, policy: str, node: str) -> Iterator[Claim]:
        state = self._world.cluster.nodes.get(node)
        for uid in state.pods if state is not None else ():
            evictee = self._world.claims.evictees.get(uid)
            if evictee is not None and (claim := evictee.claim_of(policy)) is not None:
                yield claim

    def _update_node(self, policy: str, nodes: Nodes, node: str, idle: float) -> None:
        """Add ``idle`` seconds to a node that no pod leaves. End its place if it is drained, or idle for too long."""
        world, place, state = self._world, nodes.held.get(node), self._world.cluster.nodes.get(node)
        claims = list(self._claims(policy, node))
        leaving = [departure for departure in world.limiter.departures.of_node(node) if policy in departure.policies]
        is_drained = state is None or state.node is None or not (claims or leaving)
        if is_drained:
            del nodes.begun[node]
        if place is None:
            return
        self._is_moving |= bool(leaving)
        if any(not one.is_stuck(world.now.wall) and one.pod.bound_at <= place.since for one in leaving):
            nodes.idle[node] = 0.0
        else:
            nodes.idle[node] = nodes.idle.get(node, 0.0) + idle
        if nodes.idle[node] >= world.timings.place_idle:
            nodes.ending[node] = None
        is_called = any(claim.phase in (Phase.IN_FLIGHT, Phase.ACCEPTED) for claim in claims)
        if is_drained or (node in nodes.ending and not is_called):
            nodes.end(node)

    def _waits_only_for_place(self, claim: Claim) -> bool:
        """True if only a place may keep a due pod: it waits for one or is checked soon, and no limit holds its lane."""
        if claim.phase is Phase.BLOCKED:
            refusal = claim.refusal
            if refusal is None or not (refusal.limit == PLACE or refusal.is_brief):
                return False
        refused = self._world.refusals.lanes.get(self._world.queues.lane_of(claim))
        return refused is None or refused.limit in RATES

    def _is_policy_held(self, claim: Claim) -> bool:
        """True if another limit holds the whole policy for longer than a moment."""
        refused = self._world.refusals.of_policy(self._world.queues.lane_of(claim).group)
        return refused is not None and refused.limit not in RATES

    def _retry_node(self, policy: str, nodes: Nodes, node: str) -> bool:
        """Retry the pods of a waiting node, unless another limit holds them. Returns True if any were retried."""
        claims = [claim for claim in self._claims(policy, node) if claim.phase in (Phase.READY, Phase.BLOCKED)]
        free = [claim for claim in claims if self._waits_only_for_place(claim)]
        if free:
            nodes.others_wait |= any(not self._is_policy_held(claim) for claim in free)
            nodes.retry(node)
        elif any(claim.refusal is not None and claim.refusal.limit == PLACE for claim in claims):
            nodes.pass_over(node)
        else:
            del nodes.waiting[node]
        return bool(free)

    def save_places(self) -> None:
        """Write the places that differ from the stored ones."""
        for policy in self._world.verdicts.policies:
            nodes = self._world.limiter.places.by_policy.get(policy.name)
            if nodes is not None and nodes.held != nodes.stored:
                places = tuple(nodes.held.values())
                self._outbox.put(commands.SavePlaces(policy, places, self._world.term))

    def places_saved(self, order: commands.SavePlaces, outcome: WriteOutcome) -> None:
        """Process the end of a write of places."""
        nodes = self._world.limiter.places.by_policy.get(order.policy.name)
        if nodes is not None and outcome is WriteOutcome.DONE:
            nodes.note_saved(order.places)
