"""From the audit log and the objects to a verdict."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time

from chaos.judge.audit import Json, Record, read
from chaos.judge.facts import FOREVER, Between, Facts, Restoration, Subject
from chaos.judge.verdict import Verdict
from simulated.world import law
from simulated.world.when import Node, Pod, Rules, demands

GROUP, VERSION = "taintwarden.io", "v1alpha1"
COLUMNS = {"late": "lost", "right": "wrong", "early": "early", "twice": "doubled", "leader": "not_leader"}
"""Field of the verdict that counts breaches of each rule; all other rules are limits."""
TRANSIT_SECONDS = 1.5
"""Seconds by which an operator's state may be staler than a call of it that arrives."""
STANDS = ("object", "state")
"""Kinds of which the last facts before the beginning count: then all nodes are good."""


@dataclass(frozen=True)
class Tolerance:
    """Deviations that the promises allow."""

    staleness_seconds: float
    """Seconds for which a pod may be evicted after it may stay, or after others removed pods of its workload."""
    in_flight: int
    """Maximum number of calls that the network may delay and deliver at once."""
    unwell: Sequence[Between] = ()
    """Times at which a fault hinders the operator, so that it need not evict in time."""
    slots: int = 20
    overall: float = 50.0
    """For calls, and evictions per second, of an operator without options."""
    skew: float = 0.0
    """Seconds by which its clock may be ahead."""


class Judge:
    """Reads as an administrator, and writes nothing."""

    def __init__(self, kubeconfig: Path, log: Path, subject: Subject) -> None:
        from kubernetes import client, config  # noqa: PLC0415 - half a second that judging a log need not pay

        self._api = config.new_client_from_config(str(kubeconfig))
        self._core = client.CoreV1Api(self._api)
        self._custom = client.CustomObjectsApi(self._api)
        self._log = log
        self._subject = subject
        self._restorations: list[Restoration] = []

    def close(self) -> None:
        self._api.close()

    def must_leave(self) -> list[str]:
        """The pods that have to leave as things stand now, at once or soon, and are not terminating."""
        policies = self._custom.list_cluster_custom_object(GROUP, VERSION, "taintevictionpolicies")["items"]
        rules = [Rules(one) for one in policies]
        nodes = {node["metadata"]["name"]: Node(node) for node in self._list("node")}
        found = []
        for body in self._list("pod_for_all_namespaces"):
            pod = Pod(body)
            if pod.is_there and (node := nodes.get(pod.node)) is not None:
                state = (0.0, 0.0, True, node)
                if any(demands(rules, pod, node, None, pod.extended, [state], (0.0, 0.0))):
                    found.append(f"{pod.namespace}/{body['metadata']['name']}")
        return found

    def restored(self, began: float) -> None:
        """The store has just gone back to an older revision: note what there is now."""
        nodes, pods = self._list("node"), self._list("pod_for_all_namespaces")
        self._restorations.append(Restoration(Between(began, time()), nodes, pods))

    def _list(self, what: str) -> list[Json]:
        response = getattr(self._core, f"list_{what}")(_preload_content=False)
        found: list[Json] = json.loads(response.data)["items"]
        return found

    def verdict(self, begin: float, end: float, tolerance: Tolerance) -> Verdict:
        """Judge everything that happened between two moments."""
        return judged(read(self._log), self._subject, self._restorations, begin, end, tolerance)


def judged(
    records: Sequence[Record],
    subject: Subject,
    restorations: Sequence[Restoration],
    begin: float,
    end: float,
    tolerance: Tolerance,
) -> Verdict:
    """The verdict from what was logged alone."""
    unwell = [Between(-FOREVER, begin), *tolerance.unwell]
    facts = Facts(records, subject, restorations, unwell)
    stale, held = tolerance.staleness_seconds, tolerance.in_flight
    slots, overall, transit = tolerance.slots, tolerance.overall, stale - TRANSIT_SECONDS
    judge = law.Judge(slots=slots, overall=overall, skew=tolerance.skew, stale=stale, held=held, transit=transit)
    stood = {
        (one.get("kind"), one.get("name")): one for one in facts.found if one["at"] < begin and one["what"] in STANDS
    }
    judge.feed(sorted((one for one in stood.values() if one.get("object", True)), key=lambda one: one["at"]))
    judge.feed(one for one in facts.found if begin <= one["at"] <= end)
    verdict = Verdict()
    for one in judge.end(end):
        verdict.count(COLUMNS.get(one.judge, "over"), str(one))
    taken = [one for one in judge.evicted if one.effect is not None and begin <= one.at <= end]
    verdict.evictions = len(taken)
    verdict.unjudged = sum(begin <= record.received <= end for record in facts.strangers)
    verdict.latest_seconds = max((one.effect - one.want.due.early for one in taken if one.effect), default=0.0)
    verdict.leaderless_seconds = facts.leading.longest_gap(begin, end)
    return verdict
