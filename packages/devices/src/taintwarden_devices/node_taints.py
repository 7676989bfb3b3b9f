"""The taints of devices that pods on one node use, with their histories."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set

from taintwarden.engine.evaluate import Concern
from taintwarden.engine.history import TaintHistory, is_of_device, joined, observed
from taintwarden.engine.machine import TimedTaints, have_same_taints, history_name
from taintwarden.engine.model import DeviceId, PodClass, Taint
from taintwarden.engine.policy import Policy

MAX_ABSENT = 256
"""Maximum number of histories kept of absent taints. A kubelet may write any number into the annotation."""
SETTLE_SECONDS = 2.0
"""Seconds until a taint acts on a new pod, since the pod may be observed before the removal of the taint is."""


class DeviceTaints:
    """Taints of the devices that pods on one node use. The node stores the histories, since drivers replace slices."""

    def __init__(self) -> None:
        self.by_device: dict[DeviceId, TimedTaints] = {}
        """Device -> its taints. Devices without taints are left out."""
        self.uses: dict[DeviceId, int] = {}
        """Device -> number of pods on this node that use it."""
        self.absent: dict[str, TaintHistory] = {}
        """Histories of absent taints: stored ones, and those of removed taints and unused devices."""
        self.is_unknown = True
        """True while the devices of the pods are not known."""
        self._histories: dict[str, TaintHistory] = {}
        self._followed: frozenset[DeviceId] = frozenset()
        """Used devices that a slice contained at the last update."""

    def taints(self) -> Iterator[tuple[Taint, TaintHistory]]:
        """Yield all taints with their histories."""
        for taint, _ in self._timed():
            yield taint, self._histories[history_name(taint)]

    def _timed(self) -> Iterator[tuple[Taint, float | None]]:
        return (taint for taints in self.by_device.values() for taint in taints)

    def concerns(self, pod_class: PodClass) -> Iterator[Concern]:
        """Yield the taints of the devices of a class of pods, once for each use of the device.

        The claim's tolerations replace the pod's native ones.
        """
        for device in dict.fromkeys(use.device for use in pod_class.devices):
            for taint, _ in self.by_device.get(device, ()):
                history = self._histories[history_name(taint)]
                for use in pod_class.devices:
                    if use.device == device:
                        yield Concern(taint, history, use.tolerations, SETTLE_SECONDS)

    def unknown_histories(self, policies: Iterable[Policy]) -> Mapping[str, TaintHistory]:
        """Return the stored histories of taints not known again yet, if any policy selects taints of devices."""
        return self.absent if self.is_unknown and any(policy.devices for policy in policies) else {}

    def count_pod(self, before: PodClass | None, after: PodClass | None) -> Collection[DeviceId]:
        """Move a pod from class ``before``, None if it is new, to class ``after``, None if it is gone.

        Returns the devices that only one of the two classes uses.
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
        """Merge the histories in the node's annotation. ``is_new``: True if this process did not know the node."""
        known = {**self._histories, **stored} if is_new else joined(self._histories, stored, seen_until)
        self._keep_absent(joined(self.absent, {name: one for name, one in stored.items() if is_of_device(name)}, 0.0))
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
        """Store the newest taints of these devices and extend their histories. Returns True if verdicts may change.

        A taint that reappears with the same ``timeAdded`` is the same taint, since drivers replace slices. Another
        ``timeAdded`` means that it was added again; if it did not disappear, only after a ``gap``.

        Args:
            found: the taints of each device.
            followed: the devices that pods on this node use and a slice contains.
            now: seconds since the epoch.
            seen_until: last time at which the known taints were current: ``now`` while they are watched.
            gap: True if changes after ``seen_until`` may be missing.

        """
        changed = {device: taints for device, taints in found.items() if taints != self.by_device.get(device, ())}
        absent_at = dict.fromkeys(self._followed, seen_until)
        self._followed = self._followed - found.keys() | followed
        if not changed and not self.is_unknown:
            return False
        is_same = all(have_same_taints(self.by_device.get(device, ()), taints) for device, taints in changed.items())
        self.is_unknown, is_first = False, self.is_unknown
        left = [history_name(taint) for device in changed for taint, _ in self.by_device.get(device, ())]
        before = {name: self._histories.pop(name) for name in left}
        known = self.absent | before
        gaps = frozenset(known) if gap else known.keys() - before.keys()
        come = [taint for taints in changed.values() for taint in taints]
        present = _observed(known, come, now, absent_at, gaps)
        self._histories |= present
        by_device = {device: taints for device, taints in (self.by_device | changed).items() if taints}
        self.by_device = dict(sorted(by_device.items()))
        if is_same and not gap and not is_first:  # only times differ: some drivers renew them with each slice
            return False
        self._keep_absent({name: history for name, history in known.items() if name not in present})
        return True

    def mark_unknown(self) -> bool:
        """Drop the taints, since they may be outdated, and keep their histories. Returns True if there were any."""
        self.is_unknown, self._followed = True, frozenset()
        if not self.by_device:
            return False
        self._keep_absent(self.absent | self._histories)
        self._histories, self.by_device = {}, {}
        return True

    def forget_absent(self, is_removed: Callable[[str], bool]) -> None:
        """Drop the histories of absent taints for whose name ``is_removed`` returns True."""
        self.absent = {name: history for name, history in self.absent.items() if not is_removed(name)}

    def _keep_absent(self, absent: dict[str, TaintHistory]) -> None:
        self.absent = dict(list(absent.items())[-MAX_ABSENT:])


def _observed(
    known: Mapping[str, TaintHistory],
    taints: Iterable[tuple[Taint, float | None]],
    now: float,
    absent_at: Mapping[DeviceId, float],
    gaps: Collection[str],
) -> dict[str, TaintHistory]:
    """Return the histories of the ``taints`` of devices, continued from the ``known`` ones.

    ``absent_at``: device -> last time at which it was seen without its new taints. ``gaps``: names of histories that
    may lack changes.
    """
    taints = tuple(taints)
    former = _former_names(known, taints)
    found = {}
    for taint, stamp in taints:
        assert taint.origin is not None  # noqa: S101 - devices have these
        name, at = history_name(taint), absent_at.get(taint.origin.device, -math.inf)
        before = known[former[name]] if name in former else None
        found[name] = observed(before, taint.value, stamp, now, absent_at=at, gap=former.get(name) in gaps)
    return found


def _former_names(known: Mapping[str, TaintHistory], taints: Iterable[tuple[Taint, float | None]]) -> dict[str, str]:
    """Return a map from the name of each taint's history to the name of the known history that it continues.

    A driver may add several taints with one key and effect to a device, in any order. They are matched by value,
    then by number.
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
