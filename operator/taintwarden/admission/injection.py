"""What a pod gets before it is stored: native tolerations beside its extended ones, and nodes that suit it.

The scheduler, the kubelet and the built-in controller do not read extended tolerations. A native ``Exists`` for the
same key leaves the decision to Taintwarden, and node affinity keeps the scheduler from nodes that it does not suit.
Without anything that keeps the pod off, ``NoSchedule`` is not tolerated: nothing would undo it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.admission import affinity as merging
from taintwarden.admission.checking import look, mapping, sequence
from taintwarden.admission.response import AdmissionResponse, PatchOperation
from taintwarden.admission.validation import INJECT
from taintwarden.api.affinity import AFFINITY_ANNOTATION, parse_node_affinity
from taintwarden.api.affinity import PATH as AFFINITY_PATH
from taintwarden.engine.affinity import NodeAffinity
from taintwarden.engine.model import Effect, Gates, Mode, Operator, Policy, Taint, Toleration, Tolerations
from taintwarden.engine.placement import REQUIRED_EFFECTS, Alternatives, native_affinity, preferences, requirements
from taintwarden.engine.scheduling import Demand, Sourced

_MIRROR = "kubernetes.io/config.mirror"
_KEPT_OFF = "the pod is kept off nodes with the effect NoSchedule, whatever the value"
_MAX_NAMED = 5
_PLACING = (Mode.ENFORCE, Mode.PAUSED)
"""A rehearsal must change nothing; a pause ends, and pods that were placed meanwhile would bounce."""


NO_NODE = {"taintwarden.io/node-affinity": "cannot-be-met"}
"""A node selector that no node matches, for node affinity that cannot be written: it may require anything."""


class Restrictions(msgspec.Struct):
    """What restricts a pod to nodes, before it is merged with what the pod brings."""

    required: list[Alternatives] = []
    preferred: list[list[dict[str, Any]]] = []
    impossible: bool = False
    """No node meets it."""
    warnings: list[str] = []

    def warn(self, source: str, faults: Iterable[str]) -> None:
        """Report what could not be expressed, each fault once."""
        self.warnings += [told for fault in faults if (told := f"{source}: {fault}") not in self.warnings]


def tolerate(pod: Mapping[str, Any], tolerations: Tolerations) -> AdmissionResponse:
    """Only the native tolerations, for a cluster whose schedulers ask the extender: it keeps pods off nodes."""
    if look(pod, "metadata", "annotations", _MIRROR) is not None:
        return AdmissionResponse()
    return AdmissionResponse(patch=tuple(_natives(pod, tolerations.extended, ())))


def inject(
    pod: Mapping[str, Any], demand: Demand, policies: Sequence[Policy], published: Collection[str], gates: Gates
) -> AdmissionResponse:
    """The additions to ``pod``, an object of the API. Existing fields never change, and a second call adds nothing.

    ``policies`` are those that may touch it; ``published`` the labels of nodes whose versions are repeated as numbers.
    """
    if look(pod, "metadata", "annotations", _MIRROR) is not None:
        return AdmissionResponse()
    extended, acting = demand.tolerations.extended, [policy for policy in policies if policy.mode in _PLACING]
    keys = _placing(acting)
    steps: list[PatchOperation] = []
    warnings: list[str] = []
    if not look(pod, "spec", "nodeName"):
        restrictions = _by_taints(keys, demand.tolerations, gates)
        for sourced in demand.affinities:
            _by_affinity(restrictions, sourced, published, gates)
        steps, is_kept_off = _placed(pod, restrictions, must_hold=bool(demand.affinities))
        warnings = restrictions.warnings
        keys = keys if is_kept_off else {}
    refused = [key for key in _unguarded(extended, acting) if key not in keys]
    if refused:
        warnings.append(f"{_KEPT_OFF}: no policy sets placement for {_listed(refused)}")
    return AdmissionResponse(warnings=tuple(warnings), patch=(*_natives(pod, extended, refused), *steps))


def _listed(keys: Sequence[str]) -> str:
    more = len(keys) - _MAX_NAMED
    return ", ".join(keys[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def unplaced(pod: object) -> tuple[str, ...]:
    """A warning that the node affinity in the annotation of a pod, or of a template, is not added to pods."""
    if look(pod, "metadata", "annotations", AFFINITY_ANNOTATION) is None:
        return ()
    return (f"{AFFINITY_PATH}: has no effect on pods that are not injected: label the namespace {INJECT}=true",)


def inexpressible(pod: object, published: Collection[str], gates: Gates) -> tuple[str, ...]:
    """What labels cannot express of the node affinity in the annotation of a template."""
    text = look(pod, "metadata", "annotations", AFFINITY_ANNOTATION)
    affinity, faults = parse_node_affinity(text) if isinstance(text, str) else (NodeAffinity(), ())
    return (
        () if faults else tuple(f"{AFFINITY_PATH}: {one}" for one in native_affinity(affinity, published, gates).faults)
    )


def _unguarded(extended: Sequence[Toleration], policies: Sequence[Policy]) -> list[str]:
    """The keys with comparisons for ``NoSchedule`` by which no policy would evict the pod again."""
    compared = (
        entry.key
        for entry in extended
        if entry.key and entry.operator != Operator.EXISTS and entry.effect in ("", Effect.NO_SCHEDULE)
    )
    return [
        key
        for key in dict.fromkeys(compared)
        if not any(policy.selector_for(Taint(key, effect=Effect.NO_SCHEDULE)) for policy in policies)
    ]


def _natives(pod: Mapping[str, Any], extended: Sequence[Toleration], refused: Collection[str]) -> list[PatchOperation]:
    """``refused`` are keys that must not be tolerated with ``NoSchedule``."""
    native = sequence(look(pod, "spec", "tolerations"))
    covered = _covered(native)
    named = ((entry.key, entry.effect) for entry in extended if entry.key)
    wanted = dict.fromkeys(
        (key, Effect.NO_EXECUTE if key in refused and not effect else effect)
        for key, effect in named
        if not (key in refused and effect == Effect.NO_SCHEDULE)
    )
    missing = [
        _native(key, effect)
        for key, effect in wanted
        if covered.isdisjoint((("", ""), ("", effect), (key, ""), (key, effect)))
        and not (effect and (key, "") in wanted)  # the one for every effect comes, too
    ]
    if not missing:
        return []
    if not native:
        return [PatchOperation("add", "/spec/tolerations", missing)]
    return [PatchOperation("add", "/spec/tolerations/-", entry) for entry in missing]


def _native(key: str, effect: str) -> dict[str, str]:
    toleration = {"key": key, "operator": Operator.EXISTS.value}
    return toleration | {"effect": Effect(effect).value} if effect else toleration


def _covered(native: Sequence[object]) -> set[tuple[object, object]]:
    """The taints, by key and effect, that native tolerations tolerate without a time limit.

    An empty key or effect stands for every one.
    """
    return {
        (look(entry, "key") or "", look(entry, "effect") or "")
        for entry in native
        if look(entry, "operator") == Operator.EXISTS and look(entry, "tolerationSeconds") is None
    }


def _by_taints(keys: Mapping[str, Sequence[str]], tolerations: Tolerations, gates: Gates) -> Restrictions:
    """What keeps it off nodes whose taints it does not tolerate."""
    found, extended = Restrictions(), tolerations.extended
    for key, evicting in keys.items():
        entered = [one for one in REQUIRED_EFFECTS if _may_enter(key, one, tolerations)]
        found.required.append(requirements(key, extended, gates, entered))
        disliked = preferences(key, extended, gates)
        if Effect.PREFER_NO_SCHEDULE in evicting:
            found.required.append(disliked)
        elif _may_enter(key, Effect.PREFER_NO_SCHEDULE, tolerations):
            found.preferred.append(merging.preferences(disliked))
            found.warn("placement", disliked.faults)
    for alternatives in found.required:
        found.warn("placement", alternatives.faults)
    return found


def _by_affinity(restrictions: Restrictions, sourced: Sourced, published: Collection[str], gates: Gates) -> None:
    """Add what one source of node affinity demands."""
    source, native = f"node affinity of {sourced.source}", native_affinity(sourced.affinity, published, gates)
    restrictions.warn(source, [sourced.fault] if sourced.fault else native.faults)
    if native.required == ():
        restrictions.impossible = True
        restrictions.warn(source, ["no node can match it, so the pod stays Pending"])
    elif native.required is not None:
        restrictions.required.append(Alternatives(sourced.source, terms=native.required))
    restrictions.preferred.append([merging.preference(one.weight, one.term) for one in native.preferred])


def _placed(
    pod: Mapping[str, Any], restrictions: Restrictions, *, must_hold: bool
) -> tuple[list[PatchOperation], bool]:
    """What is added to keep it off nodes, and whether that does. ``must_hold``: no node is better than any node."""
    own = mapping(look(pod, "spec", "affinity"))
    merged, problem = merging.restrict(own, restrictions.required)
    restrictions.warn("placement", [problem] if problem else ())
    if restrictions.impossible or (problem and must_hold):
        selector = mapping(look(pod, "spec", "nodeSelector"))
        if NO_NODE.items() <= selector.items():
            return [], True
        return [PatchOperation("add", "/spec/nodeSelector", {**selector, **NO_NODE})], True
    if problem:
        return [], False
    merged, problem = merging.prefer(merged, restrictions.preferred)
    restrictions.warn("placement", [problem] if problem else ())
    return ([] if merged == own else [PatchOperation("add", "/spec/affinity", merged)]), True


def _may_enter(key: str, effect: Effect, tolerations: Tolerations) -> bool:
    """Whether it has a native toleration for some such taint, or gets one."""
    named = (entry for entry in tolerations.extended if entry.key)
    return any(entry.key in ("", key) and entry.effect in ("", effect) for entry in (*named, *tolerations.native))


def _placing(policies: Sequence[Policy]) -> dict[str, list[str]]:
    """The keys by which these policies place pods, each with the effects by which they evict."""
    found: dict[str, list[str]] = {}
    for policy in policies:
        for selector in policy.taints:
            if selector.placement:
                found.setdefault(selector.key, []).extend(selector.effects)
    return found
