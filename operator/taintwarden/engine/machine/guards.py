"""The guards of all policies: checked before evictions, stored before what they reserve, reported when they change."""

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from functools import partial

from taintwarden.engine.limits import Limiter
from taintwarden.engine.limits.guard import Guard, Turn
from taintwarden.engine.machine import commands, events
from taintwarden.engine.machine.claims import Claim, Claims, Phase
from taintwarden.engine.machine.cluster import Cluster, history_name
from taintwarden.engine.machine.events import WriteOutcome
from taintwarden.engine.machine.outbox import Outbox, guard_key
from taintwarden.engine.machine.stepping import Step
from taintwarden.engine.machine.timings import Timings
from taintwarden.engine.machine.verdicts import Verdicts
from taintwarden.engine.model import Instant, Mode, MonotonicTime, Policy

EXAMPLES = 5
"""How many pods a notice lists."""
POPULATION_SECONDS = 1.0
"""The greatest age of a count of all pods that a percentage refers to."""


class Guards:
    """Translates the results of guards into commands. Only leaders use it, except for the first section.

    Args:
        step: the current step.
        limiter: contains the guards.
        verdicts: the policies in force, and which pods they select.
        cluster: what is known.
        claims: the pods that have to leave.
        outbox: writes the guard records.
        timings: how long a change counts as new.

    """

    def __init__(
        self,
        step: Step,
        limiter: Limiter,
        verdicts: Verdicts,
        cluster: Cluster,
        claims: Claims,
        outbox: Outbox,
        timings: Timings,
    ) -> None:
        self._step = step
        self._limiter = limiter
        self._verdicts = verdicts
        self._cluster = cluster
        self._claims = claims
        self._outbox = outbox
        self._timings = timings
        self._generations: dict[str, tuple[int, float]] = {}
        """Policy -> its generation, and since when that is in force."""
        self._profile_change = ("", 0.0)
        """The last change of a profile that changed what pods tolerate, and when it happened."""
        self._resets: dict[str, str] = {}
        """Policy -> the request for a reset."""
        self._reserving: dict[str, tuple[float, int]] = {}
        """Policy -> the reservation in the record that is being written."""
        self._populations: dict[str, tuple[MonotonicTime, int]] = {}
        self._halted: dict[str, None] = {}
        """Policies for which it was reported that every zone is Full."""

    # -- followers, too ---------------------------------------------------------------------------------------------

    def policies_changed(self, now: Instant) -> None:
        """The policies in force changed."""
        self._populations = {}
        generations = {}
        for policy in self._verdicts.policies:
            generation, since = self._generations.get(policy.name, (policy.generation, policy.created_at))
            generations[policy.name] = (policy.generation, since if generation == policy.generation else now.wall)
            guard = self._limiter.guards.by_policy.get(policy.name)
            if guard is not None:
                guard.population = partial(self.population, policy)
        for name in self._generations:
            if name not in generations:
                self._outbox.forget(guard_key(name))
        self._generations = generations
        self._halted = {name: None for name in self._halted if name in generations}

    def profile_changed(self, change: str, now: Instant) -> None:
        """A change of a profile changed what pods tolerate."""
        self._profile_change = (change, now.wall)

    def population(self, policy: Policy) -> int:
        """How many pods the policy may evict; counted at most once a second."""
        now = self._step.now.monotonic
        known = self._populations.get(policy.name)
        if known is None or not known[0] <= now < known[0] + POPULATION_SECONDS:
            known = self._populations[policy.name] = (now, self._verdicts.population(policy, self._cluster))
        return known[1]

    def leadership_changed(self) -> None:
        """A requested reset applies only to the process that led then, and to the pods that it held then."""
        self._resets, self._reserving, self._halted = {}, {}, {}

    # -- leaders ----------------------------------------------------------------------------------------------------

    def next_in(self, now: Instant) -> float | None:
        """Seconds until a guard has to be checked even if no event occurs."""
        if self._resets:
            return 0.0
        looks = (guard.next_look(now) for guard in self._limiter.guards.by_policy.values())
        return min((look for look in looks if look is not None), default=None)

    def look(self) -> None:
        """Trip before the first eviction of a wave that is too large; arm again when the cause is gone."""
        for policy in self._verdicts.policies:
            guard = self._limiter.guards.by_policy.get(policy.name)
            if guard is not None:
                self._look(policy, guard)
            self._look_at_zones(policy)

    def _look(self, policy: Policy, guard: Guard) -> None:
        now = self._step.now
        match guard.look(now):
            case Turn.ARMED:
                self._step.report(commands.GuardArmed(policy, None))
            case Turn.TRIPPED:
                guard.cause, examples = self._explain(policy)
                evicted = sum(count for _, count in guard.record(now).spent)
                population = self.population(policy)
                details = (guard.expected(), evicted, population, guard.limit(), examples, guard.halts)
                self._step.report(commands.GuardTripped(policy, guard.cause, *details))
            case Turn.PASSED | None:
                pass

    def _look_at_zones(self, policy: Policy) -> None:
        """Report once that every zone is Full and holds pods."""
        if not self._limiter.zones.all_full(policy.name):
            if self._halted.pop(policy.name, "") is None:
                self._step.report(commands.EvictionsResumed(policy))
            return
        if policy.name in self._halted or policy.mode is Mode.PAUSED or policy.reclaim is not None:
            return
        waiting = sum(1 for _ in self._of(policy))
        if waiting:
            self._halted[policy.name] = None
            zones = len(self._limiter.zones.table(policy.name))
            self._step.report(commands.EvictionsHalted(policy, zones, waiting))

    def save(self, ready: Set[str]) -> None:
        """Write the records of guards, with reservations for the policies that have READY claims."""
        now = self._step.now
        for policy in self._verdicts.policies:
            guard = self._limiter.guards.by_policy.get(policy.name)
            if guard is None or self._outbox.is_waiting(guard_key(policy.name)):
                continue
            waiting = policy.name in ready and policy.mode is Mode.ENFORCE
            reserved = guard.record_wanted(now, waiting=waiting)
            if reserved is not None:
                self._reserving[policy.name] = reserved
                self._outbox.put(commands.SaveGuard(policy, guard.record(now, reserved)))

    def saved(self, order: commands.SaveGuard, outcome: WriteOutcome) -> None:
        """The write of a record ended. After a failure a new record is written, since time has passed."""
        guard = self._limiter.guards.by_policy.get(order.policy.name)
        reserved = self._reserving.pop(order.policy.name, None)
        if guard is not None and reserved is not None:
            guard.saved(order.record, reserved, succeeded=outcome is WriteOutcome.DONE)
            self._take_off_reset(order.policy, guard)

    def _take_off_reset(self, policy: Policy, guard: Guard) -> None:
        """Only after the grant is stored: the next leader must not grant the request for another wave."""
        if guard.reset and guard.is_grant_stored:
            self._outbox.put(commands.ClearGuardReset(policy))

    def reset_taken_off(self, order: commands.ClearGuardReset, outcome: WriteOutcome) -> None:
        """The removal of a request for a reset ended."""
        guard = self._limiter.guards.by_policy.get(order.policy.name)
        if guard is not None and guard.reset and outcome in (WriteOutcome.DONE, WriteOutcome.GONE):
            guard.grant("")

    def ask_reset(self, event: events.GuardReset) -> None:
        """A reset is requested, and granted when all that it would release is known; or the request is removed."""
        guard = self._limiter.guards.by_policy.get(event.policy)
        if event.reset:
            self._resets[event.policy] = event.reset
        else:
            self._resets.pop(event.policy, None)
            if guard is not None and guard.reset:
                guard.grant("")

    def reset(self) -> None:
        """Release the pods that a tripped guard or unhealthy zones hold; if there are none, only grant the request."""
        resets, self._resets = self._resets, {}
        for policy in self._verdicts.policies:
            if policy.name not in resets:
                continue
            guard, reset = self._limiter.guards.by_policy.get(policy.name), resets[policy.name]
            if guard is None:
                self._outbox.put(commands.ClearGuardReset(policy))
            elif guard.reset == reset:
                self._take_off_reset(policy, guard)
            else:
                if guard.is_tripped or self._limiter.zones.all_full(policy.name):
                    released = guard.release(guard.held(), self._step.now)
                    self._step.report(commands.GuardArmed(policy, released))
                guard.grant(reset)

    # -- the cause ----------------------------------------------------------------------------------------------------

    def _of(self, policy: Policy) -> Iterator[Claim]:
        """The claims of a policy for which no call was made yet."""
        for claim in self._claims:
            if claim.policy.name == policy.name and claim.phase not in (Phase.IN_FLIGHT, Phase.LEAVING):
                yield claim

    def _explain(self, policy: Policy) -> tuple[str, tuple[str, ...]]:
        """The cause of a wave in one sentence, and some of its pods, for the taint that affects the most pods.

        If a policy or a profile changed recently and the taint has had its value for longer, the change is the cause.
        """
        pods: Counter[str] = Counter()
        places: dict[str, dict[str, Claim]] = {}
        names: list[tuple[float, str]] = []
        for claim in self._of(policy):
            name = history_name(claim.verdict.taint)
            pods[name] += 1
            places.setdefault(name, {}).setdefault(claim.node, claim)
            names.append((claim.due_at, self._name(claim)))
        if not pods:
            return "evictions of the last window", ()
        name = min(pods, key=lambda one: (-pods[one], one))
        on = places[name]
        node = min(on)
        state = self._cluster.nodes.get(node)
        spans = state.histories[name].spans if state and name in state.histories else ()
        before = f", {spans[-2].value or 'no value'} before" if len(spans) > 1 else ""
        nodes = f"{len(on)} nodes, such as" if len(on) > 1 else "1 node:"
        sentence = f"taint {name} on {nodes} {on[node].verdict.taint} on {node}{before}"
        change = self._newest_change(policy)
        if change is not None and spans and spans[-1].since < change[1]:
            sentence = f"{change[0]}; {sentence}"
        return sentence, _first(names)

    def _name(self, claim: Claim) -> str:
        pod = self._cluster.pod(claim.node, claim.uid)
        return str(pod) if pod is not None else claim.uid

    def _newest_change(self, policy: Policy) -> tuple[str, float] | None:
        """The latest recent change of a policy or profile, and when it happened."""
        generation, since = self._generations[policy.name]
        how = "was created" if generation == 1 else f"changed to generation {generation}"
        what, at = max((f"the policy {how}", since), self._profile_change, key=lambda change: change[1])
        return (what, at) if self._step.now.wall - at < self._timings.change_is_new else None


def _first(names: Iterable[tuple[float, str]]) -> tuple[str, ...]:
    return tuple(text for _, text in sorted(names)[:EXAMPLES])
