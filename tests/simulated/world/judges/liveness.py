"""What has to have happened when nothing hindered it any more."""

from typing import TYPE_CHECKING, Any

from simulated.world import law
from simulated.world.adapter import Order
from simulated.world.agenda import EPOCH
from simulated.world.judges.base import Judge
from simulated.world.judges.safety import LATE_SECONDS
from simulated.world.objects import Pod

if TYPE_CHECKING:
    from simulated.world.judges import Judges
    from simulated.world.replica import Replica

LONG = 3_600.0
FORGIVEN_SECONDS = 600.0
"""How long an evicted pod of an owner that is not watched counts as missing."""


class Held(Judge):
    """At the end of the calm nobody waits for a limit that has no reason to hold it.

    The calm is long enough for every rate; what the operator could not know of a node does not count. What may still
    hold a pod, by the truth: a window, an unhealthy zone unless a node is clearly healthy, a guard unless all that had
    to leave at any time is within its limit, a budget that allows nothing, a workload that lacks too many pods, a
    bounce. A bounce holds nobody because of a taint by which its workload was not evicted from this node before, or
    longer ago than rounds are remembered. An owner of a kind that no API server has is counted by its pods.
    """

    name = "held"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._evicted_from: dict[tuple[str, str], list[tuple[float, frozenset[str]]]] = {}
        """UID of the owner and the node -> when, and which taints demanded it."""
        judges.on_eviction.append(self._note)

    def _note(self, eviction: Any) -> None:
        pod = eviction.pod
        key = ("" if pod.owner is None else pod.owner.uid, pod.node)
        demands = self.judges.demands_of(pod, eviction.at)
        self._evicted_from.setdefault(key, []).append((eviction.at, frozenset(one.taint.key for one in demands)))

    def calm_ends(self) -> None:
        now = self.world.agenda.now
        for pod in list(self.world.store.objects["pods"].values()):
            if pod.stopping_until is not None:
                continue
            for demand in self.judges.demands_at(pod, now):
                if demand.rules.mode != "Enforce" or self.judges.latest(pod, demand.rules, now) is None:
                    continue
                due = max(demand.due - EPOCH, self.judges.changed_since(pod, now), self.world.frozen_at)
                if now - due < self.world.plan.calm_seconds / 2 or self._is_held(pod, demand, now):
                    continue
                taint = demand.taint
                self.breach(
                    pod.uid,
                    f"{pod.uid} is still on {pod.node}, {now - due:.0f} s after {demand.rules.name} had to evict it "
                    f"because of {taint.key}={taint.value}, and no limit has a reason to hold it",
                )

    def _is_held(self, pod: Pod, demand: law.Demand, now: float) -> bool:
        rules = demand.rules
        if self._budgets_block(pod, rules):
            return True
        if rules.reclaim is not None:
            return False
        limits = rules.limits
        return (
            rules.has_windows
            or (rules.guard is not None and self.judges.trips.could_trip(rules, pod.namespace))
            or ("zoneHealth" in limits and self._zones_may_hold(rules, now))
            or ("perNode" in limits and pod.node in self.world.cluster.stuck)
            or ("bounce" in limits and self._bounces(pod, demand))
            or ("perWorkload" in limits and self._lacks_pods(pod, limits["perWorkload"].get("maxUnavailable", "25%")))
        )

    def _budgets_block(self, pod: Pod, rules: law.Rules) -> bool:
        budgets = self.world.server.budgets_of(pod) if pod.running else []
        if not budgets or rules.method == "Delete":
            return False
        budget = budgets[0]
        return len(budgets) > 1 or budget.allowed <= 0 or budget.observed < budget.generation

    def _zones_may_hold(self, rules: law.Rules, now: float) -> bool:
        """Unless some node that the policy selects has pods with a say, and none of them says that it is bad."""
        if rules.limits["zoneHealth"].get("haltSmallZones", False):
            return True
        nodes = self.world.store.objects["nodes"].values()
        selected = [node for node in nodes if law.matches(rules.nodes, node.labels)]
        return all(self.judges.zones.is_suspect(rules, node, now) for node in selected)

    def _bounces(self, pod: Pod, demand: law.Demand) -> bool:
        key = ("" if pod.owner is None else pod.owner.uid, pod.node)
        bounce = demand.rules.limits["bounce"]
        remembered = bounce.get("withinSeconds", LONG) + bounce.get("maxBackoffSeconds", LONG)
        since = self.world.agenda.now - remembered
        return any(at >= since and demand.taint.key in keys for at, keys in self._evicted_from.get(key, []))

    def _lacks_pods(self, pod: Pod, share: int | str) -> bool:
        if pod.owner is None or not pod.ready:
            return False
        workload = self.world.store.get("workloads", pod.owner.uid)
        if workload is not None and not workload.exists:
            return pod.owner.api_version == "apps/v1"
        pods = self.world.cluster.pods_of(pod.owner.uid)
        wanted = self._count(pod, pods) if workload is None else workload.replicas
        number = share if isinstance(share, int) else wanted * int(share.removesuffix("%")) // 100
        missing = wanted - sum(one.ready for one in pods)
        return missing + 1 > max(1, number)

    def _count(self, pod: Pod, pods: list[Pod]) -> int:
        """Of an owner that nobody counts: its pods, and those that were evicted in the last ten minutes."""
        assert pod.owner is not None
        since = self.world.agenda.now - FORGIVEN_SECONDS
        owner = pod.owner.uid
        return len(pods) + sum(
            at > since for (uid, _), found in self._evicted_from.items() if uid == owner for at, _ in found
        )


class Lost(Judge):
    """Without any limit, whoever an enforcing policy wants to leave is gone at last, and nobody else is evicted."""

    name = "lost"

    def lifted(self) -> None:
        now = self.world.agenda.now
        for pod in list(self.world.store.objects["pods"].values()):
            if pod.stopping_until is not None:
                continue
            for demand in self.judges.demands_at(pod, now):
                since = max(demand.due - EPOCH, self.judges.changed_since(pod, now))
                known = self.judges.latest(pod, demand.rules, now) is not None
                if known and demand.rules.mode == "Enforce" and now - since > LATE_SECONDS + 60.0:
                    self.breach(
                        pod.uid,
                        f"{pod.uid} is still on {pod.node} without any limit, {now - since:.0f} s after "
                        f"{demand.taint.key}={demand.taint.value} by {demand.rules.name} was due",
                    )


class Quiet(Judge):
    """When everybody is gone who had to leave, no further command is issued: not one call, not one write."""

    name = "quiet"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._since: float | None = None

    def quiet_begins(self) -> None:
        self._since = self.world.agenda.now

    def quiet_ends(self) -> None:
        self._since = None

    def ordered(self, replica: "Replica", order: Order) -> None:
        if self._since is None:
            return
        concerned = [one for one in self.world.store.objects["pods"].values() if order.key in (one.uid, one.node)]
        if not any(list(self.judges.demands_at(one, self.world.agenda.now)) for one in concerned):
            after = self.world.agenda.now - self._since
            self.breach(order.what, f"{order.what} of {order.key} was ordered {after:.0f} s after everything had ended")
