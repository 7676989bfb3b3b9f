"""Data that are read besides lists: the operator's settings, the built-in controller, the webhooks and rights."""

from typing import Any

import msgspec
import pytest

from cli.world import NOON, Json
from taintwarden.engine import rfc3339
from taintwarden.kube.errors import ApiError, ApiStatus
from taintwarden_cli.doctor.doctor_reading import operator_in, read_built_in, read_missing_rights
from taintwarden_cli.doctor.doctor_snapshot import BuiltIn
from taintwarden_cli.rehearsal.deployments import read_deployments
from taintwarden_cli.rehearsal.session import ClusterError


class Answers:
    """Stands for a session: answers by the end of the path, and remembers what was asked."""

    def __init__(self, reads: dict[str, Json] | None = None, review: Any = None) -> None:
        self.asked: list[Json] = []
        self._reads = reads or {}
        self._review = review

    async def read(self, path: str, wanted: type[Any], what: str, params: Any = None) -> Any:
        found = self._reads.get(path.rpartition("/")[2])
        return None if found is None else msgspec.convert(found, wanted)

    async def review(self, path: str, body: Json, action: str) -> Json:
        self.asked.append(body)
        answer = self._review(body)
        if isinstance(answer, ApiError):
            raise ClusterError(f"cannot {action}") from answer
        return answer["status"]


def deployed(*args: str, env: dict[str, str] | None = None, replicas: int = 2) -> dict[str, Json]:
    container = {"args": list(args), "env": [{"name": name, "value": value} for name, value in (env or {}).items()]}
    spec = {"replicas": replicas, "template": {"spec": {"containers": [{"command": ["proxy"]}, container]}}}
    return {"deployments": {"items": [{"metadata": {"name": "tw"}, "spec": spec}]}}


@pytest.mark.parametrize(
    ("args", "env", "wanted"),
    [
        (["run"], {}, (True, True)),
        (["run", "--no-numeric-operators", "--log-level", "debug"], {}, (False, True)),
        (["run"], {"TAINTWARDEN_SEMVER_OPERATORS": "false"}, (True, False)),
        (["run", "--semver-operators"], {"TAINTWARDEN_SEMVER_OPERATORS": "false"}, (True, True)),
        (["taintwarden", "run", "--dry-run"], {}, (True, True)),
        (["run"], {"TAINTWARDEN_HTTP_PORT": "none"}, (True, True)),
    ],
)
async def test_operator_runs_with_what_its_deployment_says(args, env, wanted):
    found = operator_in(await read_deployments(Answers(deployed(*args, env=env)), "tw"))
    assert found is not None
    assert (found.gates.numeric_operators, found.gates.semver_operators) == wanted
    assert (found.name, found.replicas) == ("tw", 2)


@pytest.mark.parametrize("reads", [{}, {"deployments": {"items": []}}, deployed("sleep")])
async def test_absent_operator_has_no_settings(reads):
    assert operator_in(await read_deployments(Answers(reads), "tw")) is None


def manager(*command: str, age: float = 1.0) -> dict[str, Json]:
    lease = {"metadata": {}, "spec": {"holderIdentity": "m", "renewTime": rfc3339.exactly(NOON - age)}}
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
        (manager("kube-controller-manager", "--controllers", "disruption-controller"), BuiltIn.ABSENT),
    ],
)
async def test_built_in_controller(reads, wanted):
    assert (await read_built_in(Answers(reads), NOON))[0] is wanted


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
    assert await read_built_in(Answers(reads), NOON) == wanted


async def test_rights_are_asked_for_the_operators_account():
    def allowed(body: Json) -> Json:
        return {"status": {"allowed": body["spec"]["resourceAttributes"]["subresource"] != "eviction"}}

    session = Answers(review=allowed)
    found = await read_missing_rights(session, "mine")
    assert {body["spec"]["user"] for body in session.asked} == {"system:serviceaccount:mine:taintwarden"}
    assert list(map(str, found.missing)) == ["create pods/eviction"]


async def test_forbidden_access_review_is_requested_once():
    session = Answers(review=lambda _: ApiError(403, ApiStatus()))
    with pytest.raises(ClusterError):
        await read_missing_rights(session, "mine")
    assert len(session.asked) == 1
