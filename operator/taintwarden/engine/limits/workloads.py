"""How many pods a workload wants, has Ready, and can spare: a budget for workloads without a PodDisruptionBudget.

It is computed from state and not from past evictions: a missing pod counts, whatever removed it, until another is Ready
or the workload is scaled down. So a restart loses nothing relevant.
"""

from taintwarden.engine.limits.protocol import EvictionRequest, Freed, Limit
from taintwarden.engine.limits.refusal import WORKLOAD, Refusal, Whom
from taintwarden.engine.model import Instant, MonotonicTime, PerWorkload, Pod, WorkloadKey, later

COUNTED_KINDS = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job"})
"""Controllers that are watched, so that their wanted number of pods is known."""

FORGIVEN_SECONDS = 600.0
"""How long an evicted pod counts as missing if its controller is not known and no Ready pod has replaced it."""


class _Workload:
    __slots__ = ("known", "owed", "ready", "ready_leaving", "total")

    def __init__(self) -> None:
        self.total = 0
        self.ready = 0
        self.ready_leaving = 0
        """Ready pods whose eviction is in progress."""
        self.owed: list[MonotonicTime] = []
        """For a controller that is not known: until when each evicted pod without a Ready replacement counts."""
        self.known: set[str] = set()
        """For such a controller: pods that were Ready once, and so replace no further pod."""


class Workloads(Limit):
    """Counts pods by controlling owner.

    Args:
        freed: receives the key of a workload that may spare more pods than before.

    """

    def __init__(self, freed: Freed) -> None:
        self._freed = freed
        self._wanted: dict[WorkloadKey, int] = {}
        self._workloads: dict[WorkloadKey, _Workload] = {}
        self._leaving: dict[str, Pod] = {}

    def want(self, key: WorkloadKey, replicas: int | None) -> None:
        """A controller wants ``replicas`` pods; None: it is gone."""
        if replicas is None:
            self._wanted.pop(key, None)
        else:
            self._wanted[key] = replicas
        self._freed.add(_key(key))

    def seen(self, pod: Pod, before: Pod | None) -> None:
        """A running pod appeared, or differs from ``before``."""
        key = pod.shared.workload
        if key is None or (before is not None and before.ready == pod.ready):
            return
        workload = self._workloads.get(key)
        if workload is None:
            workload = self._workloads[key] = _Workload()
        workload.total += before is None
        if pod.ready:
            workload.ready += 1
            if pod.uid not in workload.known and not self._is_counted(pod):
                workload.known.add(pod.uid)
                del workload.owed[:1]
        elif before is not None:
            workload.ready -= 1
        if pod.uid in self._leaving:
            workload.ready_leaving += 1 if pod.ready else -1
            self._leaving[pod.uid] = pod
        self._freed.add(_key(key))

    def gone(self, pod: Pod, now: Instant) -> None:
        """A pod is gone or terminating."""
        key = pod.shared.workload
        if key is None:
            return
        workload = self._workloads[key]
        workload.total -= 1
        workload.ready -= pod.ready
        if self._leaving.pop(pod.uid, None) is not None:
            workload.ready_leaving -= pod.ready
            if pod.ready and not self._is_counted(pod):
                workload.owed.append(later(now.monotonic, FORGIVEN_SECONDS))
        workload.known.discard(pod.uid)
        if not workload.total:
            del self._workloads[key]
        self._freed.add(_key(key))

    def leave(self, pod: Pod) -> None:
        """An eviction of this pod is in progress: it counts as missing from now on."""
        key = pod.shared.workload
        if key is not None and pod.uid not in self._leaving:
            self._leaving[pod.uid] = pod
            self._workloads[key].ready_leaving += pod.ready

    def stay(self, uid: str) -> None:
        """The eviction did not happen."""
        known = self._leaving.pop(uid, None)
        if known is not None and (key := known.shared.workload) is not None:
            self._workloads[key].ready_leaving -= known.ready
            self._freed.add(_key(key))

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """``perWorkload.maxUnavailable``."""
        limit = request.policy.limits.per_workload
        return (
            self.refuse(request.pod, limit, request.now.monotonic) if limit.is_limit and not request.is_hard else None
        )

    def reserve(self, request: EvictionRequest) -> None:
        """Count the pod as missing, also if its policy does not set this limit."""
        self.leave(request.pod)

    def refuse(self, pod: Pod, limit: PerWorkload, now: MonotonicTime) -> Refusal | None:
        """Refuse if the workload cannot spare this pod. A pod that is not Ready already counts as missing."""
        owner, key = pod.shared.owner, pod.shared.workload
        if key is None or not pod.ready or pod.uid in self._leaving:
            return None  # a pod whose last call may have been carried out already counts
        workload = self._workloads[key]
        wanted = self._wanted.get(key) if _is_watched(pod) else None
        until: MonotonicTime | None = None
        if wanted is None:
            workload.owed = [until for until in workload.owed if until > now]
            wanted, until = workload.total + len(workload.owed), min(workload.owed, default=None)
        missing = wanted - (workload.ready - workload.ready_leaving)
        spare = limit.of(wanted)
        if missing + 1 <= spare:
            return None
        are = "is" if missing == 1 else "are"
        counted = f"{missing} of {wanted} pods of {owner} {are} missing or being evicted"
        return Refusal(WORKLOAD, until, Whom.PODS, _key(key), f"{counted}, and at most {spare} ({limit}) may be")

    def _is_counted(self, pod: Pod) -> bool:
        """Whether its controller says how many pods it wants."""
        return _is_watched(pod) and pod.shared.workload in self._wanted


def _key(key: WorkloadKey) -> str:
    """The key of a refusal, shared by the pods of the workload and by no others."""
    return f"workload/{key[0]}/{key[1]}"


def _is_watched(pod: Pod) -> bool:
    owner = pod.shared.owner
    return owner is not None and owner.kind in COUNTED_KINDS
