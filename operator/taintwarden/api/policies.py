"""Conversion of a TaintEvictionPolicy into the policy that the engine follows."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from taintwarden.api.objects import label_selector, read_object
from taintwarden.api.types import (
    POLICY_KIND,
    PolicyMode,
    PolicyObject,
    SourceSpec,
    TaintSelectorSpec,
    WindowSpec,
)
from taintwarden.api.window_schedules import parse_duration
from taintwarden.engine.limit_settings import ALL_PODS, NO_BACKOFF
from taintwarden.engine.model import SourceKind, ValueSource
from taintwarden.engine.policy import Exclude, Mode, Policy, TaintSelector, Window
from taintwarden.fields.field_errors import FieldError, InvalidObject

QUARANTINE_GRACE_SECONDS = 30
"""Grace period of pods in a quarantine unless the policy sets one: the default of Kubernetes."""


def parse_policy(obj: Mapping[str, Any]) -> Policy:
    """Parse the policy in ``obj``, a whole object from the API server or a YAML parser.

    Raises:
        InvalidObject: with every fault of the object.

    """
    read = read_object(obj, PolicyObject, POLICY_KIND)
    created_at = _timestamp(read.metadata.creation_timestamp)
    if created_at is None:
        fault = FieldError("metadata.creationTimestamp", read.metadata.creation_timestamp, "must be an RFC 3339 time")
        raise InvalidObject(POLICY_KIND, read.metadata.name, [fault])
    spec = read.spec
    policy = Policy(
        name=read.metadata.name,
        uid=read.metadata.uid,
        generation=read.metadata.generation,
        created_at=created_at,
        mode=Mode.PAUSED if spec.paused else Mode(spec.mode),
        taints=tuple(map(_taint, spec.taints)),
        devices=spec.devices,
        version_labels=spec.version_labels,
        node_selector=label_selector(spec.node_selector),
        pod_selector=label_selector(spec.pod_selector),
        namespace_selector=label_selector(spec.namespace_selector),
        exclude=spec.exclude,
        timing=spec.timing,
        eviction=spec.eviction,
        limits=spec.limits,
        windows=tuple(_window(window) for window in spec.windows),
        reclaim=spec.reclaim,
        quarantine=spec.quarantine,
        rehearses=spec.mode is PolicyMode.DRY_RUN,
    )
    return _quarantine(policy) if policy.quarantine else policy


def _quarantine(policy: Policy) -> Policy:
    """Return the policy without the exceptions that owners of pods control, whatever its other fields say.

    Any pod may name a DaemonSet as its owner, have the priority of system pods, return to its node, take days to stop,
    or belong to a workload that wants more pods than can start. ``eviction.method`` decides about budgets.
    """
    exclude, eviction = policy.exclude, policy.eviction
    grace_seconds = QUARANTINE_GRACE_SECONDS if eviction.grace_period_seconds is None else eviction.grace_period_seconds
    if policy.reclaim is not None:
        grace_seconds = min(grace_seconds, policy.reclaim.deadline_seconds)
    return msgspec.structs.replace(
        policy,
        exclude=Exclude(
            exclude.namespaces,
            priority_at_least=None,
            daemon_sets=False,
            respect_do_not_disrupt=False,
            respect_do_not_evict=False,
        ),
        eviction=msgspec.structs.replace(eviction, grace_period_seconds=grace_seconds),
        limits=msgspec.structs.replace(policy.limits, per_workload=ALL_PODS, bounce=NO_BACKOFF),
    )


def _taint(spec: TaintSelectorSpec) -> TaintSelector:
    return TaintSelector(spec.key, spec.effects, spec.value_type, spec.placement, _source(spec.from_))


def _source(spec: SourceSpec | None) -> ValueSource | None:
    given = {} if spec is None else msgspec.to_builtins(spec)
    return next((ValueSource(SourceKind(kind), name) for kind, name in given.items() if name is not None), None)


def _window(spec: WindowSpec) -> Window:
    seconds = parse_duration(spec.duration)
    assert seconds is not None  # noqa: S101 - checked with the other fields
    return Window(spec.schedule, seconds, spec.time_zone)


def _timestamp(value: object) -> float | None:
    """Return seconds since the epoch; 0 for an object that was never stored. YAML has times, JSON has text."""
    if value is None:
        return 0.0
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
