"""Everything in a cluster that is no operator: controllers, scheduler, kubelets, the controller of budgets, garbage."""

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from simulated.world import jsons, when
from simulated.world.objects import Budget, DeviceClaim, Node, Owner, Pod, Taint, Toleration, Workload

if TYPE_CHECKING:
    from simulated.world.world import World

LATE_SECONDS = 20.0
"""Seconds until a late controller of budgets has counted."""


class Cluster:
    """Reacts to every change in the store."""

    def __init__(self, world: "World") -> None:
        self.longest_stop = 3.0
        """Maximum number of seconds that most pods take to stop."""
        self.stuck: dict[str, None] = {}
        """Nodes whose kubelet does nothing: their pods never stop."""
        self._world = world
        self._store = world.store
        self._noise = world.noise
        self._numbers: dict[str, int] = {}
        self._coming: dict[str, int] = {}
        self._pending: dict[str, None] = {}
        """UIDs of pods without a node."""
        self._workloads: dict[str, None] = {}
        self._counting: dict[str, None] = {}
        self._store.changed.append(self._changed)

    def _changed(self, kind: str, key: str, before: Any, after: Any) -> None:
        if kind == "pods":
            self._pod_changed(key, before, after)
        elif kind in ("slices", "rules"):
            self._schedule_pending()
        elif kind == "nodes":
            self._schedule_pending()
            if after is None:
                self._world.agenda.after(self._noise.between(1.0, 5.0, "gc", key), lambda: self._collect(key))
        elif kind == "workloads" and after is not None:
            self._reconcile(after.uid)
        elif kind == "budgets" and after is not None and after.observed == 0:
            self._count_later(after)

    # -- pods ---------------------------------------------------------------------------------------------------------

    def create(self, pod: Pod) -> Pod:
        """A pod appears, bound if it has a node."""
        wall = self._world.api_wall()
        self._allocate(pod)
        created: Pod = self._store.put(
            "pods", pod.uid, replace(pod, created_at=float(int(wall)), bound_at=float(int(wall)) if pod.node else 0.0)
        )
        return created

    def terminate(self, pod: Pod, grace: int | None = None) -> None:
        """A pod is asked to stop: its kubelet stops it after a while, within its grace."""
        allowed = float(pod.grace if grace is None else grace)
        self._store.change("pods", pod.uid, stopping_until=float(int(self._world.api_wall() + allowed)))
        if pod.node in self.stuck:
            return
        takes = self._noise.between(0.1, max(0.2, min(allowed, self.longest_stop)), "stops", pod.uid)
        if self._noise.happens(0.05, "takes all", pod.uid):
            takes = allowed
        self._world.agenda.after(takes, lambda: self._gone(pod.uid))

    def _gone(self, uid: str) -> None:
        pod = self._store.get("pods", uid)
        if pod is not None and pod.stopping_until is not None:
            self._store.delete("pods", uid)

    def _collect(self, node: str) -> None:
        """The garbage collector deletes the pods of a node that is gone."""
        if self._store.get("nodes", node) is None:
            for uid in [uid for uid, pod in self._store.objects["pods"].items() if pod.node == node]:
                self._store.delete("pods", uid)

    def _pod_changed(self, uid: str, before: Pod | None, after: Pod | None) -> None:
        pod = after or before
        assert pod is not None
        was_there = before is not None and before.stopping_until is None
        is_there = after is not None and after.stopping_until is None
        if pod.owner is not None and was_there and not is_there:
            self._reconcile(pod.owner.uid)
        if after is None and pod.claim is not None:
            seconds = self._noise.between(0.1, 3.0, "deallocated", uid)
            self._world.agenda.after(seconds, lambda: self._store.delete("claims", f"{pod.namespace}/{uid}"))
        if not is_there:
            self._pending.pop(uid, None)
        elif after is not None and not after.node:
            self._pending[uid] = None
        counts = (was_there, before is not None and before.ready), (is_there, after is not None and after.ready)
        if counts[0] != counts[1]:
            for budget in self._world.server.budgets_of(pod):
                self._count_later(budget)

    # -- controllers --------------------------------------------------------------------------------------------------

    def pods_of(self, owner: str) -> list[Pod]:
        """The pods of a controller that are not stopping. One of another namespace that names it is not its own."""
        workload: Workload | None = self._store.get("workloads", owner)
        return [
            pod
            for pod in self._store.objects["pods"].values()
            if pod.owner is not None
            and pod.owner.uid == owner
            and pod.stopping_until is None
            and (workload is None or pod.namespace == workload.namespace)
        ]

    def _reconcile(self, uid: str) -> None:
        workload: Workload | None = self._store.get("workloads", uid)
        if workload is None:
            return
        if workload.uid not in self._workloads:  # its first pods are Ready at once
            self._workloads[workload.uid] = None
            for _ in range(workload.replicas):
                self._add(workload, ready=True)
            return
        pods = self.pods_of(uid)
        wanted = workload.replicas - len(pods) - self._coming.get(uid, 0)
        for _ in range(max(0, wanted)):
            self._coming[uid] = self._coming.get(uid, 0) + 1
            number = self._numbers.get(uid, 0) + self._coming[uid]
            seconds = self._noise.between(0.1, self._world.plan.replaced_within, "replaced", uid, number)
            self._world.agenda.after(seconds, lambda: self._replace(uid))
        for pod in sorted(pods, key=lambda one: (one.ready, one.uid))[: max(0, len(pods) - workload.replicas)]:
            self.terminate(pod)

    def _replace(self, uid: str) -> None:
        self._coming[uid] -= 1
        workload = self._store.get("workloads", uid)
        if workload is not None and len(self.pods_of(uid)) < workload.replicas:
            self._add(workload, ready=False)

    def _add(self, workload: Workload, *, ready: bool) -> None:
        number = self._numbers[workload.uid] = self._numbers.get(workload.uid, 0) + 1
        name = f"{workload.name}-{number}"
        owner = Owner(workload.api_version, workload.kind, workload.name, workload.uid)
        pod = replace(workload.template, uid=name, name=name, owner=owner, node="", ready=False, running=False)
        node = self._place(workload.placing, pod)
        is_ready = ready and bool(node)
        self.create(replace(pod, node=node, ready=is_ready, running=is_ready))
        if node and not ready:
            self._begin_later(name)

    def _begin_later(self, uid: str) -> None:
        self._world.agenda.after(self._noise.between(0.2, 4.0, "begins", uid), lambda: self._begin(uid))

    def _begin(self, uid: str) -> None:
        pod = self._store.get("pods", uid)
        if pod is not None and pod.stopping_until is None:
            self._store.change("pods", uid, ready=True, running=True)

    # -- scheduler ----------------------------------------------------------------------------------------------------

    def _place(self, placing: str, pod: Pod) -> str:
        nodes: dict[str, Node] = self._store.objects["nodes"]
        if placing not in ("good", "any"):
            return placing if placing in nodes else ""
        fitting = [name for name, node in nodes.items() if placing == "any" or self._is_good(node, pod)]
        if pod.claim is not None:
            fitting = [name for name in fitting if self._free(name, pod, is_good=placing == "good")]
        return self._noise.pick(fitting, "placed", pod.uid) if fitting else ""

    def _is_good(self, node: Node, pod: Pod) -> bool:
        return all(self._stays(pod, taint, pod.native) for taint in node.taints if taint.effect != "PreferNoSchedule")

    def _stays(self, pod: Pod, taint: Taint, native: tuple[Toleration, ...]) -> bool:
        """Return True if a pod tolerates a taint without end, as it is."""
        profiles = [one for one in self._store.objects["profiles"].values() if one.namespace == pod.namespace]
        extended = [
            *(pod.extended or ()),
            *(t for one in profiles if when.matches(one.selector, pod.labels) for t in one.tolerations),
        ]
        tolerations = when.tolerations_for(taint.key, _read(native), _read(tuple(extended)))
        kind, used = when.judged(tolerations, when.Taint(taint.key, taint.value, taint.effect, None))
        return kind == "tolerated" and used is not None and (used.seconds is None or used.operator in when.COMPARISONS)

    # -- devices ------------------------------------------------------------------------------------------------------

    def _free(self, node: str, pod: Pod, *, is_good: bool) -> list[str]:
        """The devices of a node that no claim has, and where the pod could stay."""
        now, native = self._world.devices, pod.claim or ()
        taken = {device for claim in now.claims.values() for device in claim.devices}
        return [
            device
            for device in now.of_pool(node)
            if device not in taken
            and all(not is_good or self._stays(pod, one, native) for one in now.taints(device)[0])
        ]

    def _allocate(self, pod: Pod) -> None:
        """The scheduler gives a pod a device of its node, a free one if there is any, before it binds it."""
        if pod.claim is None or not pod.node:
            return
        good = self._free(pod.node, pod, is_good=True) or self._free(pod.node, pod, is_good=False)
        devices = good or self._world.devices.of_pool(pod.node)
        if devices:
            device = self._noise.pick(devices, "allocated", pod.uid)
            claim = DeviceClaim(pod.namespace, pod.uid, (device,), pod.claim, (pod.uid,))
            self._store.put("claims", f"{pod.namespace}/{pod.uid}", claim)

    def _schedule_pending(self) -> None:
        for uid in list(self._pending):
            pod: Pod | None = self._store.get("pods", uid)
            workload = self._store.get("workloads", pod.owner.uid) if pod is not None and pod.owner else None
            node = "" if pod is None or workload is None else self._place(workload.placing, pod)
            if node:
                del self._pending[uid]
                self._allocate(replace(pod, node=node))
                bound_at = float(int(self._world.api_wall()))
                self._store.change("pods", uid, node=node, bound_at=bound_at)
                self._begin_later(uid)

    # -- budgets ------------------------------------------------------------------------------------------------------

    def _count_later(self, budget: Budget) -> None:
        key = f"{budget.namespace}/{budget.name}"
        if (budget.counts == "never" and budget.observed) or key in self._counting:
            return
        self._counting[key] = None
        seconds = LATE_SECONDS if budget.counts == "late" and budget.observed else 0.0
        seconds += self._noise.between(0.05, 0.4, "counted", key, budget.version)
        self._world.agenda.after(seconds, lambda: self.count(key))

    def count(self, key: str) -> None:
        """The controller of budgets writes a status."""
        self._counting.pop(key, None)
        budget: Budget | None = self._store.get("budgets", key)
        if budget is None:
            return
        pods = [
            pod
            for pod in self._store.objects["pods"].values()
            if pod.namespace == budget.namespace and pod.labels.get("app") == budget.app and pod.stopping_until is None
        ]
        workloads = [self._store.get("workloads", uid) for uid in dict.fromkeys(p.owner.uid for p in pods if p.owner)]
        expected = sum(one.replicas for one in workloads if one is not None) or len(pods)
        healthy = sum(pod.ready for pod in pods)
        desired = max(0, expected - budget.max_unavailable)
        self._store.change(
            "budgets",
            key,
            healthy=healthy,
            desired=desired,
            allowed=max(0, healthy - desired),
            observed=budget.generation,
        )


@lru_cache(maxsize=10_000)
def _read(tolerations: tuple[Toleration, ...]) -> tuple[when.Toleration, ...]:
    return tuple(one for one in when.tolerations_in(jsons.tolerations(tolerations)) if when.is_valid(one))
