"""Random histories of the machine that end well: whatever it counted on the way, nothing of it is left."""

import random
from collections.abc import Callable

import msgspec
import pytest

from engine.kept import kept
from engine.rig import Rig, exists, gt, limited, owner
from taintwarden.engine.machine import Outcome, Phase, WriteOutcome, commands, events
from taintwarden.engine.model import (
    BounceSettings,
    GuardSettings,
    PerNode,
    PerWorkload,
    Pod,
    Policy,
    Reclaim,
    ZoneHealth,
)

SEEDS = 60
KEYS = {"p": "sla", "q": "x"}
NODES = ("n1", "n2", "n3", "n4")
OWNERS = (owner("web"), owner("db", "StatefulSet"), owner("other", "Custom"), None)
ANSWERS = (Outcome.EVICTED, Outcome.EVICTED, *Outcome)
WRITTEN = (*[WriteOutcome.DONE] * 4, WriteOutcome.FAILED, WriteOutcome.OUTDATED)


class History:
    """Two policies, four nodes, and pods of which some have to leave by either policy."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.policies = {name: self.policy(name) for name in KEYS}
        slots, rate = chance.choice((2, 8, 64)), chance.choice((None, 5.0))
        slices = chance.choice((5, 500))
        self.rig = Rig(*self.policies.values(), max_in_flight=slots, slice_size=slices, overall_rate=rate)
        self.leads = True
        self.pods: dict[str, Pod] = {}
        self.number = 0
        self.rig.feed(events.NamespaceSeen("shop", {"team": "a"}))
        for one in OWNERS[:2]:
            if one is not None:
                self.rig.wants(one, 4)
        for name in NODES:
            self.rig.node(name, labels={"pool": chance.choice("ab")})

    def policy(self, name: str) -> Policy:
        chance = self.chance
        spec = {"taints": [{"key": KEYS[name]}]} | chance.choice(({}, {}, {}, {"mode": "DryRun"}, {"paused": True}))
        limits = {
            "per_workload": PerWorkload("25%"),
            "per_node": PerNode(1),
            "guard": GuardSettings(min_pods=chance.choice((2, 100)), max_percent=1, window_seconds=60),
            "bounce": BounceSettings(),
            "zone_health": ZoneHealth(()),
            "evictions_per_second": 1.0,
        }
        more = {
            "eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": 10},
            "nodeSelector": {"matchLabels": {"pool": "a"}},
            "namespaceSelector": {"matchLabels": {"team": "a"}},
            "timing": {"violationGraceSeconds": chance.choice((5, 20))},
        }
        spec |= {key: value for key, value in more.items() if chance.random() < 0.4}
        made = limited(name, spec=spec, **{key: value for key, value in limits.items() if chance.random() < 0.4})
        uid, generation = chance.choice((made.uid, made.uid, f"uid-{chance.random()}")), chance.randrange(1, 1_000)
        reclaim = Reclaim(deadline_seconds=60) if chance.random() < 0.15 else None
        return msgspec.structs.replace(made, uid=uid, generation=generation, reclaim=reclaim)

    # -- what happens -------------------------------------------------------------------------------------------------

    def pod_comes(self) -> None:
        self.number += 1
        self._see(f"p{self.number}", self.chance.choice(NODES), bound_at=self.rig.wall - self.chance.choice((0, 100)))

    def pod_changes(self) -> None:
        if self.pods:
            name = self.chance.choice(sorted(self.pods))
            self._see(name, self.pods[name].node, labels={"l": self.chance.choice("ab")})

    def _see(self, name: str, node: str, **more: object) -> None:
        chance, whose = self.chance, self.chance.choice(OWNERS)
        if name in self.pods:
            whose = self.pods[name].shared.owner
        tolerations = chance.choice(((gt(),), (gt("900"), exists("x")), (exists("x", toleration_seconds=5),)))
        more |= {"ready": chance.random() < 0.7, "do_not_evict": chance.random() < 0.15}
        self.pods[name] = self.rig.pod(name, *tolerations, node=node, **more, **({"owner": whose} if whose else {}))

    def pod_goes(self) -> None:
        if self.pods:
            name = self.chance.choice(sorted(self.pods))
            until = self.chance.choice((None, self.rig.wall + 30))
            self.rig.gone(name, self.pods.pop(name).node, until)

    def node_changes(self) -> None:
        chance = self.chance
        taints = [f"sla={chance.choice(('980', '940', '850', 'high'))}"] + ["x=1"] * (chance.random() < 0.4)
        labels = {"pool": chance.choice("aaab")}
        self.rig.node(chance.choice(NODES), *taints, labels=labels, do_not_evict=chance.random() < 0.1)

    def calls_are_answered(self) -> None:
        for uid in self.under_way():
            if self.chance.random() < 0.7:
                self.rig.settle(uid.removeprefix("uid-"), self.chance.choice(ANSWERS))

    def writes_are_answered(self) -> None:
        for order in list(self.rig.ordered):
            self.rig.ordered.remove(order)
            self.rig.written(order, self.chance.choice(WRITTEN))

    def budget_changes(self) -> None:
        self.rig.budget(allowed=self.chance.choice((0, 0, 1)))

    def policy_changes(self) -> None:
        name = self.chance.choice(sorted(KEYS))
        self.policies.pop(name, None)
        if self.chance.random() < 0.8:
            self.policies[name] = self.policy(name)
        self._tell(events.PoliciesChanged(tuple(self.policies.values())))

    def leader_changes(self) -> None:
        self.leads = not self.leads
        self._tell(events.LeadershipChanged(leading=self.leads, term=self.number))

    def something_else(self) -> None:
        chance = self.chance
        event = chance.choice(
            (
                events.NamespaceSeen("shop", {"team": chance.choice("ab")}),
                events.ViewChanged("pods", live=chance.random() < 0.6),
                events.GuardReset(chance.choice(sorted(KEYS)), chance.choice(("1", "2", ""))),
                events.NodeGone(chance.choice(NODES)),
            )
        )
        self._tell(event)

    def time_passes(self) -> None:
        self.rig.advance(self.chance.choice((0.5, 2, 10)), step=0.5)

    def _tell(self, event: events.Event) -> None:
        self.rig.feed(event)
        self.rig.wake()

    def play(self, steps: int = 120) -> None:
        happens: tuple[Callable[[], None], ...] = (
            *[self.pod_comes] * 2,
            self.pod_changes,
            self.pod_goes,
            *[self.node_changes] * 4,
            self.calls_are_answered,
            self.writes_are_answered,
            self.budget_changes,
            self.policy_changes,
            self.leader_changes,
            self.something_else,
            self.time_passes,
        )
        for _ in range(steps):
            self.chance.choice(happens)()

    # -- how it ends --------------------------------------------------------------------------------------------------

    def under_way(self) -> list[str]:
        """UIDs of the pods with a call that has no answer yet."""
        calls = {uid: one.call for uid, one in self.rig.world.claims.evictees.items()}
        return sorted(uid for uid, call in calls.items() if call is not None and not call.is_answered)

    def calm_down(self, end: events.PoliciesChanged | None) -> None:
        """No policy acts any more, or (None) every node is good. No call that was made evicts a pod."""
        self._tell(events.ViewChanged("pods", live=True))
        if not self.leads:
            self._tell(events.LeadershipChanged(leading=True, term=self.number + 1))
        if end is not None:
            self._tell(end)
        for name in NODES if end is None else ():
            self.rig.node(name, labels={"pool": "a"})
        for _ in range(70):
            for uid in self.under_way():
                self.rig.settle(uid.removeprefix("uid-"), self.chance.choice((Outcome.FAILED, Outcome.NOT_SENT)))
            self.rig.advance(2, step=0.5)
            for order in list(self.rig.ordered):
                self.rig.ordered.remove(order)
                self.rig.written(order)

    def left(self) -> list[str]:
        """What is still counted of evictions, by whom."""
        world = self.rig.world
        limiter = world.limiter
        found = {
            "calls": [*limiter.calls._calls, *limiter.calls._quick],
            "terminating": [*limiter.departures._leaving],
            "missing": [*limiter.workloads._leaving],
            "missing of a workload": [key for key, one in limiter.workloads._workloads.items() if one.ready_leaving],
            "budgets": [*limiter.budgets._asked, *(k for k, one in limiter.budgets._accounts.items() if one.under_way)],
            "spread": [*world.spread._leaving],
            "guards": [uid for one in limiter.guards.by_policy.values() for uid in one._taken],
            "ahead of guards": [uid for one in limiter.guards.by_policy.values() for uid in one.near],
            "rates": [uid for one in limiter._limits for uid in getattr(one, "_taken", ())],
            "queues": [*world.queues._positions],
            "reclaims": [*self.rig.machine._reclaims.claims],
        }
        return [f"{where}: {what}" for where, names in found.items() for what in names]


def paused(history: History) -> events.PoliciesChanged:
    made = [limited(name, spec={"taints": [{"key": KEYS[name]}], "paused": True}) for name in history.policies]
    return events.PoliciesChanged(tuple(made))


@pytest.mark.parametrize("seed", range(SEEDS // 3))
def test_nothing_is_counted_of_evictions_when_no_pod_has_to_leave(seed):
    history = History(seed)
    history.play()
    history.calm_down(None)
    assert history.left() == []
    assert list(history.rig.world.claims) == []


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_counted_of_evictions_when_no_policy_acts(seed):
    history = History(SEEDS + seed)
    history.play()
    history.calm_down(paused(history))
    history.rig.take(commands.Evict)
    history.rig.advance(60, step=0.5)
    assert history.left() == []
    assert {one.phase for one in history.rig.world.claims} <= {Phase.PAUSED}
    assert history.rig.evictions() == []


@pytest.mark.parametrize("seed", range(SEEDS // 3))
def test_nothing_is_kept_when_all_is_gone(seed):
    history = History(2 * SEEDS + seed)
    history.play()
    history.calm_down(None)
    rig = history.rig
    uids = [f"uid-p{number}" for number in range(1, history.number + 1)]
    rig.process(
        *(events.NodeGone(name) for name in NODES),
        events.PodsListed({}),
        events.NamespaceGone("shop"),
        events.BudgetGone("shop", "pdb"),
        *(events.WorkloadGone(("shop", one.uid)) for one in OWNERS[:2]),
        events.PoliciesChanged(()),
    )
    rig.advance(2_000, step=100.0)
    rig.view.report(rig.now)  # which forgets the nodes that were gone long ago
    rig.out, rig.ordered = [], []
    names = [*uids, *NODES, *(one.uid for one in OWNERS if one is not None)]
    assert kept(rig.machine, *names, without=rig.world.limiter.rates) == []  # which know the last request
    assert not rig.world.cluster.classes
