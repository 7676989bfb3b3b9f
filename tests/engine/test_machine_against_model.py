"""The machine in a cluster with faults and restarts, against the naive model, step by step."""

import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from simulated import Simulation, policy
from simulated.cluster import START
from simulated.naive import Presence, due
from taintwarden.engine.history import MAX_SPANS
from taintwarden.engine.machine import Outcome, events

SECOND = 1.0  # objects tell their times to the second
MOMENT = 0.002  # histories are kept to the millisecond
NODES = ("n1", "n2")
KEYS = ("sla", "flag")
VALUES = ("980", "940", "930", "high")

timings = st.fixed_dictionaries(
    {
        "tolerationSecondsMode": st.sampled_from(["AfterViolation", "Kubernetes"]),
        "onInvalidValue": st.sampled_from(["Hold", "Evict"]),
        "violationGraceSeconds": st.sampled_from([0, 5]),
        "stabilizationWindowSeconds": st.sampled_from([0, 8]),
    }
)
tolerations = st.fixed_dictionaries(
    {
        "key": st.sampled_from(KEYS),
        "operator": st.sampled_from(["Gt", "Lt", "Equal", "Exists"]),
        "value": st.sampled_from(["950", "980", "930"]),
        "effect": st.sampled_from(["", "NoExecute"]),
    },
    optional={"tolerationSeconds": st.sampled_from([-1, 0, 4, 20])},
)
extended = st.fixed_dictionaries(
    {
        "key": st.just("sla"),
        "operator": st.sampled_from(["Gt", "Lt"]),
        "value": st.sampled_from(["950", "980"]),
    },
    optional={"tolerationSeconds": st.sampled_from([3, 15]), "violationGraceSeconds": st.sampled_from([0, 6])},
)
FAULTS = {"failed": Outcome.FAILED, "blocked": Outcome.BLOCKED, "throttled": Outcome.THROTTLED}


class MachineAgainstModel(RuleBasedStateMachine):
    """Whatever happens: never early, never somebody else, never forgotten."""

    @initialize(timing=timings)
    def begin(self, timing: dict[str, Any]) -> None:
        self.timing = timing
        self.sim = Simulation([policy(timing=timing)])
        self.presences: dict[str, dict[str, Presence]] = {name: {} for name in NODES}
        self.tolerations: dict[str, list[dict[str, Any]]] = {}
        self.bound_at: dict[str, float] = {}
        self.fault: Outcome | None = None
        self.sim.judge = self.judge
        self.sim.witness = self.witness
        for name in NODES:
            self.sim.create_node(name)
        self.sim.start()

    def judge(self, pod: dict[str, Any], _: bool) -> events.Settled | None:
        return events.Settled(pod["metadata"]["uid"], self.fault, "fault") if self.fault else None

    def witness(self, uid: str) -> None:
        """Each call that is sent is one that the model wants too."""
        pod = next(pod for pod in self.sim.pods.values() if pod["metadata"]["uid"] == uid)
        wanted = self.wanted_at(pod)
        assert wanted is not None, f"{uid} may stay"
        assert wanted <= self.sim.at + MOMENT, f"{uid} is not due before {wanted}, it is {self.sim.at}"
        assert uid not in self.sim.evicted

    def wanted_at(self, pod: dict[str, Any]) -> float | None:
        uid = pod["metadata"]["uid"]
        node = pod["spec"]["nodeName"]
        deadlines = [
            due(presence, self.relevant(uid, key), self.bound_at[uid], self.timing)
            for key, presence in self.presences[node].items()
        ]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def relevant(self, uid: str, key: str) -> list[dict[str, Any]]:
        own = [entry for entry in self.tolerations[uid] if not entry.get("extended")]
        narrowed = [entry for entry in self.tolerations[uid] if entry.get("extended") and entry["key"] == key]
        return narrowed or own

    # -- what happens ---------------------------------------------------------------------------------------------

    @rule(
        node=st.sampled_from(NODES),
        native=st.lists(tolerations, max_size=3),
        more=st.lists(extended, max_size=2),
    )
    def create_pod(self, node: str, native: list[dict[str, Any]], more: list[dict[str, Any]]) -> None:
        native = [entry | ({"value": ""} if entry["operator"] == "Exists" else {}) for entry in native]
        annotations = {"taintwarden.io/tolerations": json.dumps(more)} if more else {}
        uid = f"uid-{len(self.bound_at)}"
        self.bound_at[uid] = self.sim.at
        self.tolerations[uid] = native + [entry | {"extended": True} for entry in more]
        self.sim.create_pod(uid, node, native, annotations=annotations, uid=uid)

    @rule(node=st.sampled_from(NODES))
    def create_sla_pod(self, node: str) -> None:
        self.create_pod(node, [{"key": "sla", "operator": "Gt", "value": "950", "tolerationSeconds": 15}], [])

    @rule(node=st.sampled_from(NODES), value=st.sampled_from(VALUES), seconds=st.sampled_from([0.0, 2.5]))
    def change_value(self, node: str, value: str, seconds: float) -> None:
        self.sim.run(self.sim.at + seconds)
        self.taint(node, "sla", value)

    @rule(node=st.sampled_from(NODES), key=st.sampled_from(KEYS), value=st.sampled_from(VALUES))
    def taint(self, node: str, key: str, value: str) -> None:
        presence = self.presences[node].setdefault(key, Presence(key))
        if not presence.values or presence.values[-1][1] != value:
            presence.values.append((self.sim.at, value))
        self.write_taints(node)

    @rule(node=st.sampled_from(NODES), key=st.sampled_from(KEYS))
    def untaint(self, node: str, key: str) -> None:
        self.presences[node].pop(key, None)
        self.write_taints(node)

    def write_taints(self, node: str) -> None:
        taints = [(p.key, p.values[-1][1]) for p in self.presences[node].values()]
        self.sim.set_taints(node, [{"key": key, "value": value, "effect": "NoExecute"} for key, value in taints])

    @rule(seconds=st.sampled_from([0.1, 1.0, 3.3, 9.0, 30.0]))
    def wait(self, seconds: float) -> None:
        self.sim.run(self.sim.at + seconds)

    @rule(fault=st.sampled_from([None, *FAULTS]))
    def break_or_mend(self, fault: str | None) -> None:
        self.fault = FAULTS[fault] if fault else None

    @rule(downtime=st.sampled_from([0.0, 2.0, 12.0]))
    def restart(self, downtime: float) -> None:
        self.sim.run(self.sim.at + 0.2)  # what was seen has been written down
        self.sim.restart(downtime)

    @precondition(lambda self: self.sim.pods)
    @rule(data=st.data())
    def delete_pod(self, data: st.DataObject) -> None:
        self.sim.delete_pod(data.draw(st.sampled_from(sorted(self.sim.pods))))

    # -- what always holds ----------------------------------------------------------------------------------------

    @invariant()
    def deadlines_are_the_models(self) -> None:
        machine = self.sim.machine
        for pod in self.sim.pods.values():
            uid = pod["metadata"]["uid"]
            claim = next(iter(machine.view.claims(uid)), None)
            if uid in self.sim.evicted:
                continue
            wanted = self.wanted_at(pod)
            if claim is None:
                assert wanted is None
                continue
            assert wanted is not None
            ours = claim.due_at - START
            assert ours >= wanted - MOMENT
            if all(len(presence.values) <= MAX_SPANS for presence in self.presences[pod["spec"]["nodeName"]].values()):
                assert ours <= wanted + SECOND

    def teardown(self) -> None:
        """Once faults stop, whoever has to leave leaves, and nobody else."""
        if not hasattr(self, "sim"):
            return
        self.fault = None
        self.sim.run(self.sim.at + 60)
        for pod in self.sim.pods.values():
            wanted = self.wanted_at(pod)
            if wanted is not None and wanted < self.sim.at - 2:
                assert pod["metadata"]["uid"] in self.sim.evicted


TestMachineAgainstModel = MachineAgainstModel.TestCase
TestMachineAgainstModel.settings = settings(
    max_examples=250, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
