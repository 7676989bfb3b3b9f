"""A sweep: the number of pods that have to leave at each of many values of a taint."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from taintwarden.engine import rfc3339
from taintwarden.engine.evaluate import Concern, Evaluator, acting_on
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.machine import NodeView, View
from taintwarden.engine.model import Effect, Gates, Pod, Taint
from taintwarden.engine.policy import Mode, Policy
from taintwarden_cli.rehearsal.manifests import BadInput

MAX_VALUES = 10_000
_FORM = "write KEY=FROM..TO or KEY=VALUE,VALUE,..., for example sla=980..900"
_RANGE = re.compile(r"(-?[0-9]{1,18})\.\.(-?[0-9]{1,18})")


class SweptTaint(msgspec.Struct, frozen=True):
    """A taint, and the values that are tried, in order."""

    key: str
    effect: str
    values: tuple[str, ...]
    is_range: bool = False
    """True for a range of integers, of which the first, the last and those at which something changes are shown."""


class Step(msgspec.Struct, rename="camel"):
    """The effect of one value."""

    value: str
    leaving: int
    """Pods that have to leave at this value."""
    more: int
    """The difference of ``leaving`` from the value before."""
    workloads: dict[str, int]
    """The leaving pods by workload, the most first."""
    trips: list[str]
    """The policies whose guard trips, counting no earlier evictions."""


class Sweep(msgspec.Struct, rename="camel"):
    """The values of a range at which something changes, with the first and the last; or all values of a list."""

    at: str
    key: str
    effect: str
    nodes: int
    pods: int
    """Pods on these nodes."""
    policies: list[str]
    """The policies that act on the taint of these nodes."""
    would: list[str]
    """Those of ``policies`` that do not enforce. Their pods are counted, too."""
    steps: list[Step]
    invalid: list[str]
    """Values that cannot be compared."""
    notes: list[str]

    @property
    def needs_action(self) -> bool:
        """True if you should review the sweep before you set one of the values."""
        return bool(self.invalid) or any(step.trips for step in self.steps)


def parse_sweep(text: str) -> SweptTaint:
    """Parse ``KEY=FROM..TO`` or ``KEY=VALUE,VALUE``, with an optional ``:EFFECT``.
    Raises BadInput if the text has another form, or too many values.
    """
    pair, colon, effect = text.rpartition(":")
    if not colon:
        pair, effect = text, Effect.NO_EXECUTE.value
    key, _, values = pair.partition("=")
    if effect not in tuple(Effect) or not key or not values:
        raise BadInput(f"{text!r} is not a sweep: {_FORM}")
    if found := _RANGE.fullmatch(values):
        first, last = int(found[1]), int(found[2])
        if abs(first - last) >= MAX_VALUES:
            raise BadInput(f"{text!r} has more than {MAX_VALUES} values")
        step = 1 if last >= first else -1
        return SweptTaint(key, effect, tuple(map(str, range(first, last + step, step))), is_range=True)
    if not (listed := tuple(one.strip() for one in values.split(",") if one.strip())):
        raise BadInput(f"{text!r} is not a sweep: {_FORM}")
    return SweptTaint(key, effect, listed)


def sweep(
    view: View, wanted: SweptTaint, names: Sequence[str], gates: Gates, modes: Mapping[str, Mode], now: float
) -> Sweep:
    """Try the values on these nodes; without names, on all that carry the taint."""
    found = _SweptPods(view, wanted, names, gates)
    steps, before = list[Step](), 0
    for value in wanted.values:
        by_policy, workloads = found.count(value)
        leaving = by_policy.total()
        guards = ((name, view.guard(name), pods) for name, pods in sorted(by_policy.items()))
        trips = [name for name, guard, pods in guards if guard is not None and pods > guard.allowance]
        steps.append(Step(value, leaving, leaving - before, dict(workloads.most_common()), trips))
        before = leaving
    changing = (after for step, after in pairwise(steps) if not wanted.is_range or after.workloads != step.workloads)
    shown = [*steps[:1], *changing]
    shown += steps[-1:] if shown[-1:] != steps[-1:] else []
    policies = sorted(found.policies)
    return Sweep(
        at=rfc3339.at(now),
        key=wanted.key,
        effect=wanted.effect,
        nodes=len(found.nodes),
        pods=found.pods,
        policies=policies,
        would=[name for name in policies if modes.get(name) is not Mode.ENFORCE],
        steps=shown,
        invalid=list(found.invalid),
        notes=list(_notes(found, wanted)),
    )


def _notes(found: "_SweptPods", wanted: SweptTaint) -> Iterator[str]:
    if not found.nodes:
        yield f"no node carries the taint {wanted.key}:{wanted.effect}: name nodes by --node, --zone or --selector"
    elif not found.policies:
        yield f"no policy acts on {wanted.key}:{wanted.effect} on these nodes: it is left to Kubernetes"


class _SweptPods:
    """The pods on the nodes of a sweep, in groups."""

    def __init__(self, view: View, wanted: SweptTaint, names: Sequence[str], gates: Gates) -> None:
        self._view = view
        self._wanted = wanted
        self._evaluator = Evaluator(gates)
        self.nodes = [node for name in names or sorted(view.nodes) if (node := view.node(name)) is not None]
        if not names:
            self.nodes = [node for node in self.nodes if any(_matching_taints(node, wanted))]
        self._source = next((taint.source for node in self.nodes for taint in _matching_taints(node, wanted)), "")
        self.policies: set[str] = set()
        self.pods = 0
        self.invalid: dict[str, None] = {}
        self._groups: dict[tuple[int, str, str], tuple[Pod, Policy, int]] = {}
        """The first pod, the policy and the number of pods, by class, policy and workload."""
        for node in self.nodes:
            for pod in view.pods(node.node.name):
                self._add(node, pod)

    def _add(self, node: NodeView, pod: Pod) -> None:
        self.pods += 1
        selecting = self._view.policies_for(pod.shared)
        taint = Taint(self._wanted.key, effect=self._wanted.effect)
        acting = acting_on(taint, [one for one in node.policies if one in selecting])
        if acting is not None:
            policy, _ = acting
            self.policies.add(policy.name)
            key = (id(pod.shared), policy.name, _workload_name(pod))
            first, _, number = self._groups.get(key, (pod, policy, 0))
            self._groups[key] = (first, policy, number + 1)

    def count(self, value: str) -> tuple[Counter[str], Counter[str]]:
        """The pods that have to leave at a value, by policy and by workload."""
        taint = Taint(self._wanted.key, value, self._wanted.effect, self._source)
        concern = Concern(taint, TaintHistory.begin(value, 0.0))
        by_policy, workloads = Counter[str](), Counter[str]()
        for (_, name, workload), (pod, policy, number) in self._groups.items():
            tolerations = self._view.tolerations_of(pod.shared)
            verdicts = self._evaluator.verdicts(pod.shared, tolerations, [concern], (policy,))
            if any(verdict.invalid for verdict in verdicts):
                self.invalid[value] = None
            if any(verdict.evicts for verdict in verdicts):
                by_policy[name] += number
                workloads[workload] += number
        return by_policy, workloads


def _matching_taints(node: NodeView, wanted: SweptTaint) -> Iterator[Taint]:
    return (taint for taint, _ in node.taints if (taint.key, taint.effect) == (wanted.key, wanted.effect))


def _workload_name(pod: Pod) -> str:
    """The name of a pod's workload: that of its owner, for a ReplicaSet without the hash of the template."""
    owner = pod.shared.owner
    name = pod.name if owner is None else owner.name
    revision = pod.shared.labels.get("pod-template-hash")
    return f"{pod.namespace}/{name.removesuffix(f'-{revision}') if revision else name}"
