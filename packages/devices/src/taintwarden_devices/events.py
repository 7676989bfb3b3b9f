"""What streams of slices, rules and claims deliver to the source."""

from taintwarden.engine.machine.events import SourceEvent
from taintwarden_devices.inventory import DeviceClaim, Slice, TaintRule


class SliceChanged(SourceEvent, frozen=True):
    """A ResourceSlice is stored like this; None: it is gone. ``listed``: changes of it may be missing."""

    name: str
    found: Slice | None
    listed: bool = False


class TaintRuleChanged(SourceEvent, frozen=True):
    """The same of a DeviceTaintRule."""

    name: str
    found: TaintRule | None
    listed: bool = False


class ClaimChanged(SourceEvent, frozen=True):
    """A ResourceClaim, ``namespace/name``, is allocated like this; None: it is gone, or not allocated any more."""

    key: str
    found: DeviceClaim | None
    listed: bool = False


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
