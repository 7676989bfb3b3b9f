"""Whether each eviction was right, not early, not late, and by the leader: from the truth when it takes effect."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulated.world import law
from simulated.world.agenda import EPOCH
from simulated.world.judges.base import Judge
from simulated.world.objects import Node, Pod
from simulated.world.wire import Request

if TYPE_CHECKING:
    from simulated.world.judges import Judges

STALE_SECONDS = 10.0
"""How old what an operator acts on may be. It is far below the shortest notice of a spot node (30 s)."""
LATE_SECONDS = 10.0
"""How long after its deadline a pod that nothing delays may still be there."""
ROUNDING = 0.05


@dataclass
class Eviction:
    """An eviction that took effect."""

    request: Request
    pod: Pod
    """As it was stored before."""
    at: float
    policy: str
    rules: law.Rules | None
    demand: law.Demand | None
    """The earliest demand of the policy at the moment, by the truth; None: there was none."""


def bound_since(judges: "Judges", pod: Pod) -> float:
    """True time since which a pod is on its node, seconds since 1970; or what the API server wrote, if earlier."""
    known = judges.bound.get((pod.uid, pod.node))
    if known is not None:
        return known
    past = judges.world.store.past["pods"][pod.uid]
    at = next((at for at, state in zip(past.times, past.states, strict=True) if state and state.node == pod.node), 0.0)
    found = judges.bound[pod.uid, pod.node] = min(EPOCH + at, pod.bound_at)
    return found


class Right(Judge):
    """A pod is evicted only if its policy enforces and one of its taints is not tolerated, or no longer.

    It has to be so at some moment of the last ``STALE_SECONDS`` before the request went to its socket, or between then
    and its effect. The deadline (docs/concepts.md, Deadlines) is computed from all states of the node that the operator
    could know; of two possible ones the earlier counts. A clock may be wrong by as much as the clocks of operators
    differ.
    """

    name = "right"

    def arrives(self, request: Request) -> None:
        if request.verb not in ("POST", "DELETE"):
            return
        pod: Pod | None = self.world.store.get("pods", request.order.key)
        if pod is not None and pod.stopping_until is None:
            self.judges.under_way = pod

    def effect(self, request: Request, code: int) -> None:
        pod, self.judges.under_way = self.judges.under_way, None
        if pod is None or request.verb not in ("POST", "DELETE") or not 200 <= code < 300:
            return
        wanted, early, demand = self._look(request, pod)
        rules = next(
            (law.rules_of(one) for one in self.world.truth.policies() if one.name == request.order.policy), None
        )
        eviction = Eviction(request, pod, self.world.agenda.now, request.order.policy, rules, demand)
        if not wanted:
            self.breach(pod.uid, f"{pod.uid} was evicted from {pod.node} by {request.order.policy}, {self._why(pod)}")
        elif early > 0:
            self.breach(pod.uid, f"{pod.uid} was evicted from {pod.node} {early:.1f} s early")
        self.judges.evicted(eviction)

    def _look(self, request: Request, pod: Pod) -> tuple[bool, float, law.Demand | None]:
        """(whether anybody wanted it, by how much it was early, the demand at the moment that suits best)."""
        wanted, least, found = False, float("inf"), None
        for demand, early in self.judges.earliest(request, pod, request.sent_at - STALE_SECONDS):
            wanted = True
            if early < least:
                least, found = early, demand
            if early <= 0:
                break
        return wanted, least, found

    def _why(self, pod: Pod) -> str:
        node = self.world.store.get("nodes", pod.node)
        taints = "which is gone" if node is None else " ".join(f"{one.key}={one.value}" for one in node.taints)
        return f"which nobody wanted for {STALE_SECONDS:g} s; the node now: {taints or 'no taint'}"


class Fence(Judge):
    """A request that makes a pod leave goes to its socket only if, by all that this replica was told until then, the
    pod still has to leave: POST, DELETE, and the PATCH before a DELETE.
    """

    name = "fence"

    def sent(self, request: Request) -> None:
        order, replica = request.order, request.replica
        if order.what not in ("evict", "delete"):
            return
        pod: Pod | None = replica.told.known["pods"].get(order.key)
        node = None if pod is None else replica.told.node(pod.node)
        if pod is None or node is None:
            return
        if pod.stopping_until is None and self._is_wanted(request, pod, node):
            return
        waited = request.sent_at - request.ordered_at
        self.breach(
            order.key,
            f"{request.verb} of {order.key} by {order.policy} went out {waited:.2f} s after it was ordered, although "
            f"{replica.name} had been told that the pod need not leave",
        )

    def _is_wanted(self, request: Request, pod: Pod, node: Node) -> bool:
        replica, wall = request.replica, self.world.agenda.wall
        states = self.judges.knowledge.known(replica, self.judges.knowledge.states_for(pod, self.world.agenda.now))
        states = [one for one in states if one[1].version <= node.version]
        seen = replica.told.devices.compose(pod, node)
        if not states or states[-1][1].taints != seen.taints:
            states = [*states, (wall, seen)]
        found = law.demands(replica.told, pod, seen, states, pod.bound_at, wall)
        return any(one.rules.name == request.order.policy and one.rules.mode == "Enforce" for one in found)


class Leader(Judge):
    """Whatever writes goes to its socket only while its replica holds the lease, and nobody else acquired it since."""

    name = "leader"

    def sent(self, request: Request) -> None:
        if request.verb == "GET":
            return
        lease, replica = self.world.lease, request.replica
        if lease.holds(replica):
            return
        holder = "nobody" if lease.holder is None else lease.holder.name
        waited = request.sent_at - request.ordered_at
        how = f"{holder} holds it" if not lease.is_ours_alone(replica) else "it could not be renewed"
        self.breach(
            request.order.what,
            f"{request.verb} for {request.order.what} of {request.order.key} went out by {replica.name} without the "
            f"lease, {waited:.2f} s after it was ordered: {how}",
        )


class Late(Judge):
    """A pod that nothing delays is gone ``LATE_SECONDS`` after its deadline, counted in times in which all was well.

    Nothing delays it if its policy has no limits (or reclaims its nodes), no budget selects it, and nothing limits all
    policies together. A budget does not delay it beyond the last moment before its node is gone, if the policy deletes.
    All is well while one leader is synced and its streams arrive, its clock is right, and no weather concerns the pod.
    The deadline is the latest that any reading of the rules gives: times count from when the operator learned of them,
    and every state of the node that it could know counts, or only those that it was told of.
    """

    name = "late"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self.applies = judges.world.plan.options.get("overall_rate") is None
        judges.on_eviction.append(self._evicted)

    def _evicted(self, eviction: Eviction) -> None:
        pod, rules = eviction.pod, eviction.rules
        if rules is None or not self.applies:
            return
        overdue = self._overdue(pod, rules, eviction.request.sent_at)
        if overdue is not None and overdue[0] > LATE_SECONDS:
            self.breach(
                pod.uid, f"{pod.uid} was evicted {overdue[0]:.1f} s late from {pod.node} because of {overdue[1]}"
            )

    def calm_ends(self) -> None:
        if not self.applies:
            return
        for pod in list(self.world.store.objects["pods"].values()):
            for policy in self.world.truth.policies():
                rules = law.rules_of(policy)
                overdue = None if pod.stopping_until else self._overdue(pod, rules, self.world.agenda.now)
                if overdue is not None and overdue[0] > LATE_SECONDS:
                    seconds, why = overdue
                    self.breach(pod.uid, f"{pod.uid} is still on {pod.node}, {seconds:.1f} s after it was due: {why}")

    def _overdue(self, pod: Pod, rules: law.Rules, moment: float) -> tuple[float, str] | None:
        """(seconds, taint) since it should be gone; None: nothing can be said."""
        if not rules.is_free or rules.mode != "Enforce":
            return None
        if self.world.server.budgets_of(pod):
            return self._hard_overdue(pod, rules, moment)
        latest = self.judges.latest(pod, rules, moment)
        if latest is None:
            return None
        due, taint = latest
        budgets = self.world.store.past["budgets"]
        changes = [one.times[-1] for key, one in budgets.items() if key.startswith(f"{pod.namespace}/")]
        well = max([due - EPOCH, self.judges.well_since(pod), *changes])
        return moment - well, f"{taint.key}={taint.value}"

    def _hard_overdue(self, pod: Pod, rules: law.Rules, moment: float) -> tuple[float, str] | None:
        """The same for a pod that budgets may block on a node that will be gone."""
        if rules.reclaim is None or rules.method == "Evict":
            return None
        latest = self.judges.latest(pod, rules, moment, hard=True)
        if latest is None:
            return None
        well = max(latest[0] - EPOCH, self.judges.well_since(pod))
        return moment - well, f"the removal of its node by {latest[1].key}"
