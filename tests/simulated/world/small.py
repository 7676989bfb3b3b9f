"""Every small history: two nodes, three pods, one budget, two policies, one guard, one crash, in every order.

All interleavings of changes, deliveries, requests, effects, answers, steps of time and one crash are played breadth
first on the bare machine. States that are alike are continued once. No state may break a rule:

* ``told``: a request goes to its socket only if the pod still has to leave by what the machine was told;
* ``twice``: no pod has two calls of one machine under way;
* ``guard``: no more pods are evicted by ``p`` within its window than its guard allows;
* ``record``: the stored record counts every eviction that takes effect;
* ``budget``: nobody is evicted whose budget allows nothing;
* ``lost``: from here on, left alone, everybody leaves who must and may, and nobody else.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from simulated.policies import policy
from simulated.world.fingerprint import fingerprint, number_of
from simulated.world.snapshot import Snapshots
from taintwarden.engine.guard import GuardRecord
from taintwarden.engine.interning import Interner
from taintwarden.engine.machine import Machine, Outcome, WriteOutcome, commands, events
from taintwarden.engine.model import Budget, Instant, MonotonicTime, Node, Pod, Taint, Tolerations, WallTime
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator

START = 1_700_000_000.0
GUARD_LIMIT, WINDOW_SECONDS = 2, 600
MOST_CHANGES = 4
TICK_SECONDS = 1.0
STREAMS = ("nodes", "pods", "budgets")
PODS = {"p1": "n1", "p2": "n1", "p3": "n2"}
SHOP = LabelSelector((Requirement("app", SelectorOperator.IN, ("b",)),))
GUARD = {"minPods": GUARD_LIMIT, "maxPercent": 1, "windowSeconds": WINDOW_SECONDS, "settleSeconds": 1}
POLICIES = (
    policy("p", taints=[{"key": "sla"}], limits={"guard": GUARD}),
    policy("q", taints=[{"key": "flag"}], timing={"violationGraceSeconds": 2}),
)
GRACE = {"sla": 0.0, "flag": 2.0}
Action = tuple[Any, ...]


class BreachError(AssertionError):
    """A state that must not be: the rule, and the actions that lead there."""


@dataclass
class Call:
    """One request: ``ordered``, then ``sent``, then with an ``effect``, then answered."""

    order: commands.Order
    life: int
    stage: str = "ordered"
    outcome: str = ""
    version: int = -1
    """Of the stored record, as it was read before a write."""


def _pods() -> dict[str, Pod]:
    interner = Interner()
    found = {}
    for number, (uid, node) in enumerate(PODS.items()):
        shared = interner.pod_class("shop", {"app": "b" if uid == "p1" else "x"}, Tolerations())
        found[uid] = Pod(uid, uid, node, shared, START - 1_000.0, number, ready=True)
    return found


ALL_PODS = _pods()
CONSTANTS = (*POLICIES, SHOP, *(one for pod in ALL_PODS.values() for one in (pod, pod.shared, pod.shared.tolerations)))


class Small:
    """One small history in the making: the truth, what is under way, and the machine.

    Args:
        ignored: rules that may be broken.

    """

    def __init__(self, ignored: tuple[str, ...] = ()) -> None:
        self.ignored = ignored
        self.at = 0.0
        self.taints: dict[str, dict[str, str]] = {"n1": {}, "n2": {}}
        self.pods = dict(PODS)
        self.allowed = 1
        self.record = GuardRecord()
        self.record_version = 0
        self.evicted: list[str] = []
        """UIDs of pods that ``p`` has evicted."""
        self._evicted_at: list[float] = []
        self.may_trip = False
        """More pods had to leave at a time than the guard allows, or may have, as far as the record tells."""
        self.changes = 0
        self.crashes = 0
        self.life = 0
        self.queues: dict[str, deque[Any]] = {name: deque() for name in STREAMS}
        self.calls: list[Call] = []
        self.told: dict[str, dict[str, str]] = {}
        self.since: dict[tuple[str, str], float] = {}
        self._version = 100
        self._versions: dict[str, int] = {}
        """Of the nodes, as they were delivered last."""
        self._reads: list[str] = []
        self._begin()

    @property
    def now(self) -> Instant:
        return Instant(WallTime(START + self.at), MonotonicTime(1_000.0 * self.life + self.at))

    # -- the machine --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """A process lists everything, restores the record, and leads."""
        self.life += 1
        self.machine = Machine()
        for queue in self.queues.values():
            queue.clear()
        self.told, self.since, self._reads = {}, {}, []
        self._feed(events.PoliciesChanged(POLICIES))
        for name in self.taints:
            self._deliver_node(name, dict(self.taints[name]), listed=True)
        self._feed(events.NodesListed(frozenset(self.taints), self._version))
        for uid in self.pods:
            self._feed(events.PodSeen(ALL_PODS[uid]))
        self._feed(events.BudgetSeen(Budget("shop", "b", SHOP, self.allowed)))
        self._feed(events.GuardRestored("p", self.record))
        self._feed(events.Synced())
        self._feed(events.LeadershipChanged(leading=True, term=self.life))
        self._rest()

    def _feed(self, event: events.Event) -> None:
        for command in self.machine.step(event, self.now):
            if isinstance(command, commands.Order):
                self._order(command)

    def _rest(self) -> None:
        for _ in range(1_000):
            if self._reads:
                self._read(self._reads.pop())
            elif self.machine.wake_after(self.now) != 0.0:
                return
            else:
                self._feed(events.Woke())
        self._breach("rest", "the machine never comes to rest")

    def _read(self, name: str) -> None:
        """A node is read at once. It has a later version if the stream has yet to deliver one."""
        is_behind = any(node == name for node, _ in self.queues["nodes"])
        version = self._version + 1 if is_behind else self._versions[name]
        self._feed(events.NodeChecked(name, version, len(PODS)))

    def _order(self, order: commands.Order) -> None:
        if isinstance(order, commands.CheckNode):
            self._reads.append(order.name)
            return
        if isinstance(order, commands.Evict):
            uid = order.pod.uid
            mine = [one for one in self.calls if one.life == self.life and isinstance(one.order, commands.Evict)]
            if any(one.order.pod.uid == uid for one in mine):  # type: ignore[union-attr]
                self._breach("twice", f"{uid} has a call under way")
        elif not isinstance(order, commands.SaveGuard):
            return  # histories and labels change nothing here
        self.calls.append(Call(order, self.life))

    def _breach(self, rule: str, sentence: str) -> None:
        if rule not in self.ignored:
            raise BreachError(rule, sentence)

    # -- what may happen next -----------------------------------------------------------------------------------------

    def actions(self) -> Iterator[Action]:
        """Every next step, in a fixed order."""
        for name in STREAMS:
            if self.queues[name]:
                yield ("deliver", name)
        for index, call in enumerate(self.calls):
            if call.stage == "ordered" and call.life == self.life:
                yield ("send", index)
            elif call.stage == "sent":
                yield ("effect", index)
                yield ("fail", index)
            elif call.stage == "effect" and call.life == self.life:
                yield ("answer", index)
                yield ("lose", index)
        if self.changes < MOST_CHANGES:
            yield ("taint", "n1", "sla", "good" if self.taints["n1"].get("sla") == "bad" else "bad")
            yield ("taint", "n2", "sla", "good" if self.taints["n2"].get("sla") == "bad" else "bad")
            yield ("taint", "n1", "flag", "" if "flag" in self.taints["n1"] else "bad")
            yield ("budget", 1 - min(self.allowed, 1))
        yield ("tick",)
        if not self.crashes:
            yield ("crash",)

    def act(self, action: Action) -> None:
        """Take one step.

        Raises:
            BreachError: a rule is broken.

        """
        match action:
            case ("deliver", name):
                self._deliver(name)
            case ("send", index):
                self._send(self.calls[index])
            case ("effect" | "fail", index):
                self._effect(self.calls[index], happens=action[0] == "effect")
            case ("answer" | "lose", index):
                self._answer(self.calls.pop(index), lost=action[0] == "lose")
            case ("taint", node, key, value):
                self.changes += 1
                self._taint(node, key, value)
            case ("budget", allowed):
                self.changes += 1
                self.allowed = allowed
                self.queues["budgets"].append(allowed)
            case ("tick",):
                self.at += TICK_SECONDS
            case ("crash",):
                self._crash()
        self._rest()

    def _taint(self, node: str, key: str, value: str) -> None:
        self.taints[node] = {name: old for name, old in self.taints[node].items() if name != key}
        if value:
            self.taints[node][key] = value
        self.queues["nodes"].append((node, dict(self.taints[node])))

    def _crash(self) -> None:
        self.crashes += 1
        self.calls = [one for one in self.calls if one.stage == "sent"]
        self._begin()

    # -- streams ------------------------------------------------------------------------------------------------------

    def _deliver(self, name: str) -> None:
        what = self.queues[name].popleft()
        match name:
            case "nodes":
                self._deliver_node(*what, listed=False)
            case "pods":
                self._feed(events.PodGone(what, PODS[what]))
            case "budgets":
                self._feed(events.BudgetSeen(Budget("shop", "b", SHOP, what)))

    def _deliver_node(self, name: str, taints: dict[str, str], *, listed: bool) -> None:
        self._version += 1
        self._versions[name] = self._version
        for key, value in taints.items():
            if value != "bad":
                self.since.pop((name, key), None)
            else:
                self.since.setdefault((name, key), self.at)
        for key in [key for (node, key) in self.since if node == name and key not in taints]:
            del self.since[name, key]
        self.told[name] = taints
        bad = [uid for uid, node in PODS.items() if self.told.get(node, {}).get("sla") == "bad"]
        counted = sum(pods for _, pods in self.record.spent)
        self.may_trip |= len(bad) + max(len(self.evicted), counted) > GUARD_LIMIT
        pairs = tuple((Taint(key, value), None) for key, value in sorted(taints.items()) if value == "bad")
        self._feed(events.NodeSeen(Node(name, f"uid-{name}", {}, pairs, self._version), listed))

    # -- requests -----------------------------------------------------------------------------------------------------

    def _send(self, call: Call) -> None:
        if not self.machine.stands(call.order, self.now):
            self.calls.remove(call)
            self._settle(call, Outcome.NOT_SENT, WriteOutcome.FAILED)
            return
        call.stage = "sent"
        if isinstance(call.order, commands.SaveGuard):
            call.version = self.record_version
        else:
            uid, key = call.order.pod.uid, "sla" if call.order.verdict.policy.name == "p" else "flag"
            since = self.since.get((PODS[uid], key))
            if since is None and uid in self.pods:
                self._breach("told", f"{uid} is evicted because of {key}, which {PODS[uid]} has no longer")
            elif since is not None and self.at < since + GRACE[key] - 0.01:
                self._breach("early", f"{uid} is evicted {since + GRACE[key] - self.at} s early")

    def _effect(self, call: Call, *, happens: bool) -> None:
        call.stage = "effect"
        if not happens:
            call.outcome = "failed"
        elif isinstance(call.order, commands.Evict):
            call.outcome = self._evict(call.order)
        elif call.version != self.record_version:
            call.outcome = "failed"  # 409
        else:
            assert isinstance(call.order, commands.SaveGuard)
            self.record, call.outcome = call.order.record, "done"
            self.record_version += 1

    def _evict(self, order: commands.Evict) -> str:
        uid = order.pod.uid
        if uid not in self.pods:
            return "gone"
        if uid == "p1":
            if not self.allowed:
                return "blocked"
            self.allowed -= 1
            self.queues["budgets"].append(self.allowed)
        del self.pods[uid]
        self.queues["pods"].append(uid)
        if order.verdict.policy.name == "p":
            self.evicted.append(uid)
            self._evicted_at.append(self.at)
            within = sum(self.at - one < WINDOW_SECONDS for one in self._evicted_at)
            if within > GUARD_LIMIT:
                self._breach("guard", f"{self.evicted} were evicted, {GUARD_LIMIT} may be")
            counted = sum(pods for _, pods in self.record.spent)
            if counted < within:
                self._breach("record", f"the record counts {counted}, and {self.evicted} were evicted")
        return "evicted"

    def _answer(self, call: Call, *, lost: bool) -> None:
        outcome = "failed" if lost else call.outcome
        written = WriteOutcome.DONE if outcome == "done" else WriteOutcome.FAILED
        self._settle(call, Outcome(outcome) if outcome != "done" else Outcome.FAILED, written)

    def _settle(self, call: Call, outcome: Outcome, written: WriteOutcome) -> None:
        if isinstance(call.order, commands.Evict):
            self._feed(events.Settled(call.order.pod.uid, outcome))
        else:
            self._feed(events.Written(call.order, written))  # type: ignore[arg-type]

    # -- states -------------------------------------------------------------------------------------------------------

    def key(self) -> int:
        """A number for this state."""
        calls = tuple(
            (
                type(one.order).__name__,
                getattr(one.order, "pod", None) and one.order.pod.uid,  # type: ignore[union-attr]
                one.stage,
                one.outcome,
                one.stage == "sent" and one.version == self.record_version,
            )
            for one in self.calls
        )
        truth = (
            self.at,
            tuple((name, *sorted(taints.items())) for name, taints in self.taints.items()),
            tuple(self.pods),
            (self.allowed, self.changes, self.crashes, self.may_trip, tuple(self.evicted)),
            tuple((name, tuple(map(repr, queue))) for name, queue in self.queues.items()),
            calls,
            tuple(sorted(self.since.items())),
        )
        return number_of((truth, fingerprint(self.machine, CONSTANTS)))

    def leave_alone(self) -> None:
        """Everything under way ends well, and time passes: the rule ``lost``."""
        for _ in range(400):
            calm = [one for one in self.actions() if one[0] in ("deliver", "send", "effect", "answer")]
            if calm:
                self.act(calm[0])
                continue
            waits = self.machine.wake_after(self.now)
            if waits is None or self.at > 600.0:
                break
            self.at += max(waits, 0.01)
            self._rest()
        for uid in list(self.pods):
            node = PODS[uid]
            if "flag" in self.taints[node] and (uid != "p1" or self.allowed):
                self._breach("lost", f"{uid} stays on {node} although flag evicts it")
            bad = self.taints[node].get("sla") == "bad"
            if bad and not self.may_trip and (uid != "p1" or self.allowed):
                self._breach("lost", f"{uid} stays on {node} although the guard allows it")


@dataclass
class Explored:
    """What was seen of all small histories."""

    states: int
    transitions: int
    depth: int
    left_alone: int


def replayed(path: tuple[Action, ...], ignored: tuple[str, ...] = ()) -> Small:
    """The state after these actions."""
    small = Small(ignored)
    for action in path:
        small.act(action)
    return small


class Search:
    """Breadth first over all small histories. It can be stored, with the states that it knows, and continued.

    Args:
        ignored: rules that may be broken.
        left_alone_every: of how many new states one is left alone, to see whether all leave that have to.

    """

    def __init__(self, ignored: tuple[str, ...] = (), left_alone_every: int = 50) -> None:
        self.found = Explored(1, 0, 0, 0)
        self._ignored = ignored
        self._left_alone_every = left_alone_every
        self._known = {Small().key()}
        self._frontier: deque[tuple[Action, ...]] = deque([()])

    def explore(self, most_states: int, most_depth: int = 1_000) -> Explored:
        """Until so many states are known or so many steps were taken.

        Raises:
            BreachError: with the rule and the shortest actions that break it.

        """
        snapshots = Snapshots(CONSTANTS)
        while self._frontier and len(self._known) < most_states and len(self._frontier[0]) < most_depth:
            path = self._frontier.popleft()
            self.found.depth = len(path) + 1
            here = replayed(path, self._ignored)
            snapshot = snapshots.take(here)
            for action in list(here.actions()):
                self.found.transitions += 1
                try:
                    self._meet(snapshots.continued(snapshot), action, path)
                except BreachError as error:
                    raise BreachError(*error.args, (*path, action)) from error
        self.found.states = len(self._known)
        return self.found

    def _meet(self, small: Small, action: Action, path: tuple[Action, ...]) -> None:
        small.act(action)
        key = small.key()
        if key in self._known:
            return
        self._known.add(key)
        self._frontier.append((*path, action))
        if key % self._left_alone_every == 0:
            self.found.left_alone += 1
            try:
                small.leave_alone()
            except BreachError as error:
                raise BreachError(error.args[0], f"left alone: {error.args[1]}") from error
