"""The audit log as the facts of which the law judges (``simulated.world.law``).

What no log can know is stated so that no bound becomes stricter by it: a call was decided on when the API server
received it; what is written counts from when the write was received, since watches bring it before its writer has the
answer, and what was there before counts for as long as it may be stale; an operator follows nodes while the Lease is
held; it is well when the player of the run reports so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from chaos.judge.audit import DEFINITIONS, POLICIES, Json, Record
from chaos.judge.leading import Leading

STORED = {
    POLICIES: "policies",
    "tolerationprofiles": "profiles",
    "namespaces": "namespaces",
    "replicasets": "workloads",
    "statefulsets": "workloads",
    "poddisruptionbudgets": "budgets",
}
NAMESPACED = ("profiles", "budgets")
UNANSWERED_SECONDS = 0.01
"""Seconds until a call without an answer has ended for the judge; the caller itself notices that later."""
FOREVER = float("inf")


class Between(NamedTuple):
    """A moment that is known only to lie between two; or the time between them."""

    low: float
    high: float


@dataclass(frozen=True)
class Subject:
    """The user whose evictions are judged."""

    user: str
    lease: str
    """Namespace and name of the Lease that its leader holds."""


@dataclass(frozen=True)
class Restoration:
    """The store went back to an older revision, and these objects were there again."""

    at: Between
    nodes: list[Json]
    pods: list[Json]


class Facts:
    """All facts of a log, in the order of their times."""

    def __init__(
        self,
        records: Sequence[Record],
        subject: Subject,
        restorations: Sequence[Restoration] = (),
        unwell: Iterable[Between] = (),
    ) -> None:
        self.subject, self.found = subject, list[Json]()
        self.leading = Leading([one for one in records if one.resource == "leases" and one.succeeded], subject.lease)
        self.calls: dict[int, Record] = {}
        """By number, those for pods that are known."""
        self.strangers: list[Record] = []
        """Accepted evictions of pods of which the log says nothing else: they cannot be judged."""
        self._objects: dict[tuple[str, str], Json] = {}
        self._written: dict[tuple[str, str], float] = {}
        """When a request for an object was received last."""
        self._uids: dict[str, str] = {}
        self._unsure: dict[str, float] = {}
        """Node -> since when it may be as a write without an answer says."""
        waiting = list(restorations)
        for record in records:
            while waiting and record.received >= waiting[0].at.high:
                self._restore(waiting.pop(0))
            self._take(record)
        for one in waiting:
            self._restore(one)
        gaps = [Between(one.at.low, one.at.high + 2.0) for one in restorations]
        self._states(gaps, [*unwell, *gaps])
        self.found.sort(key=lambda one: one["at"])

    def _note(self, at: float, what: str, **more: Any) -> None:
        self.found.append({"at": at, "what": what, **more})

    # -- objects

    def _put(self, at: float, kind: str, name: str, found: Json | None, **more: Any) -> None:
        if found is None:
            self._objects.pop((kind, name), None)
        else:
            self._objects[kind, name] = found
        self._note(at, "object", kind=kind, name=name, object=found, **more)

    def _take(self, record: Record) -> None:
        resource = record.resource.removesuffix("/status").removesuffix("/binding")
        is_own = record.user == self.subject.user
        if resource == "pods/eviction" or (resource == "pods" and record.verb == "delete" and is_own):
            self._call(record, is_own=is_own)
        elif resource == "nodes":
            self._node(record)
        elif resource == DEFINITIONS and record.name.startswith(POLICIES) and record.code == 404:
            self._gone("policies", record)  # they end with their definition, before a read no longer finds it
        elif not record.succeeded or record.verb == "get":
            return
        elif resource == "pods":
            self._pod(record)
        elif (kind := STORED.get(resource)) is not None:
            if record.verb == "deletecollection":
                self._gone(kind, record)
            elif record.verb == "delete":
                name = f"{record.namespace}/{record.name}" if kind in NAMESPACED else record.name
                self._put(record.received, kind, name, None)
            elif "spec" in record.answer:
                self._put(record.received, kind, _key(kind, record), record.answer)

    def _gone(self, kind: str, record: Record) -> None:
        """All of a kind are deleted, or those of a namespace."""
        for known, name in [*self._objects]:
            here = self._objects[known, name]["metadata"].get("namespace", "")
            if known == kind and record.namespace in ("", here):
                self._put(record.received, kind, name, None)

    def _node(self, record: Record) -> None:
        if record.is_open:
            self._unsure.setdefault(record.name, record.received)
        elif record.succeeded:
            since = self._unsure.pop(record.name, record.received)
            self._written["nodes", record.name] = record.received
            if record.verb == "delete":
                self._put(record.completed, "nodes", record.name, None)
            else:
                self._put(record.received, "nodes", record.name, record.answer, since=since)

    def _pod(self, record: Record) -> None:
        metadata = record.answer.get("metadata", {})
        if record.resource == "pods/binding":
            uid = self._uids.get(f"{record.namespace}/{record.name}", "")
            if (pod := self._objects.get(("pods", uid))) is not None:
                node = record.sent["target"]["name"]
                self._put(record.received, "pods", uid, pod | {"spec": pod["spec"] | {"nodeName": node}})
        elif record.verb == "deletecollection":
            self._gone("pods", record)
        elif record.verb == "delete":
            uid = metadata.get("uid") or self._uids.get(f"{record.namespace}/{record.name}", "")
            if ("pods", uid) in self._objects:
                self._leaves(record.completed, uid, metadata.get("deletionGracePeriodSeconds") or 0)
        elif "uid" in metadata and "spec" in record.answer:
            self._uids[f"{record.namespace}/{record.name}"] = metadata["uid"]
            self._written["pods", metadata["uid"]] = record.received
            self._put(record.received, "pods", metadata["uid"], record.answer)

    def _leaves(self, at: float, uid: str, grace: float) -> None:
        pod = self._objects["pods", uid]
        stops = datetime.fromtimestamp(at + grace, UTC).isoformat()
        meta = pod["metadata"] | {"deletionTimestamp": pod["metadata"].get("deletionTimestamp", stops)}
        self._put(at, "pods", uid, pod | {"metadata": meta} if grace > 0 else None)

    # -- calls

    def _call(self, record: Record, *, is_own: bool) -> None:
        uid = self._uids.get(f"{record.namespace}/{record.name}")
        if uid is None:
            self.strangers += [record] if record.succeeded else []
            return
        pod, number = self._objects.get(("pods", uid)), len(self.calls)
        answered = record.received + UNANSWERED_SECONDS if record.is_open else record.completed
        runs = pod is not None and "deletionTimestamp" not in pod["metadata"]
        is_effect = record.succeeded and runs and not record.is_rehearsed
        if is_own:
            self.calls[number] = record
            verb = "DELETE" if record.verb == "delete" else "POST"
            self._note(record.received, "call", id=number, pod=uid, verb=verb, by=self.leading.name(record))
            if is_effect:
                self._note(answered, "effect", id=number)
            asked = (record.answer.get("details") or {}).get("retryAfterSeconds")
            self._note(answered, "answer", id=number, code=record.code, body=str(record.answer), retry_after=asked)
        if is_effect:
            assert pod is not None
            self._leaves(answered, uid, pod["spec"].get("terminationGracePeriodSeconds", 30))

    # -- the store, and the Lease

    def _restore(self, one: Restoration) -> None:
        """An older store came back; what was written since then is newer than these objects."""
        self._note(one.at.high, "forgot", name="")
        listed = {("nodes", node["metadata"]["name"]): node for node in one.nodes}
        listed |= {("pods", pod["metadata"]["uid"]): pod for pod in one.pods}
        for kind, name in [*self._objects]:
            if kind in ("nodes", "pods") and (kind, name) not in listed:
                self._put(one.at.high, kind, name, None)
        for (kind, name), found in listed.items():
            if self._written.get((kind, name), 0.0) < one.at.low:
                self._put(one.at.high, kind, name, found)
            if kind == "pods":
                self._uids[f"{found['metadata']['namespace']}/{found['metadata']['name']}"] = name

    def _states(self, gaps: Sequence[Between], unwell: Sequence[Between]) -> None:
        changes = {at for one in (*gaps, *unwell) for at in one if 0 < at < FOREVER}
        changes |= {at for term in self.leading.terms for at in (term.since, term.until)}
        for at in sorted(changes):
            term = self.leading.term(at)
            there = term is not None and not any(one.low <= at < one.high for one in gaps)
            well = there and not any(one.low <= at < one.high for one in unwell)
            leader, number = (term.holder, term.number) if term else ("nobody", 0)
            self._note(at, "state", leader=leader, term=number, there=there, well=well)


def _key(kind: str, record: Record) -> str:
    metadata: Mapping[str, Any] = record.answer["metadata"]
    if kind == "workloads":
        return str(metadata["uid"])
    return f"{record.namespace}/{record.name}" if kind in NAMESPACED else record.name
