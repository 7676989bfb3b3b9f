"""The scenario: nodes, pods, changes, and the expected evictions, written by hand as the test oracle of the demo."""

import math
from collections.abc import Callable
from typing import Any

import msgspec

NAMESPACE = "shop"
POLICY = "sla"
TAINT = "sla"
Object = dict[str, Any]


class Node(msgspec.Struct, frozen=True):
    """A node of the demo and the value of its taint at the start."""

    name: str
    zone: str
    capacity: str
    sla: str


class Workload(msgspec.Struct, frozen=True):
    """Pods with the same tolerations. ``nodes`` has the name of a node for each pod."""

    name: str
    description: str
    nodes: tuple[str, ...]
    tolerations: tuple[Object, ...] = ()
    extended: tuple[Object, ...] = ()
    above: str | None = None
    """Threshold in the pods' node affinity, as placement would add it for an extended toleration."""
    max_unavailable: int | None = None
    """``maxUnavailable`` of its PodDisruptionBudget; None without a budget."""
    daemon_set: bool = False


class ExpectedEvictions(msgspec.Struct, frozen=True):
    """Pods of ``workload`` that must leave the changed node, within ``within_seconds`` after the grace has ended."""

    workload: str
    pods: int
    grace_seconds: int
    within_seconds: float
    description: str


class Change(msgspec.Struct, frozen=True):
    """A new value of a node's taint, ``at`` seconds after the start, with the expected evictions."""

    at: float
    node: str
    value: str
    expected: tuple[ExpectedEvictions, ...] = ()
    cancels: int = 0
    """The number of scheduled evictions on this node that must be cancelled."""
    invalid: bool = False
    """True if the value is invalid, so that it must not cause an eviction."""


class Scenario(msgspec.Struct, frozen=True):
    """A scenario. ``grace_seconds`` is the grace of the policy, for pods that do not set their own."""

    nodes: tuple[Node, ...]
    workloads: tuple[Workload, ...]
    changes: tuple[Change, ...]
    grace_seconds: int

    @property
    def ends_at(self) -> float:
        """Earliest end of the demo, late enough to observe a wrong eviction of a pod that must stay."""
        return self._last(lambda group: group.grace_seconds + 3.0)

    @property
    def gives_up_at(self) -> float:
        """Latest end of the demo. A pod that still has not left is late."""
        return self._last(lambda group: group.grace_seconds + group.within_seconds + 4.0)

    def _last(self, seconds: Callable[[ExpectedEvictions], float]) -> float:
        ends = [change.at + seconds(group) for change in self.changes for group in change.expected]
        return max([*ends, *(change.at + 3.0 for change in self.changes)])


def make_scenario(pace: float = 1.0) -> Scenario:
    """Return the scenario, stretched in time by ``pace``. Graces are rounded up to the whole seconds of Kubernetes."""
    grace, own_grace, short_grace = (math.ceil(seconds * pace) for seconds in (5, 4, 3))
    prompt, past_the_budget = 4.0, 20.0  # tolerance for a busy machine; time for retries while a budget blocks
    after_940 = ExpectedEvictions("payments", 2, grace, prompt, f"Gt 950, {grace} s of grace from the policy")
    after_890 = (
        ExpectedEvictions("search", 2, short_grace, prompt, f"Gt 930 by annotation, {short_grace} s of grace"),
        ExpectedEvictions("catalog", 2, own_grace, prompt, f"Gt 900, tolerationSeconds {own_grace}"),
        ExpectedEvictions("checkout", 3, own_grace, past_the_budget, "Gt 900 too, but one at a time by its budget"),
    )
    changes = (
        Change(2.0 * pace, "a1", "940", expected=(after_940,)),
        Change(4.0 * pace, "b1", "940"),
        Change(7.0 * pace, "b1", "960", cancels=2),
        Change(10.0 * pace, "c1", "high", invalid=True),
        Change(13.0 * pace, "a1", "890", expected=after_890),
        Change(21.0 * pace, "c1", "990"),
    )
    return Scenario(_NODES, _workloads(own_grace, short_grace), changes, grace)


_NODES = (
    Node("a1", "zone-a", "on-demand", "980"),
    Node("a2", "zone-a", "on-demand", "990"),
    Node("a-spot", "zone-a", "spot", "920"),
    Node("b1", "zone-b", "on-demand", "980"),
    Node("b2", "zone-b", "on-demand", "985"),
    Node("b-spot", "zone-b", "spot", "920"),
    Node("c1", "zone-c", "on-demand", "990"),
    Node("c2", "zone-c", "on-demand", "980"),
    Node("c-spot", "zone-c", "spot", "925"),
)


def _workloads(own_grace: int, short_grace: int) -> tuple[Workload, ...]:
    taint = {"key": TAINT, "effect": "NoExecute"}
    exists = {**taint, "operator": "Exists"}
    above_950 = {**taint, "operator": "Gt", "value": "950"}
    above_900 = {**taint, "operator": "Gt", "value": "900", "tolerationSeconds": own_grace}
    above_930 = {**taint, "operator": "Gt", "value": "930", "violationGraceSeconds": short_grace}
    return (
        Workload("payments", "critical: Gt 950", ("a1", "a1", "b1", "b1", "c1", "c2"), (above_950,)),
        Workload(
            "checkout",
            "standard: Gt 900, budget of one",
            ("a1", "a1", "a1", "b2", "c1", "c2"),
            (above_900,),
            max_unavailable=1,
        ),
        Workload("catalog", "standard: Gt 900", ("a1", "a1", "a2", "b1", "b-spot", "c1", "c2", "c-spot"), (above_900,)),
        Workload("search", "Gt 930 by annotation", ("a1", "a1", "b1", "c1", "c2"), (exists,), (above_930,), "930"),
        Workload("reports", "batch: Exists", ("a1", "a2", *("a-spot", "b-spot", "c-spot") * 2, "b2", "c1"), (exists,)),
        Workload("agent", "DaemonSet, tolerates nothing", tuple(node.name for node in _NODES), daemon_set=True),
    )
