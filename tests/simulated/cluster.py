"""The truth, the clock, and the machine that watches one and is moved by the other."""

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from taintwarden.controller.cache import PodIssue, Translator
from taintwarden.engine.machine import Machine, commands, events
from taintwarden.engine.machine.events import Event, Outcome
from taintwarden.engine.model import Instant, Policy
from taintwarden.kube.objects import NodeObject, PodObject

START = 1_700_000_000.25
CALL_SECONDS = 0.05
"""How long an API call takes."""

Json = dict[str, Any]


class Simulation:
    """A cluster with one operator in it. ``at`` is seconds since the start."""

    def __init__(self, policies: Sequence[Policy], **machine_options: Any) -> None:
        self.at = 0.0
        self.clock_step = 0.0
        self.policies = tuple(policies)
        self.nodes: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}
        self.evicted: dict[str, float] = {}
        """UID -> when its eviction was accepted."""
        self.calls: list[tuple[float, str, bool]] = []
        """Every eviction call: when, whose UID, whether it was a DELETE."""
        self.notices: list[tuple[float, commands.Notice]] = []
        self.issues: list[PodIssue] = []
        self.judge: Callable[[Json, bool], events.Settled | None] = lambda pod, delete: None
        """A fault or a budget: returns how a call on this pod ends, None for well."""
        self.witness: Callable[[str], None] = lambda uid: None
        """Sees every eviction call at the moment it is sent."""
        self.node_lag = 0.0
        self.machine: Machine | None = None
        self._machine_options = machine_options
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._version = itertools.count(1)
        self._uids = itertools.count(1)
        self._life = 0

    # -- the operator ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start an operator: it lists, syncs and leads at once."""
        self._life += 1
        self.translator = Translator(lambda: self.instant, self.issues.append)
        self.machine = Machine(**self._machine_options)
        self.newest_version = -1
        self.feed(events.PoliciesChanged(self.policies))
        for node in self.nodes.values():
            self.feed(self._node_seen(node))
        self.feed(events.NodesReached(self._last_version()))
        for pod in self.pods.values():
            self._show(pod)
        self.feed(events.Synced())
        self.feed(events.LeadershipChanged(leading=True))
        self._wake()

    def kill(self) -> None:
        """Kill -9: memory is gone, calls that were sent are still carried out."""
        self.machine = None
        self._life += 1

    def restart(self, downtime: float = 0.0) -> None:
        """Kill it and start another after ``downtime`` seconds."""
        self.kill()
        self.run(self.at + downtime)
        self.start()

    def feed(self, event: Event) -> None:
        """Hand the machine an event and carry out what it commands."""
        if self.machine is None:
            return
        if isinstance(event, events.PodSeen):
            self.newest_version = max(self.newest_version, event.pod.resource_version)
        for command in self.machine.step(event, self.instant):
            self._carry_out(command)

    @property
    def instant(self) -> Instant:
        """Both clocks now; ``clock_step`` moves only the wall clock."""
        return Instant(START + self.at + self.clock_step, 5_000.0 + self.at)

    def pending(self) -> dict[str, float]:
        """Pods that have to leave, with their deadlines in seconds since the start."""
        assert self.machine is not None
        return {str(p.pod): p.due_at - START for p in self.machine.pending.values()}

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
            self.feed(events.Woke())
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

    def touch_node(self, name: str) -> None:
        """Something else of the node changes."""
        self._node_changed(self.nodes[name])

    def delete_node(self, name: str) -> None:
        """A node goes; its pods stay until somebody collects them."""
        del self.nodes[name]
        self._deliver(self.node_lag, lambda: self.feed(events.NodeGone(name)))

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
        pod = {"metadata": metadata, "spec": spec, "status": {"phase": more.get("phase", "Running")}}
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
        self._deliver(0.0, lambda: self.feed(events.PodGone(uid, node)))

    def timestamp(self) -> str:
        """Now, as the API server writes it: whole seconds, cut off."""
        return datetime.fromtimestamp(int(START + self.at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _dated(self, taint: Json) -> Json:
        return taint | ({"timeAdded": self.timestamp()} if taint.get("timeAdded") == "now" else {})

    def _node_changed(self, node: Json) -> None:
        node["metadata"]["resourceVersion"] = str(next(self._version))
        snapshot = self._node_seen(node)
        version = int(node["metadata"]["resourceVersion"])
        self._deliver(self.node_lag, lambda: (self.feed(snapshot), self.feed(events.NodesReached(version))))

    def _pod_changed(self, pod: Json) -> None:
        pod["metadata"]["resourceVersion"] = str(next(self._version))
        self._deliver(0.0, lambda: self._show(pod))

    def _deliver(self, lag: float, action: Callable[[], Any]) -> None:
        """The watch brings it, unless another operator runs by then: that one has listed it."""
        life = self._life
        if lag:
            self.later(lag, lambda: action() if life == self._life else None)
        else:
            action()

    def _node_seen(self, node: Json) -> events.NodeSeen:
        translator = getattr(self, "translator", None) or Translator(lambda: self.instant)
        return events.NodeSeen(translator.node(msgspec.convert(node, NodeObject)))

    def _show(self, pod: Json) -> None:
        if self.machine is None:
            return
        seen = self.translator.pod(msgspec.convert(pod, PodObject))
        meta = pod["metadata"]
        self.feed(events.PodGone(meta["uid"], pod["spec"]["nodeName"]) if seen is None else events.PodSeen(seen))

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
                self.witness(command.pod.uid)
                self.later(CALL_SECONDS, lambda: answer(self._evict(command)))
            case commands.CheckNode():
                version = self.newest_version
                self.later(CALL_SECONDS, lambda: answer(self._check(command.name, version)))
            case commands.SaveHistory():
                self.later(CALL_SECONDS, lambda: answer(self._save(command)))
            case _:
                self.notices.append((self.at, command))

    def _evict(self, command: commands.Evict) -> events.Settled:
        uid = command.pod.uid
        pod = next((pod for pod in self.pods.values() if pod["metadata"]["uid"] == uid), None)
        if pod is None:
            return events.Settled(uid, Outcome.GONE)
        if (verdict := self.judge(pod, command.delete)) is not None:
            return verdict
        self.evicted[uid] = self.at
        pod["metadata"]["deletionTimestamp"] = self.timestamp()
        self._pod_changed(pod)
        return events.Settled(uid, Outcome.EVICTED)

    def _check(self, name: str, version: int) -> Event:
        node = self.nodes.get(name)
        seen = None if node is None else self._node_seen(node).node
        return events.NodeChecked(name, seen, version)

    def _save(self, command: commands.SaveHistory) -> events.HistorySaved:
        node = self.nodes.get(command.node)
        if node is None or node["metadata"]["uid"] != command.uid:
            return events.HistorySaved(command.node, succeeded=False)
        annotations = node["metadata"]["annotations"]
        if command.text != annotations.get("taintwarden.io/taint-history", ""):
            annotations["taintwarden.io/taint-history"] = command.text
            self._node_changed(node)
        return events.HistorySaved(command.node, succeeded=True)
