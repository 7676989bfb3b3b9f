"""What is known of the cluster: nodes with their taints' histories, and the pods on them."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Set

from taintwarden.engine.evaluate import Grounds, TaintVerdict
from taintwarden.engine.history import (
    TaintHistory,
    device_of,
    encode_histories,
    is_of_device,
    read_histories,
    until_now,
)
from taintwarden.engine.model import DeviceId, DeviceUse, MonotonicTime, Node, Pod, PodClass, Policy, Taint, Tolerations
from taintwarden.engine.tally import Tally

Alike = tuple[Tolerations, tuple[Policy, ...], int, float, tuple[DeviceUse, ...]]
"""What verdicts on a node depend on: all tolerations, the policies, the grace if a policy reclaims its nodes, how long
a pod is protected, and its devices.
"""

_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_ONE_CONDITION = {_UNREACHABLE: _NOT_READY}
"""The taints of a node that does not work. Kubernetes replaces one by the other while it stays so."""


PLACEMENT_DOMAIN = "taintwarden.io/"
"""Each label of placement has it."""
_CORDONED = "node.kubernetes.io/unschedulable:NoSchedule"
"""The name of the history of the taint that ``kubectl cordon`` brings."""

MAX_ABSENT = 256
"""So many histories are kept of taints of devices that no pod of a node has: a kubelet may write any number."""
TimedTaints = tuple[tuple[Taint, float | None], ...]


class NodeState:
    """A node, the pods bound to it, and what was computed from both. ``node`` is None while only pods refer to it."""

    __slots__ = (
        "_followed",
        "absent",
        "alike",
        "awaited_version",
        "awaits_devices",
        "concerned",
        "confirmed_at",
        "confirmed_version",
        "degraded",
        "device_taints",
        "grounds",
        "histories",
        "name",
        "node",
        "pods",
        "policies",
        "population",
        "reported_invalid",
        "taints_by_device",
        "unreadable_from",
        "uses",
        "verdicts",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.pods: dict[str, Pod] = {}
        self.histories: dict[str, TaintHistory] = {}
        self.device_taints: TimedTaints = ()
        """Of the devices that pods here have."""
        self.taints_by_device: dict[DeviceId, TimedTaints] = {}
        """The same by device."""
        self.uses: dict[DeviceId, int] = {}
        """The devices that pods here have, and how many pods have each."""
        self.absent: dict[str, TaintHistory] = {}
        """The histories of taints of devices that no pod here has now: stored ones, and those that went."""
        self._followed: frozenset[DeviceId] = frozenset()
        """The devices whose taints were known when they were read last."""
        self.awaits_devices = True
        """It is not known yet which devices pods have."""
        self.concerned: tuple[Policy, ...] = ()
        """The policies whose nodeSelector selects this node, also if it opts out: its history is kept for them."""
        self.policies: tuple[Policy, ...] | None = None
        """The policies that select this node; None: to be computed again."""
        self.verdicts: dict[PodClass, tuple[TaintVerdict, ...]] = {}
        self.grounds: dict[PodClass, tuple[Grounds, ...]] = {}
        """Why policies evict pods of a class, now or later."""
        self.alike: dict[Alike, tuple[TaintVerdict, ...]] = {}
        """The verdicts on all classes that do not differ in what verdicts depend on."""
        self.population: dict[str, int] = {}
        """Policy -> how many pods it may evict here, as far as it was counted."""
        self.confirmed_version = -1
        """The node is known as it was when pods had this resourceVersion."""
        self.confirmed_at = MonotonicTime(-math.inf)
        """A read of the node at this time found what the stream had delivered."""
        self.awaited_version = -1
        """A read found this version, which the stream has yet to deliver."""
        self.unreadable_from: float | None = None
        """Since when the newest version of the node cannot be decoded; None: it can."""
        self.degraded = False
        self.reported_invalid: dict[str, str] = {}

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels; none while only pods refer to it."""
        return self.node.labels if self.node is not None else {}

    @property
    def was_placed_by(self) -> bool:
        """Whether it has labels that repeat taints, also those of a placement that ended."""
        return any(PLACEMENT_DOMAIN in label for label in self.labels)

    @property
    def cordoned_at(self) -> float | None:
        """Since when the scheduler puts no pods on the node, by the taint of a cordon; None: it does."""
        history = self.histories.get(_CORDONED)
        return None if history is None else history.added_at

    @property
    def do_not_evict(self) -> bool:
        """Whether the node opts out of evictions."""
        return self.node is not None and self.node.do_not_evict

    def taints(self) -> Iterator[tuple[Taint, TaintHistory]]:
        """The taints of the node and of its devices, with their histories."""
        if self.node is not None:
            for taint, _ in self.node.taints:
                yield taint, self.histories[history_name(taint)]
            for taint, _ in self.device_taints:
                yield taint, self.histories[history_name(taint)]

    def taints_of(self, pod_class: PodClass) -> Iterator[tuple[Taint, TaintHistory]]:
        """Those of the node, and of the devices that pods of a class have: a node may have a device for each pod."""
        if self.node is not None:
            for taint, _ in self.node.taints:
                yield taint, self.histories[history_name(taint)]
            for device in dict.fromkeys(use.device for use in pod_class.devices):
                for taint, _ in self.taints_by_device.get(device, ()):
                    yield taint, self.histories[history_name(taint)]

    @property
    def is_tainted(self) -> bool:
        """Whether it has any."""
        return self.node is not None and bool(self.node.taints or self.device_taints)

    def is_heartbeat(self, node: Node) -> bool:
        """Whether no relevant field differs from what is known: most updates of a node change only its status.

        Some writers renew the times of taints with each report.
        """
        known = self.node
        return (
            known is not None
            and known.uid == node.uid
            and _are_alike(known.taints, node.taints)
            and known.labels == node.labels
            and known.history == node.history
            and known.do_not_evict == node.do_not_evict
        )

    def beat(self, node: Node) -> None:
        """Only what does not matter differs; of the times of its taints the newest are remembered."""
        if self.node is not None and self.node.taints != node.taints:
            self._restamp(node.taints)
        self.node = node

    def _restamp(self, taints: TimedTaints) -> None:
        for taint, stamp in taints:
            name = history_name(taint)
            self.histories[name] = self.histories[name].seen(taint.value, stamp, self.histories[name].held_since)

    def update(self, node: Node, now: float, *, seen_until: float, gap: bool) -> list[str]:
        """Store the node's newest state and extend the histories.

        Args:
            node: as it is stored.
            now: seconds since the epoch.
            seen_until: when what was known of the node was certainly true last: ``now`` while it is watched.
            gap: changes since then may be missing, so a later ``timeAdded`` means that the taint was added again, and
                the annotation may contain what another leader saw meanwhile. Otherwise the annotation is read once,
                when the node is first seen: from then on memory is newer.

        Returns:
            What of the annotation could not be read, and why.

        """
        faults: list[str] = []
        known = self.histories
        is_new = self.node is None or self.node.uid != node.uid
        if is_new:
            known, seen_until, gap = self._of_devices(), -math.inf, True
        if is_new or (gap and self.node is not None and self.node.history != node.history):
            stored, faults = _read(node.history, now)
            known = known | stored if is_new else _joined(known, stored, seen_until)
            of_devices = {name: one for name, one in stored.items() if is_of_device(name)}
            self._set_aside(_joined(self.absent, of_devices, 0.0))
        if self.node is None or self.node.labels != node.labels or self.node.do_not_evict != node.do_not_evict:
            self.policies = None
        self.node = node
        histories = {
            history_name(taint): _observed(known, taint, stamp, now, seen_until, gap=gap)
            for taint, stamp in node.taints
        }
        if self.device_taints:
            gaps = frozenset(known) if is_new else frozenset()
            histories |= _observed_on_devices(known, self.device_taints, now, {}, gaps)
        self.histories = histories
        self.forget_verdicts()
        return faults

    def update_devices(
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
        changed = {one: taints for one, taints in found.items() if taints != self.taints_by_device.get(one, ())}
        absent_at = dict.fromkeys(self._followed, seen_until)
        self._followed = self._followed - found.keys() | followed
        if not changed and not self.awaits_devices:
            return False
        is_same = all(_are_alike(self.taints_by_device.get(one, ()), taints) for one, taints in changed.items())
        self.awaits_devices, is_first = False, self.awaits_devices
        left = [taint for one in changed for taint, _ in self.taints_by_device.get(one, ())]
        before = {history_name(taint): self.histories[history_name(taint)] for taint in left}
        come = tuple(one for taints in changed.values() for one in taints)
        known = self.absent | before
        gaps = frozenset(known) if gap else known.keys() - before.keys()
        present = _observed_on_devices(known, come, now, absent_at, gaps)
        others = {name: history for name, history in self.histories.items() if name not in before}
        by_device = {one: taints for one, taints in (self.taints_by_device | changed).items() if taints}
        self.histories, self.taints_by_device = others | present, dict(sorted(by_device.items()))
        self.device_taints = tuple(one for taints in self.taints_by_device.values() for one in taints)
        if is_same and not gap and not is_first:  # only times differ, which some drivers renew with each slice
            return False
        self._set_aside({name: one for name, one in (self.absent | before).items() if name not in present})
        self.forget_verdicts()
        return True

    def lose_devices(self) -> bool:
        """Its devices are not known any more; their histories wait until they are. Returns whether anything changed."""
        self.awaits_devices, self._followed = True, frozenset()
        if not self.device_taints:
            return False
        before = self._of_devices()
        self._set_aside(self.absent | before)
        self.histories = {name: one for name, one in self.histories.items() if name not in before}
        self.device_taints, self.taints_by_device = (), {}
        self.forget_verdicts()
        return True

    def use(self, before: PodClass | None, after: PodClass | None) -> None:
        """A pod of this class has become one of another; None: it came, or is gone."""
        for one, step in ((before, -1), (after, 1)):
            for device in dict.fromkeys(use.device for use in one.devices) if one is not None else ():
                number = self.uses.pop(device, 0) + step
                if number:
                    self.uses[device] = number

    def forget_absent(self, devices: Collection[DeviceId], is_taken_off: Callable[[str, DeviceId], bool]) -> None:
        """Forget the histories of absent taints of these devices of which this is true, by name and device."""
        named = [(name, device_of(name)) for name in self.absent]
        for name, device in named:
            if device is not None and device in devices and is_taken_off(name, device):
                del self.absent[name]

    def succeed(self, other: "NodeState") -> None:
        """Another node of this name had these pods, and they have their devices still."""
        self.pods, self.uses = other.pods, other.uses
        self._set_aside(other.absent | other._of_devices())

    def _of_devices(self) -> dict[str, TaintHistory]:
        return {history_name(taint): self.histories[history_name(taint)] for taint, _ in self.device_taints}

    def _set_aside(self, absent: dict[str, TaintHistory]) -> None:
        self.absent = dict(list(absent.items())[-MAX_ABSENT:])

    def forget_verdicts(self) -> None:
        """The taints, policies or tolerations changed."""
        self.verdicts, self.grounds, self.alike = {}, {}, {}

    def history_text(self) -> str:
        """The text that the annotation should have: the taints that a policy acts on."""
        selected = {
            history_name(taint): history
            for taint, history in self.taints()
            if any(policy.selector_for(taint) for policy in self.concerned)
        }
        if self.awaits_devices and self.absent and any(policy.devices for policy in self.concerned):
            selected = self.absent | selected
        return encode_histories(selected)


class Cluster:
    """All nodes, and how many pods of each class there are."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.classes: Tally[PodClass] = Tally()

    def state(self, name: str) -> NodeState:
        """The node of this name, which is created if it is not known."""
        state = self.nodes.get(name)
        if state is None:
            state = self.nodes[name] = NodeState(name)
        return state

    def labels(self, name: str) -> dict[str, str]:
        """The labels of a node; none if it is not known."""
        state = self.nodes.get(name)
        return state.labels if state is not None else {}

    def pod(self, node: str, uid: str) -> Pod | None:
        """The current pod; None if it is no longer on its node."""
        state = self.nodes.get(node)
        return None if state is None else state.pods.get(uid)

    def put(self, pod: Pod) -> None:
        """Store a pod."""
        state = self.state(pod.node)
        known = state.pods.get(pod.uid)
        state.pods[pod.uid] = pod
        if known is None or known.shared is not pod.shared:
            state.population = {}
            state.use(known.shared if known is not None else None, pod.shared)
            self.classes[pod.shared] += 1
            if known is not None:
                self._discount(state, known)

    def remove(self, node: str, uid: str) -> Pod | None:
        """Remove a pod. Returns what was known of it."""
        state = self.nodes.get(node)
        if state is None:
            return None
        known = state.pods.pop(uid, None)
        if known is not None:
            state.use(known.shared, None)
            self._discount(state, known)
        if state.node is None and not state.pods:
            del self.nodes[node]
        return known

    def _discount(self, state: NodeState, pod: Pod) -> None:
        state.population = {}
        self.classes.take(pod.shared)
        if pod.shared in state.verdicts and all(one.shared is not pod.shared for one in state.pods.values()):
            # Every run of a Job is a class of its own: a node would collect them until its taints change.
            del state.verdicts[pod.shared], state.grounds[pod.shared]
            state.alike.clear()  # which holds its tolerations

    def replace(self, name: str) -> NodeState:
        """A node is gone, or another one has its name: only the pods of the old one remain in the new state."""
        old = self.nodes[name]
        new = self.nodes[name] = NodeState(name)
        new.succeed(old)
        return new


def history_name(taint: Taint) -> str:
    """The name of a taint's history: the key and effect, without the value; and its device or source, if it has one.

    The two taints of a node that does not work are one.
    """
    name = f"{_ONE_CONDITION.get(taint.key, taint.key)}:{taint.effect}"
    if taint.origin is not None:
        return f"{name}@{taint.origin.name}"
    return f"{name} from {taint.source}" if taint.source else name


def _are_alike(one: TimedTaints, other: TimedTaints) -> bool:
    """Whether they differ only in their times."""
    return one == other or [taint for taint, _ in one] == [taint for taint, _ in other]


def _read(text: str, now: float) -> tuple[dict[str, TaintHistory], list[str]]:
    """The histories of an annotation, and its faults."""
    found, faults = read_histories(text)
    believed = until_now(found, now)
    if believed != found:
        faults.append("its times lie in the future, and count from now")
    return believed, faults


def _joined(
    known: Mapping[str, TaintHistory], stored: Mapping[str, TaintHistory], absent_at: float
) -> dict[str, TaintHistory]:
    """What this process saw, with what another one has stored. A taint that is not known was not there at that time."""
    return {**known} | {
        name: known[name].joined(one) if name in known else one.after(absent_at) for name, one in stored.items()
    }


def _observed(
    known: Mapping[str, TaintHistory], taint: Taint, stamp: float | None, now: float, absent_at: float, *, gap: bool
) -> TaintHistory:
    history = known.get(history_name(taint))
    if history is None:
        return TaintHistory.begin(taint.value, now, stamp, absent_at)
    return history.seen(taint.value, stamp, now, absent_at if gap else None)


def _observed_on_devices(
    known: Mapping[str, TaintHistory],
    taints: TimedTaints,
    now: float,
    absent_at: Mapping[DeviceId, float],
    gaps: Collection[str],
) -> dict[str, TaintHistory]:
    """The histories of taints of devices.

    ``absent_at``: until when each device that was followed was certainly without a taint that is not known. ``gaps``:
    the histories of which changes may be missing.
    """
    former = _continued(known, taints)
    mine = {name: known[one] for name, one in former.items()}
    found = {}
    for taint, stamp in taints:
        assert taint.origin is not None  # noqa: S101 - devices have these
        name, at = history_name(taint), absent_at.get(taint.origin.device, -math.inf)
        found[name] = _observed(mine, taint, stamp, now, at, gap=former.get(name) in gaps)
    return found


def _continued(known: Mapping[str, TaintHistory], taints: TimedTaints) -> dict[str, str]:
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
