"""From objects of the API to values of the engine: interned, small, and only what a decision needs.

What a stream delivers becomes an event for the machine, whose state is the cache.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec
import structlog

from taintwarden.api.errors import FieldError
from taintwarden.api.tolerations import parse_tolerations
from taintwarden.controller.clock import Clock
from taintwarden.controller.times import latest_moment
from taintwarden.engine.interning import Interner
from taintwarden.engine.machine import events
from taintwarden.engine.machine.events import Event
from taintwarden.engine.model import Node, Pod, Taint, Toleration, Tolerations
from taintwarden.kube.objects import NamespaceObject, NodeObject, PodAnnotations, PodObject
from taintwarden.telemetry.metrics import Metrics

Feed = Callable[[Event], None]
MAX_REMEMBERED_ANNOTATIONS = 10_000
NO_ANNOTATIONS = PodAnnotations()

log = structlog.get_logger()


class PodIssue(msgspec.Struct, frozen=True):
    """A pod whose annotation has entries that cannot be used; they count as absent."""

    name: str
    namespace: str
    uid: str
    errors: tuple[FieldError, ...]


class Translator:
    """Objects in, engine values out. Equal things come out as the same object."""

    def __init__(self, clock: Clock, on_issue: Callable[[PodIssue], None] = lambda _: None) -> None:
        self._clock = clock
        self._on_issue = on_issue
        self._interner = Interner()
        self._names: dict[str, str] = {}
        self._reported: dict[str, str] = {}
        self._annotations: dict[str, tuple[tuple[Toleration, ...], tuple[FieldError, ...]]] = {}

    def pod(self, obj: PodObject) -> Pod | None:
        """The pod, or None where there is nothing to evict: terminating, finished, unbound or mirror pods.

        Raises:
            ValueError: a timestamp of the pod is none.

        """
        meta, spec = obj.metadata, obj.spec
        annotations = meta.annotations or NO_ANNOTATIONS
        if (
            not spec.node_name
            or meta.deletion_timestamp is not None
            or annotations.mirror is not None
            or obj.status.phase in ("Succeeded", "Failed")
        ):
            return None
        extended: tuple[Toleration, ...] = ()
        if annotations.tolerations is not None:
            extended, errors = self._parse(annotations.tolerations)
            if errors and self._is_news(meta.uid, annotations.tolerations):
                self._on_issue(PodIssue(meta.name, meta.namespace, meta.uid, errors))
        pod_class = self._interner.pod_class(
            self._name(meta.namespace),
            meta.labels,
            Tolerations(tuple(spec.tolerations), extended),
            priority=spec.priority or 0,
            daemon_set=any(owner.controller and owner.kind == "DaemonSet" for owner in meta.owner_references),
            do_not_evict=annotations.do_not_evict == "true",
            do_not_disrupt=annotations.do_not_disrupt == "true" or annotations.safe_to_evict == "false",
        )
        bound_at = self._bound_at(obj)
        version = parse_version_number(meta.resource_version)
        return Pod(meta.uid, meta.name, self._name(spec.node_name), pod_class, bound_at, version)

    def node(self, obj: NodeObject) -> Node:
        """The node with its taints. A ``timeAdded`` that is no time counts as not set."""
        meta = obj.metadata
        now = self._clock().wall
        taints = []
        for taint in obj.spec.taints:
            added_at = None
            if taint.time_added is not None:
                try:
                    added_at = latest_moment(taint.time_added, now)
                except ValueError:
                    log.warning("time-added-unreadable", node=meta.name, taint=taint.key, value=taint.time_added)
            taints.append((Taint(taint.key, taint.value, taint.effect), added_at))
        history = meta.annotations.history if meta.annotations else ""
        version = parse_version_number(meta.resource_version)
        return Node(self._name(meta.name), meta.uid, meta.labels, tuple(taints), version, history)

    def _bound_at(self, obj: PodObject) -> float:
        now = self._clock().wall
        for condition in obj.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "True" and condition.last_transition_time:
                return latest_moment(condition.last_transition_time, now)
        created = obj.metadata.creation_timestamp
        return latest_moment(created, now) if created else now

    def _parse(self, text: str) -> tuple[tuple[Toleration, ...], tuple[FieldError, ...]]:
        found = self._annotations.get(text)
        if found is None:
            if len(self._annotations) >= MAX_REMEMBERED_ANNOTATIONS:
                self._annotations.clear()
            found = self._annotations[text] = parse_tolerations(text)
        return found

    def _is_news(self, uid: str, text: str) -> bool:
        if self._reported.get(uid) == text:
            return False
        if len(self._reported) >= MAX_REMEMBERED_ANNOTATIONS:
            self._reported.clear()
        self._reported[uid] = text
        return True

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, name)


def parse_version_number(text: str, unreadable: int = 2**63) -> int:
    """A resourceVersion as a number (they are comparable, KEP-5504); what is none counts as newer than anything."""
    return int(text) if text.isascii() and text.isdigit() else unreadable


class _Sink:
    """What all three sinks share: telling of restarts and of objects that do not decode."""

    def __init__(self, resource: str, feed: Feed, translator: Translator, metrics: Metrics) -> None:
        self.resource = resource
        self.feed = feed
        self.translator = translator
        self.metrics = metrics
        self.listed_once = asyncio.Event()
        self._undecodable: dict[str, str] = {}
        self._live = True

    def reached(self, resource_version: str) -> None:
        """Only the node stream's progress matters."""

    def live(self, *, live: bool) -> None:
        """Nobody is evicted on what we knew before we were cut off."""
        if live != self._live:
            self._live = live
            self.feed(events.ViewChanged(self.resource, live))

    def undecodable(self, name: str, reason: str) -> None:
        """Count it always, log it once."""
        self.metrics.undecodable.labels(self.resource).inc()
        if self._undecodable.get(name) != reason:
            if len(self._undecodable) > 1_000:
                self._undecodable.clear()
            self._undecodable[name] = reason
            log.warning("object-undecodable", resource=self.resource, name=name, reason=reason)

    def restarted(self, reason: str, detail: str) -> None:
        """Count why a watch ended; log it unless it simply ran out."""
        self.metrics.watch_restarts.labels(self.resource, reason).inc()
        if reason != "ended":
            log.warning("watch-restarted", resource=self.resource, reason=reason, detail=detail)


class PodSink(_Sink):
    """Receives the pod stream."""

    _seen: set[str]

    def list_began(self) -> None:
        """Remember from here which pods the list names."""
        self._seen = set()

    def listed(self, objects: Sequence[PodObject]) -> None:
        """One page of pods."""
        for obj in objects:
            self._see(obj)
            self._seen.add(obj.metadata.uid)

    def list_ended(self, resource_version: str) -> None:
        """Whoever the list did not name is gone."""
        self.feed(events.PodsListed(frozenset(self._seen)))
        self._seen = set()
        self.listed_once.set()

    def changed(self, changes: Sequence[tuple[str, PodObject]]) -> None:
        """Watch frames."""
        for kind, obj in changes:
            if kind == "DELETED":
                self.feed(events.PodGone(obj.metadata.uid, obj.spec.node_name))
            else:
                self._see(obj)

    def _see(self, obj: PodObject) -> None:
        try:
            pod = self.translator.pod(obj)
        except ValueError as error:
            self.undecodable(f"{obj.metadata.namespace}/{obj.metadata.name}", str(error))
            return
        if pod is None:
            self.feed(events.PodGone(obj.metadata.uid, obj.spec.node_name))
        else:
            self.feed(events.PodSeen(pod))


class NodeSink(_Sink):
    """Receives the node stream."""

    _seen: set[str]

    def list_began(self) -> None:
        """Remember from here which nodes the list names."""
        self._seen = set()

    def listed(self, objects: Sequence[NodeObject]) -> None:
        """One page of nodes."""
        for obj in objects:
            self._seen.add(obj.metadata.name)
            self.feed(events.NodeSeen(self.translator.node(obj)))

    def list_ended(self, resource_version: str) -> None:
        """Whichever the list did not name is gone."""
        self.feed(events.NodesListed(frozenset(self._seen)))
        self.reached(resource_version)
        self.listed_once.set()

    def changed(self, changes: Sequence[tuple[str, NodeObject]]) -> None:
        """Watch frames."""
        for kind, obj in changes:
            if kind == "DELETED":
                self.feed(events.NodeGone(obj.metadata.name))
            else:
                self.feed(events.NodeSeen(self.translator.node(obj)))

    def reached(self, resource_version: str) -> None:
        """How fresh our knowledge of nodes is."""
        self.feed(events.NodesReached(parse_version_number(resource_version, unreadable=-1)))


class NamespaceSink(_Sink):
    """Receives the namespace stream."""

    def __init__(self, resource: str, feed: Feed, translator: Translator, metrics: Metrics) -> None:
        super().__init__(resource, feed, translator, metrics)
        self._known: dict[str, None] = {}
        self._seen: set[str] = set()

    def list_began(self) -> None:
        """Remember from here which namespaces the list names."""
        self._seen = set()

    def listed(self, objects: Sequence[NamespaceObject]) -> None:
        """One page of namespaces."""
        for obj in objects:
            self._seen.add(obj.metadata.name)
            self._see(obj)

    def list_ended(self, resource_version: str) -> None:
        """Whichever was known and the list did not name is gone."""
        for name in [name for name in self._known if name not in self._seen]:
            self._lose(name)
        self.listed_once.set()

    def changed(self, changes: Sequence[tuple[str, NamespaceObject]]) -> None:
        """Watch frames."""
        for kind, obj in changes:
            if kind == "DELETED":
                self._lose(obj.metadata.name)
            else:
                self._see(obj)

    def _see(self, obj: NamespaceObject) -> None:
        self._known[obj.metadata.name] = None
        self.feed(events.NamespaceSeen(obj.metadata.name, obj.metadata.labels))

    def _lose(self, name: str) -> None:
        self._known.pop(name, None)
        self.feed(events.NamespaceGone(name))
