"""Events: the rules of both API groups, which share one store.

They are stored as core/v1. In `events.k8s.io/v1` fields have other names. Rules: `ValidateEventCreate` and
`ValidateEventUpdate` of `kubernetes/pkg/apis/core/validation/events.go`. Forbidden here: time to live.
"""

import re

from localcluster.errors import Cause, required, wrong
from localcluster.kinds.names import check_key
from localcluster.kinds.resource import Object, Strategy

RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}

_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
SELECTABLE = {
    **{f"involvedObject.{name}": ("involvedObject", name) for name in _REFERENCE},
    "reason": ("reason",),
    "reportingComponent": ("reportingComponent",),
    "source": ("source", "component"),
    "type": ("type",),
}


class EventStrategy(Strategy):
    """The rules of events. `strict` adds those of writes through `events.k8s.io`."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict

    def prepare_create(self, value: Object) -> None:
        """Set defaults. Maps of the core type are never absent."""
        for name in ("involvedObject", "source"):
            if value.get(name) is None:
                value[name] = {}
        value.setdefault("reportingComponent", "")
        value.setdefault("reportingInstance", "")

    def validate(self, value: Object, old: Object | None) -> list[Cause]:
        """Check the namespace of old-style events, and all fields of new-style ones."""
        causes = self._new_style(value) if value.get("eventTime") else _old_style(value)
        if not self._strict:
            return causes
        return causes + (_created(value) if old is None else _updated(value, old))

    def _new_style(self, value: Object) -> list[Cause]:
        causes = []
        namespace = value["metadata"].get("namespace", "")
        regarding = value["involvedObject"].get("namespace", "")
        if not regarding and namespace not in {"default", "kube-system"}:
            causes.append(wrong("involvedObject.namespace", regarding, "does not match event.namespace"))
        controller = "reportingController" if self._strict else "reportingComponent"
        if not value.get("reportingComponent"):
            causes.append(required(controller))
        causes += check_key(value.get("reportingComponent", ""), controller)
        for name in ("reportingInstance", "action", "reason"):
            text = value.get(name, "")
            if not text:
                causes.append(required(name))
            if len(text) > 128:
                causes.append(wrong(name, "", "can have at most 128 characters"))
        if len(value.get("message", "").encode()) > 1024:
            causes.append(wrong("message", "", "can have at most 1024 characters"))
        return causes


def _old_style(value: Object) -> list[Cause]:
    namespace = value["metadata"].get("namespace", "")
    regarding = (value.get("involvedObject") or {}).get("namespace", "")
    if namespace == regarding or (not regarding and namespace == "default"):
        return []
    return [wrong("involvedObject.namespace", regarding, "does not match event.namespace")]


def _created(value: Object) -> list[Cause]:
    causes = _series(value)
    if not value.get("eventTime"):
        causes.append(required("eventTime"))
    if value.get("type") not in {"Normal", "Warning"}:
        causes.append(wrong("type", "", f"has invalid value: {value.get('type', '')}"))
    unset = ("firstTimestamp", "lastTimestamp", "count", "source")
    return causes + [wrong(name, "", "needs to be unset") for name in unset if value.get(name)]


def _series(value: Object) -> list[Cause]:
    series = value.get("series")
    if series is None:
        return []
    causes = [] if series.get("count", 0) >= 2 else [wrong("series.count", "", "should be at least 2")]
    return causes if series.get("lastObservedTime") else [*causes, required("series.lastObservedTime")]


_FIXED = """
involvedObject reason message source firstTimestamp lastTimestamp count type eventTime action related
reportingComponent reportingInstance
"""


def _updated(value: Object, old: Object) -> list[Cause]:
    causes = _series(value) if value.get("series") != old.get("series") else []
    for name in _FIXED.split():
        if (value.get(name) or None) != (old.get(name) or None):
            shown = re.sub("reportingComponent", "reportingController", name)
            causes.append(wrong(shown, value.get(name), "field is immutable"))
    return causes
