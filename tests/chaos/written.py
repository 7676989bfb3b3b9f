"""An audit log written by hand, for the tests of the judge."""

import itertools
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

OPERATOR = "system:serviceaccount:taintwarden-system:taintwarden"
ADMIN = "admin"
POLICY: Json = {
    "metadata": {"name": "values", "uid": "uid-values"},
    "spec": {
        "taints": [{"key": "sla"}],
        "timing": {"violationGraceSeconds": 3},
        "limits": {"evictionsPerSecond": 10, "burst": 10, "guard": {"maxPercent": 100}},
    },
}


class Log:
    """Each method writes one request. Times are seconds after the beginning; an effect takes 10 ms."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers = itertools.count(1)
        self._uids = itertools.count(1)

    def write(
        self,
        at: float,
        verb: str,
        resource: str,
        name: str,
        answer: Json,
        *,
        namespace: str = "",
        user: str = ADMIN,
        token: str = "admin",
        code: int | None = 200,
        sent: Json | None = None,
        query: str = "",
    ) -> None:
        """One request; `code` is None for one that is never answered."""
        number = next(self._numbers)
        plural, _, part = resource.partition("/")
        metadata = {"name": name, "resourceVersion": str(number), **answer.get("metadata", {})}
        event = {
            "auditID": str(number),
            "stage": "RequestReceived" if code is None else "ResponseComplete",
            "verb": verb,
            "requestURI": f"/{plural}?{query}",
            "objectRef": {"resource": plural, "subresource": part, "namespace": namespace, "name": name},
            "user": {"username": user, "extra": {"authentication.kubernetes.io/credential-id": [token]}},
            "requestReceivedTimestamp": stamp(at),
            "stageTimestamp": stamp(at if code is None else at + 0.01),
            "requestObject": sent or {},
        }
        if code is not None:
            event |= {"responseStatus": {"code": code}, "responseObject": {**answer, "metadata": metadata}}
        with self.path.open("a") as file:
            file.write(json.dumps(event) + "\n")

    def policy(self, at: float, body: Json = POLICY, verb: str = "create") -> None:
        self.write(at, verb, "taintevictionpolicies", body["metadata"]["name"], body)

    def value(self, at: float, value: str, node: str = "n", code: int | None = 200) -> None:
        taints = [{"key": "sla", "value": value, "effect": "NoExecute"}]
        self.write(at, "patch", "nodes", node, {"spec": {"taints": taints}}, code=code)

    def pod(
        self, at: float, name: str, wants: int = 950, grace: int | None = None, owner: str = "", node: str = "n"
    ) -> None:
        """A pod, Ready at once."""
        toleration = {"key": "sla", "operator": "Gt", "value": str(wants), "effect": "NoExecute"}
        toleration |= {} if grace is None else {"violationGraceSeconds": grace}
        owners = [{"kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}] if owner else []
        metadata = {
            "uid": f"uid-{next(self._uids)}",
            "name": name,
            "namespace": "team",
            "ownerReferences": owners,
            "labels": {"app": owner},
            "annotations": {"taintwarden.io/tolerations": json.dumps([toleration])},
        }
        body = {"metadata": metadata, "spec": {"nodeName": node}}
        self.write(at, "create", "pods", name, body, namespace="team", code=201)
        ready = body | {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        self.write(at + 0.02, "patch", "pods/status", name, ready, namespace="team")

    def bind(self, at: float, name: str, node: str) -> None:
        """Bind a pod as the scheduler does."""
        sent = {"target": {"name": node}}
        self.write(at, "create", "pods/binding", name, {}, namespace="team", code=201, sent=sent)

    def replicas(self, at: float, name: str, number: int) -> None:
        body = {"metadata": {"uid": f"uid-{name}"}, "spec": {"replicas": number}}
        self.write(at, "create", "replicasets", name, body, namespace="team", code=201)

    def lease(self, at: float, holder: str, by: str = "", name: str = "taintwarden-system/taintwarden") -> None:
        body = {"spec": {"holderIdentity": holder}}
        namespace, _, name = name.partition("/")
        where = {"namespace": namespace, "user": OPERATOR, "token": f"JTI={by or holder}"}
        self.write(at, "update", "leases", name, body, **where)

    def evict(self, at: float, name: str, by: str = "a", code: int | None = 201) -> None:
        where = {"namespace": "team", "user": OPERATOR, "token": f"JTI={by}"}
        self.write(at, "create", "pods/eviction", name, {}, code=code, **where)

    def remove(self, at: float, name: str, user: str = ADMIN, by: str = "admin", code: int | None = 200) -> None:
        self.write(at, "delete", "pods", name, {}, namespace="team", user=user, token=f"JTI={by}", code=code)


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(1_800_000_000 + seconds, UTC).isoformat()


def moment(seconds: float) -> float:
    return 1_800_000_000 + seconds
