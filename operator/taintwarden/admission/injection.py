"""What a pod gets before it is stored: native tolerations beside its extended ones, and nodes that suit it.

The scheduler, the kubelet and the built-in controller do not read extended tolerations. A native ``Exists`` for the
same key leaves the decision to Taintwarden, and node affinity keeps the scheduler from nodes that it does not suit.
Without anything that keeps the pod off, ``NoSchedule`` is not tolerated: nothing would undo it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from taintwarden.admission.affinity import prefer, restrict
from taintwarden.admission.checking import look, mapping, sequence
from taintwarden.admission.response import AdmissionResponse, PatchOperation
from taintwarden.engine.model import Effect, Gates, Mode, Operator, Policy, Taint, Toleration, Tolerations
from taintwarden.engine.placement import Alternatives, preferences, requirements

_MIRROR = "kubernetes.io/config.mirror"
_KEPT_OFF = "the pod is kept off nodes with the effect NoSchedule, whatever the value"
_MAX_NAMED = 5
_PLACING = (Mode.ENFORCE, Mode.PAUSED)
"""A rehearsal must change nothing; a pause ends, and pods that were placed meanwhile would bounce."""


def inject(
    pod: Mapping[str, Any], tolerations: Tolerations, policies: Sequence[Policy], gates: Gates
) -> AdmissionResponse:
    """The additions to ``pod``, an object of the API. Existing fields never change, and a second call adds nothing.

    ``tolerations`` are all that it has, with profiles; ``policies`` those that may touch it.
    """
    if look(pod, "metadata", "annotations", _MIRROR) is not None:
        return AdmissionResponse()
    extended, acting = tolerations.extended, [policy for policy in policies if policy.mode in _PLACING]
    affinity, kept_off, warnings = _placed(pod, extended, acting, gates)
    refused = [key for key in _unguarded(extended, acting) if key not in kept_off]
    steps = _natives(pod, extended, refused)
    if affinity is not None:
        steps.append(PatchOperation("add", "/spec/affinity", affinity))
    if refused:
        warnings = (*warnings, f"{_KEPT_OFF}: no policy sets placement for {_listed(refused)}")
    return AdmissionResponse(warnings=warnings, patch=tuple(steps))


def _listed(keys: Sequence[str]) -> str:
    more = len(keys) - _MAX_NAMED
    return ", ".join(keys[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


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


def _placed(
    pod: Mapping[str, Any], extended: Sequence[Toleration], policies: Sequence[Policy], gates: Gates
) -> tuple[Mapping[str, Any] | None, Collection[str], tuple[str, ...]]:
    """The affinity that it needs instead of its own, None for no other; by which keys that keeps it off; warnings."""
    keys = _placing(policies)
    if look(pod, "spec", "nodeName"):
        return None, keys, ()
    required = [requirements(key, extended, gates) for key in keys]
    preferred: list[Alternatives] = []
    for key, effects in keys.items():
        evicts = Effect.PREFER_NO_SCHEDULE in effects
        if evicts or _may_tolerate(key, Effect.PREFER_NO_SCHEDULE, extended):
            (required if evicts else preferred).append(preferences(key, extended, gates))
    faults = dict.fromkeys(fault for alternatives in (*required, *preferred) for fault in alternatives.faults)
    warnings = tuple(f"placement: {fault}" for fault in faults)
    own = mapping(look(pod, "spec", "affinity"))
    merged, problem = restrict(own, required)
    if problem is not None:
        return None, (), (*warnings, problem)
    merged, problem = prefer(merged, preferred)
    if problem is not None:
        warnings = (*warnings, problem)
    return (None if merged == own else merged), keys, warnings


def _may_tolerate(key: str, effect: Effect, extended: Sequence[Toleration]) -> bool:
    return any(entry.key == key and entry.effect in ("", effect) for entry in extended)


def _placing(policies: Sequence[Policy]) -> dict[str, list[str]]:
    """The keys by which these policies place pods, each with the effects by which they evict."""
    found: dict[str, list[str]] = {}
    for policy in policies:
        for selector in policy.taints:
            if selector.placement:
                found.setdefault(selector.key, []).extend(selector.effects)
    return found
