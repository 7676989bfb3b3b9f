"""What a first policy and profile for the taints of a cluster contain, by its nodes and pods."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from taintwarden.cli.doctor.checks.policy_checks import STATIC_MARKERS
from taintwarden.engine.machine import View
from taintwarden.engine.model import Effect, Gates, Operator, PodClass, Taint, ValueType
from taintwarden.engine.numeric import parse_integer
from taintwarden.engine.operators import is_comparison
from taintwarden.engine.versions import parse_version
from taintwarden.rehearsal.rehearsal import Rehearsal, at_once
from taintwarden.rehearsal.snapshot import Snapshot

SYSTEM_DOMAINS = ("kubernetes.io", "k8s.io", "cilium.io", "karpenter.sh")
"""Domains whose controllers set and remove the taint, so that its value means nothing else."""
SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")
MOSTLY = 0.5
"""Values are of a type if more than this share of the nodes has one: the rest are mistakes."""
APP_LABELS = ("app.kubernetes.io/name", "app")
"""Labels that select the pods of one workload, the better first."""


class Workload(msgspec.Struct, frozen=True):
    """Pods that tolerate a taint whatever its value, by their namespace and a label of all of them."""

    namespace: str
    label: tuple[str, str] | None
    pods: int


class Beginning(msgspec.Struct, frozen=True):
    """What is known of one key.

    ``lowest`` and ``highest`` are values that can be compared; ``threshold`` is one that all of them are above.
    """

    key: str
    name: str
    effects: tuple[str, ...]
    nodes: int
    value_type: ValueType | None
    lowest: str = ""
    highest: str = ""
    threshold: str = ""
    invalid: tuple[tuple[str, Taint], ...] = ()
    """Nodes with a value that is not of this type."""
    comparing: int = 0
    """Pods that compare the value already."""
    tolerating: tuple[Workload, ...] = ()
    """The most pods first."""


class Beginnings(msgspec.Struct, frozen=True):
    """The keys for which to write a policy, and why others are left out."""

    keys: tuple[Beginning, ...]
    left_out: dict[str, str]


def beginnings(snapshot: Snapshot, wanted: Sequence[str]) -> Beginnings:
    """What to write for the keys that are wanted, or for those whose values change."""
    rehearsal = Rehearsal(snapshot, Gates(), at_once(snapshot.now))
    rehearsal.teach()
    taints: dict[str, list[tuple[str, Taint]]] = {}
    pods: Counter[PodClass] = Counter()
    view = rehearsal.view
    for name in sorted(view.nodes):
        node = view.node(name)
        for taint, _ in node.taints if node is not None else ():
            taints.setdefault(taint.key, []).append((name, taint))
        pods.update(pod.shared for pod in view.pods(name))
    known = {key: policy.name for policy in rehearsal.policies for key in (one.key for one in policy.taints)}
    found: list[Beginning] = []
    left_out = {key: "no node has it" for key in wanted if key not in taints}
    for key, seen in sorted(taints.items()):
        if wanted and key not in wanted:
            continue
        one = _beginning(key, seen, pods, view, taken=[beginning.name for beginning in found])
        why = "" if wanted else _why_not(one, known)
        if why:
            left_out[key] = why
        else:
            found.append(one)
    return Beginnings(tuple(found), left_out)


def _why_not(one: Beginning, known: dict[str, str]) -> str:
    domain = one.key.partition("/")[0] if "/" in one.key else ""
    if one.key in known:
        return f"policy {known[one.key]} acts on it"
    if one.key in STATIC_MARKERS:
        return "it states the class of a node, which does not change"
    if any(domain == known or domain.endswith(f".{known}") for known in SYSTEM_DOMAINS):
        return "a controller sets and removes it"
    if one.value_type is None and not one.comparing:
        return "its values are neither integers nor versions"
    return ""


def _beginning(
    key: str, seen: Sequence[tuple[str, Taint]], pods: Counter[PodClass], view: View, taken: Sequence[str]
) -> Beginning:
    effects = {taint.effect for _, taint in seen}
    values = [taint.value for _, taint in seen]
    value_type, is_valid = _type_of(values)
    valid = sorted({value for value in values if is_valid(value)}, key=_rank(value_type))
    comparing, tolerating = 0, Counter[tuple[str, tuple[str, str] | None]]()
    for pod, number in pods.items():
        relevant = [one for one in view.tolerations_of(pod).relevant_to(key) if one.key == key]
        if any(map(is_comparison, relevant)):
            comparing += number
        elif relevant and not pod.daemon_set and pod.namespace not in SYSTEM_NAMESPACES:
            tolerating[pod.namespace, _label(pod)] += number
    return Beginning(
        key,
        _name(key, taken),
        tuple(effect.value for effect in Effect if effect.value in effects),
        len(seen),
        value_type,
        lowest=valid[0] if value_type else "",
        highest=valid[-1] if value_type else "",
        threshold=_below(valid[0], value_type) if value_type else "",
        invalid=tuple((name, taint) for name, taint in seen if value_type and not is_valid(taint.value)),
        comparing=comparing,
        tolerating=tuple(
            Workload(namespace, label, number)
            for (namespace, label), number in sorted(tolerating.items(), key=lambda one: (-one[1], str(one[0])))
        ),
    )


def _type_of(values: Sequence[str]) -> tuple[ValueType | None, Callable[[str], bool]]:
    """The type that most values are of: whole numbers are also versions."""
    for value_type, is_valid in ((ValueType.INTEGER, _is_integer), (ValueType.VERSION, _is_version)):
        if sum(map(is_valid, values)) > MOSTLY * len(values):
            return value_type, is_valid
    return None, lambda _: False


def _is_integer(text: str) -> bool:
    return parse_integer(text) is not None


def _is_version(text: str) -> bool:
    return parse_version(text) is not None


def _rank(value_type: ValueType | None) -> Callable[[str], Any]:
    return parse_integer if value_type is ValueType.INTEGER else parse_version


def _below(value: str, value_type: ValueType | None) -> str:
    """The highest value of a toleration that this value is above."""
    if value_type is ValueType.INTEGER:
        number = parse_integer(value)
        return str((number or 0) - 1) if number is not None and number > -(2**63) else value
    version = parse_version(value)
    if version is None:
        return value
    # The lowest prerelease is below its release; a prerelease has no such neighbour, and its release is far below.
    return f"{version.major}.{version.minor}.{version.patch}-0"


def _label(pod: PodClass) -> tuple[str, str] | None:
    return next(((name, pod.labels[name]) for name in APP_LABELS if pod.labels.get(name)), None)


def _name(key: str, taken: Iterable[str]) -> str:
    """A name of an object: of the key, what follows its domain."""
    base = "".join(one if one.isalnum() and one.isascii() else "-" for one in key.rpartition("/")[2].lower())
    base = base.strip("-") or "taint"
    number, name = 2, base
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


def operator_of(value_type: ValueType | None) -> Operator:
    """The comparison for which high values are good."""
    return Operator.GT if value_type is ValueType.INTEGER else Operator.SEMVER_GT
