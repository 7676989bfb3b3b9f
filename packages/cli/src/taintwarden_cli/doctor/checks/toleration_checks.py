"""Checks that tolerations can work, and that pods have the native ones that Kubernetes reads."""

from collections.abc import Iterator

from taintwarden.api.tolerations import PATH
from taintwarden.engine.model import Taint
from taintwarden.engine.policy import TaintSelector
from taintwarden.fields.field_errors import FieldError
from taintwarden_cli.doctor.check import Finding, Severity, check, group_finding
from taintwarden_cli.doctor.context import Context
from taintwarden_cli.doctor.inventory import PodGroup
from taintwarden_cli.rehearsal.sources import TEMPLATES, Source
from taintwarden_placement.admission import checking
from taintwarden_placement.admission.annotated_objects import TEMPLATES as PATHS
from taintwarden_placement.admission.annotated_objects import check_object
from taintwarden_placement.admission.pod_review import check_owner

_MISSING_NATIVE_PATHS = (PATH, "spec.tolerations")
"""Paths at which admission warns of a missing native toleration. Other warnings have other paths."""


@check(
    "toleration-invalid",
    Severity.ERROR,
    "annotations and tolerations that cannot work, as taintwarden validate says",
    "correct the template; entries that are not valid count as absent until then",
    needs=(Source.PODS, Source.PROFILES),
    uses=TEMPLATES,
)
def toleration_invalid(context: Context) -> Iterator[Finding]:
    """Tolerations and annotations that the webhook would reject, and annotations that it would warn of."""
    for group in context.groups:
        for severity, fault in _admission_faults(context, group):
            if severity is checking.FaultSeverity.ERROR:
                yield group_finding(group, str(fault))
            elif fault.path.startswith("metadata.annotations") and fault.path != PATH:
                yield group_finding(group, str(fault), severity=Severity.WARNING)
        # Annotations on the workload itself, which its pods do not get.
        metadata = {"metadata": {"annotations": dict(group.own_annotations)}}
        for _, fault in check_owner(metadata, PATHS.get((group.api_group, group.subject.kind), "")):
            yield Finding(group.subject, f"{fault.path} {fault.reason}", fault.remedy, Severity.WARNING)


@check(
    "native-missing",
    Severity.WARNING,
    "extended tolerations without a native one, which scheduler and built-in controller read",
    "add a native Exists for the key to spec.tolerations; the extended ones still decide",
    needs=(Source.PODS, Source.PROFILES),
    uses=(*TEMPLATES, Source.POLICIES, Source.NAMESPACES, Source.MUTATING),
)
def native_missing(context: Context) -> Iterator[Finding]:
    """In a namespace with injection the webhook adds native tolerations to pods, so that templates need none."""
    for group in context.groups:
        injected = context.injects(group)
        for fault in () if injected and group.template else _native_faults(context, group):
            if injected:
                message = f"{fault.value}: pods have no native toleration, although their namespace asks for it"
                why = "they are older than the webhook, the namespace's label or the profile, or the webhook was down"
                yield group_finding(group, message, f"{why}: restart them, for example by kubectl rollout restart")
            else:
                yield group_finding(group, f"{fault.value}: {fault.reason}", fault.remedy)


def _native_faults(context: Context, group: PodGroup) -> Iterator[FieldError]:
    """Missing native tolerations, as admission reports them; ``value`` is the key."""
    for severity, fault in _admission_faults(context, group):
        is_missing = severity is checking.FaultSeverity.WARNING and fault.path in _MISSING_NATIVE_PATHS
        if is_missing and not _is_of_devices(context, str(fault.value)):
            yield fault


def _is_of_devices(context: Context, key: str) -> bool:
    """True if policies act on the key for devices only: its native toleration belongs in the ResourceClaim."""
    selectors = [selector for policy in context.policies for selector in policy.taints]
    nodes = (selector.specificity(Taint(key, effect=effect)) for selector in selectors for effect in selector.effects)
    devices = (TaintSelector(one.key).specificity(Taint(key)) for policy in context.policies for one in policy.devices)
    return any(devices) and not any(nodes)


def _admission_faults(context: Context, group: PodGroup) -> checking.Faults:
    """Faults that admission reports for a pod of the group, so that ``doctor`` and the webhook agree."""
    return check_object(group.shape.as_pod(), "", "Pod", context.profiles)
