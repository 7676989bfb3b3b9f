"""What a pod gets before it is stored: native tolerations beside its extended ones, and nodes that suit it.

Only Taintwarden reads extended tolerations. A native ``Exists`` for the same key satisfies the scheduler, the kubelet
and the built-in controller, which leave the decision to Taintwarden. Node affinity keeps the scheduler from nodes that
would evict the pod.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from taintwarden.admission.affinity import restrict
from taintwarden.admission.checking import look, mapping, sequence
from taintwarden.admission.response import AdmissionResponse, PatchOperation
from taintwarden.engine.model import Effect, Gates, Mode, Operator, Policy, Toleration, Tolerations
from taintwarden.engine.placement import requirements

_MIRROR = "kubernetes.io/config.mirror"
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
    steps = _natives(pod, tolerations.extended)
    affinity, warnings = _placed(pod, tolerations.extended, policies, gates)
    if affinity is not None:
        steps.append(PatchOperation("add", "/spec/affinity", affinity))
    return AdmissionResponse(warnings=warnings, patch=tuple(steps))


def _natives(pod: Mapping[str, Any], extended: Sequence[Toleration]) -> list[PatchOperation]:
    native = sequence(look(pod, "spec", "tolerations"))
    covered = _covered(native)
    wanted = dict.fromkeys((entry.key, entry.effect) for entry in extended if entry.key)
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
) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    """The affinity that it needs instead of its own, None for no other; and what that cannot express."""
    if look(pod, "spec", "nodeName"):
        return None, ()
    per_key = [requirements(key, extended, effects, gates) for key, effects in _placing(policies).items()]
    warnings = tuple(f"placement: {fault}" for alternatives in per_key for fault in alternatives.faults)
    given = look(pod, "spec", "affinity")
    own = mapping(given)
    merged, problem = restrict(own, per_key)
    if problem is not None:
        return None, (*warnings, problem)
    return (None if merged == own else merged), warnings


def _placing(policies: Sequence[Policy]) -> dict[str, list[str]]:
    """The keys by which these policies place pods, each with the effects that they select."""
    found: dict[str, list[str]] = {}
    for policy in policies:
        for selector in policy.taints:
            if policy.mode in _PLACING and selector.placement:
                found.setdefault(selector.key, []).extend(selector.effects)
    return found
