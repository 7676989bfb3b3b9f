"""Handlers of the streams of pods and nodes, which feed events to the machine. Its state is the cache.

The machine itself compares complete lists of pods and nodes with its state. ``keyed_handlers`` has the other kinds.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any, Generic

import structlog

from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.decoding.times import moment, time_of
from taintwarden.controller.reported_faults import ReportedFaults
from taintwarden.engine import events
from taintwarden.engine.events import Feed
from taintwarden.engine.model import Pod
from taintwarden.kube.wire.kinds import MAX_TAINTS, Identity, NodeObject, Object, PodObject, version_number
from taintwarden.telemetry.metrics import WATCH_ENDS, Metrics

log = structlog.get_logger()


class StreamHandler(ABC, Generic[Object]):
    """Base of all handlers: lists, restarts, and objects that cannot be decoded.

    Each object has a key. The keys of a list are collected until the list ends.

    Args:
        resource: name of the resource whose stream is received.
        feed: receives the events.
        metrics: counts restarts and faults.

    """

    def __init__(self, resource: str, feed: Feed, metrics: Metrics) -> None:
        self.resource = resource
        self.feed = feed
        self.metrics = metrics
        self.is_live = True
        """True if the delivered objects are up to date. Also True until the stream begins."""
        self._listed: dict[Any, Any] = {}
        """Keys of the objects of a list, while it is read."""
        self._is_listing = False
        """True if a list has begun and did not end. Until its end no change is delivered."""
        self._reported_faults = ReportedFaults()
        metrics.undecodable.labels(resource)
        for reason in WATCH_ENDS:
            metrics.watch_restarts.labels(resource, reason)

    async def run(self) -> None:
        """Do the deferred work of the handler; nothing by default."""

    def key(self, obj: Object) -> Any:
        """Return the key of an object: its name, after ``namespace/`` if it has one."""
        return str(Identity(obj.metadata.name, obj.metadata.namespace))

    def key_of(self, what: Identity) -> Any:
        """Return the key of an object that was deleted or cannot be decoded; None if too little of it is known."""
        return str(what) if what.name else None

    @abstractmethod
    def pass_on(self, key: Any, obj: Object) -> None:
        """Pass on an object that was listed, added or modified."""

    @abstractmethod
    def withdraw(self, key: Any) -> None:
        """Withdraw a deleted object, if it was passed on."""

    @abstractmethod
    def compare(self, listed: Mapping[Any, Any], version: int) -> None:
        """Withdraw all objects that the complete list of this version does not contain."""

    def list_began(self) -> None:
        """Begin to collect the keys of a list."""
        self._listed, self._is_listing = {}, True

    def listed(self, objects: Sequence[Object]) -> None:
        """Pass on the objects of one page of a list."""
        for obj in objects:
            key = self.key(obj)
            self._listed[key] = None
            self.pass_on(key, obj)

    def list_ended(self, resource_version: str) -> None:
        """Withdraw all objects that the list did not contain."""
        listed, self._listed, self._is_listing = self._listed, {}, False
        self.compare(listed, version_number(resource_version, unreadable=-1))

    def seen(self, obj: Object) -> None:
        """Pass on an object that was added or modified."""
        self.pass_on(self.key(obj), obj)

    def lost(self, what: Identity) -> bool:
        """Withdraw a deleted object. Return False if too little of it is known to do so."""
        key = self.key_of(what)
        if key is not None:
            self.withdraw(key)
        return key is not None

    def reached(self, resource_version: str) -> None:
        """Ignore the progress of the stream, which is used only for nodes."""

    def live(self, *, live: bool) -> None:
        """Pass on whether the objects are up to date: no pod is evicted because of data from before a disconnection."""
        if live != self.is_live:
            self.is_live = live
            self.feed(events.ViewChanged(self.resource, live))

    def undecodable(self, what: Identity, reason: str) -> None:
        """Report an object that cannot be decoded."""
        self.report_fault(str(what), reason)

    def restarted(self, reason: str, detail: str) -> None:
        """Count why a watch ended, and log it unless its time was over."""
        self.metrics.watch_restarts.labels(self.resource, reason).inc()
        if reason != "ended":
            log.warning("watch-restarted", resource=self.resource, reason=reason, detail=detail)

    def report_fault(self, name: str, reason: str) -> None:
        """Count a fault of an object, and log it once while it does not change."""
        self.metrics.undecodable.labels(self.resource).inc()
        if self._reported_faults.is_new(name, reason):
            log.warning("object-undecodable", resource=self.resource, name=name, reason=reason)


class PodHandler(StreamHandler[PodObject]):
    """Receives the pod stream."""

    def __init__(self, resource: str, feed: Feed, metrics: Metrics, decoder: Decoder) -> None:
        super().__init__(resource, feed, metrics)
        self._decoder = decoder

    def key(self, obj: PodObject) -> str:
        """Return the UID of the pod."""
        return obj.metadata.uid

    def key_of(self, what: Identity) -> tuple[str, str] | None:
        """Return UID and node of a pod, with an empty node if it is not bound; None if one of them is unknown."""
        return None if not what.uid or what.node_name is None else (what.uid, what.node_name)

    def pass_on(self, key: str, obj: PodObject) -> None:
        """Pass on a pod. One that cannot be evicted counts as gone."""
        if (pod := self._evictable(obj)) is not None:
            self.feed(events.PodSeen(pod))

    def withdraw(self, key: tuple[str, str]) -> None:
        """Withdraw a pod that was bound, since the machine knows no other."""
        if key[1]:
            self.feed(events.PodGone(*key))

    def listed(self, objects: Sequence[PodObject]) -> None:
        """Pass on the pods of one page that can be evicted, in one event."""
        evictable = []
        for obj in objects:
            self._listed[obj.metadata.uid] = intern(obj.spec.node_name)
            if (pod := self._evictable(obj)) is not None:
                evictable.append(pod)
        if evictable:
            self.feed(events.PodsSeen(tuple(evictable)))

    def compare(self, listed: Mapping[str, str], version: int) -> None:
        """Pass on the nodes of all pods by UID. The machine compares them with its state."""
        self.feed(events.PodsListed(listed, version))

    def undecodable(self, what: Identity, reason: str) -> None:
        """Report the pod. It still exists, so it is not withdrawn at the end of a list that contains it."""
        super().undecodable(what, reason)
        if self._is_listing and what.uid and what.node_name:
            self._listed[what.uid] = what.node_name

    def _evictable(self, obj: PodObject) -> Pod | None:
        """Return the pod if it can be evicted. Others are passed on as gone; one that cannot be decoded is reported."""
        terminates_at = time_of(obj.metadata.deletion_timestamp, moment)
        try:
            pod = self._decoder.pod(obj)
            leaving = self._decoder.bound(obj) if terminates_at is not None and not obj.is_mirror else None
        except ValueError as error:
            self.report_fault(f"{obj.metadata.namespace}/{obj.metadata.name}", str(error))
            return None
        if pod is None and obj.spec.node_name:
            self.feed(events.PodGone(obj.metadata.uid, obj.spec.node_name, terminates_at, leaving))
        return pod


class NodeHandler(StreamHandler[NodeObject]):
    """Receives the node stream."""

    def __init__(self, resource: str, feed: Feed, metrics: Metrics, decoder: Decoder) -> None:
        super().__init__(resource, feed, metrics)
        self._decoder = decoder

    def pass_on(self, key: str, obj: NodeObject) -> None:
        """Pass on a node with its first ``MAX_TAINTS`` taints."""
        if len(obj.spec.taints) > MAX_TAINTS:
            self.report_fault(key, f"has more than {MAX_TAINTS} taints, and only the first {MAX_TAINTS} count")
        self.feed(events.NodeSeen(self._decoder.node(obj), listed=self._is_listing))

    def withdraw(self, key: str) -> None:
        """Withdraw a deleted node."""
        self.feed(events.NodeGone(key))

    def compare(self, listed: Mapping[str, None], version: int) -> None:
        """Pass on the names of all nodes. The machine compares them with its state."""
        self.feed(events.NodesListed(frozenset(listed), version))

    def undecodable(self, what: Identity, reason: str) -> None:
        """Report the node. Its known state is out of date, so none of its pods is evicted until it can be decoded."""
        super().undecodable(what, reason)
        if what.name:
            self._listed[what.name] = None  # it still exists if a list contains it
            self.feed(events.NodeUnreadable(what.name))

    def reached(self, resource_version: str) -> None:
        """Pass on the version up to which all changes of nodes were delivered."""
        self.feed(events.NodesReached(version_number(resource_version, unreadable=-1)))
