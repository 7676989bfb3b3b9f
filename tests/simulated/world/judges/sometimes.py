"""States that histories have to reach: a generator that never gets there proves nothing about them."""

from typing import TYPE_CHECKING, Any

from simulated.world import law
from simulated.world.adapter import Notice, Order
from simulated.world.judges.base import Judge
from simulated.world.objects import DeviceSlice, Node, Pod, Policy
from simulated.world.streams import State
from simulated.world.wire import Request

if TYPE_CHECKING:
    from simulated.world.judges import Judges
    from simulated.world.replica import Replica

NOTICES = {
    "GuardTripped": "a guard trips",
    "EvictionsHalted": "every zone is Full",
    "EvictionsResumed": "zones are no longer all Full",
    "HeldAsBouncing": "a pod that came back is held",
    "DeadlineAtRisk": "a hard deadline is at risk",
    "DeadlineMissed": "a hard deadline is missed",
    "Rehearsed": "an eviction is rehearsed",
    "HeldByBudget": "a budget holds a pod",
    "UnreadableHistory": "a history cannot be read",
    "InvalidValue": "a value cannot be compared",
}
STATES = (
    *NOTICES.values(),
    "a guard is armed again by itself",
    "a reset releases pods",
    "a reset is asked for while nobody leads",
    "a reset finds replacements on the same nodes",
    "a guard is tripped during a takeover",
    "a policy is created again while a record of its name was stored",
    "a dry run ends while pods are overdue",
    "a long grace ends at once while pods wait",
    "a selector changes while pods wait",
    "a policy is paused while a call is under way",
    "an eviction of an old leader lands after another leads",
    "a record of an old leader lands after another leads",
    "a history of an old leader lands after another leads",
    "a frozen leader goes on when another leads",
    "a leader is killed while a call is under way",
    "a leader is killed while it writes a record",
    "nobody leads for a while",
    "the same replica leads again",
    "a value recovers while a call is under way",
    "a value recovers and falls again within two seconds",
    "a value falls while its watch is away",
    "a direct read is ahead of its watch",
    "a watch is silent while its objects change",
    "a watch lists again",
    "an older etcd is put back",
    "a clock is set while pods wait",
    "timeAdded is ahead of the clock of the leader",
    "timeAdded is renewed while the taint stays",
    "timeAdded lies before 1970",
    "sixty taints are on one node",
    "two taints of one policy want a pod to leave",
    "one condition of a node becomes another while time runs",
    "a pod comes to a node that is bad already",
    "a pod opts out while it is due",
    "a budget counts nothing of an eviction",
    "an eviction is answered with 429",
    "a webhook hangs",
    "a webhook denies",
    "an answer is lost",
    "a request takes effect twice",
    "a write conflicts with another",
    "a pod is deleted after its budget refused for long",
    "a pod of an owner that nobody serves has to leave",
    "a pod comes back to a node that will be gone",
    "a label that an operator wrote changes what a policy selects",
    "the processor is busy while pods are due",
    "a node is created again under its name",
    "a node goes while its pods are due",
    "a pod is evicted because of a device",
    "a pod is evicted because of a DeviceTaintRule",
    "a pool of devices is incomplete while a pod of it waits",
    "a slice is deleted while a pod of it waits",
    "devices are known after a pod is due because of one",
)


class Sometimes(Judge):
    """Notes which of the named states a history reaches. It breaches nothing."""

    name = "sometimes"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self._under_way: dict[str, Request] = {}
        self._leaders: list[tuple[str, int]] = []
        self._left: dict[tuple[str, str], None] = {}
        """Owner and node of evicted pods."""
        judges.on_eviction.append(self._evicted)

    def reach(self, state: str, *, when: bool = True) -> None:
        """A state was reached, if so."""
        if when:
            assert state in STATES, state
            self.judges.reached[state] = self.judges.reached.get(state, 0) + 1

    def _anybody_waits(self, policy: str = "") -> bool:
        """Whether a policy, or any, wanted a pod to leave just before this moment."""
        moment = self.world.agenda.now - 1e-6
        for pod in self.world.store.objects["pods"].values():
            for demand in self.judges.demands_at(pod, moment):
                if policy in ("", demand.rules.name):
                    return True
        return False

    # -- the cluster --------------------------------------------------------------------------------------------------

    def stored(self, kind: str, key: str, before: Any, after: Any) -> None:
        if self.world.is_frozen:
            return
        if isinstance(after, Node):
            self._stored_node(before, after)
        elif isinstance(after, Policy):
            self._stored_policy(before, after)
        elif isinstance(after, Pod) and before is None and after.node:
            self._stored_pod(after)
        elif isinstance(after, Pod) and before is not None and before.marks != after.marks and after.marks:
            self.reach("a pod opts out while it is due", when=self._is_wanted(after.uid))
        elif kind == "slices" and before is not None:
            self._stored_slice(before, after)
        elif kind == "nodes" and after is None:
            self.reach("a node goes while its pods are due", when=bool(self._wanted_before(key)))
        for replica in self.world.replicas:
            if replica.engine is not None and kind in replica.streams:
                stream = replica.streams[kind]
                self.reach("a watch is silent while its objects change", when=stream.state is State.SILENT)
                is_away = stream.state in (State.CUT, State.CATCHING_UP) and kind == "nodes"
                self.reach("a value falls while its watch is away", when=is_away and before is not None)

    def _stored_slice(self, before: DeviceSlice, after: DeviceSlice | None) -> None:
        waiting = bool(self._wanted_before(before.pool))
        self.reach("a slice is deleted while a pod of it waits", when=waiting and after is None)
        slices = [one for one in self.world.store.objects["slices"].values() if one.pool == before.pool]
        newest = max((one.generation for one in slices), default=0)
        is_incomplete = after is not None and sum(one.generation == newest for one in slices) < after.slices
        self.reach("a pool of devices is incomplete while a pod of it waits", when=waiting and is_incomplete)

    def devices_known(self) -> None:
        """A replica has listed all devices."""
        pods = list(self.world.store.objects["pods"].values())
        demands = (one for pod in pods for one in self.judges.demands_at(pod, self.world.agenda.now))
        is_due = any(one.taint.device and one.due <= self.world.agenda.wall for one in demands)
        self.reach("devices are known after a pod is due because of one", when=is_due and not self.world.is_frozen)

    def _is_wanted(self, uid: str) -> bool:
        """Whether a pod had to leave just before this change."""
        moment = self.world.agenda.now - 1e-6
        pod = self.judges.pod_at(uid, moment)
        return pod is not None and any(self.judges.demands_at(pod, moment))

    def _wanted_before(self, node: str) -> list[str]:
        pods = self.world.store.objects["pods"].values()
        return [pod.uid for pod in pods if pod.node == node and self._is_wanted(pod.uid)]

    def _stored_node(self, before: Node | None, after: Node) -> None:
        if before is None:
            past = self.world.store.past["nodes"][after.name]
            self.reach("a node is created again under its name", when=len(past.times) > 1)
            return
        leader = self.world.lease.holder
        known = {(one.key, one.effect): one for one in before.taints}
        for taint in after.taints:
            was = known.get((taint.key, taint.effect))
            if taint.added is not None:
                ahead = leader is not None and taint.added > leader.wall() + 1.0
                self.reach("timeAdded is ahead of the clock of the leader", when=ahead)
                self.reach("timeAdded lies before 1970", when=taint.added < 0)
                renewed = was is not None and was.added is not None and taint.added != was.added
                self.reach("timeAdded is renewed while the taint stays", when=renewed)
        self.reach("sixty taints are on one node", when=len(after.taints) >= 60)
        keys = [{one.key for one in node.taints} & set(law.CONDITIONS) for node in (before, after)]
        self.reach("one condition of a node becomes another while time runs", when=all(keys) and keys[0] != keys[1])
        if before.labels != after.labels and any(name.startswith("value.taintwarden.io") for name in after.labels):
            rules = [law.rules_of(one) for one in self.world.truth.policies()]
            chosen = [law.matches(one.nodes, before.labels) != law.matches(one.nodes, after.labels) for one in rules]
            self.reach("a label that an operator wrote changes what a policy selects", when=any(chosen))
        self._blink(after)

    def _blink(self, node: Node) -> None:
        """Whether its value has recovered and fallen within two seconds, for a pod on it."""
        past = self.world.store.past["nodes"][node.name]
        if len(past.times) < 3 or past.times[-1] - past.times[-2] > 2.0 or past.states[-3] is None:
            return
        pod = next((one for one in self.world.store.objects["pods"].values() if one.node == node.name), None)
        if pod is not None:
            states = [state for state in past.states[-3:] if state is not None]
            bad = [not all(law.tolerates(self.world.truth, pod, one) for one in state.taints) for state in states]
            self.reach("a value recovers and falls again within two seconds", when=bad == [True, False, True])

    def _stored_policy(self, before: Policy | None, after: Policy) -> None:
        if before is None:
            earlier = [one for one in self.world.store.past["policies"][after.name].states if one is not None]
            had = any(one.guard is not None for one in earlier)
            self.reach("a policy is created again while a record of its name was stored", when=had)
            return
        if before.reset is None and after.reset is not None:
            self.reach("a reset is asked for while nobody leads", when=self.world.leader is None)
            pods = self.world.store.objects["pods"].values()
            back = any(one.owner and (one.owner.uid, one.node) in self._left for one in pods)
            self.reach("a reset finds replacements on the same nodes", when=back)
        if before.spec == after.spec:
            return
        rules, was = law.rules_of(after), law.rules_of(before)
        waits = self._anybody_waits(after.name)
        ends = (was.mode, rules.mode) == ("DryRun", "Enforce")
        self.reach("a dry run ends while pods are overdue", when=ends and waits)
        self.reach("a long grace ends at once while pods wait", when=was.grace > 86_400 and not rules.grace and waits)
        self.reach("a selector changes while pods wait", when=was.nodes != rules.nodes and waits)
        ours = any(one.order.policy == after.name for one in self._under_way.values())
        self.reach("a policy is paused while a call is under way", when=rules.mode == "Paused" and ours)

    def _stored_pod(self, pod: Pod) -> None:
        demands = list(self.judges.demands_at(pod, self.world.agenda.now))
        self.reach("a pod comes to a node that is bad already", when=bool(demands))
        back = pod.owner is not None and (pod.owner.uid, pod.node) in self._left
        gone = any(one.rules.reclaim is not None for one in demands)
        self.reach("a pod comes back to a node that will be gone", when=back and gone)

    def restored(self) -> None:
        self.reach("an older etcd is put back")

    # -- operators ----------------------------------------------------------------------------------------------------

    def told(self, replica: "Replica", kind: str, key: str, before: Any, after: Any, listed: bool) -> None:
        if kind != "nodes" or replica is not self.world.lease.holder:
            return
        self.reach("a watch lists again", when=listed and before is not None)
        for uid in self._under_way:
            pod = self.world.store.get("pods", uid)
            if pod is not None and pod.node == key and after is not None:
                wanted = any(self.judges.demands_at(pod, self.world.agenda.now))
                self.reach("a value recovers while a call is under way", when=not wanted)

    def led(self, replica: "Replica", term: int) -> None:
        if not term:
            return
        guards = [one.guard for one in self.world.truth.policies() if one.guard]
        self.reach("a guard is tripped during a takeover", when=term > 1 and any(one.get("open") for one in guards))
        self.reach("the same replica leads again", when=bool(self._leaders) and self._leaders[-1][0] == replica.name)
        self._leaders.append((replica.name, term))

    def lease_changed(self) -> None:
        lapsed = self.world.lease.lapsed_at
        self.reach("nobody leads for a while", when=lapsed is not None and self.world.agenda.now > lapsed + 4.0)

    def about_to_die(self, replica: "Replica") -> None:
        mine = [one for one in self._under_way.values() if one.replica is replica]
        self.reach("a leader is killed while a call is under way", when=bool(mine))
        self.reach("a leader is killed while it writes a record", when=any(one.order.what == "guard" for one in mine))

    def clock_set(self) -> None:
        """The clock of a replica was set."""
        self.reach("a clock is set while pods wait", when=not self.world.is_frozen and self._anybody_waits())

    def noticed(self, replica: "Replica", notice: Notice) -> None:
        if notice.what in NOTICES:
            self.reach(NOTICES[notice.what])
        if notice.what == "GuardArmed":
            released = notice.raw.released
            self.reach("a guard is armed again by itself" if released is None else "a reset releases pods")

    def ordered(self, replica: "Replica", order: Order) -> None:
        if order.what in ("evict", "delete"):
            pod = self.judges.pod_at(order.key, self.world.agenda.now)
            demands = [] if pod is None else list(self.judges.demands_at(pod, self.world.agenda.now))
            mine = [one for one in demands if one.rules.name == order.policy]
            self.reach("two taints of one policy want a pod to leave", when=len(mine) > 1)
        busy = replica.is_busy and self.world.cpu.wake > 0
        self.reach("the processor is busy while pods are due", when=busy)

    # -- requests -----------------------------------------------------------------------------------------------------

    def sent(self, request: Request) -> None:
        if request.order.what != "check":
            self._under_way[request.order.key] = request

    def withheld(self, request: Request) -> None:
        replica = request.replica
        thawed = bool(replica.frozen_until) and self.world.agenda.now < replica.frozen_until + 0.1
        other = not self.world.lease.is_ours_alone(replica)
        is_old = request.ordered_at < replica.frozen_until
        self.reach("a frozen leader goes on when another leads", when=thawed and other and is_old)

    def arrives(self, request: Request) -> None:
        what, verb = request.order.what, request.verb
        if verb == "GET" or self.world.lease.is_ours_alone(request.replica) or self.world.lease.holder is None:
            return
        kinds = {"evict": "an eviction", "delete": "an eviction", "guard": "a record", "history": "a history"}
        if what in kinds:
            self.reach(f"{kinds[what]} of an old leader lands after another leads")

    def effect(self, request: Request, code: int) -> None:
        self.reach("a request takes effect twice", when=request.effects == 2)
        self.reach("a write conflicts with another", when=code == 409)
        order = request.order
        if order.what == "check" and code == 200:
            known, node = request.replica.told.known["nodes"].get(order.key), self.world.store.get("nodes", order.key)
            self.reach(
                "a direct read is ahead of its watch", when=bool(known and node and known.version < node.version)
            )
        if order.what == "evict":
            self.reach("an eviction is answered with 429", when=code == 429)
        if order.what == "delete" and request.verb == "DELETE" and code == 200:
            policy = self.world.store.get("policies", order.policy)
            late = policy is not None and law.rules_of(policy).method == "EvictThenDelete"
            self.reach("a pod is deleted after its budget refused for long", when=late)

    def answered(self, request: Request, code: int) -> None:
        self._under_way.pop(request.order.key, None)
        self.reach("an answer is lost", when=code == 0 and request.effects > 0)
        self.reach("a webhook denies", when=code == 403)
        self.reach("a webhook hangs", when=code == 500 and self.world.agenda.now > request.sent_at + 5.0)

    def _evicted(self, eviction: Any) -> None:
        pod = eviction.pod
        taint = None if eviction.demand is None else eviction.demand.taint
        if taint is not None and taint.device:
            self.reach("a pod is evicted because of a device")
            self.reach("a pod is evicted because of a DeviceTaintRule", when=bool(taint.rule))
        if pod.owner is not None:
            self._left[pod.owner.uid, pod.node] = None
            odd = self.world.store.get("workloads", pod.owner.uid) is None
            self.reach("a pod of an owner that nobody serves has to leave", when=odd)
        for budget in self.world.server.budgets_of(pod):
            self.reach("a budget counts nothing of an eviction", when=not pod.ready and budget.counts == "never")
