"""What streams deliver becomes events for the machine, whose state is the cache.

Pods and nodes, whose complete lists the machine itself compares with what it knows; others are in ``keyed_handlers``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any, Generic

import structlog

from taintwarden.controller.complaints import Complaints
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.decoding.times import moment, readable
from taintwarden.controller.loop import Feed
from taintwarden.engine.machine import events
from taintwarden.engine.model import Pod
from taintwarden.kube.wire.kinds import MAX_TAINTS, Identity, NodeObject, Object, PodObject, version_number
from taintwarden.telemetry.metrics import WATCH_ENDS, Metrics

log = structlog.get_logger()


class StreamHandler(ABC, Generic[Object]):
    """What all handlers share: lists, restarts, and objects that do not decode.

    Objects are known by a key. What a list names is collected until its end.

    Args:
        resource: whose stream it receives.
        feed: takes the events.
        metrics: counts restarts and faults.

    """

    def __init__(self, resource: str, feed: Feed, metrics: Metrics) -> None:
        self.resource = resource
        self.feed = feed
        self.metrics = metrics
        self.is_live = True
        """Whether what was delivered is up to date. Not known before the stream begins."""
        self._listed: dict[Any, Any] = {}
        """Keys of the objects that a list names, while it is read."""
        self._is_listing = False
        """Whether a list has begun and did not end. Until then no change is delivered."""
        self._complaints = Complaints()
        metrics.undecodable.labels(resource)
        for reason in WATCH_ENDS:
            metrics.watch_restarts.labels(resource, reason)

    async def run(self) -> None:
        """Do what is to be done later, if anything."""

    def key(self, obj: Object) -> Any:
        """What identifies the object: its name, after that of its namespace if it has one."""
        return str(Identity(obj.metadata.name, obj.metadata.namespace))

    def key_of(self, what: Identity) -> Any:
        """The same key, of an object that was deleted or does not decode; None if too little of it is known."""
        return str(what) if what.name else None

    @abstractmethod
    def see(self, key: Any, obj: Object) -> None:
        """An object was listed, added or modified: pass it on."""

    @abstractmethod
    def lose(self, key: Any) -> None:
        """An object is gone: withdraw what was passed on, if anything."""

    @abstractmethod
    def compare(self, listed: Mapping[Any, Any], version: int) -> None:
        """A list of this version is complete: what it does not name is gone."""

    def list_began(self) -> None:
        """Remember from here what the list names."""
        self._listed, self._is_listing = {}, True

    def listed(self, objects: Sequence[Object]) -> None:
        """One page of a list."""
        for obj in objects:
            key = self.key(obj)
            self._listed[key] = None
            self.see(key, obj)

    def list_ended(self, resource_version: str) -> None:
        """What the list did not name is gone."""
        listed, self._listed, self._is_listing = self._listed, {}, False
        self.compare(listed, version_number(resource_version, unreadable=-1))

    def seen(self, obj: Object) -> None:
        """An object was added or modified."""
        self.see(self.key(obj), obj)

    def lost(self, what: Identity) -> bool:
        """An object was deleted. False: too little of it is known, and nothing was done."""
        key = self.key_of(what)
        if key is not None:
            self.lose(key)
        return key is not None

    def reached(self, resource_version: str) -> None:
        """Only the node stream's progress matters."""

    def live(self, *, live: bool) -> None:
        """No pod is evicted because of data from before a disconnection."""
        if live != self.is_live:
            self.is_live = live
            self.feed(events.ViewChanged(self.resource, live))

    def undecodable(self, what: Identity, reason: str) -> None:
        """Report it."""
        self.complain(str(what), reason)

    def restarted(self, reason: str, detail: str) -> None:
        """Count why a watch ended; log it unless it simply ran out."""
        self.metrics.watch_restarts.labels(self.resource, reason).inc()
        if reason != "ended":
            log.warning("watch-restarted", resource=self.resource, reason=reason, detail=detail)

    def complain(self, name: str, reason: str) -> None:
        """Count it always, log it once."""
        self.metrics.undecodable.labels(self.resource).inc()
        if self._complaints.is_new(name, reason):
            log.warning("object-undecodable", resource=self.resource, name=name, reason=reason)


class PodHandler(StreamHandler[PodObject]):
    """Receives the pod stream."""

    def __init__(self, resource: str, feed: Feed, metrics: Metrics, decoder: Decoder) -> None:
        super().__init__(resource, feed, metrics)
        self._decoder = decoder

    def key(self, obj: PodObject) -> str:
        """The UID."""
        return obj.metadata.uid

    def key_of(self, what: Identity) -> tuple[str, str] | None:
        """UID and node, by which the machine knows pods: none that is not bound."""
        return None if not what.uid or what.node_name is None else (what.uid, what.node_name)

    def see(self, key: str, obj: PodObject) -> None:
        """A pod, which may terminate."""
        if (pod := self._running(obj)) is not None:
            self.feed(events.PodSeen(pod))

    def lose(self, key: tuple[str, str]) -> None:
        """A pod that was bound."""
        if key[1]:
            self.feed(events.PodGone(*key))

    def listed(self, objects: Sequence[PodObject]) -> None:
        """One page of pods: one event for those that run."""
        running = []
        for obj in objects:
            self._listed[obj.metadata.uid] = intern(obj.spec.node_name)
            if (pod := self._running(obj)) is not None:
                running.append(pod)
        if running:
            self.feed(events.PodsSeen(tuple(running)))

    def compare(self, listed: Mapping[str, str], version: int) -> None:
        """The machine does it: which pods are on which nodes."""
        self.feed(events.PodsListed(listed, version))

    def undecodable(self, what: Identity, reason: str) -> None:
        """The pod is still there, also if a list says so."""
        super().undecodable(what, reason)
        if self._is_listing and what.uid and what.node_name:
            self._listed[what.uid] = what.node_name

    def _running(self, obj: PodObject) -> Pod | None:
        """The pod if it runs; one that does not is gone for the machine, and one that cannot be read is reported."""
        terminates_at = readable(obj.metadata.deletion_timestamp, moment)
        try:
            pod = self._decoder.pod(obj)
            leaving = self._decoder.bound(obj) if terminates_at is not None and not obj.is_mirror else None
        except ValueError as error:
            self.complain(f"{obj.metadata.namespace}/{obj.metadata.name}", str(error))
            return None
        if pod is None and obj.spec.node_name:
            self.feed(events.PodGone(obj.metadata.uid, obj.spec.node_name, terminates_at, leaving))
        return pod


class NodeHandler(StreamHandler[NodeObject]):
    """Receives the node stream."""

    def __init__(self, resource: str, feed: Feed, metrics: Metrics, decoder: Decoder) -> None:
        super().__init__(resource, feed, metrics)
        self._decoder = decoder

    def see(self, key: str, obj: NodeObject) -> None:
        """A node, which may be new."""
        if len(obj.spec.taints) > MAX_TAINTS:
            self.complain(key, f"has more than {MAX_TAINTS} taints, and only the first {MAX_TAINTS} count")
        self.feed(events.NodeSeen(self._decoder.node(obj), listed=self._is_listing))

    def lose(self, key: str) -> None:
        """A node is gone."""
        self.feed(events.NodeGone(key))

    def compare(self, listed: Mapping[str, None], version: int) -> None:
        """The machine does it."""
        self.feed(events.NodesListed(frozenset(listed), version))

    def undecodable(self, what: Identity, reason: str) -> None:
        """What is known of the node is out of date: no pod of it is evicted until it can be read again."""
        super().undecodable(what, reason)
        if what.name:
            self._listed[what.name] = None  # a list that says so names it
            self.feed(events.NodeUnreadable(what.name))

    def reached(self, resource_version: str) -> None:
        """How fresh our knowledge of nodes is."""
        self.feed(events.NodesReached(version_number(resource_version, unreadable=-1)))
