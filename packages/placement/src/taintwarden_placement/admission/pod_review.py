"""Checks of a pod or pod template: Taintwarden's annotations, and native tolerations that some API servers reject."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from msgspec import UNSET

from taintwarden.api.annotations import MAX_FAULTS
from taintwarden.api.decode import decode
from taintwarden.api.node_affinity import AFFINITY_ANNOTATION, Parsed, parse_node_affinity
from taintwarden.api.node_affinity import PATH as AFFINITY_PATH
from taintwarden.api.opt_outs import DO_NOT_EVICT, check_opt_outs
from taintwarden.api.tolerations import PATH as TOLERATIONS_PATH
from taintwarden.api.tolerations import (
    TOLERATIONS_ANNOTATION,
    ExtendedToleration,
    check_toleration,
    parse_tolerations,
    toleration,
)
from taintwarden.engine.model import Effect, Profile, Toleration
from taintwarden.engine.operators import ROWS, Operator, caution
from taintwarden.fields.field_errors import FieldError, forbidden
from taintwarden_placement.admission.checking import (
    Faults,
    FaultSeverity,
    annotation_path,
    check_annotation_names,
    mapping,
    sequence,
    value_at,
    without,
)

ANNOTATIONS = (TOLERATIONS_ANNOTATION, AFFINITY_ANNOTATION, DO_NOT_EVICT)
RECORD_ANNOTATION = "taintwarden.io/completed-template"
"""Annotation of a DaemonSet's template, and so of its pods: a record of the webhook's additions."""
_USE_ANNOTATION = "write it in the annotation taintwarden.io/tolerations, with a native Exists for the key"
_NO_STRING, _QUOTES = "must be a string that holds JSON", "put it in quotes, or below a |"


Covered = set[str | None]
"""Taint keys that a pod's native tolerations name; None as an element means every key."""


def check_pod(
    pod: object, profiles: Sequence[Profile] = (), *, is_completed: bool = False, checks_native: bool = True
) -> Faults:
    """Check a pod or pod template. ``profiles`` are the profiles in its namespace.

    ``is_completed``: True if the webhook will add missing native tolerations. ``checks_native``: False if the API
    server validates native tolerations itself.
    """
    covered: Covered = {None} if is_completed else set()
    for index, entry in enumerate(sequence(value_at(pod, "spec", "tolerations"))):
        if not checks_native:
            key = value_at(entry, "key")
            if key or value_at(entry, "operator") == Operator.EXISTS:
                covered.add(str(key) if key else None)
            continue
        path = f"spec.tolerations[{index}]"
        read, errors = decode(without(entry, "", None), ExtendedToleration, path)
        yield from ((FaultSeverity.ERROR, error) for error in errors)
        if read is not None:
            covered.add(read.key)
            yield from ((severity, fault.below(path)) for severity, fault in _check_native(read))
    yield from check_annotation_names(pod, (*ANNOTATIONS, RECORD_ANNOTATION))
    annotations = mapping(value_at(pod, "metadata", "annotations"))
    for fault in check_opt_outs(annotations):
        yield FaultSeverity.WARNING if isinstance(fault.value, str) else FaultSeverity.ERROR, fault
    yield from _check_extended(annotations.get(TOLERATIONS_ANNOTATION), covered)
    yield from check_affinity(annotations.get(AFFINITY_ANNOTATION), parse_node_affinity)
    yield from _check_profiles(pod, profiles, covered)


def check_owner(workload: object, template: str) -> Faults:
    """Warn about annotations of a workload that belong in its pod template, at the path ``template``."""
    for name, value in mapping(value_at(workload, "metadata", "annotations")).items():
        if name in ANNOTATIONS:
            reason, remedy = (
                "has no effect here, since pods do not get it",
                f"move it to {template}.metadata.annotations",
            )
            yield FaultSeverity.WARNING, FieldError(annotation_path(name), value, reason, remedy)


def _check_native(read: ExtendedToleration) -> Faults:
    yield from ((FaultSeverity.ERROR, error) for error in check_toleration(read))
    if read.violation_grace_seconds is not None:
        reason = "may not be specified in a native toleration"
        yield FaultSeverity.ERROR, forbidden("violationGraceSeconds", reason, _USE_ANNOTATION)
    if read.toleration_seconds is not None and read.effect is not Effect.NO_EXECUTE:
        effect = UNSET if read.effect is None else read.effect
        yield FaultSeverity.ERROR, FieldError("effect", effect, "must be NoExecute when tolerationSeconds is specified")
    yield from cautions((toleration(read),))
    needs = ROWS[read.operator].family.server
    if needs is None:
        reason = "must be an operator that an API server accepts here"
        yield FaultSeverity.ERROR, FieldError("operator", read.operator, reason, _USE_ANNOTATION)
    elif needs:
        reason = f"the pod is refused without {needs}"
        yield FaultSeverity.WARNING, FieldError("operator", read.operator, reason, _USE_ANNOTATION)


def check_affinity(text: object, parse: Callable[[str], Parsed]) -> Faults:
    """Check the node affinity in an annotation. One fault makes all of it invalid."""
    if text is None:
        return
    if not isinstance(text, str):
        yield FaultSeverity.ERROR, FieldError(AFFINITY_PATH, text, _NO_STRING, _QUOTES)
        return
    yield from ((FaultSeverity.ERROR, fault) for fault in parse(text)[1])


def _check_extended(text: object, covered: Covered) -> Faults:
    if text is None:
        return
    if not isinstance(text, str):
        yield FaultSeverity.ERROR, FieldError(TOLERATIONS_PATH, text, _NO_STRING, _QUOTES)
        return
    extended, faults = parse_tolerations(text)
    yield from ((FaultSeverity.ERROR, fault) for fault in faults)
    if not faults:  # invalid tolerations are left out, so that the indexes would be wrong
        yield from ((severity, fault.below(TOLERATIONS_PATH)) for severity, fault in cautions(extended, "[{}].value"))
    yield from _check_counterparts(extended, covered)


def cautions(tolerations: Sequence[Toleration], path: str = "value") -> Faults:
    """Warn about comparisons whose result may surprise. ``path``: a format string that takes a toleration's index."""
    doubtful = ((index, one, *caution(one)) for index, one in enumerate(tolerations))
    for index, one, reason, remedy in islice((found for found in doubtful if found[2]), MAX_FAULTS):
        yield FaultSeverity.WARNING, FieldError(path.format(index), one.value, f"{one.operator}: {reason}", remedy)


def _check_counterparts(extended: Sequence[Toleration], covered: Covered) -> Faults:
    """Warn about keys without a native toleration: the scheduler and the built-in controller read no annotation."""
    for key in _uncovered(extended, covered):
        fault = FieldError(
            TOLERATIONS_PATH,
            key,
            "Kubernetes does not read this: it schedules no such pod there and evicts it by NoExecute at once",
            f"add to spec.tolerations: key: {key}, operator: Exists; the annotation still decides",
        )
        yield FaultSeverity.WARNING, fault


def _uncovered(extended: Iterable[Toleration], covered: Covered) -> list[str]:
    """Return the keys that no native toleration names, without duplicates."""
    named = dict.fromkeys(one.key for one in extended if one.key)
    return [] if None in covered else [key for key in named if key not in covered]


def _check_profiles(pod: object, profiles: Sequence[Profile], covered: Covered) -> Faults:
    """Warn about keys without a native toleration in the profiles that select the pod."""
    labels = {key: str(value) for key, value in mapping(value_at(pod, "metadata", "labels")).items()}
    for profile in profiles:
        if not profile.selector.selects(labels):
            continue
        for key in _uncovered(profile.tolerations, covered):
            fault = FieldError(
                "spec.tolerations",
                key,
                f"TolerationProfile {profile.name} names this key, and Kubernetes does not read profiles",
                f"add key: {key}, operator: Exists; the profile still decides",
            )
            yield FaultSeverity.WARNING, fault
