"""Writes and requests of an embedded server, as the records that an audit log would have.

An operator has its identity as its token; other writes have no user.
"""

import re
import time
from collections.abc import Iterator
from functools import partial

import msgspec

from chaos.judge.audit import Json, Record
from chaos.judge.facts import STORED, Between
from chaos.judge.judge import Tolerance, judged
from chaos.judge.verdict import Verdict
from chaos.plane import SUBJECT
from localcluster import LocalCluster
from localcluster.store.entries import Change

KEPT = ("leases", "nodes", "pods", *STORED)
POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+?)(/eviction)?$")
VERBS = {"POST": "create", "DELETE": "delete"}


class Kept:
    """All that a cluster stores from now on. What it stores already counts from now."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster, self._began = cluster, time.time()
        self._changes: list[tuple[float, str, Change]] = []
        for resource in KEPT:
            for entry in cluster.store.collection(resource).entries.values():
                self._keep(resource, Change(entry.revision, None, entry))
            cluster.store.subscribe(resource, partial(self._keep, resource))

    def _keep(self, resource: str, change: Change) -> None:
        self._changes.append((time.time(), resource, change))

    def records(self) -> list[Record]:
        """In the order in which they were received."""
        return sorted([*self._stored(), *self._asked()], key=lambda one: (one.received, one.completed))

    def _stored(self) -> Iterator[Record]:
        for at, resource, change in self._changes:
            namespace, name = change.key
            found: Json = msgspec.json.decode(change.last.body)
            verb = "delete" if change.after is None else "update"
            answer = found if change.after is not None else {"metadata": {"uid": change.last.uid}}
            by = found["spec"].get("holderIdentity") or "" if resource == "leases" else ""
            yield Record(at, at, verb, resource, namespace, name, "", by, 200, {}, answer)

    def _asked(self) -> Iterator[Record]:
        for one in self._cluster.faults.requests:
            if (match := POD.search(one.path)) is None or one.method not in VERBS:
                continue
            completed = one.completed if one.status else float("inf")
            resource = f"pods{match[3] or ''}"
            where = VERBS[one.method], resource, match[1], match[2]
            yield Record(one.received, completed, *where, SUBJECT.user, one.token, one.status, {}, {})

    def verdict(self, staleness_seconds: float) -> Verdict:
        """The verdict on all records so far; evictions need not be in time."""
        begin, end = self._began - 1, time.time()
        tolerance = Tolerance(staleness_seconds, 64, [Between(begin, end)])
        return judged(self.records(), SUBJECT, (), begin, end, tolerance)
