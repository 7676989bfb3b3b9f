"""Fields and values that policies had before this release line, and what takes their place."""

import re

import msgspec

from taintwarden.fields.field_errors import FieldError

_ZONE_RATE = "write limits.zoneHealth.evictionsPerSecond: one rate for Degraded and Full zones"
_NO_ORDER = "leave it out"
_INDEX = re.compile(r"\[\d+\]")

SUCCESSORS = {
    "spec.limits.base": 'each limit is switched off by its own value: a rate of 10000, maxUnavailable: "100%", '
    "guard.maxPercent: 100, bounce.maxBackoffSeconds: 0",
    "spec.limits.zoneHealth.minNodes": "a zone has health from 3 nodes on",
    "spec.limits.zoneHealth.haltSmallZones": "nothing takes its place: a small zone is like others",
    "spec.limits.zoneHealth.smallZone": "nothing takes its place: a small zone is like others",
    "spec.limits.zoneHealth.degradedEvictionsPerSecond": _ZONE_RATE,
    "spec.limits.zoneHealth.fullEvictionsPerSecond": _ZONE_RATE,
    "spec.limits.bounce.afterEvictions": "it is 3",
    "spec.limits.bounce.withinSeconds": "it is 600",
    "spec.devices[].selector": "write devices[].driver: attributes of devices select nothing",
    "spec.eviction.order[]=ShortestGrace": _NO_ORDER,
    "spec.eviction.order[]=LongestGrace": _NO_ORDER,
    "spec.mode=Paused": "write paused: true",
}
"""Path of a field, or path=value -> the remedy."""


def with_successor(fault: FieldError) -> FieldError:
    """``fault``, with what takes the place of its field or value if that was removed."""
    path = _INDEX.sub("[]", fault.path)
    remedy = SUCCESSORS.get(path) or SUCCESSORS.get(f"{path}={fault.value}")
    return msgspec.structs.replace(fault, remedy=remedy) if remedy else fault
