"""Each answer to an eviction has one outcome, and requests have the needed preconditions."""

import re
from typing import Any

import msgspec
import pytest

from contract.api import pod as pod_body
from kube import wire
from kube.scripted import ScriptedClient, refusal, standing
from localcluster import LocalCluster
from taintwarden.engine.model import Deployment, Pod, PodClass, Tolerations
from taintwarden.engine.outcomes import Outcome
from taintwarden.kube.calls.evictor import Result, ask_replacement, delete_pod, evict_pod, outcome_of
from taintwarden.kube.errors import Unreachable
from taintwarden.kube.wire.answers import read_refusal

POD_PATH = "/api/v1/namespaces/shop/pods/web-1"
POD = Pod("uid-1", "web-1", "n1", PodClass("shop", {}, Tolerations()), 0.0, 1)

BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
NEEDS = "The disruption budget web needs 2 healthy pods and has 2 currently"
PROCESSING = "The disruption budget web is still being processed by the server."
UNCONFIRMED = (
    'poddisruptionbudget.policy "web" is forbidden: DisruptedPods map too big - too many evictions not confirmed by '
    "PDB controller"
)
PENDING = (
    "The disruption budget web does not allow evicting pods currently: too many pending evictions not confirmed by PDB "
    "controller"
)
ENDING = 'pods "web-1" is forbidden: unable to create new content in namespace shop because it is being terminated'
TWO = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
CANNOT = "Operation cannot be fulfilled on"
WRONG_UID = f'{CANNOT} Pod "web-1": the UID in the precondition (uid-1) does not match the UID in record (uid-2)'
WRONG_UID_STORED = f'{CANNOT} pods "web-1": Precondition failed: UID in precondition: uid-1, UID in object meta: uid-2'
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
WRONG_VERSION_STORED = (
    f'{CANNOT} Pod "web-1": the ResourceVersion in the precondition (3) does not match the ResourceVersion '
    "in record (5). The object might have been modified"
)
WRONG_VERSION = f'{CANNOT} pods "web-1": Precondition failed: ResourceVersion in precondition: 3, in object meta: 5'
DENIES = 'admission webhook "freeze.example.com" denied the request: the namespace is frozen'
POLICY_DENIES = (
    "pods \"web-1\" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding 'freeze' denied request: failed "
    "expression: false"
)
WEBHOOK_FAILS = (
    'Internal error occurred: failed calling webhook "freeze.example.com": failed to call webhook: Post '
    '"https://freeze.shop.svc:443/": dial tcp: connect: connection refused'
)


def status(code: int, reason: str, message: str, **details: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    } | ({"details": details} if details else {})


# (id, answer, outcome, what the message must say)
ROWS = [
    ("no-such-pod", status(404, "NotFound", 'pods "web-1" not found'), Outcome.GONE, "not found"),
    ("not-of-the-api-server", status(404, "", "default backend - 404"), Outcome.FAILED, "default backend"),
    ("another-uid", status(409, "Conflict", WRONG_UID), Outcome.GONE, "does not match"),
    ("another-uid-stored", status(409, "Conflict", WRONG_UID_STORED), Outcome.GONE, "UID in precondition"),
    (
        "budget-modified",
        status(409, "Conflict", f'{CANNOT} poddisruptionbudgets.policy "web": {MODIFIED}'),
        Outcome.FAILED,
        "poddisruptionbudgets",
    ),
    ("pod-modified", status(409, "Conflict", WRONG_VERSION), Outcome.NOT_SENT, "ResourceVersion"),
    ("pod-modified-stored", status(409, "Conflict", WRONG_VERSION_STORED), Outcome.NOT_SENT, "ResourceVersion"),
    (
        "another-uid-in-a-patch",
        status(
            422,
            "Invalid",
            "Pod is invalid: metadata.uid: field is immutable",
            causes=[{"reason": "FieldValueInvalid", "message": "field is immutable", "field": "metadata.uid"}],
        ),
        Outcome.GONE,
        "immutable",
    ),
    (
        "budget-full",
        status(429, "TooManyRequests", BUDGET, causes=[{"reason": "DisruptionBudget", "message": NEEDS}]),
        Outcome.BLOCKED,
        NEEDS,
    ),
    (
        "budget-not-observed",
        status(
            429,
            "TooManyRequests",
            BUDGET,
            causes=[{"reason": "DisruptionBudget", "message": PROCESSING}],
            retryAfterSeconds=10,
        ),
        Outcome.BLOCKED,
        PROCESSING,
    ),
    ("budget-without-cause", status(429, "TooManyRequests", BUDGET), Outcome.BLOCKED, BUDGET),
    (
        "budget-with-empty-cause",
        status(429, "TooManyRequests", BUDGET, causes=[{"reason": "DisruptionBudget"}]),
        Outcome.BLOCKED,
        BUDGET,
    ),
    (
        "budget-with-evictions-to-confirm",
        status(403, "Forbidden", UNCONFIRMED, causes=[{"reason": "DisruptionBudget", "message": PENDING}]),
        Outcome.BLOCKED,
        PENDING,
    ),
    ("budget-forbids-before-1.37", status(403, "Forbidden", UNCONFIRMED), Outcome.REFUSED, "too big"),
    ("bad-request", status(400, "BadRequest", "the body is no Eviction"), Outcome.REFUSED, "no Eviction"),
    # What another code says is not what the message reminds of.
    ("no-right-to-a-budget", status(403, "Forbidden", BUDGET), Outcome.REFUSED, BUDGET),
    ("no-right-to-two-budgets", status(403, "Forbidden", TWO), Outcome.REFUSED, TWO),
    ("no-version-is-wrong", status(500, "InternalError", WRONG_VERSION), Outcome.FAILED, "ResourceVersion"),
    (
        "a-budget-that-fails",
        status(500, "InternalError", "etcd", causes=[{"reason": "DisruptionBudget", "message": NEEDS}]),
        Outcome.FAILED,
        "etcd",
    ),
    ("flow-control", status(429, "TooManyRequests", "too many requests, please try again"), Outcome.THROTTLED, "again"),
    ("two-budgets", status(500, "", TWO), Outcome.MISCONFIGURED, "more than one"),
    ("server-error", status(500, "InternalError", "etcdserver: request timed out"), Outcome.FAILED, "etcdserver"),
    ("request-timeout", status(408, "Timeout", "request timeout"), Outcome.FAILED, "timeout"),
    ("no-right", status(403, "Forbidden", "cannot create resource pods/eviction"), Outcome.REFUSED, "cannot create"),
    (
        "namespace-terminating",
        status(403, "Forbidden", ENDING, causes=[{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]),
        Outcome.NAMESPACE_TERMINATING,
        "being terminated",
    ),
    ("no-token", status(401, "Unauthorized", "Unauthorized"), Outcome.REFUSED, "Unauthorized"),
    ("webhook-denies", status(403, "Forbidden", DENIES), Outcome.DENIED, "is frozen"),
    ("webhook-wants-it-later", status(429, "TooManyRequests", DENIES), Outcome.POSTPONED, "is frozen"),
    ("webhook-denies-with-404", status(404, "NotFound", DENIES), Outcome.DENIED, "is frozen"),
    ("policy-denies", status(422, "Invalid", POLICY_DENIES), Outcome.DENIED, "failed expression"),
    ("webhook-fails", status(500, "InternalError", WEBHOOK_FAILS), Outcome.WEBHOOK_FAILED, "connection refused"),
    (
        "invalid",
        status(422, "Invalid", "invalid", causes=[{"reason": "FieldValueInvalid", "field": "gracePeriodSeconds"}]),
        Outcome.REFUSED,
        "invalid",
    ),
]
rows = pytest.mark.parametrize(("answer", "outcome", "said"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])


@rows
async def test_each_answer_has_its_outcome_and_message(answer: dict[str, Any], outcome: Outcome, said: str) -> None:
    """Evict, delete, and fail the condition before a deletion, after which nothing is deleted."""
    error = read_refusal(answer["code"], msgspec.json.encode(answer))
    evicting, deleting, marking = ScriptedClient(error), ScriptedClient({}, error), ScriptedClient(error)
    results = [
        await evict_pod(evicting, POD, None, standing),
        *[await delete_pod(one, POD, None, "why", standing) for one in (deleting, marking)],
    ]
    for result in results:
        assert result.outcome is outcome
        assert said in result.message
    assert len(marking.calls) == 1


async def test_no_answer_is_a_failure_that_says_why() -> None:
    result = await evict_pod(ScriptedClient(Unreachable("connection reset")), POD, None, standing)
    assert result == Result(Outcome.FAILED, "connection reset")


@pytest.mark.parametrize("outcome_code", [429, 403, 500, 503])
def test_the_retry_time_of_the_server_is_kept(outcome_code: int) -> None:
    assert outcome_of(refusal(outcome_code, retry_after=10.0)).retry_after == 10.0


def test_several_causes_are_all_named() -> None:
    causes = [{"reason": "DisruptionBudget", "message": "a"}, {"reason": "DisruptionBudget", "message": "b"}]
    assert outcome_of(refusal(429, BUDGET, causes=causes)).message == "a; b"


# -- what is sent ---------------------------------------------------------------------------------------------------


async def test_an_eviction_carries_the_uid_as_precondition() -> None:
    client = ScriptedClient({})
    await evict_pod(client, POD, None, standing)
    [call] = client.calls
    assert (call.method, call.path) == ("POST", f"{POD_PATH}/eviction")
    assert call.body["deleteOptions"]["preconditions"] == {"uid": "uid-1"}
    assert call.body["metadata"] == {"name": "web-1", "namespace": "shop"}
    assert (call.body["apiVersion"], call.body["kind"]) == ("policy/v1", "Eviction")


async def test_a_delete_carries_the_uid_in_both_calls() -> None:
    client = ScriptedClient({"metadata": {"resourceVersion": "77"}}, {})
    await delete_pod(client, POD, None, "why", standing)
    patch, delete = client.calls
    assert patch.body["metadata"] == {"uid": "uid-1"}
    assert patch.params == {}
    assert delete.body["preconditions"] == {"uid": "uid-1"}


async def test_a_pod_that_must_not_have_changed_is_named_by_its_version() -> None:
    client = ScriptedClient({}, {"metadata": {"resourceVersion": "77"}}, {})
    await evict_pod(client, POD, None, standing, as_seen=True)
    await delete_pod(client, POD, None, "why", standing, as_seen=True)
    evict, patch, delete = client.calls
    named = {"uid": "uid-1", "resourceVersion": str(POD.resource_version)}
    assert evict.body["deleteOptions"]["preconditions"] == named
    assert patch.body["metadata"] == named
    assert delete.body["preconditions"] == {"uid": "uid-1", "resourceVersion": "77"}  # the patch has changed it


async def test_nothing_is_deleted_after_an_answer_without_a_version() -> None:
    client = ScriptedClient({})
    result = await delete_pod(client, POD, None, "why", standing, as_seen=True)
    assert result.outcome is Outcome.FAILED
    assert [call.method for call in client.calls] == ["PATCH"]


async def test_the_condition_comes_before_the_delete() -> None:
    client = ScriptedClient({}, {})
    await delete_pod(client, POD, None, "Taintwarden: sla is low", standing)
    assert [(call.method, call.path) for call in client.calls] == [
        ("PATCH", f"{POD_PATH}/status"),
        ("DELETE", POD_PATH),
    ]
    [condition] = client.calls[0].body["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("DisruptionTarget", "True")
    assert condition["message"] == "Taintwarden: sla is low"
    assert re.fullmatch(r"[A-Z]\w+", condition["reason"])
    assert client.calls[0].content_type == "application/strategic-merge-patch+json"


@pytest.mark.parametrize("grace", [None, 0, 30])
async def test_the_grace_period_is_the_pods_own_unless_given(grace: int | None) -> None:
    client = ScriptedClient({}, {}, {})
    await evict_pod(client, POD, grace, standing)
    await delete_pod(client, POD, grace, "why", standing)
    evict, _, delete = client.calls
    for options in (evict.body["deleteOptions"], delete.body):
        assert {field: value for field, value in options.items() if field == "gracePeriodSeconds"} == (
            {} if grace is None else {"gracePeriodSeconds": grace}
        )


# -- the fence ------------------------------------------------------------------------------------------------------


async def test_an_eviction_whose_fence_fails_is_not_sent() -> None:
    client = ScriptedClient({})
    assert await evict_pod(client, POD, None, lambda: False) == Result(Outcome.NOT_SENT)
    assert client.calls == []


async def test_the_fence_is_checked_again_between_condition_and_delete() -> None:
    """Seconds may pass between the calls: the node may recover, or another replica may lead."""
    answers = iter([True, False])
    client = ScriptedClient({}, {})
    result = await delete_pod(client, POD, None, "why", lambda: next(answers))
    assert result == Result(Outcome.NOT_SENT)
    assert [call.method for call in client.calls] == ["PATCH"]


# -- against an API server with its own rules ---------------------------------------------------------------------


@pytest.mark.parametrize("delete", [False, True])
@pytest.mark.parametrize("namesake", [False, True])
async def test_a_pod_is_evicted_and_a_namesake_is_not(delete: bool, namesake: bool) -> None:
    cluster = LocalCluster()
    cluster.create("pods", pod_body("web-1", nodeName="n1"))
    uid = cluster.store.get("pods", "web-1", "default")["metadata"]["uid"]
    pod = Pod("before" if namesake else uid, "web-1", "n1", PodClass("default", {}, Tolerations()), 0.0, 1)
    async with cluster.serve() as server, wire.client(server.url) as client:
        if delete:
            result = await delete_pod(client, pod, None, "why", standing)
        else:
            result = await evict_pod(client, pod, None, standing)
    assert result.outcome is (Outcome.GONE if namesake else Outcome.ACCEPTED)
    stored = [one for one in cluster.store.list("pods", "default") if "deletionTimestamp" not in one["metadata"]]
    assert len(stored) == namesake
    assert not [one for one in stored if "DisruptionTarget" in str(one["status"])]


DEPLOYMENT = Deployment("shop", "web", "uid-9", "7", restarted_at="2026-01-02T03:04:05Z")


async def test_a_restart_names_the_known_version_and_changes_one_annotation() -> None:
    client = ScriptedClient({})
    assert (await ask_replacement(client, DEPLOYMENT, standing)).outcome is Outcome.ASKED
    [call] = client.calls
    assert (call.method, call.path) == ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web")
    assert call.body["metadata"] == {"uid": "uid-9", "resourceVersion": "7"}
    annotations = {"kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z"}
    assert call.body["spec"] == {"template": {"metadata": {"annotations": annotations}}}


@pytest.mark.parametrize(
    ("code", "message", "outcome"),
    [
        (404, "not found", Outcome.NOT_SENT),
        (409, MODIFIED, Outcome.NOT_SENT),
        (403, "forbidden", Outcome.NOT_REPLACED),
        (422, "invalid", Outcome.NOT_REPLACED),
        (403, DENIES, Outcome.NOT_REPLACED),
        (500, WEBHOOK_FAILS, Outcome.NOT_REPLACED),
        (500, "etcdserver: request timed out", Outcome.FAILED),
        (504, "request did not complete within the allotted timeout", Outcome.FAILED),
        (429, "too many requests", Outcome.THROTTLED),
    ],
)
async def test_each_answer_to_a_restart_has_its_outcome(code: int, message: str, outcome: Outcome) -> None:
    client = ScriptedClient(refusal(code, message))
    assert (await ask_replacement(client, DEPLOYMENT, standing)).outcome is outcome


async def test_a_restart_without_an_answer_fails() -> None:
    client = ScriptedClient(Unreachable("gone"))
    assert (await ask_replacement(client, DEPLOYMENT, standing)).outcome is Outcome.FAILED
