"""The guards of all policies: looked at before each eviction, saved before what they reserve, told when they turn."""

from collections.abc import Callable, Iterator, Mapping, Set

from taintwarden.engine.limits import Limiter
from taintwarden.engine.limits.guard import Turn
from taintwarden.engine.machine import commands, events
from taintwarden.engine.machine.alarm import explain_wave
from taintwarden.engine.machine.inventory import NodeState
from taintwarden.engine.machine.pending import Pending
from taintwarden.engine.machine.verdicts import Verdicts
from taintwarden.engine.model import Instant, Mode, Policy

POLICY_IS_NEW_SECONDS = 30.0
"""A wave within this time after a policy changed is told to be its doing."""
POPULATION_SECONDS = 1.0
"""How old a count of all pods may be that a share of them is taken of."""


class Guards:
    """Turns what guards say into commands. Nothing here is called by a replica that does not lead, but where said.

    Args:
        limiter: whose guards they are.
        verdicts: the policies in force, and whom they select.
        nodes: the nodes with their pods.
        pending: the pods that have to leave.
        reconsider: told the policy whose guard may give another answer now.

    """

    def __init__(
        self,
        limiter: Limiter,
        verdicts: Verdicts,
        nodes: Mapping[str, NodeState],
        pending: Mapping[str, Pending],
        reconsider: Callable[[str], None],
    ) -> None:
        self._limiter = limiter
        self._verdicts = verdicts
        self._nodes = nodes
        self._pending = pending
        self._reconsider = reconsider
        self._populations: dict[str, tuple[float, int]] = {}
        self._generations: dict[str, tuple[int, float]] = {}
        """Policy -> its generation, and when that was new, on the monotonic clock."""

    def policies_changed(self, now: Instant) -> None:
        """Other policies are in force. Followers, too."""
        self._populations = {}
        generations = {}
        for policy in self._verdicts.policies:
            known = self._generations.get(policy.name)
            same = known is not None and known[0] == policy.generation
            generations[policy.name] = known if known and same else (policy.generation, now.monotonic)
        self._generations = generations

    def population(self, policy: str, now: Instant) -> int:
        """How many pods the policy may evict; a count of all pods, made at most once a second."""
        known = self._populations.get(policy)
        if known is None or now.monotonic >= known[0] + POPULATION_SECONDS:
            count = self._verdicts.population(policy, self._nodes.values())
            known = self._populations[policy] = (now.monotonic, count)
        return known[1]

    def wake_after(self, now: Instant) -> list[float]:
        """Seconds until one of them has to be looked at, or saved, although nothing happens."""
        looks: list[float | None] = []
        for guard in self._limiter.guards.values():
            looks += [guard.next_look(now), guard.retry_in(now)]
        return [look for look in looks if look is not None]

    def look(self, now: Instant) -> Iterator[commands.Command]:
        """Open before the first eviction of a wave that is too large; close when its cause is gone."""
        for policy in self._verdicts.policies:
            guard = self._limiter.guards.get(policy.name)
            turn = guard.look(now) if guard else None
            if guard is None or turn is None:
                continue
            self._reconsider(policy.name)
            if turn is Turn.CLOSED:
                yield commands.GuardClosed(policy, None)
                continue
            _, changed_at = self._generations[policy.name]
            is_new = now.monotonic - changed_at < POLICY_IS_NEW_SECONDS
            guard.cause, examples = explain_wave(policy, self._pending.values(), self._nodes, policy_changed=is_new)
            population = self.population(policy.name, now)
            args = (guard.cause, guard.would_evict, population, guard.limit(), examples, guard.halts)
            yield commands.GuardOpened(policy, *args)

    def save(self, ready: Set[str], now: Instant) -> Iterator[commands.SaveGuard]:
        """Have it written what they know, and what is reserved for the policies that have pods standing ready."""
        for policy in self._verdicts.policies:
            guard = self._limiter.guards.get(policy.name)
            if guard is None:
                continue
            waiting = policy.name in ready and policy.mode is Mode.ENFORCE
            record = guard.record_wanted(now, waiting=waiting)
            if record is not None:
                guard.saving = True
                yield commands.SaveGuard(policy, record)

    def saved(self, event: events.GuardSaved, now: Instant) -> None:
        """A write ended."""
        guard = self._limiter.guards.get(event.policy)
        if guard is not None and guard.saving:
            guard.saved(now, succeeded=event.succeeded)
            self._reconsider(event.policy)

    def reset(self, event: events.GuardReset, now: Instant) -> Iterator[commands.Command]:
        """Let go what an open guard holds. Asked of one that is closed, it only says that this was done."""
        policy = self._policy(event.policy)
        if policy is None:
            return
        guard = self._limiter.guards.get(policy.name)
        accepted = guard.reset(now) if guard else None
        if accepted is not None:
            yield commands.GuardClosed(policy, accepted)
            self._reconsider(policy.name)
        yield commands.ClearGuardReset(policy)

    def _policy(self, name: str) -> Policy | None:
        return next((policy for policy in self._verdicts.policies if policy.name == name), None)
