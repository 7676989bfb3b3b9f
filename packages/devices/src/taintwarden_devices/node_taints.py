"""The taints of the devices that pods of one node have, and their histories."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set

from taintwarden.engine.evaluate import Concern
from taintwarden.engine.history import TaintHistory, is_beside, joined, observed
from taintwarden.engine.machine import TimedTaints, are_alike, history_name
from taintwarden.engine.model import DeviceId, PodClass, Policy, Taint

MAX_ABSENT = 256
"""So many histories are kept of taints of devices that no pod of a node has: a kubelet may write any number."""
SETTLE_SECONDS = 2.0
"""A pod may come to a device just after its taint went, and be known before that is."""


class DeviceTaints:
    """Of the devices that pods of one node have. They are stored with the node, since drivers replace their slices."""

    def __init__(self) -> None:
        self.by_device: dict[DeviceId, TimedTaints] = {}
        """The taints of each device that pods here have; without those that have none."""
        self.uses: dict[DeviceId, int] = {}
        """The devices that pods here have, and how many pods have each."""
        self.absent: dict[str, TaintHistory] = {}
        """The histories of taints that no pod here has now: stored ones, and those that went."""
        self.is_awaited = True
        """It is not known yet which devices pods have."""
        self._histories: dict[str, TaintHistory] = {}
        self._followed: frozenset[DeviceId] = frozenset()
        """The devices whose taints were known when they were read last."""

    def taints(self) -> Iterator[tuple[Taint, TaintHistory]]:
        """All of them, with their histories."""
        for taint, _ in self._timed():
            yield taint, self._histories[history_name(taint)]

    def _timed(self) -> Iterator[tuple[Taint, float | None]]:
        return (one for taints in self.by_device.values() for one in taints)

    def concerns(self, pod_class: PodClass) -> Iterator[Concern]:
        """Those of the devices of a class, for each claim by which its pods have the device.

        The claim's tolerations take the place of the pod's native ones.
        """
        for device in dict.fromkeys(use.device for use in pod_class.devices):
            for taint, _ in self.by_device.get(device, ()):
                history = self._histories[history_name(taint)]
                for use in pod_class.devices:
                    if use.device == device:
                        yield Concern(taint, history, use.tolerations, SETTLE_SECONDS)

    def awaited(self, policies: Iterable[Policy]) -> Mapping[str, TaintHistory]:
        """The histories of taints that are not known yet, as far as these policies may act on them."""
        return self.absent if self.is_awaited and any(policy.devices for policy in policies) else {}

    def use(self, before: PodClass | None, after: PodClass | None) -> Collection[DeviceId]:
        """A pod of this class has become one of another; None: it came, or is gone.

        Returns the devices that one of both has, by which claim ever, and the other has not.
        """
        had, has = (
            dict.fromkeys(use.device for use in one.devices) if one is not None else {} for one in (before, after)
        )
        for devices, step in ((had, -1), (has, 1)):
            for device in devices:
                number = self.uses.pop(device, 0) + step
                if number:
                    self.uses[device] = number
        return [one for one in {**had, **has} if (one in had) != (one in has)]

    def restore(self, stored: Mapping[str, TaintHistory], now: float, seen_until: float, *, is_new: bool) -> None:
        """Read what an annotation has. A node that ``is_new`` knows nothing newer."""
        known = {**self._histories, **stored} if is_new else joined(self._histories, stored, seen_until)
        self._set_aside(joined(self.absent, {name: one for name, one in stored.items() if is_beside(name)}, 0.0))
        self._histories = _observed(known, self._timed(), now, {}, frozenset(known) if is_new else frozenset())

    def update(
        self,
        found: Mapping[DeviceId, TimedTaints],
        followed: Set[DeviceId],
        now: float,
        *,
        seen_until: float,
        gap: bool,
    ) -> bool:
        """Store the newest taints of these devices, and extend their histories. Returns whether anything changed.

        One that comes back with the same time is the same as before: slices are replaced, and claims read again. With
        another time it was added again, also after a ``gap``, in which changes are missing.

        Args:
            found: the taints of each.
            followed: those that are in a slice, and that pods here have.
            now: seconds since the epoch.
            seen_until: when what was known of them was certainly true last: ``now`` while they are watched.
            gap: changes since then may be missing.

        """
        changed = {one: taints for one, taints in found.items() if taints != self.by_device.get(one, ())}
        absent_at = dict.fromkeys(self._followed, seen_until)
        self._followed = self._followed - found.keys() | followed
        if not changed and not self.is_awaited:
            return False
        is_same = all(are_alike(self.by_device.get(one, ()), taints) for one, taints in changed.items())
        self.is_awaited, is_first = False, self.is_awaited
        left = [history_name(taint) for one in changed for taint, _ in self.by_device.get(one, ())]
        before = {name: self._histories.pop(name) for name in left}
        known = self.absent | before
        gaps = frozenset(known) if gap else known.keys() - before.keys()
        come = [one for taints in changed.values() for one in taints]
        present = _observed(known, come, now, absent_at, gaps)
        self._histories |= present
        by_device = {one: taints for one, taints in (self.by_device | changed).items() if taints}
        self.by_device = dict(sorted(by_device.items()))
        if is_same and not gap and not is_first:  # only times differ, which some drivers renew with each slice
            return False
        self._set_aside({name: one for name, one in known.items() if name not in present})
        return True

    def lose(self) -> bool:
        """They are not known any more; their histories wait until they are. Returns whether there were any."""
        self.is_awaited, self._followed = True, frozenset()
        if not self.by_device:
            return False
        self._set_aside(self.absent | self._histories)
        self._histories, self.by_device = {}, {}
        return True

    def forget_absent(self, is_taken_off: Callable[[str], bool]) -> None:
        """Forget the histories of absent taints of which this is true, by name."""
        self.absent = {name: one for name, one in self.absent.items() if not is_taken_off(name)}

    def _set_aside(self, absent: dict[str, TaintHistory]) -> None:
        self.absent = dict(list(absent.items())[-MAX_ABSENT:])


def _observed(
    known: Mapping[str, TaintHistory],
    taints: Iterable[tuple[Taint, float | None]],
    now: float,
    absent_at: Mapping[DeviceId, float],
    gaps: Collection[str],
) -> dict[str, TaintHistory]:
    """The histories of taints of devices.

    ``absent_at``: until when each device that was followed was certainly without a taint that is not known. ``gaps``:
    the histories of which changes may be missing.
    """
    taints = tuple(taints)
    former = _continued(known, taints)
    found = {}
    for taint, stamp in taints:
        assert taint.origin is not None  # noqa: S101 - devices have these
        name, at = history_name(taint), absent_at.get(taint.origin.device, -math.inf)
        before = known[former[name]] if name in former else None
        found[name] = observed(before, taint.value, stamp, now, absent_at=at, gap=former.get(name) in gaps)
    return found


def _continued(known: Mapping[str, TaintHistory], taints: Iterable[tuple[Taint, float | None]]) -> dict[str, str]:
    """The names that histories of taints of devices had.

    A driver may write several taints with one key and effect on a device, and in any order: the value tells which is
    which, and the number only what the others leave.
    """
    alike: dict[str, list[str]] = {}
    values: dict[str, str] = {}
    for taint, _ in taints:
        name = history_name(taint)
        alike.setdefault(name.partition(" #")[0], []).append(name)
        values[name] = taint.value
    found = {}
    for first, names in alike.items():
        former = [first] if first in known else []
        while former and (name := f"{first} #{len(former)}") in known:
            former.append(name)
        for name in names:
            if (same := next((one for one in former if known[one].value == values[name]), None)) is not None:
                found[name] = same
                former.remove(same)
        for name in names:
            if name not in found and former:
                found[name] = name if name in former else former[0]
                former.remove(found[name])
    return found
