"""Checks of an object, selected by its API group and kind."""

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
from taintwarden_placement.admission.checking import Faults, FaultSeverity, value_at
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
"""Path of the pod template by API group and kind; empty for a pod itself."""
MAX_TEMPLATE_DEPTH = 12
"""Maximum depth at which a pod template is searched in an object of another kind. A JobSet has it 5 levels deep."""


class ObjectRole(StrEnum):
    """The set of checks that applies to an object."""

    POLICY = "policy"
    PROFILE = "profile"
    POD = "pod"
    UNKNOWN_KIND = "unknown-kind"
    """An object without a kind, or of a kind that Taintwarden's API group does not have."""
    OTHER = "other"
    """An object of any other kind, which is not checked."""


def role_of(group: str, kind: str) -> ObjectRole:
    """Return the role of an object. The kinds of policies and profiles count even if the group is wrong."""
    if kind in (POLICY_KIND, PROFILE_KIND):
        return ObjectRole.POLICY if kind == POLICY_KIND else ObjectRole.PROFILE
    if not kind or (group == GROUP and kind != PUBLISHER_KIND):  # another package checks publishers
        return ObjectRole.UNKNOWN_KIND
    return ObjectRole.POD if (group, kind) in TEMPLATES else ObjectRole.OTHER


def check_object(
    obj: Mapping[str, Any],
    group: str,
    kind: str,
    profiles: Sequence[Profile] = (),
    *,
    is_completed: bool = False,
    checks_native: bool = True,
) -> Faults:
    """Yield all faults of an object. Of ``profiles``, only those in its namespace count.

    ``is_completed``: True if the webhook will add missing native tolerations (see ``injection``).
    ``checks_native``: False if the API server validates native tolerations itself.
    """
    flags = {"is_completed": is_completed, "checks_native": checks_native}
    match role_of(group, kind):
        case ObjectRole.POLICY:
            yield from _check_parsed(parse_policy, obj)
        case ObjectRole.PROFILE:
            yield from _check_profile(obj)
        case ObjectRole.POD:
            path = TEMPLATES[group, kind]
            yield from _check_template(obj, path, pod_in(obj, group, kind), profiles, **flags)
            if path:
                yield from check_owner(obj, path)
        case ObjectRole.UNKNOWN_KIND:
            yield FaultSeverity.ERROR, _unknown_kind(kind)
        case ObjectRole.OTHER:
            return


def check_templates(obj: object, profiles: Sequence[Profile] = ()) -> Iterator[tuple[str, Faults]]:
    """Yield path and faults of each pod template in an object of any kind (Rollout, RayCluster, JobSet ...)."""
    for path, template in _templates(obj, "", MAX_TEMPLATE_DEPTH):
        yield path, _check_template(obj, path, template, profiles)


def _templates(value: object, path: str, depth: int) -> Iterator[tuple[str, object]]:
    """Yield path and value of each nested object that has ``spec.containers``."""
    if depth and isinstance(value, Mapping):
        if path and isinstance(value_at(value, "spec", "containers"), list):
            yield path, value
            return
        for name, inner in value.items():
            yield from _templates(inner, join(path, str(name)), depth - 1)
    elif depth and isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _templates(inner, f"{path}[{index}]", depth - 1)


def _check_parsed(parse: Callable[[Mapping[str, Any]], object], obj: Mapping[str, Any]) -> Faults:
    try:
        parse(obj)
    except InvalidObject as error:
        yield from ((FaultSeverity.ERROR, fault) for fault in error.errors)


def _check_profile(obj: Mapping[str, Any]) -> Faults:
    found = list(_check_parsed(parse_profile, obj))
    yield from found or cautions(parse_profile(obj).tolerations, "spec.tolerations[{}].value")


def pod_in(obj: Mapping[str, Any], group: str, kind: str) -> object:
    """Return the pod template in an object of a kind in ``TEMPLATES``; any other object itself."""
    path = TEMPLATES.get((group, kind), "")
    return value_at(obj, *path.split(".")) if path else obj


def _check_template(obj: object, path: str, template: object, profiles: Sequence[Profile], **flags: bool) -> Faults:
    namespace = value_at(obj, "metadata", "namespace") or "default"
    here = [profile for profile in profiles if (profile.namespace or "default") == namespace]
    yield from ((severity, fault.below(path)) for severity, fault in check_pod(template, here, **flags))


def _unknown_kind(kind: str) -> FieldError:
    if not kind:
        return FieldError("kind", UNSET, "must be specified: every Kubernetes object has a kind")
    remedy = f"write {nearest(kind, (POLICY_KIND, PROFILE_KIND, PUBLISHER_KIND)) or POLICY_KIND}"
    return FieldError("kind", kind, f"must be a kind of {GROUP}", remedy)
