"""Histories by chance: a cluster with limits to which things happen, until it is left alone.

One seed gives one history. The same ones are always played; who wants others, or many, says so::

    SIMULATED_RUNS=400 SIMULATED_SEED=1000 pytest tests/engine -k simulated

A failure names its history: ``SIMULATED_SEED=1234 SIMULATED_RUNS=1`` plays that one again.
"""

import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

import msgspec

from simulated.budgets import Budgets
from simulated.cluster import Simulation
from simulated.drawing import NO_LIMITS, draw_limits, draw_policy
from simulated.onlooker import Onlooker
from simulated.trace import Calmed, Lifted, Moment
from simulated.workloads import Workloads, is_ready
from taintwarden.engine.machine import ClaimView, Outcome, events
from taintwarden.engine.model import Mode, Policy

RUNS = int(os.environ.get("SIMULATED_RUNS", "15"))
FIRST_SEED = int(os.environ.get("SIMULATED_SEED", "0"))
NAMESPACES = ("shop", "bank", "play")
WATCHED_KINDS = ("ReplicaSet", "StatefulSet", "Job")
BAD = {"key": "sla", "value": "900", "effect": "NoExecute"}
GOOD = {"key": "sla", "value": "980", "effect": "NoExecute"}
FLAG = {"key": "flag", "value": "", "effect": "NoExecute"}
TOLERATION = {"key": "sla", "operator": "Gt", "value": "950", "effect": ""}


class History:
    """A cluster, and what chance does to it.

    Args:
        seed: of all chance.
        only: the one limit that policies have; empty: any number of them.
        without: what never happens.
        overall: whether there may be a cap over all policies.

    """

    def __init__(self, seed: int, only: str = "", without: tuple[str, ...] = (), *, overall: bool = True) -> None:
        chance = self.chance = Random(seed)
        self.only = only
        self.policies = {"p": draw_policy(chance, "p", "sla", only)}
        if chance.random() < 0.4:
            self.policies["q"] = draw_policy(chance, "q", "flag", only)
        self.overall_rate = chance.choice([None, 1.0, 5.0]) if overall else None
        self.sim = Simulation(
            list(self.policies.values()),
            overall_rate=self.overall_rate,
            max_in_flight=chance.choice([2, 64]),
            slice_size=chance.choice([5, 2_000]),
        )
        self.workloads = Workloads(self.sim, chance)
        self.budgets = Budgets(self.sim, self.workloads)
        self.fault_rate = 0.0
        self._numbers = 0
        self._events: dict[str, tuple[int, Callable[[], None]]] = {
            "wave": (4, self.wave),
            "spot": (4, self.spot),
            "recovery": (3, self.recover),
            "flag": (2, self.flag),
            "limits": (2, self.change_limits),
            "mode": (1, self.change_mode),
            "restart": (2, self.restart),
            "crash": (2, self.crash_at_next_call),
            "handover": (1, self.hand_over),
            "scale": (2, self.scale),
            "flap": (2, self.flap),
            "delete": (2, self.delete_pod),
            "workload": (1, self.change_workloads),
            "home": (2, self.tie),
            "nodes": (1, self.change_nodes),
            "faults": (2, self.change_faults),
            "cut": (2, self.cut_off),
            "reset": (1, self.reset_guard),
            "budget": (2, self.change_budgets),
            "policies": (1, self.change_policies),
            "zone": (1, self.move_node),
            "clock": (1, self.step_clock),
        }
        for name in without:
            del self._events[name]
        if only not in ("", "budget"):
            self._events.pop("budget", None)
        self._populate()

    def _populate(self) -> None:
        chance = self.chance
        zones = chance.choice([("",), ("a",), ("a", "b"), ("a", "b", "c"), ("a", "b", "")])
        self.zones = zones
        for _ in range(chance.randint(3, 12)):
            self.add_node()
        for _ in range(chance.randint(1, 5)):
            self.add_workload()
        if "budget" in self._events:
            for _ in range(chance.choice([0, 1, 2])):
                self.change_budgets()
        self.sim.judge = self._judge
        self.sim.mishap = self._mishap
        self.sim.guard_fault = lambda: chance.random() < self.fault_rate
        self.sim.start()

    def play(self, steps: int = 14) -> "History":
        """Let things happen."""
        chance, sim = self.chance, self.sim
        names = list(self._events)
        weights = [self._events[name][0] for name in names]
        self._wait(chance.choice([0.5, 30.0]))
        for _ in range(steps):
            self._events[chance.choices(names, weights)[0]][1]()
            self._wait(chance.choice([0.0, 0.03, 0.4, 2.0, 7.0, 25.0]))
        sim.run(sim.at + 0.1)
        return self

    def calm(self, seconds: float = 200.0) -> "History":
        """Nothing happens any more, and nothing goes wrong."""
        self.fault_rate = self.sim.clock_step = 0.0
        for workload in self.workloads.all.values():
            workload.home = ""
        self.sim.witness = lambda uid: None
        if self.sim.machine is None:
            self.sim.start()
        self.sim.relist()
        self.sim.feed(events.LeadershipChanged(leading=True))
        self.sim.run(self.sim.at + seconds)
        self.sim.note(Calmed())
        return self

    def lift(self, seconds: float = 120.0) -> "History":
        """No limit is left, nor any budget."""
        for name in list(self.budgets.all):
            self.budgets.delete(name)
        for name, policy in self.policies.items():
            changed = {"limits": NO_LIMITS, "windows": (), "mode": Mode.ENFORCE, "generation": policy.generation + 1}
            self.policies[name] = msgspec.structs.replace(policy, **changed)
        self._policies_changed()
        self.sim.run(self.sim.at + seconds)
        self.sim.note(Lifted())
        return self

    def _wait(self, seconds: float) -> None:
        self.sim.run(self.sim.at + round(self.chance.uniform(0.5, 1.0) * seconds, 3))

    # -- what happens ---------------------------------------------------------------------------------------------

    def wave(self) -> None:
        """Many nodes turn bad, one after the other or at once."""
        nodes = list(self.sim.nodes)
        if self.chance.random() < 0.5:
            nodes = self.chance.sample(nodes, self.chance.randint(1, len(nodes)))
        gap = self.chance.choice([0.0, 0.0, 0.1, 0.5])
        for name in nodes:
            if name in self.sim.nodes:
                self.sim.set_taints(name, [BAD])
                self.sim.run(self.sim.at + gap)

    def spot(self) -> None:
        """One node turns bad."""
        self.sim.set_taints(self._node(), [BAD])

    def flag(self) -> None:
        """One node is flagged, or is not any more."""
        name = self._node()
        taints = self.sim.nodes[name]["spec"]["taints"]
        kept = [taint for taint in taints if taint["key"] != "flag"]
        self.sim.set_taints(name, kept if len(kept) < len(taints) else [*kept, FLAG])

    def recover(self) -> None:
        """Some nodes, or all, are good again."""
        nodes = list(self.sim.nodes)
        for name in nodes if self.chance.random() < 0.4 else self.chance.sample(nodes, 1):
            self.sim.set_taints(name, self.chance.choice([[], [GOOD]]))

    def change_limits(self) -> None:
        """A policy has other limits from now on."""
        name = self.chance.choice(sorted(self.policies))
        policy = self.policies[name]
        limits = draw_limits(self.chance, self.only)
        self._change(policy, limits=limits)

    def change_mode(self) -> None:
        """A policy acts differently from now on."""
        policy = self.policies[self.chance.choice(sorted(self.policies))]
        self._change(policy, mode=self.chance.choice([Mode.ENFORCE, Mode.ENFORCE, Mode.DRY_RUN, Mode.PAUSED]))

    def restart(self) -> None:
        """The operator is killed now, and another leads later."""
        self.sim.restart(self.chance.choice([0.1, 1.0, 8.0]))

    def crash_at_next_call(self) -> None:
        """It is killed while a call is under way."""

        def crash(_: str) -> None:
            self.sim.witness = lambda uid: None
            self.sim.later(self.chance.choice([0.0, 0.02]), self._crash)

        self.sim.witness = crash

    def _crash(self) -> None:
        if self.sim.machine is not None:
            self.sim.kill()
            self.sim.later(0.2, lambda: None if self.sim.machine else self.sim.start())

    def hand_over(self) -> None:
        """It does not lead for a while."""
        self.sim.feed(events.LeadershipChanged(leading=False))
        self._wait(4.0)
        self.sim.feed(events.LeadershipChanged(leading=True))

    def scale(self) -> None:
        """A workload wants more or fewer pods."""
        if self.workloads.all:
            self.workloads.scale(self.chance.choice(sorted(self.workloads.all)), self.chance.randint(0, 12))

    def flap(self) -> None:
        """A pod fails its readiness probe for a while."""
        pod = self._pod(is_ready)
        if pod is not None:
            self.sim.set_ready(pod, ready=False)
            self.sim.later(
                self.chance.choice([1.0, 6.0]),
                lambda: None if "deletionTimestamp" in pod["metadata"] else self.sim.set_ready(pod, ready=True),
            )

    def delete_pod(self) -> None:
        """Somebody deletes a pod."""
        pod = self._pod(lambda _: True)
        if pod is not None:
            self.sim.terminate(pod)

    def change_workloads(self) -> None:
        """A workload comes, or goes."""
        if self.workloads.all and self.chance.random() < 0.5:
            self.workloads.delete(self.chance.choice(sorted(self.workloads.all)))
        else:
            self.add_workload()

    def tie(self) -> None:
        """A workload is tied to a node where it has a pod, and the node turns bad; or it is tied no longer."""
        if not self.workloads.all:
            return
        workload = self.workloads.all[self.chance.choice(sorted(self.workloads.all))]
        nodes = [name for pod in self.workloads.pods(workload) if (name := pod["spec"]["nodeName"]) in self.sim.nodes]
        workload.home = "" if workload.home or not nodes else self.chance.choice(nodes)
        if workload.home:
            self.sim.set_taints(workload.home, [BAD])

    def change_nodes(self) -> None:
        """A node comes, or goes with its pods."""
        if len(self.sim.nodes) > 3 and self.chance.random() < 0.5:
            name = self._node()
            self.sim.delete_node(name)
            for key in [key for key, pod in self.sim.pods.items() if pod["spec"]["nodeName"] == name]:
                self.sim.delete_pod(key)
        else:
            self.add_node()

    def change_faults(self) -> None:
        """The API server fails often, or works again."""
        self.fault_rate = 0.0 if self.fault_rate else self.chance.choice([0.1, 0.5])

    def cut_off(self) -> None:
        """The watches tell nothing for a while, noticed or not, and begin again with a list."""
        if self.sim.machine is None:
            return
        self.wave()
        self.sim.deaf = True
        if self.chance.random() < 0.5:
            self.sim.feed(events.ViewChanged("pods", live=False))
        self._wait(4.0)
        self.sim.relist()
        self.sim.feed(events.ViewChanged("pods", live=True))

    def reset_guard(self) -> None:
        """Somebody lets go what the guards hold."""
        for name in sorted(self.policies):
            self.sim.reset_guard(name)

    def change_budgets(self) -> None:
        """A PodDisruptionBudget comes, or goes."""
        chance = self.chance
        if self.budgets.all and chance.random() < 0.4:
            self.budgets.delete(chance.choice(sorted(self.budgets.all)))
        elif self.workloads.all:
            template = self.workloads.all[chance.choice(sorted(self.workloads.all))].template
            name, app = self._name("pdb"), template["labels"]["app"]
            self.budgets.create(
                name, template["namespace"], app, chance.choice([0, 1, 1, 3]), always_allow=chance.random() < 0.3
            )

    def change_policies(self) -> None:
        """The second policy goes, or another comes in its place."""
        if self.policies.pop("q", None) is None:
            self.policies["q"] = msgspec.structs.replace(
                draw_policy(self.chance, "q", "flag", self.only), uid=self._name("uid")
            )
        self._policies_changed()

    def move_node(self) -> None:
        """A node is in another zone from now on."""
        self.sim.set_labels(self._node(), self._zone_labels())

    def step_clock(self) -> None:
        """The clock on the wall is set, by no more than half a minute in all."""
        self.sim.clock_step = self.chance.choice([-30.0, -3.0, 0.0, 3.0, 30.0])

    # -- how it happens -------------------------------------------------------------------------------------------

    def add_node(self) -> None:
        self.sim.create_node(self._name("n"), labels=self._zone_labels())

    def _zone_labels(self) -> dict[str, str]:
        zone = self.chance.choice(self.zones)
        return {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "r"} if zone else {}

    def add_workload(self) -> None:
        chance, name = self.chance, self._name("w")
        self.workloads.create(
            name,
            chance.choice([1, 2, 4, 8, 12]),
            chance.choice(WATCHED_KINDS),
            namespace=chance.choice(NAMESPACES),
            labels={"app": name},
            tolerations=[TOLERATION],
            priority=chance.choice([0, 0, 10]),
            grace=chance.choice([1, 5, 30]),
            home=self._node() if chance.random() < 0.2 else "",
        )

    def _change(self, policy: Policy, **changes: Any) -> None:
        self.policies[policy.name] = msgspec.structs.replace(policy, generation=policy.generation + 1, **changes)
        self._policies_changed()

    def _policies_changed(self) -> None:
        self.sim.change_policies(self.policies.values())

    def _judge(self, pod: dict[str, Any], delete: bool) -> events.Settled | None:
        uid = pod["metadata"]["uid"]
        if self.chance.random() < self.fault_rate / 2:
            outcome = self.chance.choice([Outcome.FAILED, Outcome.THROTTLED, Outcome.BLOCKED, Outcome.REFUSED])
            return events.Settled(uid, outcome, "fault")
        return self.budgets.judge(pod, delete)

    def _mishap(self) -> str:
        return self.chance.choice(["lost", "late"]) if self.chance.random() < self.fault_rate / 2 else ""

    def _node(self) -> str:
        return self.chance.choice(list(self.sim.nodes))

    def _pod(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
        pods = [p for p in self.sim.pods.values() if "deletionTimestamp" not in p["metadata"] and wanted(p)]
        return self.chance.choice(pods) if pods else None

    def _name(self, prefix: str) -> str:
        self._numbers += 1
        return f"{prefix}{self._numbers}"


class Standing(NamedTuple):
    """A pod that has to leave and is still there when all is calm: what is said to hold it."""

    uid: str
    policy: str
    phase: str
    limit: str
    outcome: str


class Played(NamedTuple):
    """A history that is over."""

    seed: int
    only: str
    trace: list[Moment]
    overall_rate: float | None
    standing: tuple[Standing, ...]

    def __repr__(self) -> str:
        return f"SIMULATED_SEED={self.seed} only={self.only!r}"

    def moments(self) -> Iterator[tuple[Moment, Onlooker]]:
        """Every moment with what the operator could know by then, this moment included."""
        return Onlooker().watch(self.trace)


@lru_cache(maxsize=1_000)
def play(seed: int, only: str = "", without: tuple[str, ...] = ()) -> Played:
    """One history to its end: things happen, then nothing does, then there are no limits any more."""
    history = History(seed, only, without).play().calm()
    machine = history.sim.machine
    assert machine is not None
    standing = tuple(map(_standing, machine.view.all_claims()))
    history.lift()
    return Played(seed, only, history.sim.trace, history.overall_rate, standing)


def _standing(claim: ClaimView) -> Standing:
    outcome = claim.outcome.name if claim.outcome else ""
    return Standing(claim.pod.uid, claim.policy.name, claim.phase.name, claim.limit, outcome)


def histories(only: str = "", without: tuple[str, ...] = ()) -> Iterator[Played]:
    """As many as were asked for, and as many again with the limit ``only`` alone if one is named."""
    for seed in range(FIRST_SEED, FIRST_SEED + RUNS):
        yield play(seed, "", without)
        if only:
            yield play(seed, only, without)
