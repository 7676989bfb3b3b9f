"""Random histories of the machine, in which four things hold after every step, and of which nothing is left at the end.

What limits and spread count of pods is what a recount of the cluster finds, and so is the number of pods that a policy
may evict. Pods that wait for something that is over are retried: at rest, what refused a pod last still does. And what
was decided change by change is what is decided at once: to judge everything again changes nothing.
"""

import random
from collections import Counter

import pytest
from msgspec.structs import replace

from engine.kept import kept
from engine.rig import NO_LIMITS, START, ZONE, Rig, budget, exists, gt, limited, owner
from simulated import policy
from taintwarden.engine import commands, events
from taintwarden.engine.evaluate import exclusion, selects_node
from taintwarden.engine.events import WriteOutcome
from taintwarden.engine.guard import Guard
from taintwarden.engine.limit_settings import (
    ALL_PODS,
    NO_BACKOFF,
    BounceSettings,
    GuardSettings,
    PerNode,
    PerWorkload,
    RateLimit,
    UnhealthyTaint,
    ZoneHealth,
)
from taintwarden.engine.limits import Refusal
from taintwarden.engine.machine import Phase
from taintwarden.engine.machine.claims import Claim
from taintwarden.engine.model import Node, Pod, Profile, SpreadConstraint
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Exclude, Mode, Policy, Reclaim
from taintwarden.engine.selectors import EVERYTHING, LabelSelector, Requirement, SelectorOperator
from taintwarden.fields.spec import MAX_RATE

NODES = ("n1", "n2", "n3")
NAMES = "abcdefgh"
OWNERS = (None, owner("o0"), owner("o1"), owner("x", "Foo"))
SPREADS = ((), (SpreadConstraint(ZONE, LabelSelector()),))
TOLERATIONS = ((), (gt(),), (exists(),), (gt(violation_grace_seconds=5),))
TAINTS = ((), ("sla=900",), ("sla=999",), ("sla=x",), ("sla=900", "other=1"))
LABELS = ({"l": "a"}, {"l": "a", ZONE: "a"}, {"l": "b", ZONE: "b"})
OF_A = LabelSelector((Requirement("l", SelectorOperator.IN, ("a",)),))
SELECTORS = (EVERYTHING, EVERYTHING, EVERYTHING, OF_A)
MODES = (Mode.ENFORCE, Mode.ENFORCE, Mode.ENFORCE, Mode.PAUSED, Mode.DRY_RUN)
WRITTEN = (*[WriteOutcome.DONE] * 6, WriteOutcome.FAILED, WriteOutcome.OUTDATED)
SPECS = (
    {},
    {"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": 10}},
    {"timing": {"violationGraceSeconds": 5}},
)

EVERY = {
    "per_workload": (ALL_PODS, PerWorkload("50%")),
    "per_node": (PerNode(), PerNode(1), PerNode(2)),
    "guard": (GuardSettings(100), GuardSettings(min_pods=1, window_seconds=60, settle_seconds=0)),
    "zone_health": (None, ZoneHealth((UnhealthyTaint("other", "Exists"),))),
    "bounce": (NO_BACKOFF, BounceSettings()),
    "per_namespace": (RateLimit(), RateLimit(0.5)),
    "evictions_per_second": (MAX_RATE, 1.0),
}


class History:
    """Pods, nodes, policies with any limits, profiles, budgets, calls, leadership and lists change at random."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.places = random.Random(-seed - 1)
        options = {"max_in_flight": chance.choice((2, 8, 64)), "slice_size": chance.choice((2, 500))}
        self.rig = Rig(*self.policies(), overall_rate=chance.choice((None, 5.0)), **options)
        self.rig.feed(events.NamespaceSeen("shop", {"l": "a"}))
        self.nodes: dict[str, str] = {}
        """Name of a pod -> its node."""
        self.running: dict[str, str] = {}
        """UID -> node of those that do not terminate."""
        for controller in OWNERS[1:]:
            self.rig.wants(controller, 3)

    def policies(self) -> list[Policy]:
        return [self.policy(name) for name in "pq" if self.chance.random() < 0.8]

    def policy(self, name: str) -> Policy:
        pick, most = self.chance.choice, self.places.choice((None, 1, 2, "50%"))
        return replace(
            policy(name, **pick(SPECS)),
            uid=pick(("one", "one", "other")),
            mode=pick(MODES),
            limits=replace(
                NO_LIMITS, concurrent_nodes=most, **{limit: pick(values) for limit, values in EVERY.items()}
            ),
            node_selector=pick(SELECTORS),
            pod_selector=pick(SELECTORS),
            namespace_selector=pick(SELECTORS),
            exclude=Exclude(respect_do_not_evict=pick((True, True, False))),
            reclaim=pick((*[None] * 7, Reclaim(60))),
        )

    def pod(self, name: str) -> Pod:
        pick = self.chance.choice
        self.running[f"uid-{name}"] = self.nodes[name]
        return self.rig.make_pod(
            name,
            *pick(TOLERATIONS),
            node=self.nodes[name],
            ready=pick((True, False)),
            labels={"app": pick("ab"), "l": pick("aab")},
            do_not_evict=pick((*[False] * 6, True)),
            owner=pick(OWNERS),
            spread=pick(SPREADS),
            bound_at=START - pick((1_000, 0)),
        )

    def in_flight(self) -> list[str]:
        evictees = self.rig.world.claims.evictees.values()
        return [one.uid for one in evictees if one.call is not None and not one.call.is_answered]

    # -- what happens

    def seen(self) -> None:
        name = self.chance.choice(NAMES)
        self.nodes.setdefault(name, self.chance.choice(NODES))
        pod = self.pod(name)
        self.rig.feed(self.chance.choice((events.PodSeen(pod), events.PodsSeen((pod,)))))

    def gone(self) -> None:
        if self.nodes:
            name = self.chance.choice(list(self.nodes))
            self.running.pop(f"uid-{name}", None)
            self.rig.feed(events.PodGone(f"uid-{name}", self.nodes.pop(name)))

    def terminates(self) -> None:
        if self.nodes:
            name = self.chance.choice(list(self.nodes))
            self.running.pop(f"uid-{name}", None)
            self.rig.feed(events.PodGone(f"uid-{name}", self.nodes[name], self.rig.wall + 5))

    def settles(self) -> None:
        if uids := self.in_flight():
            self.rig.feed(events.Settled(self.chance.choice(uids), self.chance.choice(list(Outcome))))

    def node(self) -> None:
        name, uid = self.chance.choice(NODES), self.chance.choice("ab")
        taints = self.rig.make_taints(*self.chance.choice(TAINTS))
        labels, opts_out = self.chance.choice(LABELS), self.chance.random() < 0.1
        self.rig.feed(events.NodeSeen(Node(name, uid, labels, taints, self.rig.version(), do_not_evict=opts_out)))

    def node_gone(self) -> None:
        self.rig.feed(events.NodeGone(self.chance.choice(NODES)))

    def policies_change(self) -> None:
        self.rig.feed(events.PoliciesChanged(tuple(self.policies())))

    def listed(self) -> None:
        """Some are gone, and some are on other nodes, as after a restore of etcd."""
        moved = []
        for name in list(self.nodes):
            match self.chance.choice(("gone", "moved", "same", "same", "same")):
                case "gone":
                    del self.nodes[name]
                    self.running.pop(f"uid-{name}", None)
                case "moved":
                    self.nodes[name] = self.chance.choice(NODES)
                    moved.append(self.pod(name))
                case _:
                    pass
        self.rig.feed(events.PodsSeen(tuple(moved)))
        self.rig.feed(events.PodsListed({f"uid-{name}": node for name, node in self.nodes.items()}, self.rig.version()))

    def time_passes(self) -> None:
        seconds = self.chance.choice((0.5, 1, 5, 40))
        self.rig.wall += seconds
        self.rig.monotonic += seconds

    def leads(self) -> None:
        self.rig.feed(events.LeadershipChanged(leading=self.chance.random() < 0.8, term=self.rig.version()))

    def budgets(self) -> None:
        name = self.chance.choice("xy")
        gone = events.BudgetGone("shop", name)
        seen = events.BudgetSeen(budget(name, self.chance.choice((0, 0, 1, 2)), app=self.chance.choice("ab")))
        self.rig.feed(self.chance.choice((gone, seen, seen)))

    def wants(self) -> None:
        self.rig.feed(
            events.WorkloadSeen(("shop", f"uid-of-o{self.chance.choice('01')}"), self.chance.choice((0, 2, 8)))
        )

    def writes(self, *outcomes: WriteOutcome) -> None:
        for order in list(self.rig.ordered):
            self.rig.ordered.remove(order)
            self.rig.written(order, self.chance.choice(outcomes or WRITTEN))

    def view(self) -> None:
        self.rig.feed(events.ViewChanged("pods", live=self.chance.random() < 0.8))

    def reset(self) -> None:
        self.rig.feed(events.GuardReset(self.chance.choice("pq")))

    def minute(self) -> None:
        self.rig.advance(61, step=1.0)

    def namespace(self) -> None:
        seen = events.NamespaceSeen("shop", {"l": self.chance.choice("aaab")})
        self.rig.feed(self.chance.choice((seen, seen, seen, events.NamespaceSeen("shop"))))

    def profile(self) -> None:
        gone = events.ProfileGone("shop", "x")
        seen = events.ProfileSeen(Profile("shop", "x", LabelSelector(), (gt(self.chance.choice(("100", "950"))),)))
        self.rig.feed(self.chance.choice((gone, seen, seen)))

    STEPS = (seen, seen, seen, seen, seen, gone, terminates, settles, settles, settles, node, node, node_gone,
             policies_change, listed, time_passes, time_passes, leads, budgets, budgets, wants, writes, writes, writes,
             minute, namespace, profile, profile, view, reset)  # fmt: skip

    # -- how it ends

    def calm_down(self, *policies: Policy) -> None:
        """Only these policies are in force, or every node is good. No call that was made evicts a pod."""
        rig = self.rig
        rig.process(events.ViewChanged("pods", live=True), events.LeadershipChanged(leading=True, term=rig.version()))
        if policies:
            rig.process(events.PoliciesChanged(policies))
        for name in () if policies else NODES:
            rig.node(name)
        for _ in range(70):
            for uid in self.in_flight():
                rig.feed(events.Settled(uid, self.chance.choice((Outcome.FAILED, Outcome.NOT_SENT))))
            for check in rig.take(commands.CheckPod):
                rig.feed(events.PodChecked(check.pod.uid, runs=True))
            rig.advance(2, step=0.5)
            self.writes(WriteOutcome.DONE)

    def left(self) -> list[str]:
        """Evictions that are still counted, by what counts them."""
        world = self.rig.world
        limiter = world.limiter
        found = {
            "calls": [*limiter.calls._calls],
            "terminating": [*limiter.departures._leaving],
            "missing": [*limiter.workloads._leaving],
            "missing of a workload": [key for key, one in limiter.workloads._workloads.items() if one.ready_leaving],
            "budgets": [*limiter.budgets._asked, *(k for k, one in limiter.budgets._accounts.items() if one.under_way)],
            "spread": [*world.spread._leaving],
            "guards": [uid for one in limiter.guards.by_policy.values() for uid in one.ledger.called],
            "ahead of guards": [uid for one in limiter.guards.by_policy.values() for uid in one.wave.near],
            "places": [*limiter.places._called],
            "rates": [uid for one in limiter._limits for uid in getattr(one, "_taken", ())],
            "queues": [*world.queues._positions],
            "reclaims": [*self.rig.machine._hard_deadlines._ends._current],
        }
        return [f"{where}: {what}" for where, names in found.items() for what in names]

    def end(self) -> None:
        """No object exists any more."""
        rig = self.rig
        rig.process(
            *(events.NodeGone(name) for name in NODES),
            events.PodsListed({}, rig.version()),
            events.NamespaceSeen("shop"),
            events.ProfileGone("shop", "x"),
            *(events.BudgetGone("shop", name) for name in "xy"),
            *(events.WorkloadSeen(("shop", one.uid)) for one in OWNERS[1:]),
            events.PoliciesChanged(()),
        )
        rig.advance(2_000, step=100.0)
        rig.report()  # which forgets the nodes that were gone long ago
        rig.out, rig.ordered = [], []


def recount(history: History) -> None:
    """Count everything again, and compare."""
    world = history.rig.world
    leaving = world.limiter.workloads._leaving
    pods = [pod for state in world.cluster.nodes.values() for pod in state.pods.values()]
    assert {pod.uid: pod.node for pod in pods} == history.running
    for uid in world.spread._leaving:
        evictee = world.claims.evictees[uid]
        assert uid in history.running
        assert evictee.call is not None or evictee.missing_until is not None

    counted = Counter((pod.shared, pod.node) for pod in pods if pod.uid not in world.spread._leaving)
    standing = [found for classes in world.spread._classes.values() for found in classes.items()]
    assert counted == {(one, node): number for one, found in standing for node, number in found.nodes.items()}

    owned = [pod for pod in pods if pod.shared.workload is not None]
    total = Counter(pod.shared.workload for pod in owned)
    ready = Counter(pod.shared.workload for pod in owned if pod.ready)
    ready_leaving = Counter(pod.shared.workload for pod in owned if pod.ready and pod.uid in leaving)
    workloads = world.limiter.workloads._workloads
    assert {key: (one.total, one.ready, one.ready_leaving) for key, one in workloads.items()} == {
        key: (total[key], ready[key], ready_leaving[key]) for key in total
    }


def has_the_claims_it_should(rig: Rig) -> None:
    """Each pod has a claim of each policy whose verdict evicts it, until its call was answered."""
    world = rig.world
    for state in world.cluster.nodes.values():
        for pod in state.pods.values():
            evictee = world.claims.evictees.get(pod.uid)
            if evictee is not None and evictee.call is not None and evictee.call.is_answered:
                continue
            wanted = {grounds.policy.name for grounds in world.verdicts.of(state, pod.shared)[1]}
            known = () if evictee is None else evictee.claims
            assert {claim.policy.name for claim in known if claim.phase is not Phase.IN_FLIGHT} <= wanted
            assert wanted <= {claim.policy.name for claim in known}


def unwoken(rig: Rig) -> list[str]:
    """The pods that nothing refuses any more, and that nothing wakes."""
    world = rig.world
    if not world.may_evict:
        return []
    found = []
    for key, lines in world.queues._blocked.items():
        chained = {one.lane for one in world.queues._positions.values() if one.released_by == key}
        if key not in world.queues._releases._current:
            heads = [world.queues._positions[line.first()].claim for lane, line in lines.items() if lane not in chained]
            found += [
                f"{one.key} by {key}"
                for one in heads
                if one.key not in rig.world.queues._requeues._current and not _refused(rig, one)
            ]
    for lane, line in world.queues._lanes.items():
        refusal = world.refusals.of_policy(lane.group) or world.refusals.lanes.get(lane)
        if refusal is not None and refusal.until is None:
            claim = world.queues._positions[line.first()].claim
            if not _refused(rig, claim):
                found.append(f"{claim.key} by {refusal}")
    return found


def _refused(rig: Rig, claim: Claim) -> Refusal | None:
    if (
        uncertain := rig.machine._dispatcher._why_uncertain(claim, rig.world.cluster.nodes[claim.node].pods[claim.uid])
    ) is not None:
        return uncertain
    pod = rig.world.cluster.nodes[claim.node].pods[claim.uid]
    return rig.world.limiter.admit(rig.machine._dispatcher._request(claim, pod, others_could_go=True))


def decided(rig: Rig) -> dict[str, object]:
    """Decisions that follow from the state of the cluster."""
    world = rig.world
    zones, guards = world.limiter.zones, world.limiter.guards.by_policy
    not_by_it = (Phase.IN_FLIGHT, Phase.ACCEPTED)
    return {
        "zones": {name: table for name in zones._zones if (table := zones.table(name))},
        "claims": {
            one.key: (one.due_at, one.verdict, one.policy, one.initial_phase)
            for evictee in world.claims.evictees.values()
            for one in evictee.claims
            if one.phase not in not_by_it
        },
        "guards": {name: _ahead(one) for name, one in guards.items()},
        "histories": {name: dict(state.histories) for name, state in world.cluster.nodes.items()},
    }


def _ahead(guard: Guard) -> tuple[object, ...]:
    return dict(guard.wave.near), dict(guard.wave.by_namespace), dict(guard.wave.nodes)


def is_judged_again(rig: Rig) -> None:
    """All of it, and nothing changes."""
    before = decided(rig)
    rig.machine._backlog.add_all()
    rig.machine._judging.evaluate_backlog(1_000_000)
    after = decided(rig)
    assert {what: after[what] for what in before if before[what] != after[what]} == {}


def counts_who_may_be_evicted(rig: Rig) -> None:
    """By guards, as many as a walk finds."""
    guards, walked = rig.world.limiter.guards.by_policy, Counter()
    for state in rig.world.cluster.nodes.values():
        for given in rig.view.policies:
            if selects_node(given, state.labels, do_not_evict=state.do_not_evict):
                for pod in state.pods.values():
                    walked[given.name] += not exclusion(given, pod.shared, rig.view.namespace_labels(pod.namespace))
    assert {name: guard.population() for name, guard in guards.items()} == {name: walked[name] for name in guards}


@pytest.mark.parametrize("seed", range(30))
def test_what_is_kept_is_what_is_found_again(seed):
    history = History(seed)
    rig, world = history.rig, history.rig.world
    for number in range(200):
        history.chance.choice(History.STEPS)(history)
        recount(history)
        if history.chance.random() < 0.7:
            rig.wake()
            recount(history)
            has_the_claims_it_should(rig)
            counts_who_may_be_evicted(rig)
            assert unwoken(rig) == [], number
            if world.may_evict:
                is_judged_again(rig)
    if seed % 2:
        history.calm_down(*(limited(name, spec={"paused": True}) for name in "pq"))
        rig.take(commands.Evict)
        rig.advance(60, step=0.5)
        assert rig.evictions() == []
        assert {one.phase for evictee in world.claims.evictees.values() for one in evictee.claims} <= {Phase.PAUSED}
    else:
        history.calm_down()
        assert [one for one in world.claims.evictees.values() if one.claims or one.call] == []
        rig.advance(world.timings.kept_by_webhook, step=1.0)
        assert world.claims.evictees == {}
    rig.advance(world.timings.kept_by_webhook, step=1.0)
    assert history.left() == []
    history.end()
    names = [*(f"uid-{name}" for name in NAMES), *NODES, *(one.uid for one in OWNERS[1:])]
    assert kept(rig.machine, *names, without=world.limiter.rates) == []  # which know the last request
    assert not world.cluster.classes


def test_pods_that_come_and_go_while_a_change_of_a_policy_is_evaluated_count():
    """Those of the nodes that are not evaluated yet still count as before."""
    guarded = limited(guard=GuardSettings(min_pods=0, settle_seconds=0))
    rig = Rig(guarded, slice_size=1)
    for name in NODES:
        rig.node(name, labels={"l": "b"})
        rig.pod(f"pod-of-{name}", gt(), node=name)
    rig.feed(events.PoliciesChanged((replace(guarded, node_selector=OF_A),)))
    rig.feed(events.PodGone("uid-pod-of-n1", "n1"))
    assert rig.world.limiter.guards.by_policy["p"].population() == 2
    rig.wake()
    assert rig.world.limiter.guards.by_policy["p"].population() == 0
