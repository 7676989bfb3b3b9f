"""Guards of all policies: check them, store which evictions they reserve before these begin, and report changes."""

from collections import Counter
from collections.abc import Collection, Container
from functools import partial
from heapq import nsmallest
from itertools import islice

from taintwarden.engine import commands
from taintwarden.engine.commands import BadNode, BadNodes, GuardReport
from taintwarden.engine.evaluate import Grounds
from taintwarden.engine.events import WriteOutcome, Written
from taintwarden.engine.guard import Guard, GuardTransition
from taintwarden.engine.limits.bounces import CAME_BACK
from taintwarden.engine.machine.claims import Phase
from taintwarden.engine.machine.cluster import history_name
from taintwarden.engine.machine.outbox import Outbox, guard_key, reset_key
from taintwarden.engine.machine.source import NOT_LISTED
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Instant, Pod
from taintwarden.engine.policy import Mode, Policy

MAX_NODES = 100
"""Maximum number of nodes examined for the cause of a wave."""
NAMED = 3
"""Maximum number of bad nodes that a report names."""


class Guarding:
    """Checks and stores guards, and reports their changes. Only leaders use it, except for the first section.

    Args:
        world: the state.
        outbox: writes the guard records.

    """

    def __init__(self, world: World, outbox: Outbox) -> None:
        self._world = world
        self._outbox = outbox
        self._changes: dict[str, tuple[Policy, str, float]] = {}
        """Policy -> its version in force, how it came about, and the time since which it is in force."""
        self._profile_changes: dict[str, tuple[str, float]] = {}
        """Namespace -> last profile change that affected tolerations, and its time. Only recent changes are kept."""
        self.resets: set[str] = set()
        """Policies whose resets are granted: their requests were removed, so that no other leader grants them again."""

    # -- followers, too ---------------------------------------------------------------------------------------------

    def policies_changed(self) -> None:
        """Note the policies in force, and drop the data of policies that are gone."""
        now = self._world.now
        before, self._changes = self._changes, {}
        for policy in self._world.verdicts.policies:
            known = before.pop(policy.name, None)
            if known is not None and known[0].uid != policy.uid:  # another policy of this name
                self._drop_policy(policy.name)
                known = None
            if known is None:
                known = policy, _change(None, policy), policy.created_at
            elif known[0].generation != policy.generation:
                known = policy, _change(known[0], policy), now.wall
            self._changes[policy.name] = known
            guard = self._guard(policy)
            if guard is None:
                self.resets.discard(policy.name)
            else:
                guard.population = partial(self._world.verdicts.population.__getitem__, policy.name)
        for name in before:
            self._drop_policy(name)

    def _drop_policy(self, name: str) -> None:
        """Drop the writes and the reset of a policy that is gone."""
        self._outbox.forget(guard_key(name))
        self._outbox.forget(reset_key(name))
        self.resets.discard(name)

    def _knows_causes(self, policy: Policy) -> bool:
        """True if the guard may arm: all taints of the policy are known, or a lasting problem hides a part of them."""
        problem = self._world.devices_problem
        return not (policy.devices and problem) or (bool(policy.taints) and problem != NOT_LISTED)

    def profile_changed(self, namespace: str, change: str) -> None:
        """Note a profile change that affected what pods of its namespace tolerate."""
        recent = {name: known for name, known in self._profile_changes.items() if self._is_recent(known[1])}
        self._profile_changes = recent | {namespace: (change, self._world.now.wall)}

    def leadership_changed(self) -> None:
        """Drop granted resets: they apply only to the pods that the leader of that time held.

        Records whose writes have not ended are saved again, since the result is unknown.
        """
        self.resets = set()
        for name, guard in self._world.limiter.guards.by_policy.items():
            if self._outbox.is_waiting(guard_key(name)):
                guard.save_again()

    # -- leaders ----------------------------------------------------------------------------------------------------

    def next_in(self, now: Instant) -> float | None:
        """Seconds until a guard has to be checked even without an event; None if none has to."""
        if any(self._has_to_save(policy) for policy in self._world.verdicts.policies):
            return 0.0
        pairs = ((policy, self._guard(policy)) for policy in self._world.verdicts.policies)
        checks = (
            guard.next_check_in(now, may_arm=self._knows_causes(policy)) for policy, guard in pairs if guard is not None
        )
        return min((check for check in checks if check is not None), default=None)

    def check_guards(self, most: int) -> None:
        """Check all guards: trip before the first eviction of a wave that is too large, arm when the cause is gone.

        At most ``most`` pods of each policy are counted again.
        """
        for policy in self._world.verdicts.policies:
            guard = self._guard(policy)
            if guard is not None:
                self._check_guard(policy, guard, most)

    def _check_guard(self, policy: Policy, guard: Guard, most: int) -> None:
        now, is_known = self._world.now, self._knows_causes(policy)
        guard.resolve(self._existing, now)
        for uid in guard.let_pass(most):
            claim = self._world.claims.get(f"{uid}/{policy.name}")
            if claim is not None and claim.phase in (Phase.READY, Phase.BLOCKED):
                self._world.queues.wait(claim)  # released pods have lanes of their own
        match guard.check_wave(now, most, may_trip=policy.mode is not Mode.PAUSED, may_arm=is_known):
            case GuardTransition.ARMED:
                self._world.report(commands.GuardArmed(policy, None))
            case GuardTransition.TRIPPED:
                cause, written = self._cause_of(policy, guard)
                came_back = self._world.limiter.bounces.has_returned(policy.name, now.monotonic)
                is_repeated = came_back and guard.evicted() >= guard.expected()
                guard.latch.cause = f"{CAME_BACK}; {cause}" if is_repeated else cause
                if written is not None:
                    self._world.issue(commands.FindWriter(policy.name, guard.latch.cause, *written))
                report = guard_report(self._world, policy.name)
                assert report is not None  # noqa: S101 - it was found by this name
                self._world.report(commands.GuardTripped(policy, report))

    def add_writer(self, order: commands.FindWriter, writer: str) -> None:
        """Add the client that wrote the taint to the cause of a trip, and store it."""
        guard = self._world.limiter.guards.by_policy.get(order.policy)
        if self._world.leading and guard is not None and guard.latch.cause == order.cause:
            guard.latch.cause += f", {writer}"
            guard.save_again()

    def save_records(self) -> None:
        """Write the records of guards that differ from the stored ones or reserve more evictions."""
        for policy in self._world.verdicts.policies:
            guard = self._guard(policy) if self._has_to_save(policy) else None
            if guard is not None:
                self._outbox.put(commands.SaveGuard(policy, guard.to_save(self._world.now, self._world.term)))

    def _has_to_save(self, policy: Policy) -> bool:
        """True if the policy's guard has something to store, and no write of its record is pending."""
        guard = self._guard(policy)
        return guard is not None and guard.has_to_save and not self._outbox.is_waiting(guard_key(policy.name))

    def record_saved(self, order: commands.SaveGuard, event: Written) -> None:
        """Process the end of a record's write. After a failure a new record is written, since time has passed."""
        guard = self._guard(order.policy)
        if guard is not None:
            error = "" if event.outcome is WriteOutcome.DONE else event.error or event.outcome.value
            guard.saved(order.record, error=error, pruned=event.pruned)

    def remove_reset_request(self, name: str) -> None:
        """Remove the request for a reset. Only the process that removed it grants it, so that it is granted once."""
        for policy in self._world.verdicts.policies:
            if policy.name == name:
                self._outbox.put(commands.ClearGuardReset(policy))

    def reset_cleared(self, order: commands.ClearGuardReset, outcome: WriteOutcome) -> None:
        """Grant a reset whose request was removed. Its pods are released once all of them are known."""
        if outcome is WriteOutcome.DONE and self._guard(order.policy) is not None:
            self.resets.add(order.policy.name)

    def release_held(self) -> None:
        """Release the pods that guards or unhealthy zones hold, for all granted resets."""
        resets, self.resets = self.resets, set()
        for policy in self._world.verdicts.policies if resets else ():
            guard, is_full = self._guard(policy), self._world.limiter.zones.all_unhealthy(policy.name)
            if policy.name in resets and guard is not None and (guard.latch.is_tripped or is_full):
                self._world.report(commands.GuardArmed(policy, guard.release(all_are_unhealthy=is_full)))

    def _existing(self, uids: Collection[str]) -> Container[str]:
        """UIDs of those pods that still exist."""
        wanted = dict.fromkeys(uids).keys()
        return {uid for state in self._world.cluster.nodes.values() for uid in wanted & state.pods.keys()}

    def _guard(self, policy: Policy) -> Guard | None:
        return self._world.limiter.guards.by_policy.get(policy.name)

    # -- the cause ----------------------------------------------------------------------------------------------------

    def _cause_of(self, policy: Policy, guard: Guard) -> tuple[str, tuple[str, str] | None]:
        """Cause of a wave in one sentence, for the taint that affects the most pods.

        A recent change of the policy, or of a profile in a namespace whose pods the guard counts, is named before the
        taint if the taint had its value earlier. Returns also the node and the key of the taint, if only the taint is
        named and a client wrote it on a node.
        """
        nodes, pods = self._world.cluster.nodes, Counter[str]()
        for node in islice(guard.wave.nodes, MAX_NODES):
            found = _grounds_on(self._world, node, policy.name)
            for verdict in found[1].verdicts if found is not None else ():
                pods[history_name(verdict.taint)] += guard.wave.nodes[node]
        if not pods:
            return "evictions of the last window", None
        name = min(pods, key=lambda key: (-pods[key], key))
        affected = [node for node in guard.wave.nodes if nodes[node].history(name) is not None]
        state = nodes[min(affected)]
        taint, history = next(known for known in state.taints() if history_name(known[0]) == name)
        values = history.values
        before = f", {values[1] or 'no value'} before" if len(values) > 1 else ""
        where = f"{len(affected)} nodes, such as" if len(affected) > 1 else "1 node:"
        sentence = f"taint {name} on {where} {taint} on {state.name}{before}"
        change = self._newest_change(policy, guard)
        if change is not None and history.held_since < change[1]:
            return f"{change[0]}; {sentence}", None
        is_written = not taint.source and taint.origin is None
        return sentence, (state.name, taint.key) if is_written else None

    def _newest_change(self, policy: Policy, guard: Guard) -> tuple[str, float] | None:
        """Latest recent change of a policy, or of a profile for pods that count, and its time; None without one."""
        _, how, since = self._changes[policy.name]
        of_profiles = (self._profile_changes[name] for name in guard.latch.counted() if name in self._profile_changes)
        what, at = max([(f"the policy {how}", since), *of_profiles], key=lambda change: change[1])
        return (what, at) if self._is_recent(at) else None

    def _is_recent(self, at: float) -> bool:
        return self._world.now.wall - at < self._world.timings.recent_change


def _change(before: Policy | None, policy: Policy) -> str:
    """Clause about how a policy came into force. ``before``: its previous version; None if that is not known."""
    if before is not None and before.mode is Mode.PAUSED and policy.mode is not Mode.PAUSED:
        return "was resumed"
    return "was created" if policy.generation == 1 else f"changed to generation {policy.generation}"


def guard_report(world: World, policy: str) -> GuardReport | None:
    """Current state of the guard of a policy; None if it has none."""
    guard = world.limiter.guards.by_policy.get(policy)
    if guard is None:
        return None
    return GuardReport(
        guard.record(world.now),
        guard.halts,
        due=guard.expected(),
        evicted=guard.evicted(),
        allowance=guard.allowance(),
        window_seconds=guard.settings.window_seconds,
        bad=_bad_nodes(world, guard.wave.nodes, policy) if guard.latch.is_tripped else BadNodes(),
        scope=guard.scope,
        pace=guard.pace(world.now),
        pruned=guard.pruned,
    )


def _bad_nodes(world: World, nodes: Collection[str], policy: str) -> BadNodes:
    """Nodes that make pods leave now. Nodes that were repaired are not among them."""
    bad = (_bad_node(world, node, policy) for node in nsmallest(NAMED, nodes))
    return BadNodes(len(nodes), tuple(node for node in bad if node is not None))


def _grounds_on(world: World, node: str, policy: str) -> tuple[Pod, Grounds] | None:
    """First pod of the node that a policy evicts in the current state, and why; None if there is none."""
    state = world.cluster.nodes[node]
    for uid, pod in state.pods.items():
        evictee = world.claims.evictees.get(uid)
        claim = None if evictee is None else evictee.claim_of(policy)
        if claim is not None and (grounds := world.grounds_of(claim)) is not None:
            return pod, grounds
    return None


def _bad_node(world: World, node: str, policy: str) -> BadNode | None:
    found = _grounds_on(world, node, policy)
    if found is None:
        return None
    pod, grounds = found
    _, verdict = grounds.first(pod.bound_at)
    history = world.cluster.nodes[node].history(history_name(verdict.taint))
    if history is None or len(history.values) == 1 or verdict.counts_from < history.held_since:
        return BadNode(node, verdict.taint)
    return BadNode(node, verdict.taint, history.values[1])
