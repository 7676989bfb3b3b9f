"""Faults of tolerations: those that admission reports, and contradictions of native and extended ones."""

from collections.abc import Iterator

from taintwarden.api.field_errors import FieldError
from taintwarden.api.tolerations import PATH
from taintwarden.cli.doctor.check import Check, Found, Severity, about
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.injected_namespaces import injects
from taintwarden.cli.doctor.inventory import PodGroup
from taintwarden.engine.model import Effect, Operator, Taint, TaintSelector, Toleration
from taintwarden.placement.admission import checking
from taintwarden.placement.admission.annotated_objects import TEMPLATES as PATHS
from taintwarden.placement.admission.annotated_objects import check_object
from taintwarden.placement.admission.pod_review import check_owner
from taintwarden.rehearsal.sources import TEMPLATES, Source

_ENDLESS_SECONDS = 365 * 86_400
"""So long no evicted pod stays; there are controllers that distinguish it from no time, see docs/neighbours.md."""
_COMPANION_PATHS = (PATH, "spec.tolerations")
"""The paths at which admission warns of a missing native toleration; other warnings have other paths."""


def _invalid(context: Context) -> Iterator[Found]:
    for group in context.groups:
        for severity, fault in _faults(context, group):
            if severity is checking.FaultSeverity.ERROR:
                yield about(group, str(fault))
            elif fault.path.startswith("metadata.annotations") and fault.path != PATH:
                yield about(group, str(fault), severity=Severity.WARNING)
        yield from _misplaced(group)


def _misplaced(group: PodGroup) -> Iterator[Found]:
    """Annotations on the workload itself, which its pods do not get."""
    metadata = {"metadata": {"annotations": dict(group.own_annotations)}}
    for _, fault in check_owner(metadata, PATHS.get((group.api_group, group.subject.kind), "")):
        yield Found(group.subject, f"{fault.path} {fault.reason}", fault.remedy, Severity.WARNING)


def _without_companion(context: Context) -> Iterator[Found]:
    for group in context.groups:
        if not injects(context, group):
            for fault in missing_native(context, group):
                yield about(group, f"{fault.value}: {fault.reason}", fault.remedy)


def missing_native(context: Context, group: PodGroup) -> Iterator[FieldError]:
    """The native tolerations that are missing according to admission; ``value`` is the key."""
    for severity, fault in _faults(context, group):
        is_missing = severity is checking.FaultSeverity.WARNING and fault.path in _COMPANION_PATHS
        if is_missing and not _is_of_devices(context, str(fault.value)):
            yield fault


def _is_of_devices(context: Context, key: str) -> bool:
    """Whether policies act on such taints of devices alone: for those the claim has native tolerations, not the pod."""
    nodes = (one.specificity(Taint(key, effect=effect)) for one in _selectors(context) for effect in one.effects)
    devices = (TaintSelector(one.key).specificity(Taint(key)) for policy in context.policies for one in policy.devices)
    return any(devices) and not any(nodes)


def _selectors(context: Context) -> Iterator[TaintSelector]:
    return (selector for policy in context.policies for selector in policy.taints)


def _faults(context: Context, group: PodGroup) -> checking.Found:
    """What admission reports for the pod, or for a pod of the template, so that both results agree."""
    return check_object(group.shape.as_pod(), "", "Pod", (), context.profiles)


def _overridden(context: Context) -> Iterator[Found]:
    for group in context.groups:
        for native, key in _narrowed(context, group):
            if native.operator != Operator.EXISTS:
                message = f"{native} does not count: extended tolerations name {key}, and Kubernetes goes by it alone"
                yield about(group, message)


def _timed(context: Context) -> Iterator[Found]:
    for group in context.groups:
        for native, key in _narrowed(context, group):
            if (
                native.operator == Operator.EXISTS
                and native.toleration_seconds is not None
                and native.toleration_seconds < _ENDLESS_SECONDS
                and native.effect in ("", Effect.NO_EXECUTE)
            ):
                message = (
                    f"{native}: the built-in controller evicts by {key}:NoExecute after {native.toleration_seconds} s, "
                    "whatever the extended tolerations say"
                )
                yield about(group, message)


def _narrowed(context: Context, group: PodGroup) -> Iterator[tuple[Toleration, str]]:
    """The native tolerations for keys that extended ones name."""
    every = context.view.tolerations_of(group.pod_class)
    named = {one.key for one in every.extended if one.key}
    for native in every.native:
        if native.key in named:
            yield native, native.key


CHECKS = (
    Check(
        id="toleration-invalid",
        severity=Severity.ERROR,
        finds="annotations and tolerations that cannot work, as taintwarden validate says",
        remedy="correct the template; entries that are not valid count as absent until then",
        needs=(Source.PODS, Source.PROFILES),
        uses=TEMPLATES,
        run=_invalid,
    ),
    Check(
        id="companion-missing",
        severity=Severity.WARNING,
        finds="extended tolerations without a native one beside them, which scheduler and built-in controller go by",
        remedy="add a native Exists for the key to spec.tolerations; the extended ones still decide",
        needs=(Source.PODS, Source.PROFILES),
        uses=(*TEMPLATES, Source.NAMESPACES, Source.MUTATING),
        run=_without_companion,
    ),
    Check(
        id="native-overridden",
        severity=Severity.WARNING,
        finds="a native Equal, Gt, Lt or Semver* for a key that extended tolerations name: two answers to one question",
        remedy="make the native one Exists, and say the rest in the annotation or profile",
        needs=(Source.PODS, Source.PROFILES),
        uses=TEMPLATES,
        run=_overridden,
    ),
    Check(
        id="native-seconds",
        severity=Severity.WARNING,
        finds="a native Exists with tolerationSeconds for a key that extended tolerations name",
        remedy="remove tolerationSeconds from the native toleration, and write violationGraceSeconds on the extended",
        needs=(Source.PODS, Source.PROFILES),
        uses=TEMPLATES,
        run=_timed,
    ),
)
