"""The audit log: every change of nodes, pods, policies and the Lease with its result."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

POLICIES = "taintevictionpolicies"
DEFINITIONS = "customresourcedefinitions"
PATCH = "patch.webhook.admission.k8s.io"
"""Audit annotations with what webhooks made of a request."""
WRITES = ["create", "update", "patch", "delete", "deletecollection"]


def audit_policy() -> Json:
    """Audit policy for the requests that the judge needs.

    A request that is never answered, because the server is killed, has only the stage RequestReceived: it is kept where
    an effect without an answer matters.
    """

    def rule(group: str, *resources: str, verbs: list[str] = WRITES, received: bool = False) -> Json:
        stages = {} if received else {"omitStages": ["RequestReceived"]}
        selected = [{"group": group, "resources": list(resources)}]
        return {"level": "RequestResponse", "verbs": verbs, "resources": selected, "omitManagedFields": True, **stages}

    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [
            rule("", "nodes", "pods/eviction", received=True),
            rule("", "nodes/status", "pods", "pods/status", "pods/binding"),
            rule("", "namespaces"),
            rule("apps", "replicasets", "statefulsets"),
            rule("policy", "poddisruptionbudgets", "poddisruptionbudgets/status"),
            rule("coordination.k8s.io", "leases"),
            rule("taintwarden.io", POLICIES, "tolerationprofiles"),
            rule("apiextensions.k8s.io", DEFINITIONS, verbs=[*WRITES, "get"]),
            {"level": "None"},
        ],
    }


@dataclass(frozen=True, slots=True)
class Record:
    """One request. Its effect, if it had one, was between `received` and `completed` (seconds since 1970)."""

    received: float
    completed: float
    verb: str
    resource: str
    """With the subresource, as in pods/eviction."""
    namespace: str
    name: str
    user: str
    credential: str
    """Token of the client: each replica has its own."""
    code: int
    """0 when the result is unknown: the server was killed, or its own store did not answer."""
    sent: Json
    answer: Json
    is_rehearsed: bool = False
    """True if an admission webhook made a dry run of it: it is accepted, and has no effect."""

    @property
    def succeeded(self) -> bool:
        return 200 <= self.code < 300

    @property
    def is_open(self) -> bool:
        """True if it may have had an effect that the log does not show."""
        return self.code == 0

    @property
    def revision(self) -> int:
        """The resourceVersion that this write made; 0 for none."""
        return int((self.answer.get("metadata") or {}).get("resourceVersion") or 0)


def read(log: Path) -> list[Record]:
    """All requests of the log but dry runs, in the order in which they were received."""
    begun: dict[str, Json] = {}
    records = []
    for event in _events(log):
        if event["stage"] in ("RequestReceived", "ResponseStarted"):
            begun[event["auditID"]] = event
            continue
        begun.pop(event["auditID"], None)
        records.append(_record(event))
    records += [_record(event) for event in begun.values() if event["verb"] != "watch"]
    return sorted(records, key=lambda record: (record.received, record.completed))


def _events(log: Path) -> Iterator[Json]:
    if not log.exists():
        return
    for line in log.read_text(errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # a server that was killed left half a line
        if "dryRun=" not in event["requestURI"]:
            yield event


def _record(event: Json) -> Record:
    where = event.get("objectRef") or {}
    user = event.get("user") or {}
    credentials = (user.get("extra") or {}).get("authentication.kubernetes.io/credential-id") or [""]
    code = (event.get("responseStatus") or {}).get("code", 0) if event["stage"] == "ResponseComplete" else 0
    answered = 0 < code < 500
    received = moment(event["requestReceivedTimestamp"])
    resource, part = where.get("resource", ""), where.get("subresource", "")
    return Record(
        received=received,
        completed=moment(event["stageTimestamp"]) if answered else float("inf"),
        verb=event["verb"],
        resource=f"{resource}/{part}" if part else resource,
        namespace=where.get("namespace", ""),
        name=where.get("name") or ((event.get("responseObject") or {}).get("metadata") or {}).get("name", ""),
        user=user.get("username", ""),
        credential=credentials[0],
        code=code if answered else 0,
        sent=event.get("requestObject") or {},
        answer=event.get("responseObject") or {},
        is_rehearsed=any("dryRun" in one for key, one in (event.get("annotations") or {}).items() if PATCH in key),
    )


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
