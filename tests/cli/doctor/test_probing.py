"""What is asked beside lists: the operator's settings, the built-in controller, gates and rights."""

from typing import Any

import msgspec
import pytest

from cli.world import NOON, Json
from taintwarden.cli.doctor import probing
from taintwarden.cli.doctor.doctor_snapshot import BuiltIn, Missing, Trial
from taintwarden.cli.doctor.rights import shipped_rights
from taintwarden.controller import wording
from taintwarden.kube.errors import ApiError, ApiStatus, Details, StatusCause
from taintwarden.rehearsal.session import ClusterError


class Answers:
    """Stands for a session: answers by the end of the path, and remembers what was asked."""

    def __init__(self, reads: dict[str, Json] | None = None, review: Any = None) -> None:
        self.asked: list[Json] = []
        self._reads = reads or {}
        self._review = review

    async def read(self, path: str, wanted: type[Any], what: str, params: Any = None) -> Any:
        found = self._reads.get(path.rpartition("/")[2])
        return None if found is None else msgspec.convert(found, wanted)

    async def review(self, path: str, body: Json, wanted: type[Any], action: str, params: Any = None) -> Any:
        self.asked.append(body)
        answer = self._review(body)
        if isinstance(answer, ApiError):
            raise ClusterError(f"cannot {action}") from answer
        return answer if wanted is msgspec.Raw else msgspec.convert(answer, wanted)


def deployed(*args: str, env: dict[str, str] | None = None, replicas: int = 2) -> dict[str, Json]:
    container = {"args": list(args), "env": [{"name": name, "value": value} for name, value in (env or {}).items()]}
    spec = {"replicas": replicas, "template": {"spec": {"containers": [{"command": ["proxy"]}, container]}}}
    return {"deployments": {"items": [{"metadata": {"name": "tw"}, "spec": spec}]}}


@pytest.mark.parametrize(
    ("args", "env", "wanted"),
    [
        (["run"], {}, (True, True, False)),
        (["run", "--no-numeric-operators", "--log-level", "debug"], {}, (False, True, False)),
        (["run"], {"TAINTWARDEN_SEMVER_OPERATORS": "false"}, (True, False, False)),
        (["run", "--semver-operators"], {"TAINTWARDEN_SEMVER_OPERATORS": "false"}, (True, True, False)),
        (["taintwarden", "run", "--dry-run"], {}, (True, True, True)),
        (["run"], {"TAINTWARDEN_HTTP_PORT": "none"}, (True, True, False)),
    ],
)
async def test_operator_runs_with_what_its_deployment_says(args, env, wanted):
    found = await probing.read_operator(Answers(deployed(*args, env=env)), "tw")
    assert found is not None
    assert (found.gates.numeric_operators, found.gates.semver_operators, found.dry_run) == wanted
    assert (found.name, found.replicas) == ("tw", 2)


@pytest.mark.parametrize("reads", [{}, {"deployments": {"items": []}}, deployed("sleep")])
async def test_operator_that_is_not_there(reads):
    assert await probing.read_operator(Answers(reads), "tw") is None


def manager(*command: str, age: float = 1.0) -> dict[str, Json]:
    lease = {"metadata": {}, "spec": {"holderIdentity": "m", "renewTime": wording.exactly(NOON - age)}}
    pods = {"items": [{"spec": {"containers": [{"command": list(command)}]}}]} if command else {"items": []}
    return {"kube-controller-manager": lease, "pods": pods}


@pytest.mark.parametrize(
    ("reads", "wanted"),
    [
        ({}, BuiltIn.ABSENT),
        (manager(age=3600), BuiltIn.ABSENT),
        ({"kube-controller-manager": {"metadata": {}, "spec": {}}}, BuiltIn.ABSENT),
        (manager(), BuiltIn.PERHAPS),
        (manager("kube-controller-manager"), BuiltIn.RUNS),
        (manager("kube-controller-manager", "--controllers=*,bootstrapsigner"), BuiltIn.RUNS),
        (manager("kube-controller-manager", "--controllers=*,-taint-eviction-controller"), BuiltIn.ABSENT),
        (manager("kube-controller-manager", "--controllers=disruption-controller"), BuiltIn.ABSENT),
        (manager("kube-controller-manager", "--controllers=taint-eviction-controller"), BuiltIn.RUNS),
    ],
)
async def test_built_in_controller(reads, wanted):
    assert (await probing.read_built_in(Answers(reads), NOON))[0] is wanted


@pytest.mark.parametrize(
    ("controllers", "wanted"),
    [
        ("*", (BuiltIn.RUNS, BuiltIn.RUNS)),
        ("*,-taint-eviction-controller", (BuiltIn.ABSENT, BuiltIn.RUNS)),
        ("*,-device-taint-eviction-controller", (BuiltIn.RUNS, BuiltIn.ABSENT)),
        ("device-taint-eviction-controller", (BuiltIn.ABSENT, BuiltIn.RUNS)),
    ],
)
async def test_the_controllers_for_nodes_and_devices_are_two(controllers, wanted):
    reads = manager("kube-controller-manager", f"--controllers={controllers}")
    assert await probing.read_built_in(Answers(reads), NOON) == wanted


def refusal(code: int, *fields: str) -> ApiError:
    return ApiError(code, ApiStatus(details=Details(tuple(StatusCause(field=field) for field in fields))))


async def test_trials_tell_operators_apart():
    def answer(body: Json) -> Any:
        operator = body["spec"]["tolerations"][0]["operator"]
        return {} if operator == "Gt" else refusal(422, "spec.tolerations[0].operator")

    session = Answers(review=answer)
    assert await probing.try_pods(session) == [Trial("Gt", accepted=True), Trial("SemverGt", accepted=False)]
    assert len(session.asked) == 2


@pytest.mark.parametrize("error", [refusal(403), refusal(422), refusal(422, "spec.tolerations[0]", "spec.nodeName")])
async def test_refusal_for_another_reason_tells_nothing(error):
    with pytest.raises(ClusterError, match="cannot try pods with Gt"):
        await probing.try_pods(Answers(review=lambda _: error))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({}, False),
        (
            ApiError(422, ApiStatus(message='webhook "annotations.validate.taintwarden.io" denied the request: no')),
            True,
        ),
        (ApiError(403, ApiStatus(message="you may not create pods")), None),
        (ApiError(422, ApiStatus(message='webhook "pods.example.com" denied the request: no')), None),
    ],
)
async def test_webhooks_are_tried_by_what_only_they_reject(answer, told):
    session = Answers(review=lambda _: answer)
    assert await probing.try_webhooks(session) is told
    [body] = session.asked
    assert body["metadata"]["annotations"] == {"taintwarden.io/tolerations": "invalid"}


async def test_rights_are_asked_for_the_operators_account():
    def allowed(body: Json) -> Json:
        return {"status": {"allowed": body["spec"]["resourceAttributes"]["resource"] != "nodes"}}

    session = Answers(review=allowed)
    found = await probing.read_rights(session, "mine")
    assert {body["spec"]["user"] for body in session.asked} == {"system:serviceaccount:mine:taintwarden"}
    assert found.asked == len(session.asked) - 1 == len(shipped_rights("mine"))
    assert [one.resource for one in found.missing] == ["nodes"]
    assert found.missed == len(found.missing[0].verbs)


async def test_rights_are_those_of_the_account_that_the_deployment_names():
    reads = deployed("run")
    reads["deployments"]["items"][0]["spec"]["template"]["spec"]["serviceAccountName"] = "release-taintwarden"
    session = Answers(reads, review=lambda _: {"status": {"allowed": True}})
    assert (await probing.read_rights(session, "mine")).account == "mine/release-taintwarden"
    assert {body["spec"]["user"] for body in session.asked} == {"system:serviceaccount:mine:release-taintwarden"}


async def test_missing_rights_name_their_place():
    session = Answers(review=lambda body: {"status": {"allowed": body["spec"]["resourceAttributes"]["group"] == ""}})
    found = await probing.read_rights(session, "mine")
    assert Missing("leases.coordination.k8s.io", ("get", "update"), " taintwarden in mine") in found.missing
    assert "taintevictionpolicies/status.taintwarden.io" in [one.resource for one in found.missing]


def limits(*names: str, action: str = "Deny") -> dict[str, Json]:
    items = [{"spec": {"policyName": name, "validationActions": [action]}} for name in names]
    return {"validatingadmissionpolicybindings": {"items": items}}


def limited(body: Json) -> Json:
    return {"status": {"allowed": body["spec"]["resourceAttributes"]["verb"] != "delete"}}


def not_limited(body: Json) -> Json:
    return {"status": {"allowed": body["spec"]["resourceAttributes"]["verb"] != "limit"}}


@pytest.mark.parametrize(
    ("reads", "review", "wanted"),
    [
        (limits(*probing.LIMITS), limited, ""),
        (limits(*[f"our-{name}" for name in probing.LIMITS]), limited, ""),
        (limits(*probing.LIMITS), not_limited, "no binding gives it the right to limit accounts.taintwarden.io"),
        (limits(*probing.LIMITS[1:]), limited, "no binding denies what taintwarden-nodes would"),
        (limits(*probing.LIMITS, action="Audit"), limited, f"no binding denies what {', '.join(probing.LIMITS)} would"),
        ({}, lambda _: {"status": {"allowed": False}}, ""),
    ],
)
async def test_whether_the_account_is_limited(reads, review, wanted):
    assert (await probing.read_rights(Answers(reads, review), "mine")).unlimited == wanted


async def test_who_may_not_ask_asks_once():
    session = Answers(review=lambda _: refusal(403))
    with pytest.raises(ClusterError):
        await probing.read_rights(session, "mine")
    assert len(session.asked) == 1
