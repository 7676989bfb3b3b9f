"""What limits and spread count of pods is what a recount of the cluster finds, after every step of any history."""

import random
from collections import Counter

import pytest
from msgspec.structs import replace

from engine.rig import NO_LIMITS, START, ZONE, Rig, exists, gt, owner
from simulated import policy
from taintwarden.engine.machine import Outcome, Phase, events
from taintwarden.engine.model import Mode, Node, Pod, Policy, Share, SpreadConstraint
from taintwarden.engine.selectors import LabelSelector

NODES = ("n1", "n2", "n3")
NAMES = "abcdefgh"
OWNERS = (None, owner("o0"), owner("o1"), owner("x", "Foo"))
SPREADS = ((), (SpreadConstraint(ZONE, LabelSelector()),))
TOLERATIONS = ((), (gt(),), (exists(),), (gt(violation_grace_seconds=5),))
TAINTS = ((), ("sla=900",), ("sla=999",), ("sla=x",), ("sla=900", "other=1"))
LABELS = ({}, {ZONE: "a"}, {ZONE: "b"})
MODES = (Mode.ENFORCE, Mode.ENFORCE, Mode.ENFORCE, Mode.PAUSED, Mode.DRY_RUN)


class History:
    """Pods, nodes, policies, calls, leadership and lists change at random."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.rig = Rig(*self.policies())
        self.nodes: dict[str, str] = {}
        """Name of a pod -> its node."""
        self.running: dict[str, str] = {}
        """UID -> node of those that do not terminate."""
        for controller in OWNERS[1:]:
            self.rig.wants(controller, 3)

    def policies(self) -> list[Policy]:
        return [self.policy(name) for name in "pq" if self.chance.random() < 0.8]

    def policy(self, name: str) -> Policy:
        spare, concurrent = self.chance.choice((None, Share(percent=50))), self.chance.choice((None, 1, 2))
        limits = replace(NO_LIMITS, max_unavailable=spare, node_max_concurrent=concurrent)
        return replace(policy(name), limits=limits, mode=self.chance.choice(MODES))

    def pod(self, name: str) -> Pod:
        pick = self.chance.choice
        self.running[f"uid-{name}"] = self.nodes[name]
        return self.rig.make_pod(
            name,
            *pick(TOLERATIONS),
            node=self.nodes[name],
            ready=pick((True, False)),
            labels={"app": pick("ab")},
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
        self.rig.feed(events.NodeSeen(Node(name, uid, self.chance.choice(LABELS), taints, self.rig.version())))

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
        self.rig.feed(events.LeadershipChanged(leading=self.chance.random() < 0.8))

    STEPS = (seen, seen, seen, seen, seen, gone, terminates, settles, settles, settles, node, node, node_gone,
             policies_change, listed, time_passes, time_passes, leads)  # fmt: skip

    def end(self) -> None:
        """Every call is answered, and no pod exists any more."""
        for uid in self.in_flight():
            self.rig.feed(events.Settled(uid, Outcome.GONE))
        self.rig.feed(events.PodsListed({}, self.rig.version()))
        self.rig.wake()


def recount(history: History) -> None:
    """Count everything again, and compare."""
    world = history.rig.world
    leaving = world.limiter.departures._leaving
    pods = [pod for state in world.cluster.nodes.values() for pod in state.pods.values()]
    assert {pod.uid: pod.node for pod in pods} == history.running
    for uid in world.spread._leaving:
        call = world.claims.evictees[uid].call
        assert uid in history.running
        assert uid in leaving or (call is not None and call.is_answered)

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


@pytest.mark.parametrize("seed", range(25))
def test_what_is_counted_is_what_a_recount_finds(seed):
    history = History(seed)
    for _ in range(200):
        history.chance.choice(History.STEPS)(history)
        recount(history)
        if history.chance.random() < 0.7:
            history.rig.wake()
            recount(history)
            has_the_claims_it_should(history.rig)
    history.end()
    machine = history.rig.world
    assert (machine.spread._leaving, machine.spread._classes, machine.claims.evictees) == ({}, {}, {})
    assert not machine.cluster.classes
