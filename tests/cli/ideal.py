"""The simulated cluster, made as ideal as a plan assumes by means of its own: pods stop, are replaced and budgeted."""

import math
from random import Random
from typing import Any

import msgspec

from cli.world import Json
from limits_off import LIMITS_OFF
from simulated import Simulation
from taintwarden.api.policies import parse_policy
from taintwarden.engine import events
from taintwarden.engine.machine import Timings
from taintwarden.engine.model import Budget
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.kube.wire.kinds import NodeObject, WorkloadObject
from taintwarden_cli.rehearsal.node_requirements import FullPod
from taintwarden_cli.rehearsal.snapshot import FullBudget, Snapshot

GOOD, BAD = "980", "900"
READY = [{"type": "Ready", "status": "True"}]
ZONE = "topology.kubernetes.io/zone"
TIER = {"tier": "db"}
"""A label of all pods."""
SETTLED_SECONDS = 3_600.0
"""Seconds for which the operator has led when a change happens."""


def sla(value: str) -> list[Json]:
    return [{"key": "sla", "value": value, "effect": "NoExecute"}]


class IdealCluster:
    """A cluster by chance, of nodes in zones, workloads and budgets, and one operator that has led for an hour."""

    def __init__(self, seed: int, stop: float, replacement: float) -> None:
        self.chance = chance = Random(seed)
        self.stop, self.replacement = stop, replacement
        self.stored = [draw_policy(chance, name) for name in ("one", "two")[: chance.choice([1, 1, 2])]]
        rate, speaking = chance.choice([None, 5.0, 50.0]), Timings(max_silence=math.inf)
        self.sim = Simulation([parse_policy(one) for one in self.stored], overall_rate=rate, timings=speaking)
        self.overall_rate = rate
        self.wanted: dict[str, int] = {}
        self.allowed: dict[str, int] = {}
        self.sim.kubelet = lambda pod: (30.0, stop)
        self.sim.judge = self._judge
        self.sim.observers.append(self._observe)
        self.sim.listers.append(self._list)
        self._build()
        self.sim.start()
        self.sim.run(SETTLED_SECONDS)
        self.before = self.snapshot()

    def _build(self) -> None:
        chance = self.chance
        for number in range(chance.randint(3, 12)):
            labels = {ZONE: f"zone-{number % 3}", "half": "one" if number % 2 else "two"}
            self.sim.create_node(f"n{number:02}", sla(GOOD), labels)
        for number in range(chance.randint(2, 8)):
            name, replicas = f"app-{number}", chance.randint(1, 12)
            self.wanted[name] = replicas
            if chance.random() < 0.3:
                self.allowed[name] = chance.randint(0, 3)
            strict = {"key": "sla", "operator": "Gt", "value": "950"}
            grace = chance.choice([{}, {}, {"tolerationSeconds": chance.choice([3, 20])}])
            tolerations = [strict | grace]
            for index in range(replicas):
                self._create(name, f"{name}-{index}", chance.choice(list(self.sim.nodes)), tolerations, READY)

    def _create(self, app: str, name: str, node: str, tolerations: list[Json], conditions: list[Json]) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": f"rs-{app}", "controller": True}
        labels = {"app": app, **TIER}
        namespace = f"ns-{app[-1]}"
        self.sim.create_pod(
            name, node, tolerations, owners=[owner], labels=labels, namespace=namespace, conditions=conditions
        )

    def degrade(self, *nodes: str) -> None:
        """The values of these nodes fall."""
        for node in nodes:
            self.sim.set_taints(node, sla(BAD))

    def snapshot(self) -> Snapshot:
        """The cluster as a plan would read it now."""
        workloads = [
            {
                "metadata": {"namespace": f"ns-{app[-1]}", "uid": f"rs-{app}"},
                "spec": {"replicas": number, "template": {"metadata": {"labels": {"app": app, **TIER}}}},
            }
            for app, number in self.wanted.items()
        ]
        budgets = [
            {
                "metadata": {"name": app, "namespace": f"ns-{app[-1]}", "generation": 1},
                "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"observedGeneration": 1, "disruptionsAllowed": allowed},
            }
            for app, allowed in self.allowed.items()
        ]
        return Snapshot(
            policies=self.stored,
            nodes=msgspec.convert(list(self.sim.nodes.values()), list[NodeObject]),
            pods=msgspec.convert(list(self.sim.pods.values()), list[FullPod]),
            workloads={"replicasets": msgspec.convert(workloads, list[WorkloadObject])},
            budgets=msgspec.convert(budgets, list[FullBudget]),
        )

    # -- what makes it ideal

    def _list(self) -> list[events.Event]:
        wanted = [
            events.WorkloadSeen((f"ns-{app[-1]}", f"rs-{app}"), replicas, tuple(TIER.items()))
            for app, replicas in self.wanted.items()
        ]
        return [*wanted, *(self._seen(app) for app in self.allowed)]

    def _seen(self, app: str) -> events.BudgetSeen:
        selector = LabelSelector((Requirement("app", SelectorOperator.IN, (app,)),))
        return events.BudgetSeen(Budget(f"ns-{app[-1]}", app, selector, max(0, self.allowed[app])))

    def _judge(self, pod: Json, delete: bool) -> events.Settled | None:
        app = pod["metadata"]["labels"]["app"]
        if delete or self.allowed.get(app, 1) > 0:
            return None
        return events.Settled(pod["metadata"]["uid"], Outcome.BLOCKED, app)

    def _observe(self, what: str, pod: Json) -> None:
        if what != "terminating":
            return
        meta = pod["metadata"]
        app = meta["labels"]["app"]
        if app in self.allowed:
            self.allowed[app] -= 1
            self.sim.feed(self._seen(app))
        fitting = [name for name, node in self.sim.nodes.items() if node["spec"]["taints"] == sla(GOOD)]
        if not fitting:
            return
        alive = [one for one in self.sim.pods.values() if "deletionTimestamp" not in one["metadata"]]
        load = {name: sum(one["spec"]["nodeName"] == name for one in alive) for name in fitting}
        node = min(fitting, key=lambda name: (load[name], name))
        name = f"{meta['name']}-again"
        self._create(app, name, node, pod["spec"]["tolerations"], [])
        self.sim.later(self.replacement, lambda: self._ready(app, f"{meta['namespace']}/{name}"))

    def _ready(self, app: str, key: str) -> None:
        self.sim.set_ready(self.sim.pods[key], ready=True)
        if app in self.allowed:
            self.allowed[app] += 1
            self.sim.feed(self._seen(app))


def draw_policy(chance: Random, name: str) -> Json:
    """A policy on `sla` with limits by chance; two of them share the nodes."""
    pick = chance.choice
    limits: dict[str, Any] = {**LIMITS_OFF}
    if chance.random() < 0.6:
        limits |= {"evictionsPerSecond": pick([0.2, 1.0, 5.0]), "burst": pick([1, 3, 10])}
    if chance.random() < 0.5:
        limits["perWorkload"] = {"maxUnavailable": pick(["25%", "50%", 1, 2]), **pick([{}, {"label": "tier"}])}
    if chance.random() < 0.3:
        limits["perNode"] = {"maxConcurrent": pick([1, 2])}
    if chance.random() < 0.3:
        limits["perZone"] = {"evictionsPerSecond": pick([0.5, 1.0])}
    if chance.random() < 0.3:
        limits["perNamespace"] = {"evictionsPerSecond": pick([0.5, 1.0])}
    if chance.random() < 0.3:
        limits["zoneHealth"] = {"unhealthy": [{"key": pick(["sla", "other"])}], "threshold": 0.55}
    if chance.random() < 0.4:
        limits["guard"] = {"maxPercent": pick([10, 50]), "minPods": pick([5, 20]), "windowSeconds": pick([60, 600])}
    half = {"one": "one", "two": "two"}[name]
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TaintEvictionPolicy",
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": 1},
        "spec": {
            "taints": [{"key": "sla"}],
            "nodeSelector": {"matchLabels": {"half": half}} if chance.random() < 0.5 else {},
            "limits": limits,
            "eviction": {"method": pick(["Evict", "Evict", "EvictThenDelete"]), "pdbTimeoutSeconds": 60},
            "timing": {"violationGraceSeconds": pick([0, 0, 5])},
        },
    }
