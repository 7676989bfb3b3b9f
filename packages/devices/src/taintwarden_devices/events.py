"""Events that the streams of slices, rules and claims deliver to the source."""

from taintwarden.engine.events import SourceEvent
from taintwarden_devices.inventory import DeviceClaim, Slice, TaintRule


class SliceChanged(SourceEvent, frozen=True):
    """A ResourceSlice was added or changed, or (``found`` None) is gone. ``listed``: earlier changes may be missing."""

    name: str
    found: Slice | None
    listed: bool = False


class TaintRuleChanged(SourceEvent, frozen=True):
    """A DeviceTaintRule was added or changed, or (``found`` None) is gone. ``listed``: as in SliceChanged."""

    name: str
    found: TaintRule | None
    listed: bool = False


class ClaimChanged(SourceEvent, frozen=True):
    """A ResourceClaim (``namespace/name``) was allocated or changed, or (``found`` None) no pod has its devices now."""

    key: str
    found: DeviceClaim | None
    listed: bool = False


class StreamChanged(SourceEvent, frozen=True):
    """A stream has delivered everything that the API server had (``live``), or was cut off."""

    stream: str
    live: bool


class DevicesKnown(SourceEvent, frozen=True):
    """Slices, claims, and rules if served, were listed (``known``); or they are not known, because of a ``problem``.

    If they are not known and there is no problem, all objects delivered before are dropped.
    """

    known: bool
    problem: str = ""
