"""What streams of slices, rules and claims deliver to the source."""

from taintwarden.engine.machine.events import SourceEvent
from taintwarden_devices.inventory import DeviceClaim, Slice, TaintRule


class SliceSeen(SourceEvent, frozen=True):
    """A ResourceSlice was listed, added or modified. ``listed``: changes of it may be missing."""

    name: str
    found: Slice
    listed: bool = False


class SliceGone(SourceEvent, frozen=True):
    """A ResourceSlice was deleted."""

    name: str


class TaintRuleSeen(SourceEvent, frozen=True):
    """A DeviceTaintRule was listed, added or modified. ``listed``: changes of it may be missing."""

    name: str
    found: TaintRule
    listed: bool = False


class TaintRuleGone(SourceEvent, frozen=True):
    """A DeviceTaintRule was deleted."""

    name: str


class ClaimSeen(SourceEvent, frozen=True):
    """A ResourceClaim that is allocated was listed, added or modified. ``key`` is ``namespace/name``."""

    key: str
    found: DeviceClaim


class ClaimGone(SourceEvent, frozen=True):
    """A ResourceClaim was deleted, or is not allocated any more."""

    key: str


class StreamChanged(SourceEvent, frozen=True):
    """Whether one of these streams has delivered all that the API server had, or is cut off from it."""

    stream: str
    live: bool


class DevicesKnown(SourceEvent, frozen=True):
    """Slices, rules and claims of devices were listed; or they are not ``known``, because of a ``problem``.

    Without a problem, what was delivered of them so far does not count any more.
    """

    known: bool
    problem: str = ""


Event = SliceSeen | SliceGone | TaintRuleSeen | TaintRuleGone | ClaimSeen | ClaimGone | StreamChanged | DevicesKnown
