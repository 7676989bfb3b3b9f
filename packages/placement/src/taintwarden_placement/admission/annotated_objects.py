"""Which checks an object gets, by its kind."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import UNSET

from taintwarden.api.decode import nearest
from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile
from taintwarden.api.types import GROUP, POLICY_KIND, PROFILE_KIND, PUBLISHER_KIND
from taintwarden.engine.model import Profile
from taintwarden.fields.field_errors import FieldError, InvalidObject, join
from taintwarden_placement.admission.checking import FaultSeverity, Found, look
from taintwarden_placement.admission.pod_review import cautions, check_owner, check_pod

TEMPLATES: dict[tuple[str, str], str] = {
    ("", "Pod"): "",
    ("", "PodTemplate"): "template",
    ("", "ReplicationController"): "spec.template",
    ("apps", "Deployment"): "spec.template",
    ("apps", "StatefulSet"): "spec.template",
    ("apps", "DaemonSet"): "spec.template",
    ("apps", "ReplicaSet"): "spec.template",
    ("batch", "Job"): "spec.template",
    ("batch", "CronJob"): "spec.jobTemplate.spec.template",
}
"""Where the pod is in each kind, by API group and kind."""
MAX_TEMPLATE_DEPTH = 12
"""How deep a template of another kind may be: that of a JobSet is 5 levels deep."""


class ObjectRole(StrEnum):
    """What an object is to the checks."""

    POLICY = "policy"
    PROFILE = "profile"
    POD = "pod"
    STRANGER = "stranger"
    """Of our group, and no kind of it; or nothing that Kubernetes would take."""
    OTHER = "other"
    """Nothing of ours: there is nothing to check."""


def subject_of(group: str, kind: str) -> ObjectRole:
    """What an object of this API group and kind is. Our own kinds are known by name, whatever the group says."""
    if kind in (POLICY_KIND, PROFILE_KIND):
        return ObjectRole.POLICY if kind == POLICY_KIND else ObjectRole.PROFILE
    if not kind or (group == GROUP and kind != PUBLISHER_KIND):  # its rules are those of another package
        return ObjectRole.STRANGER
    return ObjectRole.POD if (group, kind) in TEMPLATES else ObjectRole.OTHER


def check_object(
    obj: Mapping[str, Any],
    group: str,
    kind: str,
    profiles: Sequence[Profile] = (),
    *,
    is_completed: bool = False,
    checks_native: bool = True,
) -> Found:
    """All faults of an object. ``profiles`` (of all namespaces) are those it will live with.

    ``is_completed``: native tolerations that are missing beside extended ones will be added (see ``injection``).
    ``checks_native``: not where the API server has its own word on native tolerations.
    """
    flags = {"is_completed": is_completed, "checks_native": checks_native}
    match subject_of(group, kind):
        case ObjectRole.POLICY:
            yield from _check_parsed(parse_policy, obj)
        case ObjectRole.PROFILE:
            yield from _check_profile(obj)
        case ObjectRole.POD:
            path = TEMPLATES[group, kind]
            yield from _check_template(obj, path, pod_in(obj, group, kind), profiles, **flags)
            if path:
                yield from check_owner(obj, path)
        case ObjectRole.STRANGER:
            yield FaultSeverity.ERROR, _strange(kind)
        case ObjectRole.OTHER:
            return


def check_templates(obj: object, profiles: Sequence[Profile] = ()) -> Iterator[tuple[str, Found]]:
    """The pod templates in an object of any kind (Rollout, RayCluster, JobSet ...): path and faults of each."""
    for path, template in _templates(obj, "", MAX_TEMPLATE_DEPTH):
        yield path, _check_template(obj, path, template, profiles)


def _templates(value: object, path: str, depth: int) -> Iterator[tuple[str, object]]:
    """Whatever has a ``spec`` with containers."""
    if depth and isinstance(value, Mapping):
        if path and isinstance(look(value, "spec", "containers"), list):
            yield path, value
            return
        for name, inner in value.items():
            yield from _templates(inner, join(path, str(name)), depth - 1)
    elif depth and isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _templates(inner, f"{path}[{index}]", depth - 1)


def _check_parsed(parse: Callable[[Mapping[str, Any]], object], obj: Mapping[str, Any]) -> Found:
    try:
        parse(obj)
    except InvalidObject as error:
        yield from ((FaultSeverity.ERROR, fault) for fault in error.errors)


def _check_profile(obj: Mapping[str, Any]) -> Found:
    found = list(_check_parsed(parse_profile, obj))
    yield from found or cautions(parse_profile(obj).tolerations, "spec.tolerations[{}].value")


def pod_in(obj: Mapping[str, Any], group: str, kind: str) -> object:
    """The pod, or the template of one, in an object of a kind that is made into pods; any other object itself."""
    path = TEMPLATES.get((group, kind), "")
    return look(obj, *path.split(".")) if path else obj


def _check_template(obj: object, path: str, template: object, profiles: Sequence[Profile], **flags: bool) -> Found:
    namespace = look(obj, "metadata", "namespace") or "default"
    here = [profile for profile in profiles if (profile.namespace or "default") == namespace]
    yield from ((severity, fault.below(path)) for severity, fault in check_pod(template, here, **flags))


def _strange(kind: str) -> FieldError:
    if not kind:
        return FieldError("kind", UNSET, "must be specified: every Kubernetes object has a kind")
    remedy = f"write {nearest(kind, (POLICY_KIND, PROFILE_KIND, PUBLISHER_KIND)) or POLICY_KIND}"
    return FieldError("kind", kind, f"must be a kind of {GROUP}", remedy)
