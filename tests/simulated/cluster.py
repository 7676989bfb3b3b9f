"""The truth, the clock, and the machine that watches one and is moved by the other."""

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.engine import commands, events
from taintwarden.engine.events import Event, WriteOutcome
from taintwarden.engine.machine import Machine
from taintwarden.engine.model import Instant
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Policy
from taintwarden.engine.records import GuardRecord
from taintwarden.kube.wire.kinds import NodeObject, PodObject

START = 1_700_000_000.25
CALL_SECONDS = 0.05
"""Seconds that an API call takes."""

Json = dict[str, Any]


class Simulation:
    """A cluster with one operator in it. ``at`` is seconds since the start."""

    def __init__(self, policies: Sequence[Policy], **machine_options: Any) -> None:
        self.at = 0.0
        self.policies = tuple(policies)
        self.nodes: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}
        self.evicted: dict[str, float] = {}
        """UID -> when its eviction was accepted."""
        self.calls: list[tuple[float, str, bool]] = []
        """Every eviction call: when, whose UID, whether it was a DELETE."""
        self.judge: Callable[[Json, bool], events.Settled | None] = lambda pod, delete: None
        """A fault or a budget: returns how a call on this pod ends, None for well."""
        self.node_lag = 0.0
        self.kubelet: Callable[[Json], tuple[float, float]] | None = None
        """Seconds that a pod has to stop, and seconds that it takes. None: an evicted pod stays, terminating."""
        self.observers: list[Callable[[str, Json], None]] = []
        """Called with ``changed``, ``terminating`` or ``gone``, and the pod, at the moment when it is true."""
        self.listers: list[Callable[[], Iterable[Event]]] = []
        """Other objects that are listed before an operator acts: workloads, budgets."""
        self.guard_records: dict[str, GuardRecord] = {}
        """Policy -> what is stored of its guard."""
        self.machine: Machine | None = None
        self._machine_options = machine_options
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._version = itertools.count(1)
        self._uids = itertools.count(1)
        self._life = 0
        self._boot = 0.0

    # -- the operator ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start an operator: it lists, syncs and leads at once."""
        self._life += 1
        self._boot += 1_000.0 * self._life  # another process has another monotonic clock
        self.decoder = Decoder(lambda: self.instant)
        self.machine = Machine(**self._machine_options)
        self.newest_version = -1
        self.feed(events.PoliciesChanged(self.policies))
        for node in self.nodes.values():
            self.feed(self._node_seen(node))
        self.feed(events.NodesReached(self._last_version()))
        self._list_the_rest()
        for name, record in self.guard_records.items():
            self.feed(events.GuardRestored(name, msgspec.structs.replace(record, reset="")))
        self.feed(events.Synced())
        self.feed(events.LeadershipChanged(leading=True))
        self._wake()

    def kill(self) -> None:
        """Kill -9: memory is gone, calls that were sent are still carried out."""
        self.machine = None
        self._life += 1

    def _list_the_rest(self) -> None:
        for lister in self.listers:
            for event in lister():
                self.feed(event)
        if self.machine is None:
            return
        shown = [self._pod_event(pod) for pod in self.pods.values()]
        for event in shown:
            if isinstance(event, events.PodGone):
                self.feed(event)
        self.feed(events.PodsSeen(tuple(event.pod for event in shown if isinstance(event, events.PodSeen))))
        self.feed(events.PodsListed({pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in self.pods.values()}))

    def change_policies(self, policies: Iterable[Policy]) -> None:
        """Other policies are in force."""
        self.policies = tuple(policies)
        self.guard_records = {p.name: r for p in policies if (r := self.guard_records.get(p.name)) is not None}
        self.feed(events.PoliciesChanged(self.policies))

    def restart(self, downtime: float = 0.0) -> None:
        """Kill it and start another after ``downtime`` seconds."""
        self.kill()
        self.run(self.at + downtime)
        self.start()

    def feed(self, event: Event) -> None:
        """Hand the machine an event and carry out what it commands."""
        if self.machine is None:
            return
        if isinstance(event, events.PodSeen | events.PodsSeen):
            pods = event.pods if isinstance(event, events.PodsSeen) else (event.pod,)
            self.newest_version = max([self.newest_version, *(pod.resource_version for pod in pods)])
        for command in self.machine.step(event, self.instant):
            self._carry_out(command)

    @property
    def instant(self) -> Instant:
        """Both clocks now."""
        # Whole microseconds, as clocks have: sums of floating point must not decide a tie.
        return Instant(round(START + self.at, 6), round(5_000.0 + self._boot + self.at, 6))

    # -- time -------------------------------------------------------------------------------------------------------

    def run(self, until: float) -> None:
        """Let time pass up to ``until``, event by event."""
        while True:
            self._wake()
            delay = None if self.machine is None else self.machine.wake_after(self.instant)
            times = [self._queue[0][0]] if self._queue else []
            # A millisecond of floating point must not make the clock stand still.
            times += [] if delay is None else [self.at + max(delay, 0.001)]
            upcoming = min(times, default=until)
            if upcoming > until:
                break
            if not times:
                break
            self.at = max(self.at, upcoming)
            while self._queue and self._queue[0][0] <= self.at:
                heapq.heappop(self._queue)[2]()
        self.at = max(self.at, until)
        self._wake()

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something after ``seconds``."""
        heapq.heappush(self._queue, (self.at + seconds, next(self._order), action))

    def _wake(self) -> None:
        for _ in range(10_000):
            if self.machine is None or self.machine.wake_after(self.instant) != 0.0:
                return
            self.feed(events.Tick())
        msg = "the machine never comes to rest"
        raise AssertionError(msg)

    # -- the truth ----------------------------------------------------------------------------------------------------

    def create_node(self, name: str, taints: Iterable[Json] = (), labels: dict[str, str] | None = None) -> None:
        """A node appears."""
        node = {
            "metadata": {"name": name, "uid": f"node-{next(self._uids)}", "labels": labels or {}, "annotations": {}},
            "spec": {"taints": [dict(taint) for taint in taints]},
        }
        self.nodes[name] = node
        self._node_changed(node)

    def set_taints(self, name: str, taints: Iterable[Json]) -> None:
        """A node's taints are replaced."""
        node = self.nodes[name]
        node["spec"]["taints"] = [self._dated(taint) for taint in taints]
        self._node_changed(node)

    def set_labels(self, name: str, labels: dict[str, str]) -> None:
        """A node's labels are replaced."""
        self.nodes[name]["metadata"]["labels"] = labels
        self._node_changed(self.nodes[name])

    def touch_node(self, name: str) -> None:
        """Something else of the node changes."""
        self._node_changed(self.nodes[name])

    def delete_node(self, name: str) -> None:
        """Delete a node; its pods stay until the garbage collection deletes them."""
        del self.nodes[name]
        self.deliver(lambda: self.feed(events.NodeGone(name)), self.node_lag)

    def create_pod(self, name: str, node: str = "", tolerations: Sequence[Json] = (), **more: Any) -> str:
        """A pod appears, bound if ``node`` is given. Returns its UID."""
        namespace = more.get("namespace", "default")
        uid = more.get("uid") or f"pod-{next(self._uids)}"
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "creationTimestamp": self.timestamp(),
            "labels": more.get("labels", {}),
            "annotations": more.get("annotations", {}),
            "ownerReferences": more.get("owners", []),
        }
        spec = {"nodeName": node, "tolerations": list(tolerations), "priority": more.get("priority", 0)}
        spec["terminationGracePeriodSeconds"] = more.get("grace", 30)
        status = {"phase": more.get("phase", "Running"), "conditions": more.get("conditions", [])}
        pod = {"metadata": metadata, "spec": spec, "status": status}
        self.pods[f"{namespace}/{name}"] = pod
        self._pod_changed(pod)
        return uid

    def bind_pod(self, key: str, node: str) -> None:
        """The scheduler binds a pod."""
        pod = self.pods[key]
        pod["spec"]["nodeName"] = node
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": self.timestamp()}
        pod["status"]["conditions"] = [bound]
        self._pod_changed(pod)

    def set_tolerations(self, key: str, tolerations: Sequence[Json]) -> None:
        """A pod's tolerations are replaced."""
        self.pods[key]["spec"]["tolerations"] = list(tolerations)
        self._pod_changed(self.pods[key])

    def touch_pod(self, key: str) -> None:
        """Something else of the pod changes."""
        self._pod_changed(self.pods[key])

    def delete_pod(self, key: str) -> None:
        """A pod goes at once."""
        pod = self.pods.pop(key)
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        self.deliver(lambda: self.feed(events.PodGone(uid, node)))
        self._observe("gone", pod)

    def terminate(self, pod: Json, grace: int | None = None) -> None:
        """A pod is asked to stop, and does so if there is a kubelet."""
        if "deletionTimestamp" in pod["metadata"]:
            return
        allowed, takes = (0.0, None) if self.kubelet is None else self.kubelet(pod)
        if grace is not None and takes is not None:
            allowed, takes = float(grace), min(takes, float(grace))
        pod["metadata"]["deletionTimestamp"] = self.timestamp(allowed)
        if takes is not None:
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            self.later(takes, lambda: self.delete_pod(name) if self.pods.get(name) is pod else None)
        self._pod_changed(pod)
        self._observe("terminating", pod)

    def set_ready(self, pod: Json, ready: bool) -> None:
        """A pod becomes Ready, or is not any more."""
        conditions = [one for one in pod["status"].get("conditions", []) if one["type"] != "Ready"]
        pod["status"]["conditions"] = [*conditions, {"type": "Ready", "status": str(ready)}]
        self._pod_changed(pod)
        self._observe("changed", pod)

    def _observe(self, what: str, pod: Json) -> None:
        for observer in self.observers:
            observer(what, pod)

    def timestamp(self, ahead: float = 0.0) -> str:
        """Now, or ``ahead`` seconds later, as the API server writes it: whole seconds, truncated."""
        return datetime.fromtimestamp(int(START + self.at + ahead), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _dated(self, taint: Json) -> Json:
        return taint | ({"timeAdded": self.timestamp()} if taint.get("timeAdded") == "now" else {})

    def _node_changed(self, node: Json) -> None:
        node["metadata"]["resourceVersion"] = str(next(self._version))
        snapshot = self._node_seen(node)
        version = int(node["metadata"]["resourceVersion"])
        self.deliver(lambda: (self.feed(snapshot), self.feed(events.NodesReached(version))), self.node_lag)

    def _pod_changed(self, pod: Json) -> None:
        pod["metadata"]["resourceVersion"] = str(next(self._version))
        self.deliver(lambda: self._show(pod))

    def deliver(self, action: Callable[[], Any], lag: float = 0.0) -> None:
        """The watch brings it, unless another operator runs by then: that one has listed it."""
        life = self._life
        if lag:
            self.later(lag, lambda: action() if life == self._life else None)
        else:
            action()

    def _node_seen(self, node: Json) -> events.NodeSeen:
        decoder = getattr(self, "decoder", None) or Decoder(lambda: self.instant)
        return events.NodeSeen(decoder.node(msgspec.convert(node, NodeObject)))

    def _show(self, pod: Json) -> None:
        if self.machine is not None:
            self.feed(self._pod_event(pod))

    def _pod_event(self, pod: Json) -> events.PodSeen | events.PodGone:
        seen = self.decoder.pod(msgspec.convert(pod, PodObject))
        if seen is not None:
            return events.PodSeen(seen)
        meta = pod["metadata"]
        until = None
        if self.kubelet is not None and "deletionTimestamp" in meta:
            until = datetime.fromisoformat(meta["deletionTimestamp"]).timestamp()
        return events.PodGone(meta["uid"], pod["spec"]["nodeName"], until)

    def _last_version(self) -> int:
        return next(self._version)

    # -- commands -----------------------------------------------------------------------------------------------------

    def _carry_out(self, command: commands.Command) -> None:
        life = self._life

        def answer(event: Event) -> None:
            if life == self._life:
                self.feed(event)

        match command:
            case commands.Evict():
                self.calls.append((self.at, command.pod.uid, command.delete))
                self.later(CALL_SECONDS, lambda: answer(self._evict(command)))
            case commands.CheckNode():
                version = self.newest_version
                self.later(CALL_SECONDS, lambda: answer(self._check(command.name, version)))
            case commands.CheckPod(pod):
                self.later(CALL_SECONDS, lambda: answer(events.PodChecked(pod.uid, self._runs(pod.uid))))
            case commands.SaveHistory():
                self.later(CALL_SECONDS, lambda: answer(events.Written(command, *self._save(command))))
            case commands.SaveGuard():
                self.later(CALL_SECONDS, lambda: answer(events.Written(command, self._save_guard(command))))
            case commands.ClearGuardReset():
                self.later(CALL_SECONDS, lambda: answer(events.Written(command, WriteOutcome.DONE)))
            case _:
                pass

    def _evict(self, command: commands.Evict) -> events.Settled:
        uid = command.pod.uid
        pod = next((pod for pod in self.pods.values() if pod["metadata"]["uid"] == uid), None)
        if pod is None:
            return events.Settled(uid, Outcome.GONE)
        if command.as_seen and int(pod["metadata"]["resourceVersion"]) != command.pod.resource_version:
            return events.Settled(uid, Outcome.NOT_SENT)
        if (verdict := self.judge(pod, command.delete)) is not None:
            return verdict
        self.evicted.setdefault(uid, self.at)
        self.terminate(pod, command.grace_period_seconds)
        return events.Settled(uid, Outcome.ACCEPTED)

    def _runs(self, uid: str) -> bool:
        found = (pod["metadata"] for pod in self.pods.values() if pod["metadata"]["uid"] == uid)
        return any("deletionTimestamp" not in metadata for metadata in found)

    def _check(self, name: str, version: int) -> Event:
        node = self.nodes.get(name)
        found = None if node is None else int(node["metadata"]["resourceVersion"])
        return events.NodeChecked(name, found, version)

    def _save_guard(self, command: commands.SaveGuard) -> WriteOutcome:
        policy = command.policy
        exists = any(one.name == policy.name and one.uid == policy.uid for one in self.policies)
        if not exists:
            return WriteOutcome.GONE
        self.guard_records[policy.name] = command.record
        return WriteOutcome.DONE

    def _save(self, command: commands.SaveHistory) -> tuple[WriteOutcome, int]:
        node = self.nodes.get(command.node)
        if node is None or node["metadata"]["uid"] != command.uid:
            return WriteOutcome.GONE, -1
        if command.version not in (-1, int(node["metadata"]["resourceVersion"])):
            return WriteOutcome.OUTDATED, -1
        annotations = node["metadata"]["annotations"]
        if command.text != annotations.get("taintwarden.io/taint-history", ""):
            annotations["taintwarden.io/taint-history"] = command.text
            self._node_changed(node)
        return WriteOutcome.DONE, int(node["metadata"]["resourceVersion"])
