"""The world's truth: what was true when, from the records of the audit log."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from chaos.judge.audit import DEFINITIONS, POLICIES, Record
from chaos.judge.rules import FOREVER, Demand, Subject, demand

Json = dict[str, Any]
NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Between:
    """A moment that is known only to lie between two."""

    low: float
    high: float

    def later(self, other: "Between") -> "Between":
        return Between(max(self.low, other.low), max(self.high, other.high))


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which a taint made a pod leave: due `seconds` after `base`, until `end`."""

    key: str
    base: Between
    seconds: float
    end: Between

    @property
    def due_low(self) -> float:
        """No eviction may come before it."""
        return self.base.low + self.seconds

    @property
    def due_high(self) -> float:
        return self.base.high + self.seconds


OPEN = Between(FOREVER, FOREVER)


@dataclass(slots=True)
class Change:
    """The taints of a node, or the existence of a policy, since a moment."""

    at: Between
    taints: tuple[Json, ...]
    revision: int


@dataclass(slots=True)
class Pod:
    """One pod with its life."""

    body: Json
    created: Between
    ready: float = FOREVER
    """When the server had confirmed that it is Ready."""
    evicted: list[Record] = field(default_factory=list)
    """Evictions that the server accepted or whose result is unknown."""
    removed: float = FOREVER
    """When another client deleted it."""

    @property
    def uid(self) -> str:
        return self.body["metadata"]["uid"]

    @property
    def name(self) -> str:
        return self.body["metadata"]["name"]

    @property
    def key(self) -> str:
        return f"{self.body['metadata']['namespace']}/{self.name}"

    @property
    def node(self) -> str:
        return self.body["spec"].get("nodeName", "")

    @property
    def owner(self) -> str:
        for one in self.body["metadata"].get("ownerReferences") or []:
            if one.get("controller"):
                return f"{self.body['metadata']['namespace']}/{one['name']}"
        return ""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the judge knows of a policy: its taints, grace and limits as they were written."""

    name: str
    keys: tuple[str, ...]
    grace: float
    rate: float
    burst: int
    share: float
    """Of a workload that may be missing."""
    guard_pods: float
    guard_seconds: float

    @classmethod
    def of(cls, body: Json) -> "Policy":
        spec = body["spec"]
        timing, limits = spec.get("timing") or {}, spec.get("limits") or {}
        guard = limits.get("guard") or {}
        unavailable = (limits.get("perWorkload") or {}).get("maxUnavailable", "25%")
        return cls(
            name=body["metadata"]["name"],
            keys=tuple(one["key"] for one in spec["taints"]),
            grace=float(max(timing.get("violationGraceSeconds") or 0, timing.get("stabilizationWindowSeconds") or 0)),
            rate=float(limits.get("evictionsPerSecond", 10)),
            burst=int(limits.get("burst", 20)),
            share=int(str(unavailable).rstrip("%")) / 100,
            guard_pods=float(guard.get("maxPods", FOREVER)),
            guard_seconds=float(guard.get("windowSeconds", 600)),
        )


class History:
    """Everything that the log says, and for a restored store what the objects said afterwards."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.nodes: dict[str, list[Change]] = defaultdict(list)
        self.policies: dict[str, list[tuple[Between, Policy | None]]] = defaultdict(list)
        self.pods: dict[str, Pod] = {}
        self.by_name: dict[str, Pod] = {}
        self.replicas: dict[str, int] = {}
        self.leases: list[Record] = []
        self.evictions: list[Record] = []
        self.deletions: list[Record] = []
        """Of pods, by the operator: it has no business with that here."""
        self.strangers: list[Record] = []
        """Accepted evictions of pods of which the log says nothing else: they cannot be judged."""
        self._unsure: dict[str, float] = {}

    @cached_property
    def by_owner(self) -> dict[str, list[Pod]]:
        """All pods by their controller, once everything is taken."""
        found = defaultdict(list)
        for pod in self.pods.values():
            found[pod.owner].append(pod)
        return found

    def take(self, records: Iterable[Record]) -> None:
        """Add records, in the order in which they were received."""
        for record in records:
            self._take(record)
        for changes in self.nodes.values():
            changes.sort(key=lambda change: change.revision)

    def _take(self, record: Record) -> None:
        match record.resource:
            case "nodes" if record.verb in ("create", "update", "patch"):
                self._node(record)
            case "pods" if record.verb == "create" and record.succeeded:
                self.pod(record.answer, Between(record.received, record.completed))
            case "pods" if record.verb in ("delete", "deletecollection"):
                self._removed(record)
            case "pods/status" if record.succeeded:
                self._status(record)
            case "pods/eviction":
                self._eviction(record)
            case "replicasets" if record.succeeded and record.verb in ("create", "update", "patch"):
                self.replicas[f"{record.namespace}/{record.name}"] = record.answer["spec"]["replicas"]
            case "leases" if record.succeeded:
                self.leases.append(record)
            case _ if record.resource == POLICIES:
                self._policy(record)
            case _ if record.resource == DEFINITIONS:
                self._definition(record)

    def _node(self, record: Record) -> None:
        if record.is_open:
            self._unsure.setdefault(record.name, record.received)
        elif record.succeeded:
            low = self._unsure.pop(record.name, record.received)
            taints = tuple(record.answer["spec"].get("taints") or ())
            self.nodes[record.name].append(Change(Between(low, record.completed), taints, record.revision))

    def pod(self, body: Json, created: Between) -> Pod:
        """Note a pod."""
        metadata = body["metadata"]
        pod = self.pods.get(metadata["uid"]) or Pod(body, created)
        self.pods[metadata["uid"]] = pod
        self.by_name[pod.key] = pod
        return pod

    def _status(self, record: Record) -> None:
        pod = self.by_name.get(f"{record.namespace}/{record.name}")
        if pod is None and "spec" in record.answer:  # the answer to its creation is not in the log
            pod = self.pod(record.answer, Between(_created(record.answer), record.completed))
        conditions = record.answer.get("status", {}).get("conditions") or []
        if pod and any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
            pod.ready = min(pod.ready, record.completed)

    def _removed(self, record: Record) -> None:
        if record.user == self.subject.user:
            self.deletions.append(record)
        for pod in list(self.pods.values()) if record.verb == "deletecollection" else ():
            if pod.body["metadata"]["namespace"] == record.namespace:
                pod.removed = min(pod.removed, record.received)
        if record.verb == "delete" and (record.succeeded or record.is_open):
            pod = self.by_name.get(f"{record.namespace}/{record.name}")
            if pod:
                pod.removed = min(pod.removed, record.received)

    def _eviction(self, record: Record) -> None:
        self.evictions.append(record)
        pod = self.by_name.get(f"{record.namespace}/{record.name}")
        if pod and (record.succeeded or record.is_open):
            pod.evicted.append(record)
        elif record.succeeded:
            self.strangers.append(record)

    def _policy(self, record: Record) -> None:
        if not record.succeeded:
            return
        at = Between(record.received, record.completed)
        if record.verb == "deletecollection":
            self._all_policies_end(at)
        elif record.verb == "delete":
            self.policies[record.name].append((at, None))
        elif "spec" in record.answer:
            policy = Policy.of(record.answer)
            known = self.policies[record.name]
            if not known or known[-1][1] != policy:
                known.append((at, policy))

    def _definition(self, record: Record) -> None:
        """Policies end with their definition, at some moment before a read no longer finds it."""
        if not record.name.startswith(POLICIES):
            return
        if record.verb == "delete" and record.succeeded:
            self._all_policies_end(Between(record.received, FOREVER))
        elif record.verb == "get" and record.code == 404:
            for name, known in self.policies.items():
                if known and known[-1][1] is None and known[-1][0].high == FOREVER:
                    self.policies[name][-1] = (Between(known[-1][0].low, record.completed), None)

    def _all_policies_end(self, at: Between) -> None:
        for known in self.policies.values():
            if known and known[-1][1] is not None:
                known.append((at, None))

    def decide(self, terminating: Collection[str]) -> None:
        """Keep the evictions that had an effect: of a pod the accepted ones, else the last with an unknown result."""
        for pod in self.pods.values():
            pod.evicted.sort(key=lambda record: record.received)
            accepted = [record for record in pod.evicted if record.succeeded]
            is_gone = pod.removed < FOREVER or pod.uid in terminating
            pod.evicted = accepted or (pod.evicted[-1:] if is_gone else [])

    # -- questions

    def policy_of(self, key: str) -> Policy | None:
        """The policy of a taint key as it was written last."""
        written = (policy for known in self.policies.values() for _, policy in known)
        return next((policy for policy in reversed([*written]) if policy and key in policy.keys), None)

    def absences(self, policy: Policy) -> list[tuple[float, float]]:
        """When a policy certainly did not exist."""
        found, since = [], NEVER
        gone: bool = True
        for at, body in self.policies[policy.name]:
            if body is None and not gone:
                since, gone = at.high, True
            elif body is not None and gone:
                found.append((since, at.low))
                gone = False
        return [*found, *([(since, FOREVER)] if gone else [])]

    def incarnation(self, policy: Policy, moment: float) -> int:
        """How often a policy had been created until then: one that is created again has a new guard."""
        known = self.policies[policy.name]
        return sum(
            at.low <= moment and (index == 0 or known[index - 1][1] is None)
            for index, (at, body) in enumerate(known)
            if body is not None
        )

    def spans(self, pod: Pod) -> list[Span]:
        """Every time in which some taint made this pod leave."""
        changes = self.nodes.get(pod.node, [])
        keys = {key for known in self.policies.values() for _, policy in known if policy for key in policy.keys}
        return [span for key in sorted(keys) for span in self._spans(pod, changes, key)]

    def _spans(self, pod: Pod, changes: Sequence[Change], key: str) -> Iterable[Span]:
        policy = self.policy_of(key)
        assert policy is not None
        now: Demand | None = None
        added = since = Between(NEVER, NEVER)
        for change in changes:
            taint = next((one for one in change.taints if one["key"] == key and one["effect"] == "NoExecute"), None)
            then = None if taint is None else demand(pod.body, taint, policy.grace)
            if then == now:
                continue
            if now is not None and now.seconds != FOREVER and (then is None or then.tolerated != now.tolerated):
                yield Span(key, since.later(pod.created), now.seconds, change.at)
            if now is None:
                added = change.at
            if then is not None and (now is None or then.tolerated != now.tolerated):
                since = added if then.tolerated else change.at
            now = then
        if now is not None and now.seconds != FOREVER:
            yield Span(key, since.later(pod.created), now.seconds, OPEN)

    def restored(self, revision: int, at: Between, nodes: Iterable[Json], pods: Iterable[Json]) -> None:
        """Undo what came after a revision of the store: these are the objects as they are again."""
        for changes in self.nodes.values():
            changes[:] = [change for change in changes if change.revision <= revision]
        for node in nodes:
            taints = tuple(node["spec"].get("taints") or ())
            changes = self.nodes[node["metadata"]["name"]]
            if not changes or changes[-1].taints != taints:
                changes.append(Change(at, taints, int(node["metadata"]["resourceVersion"])))
        found = {body["metadata"]["uid"]: body for body in pods}
        for uid in self.pods.keys() - found.keys():
            del self.pods[uid]
        for body in found.values():
            pod = self.pod(body, at)
            if "deletionTimestamp" not in body["metadata"]:
                pod.evicted, pod.removed = [], FOREVER


def _created(body: Json) -> float:
    """When a pod was created, at the earliest."""
    return datetime.fromisoformat(body["metadata"]["creationTimestamp"]).timestamp()
