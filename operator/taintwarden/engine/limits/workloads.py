"""Numbers of pods that workloads want, have Ready and can spare: budgets without a PodDisruptionBudget.

Numbers are computed from state: a missing pod counts, whatever removed it, until another is Ready or the workload is
scaled down. Only where the wanted number is not known, past evictions count, and a restart loses those.

The pods of one controller are a workload. The pods with one value of a label that a policy names are another: it wants
the pods of all controllers whose pod template has the value. Its other pods count as those of unknown controllers.
"""

from collections.abc import Iterable
from typing import NamedTuple

from taintwarden.engine.limit_settings import PerWorkload
from taintwarden.engine.limits.protocol import EvictionRequest, FreedKeys, Limit
from taintwarden.engine.limits.refusal import WORKLOAD, Refusal, RefusalScope
from taintwarden.engine.model import Instant, MonotonicTime, Pod, WorkloadKey, later
from taintwarden.engine.tally import Tally

MISSING_SECONDS = 600.0
"""Maximum seconds that an evicted pod of an unknown controller counts as missing if no Ready pod replaces it."""


class LabelGroup(NamedTuple):
    """The pods of a namespace with one value of a label."""

    namespace: str
    label: str
    value: str


_Key = WorkloadKey | LabelGroup


class _Workload:
    __slots__ = ("known", "missing_until", "ready", "ready_leaving", "total", "unready")

    def __init__(self) -> None:
        self.total = 0
        self.ready = 0
        self.ready_leaving = 0
        """Ready pods whose eviction is in progress."""
        self.missing_until: list[MonotonicTime] = []
        """For each evicted pod of an unknown controller without a Ready replacement: the time until which it counts."""
        self.known: set[str] = set()
        """UIDs of pods of unknown controllers that were Ready once, and therefore replace no further pod."""
        self.unready: dict[tuple[str, str], Pod] = {}
        """Pods that are not Ready, by UID and node. After a restore of etcd a pod may be on two for a while."""


class Workloads(Limit):
    """Counts pods by controlling owner, and by the labels that policies name.

    Args:
        freed: receives the key of a workload that may spare more pods than before.

    """

    def __init__(self, freed: FreedKeys) -> None:
        self._freed = freed
        self.labels: tuple[str, ...] = ()
        """Keys of the labels by which pods are counted."""
        self._wanted: dict[WorkloadKey, int] = {}
        self._workloads: dict[_Key, _Workload] = {}
        self._leaving: dict[str, Pod] = {}
        self._values: dict[WorkloadKey, tuple[LabelGroup, ...]] = {}
        """Controller -> the counted labels of its pod template."""
        self._controllers: dict[LabelGroup, dict[WorkloadKey, int]] = {}
        """Label with its value -> controller -> the number of pods that the controller wants."""
        self._running: Tally[tuple[LabelGroup, WorkloadKey | None]] = Tally()
        """Number of pods by label and controller; None: pods without a controller."""

    def count_by(self, labels: tuple[str, ...], pods: Iterable[Pod]) -> None:
        """Count all pods by other labels. The caller passes all controllers to :meth:`set_wanted` afterwards."""
        self.labels = labels
        self._values, self._controllers, self._running = {}, {}, Tally()
        self._workloads = {key: one for key, one in self._workloads.items() if not isinstance(key, LabelGroup)}
        for pod in pods if labels else ():
            for key in self._named(pod.namespace, pod.shared.labels.items()):
                self._count(key, pod, 1)

    def set_wanted(self, key: WorkloadKey, replicas: int | None, labels: Iterable[tuple[str, str]] = ()) -> None:
        """Store that a controller wants ``replicas`` pods with these labels; None: the controller is gone."""
        if replicas is None:
            self._wanted.pop(key, None)
        else:
            self._wanted[key] = replicas
        self._freed.add(_key(key))
        for value in self._values.pop(key, ()):
            del self._controllers[value][key]
            if not self._controllers[value]:
                del self._controllers[value]
            self._freed.add(_key(value))
        if replicas is not None and (values := self._named(key[0], labels)):
            self._values[key] = values
            for value in values:
                self._controllers.setdefault(value, {})[key] = replicas
                self._freed.add(_key(value))

    def seen(self, pod: Pod, before: Pod | None) -> None:
        """Count a pod that is new, or that differs from ``before``."""
        if before is not None and before.ready == pod.ready and before.shared is pod.shared:
            return
        for key in self._keys(pod):
            self._count(key, pod, 1)
        if before is not None:
            for key in self._keys(before):
                self._count(key, before, -1)
        if pod.uid in self._leaving:
            self._leaving[pod.uid] = pod

    def gone(self, pod: Pod, now: Instant) -> None:
        """Stop counting a pod that is gone or terminating."""
        is_evicted = pod.uid in self._leaving
        for key in self._keys(pod):
            workload = self._workloads[key]
            if is_evicted and pod.ready and not self._is_counted(key, pod):
                workload.missing_until.append(later(now.monotonic, MISSING_SECONDS))
            workload.known.discard(pod.uid)
            self._count(key, pod, -1)
        self._leaving.pop(pod.uid, None)

    def leave(self, pod: Pod) -> None:
        """Count a pod as missing from now on, since its eviction is in progress."""
        if pod.uid not in self._leaving:
            self._leaving[pod.uid] = pod
            for key in self._keys(pod):
                self._workloads[key].ready_leaving += pod.ready

    def stay(self, uid: str) -> None:
        """Stop counting a pod as missing, since its eviction did not happen."""
        known = self._leaving.pop(uid, None)
        if known is not None:
            for key in self._keys(known):
                self._workloads[key].ready_leaving -= known.ready
                self._freed.add(_key(key))

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse a pod as ``perWorkload.maxUnavailable`` and ``perWorkload.label`` require."""
        limit = request.policy.limits.per_workload
        return (
            self.refuse(request.pod, limit, request.now.monotonic) if limit.is_limit and not request.is_hard else None
        )

    def reserve(self, request: EvictionRequest) -> None:
        """Count the pod as missing, even if its policy does not set this limit."""
        self.leave(request.pod)

    def refuse(self, pod: Pod, limit: PerWorkload, now: MonotonicTime) -> Refusal | None:
        """Refuse a pod that one of its workloads cannot spare. A pod that is not Ready already counts as missing."""
        if not pod.ready or pod.uid in self._leaving:
            return None  # a pod whose last call may have been carried out already counts
        for key in self._keys(pod):
            if not isinstance(key, LabelGroup) or key.label == limit.label:
                refused = self._refuse(key, pod, limit, now)
                if refused is not None:
                    return refused
        return None

    def _refuse(self, key: _Key, pod: Pod, limit: PerWorkload, now: MonotonicTime) -> Refusal | None:
        workload = self._workloads[key]
        missing_until = workload.missing_until = [until for until in workload.missing_until if until > now]
        wanted, which = workload.total + len(missing_until), f"of {pod.shared.owner}"
        if isinstance(key, LabelGroup):
            controllers = self._controllers.get(key, {}).items()
            wanted += sum(replicas - self._running[key, controller] for controller, replicas in controllers)
            which = f"with label {key.label}={key.value}"
        elif self._is_counted(key, pod):
            wanted, missing_until = self._wanted[key], []
        spare = 1 if isinstance(key, LabelGroup) else limit.of(wanted)
        rule = "" if str(spare) == str(limit) or isinstance(key, LabelGroup) else f" ({limit})"
        missing = wanted - (workload.ready - workload.ready_leaving)
        if missing + 1 <= spare:
            return None
        are = "is" if missing == 1 else "are"
        unready = next((f" (such as {one.name} on {one.node}: not Ready)" for one in workload.unready.values()), "")
        counted = f"{missing} of {wanted} pods {which} {are} missing or being evicted{unready}"
        until = min(missing_until, default=None)
        return Refusal(WORKLOAD, until, RefusalScope.PODS, _key(key), f"{counted}, and at most {spare}{rule} may be")

    def _count(self, key: _Key, pod: Pod, by: int) -> None:
        """Add the pod to a workload (``by`` is 1), or subtract it (-1)."""
        workload = self._workloads.get(key)
        if workload is None:
            workload = self._workloads[key] = _Workload()
        workload.total += by
        if isinstance(key, LabelGroup):
            self._running.change((key, pod.shared.workload), by)
        if pod.ready:
            workload.ready += by
            workload.ready_leaving += by * (pod.uid in self._leaving)
            if by > 0 and pod.uid not in workload.known and not self._is_counted(key, pod):
                workload.known.add(pod.uid)
                del workload.missing_until[:1]
        elif by > 0:
            workload.unready[pod.uid, pod.node] = pod
        elif workload.unready[pod.uid, pod.node].shared is pod.shared:  # else a newer version of the pod took its place
            del workload.unready[pod.uid, pod.node]
        if not workload.total:
            del self._workloads[key]
        self._freed.add(_key(key))

    def _keys(self, pod: Pod) -> tuple[_Key, ...]:
        """Return the workloads to which a pod belongs."""
        own = pod.shared.workload
        keys: tuple[_Key, ...] = () if own is None else (own,)
        return keys + self._named(pod.namespace, pod.shared.labels.items()) if self.labels else keys

    def _named(self, namespace: str, labels: Iterable[tuple[str, str]]) -> tuple[LabelGroup, ...]:
        named = self.labels
        return tuple([LabelGroup(namespace, label, value) for label, value in labels if value and label in named])

    def _is_counted(self, key: _Key, pod: Pod) -> bool:
        """Return True if the number of pods that the controller of a pod wants in this workload is known."""
        return pod.shared.workload in (self._controllers.get(key, {}) if isinstance(key, LabelGroup) else self._wanted)


def _key(key: _Key) -> str:
    """Return the key of a refusal, shared by the pods of the workload and by no others."""
    return f"workload/{'/'.join(key)}"
