"""The guard: how many pods are evicted in any window, what is stored of that, and what a reset releases."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simulated.world import law
from simulated.world.adapter import spent
from simulated.world.agenda import EPOCH
from simulated.world.judges.base import Judge
from simulated.world.judges.safety import STALE_SECONDS
from simulated.world.objects import Node, Pod
from simulated.world.store import last_change
from simulated.world.wire import Request

if TYPE_CHECKING:
    from simulated.world.judges import Judges
    from simulated.world.judges.safety import Eviction

SLACK_SECONDS = 2.0
"""Times in objects have whole seconds, and clocks differ: within that it is not said what came first."""
OVERDUE_SECONDS = 10.0
LONGEST_SECONDS = 3_600.0
"""No window of a guard is longer."""
RELEASE_SECONDS = 120.0
"""How long released pods may take, at the slowest rates that worlds have."""


@dataclass
class Account:
    """The evictions of one policy that count for everybody, while its guard was in force."""

    sent: list[tuple[float, str]] = field(default_factory=list)
    """Of the last ``LONGEST_SECONDS``."""
    limits: list[tuple[float, int]] = field(default_factory=list)
    released: dict[str, None] = field(default_factory=dict)

    def evict(self, at: float, uid: str) -> None:
        """A pod was evicted."""
        self.sent = [*(one for one in self.sent if one[0] > at - LONGEST_SECONDS), (at, uid)]
        self.limits = [one for one in self.limits if one[0] > at - LONGEST_SECONDS]


class Guards(Judge):
    """What the judges of guards share."""

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self.accounts: dict[str, Account] = {}

    def account(self, rules: law.Rules) -> Account:
        return self.accounts.setdefault(rules.uid, Account())

    def stored(self, kind: str, key: str, before: Any, after: Any) -> None:
        if kind == "policies" and before and after and (before.reset is None) != (after.reset is None):
            self._release(law.rules_of(after))

    def _release(self, rules: law.Rules) -> None:
        """A reset was asked for, or is granted: whoever has to leave now may be released by it."""
        account = self.account(rules)
        for pod in self.world.store.objects["pods"].values():
            if any(one.rules.name == rules.name for one in self.judges.demands_at(pod, self.world.agenda.now)):
                account.released[pod.uid] = None

    def population(self, rules: law.Rules) -> int:
        """How many pods a policy may evict, by the truth."""
        nodes = self.world.store.objects["nodes"]
        pods = (pod for pod in self.world.store.objects["pods"].values() if pod.stopping_until is None)
        return self.counted(rules, nodes, pods)

    def counted(self, rules: law.Rules, nodes: Mapping[str, Node], pods: Iterable[Pod]) -> int:
        """How many of these pods a policy may evict."""
        scene, wall = self.world.truth, self.world.agenda.wall
        return sum(
            pod.node in nodes
            and law.matches(rules.nodes, nodes[pod.node].labels)
            and law.selects(rules, scene, pod, wall)
            for pod in pods
        )

    def cause(self, pod: Pod, rules: law.Rules, at: float, ahead: float = 0.0, *, was_seen: bool = False) -> str:
        """Whose doing it is that a policy wants a pod to leave within ``ahead`` seconds; empty: it does not.

        ``general``: the pod was on its node, with the tolerations that it has, before the value, the taint, the policy
        or the labels of the node or the namespace became as they are. ``own``: after all of them, while a replica led.
        Else ``unclear``. ``was_seen``: whatever happened since, the operator may know when it saw the taint appear.
        """
        latest = EPOCH + at + ahead
        due = [one for one in self.judges.demands_at(pod, at) if one.rules.name == rules.name and one.due <= latest]
        if not due:
            return ""
        past = self.world.store.past
        policy = last_change(past["policies"][rules.name], at, _relevant)
        labels = last_change(past["nodes"][pod.node], at, lambda one: one and law.matches(rules.nodes, one.labels))
        if (namespace := past["namespaces"].get(pod.namespace)) is not None:
            selected = last_change(namespace, at, lambda one: one and law.matches(rules.namespaces, one.labels))
            labels = max(labels, selected)
        mine = self.judges.caused_at(pod, at)
        watched = self.judges.well_since(pod)
        since = [
            max((one.met if was_seen or watched < one.met - EPOCH else one.since) - EPOCH, policy, labels)
            for one in due
        ]  # who did not watch as the taint appeared can only believe what its writer states
        if mine < min(since) - SLACK_SECONDS:
            return "general"
        is_own = mine > max(since) + SLACK_SECONDS and self.judges.has_led(max(since), mine - SLACK_SECONDS)
        return "own" if is_own else "unclear"


class GuardWindows(Guards):
    """In any window of ``windowSeconds`` at most the limit of pods is evicted by one policy without a reset.

    The limit is that of docs/concepts.md, of the greatest population in the window. A pod whose own namespace caused
    its eviction does not count here: one that came to its node after everything that evicts it was in force, or whose
    tolerations were changed after that.
    """

    name = "guard"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._worst: dict[str, tuple[int, str]] = {}
        judges.on_eviction.append(self._evicted)

    def calm_ends(self) -> None:
        for name, (_, sentence) in self._worst.items():
            self.breach(name, sentence)

    def _evicted(self, eviction: "Eviction") -> None:
        rules, pod = eviction.rules, eviction.pod
        at = eviction.request.sent_at
        if rules is None or rules.guard is None or self.judges.pod_at(pod.uid, at) is None:
            return
        account = self.account(rules)
        if pod.uid in account.released or self.cause(pod, rules, at) != "general":
            return
        window = rules.guard["windowSeconds"]
        account.evict(at, pod.uid)
        within = [one for one in account.sent if one[0] > at - window]
        population = self.population(rules) + len(within)
        account.limits.append((at, law.guard_limit(rules.guard, population)))
        limit = max(one for when, one in account.limits if when > at - window)
        if len(within) > max(limit, self._worst.get(rules.name, (0, ""))[0]):
            sentence = f"{rules.name} evicted {len(within)} pods within {window} s, and {limit} of {population} may be"
            self._worst[rules.name] = (len(within), f"{sentence}; the first left at {within[0][0]:.1f}")


def _relevant(policy: Any) -> object:
    return policy and (law.rules_of(policy).relevant(), policy.uid)


class Trips(Guards):
    """Says for other judges whether a guard may hold a pod: at some time more had to leave than its limit.

    Evictions that are reserved in the stored record count as if they had happened. Pods whose own namespace caused it
    count for that namespace only.
    """

    name = "trips"

    def could_trip(self, rules: law.Rules, namespace: str) -> bool:
        """Whether the guard of a policy may have tripped for pods of a namespace at any time, and hold them still."""
        past = self.world.store.past
        times = {self.world.agenda.now: None}
        for kind in ("nodes", "policies", "profiles"):
            for one in past[kind].values():
                for at in one.times:  # a value that is bad for a moment is enough; and it is seen later
                    times |= {at: None, at + 1.0: None}
        evictions = {one.at: None for one in self.judges.evictions}
        there = {at: self._population_at(rules, at) + self._evicted(rules, at) for at in sorted(times | evictions)}
        return any(self._count(rules, namespace, at) > self._limit(rules, there, at) for at in sorted(times))

    def _limit(self, rules: law.Rules, there: Mapping[float, int], at: float) -> int:
        """Of the fewest pods of the window, those that were evicted in it included: they may be replaced since."""
        assert rules.guard is not None
        window = rules.guard["windowSeconds"]
        return law.guard_limit(rules.guard, min(pods for when, pods in there.items() if at - window < when <= at))

    def _population_at(self, rules: law.Rules, at: float) -> int:
        past = self.world.store.past
        nodes = {name: node for name, one in past["nodes"].items() if (node := one.at(at)) is not None}
        pods = (pod for uid in past["pods"] if (pod := self.judges.pod_at(uid, at)) is not None)
        return self.counted(rules, nodes, pods)

    def _evicted(self, rules: law.Rules, at: float) -> int:
        assert rules.guard is not None
        window = rules.guard["windowSeconds"]
        return sum(at - window < one.at <= at and one.policy == rules.name for one in self.judges.evictions)

    def _count(self, rules: law.Rules, namespace: str, at: float) -> int:
        """Pods that had to leave within the window then, with those evicted within the window before."""
        assert rules.guard is not None
        window = rules.guard["windowSeconds"]
        stored = self.world.store.past["policies"][rules.name].at(at)
        reserved = 0 if stored is None else sum(pods for _, pods in spent(stored.guard))
        count = max(self._evicted(rules, at), reserved)
        for uid in self.world.store.past["pods"]:
            pod = self.judges.pod_at(uid, at)
            why = "" if pod is None else self.cause(pod, rules, at, window, was_seen=True)
            count += bool(why) and (why != "own" or (pod is not None and pod.namespace == namespace))
        return count


class GuardRecords(Guards):
    """Evictions are counted in ``status.guard`` before they happen: after a crash the count is never too low.

    When a request that evicts goes to its socket, the stored record counts at least this one and those of the window
    that are known to be general and were not released. What was stored of a policy that is another one since less than
    ``STALE_SECONDS`` went with it.
    """

    name = "record"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        judges.on_eviction.append(self._evicted)

    def _evicted(self, eviction: "Eviction") -> None:
        rules, pod, at = eviction.rules, eviction.pod, eviction.request.sent_at
        if rules is None or rules.guard is None or self.judges.pod_at(pod.uid, at) is None:
            return
        account = self.account(rules)
        if pod.uid not in account.released and self.cause(pod, rules, at) == "general":
            account.evict(at, pod.uid)

    def sent(self, request: Request) -> None:
        if request.verb not in ("POST", "DELETE") or request.order.what not in ("evict", "delete"):
            return
        policy = self.world.store.get("policies", request.order.policy)
        pod = self.judges.pod_at(request.order.key, self.world.agenda.now)
        rules = None if policy is None else law.rules_of(policy)
        if policy is None or rules is None or rules.guard is None or pod is None or rules.mode != "Enforce":
            return
        account, now = self.account(rules), self.world.agenda.now
        past = self.world.store.past["policies"][rules.name]
        if any(one and one.uid != policy.uid for _, one in past.since(now - STALE_SECONDS, now)):
            return
        if pod.uid in account.released or self.cause(pod, rules, now) != "general":
            return
        window = rules.guard["windowSeconds"] * 0.9
        counted = {uid: None for at, uid in account.sent if at > now - window} | {pod.uid: None}
        stored = sum(pods for _, pods in spent(policy.guard))
        if stored < len(counted):
            self.breach(
                rules.name,
                f"status.guard of {rules.name} counts {stored} evictions when the one of {pod.uid} goes out, "
                f"which is number {len(counted)} in the window",
            )


class Resets(Guards):
    """A reset releases what the guard, or zones that are all Full, hold at that time: all of it, though not at once.

    Whoever was overdue for ``OVERDUE_SECONDS`` when a person asked, and could only be held by these two, is gone at the
    end of the calm, if it still has to leave for the same reasons.
    """

    name = "reset"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._held: dict[str, tuple[str, float]] = {}
        """UID -> policy, and when the reset was asked for."""

    def stored(self, kind: str, key: str, before: Any, after: Any) -> None:
        if kind != "policies" or after is None or before is None or before.reset is not None or after.reset is None:
            return
        rules, now = law.rules_of(after), self.world.agenda.now
        if rules.mode != "Enforce" or set(rules.limits) - {"guard", "zoneHealth"} or rules.has_windows or rules.reclaim:
            return
        if rules.guard is None or self.world.leader is None:
            return
        for pod in self.world.store.objects["pods"].values():
            latest = self.judges.latest(pod, rules, now)
            overdue = None if latest is None else now + EPOCH - max(latest[0], EPOCH + self.judges.well_since(pod))
            if overdue is not None and overdue > OVERDUE_SECONDS and not self.world.server.budgets_of(pod):
                self._held[pod.uid] = (rules.name, now)

    def calm_ends(self) -> None:
        now = self.world.agenda.now
        for uid, (name, asked_at) in self._held.items():
            pod = self.world.store.get("pods", uid)
            policy = self.world.store.get("policies", name)
            if pod is None or pod.stopping_until is not None or policy is None or now < asked_at + RELEASE_SECONDS:
                continue
            found = [one for one in self.judges.demands_at(pod, now) if one.rules.name == name]
            if any(one.due < EPOCH + asked_at for one in found) and self.judges.changed_since(pod, now) < asked_at:
                left = sum(1 for other in self._held if self.world.store.get("pods", other) is not None)
                self.breach(
                    name,
                    f"{uid} is still on {pod.node}, {now - asked_at:.0f} s after the reset of {name} that released it; "
                    f"{left} of {len(self._held)} released pods are there",
                )
