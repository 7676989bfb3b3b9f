"""A first policy and profile for the taints of a cluster, by its nodes and pods: what ``init`` prints."""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click
import msgspec

from taintwarden.api.text import printable
from taintwarden.api.types import GROUP, POLICY_KIND, PROFILE_KIND, VERSION
from taintwarden.controller.words.wording import pods, several
from taintwarden.engine.limits.zones import ZONE_LABEL
from taintwarden.engine.machine import View
from taintwarden.engine.model import Effect, Gates, Operator, PodClass, Taint, ValueType
from taintwarden.engine.natural import parse_natural
from taintwarden.engine.numeric import parse_integer
from taintwarden.engine.operators import is_comparison
from taintwarden.engine.versions import parse_version, text_in
from taintwarden_cli.cluster_session import ask, settings_of
from taintwarden_cli.doctor.checks.evictions import APP_LABELS
from taintwarden_cli.doctor.checks.policy_checks import STATIC_MARKERS, of_system
from taintwarden_cli.output import fail
from taintwarden_cli.rehearsal.reading import read_for_policies
from taintwarden_cli.rehearsal.rehearsal import Rehearsal, at_once
from taintwarden_cli.rehearsal.snapshot import Snapshot

SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")
MOSTLY = 0.5
"""Values are of a type if more than this share of the nodes has one: the rest are mistakes."""


class Workload(msgspec.Struct, frozen=True):
    """Pods that tolerate a taint whatever its value, by their namespace and a label of all of them."""

    namespace: str
    label: tuple[str, str] | None
    pods: int


class Beginning(msgspec.Struct, frozen=True):
    """What is known of one key.

    ``lowest`` and ``highest`` are values that can be compared, as ``operator`` does; ``threshold`` is one that all of
    them are above.
    """

    key: str
    name: str
    effects: tuple[str, ...]
    nodes: int
    value_type: ValueType | None
    lowest: str = ""
    highest: str = ""
    operator: str = ""
    threshold: str = ""
    invalid: tuple[tuple[str, Taint], ...] = ()
    """Nodes with a value that is not of this type."""
    comparing: int = 0
    """Pods that compare the value already."""
    tolerating: tuple[Workload, ...] = ()
    """The most pods first."""
    has_zones: bool = False
    """Whether nodes with the taint are in zones."""


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
    if one.key in known:
        return f"policy {known[one.key]} acts on it"
    if one.key in STATIC_MARKERS:
        return "it states the class of a node, which does not change"
    if of_system(one.key):
        return "a controller sets and removes it"
    if one.value_type is None and not one.comparing:
        return "its values are neither integers nor versions"
    return ""


def _beginning(
    key: str, seen: Sequence[tuple[str, Taint]], pods: Counter[PodClass], view: View, taken: Sequence[str]
) -> Beginning:
    effects = {taint.effect for _, taint in seen}
    values = [taint.value for _, taint in seen]
    order = _order_of(values)
    valid = sorted((one for one in set(values) if order.is_valid(one)), key=order.parse) if order else []
    comparing, tolerating = 0, Counter[tuple[str, tuple[str, str] | None]]()
    for pod, number in pods.items():
        relevant = [one for one in view.tolerations_of(pod).relevant_to(key) if one.key == key]
        if any(map(is_comparison, relevant)):
            comparing += number
        elif relevant and not pod.daemon_set and pod.namespace not in SYSTEM_NAMESPACES:
            label = next(((name, pod.labels[name]) for name in APP_LABELS if pod.labels.get(name)), None)
            tolerating[pod.namespace, label] += number
    return Beginning(
        key,
        _name(key, taken),
        tuple(effect.value for effect in Effect if effect.value in effects),
        len(seen),
        order.value_type if order else None,
        lowest=valid[0] if order else "",
        highest=valid[-1] if order else "",
        operator=order.operator.value if order else "",
        threshold=order.below(valid[0]) if order else "",
        invalid=tuple((name, taint) for name, taint in seen if order and not order.is_valid(taint.value)),
        comparing=comparing,
        tolerating=tuple(
            Workload(namespace, label, number)
            for (namespace, label), number in sorted(tolerating.items(), key=lambda one: (-one[1], str(one[0])))
        ),
        has_zones=any(ZONE_LABEL in node.node.labels for name, _ in seen if (node := view.node(name)) is not None),
    )


def _order_of(values: Sequence[str]) -> "_Order | None":
    """The order in which most values have a place: whole numbers are also versions.

    Versions are compared semantically only if none has a suffix whose semantic order is not what users expect.
    """
    for order in _ORDERS:
        if sum(map(order.is_valid, values)) > MOSTLY * len(values) and not any(map(order.misreads, values)):
            return order
    return None


def _below_integer(value: str) -> str:
    """The highest value of a toleration that this value is above."""
    number = parse_integer(value)
    return str((number or 0) - 1) if number is not None and number > -(2**63) else value


def _below_release(value: str) -> str:
    """The lowest pre-release is below its release; a pre-release has no such neighbour."""
    version = parse_version(value)
    return value if version is None else f"{version.major}.{version.minor}.{version.patch}-0"


def _below_build(value: str) -> str:
    """Nothing is between a number and the number with ``~``, so what follows the last one may be left out."""
    return re.sub(r"[^0-9]+$", "", value) + "~"


def _parse_build(text: str) -> object:
    """Only what looks like a version: the natural order has a place for every text with a digit."""
    return parse_natural(text) if re.match(r"v?[0-9]+\.[0-9]", text) else None


class _Order(msgspec.Struct, frozen=True):
    """An order of values, and the comparison for which high ones are good."""

    value_type: ValueType
    operator: Operator
    parse: Callable[[str], Any]
    below: Callable[[str], str]
    misreads: Callable[[str], object] = lambda _: False

    def is_valid(self, value: str) -> bool:
        """Whether the value has a place in it."""
        return self.parse(value) is not None


_ORDERS = (
    _Order(ValueType.INTEGER, Operator.GT, parse_integer, _below_integer),
    _Order(ValueType.VERSION, Operator.SEMVER_GT, parse_version, _below_release, text_in),
    _Order(ValueType.VERSION, Operator.VERSION_GT, _parse_build, _below_build),
)


def _name(key: str, taken: Iterable[str]) -> str:
    """A name of an object: of the key, what follows its domain."""
    base = "".join(one if one.isalnum() and one.isascii() else "-" for one in key.rpartition("/")[2].lower())
    base = base.strip("-") or "taint"
    number, name = 2, base
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


API_VERSION = f"{GROUP}/{VERSION}"
NAMED = 3
"""How many nodes or workloads a comment names."""
FINE, NOTHING = 0, 10


def show(keys: tuple[str, ...], **flags: object) -> None:
    """Carry out ``taintwarden init``."""
    settings, now = settings_of(flags), time.time()
    snapshot = ask(settings, lambda session: read_for_policies(session, now))
    found = beginnings(snapshot, keys)
    if not found.keys:
        left = "; ".join(f"{printable(key)}: {why}" for key, why in found.left_out.items())
        named = f" (left out: {left})" if left else ""
        fail(f"no node has a taint for which to write a policy: name one by --key{named}", NOTHING)
    click.echo(text(found), nl=False)
    sys.exit(FINE)


def text(found: Beginnings) -> str:
    """All documents."""
    lines: list[str] = []
    for key, why in found.left_out.items():
        lines.append(f"# {printable(key)} is left out: {printable(why)}.")
    for one in found.keys:
        lines += ["---", *_policy(one)]
        if one.value_type is not None and one.tolerating and not one.comparing:
            lines += ["---", *_profile(one, one.tolerating[0])]
        else:
            lines += _why_no_profile(one)
    return "\n".join(lines) + "\n"


def _policy(one: Beginning) -> Iterator[str]:
    have = "has" if one.nodes == 1 else "have"
    yield f"# The policy for {printable(one.key)}, which {several(one.nodes, 'node')} {have}."
    yield f"apiVersion: {API_VERSION}"
    yield f"kind: {POLICY_KIND}"
    yield "metadata:"
    yield f"  name: {one.name}"
    yield "spec:"
    yield "  # It reports which pods it would evict, in Events and in taintwarden status, and evicts none."
    yield "  # Set Enforce when these are the right ones."
    yield "  mode: DryRun"
    yield "  taints:"
    yield f"    - key: {_quoted(one.key)}"
    if one.effects != (Effect.NO_EXECUTE.value,):
        yield "      # The effects that the nodes have. Without this field it acts on NoExecute only."
        yield f"      effects: [{', '.join(one.effects)}]"
    yield from _values(one)
    yield "      # The scheduler keeps pods off nodes whose value they do not tolerate: else they come back to"
    yield "      # the node that they have to leave. Their namespace needs the label taintwarden.io/inject=true,"
    yield "      # and the webhook has to run."
    yield "      placement: true"
    yield "  timing:"
    yield "    # From a bad value to the eviction, for pods whose tolerations set no grace."
    yield "    violationGraceSeconds: 60"
    yield "    # A value that recovers within this time evicts no pod."
    yield "    stabilizationWindowSeconds: 30"
    yield "  # Rates and the guard against mass evictions have their defaults: see limits."
    if one.has_zones and one.value_type is ValueType.INTEGER:
        yield "  limits:"
        yield "    zoneHealth:"
        yield "      # Nodes that are unhealthy: where most nodes of a zone are, pods leave it slowly. None is"
        yield f"      # now, as the lowest has {printable(one.lowest)}. Without it only the guard stops large waves."
        yield "      unhealthy:"
        yield f"        - {{key: {_quoted(one.key)}, operator: Lt, value: {_quoted(one.lowest)}}}"


def _values(one: Beginning) -> Iterator[str]:
    if one.value_type is None:
        yield "      # Most values are neither integers nor versions: only Equal and Exists tolerate them."
        yield "      valueType: String"
        return
    same = one.lowest == one.highest
    told = f"all are {printable(one.lowest)}" if same else f"from {printable(one.lowest)} to {printable(one.highest)}"
    yield f"      # The type of the values: {told}. Any other value is a mistake, and pods are"
    yield "      # judged by the last valid one."
    if one.invalid:
        named = ", ".join(f"{printable(taint.value) or 'none'} on {name}" for name, taint in one.invalid[:NAMED])
        more = f" and {len(one.invalid) - NAMED} more" if len(one.invalid) > NAMED else ""
        yield f"      # Not of this type: {named}{more}. Correct them first."
    yield f"      valueType: {one.value_type.value}"


def _profile(one: Beginning, workload: Workload) -> Iterator[str]:
    yield f"# {_named(workload)} tolerate every value of {printable(one.key)} now. This decides instead,"
    yield "# without a change to their templates; their own toleration satisfies the scheduler."
    if others := one.tolerating[1:]:
        named = "; ".join(_named(other) for other in others[:NAMED])
        more = f"; and {len(others) - NAMED} more" if len(others) > NAMED else ""
        yield f"# For others copy it: {named}{more}."
    yield f"apiVersion: {API_VERSION}"
    yield f"kind: {PROFILE_KIND}"
    yield "metadata:"
    yield f"  name: {one.name}"
    yield f"  namespace: {workload.namespace}"
    yield "spec:"
    if workload.label is None:
        yield "  # These pods have no label app: all pods of the namespace are selected."
        yield "  podSelector: {}"
    else:
        yield "  podSelector:"
        yield "    matchLabels:"
        yield f"      {workload.label[0]}: {_quoted(workload.label[1])}"
    yield "  tolerations:"
    opposite = one.operator.replace("Gt", "Lt")
    for effect in one.effects:
        yield f"    - key: {_quoted(one.key)}"
        yield f"      # Pods stay while the value of the node is above this one; {opposite}: below."
        yield f"      operator: {one.operator}"
        yield f"      # All nodes are, as the lowest has {printable(one.lowest)}: raise it to what the pods need."
        yield f"      value: {_quoted(one.threshold)}"
        yield f"      effect: {effect}"
        yield "      # They leave so many seconds after the value became too low."
        yield "      violationGraceSeconds: 30"


def _why_no_profile(one: Beginning) -> Sequence[str]:
    if one.comparing:
        return (f"# {pods(one.comparing)} compare the value already, so no profile is needed.",)
    if one.tolerating:
        named = "; ".join(_named(other) for other in one.tolerating[:NAMED])
        return (f"# No profile, as the values cannot be compared. It is tolerated by: {named}.",)
    return (
        "# No profile: no pod tolerates the taint. With NoExecute the cluster's own controller evicts such pods",
        "# at once: first give pods a toleration with operator Exists, then write a TolerationProfile.",
    )


def _named(workload: Workload) -> str:
    label = "" if workload.label is None else f" with {workload.label[0]}={workload.label[1]}"
    return f"{pods(workload.pods)} of namespace {workload.namespace}{label}"


def _quoted(value: str) -> str:
    """A scalar that YAML reads as this text, whatever it looks like."""
    return json.dumps(value)
