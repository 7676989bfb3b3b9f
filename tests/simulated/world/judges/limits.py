"""Rates, zones and budgets, from the truth."""

from collections import deque
from typing import TYPE_CHECKING, Any

from simulated.world import law
from simulated.world.agenda import EPOCH
from simulated.world.judges.base import Judge
from simulated.world.judges.safety import STALE_SECONDS
from simulated.world.objects import Node, Pod
from simulated.world.store import Past
from simulated.world.wire import Request

if TYPE_CHECKING:
    from simulated.world.judges import Judges
    from simulated.world.judges.safety import Eviction

EXCLUDED = "node.kubernetes.io/exclude-disruption"
REMEMBERED_PODS = 20
BLINK_SECONDS = 3.0
"""What a budget allows for less than that, another eviction may have taken."""
LONGEST_SECONDS = 3_600.0
"""Rates are judged over intervals of up to so long."""


class Rates(Judge):
    """In any interval a policy has evicted at most ``burst`` pods and ``evictionsPerSecond`` more a second.

    An eviction counts when it was ordered; a call that evicts nobody costs nothing from its answer on. A policy whose
    limits were edited begins anew, and so does another leader.
    """

    name = "rate"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._ordered: dict[tuple[str, float, int, str, int], list[float]] = {}
        self._returned: dict[str, list[float]] = {}
        """Policy -> when calls ended that evicted nobody."""
        judges.on_eviction.append(self._evicted)

    def answered(self, request: Request, code: int) -> None:
        if not 200 <= code < 300:
            self.withheld(request)

    def withheld(self, request: Request) -> None:
        if request.order.what in ("evict", "delete"):
            self._returned.setdefault(request.order.policy, []).append(self.world.agenda.now)

    def _evicted(self, eviction: "Eviction") -> None:
        rules = eviction.rules
        rate = None if rules is None or rules.reclaim is not None else rules.limits.get("evictionsPerSecond")
        if rules is None or rate is None:
            return
        burst = rules.limits.get("burst", 20)
        request = eviction.request
        key = (rules.uid, rate, burst, request.replica.name, request.term)
        at = request.ordered_at
        times = [one for one in self._ordered.get(key, ()) if one > at - LONGEST_SECONDS]
        self._ordered[key] = times = sorted([*times, at])
        for index, begin in enumerate(times):
            count = len(times) - index - sum(begin <= one <= times[-1] for one in self._returned.get(rules.name, ()))
            if count > burst + rate * (times[-1] - begin) + 0.05:
                self.breach(rules.name, f"{rules.name} evicted {count} pods in {times[-1] - begin:.1f} s at {rate}/s")
                return


class FullZones(Judge):
    """While every node that counts is drained, a policy with ``zoneHealth`` evicts nobody who was not released.

    A node is drained if pods that were on it before the value fell have to leave, of two namespaces or at least half of
    the pods that have a say there; pods that came later, that asked for something else since, or tolerated no earlier
    value, say nothing; those that left because of it still count. A node counts if pods on it have a say, or if it
    could take pods that have to leave: here every node that no taint of the effect NoExecute or NoSchedule makes unfit.
    It has to have been so for ``STALE_SECONDS``.
    """

    name = "zones"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._gone: deque[tuple[float, str]] = deque()
        """When pods went, and which, of the last ``STALE_SECONDS``."""
        self._left: dict[tuple[str, str], deque[Pod]] = {}
        """Policy and node -> the pods that it has evicted from there."""
        judges.on_eviction.append(self._evicted)

    def _evicted(self, eviction: "Eviction") -> None:
        rules = eviction.rules
        if rules is None or rules.reclaim is not None or "zoneHealth" not in rules.limits:
            return
        at = eviction.request.sent_at
        guards = self.judges.guard_windows
        if eviction.pod.uid not in guards.account(rules).released and rules.name not in self._stated:
            moments = (at, at - STALE_SECONDS / 2, at - STALE_SECONDS)
            if all(self._drained(rules, max(0.0, moment)) for moment in moments):
                self.breach(
                    rules.name,
                    f"{eviction.pod.uid} was evicted from {eviction.pod.node} by {rules.name} while all "
                    f"{self._drained(rules, at)} nodes that count were drained",
                )
        left = self._left.setdefault((rules.name, eviction.pod.node), deque(maxlen=REMEMBERED_PODS))
        left.append(eviction.pod)

    def stored(self, kind: str, key: str, before: Any, after: Any) -> None:
        if kind == "pods" and after is None:
            self._gone.append((self.world.agenda.now, key))
        if kind == "nodes" and after is not None:
            self._forget_those_that_could_stay(after)

    def _forget_those_that_could_stay(self, node: Node) -> None:
        """Pods that left because of a value say nothing of the next one, if they could have stayed between."""
        for policy in self.world.truth.policies():
            rules = law.rules_of(policy)
            if left := self._left.get((rules.name, node.name)):
                now = self.world.agenda.now
                kept = [pod for pod in left if self._says(rules, node, pod, now)]
                self._left[rules.name, node.name] = deque(kept, maxlen=REMEMBERED_PODS)

    def _drained(self, rules: law.Rules, moment: float) -> int:
        """How many nodes count, if all of them are drained and there are enough; else 0."""
        store, scene = self.world.store, self.world.truth_at(moment)
        if not any(one.uid == rules.uid and law.rules_of(one).mode == "Enforce" for one in scene.policies()):
            return 0
        count = 0
        for past in store.pasts_since("nodes", moment):
            node = past.at(moment)
            if node is None or EXCLUDED in node.labels:
                continue
            if law.matches(rules.nodes, node.labels) and self.is_drained(rules, node, moment):
                count += 1
            elif (
                not any(one.effect in ("NoExecute", "NoSchedule") for one in node.taints)
                or self._has_say(rules, node, moment)
                or law.matches(rules.nodes, node.labels)
            ):
                return 0
        return count if count >= rules.limits["zoneHealth"].get("minNodes", 3) else 0

    def _has_say(self, rules: law.Rules, node: Node, moment: float) -> bool:
        return any(self._says(rules, node, pod, moment) is not None for pod in self._pods(rules, node, moment))

    def _pods(self, rules: law.Rules, node: Node, moment: float) -> list[Pod]:
        while self._gone and self._gone[0][0] < self.world.agenda.now - STALE_SECONDS - 1.0:
            self._gone.popleft()
        uids = [*self.world.store.objects["pods"], *(uid for _, uid in self._gone)]
        there = [self.judges.pod_at(uid, moment) for uid in uids]
        pods = [pod for pod in there if pod is not None and pod.node == node.name]
        return [*pods, *self._left.get((rules.name, node.name), [])]

    def _says(self, rules: law.Rules, node: Node, pod: Pod, moment: float) -> bool | None:
        """Whether a pod says that the node is bad; None: it has no say."""
        scene, states = self.world.truth_at(moment), self.judges.knowledge.states(node.name, moment)
        bound_at, caused_at = self.judges.bound_since(pod), EPOCH + self.judges.caused_at(pod, moment)
        says: bool | None = None
        for taint in node.taints:
            found = law.acting(scene, pod, node, taint, EPOCH + moment)
            if found is None or found.name != rules.name:
                continue
            presence = law.presence_of(states, taint)
            bad_since = law.untolerated_since(scene, pod, presence)
            if bad_since is None:
                says = bool(says)
            elif max(bound_at, caused_at) < bad_since - 1.0 and law.was_good_before(scene, pod, presence, bound_at):
                says = True
        return says

    def is_suspect(self, rules: law.Rules, node: Node, moment: float) -> bool:
        """Whether a node is not clearly healthy: it has taints, and no pod with a say, or one that says it is bad."""
        says = [self._says(rules, node, pod, moment) for pod in self._pods(rules, node, moment)]
        return bool(node.taints) and (True in says or False not in says)

    def is_drained(self, rules: law.Rules, node: Node, moment: float) -> bool:
        """Whether a node counts as drained by the rule above."""
        pods = self._pods(rules, node, moment)
        said = [(pod, self._says(rules, node, pod, moment)) for pod in pods]
        bad = [pod for pod, says in said if says]
        having = [pod for pod, says in said if says is not None]
        return len({pod.namespace for pod in bad}) >= 2 or (bool(bad) and 2 * len(bad) >= len(having))


class Spared(Judge):
    """``perWorkload.maxUnavailable`` and ``perNode.maxConcurrent``, for pods whose eviction took effect.

    When the eviction was ordered, or at some moment of the last ``STALE_SECONDS``, the workload could spare one more
    Ready pod: afterwards no more than the share of its desired pods was missing, evictions ordered before included. And
    fewer than the maximum of pods of the node were stopping, or ordered to.
    """

    name = "spared"

    def calm_ends(self) -> None:
        evictions = self.judges.evictions
        for eviction in evictions:
            rules, pod = eviction.rules, eviction.pod
            if rules is None or rules.reclaim is not None:
                continue
            share = rules.limits.get("perWorkload", {}).get(
                "maxUnavailable", "25%" if "perWorkload" in rules.limits else None
            )
            workload = None if pod.owner is None else self.world.store.past["workloads"].get(pod.owner.uid)
            if share is not None and workload is not None and pod.ready:
                self._check_workload(eviction, share, [one for one in evictions if _is_sibling(one.pod, pod)])
            most = rules.limits.get("perNode", {}).get("maxConcurrent")
            if most is not None:
                self._check_node(eviction, most, [one for one in evictions if one.pod.node == pod.node])

    def _moments(self, eviction: "Eviction", pods: list[Past]) -> list[float]:
        at = eviction.request.ordered_at
        found = {at: None, max(0.0, at - STALE_SECONDS): None}
        for past in pods:
            found.update(
                (max(when, 0.0), None) for when, _ in past.since(at - STALE_SECONDS, at) if when >= at - STALE_SECONDS
            )
        return sorted(found)

    def _check_workload(self, eviction: "Eviction", share: int | str, siblings: list["Eviction"]) -> None:
        owner = eviction.pod.owner
        assert owner is not None
        past = self.world.store.past
        pods = [one for one in past["pods"].values() if any(state and state.owner == owner for state in one.states)]
        least = 10**9
        for moment in self._moments(eviction, pods):
            workload = past["workloads"][owner.uid].at(moment)
            if workload is None:
                return
            ready = sum(
                bool(state and state.ready and state.stopping_until is None) for state in (p.at(moment) for p in pods)
            )
            asked = sum(
                _was_asked(one, eviction)
                and one.at > moment
                and (state := self.judges.pod_at(one.pod.uid, moment)) is not None
                and state.ready
                for one in siblings
            )
            spare = max(1, share if isinstance(share, int) else workload.replicas * int(share.removesuffix("%")) // 100)
            least = min(least, workload.replicas - (ready - asked) + 1 - spare)
        if least > 0:
            self.breach(owner.uid, f"{eviction.pod.uid} was evicted although {owner.uid} lacked {least} pods too many")

    def _check_node(self, eviction: "Eviction", most: int, others: list["Eviction"]) -> None:
        node = eviction.pod.node
        pods = [
            one
            for one in self.world.store.past["pods"].values()
            if any(state and state.node == node for state in one.states)
        ]
        least = 10**9
        for moment in self._moments(eviction, pods):
            stopping = sum(bool(state and state.stopping_until is not None) for state in (p.at(moment) for p in pods))
            asked = sum(_was_asked(one, eviction) and one.at > moment for one in others)
            least = min(least, stopping + asked + 1 - most)
        if least > 0:
            self.breach(node, f"{eviction.pod.uid} was evicted from {node}, where {least} pods too many were stopping")


def _was_asked(other: "Eviction", eviction: "Eviction") -> bool:
    """Whether another eviction was ordered before. Of two policies in the same moment, either may have been first."""
    if other is eviction or other.request.ordered_at > eviction.request.ordered_at:
        return False
    return other.policy == eviction.policy or other.request.ordered_at < eviction.request.ordered_at


def _is_sibling(one: Pod, other: Pod) -> bool:
    return one.owner is not None and one.owner == other.owner


class BudgetTimeouts(Judge):
    """``EvictThenDelete`` deletes a pod only when its budgets themselves allowed nothing for the whole time-out.

    A budget that allowed a disruption for ``BLINK_SECONDS`` on end, or that did not select the pod, breaks the time.
    """

    name = "budget-timeout"

    def sent(self, request: Request) -> None:
        if request.verb != "DELETE":
            return
        now = self.world.agenda.now
        policy = self.world.store.get("policies", request.order.policy)
        pod = self.judges.pod_at(request.order.key, now)
        rules = None if policy is None else law.rules_of(policy)
        if rules is None or pod is None or rules.method != "EvictThenDelete" or rules.reclaim is not None:
            return
        allowed = self._allowed_for(pod, now - rules.budget_seconds + BLINK_SECONDS, now - BLINK_SECONDS)
        if allowed >= BLINK_SECONDS:
            self.breach(
                pod.uid,
                f"{pod.uid} was deleted by {rules.name} though its budget had allowed its eviction for {allowed:.1f} s "
                f"within the last {rules.budget_seconds} s",
            )

    def _allowed_for(self, pod: Pod, begin: float, end: float) -> float:
        """The longest time on end within the interval in which budgets allowed the eviction."""
        past = self.world.store.past["budgets"]
        moments = {max(begin, 0.0): None, end: None}
        pods = self.world.store.past["pods"].get(pod.uid)
        moments.update((max(at, begin), None) for at, _ in (pods.since(begin, end) if pods is not None else ()))
        for key, one in past.items():
            if key.startswith(f"{pod.namespace}/"):
                moments.update((max(at, begin), None) for at, _ in one.since(begin, end))
        times = sorted(at for at in moments if at <= end)
        longest, since = 0.0, None
        for at in times:
            if self._allows(pod, at):
                since = at if since is None else since
                longest = max(longest, at - since)
            elif since is not None:
                longest, since = max(longest, at - since), None
        return longest

    def _allows(self, pod: Pod, moment: float) -> bool:
        past = self.world.store.past["budgets"]
        found = [one.at(moment) for one in past.values()]
        budgets = [one for one in found if one and one.namespace == pod.namespace and one.app == pod.labels.get("app")]
        state = self.judges.pod_at(pod.uid, moment)
        if len(budgets) > 1 or state is None:
            return state is None
        if not budgets:
            return True
        budget = budgets[0]
        healthy = budget.always_allow or budget.healthy >= budget.desired > 0
        return (not state.ready and healthy) or (budget.observed >= budget.generation and budget.allowed > 0)
