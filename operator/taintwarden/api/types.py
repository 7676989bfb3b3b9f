"""The structs of ``taintwarden.io/v1alpha1`` as users write them: names, types, defaults, bounds.

The files in ``crds/`` declare the same schema for the API server; ``tests/api/test_crd_in_step.py`` compares every
field. ``checked(...)`` adds rules that a type cannot express; in the CRD these are CEL rules.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from taintwarden.api.window_schedules import MAX_DURATION_LENGTH, MAX_SCHEDULE_LENGTH, MAX_ZONE_LENGTH, check_windows
from taintwarden.engine.limit_settings import Limits
from taintwarden.engine.model import Effect, NodeInfo
from taintwarden.engine.policy import DeviceTaintSelector, EvictionSettings, Exclude, Reclaim, Timing, ValueType
from taintwarden.engine.selectors import SelectorOperator
from taintwarden.fields import names
from taintwarden.fields.field_errors import FieldError, duplicate, forbidden
from taintwarden.fields.spec import LabelKey, LabelValue, Spec, checked, no_duplicates

GROUP = "taintwarden.io"
VERSION = "v1alpha1"
POLICY_KIND = "TaintEvictionPolicy"
POLICY_PLURAL = "taintevictionpolicies"
PROFILE_KIND = "TolerationProfile"
PUBLISHER_KIND = "TaintPublisher"


class RequirementSpec(Spec, frozen=True):
    """An entry of ``matchExpressions``."""

    key: LabelKey
    operator: SelectorOperator
    values: Annotated[tuple[LabelValue, ...], Meta(max_length=64)] = ()


def check_requirement(requirement: "RequirementSpec") -> Iterator[FieldError]:
    """Check the number of values as Kubernetes does: In and NotIn need values, Exists and DoesNotExist take none."""
    takes_values = requirement.operator in (SelectorOperator.IN, SelectorOperator.NOT_IN)
    if takes_values and not requirement.values:
        yield FieldError("values", msgspec.UNSET, f"must be specified when operator is {requirement.operator}")
    if requirement.values and not takes_values:
        reason = f"may not be specified when operator is {requirement.operator}"
        yield forbidden("values", reason, "remove them")


class LabelSelectorSpec(Spec, frozen=True):
    """A Kubernetes label selector; all its requirements must hold, and an empty one selects everything."""

    match_labels: Annotated[dict[LabelKey, LabelValue], Meta(max_length=32)] = field(default_factory=dict)
    match_expressions: Annotated[
        tuple[Annotated[RequirementSpec, checked(check_requirement)], ...], Meta(max_length=32)
    ] = ()


class SourceSpec(Spec, frozen=True):
    """The source of a derived taint's value: exactly one field of the node."""

    node_info: NodeInfo | None = None
    condition: LabelKey | None = None
    label: LabelKey | None = None
    annotation: LabelKey | None = None


def check_source(source: SourceSpec) -> Iterator[FieldError]:
    """Check that a source names exactly one field, and no label or annotation that Taintwarden writes."""
    given = [field.encode_name for field in msgspec.structs.fields(source) if getattr(source, field.name) is not None]
    if len(given) != 1:
        yield FieldError(
            "", given or msgspec.UNSET, "must specify exactly one of nodeInfo, condition, label and annotation"
        )
    for name in ("label", "annotation"):
        key = getattr(source, name)
        if key is not None and is_own_key(key):
            reason = "must not be a key that Taintwarden writes itself"
            yield FieldError(name, key, reason, "name one that another client writes")


def is_own_key(key: str) -> bool:
    """Return True if the domain of the key is ``taintwarden.io`` or below it. Taintwarden writes such keys itself."""
    domain = key.partition("/")[0]
    return domain == GROUP or domain.endswith(f".{GROUP}")


class TaintSelectorSpec(Spec, frozen=True):
    """A selector of the taints on which a policy acts."""

    key: Annotated[str, checked(names.check_key_selector, max_length=names.MAX_KEY_LENGTH)]
    effects: Annotated[tuple[Effect, ...], checked(no_duplicates, max_length=3)] = (Effect.NO_EXECUTE,)
    value_type: ValueType | None = None
    placement: bool = False
    from_: Annotated[SourceSpec, checked(check_source)] | None = field(name="from", default=None)


KUBERNETES_KEYS = "node.kubernetes.io/"
"""Prefix of the taints that Kubernetes writes, except those of cloud providers."""


def check_derived(taint: TaintSelectorSpec) -> Iterator[FieldError]:
    """Check that a derived taint has a key and an effect, and cannot be mistaken for a taint of Kubernetes."""
    if taint.from_ is None:
        return
    if taint.key.endswith("*") or taint.key.startswith(KUBERNETES_KEYS):
        reason = f"must be the exact key of a taint, without the prefix {KUBERNETES_KEYS}, when from is specified"
        yield FieldError("key", taint.key, reason, "choose a key that tolerations name")
    if not taint.effects:
        yield FieldError("effects", (), "must have at least 1 item when from is specified")


def check_taint(taint: TaintSelectorSpec) -> Iterator[FieldError]:
    """Check that a taint has effects or placement. Placement needs one exact key, which has to fit into a label key."""
    yield from check_derived(taint)
    if not taint.placement:
        if not taint.effects:
            yield FieldError("effects", (), "must have at least 1 item", "list effects that evict, or set placement")
        return
    if taint.key.endswith("*"):
        yield FieldError("placement", True, "may not be true for a pattern of keys", "list each key by itself")  # noqa: FBT003
    elif not names.is_placeable(taint.key):
        reason = f"the prefix of the key must be no more than {names.MAX_PLACED_PREFIX_LENGTH} characters"
        yield FieldError("placement", True, reason)  # noqa: FBT003


def check_taints(taints: tuple[TaintSelectorSpec, ...]) -> Iterator[FieldError]:
    """Check that no two entries have the same key and effect, and that all entries of a key have one source."""
    seen: dict[tuple[str, Effect], int] = {}
    sources: dict[str, SourceSpec] = {}
    for index, taint in enumerate(taints):
        if taint.from_ is not None and sources.setdefault(taint.key, taint.from_) != taint.from_:
            reason = f"must have the same source in [{index}] as in the entries before it"
            yield FieldError("", taint.key, reason, "name one source for each key")
        for effect in taint.effects:
            first = seen.setdefault((taint.key, effect), index)
            if first != index:
                reason = f"is listed in [{first}] and [{index}]"
                yield duplicate("", f"{taint.key}:{effect}", reason, "select each key and effect once")


def check_devices(devices: tuple[DeviceTaintSelector, ...]) -> Iterator[FieldError]:
    """Check that no entry is listed twice."""
    yield from no_duplicates(devices)


def check_version_label(key: str) -> Iterator[FieldError]:
    """Check that a label key is valid, and short enough for the longer key of the label that repeats it."""
    yield from names.check_key(key)
    if not names.is_placeable(key):
        yield FieldError("", key, f"the prefix must be no more than {names.MAX_PLACED_PREFIX_LENGTH} characters")


class WindowSpec(Spec, frozen=True):
    """An eviction window. It opens at each time of the schedule, and stays open for the duration."""

    schedule: Annotated[str, Meta(max_length=MAX_SCHEDULE_LENGTH)]
    duration: Annotated[str, Meta(max_length=MAX_DURATION_LENGTH)]
    time_zone: Annotated[str, Meta(max_length=MAX_ZONE_LENGTH)] = "UTC"


class PolicyMode(StrEnum):
    """The mode of a policy that is not paused."""

    ENFORCE = "Enforce"
    DRY_RUN = "DryRun"


class PolicySpec(Spec, frozen=True):
    """The ``spec`` of a TaintEvictionPolicy."""

    taints: Annotated[
        tuple[Annotated[TaintSelectorSpec, checked(check_taint)], ...],
        checked(check_taints, min_length=1, max_length=64),
    ] = ()
    devices: Annotated[tuple[DeviceTaintSelector, ...], checked(check_devices, min_length=1, max_length=16)] = ()
    version_labels: Annotated[
        tuple[Annotated[str, checked(check_version_label, max_length=names.MAX_KEY_LENGTH)], ...],
        checked(no_duplicates, max_length=16),
    ] = ()
    mode: PolicyMode = PolicyMode.ENFORCE
    paused: bool | None = None
    node_selector: LabelSelectorSpec = LabelSelectorSpec()
    pod_selector: LabelSelectorSpec = LabelSelectorSpec()
    namespace_selector: LabelSelectorSpec = LabelSelectorSpec()
    exclude: Exclude = Exclude()
    timing: Timing = Timing()
    eviction: EvictionSettings = EvictionSettings()
    limits: Limits = Limits()
    windows: Annotated[tuple[WindowSpec, ...], checked(check_windows, max_length=32)] = ()
    reclaim: Reclaim | None = None
    quarantine: bool = False


def check_spec(spec: PolicySpec) -> Iterator[FieldError]:
    """Check rules that concern several fields, such as those that quarantine or reclaim excludes."""
    if not (spec.taints or spec.devices or spec.version_labels):
        yield FieldError("taints", msgspec.UNSET, "must specify taints, devices or versionLabels")
    if spec.quarantine and any(taint.from_ is not None for taint in spec.taints):
        reason = "may not be true when a taint has from: every node with a value would lose all its pods"
        yield FieldError("quarantine", True, reason, "use a taint of the spec of nodes")  # noqa: FBT003
    if spec.quarantine and spec.pod_selector != LabelSelectorSpec():
        reason = "may not be specified when quarantine is true, since the owners of pods write their labels"
        yield forbidden("podSelector", reason, "use namespaceSelector or nodeSelector")
    replace_first, window = spec.eviction.replace_first, spec.limits.guard.window_seconds
    if replace_first is not None and replace_first.timeout_seconds > window:
        reason = f"must be less than or equal to limits.guard.windowSeconds ({window})"
        yield FieldError("eviction.replaceFirst.timeoutSeconds", replace_first.timeout_seconds, reason)
    if spec.reclaim is None:
        return
    if spec.windows:
        yield forbidden("windows", "may not be specified together with reclaim", "remove one of the two")
    if spec.devices or spec.version_labels:
        reason = "may not be specified together with devices or versionLabels, which announce no removal of a node"
        yield forbidden("reclaim", reason, "select these in another policy")
    grace, deadline = spec.eviction.grace_period_seconds, spec.reclaim.deadline_seconds
    if grace is not None and grace > deadline:
        reason = f"must be less than or equal to reclaim.deadlineSeconds ({deadline})"
        yield FieldError("eviction.gracePeriodSeconds", grace, reason)


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of ``metadata`` that are read here."""

    name: Annotated[str, checked(names.check_object_name, max_length=253)]
    namespace: str = ""
    uid: str = ""
    generation: int = 1
    creation_timestamp: Any = None


class PolicyObject(Spec, frozen=True):
    """A whole TaintEvictionPolicy. Taintwarden writes its ``status``, and does not read it here."""

    api_version: Literal["taintwarden.io/v1alpha1"]
    kind: Literal["TaintEvictionPolicy"]
    metadata: ObjectMeta
    spec: Annotated[PolicySpec, checked(check_spec)]
    status: Any = None
