"""Calls about one pod: evict it by the Eviction API or DELETE, replace it, read it. The engine never gets a client.

The UID of the pod is a precondition. A ``fence`` is called immediately before each request is sent. ``as_seen`` adds
the resourceVersion of the pod as a precondition: a pod that has changed since is not evicted.
"""

from collections.abc import Awaitable
from typing import Any

import msgspec

from taintwarden.engine.model import Deployment, Pod
from taintwarden.engine.outcomes import Outcome
from taintwarden.kube.calls.patching import Fence, patch
from taintwarden.kube.errors import ApiError, Fenced, KubeError
from taintwarden.kube.http.client import STRATEGIC_PATCH, Client
from taintwarden.kube.wire.answers import decoded
from taintwarden.kube.wire.kinds import FINISHED, PodObject

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
"""The annotation that kubectl rollout restart writes."""


class Result(msgspec.Struct, frozen=True):
    """Result of a call. ``message``: text of the error, such as the budget that blocks. ``retry_after``: seconds."""

    outcome: Outcome
    message: str = ""
    retry_after: float | None = None


async def evict_pod(
    client: Client, pod: Pod, grace_period_seconds: int | None, fence: Fence, *, as_seen: bool = False
) -> Result:
    """Evict the pod by the Eviction API, which respects PodDisruptionBudgets."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": _delete_options(pod, grace_period_seconds, str(pod.resource_version) if as_seen else ""),
    }
    return await _result(client.request("POST", f"{_path(pod)}/eviction", body=body, fence=fence))


async def delete_pod(
    client: Client,
    pod: Pod,
    grace_period_seconds: int | None,
    reason: str,
    fence: Fence,
    *,
    as_seen: bool = False,
) -> Result:
    """Delete the pod in spite of budgets, after writing the reason into its condition DisruptionTarget (KEP-3329)."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintwarden",
        "message": reason,
    }
    change, seen = {"status": {"conditions": [condition]}}, str(pod.resource_version) if as_seen else ""
    try:
        newest = await patch(
            client, f"{_path(pod)}/status", change, fence, uid=pod.uid, version=seen, form=STRATEGIC_PATCH
        )
    except KubeError as error:
        return _failed(error)
    if as_seen and not newest:  # else a pod that becomes Ready between the two calls would be deleted
        return Result(Outcome.FAILED, "the answer is not a pod: it has no resourceVersion")
    options = _delete_options(pod, grace_period_seconds, newest if as_seen else "")
    return await _result(client.request("DELETE", _path(pod), body=options, fence=fence))


async def ask_replacement(client: Client, deployment: Deployment, fence: Fence) -> Result:
    """Set ``restartedAt`` in the pod template of a Deployment, which then replaces its pods.

    ``deployment`` has the new annotation. Its resourceVersion is a precondition, so that no rollout has begun since and
    no request is carried out twice. After other refusals, except a 404 and flow control, the pod is evicted instead,
    and its lane continues. After a server error the result is unknown: a request answered by 504 may be carried out.
    """
    change = {"spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: deployment.restarted_at}}}}}
    path = f"/apis/apps/v1/namespaces/{deployment.namespace}/deployments/{deployment.name}"
    try:
        await patch(client, path, change, fence, uid=deployment.uid, version=deployment.version)
    except ApiError as error:
        outcome = outcome_of(error).outcome
        if error.code in (404, 409) or error.is_object_gone:
            outcome = Outcome.NOT_SENT
        elif outcome not in (Outcome.THROTTLED, Outcome.FAILED):
            outcome = Outcome.NOT_REPLACED
        return Result(outcome, error.message, error.retry_after)
    except KubeError as error:
        return _failed(error)
    return Result(Outcome.ASKED)


class _PodList(msgspec.Struct):
    items: list[PodObject]


async def is_running(client: Client, pod: Pod) -> bool:
    """Return True if this pod exists, does not terminate and has not finished.

    The pod is listed by name, as a consistent read (no resourceVersion). The permission to list pods is enough.

    Raises:
        KubeError: the read failed.

    """
    params = {"fieldSelector": f"metadata.name={pod.name}"}
    body = await client.request("GET", f"/api/v1/namespaces/{pod.namespace}/pods", params=params)
    found = (one for one in decoded(body, _PodList, "list of pods").items if one.metadata.uid == pod.uid)
    return any(one.metadata.deletion_timestamp is None and one.status.phase not in FINISHED for one in found)


async def _result(call: Awaitable[object]) -> Result:
    try:
        await call
    except KubeError as error:
        return _failed(error)
    return Result(Outcome.ACCEPTED)


def _failed(error: KubeError) -> Result:
    match error:
        case ApiError():
            return outcome_of(error)
        case Fenced():
            return Result(Outcome.NOT_SENT)
    return Result(Outcome.FAILED, str(error))


def outcome_of(error: ApiError) -> Result:
    """Return the outcome of a refusal. The order of the rows is the order of the checks.

    ===== ==================================== ===================== =================================================
    code  recognized by                        outcome               reason
    ===== ==================================== ===================== =================================================
    any   "failed calling webhook"             WEBHOOK_FAILED        a webhook did not answer, or failed
    429   from a webhook                       POSTPONED             not the API server's flow control
    any   from a webhook or admission policy   DENIED                a webhook chooses the code
    404   reason ``NotFound``                  GONE                  nothing to do
    409   "UID in (the) precondition"          GONE                  the UID is another pod's
    422   cause field ``metadata.uid``         GONE                  the UID is another pod's, in a patch
    409   "fulfilled on pods"                  NOT_SENT              the pod has another version; nothing was done
    429   cause ``DisruptionBudget``           BLOCKED               a budget allows nothing now
    403   cause ``DisruptionBudget``           BLOCKED               from 1.37 on: its controller must confirm first
    429   "disruption budget"                  BLOCKED               the budget is not yet observed by its controller
    429   otherwise                            THROTTLED             the API server's flow control
    500   "more than one PodDisruptionBudget"  MISCONFIGURED         permanent: the Eviction API rejects such pods
    403   cause ``NamespaceTerminating``       NAMESPACE_TERMINATING its controller deletes the pod
    4xx   otherwise, except 404, 408 and 409   REFUSED               no permission, or an admission plugin refused
    any   "request is too large"               REFUSED               the pod is too large to be changed
    else                                       FAILED                404 of a proxy, 409 of the budget, 5xx: try again
    ===== ==================================== ===================== =================================================
    """
    message = error.message
    if by_admission := _admission_outcome(error.code, message):
        return Result(by_admission, message, error.retry_after)
    if error.is_object_gone:
        return Result(Outcome.GONE, message)
    if error.code == 409 and any(f"cannot be fulfilled on {kind} " in message for kind in ("Pod", "pods")):
        return Result(Outcome.NOT_SENT, message)
    causes = [cause.message for cause in error.causes if cause.reason == "DisruptionBudget"]
    of_budget = bool(causes) or (error.code == 429 and "disruption budget" in message.lower())
    if of_budget and error.code in (403, 429):
        return Result(Outcome.BLOCKED, "; ".join(filter(None, causes)) or message, error.retry_after)
    if error.code == 429:
        return Result(Outcome.THROTTLED, message, error.retry_after)
    if error.code == 500 and "more than one PodDisruptionBudget" in message:
        return Result(Outcome.MISCONFIGURED, message)
    if error.is_namespace_gone:
        return Result(Outcome.NAMESPACE_TERMINATING, message, error.retry_after)
    is_client_error = 400 <= error.code < 500 and error.code not in (404, 408, 409)
    if is_client_error or "request is too large" in message:
        return Result(Outcome.REFUSED, message, error.retry_after)
    return Result(Outcome.FAILED, message, error.retry_after)


def _admission_outcome(code: int, message: str) -> Outcome | None:
    """Return the outcome of a refusal by an admission webhook or policy (``webhook/errors``, ``policy/validating``).

    A webhook chooses the code: its 429 or 404 must not be taken for that of the API server.
    """
    if "failed calling webhook" in message:
        return Outcome.WEBHOOK_FAILED
    if message.startswith("admission webhook ") or "denied request: " in message:
        return Outcome.POSTPONED if code == 429 else Outcome.DENIED
    return None


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def _delete_options(pod: Pod, grace_period_seconds: int | None, version: str) -> dict[str, Any]:
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": pod.uid, **({"resourceVersion": version} if version else {})},
    }
    return options if grace_period_seconds is None else options | {"gracePeriodSeconds": grace_period_seconds}
