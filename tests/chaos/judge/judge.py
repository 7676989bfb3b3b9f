"""From the audit log and the objects to a verdict."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

from kubernetes import client, config

from chaos.judge import limits
from chaos.judge.audit import Record, read
from chaos.judge.history import OPEN, Between, History, Pod, Policy, Span
from chaos.judge.leading import Leading
from chaos.judge.limits import Eviction
from chaos.judge.rules import FOREVER, Subject, demand
from chaos.judge.verdict import Verdict

Json = dict[str, Any]

ANSWER_SECONDS = 60.0
"""A request with an unknown result had its effect within this time, if it had one."""
GROUP, VERSION = "taintwarden.io", "v1alpha1"


@dataclass(frozen=True)
class Restoration:
    """The store went back to a revision."""

    revision: int
    at: Between
    nodes: list[Json]
    pods: list[Json]


@dataclass(frozen=True)
class Tolerance:
    """What is stated, and no more."""

    staleness_seconds: float
    """For how long a pod may still be evicted after it may stay, or after others have removed pods of its workload."""
    in_flight: int
    """How many calls may be held back on their way and arrive at once.

    Of those that arrive when another replica leads, that one did not know: they exceed no share of a workload.
    """


class Judge:
    """Reads as an administrator, and writes nothing."""

    def __init__(self, kubeconfig: Path, log: Path, subject: Subject) -> None:
        self._api = config.new_client_from_config(str(kubeconfig))
        self._core = client.CoreV1Api(self._api)
        self._custom = client.CustomObjectsApi(self._api)
        self._log = log
        self._subject = subject
        self._restorations: list[Restoration] = []

    def close(self) -> None:
        self._api.close()

    # -- the objects as they are

    def must_leave(self) -> list[str]:
        """The pods that have to leave as things stand now, at once or soon, and are not terminating."""
        policies = [Policy.of(body) for body in self._policies()]
        nodes = {node["metadata"]["name"]: node["spec"].get("taints") or [] for node in self._list("node")}
        graces = {key: policy.grace for policy in policies for key in policy.keys}
        return [
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for pod in self._list("pod_for_all_namespaces")
            if "deletionTimestamp" not in pod["metadata"]
            and any(
                demand(pod, taint, graces[taint["key"]]).seconds != FOREVER
                for taint in nodes.get(pod["spec"].get("nodeName", ""), [])
                if taint["key"] in graces and taint["effect"] == "NoExecute"
            )
        ]

    def restored(self, revision: int, began: float) -> None:
        """The store has just gone back to this revision: note what there is now."""
        nodes, pods = self._list("node"), self._list("pod_for_all_namespaces")
        self._restorations.append(Restoration(revision, Between(began, time()), nodes, pods))

    def _policies(self) -> list[Json]:
        return self._custom.list_cluster_custom_object(GROUP, VERSION, "taintevictionpolicies")["items"]

    def _list(self, what: str) -> list[Json]:
        response = getattr(self._core, f"list_{what}")(_preload_content=False)
        return json.loads(response.data)["items"]

    # -- what happened

    def verdict(self, begin: float, end: float, settled: float, tolerance: Tolerance) -> Verdict:
        """Judge every eviction that began between two moments. After `settled` there should be none."""
        pods = self._list("pod_for_all_namespaces")
        terminating = {pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" in pod["metadata"]}
        return judged(self._log, self._subject, self._restorations, terminating, begin, end, settled, tolerance)


def judged(
    log: Path,
    subject: Subject,
    restorations: Sequence[Restoration],
    terminating: Collection[str],
    begin: float,
    end: float,
    settled: float,
    tolerance: Tolerance,
) -> Verdict:
    """The verdict from the log alone, and from the UIDs of the pods that are terminating now."""
    pasts = _pasts(read(log), subject, restorations)
    for past in pasts:
        past.history.decide(terminating)
    last = pasts[-1].history
    leading = Leading(last.leases, subject.lease)
    verdict = Verdict()
    evictions = [
        Eviction(record, pod, _judge(record, pod, truth, tolerance, verdict), truth.history)
        for record, pod, truth in _evictions(pasts)
        if begin <= record.received <= end
    ]
    evictions.sort(key=lambda one: one.record.received)
    verdict.evictions = len(evictions)
    verdict.unjudged = sum(begin <= record.received <= end for record in last.strangers)
    first: dict[str, Eviction] = {}
    held: set[str] = set()
    for one in evictions:
        record, key = one.record, one.pod.key
        if not leading.led(record.credential, record.received, min(record.completed, record.received + ANSWER_SECONDS)):
            verdict.count("not_leader", f"{key} by {record.credential} at {record.received:.3f}")
            held |= {one.pod.uid} if tolerance.in_flight else set()
        if record.succeeded and (known := first.setdefault(one.pod.uid, one)) is not one:
            undone = any(known.record.received < each.at.low <= record.received for each in restorations)
            if not undone:
                verdict.count("doubled", f"{key} at {record.received:.3f}, first at {known.record.received:.3f}")
    for sentence in limits.breaches(evictions, last, tolerance.in_flight, tolerance.staleness_seconds, held):
        verdict.count("over", sentence)
    for record in last.deletions:
        if begin <= record.received <= end:
            verdict.count("over", f"{record.namespace}/{record.name} was deleted, not evicted")
    for record in last.evictions:
        if settled < record.received <= end:
            verdict.count("restless", f"{record.namespace}/{record.name} at {record.received:.3f}")
    verdict.leaderless_seconds = leading.longest_gap(begin, end)
    return verdict


@dataclass(frozen=True)
class Past:
    """What was true from a moment on: from the beginning, or from a restoration of the store."""

    since: Between
    history: History
    before: "Past | None" = None
    """What was true until then."""

    def was_due(self, record: Record, pod: Pod, span: Span, staleness_seconds: float) -> bool:
        """Whether the same had made the pod leave before the restoration, and was there again at once after it.

        A client that is disconnected meanwhile cannot see that it was taken back.
        """
        return (
            self.before is not None
            and span.base.low <= self.since.high + staleness_seconds
            and any(
                one.key == span.key and one.end == OPEN and one.due_low <= record.received
                for one in self.before.history.spans(self.before.history.pods.get(pod.uid, pod))
            )
        )


def _pasts(records: Sequence[Record], subject: Subject, restorations: Sequence[Restoration]) -> list[Past]:
    pasts: list[Past] = []
    begins = [Between(-FOREVER, -FOREVER), *(one.at for one in restorations)]
    for index, begin in enumerate(begins):
        history = History(subject)
        for earlier, restoration in zip(begins, restorations[:index], strict=False):
            history.take(_between(records, earlier.low, restoration.at.low))
            history.restored(restoration.revision, restoration.at, restoration.nodes, restoration.pods)
        end = begins[index + 1].low if index + 1 < len(begins) else FOREVER
        history.take(_between(records, begin.low, end))
        pasts.append(Past(begin, history, pasts[-1] if pasts else None))
    return pasts


def _evictions(pasts: Sequence[Past]) -> Iterator[tuple[Record, Pod, Past]]:
    """Each eviction with the truth of its time."""
    for index, past in enumerate(pasts):
        until = pasts[index + 1].since.low if index + 1 < len(pasts) else FOREVER
        for pod in past.history.pods.values():
            for record in pod.evicted:
                if past.since.low <= record.received < until:
                    yield record, pod, past


def _judge(record: Record, pod: Pod, past: Past, tolerance: Tolerance, verdict: Verdict) -> Policy | None:
    """Judge one accepted eviction; the policy by which the pod had to leave."""
    best, least = None, FOREVER
    early: list[float] = []
    truths = [past.history]
    if past.before is not None and record.received - past.since.low <= tolerance.staleness_seconds:
        truths.append(past.before.history)
    for truth in truths:
        for span in truth.spans(truth.pods.get(pod.uid, pod)):
            policy = truth.policy_of(span.key)
            assert policy is not None
            stale = max(record.received - span.end.high, _absent_for(record, truth, policy), 0.0)
            if record.received >= span.due_low or past.was_due(record, pod, span, tolerance.staleness_seconds):
                if stale < least:
                    best, least = (span, policy), stale
            elif span.base.low <= record.completed and stale == 0:
                early.append(span.due_low - record.received)
    where = f"{pod.key} on {pod.node} at {record.received:.3f}"
    if best is None or least > tolerance.staleness_seconds:
        if early:
            verdict.count("early", f"{where}, by {min(early):.3f} s")
        else:
            ended = f"had to leave until {least:.3f} s before" if best else "never had to leave"
            verdict.count("wrong", f"{where}: {ended}")
        return best[1] if best else None
    span, policy = best
    verdict.stalest_seconds = max(verdict.stalest_seconds, least)
    if record.succeeded:
        verdict.latest_seconds = max(verdict.latest_seconds, record.completed - span.due_high)
    return policy


def _absent_for(record: Record, history: History, policy: Policy) -> float:
    """For how long the policy had not existed when an eviction by it came in."""
    return max(
        (
            record.received - since
            for since, until in history.absences(policy)
            if since <= record.received and record.completed < until
        ),
        default=0.0,
    )


def _between(records: Iterable[Record], begin: float, end: float) -> list[Record]:
    return [record for record in records if begin <= record.received < end]
