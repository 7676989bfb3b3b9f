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

CHANGE_IS_NEW_SECONDS = 30.0
"""A wave within this time after a policy or a profile of tolerations changed is told to be its doing."""
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
        """Policy -> its generation, and when that began to hold."""
        self._profile_change = ("", 0.0)
        """What the last change of a profile was that changed what pods tolerate, and when."""
        self._resets: dict[str, None] = {}

    def policies_changed(self, now: Instant) -> None:
        """Other policies are in force. Followers, too."""
        self._populations = {}
        generations = {}
        for policy in self._verdicts.policies:
            generation, since = self._generations.get(policy.name, (policy.generation, policy.created_at))
            generations[policy.name] = (policy.generation, since if generation == policy.generation else now.wall)
        self._generations = generations

    def profile_changed(self, change: str, now: Instant) -> None:
        """Pods tolerate something else because of this. Followers, too."""
        self._profile_change = (change, now.wall)

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
            elif turn is Turn.OPENED:
                change = self._newest_change(policy, now)
                guard.cause, examples = explain_wave(policy, self._pending.values(), self._nodes, change)
                population = self.population(policy.name, now)
                args = (guard.cause, guard.expected(), population, guard.limit(), examples, guard.halts)
                yield commands.GuardOpened(policy, *args)

    def _newest_change(self, policy: Policy, now: Instant) -> tuple[str, float] | None:
        """What changed a moment ago beside taints, and when."""
        generation, since = self._generations[policy.name]
        how = "was created" if generation == 1 else f"changed to generation {generation}"
        what, at = max((f"the policy {how}", since), self._profile_change, key=lambda change: change[1])
        return (what, at) if now.wall - at < CHANGE_IS_NEW_SECONDS else None

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

    def ask_reset(self, event: events.GuardReset) -> None:
        """Somebody asked for a reset: it is done when everything is known that it would let go."""
        self._resets[event.policy] = None

    def reset(self, now: Instant) -> Iterator[commands.Command]:
        """Let go what open guards hold that were asked to. Of one that is closed it is only said that this was done."""
        resets, self._resets = self._resets, {}
        for policy in self._verdicts.policies:
            if policy.name not in resets:
                continue
            guard = self._limiter.guards.get(policy.name)
            accepted = guard.reset(now) if guard else None
            if accepted is not None:
                yield commands.GuardClosed(policy, accepted)
                self._reconsider(policy.name)
            yield commands.ClearGuardReset(policy)

    def leadership_changed(self) -> None:
        """A reset that was asked for is for whoever led then, and for what was held then."""
        self._resets = {}

    @property
    def resets(self) -> bool:
        """Whether a reset was asked for."""
        return bool(self._resets)
