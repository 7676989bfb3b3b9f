"""The real API server keeps the contract too: the very cases that the embedded one is held to."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml

from contract import MODULES

pytest.register_assert_rewrite(*[f"contract.{name}" for name in MODULES])

from contract.api import Api  # noqa: E402 - the assertions of the cases are rewritten first
from contract.cases import CASES, GATED, Case, name_of  # noqa: E402
from contract.etcd import compact  # noqa: E402
from controlplane import ControlPlane  # noqa: E402
from controlplane.binaries import is_before  # noqa: E402

OTHERWISE_IN_1_30 = {
    "custom-the_schema_is_enforced": "words a message otherwise",
    "deleting-a_bound_pod_waits_for_its_kubelet": "gives pods no generation",
    "pods-comparison_operators_need_their_gate": "does not know Gt and Lt",
    "writing-a_new_object_gets_identity_and_revision": "gives pods no generation",
    "writing-the_status_of_a_pod_may_carry_labels": "gives pods no generation",
}
"""Cases that do not apply to the oldest version that is supported, and what it does. The operator relies on none of
them: it reads no generation of a pod.
"""
CLIENT_URLS = "--advertise-client-urls="
CLOSING_SECONDS = 0.25  # aiohttp closes TLS connections in the background, and does not report when it has

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster without feature gates, as most are."""
    with ControlPlane(tmp_path_factory.mktemp("plain")) as started:
        yield started


@asynccontextmanager
async def connected(control_plane: ControlPlane) -> AsyncIterator[Api]:
    """The administrator's session, in a namespace of its own."""
    tls = ssl.create_default_context(cafile=str(control_plane.ca))
    [user] = [each["user"] for each in yaml.safe_load(control_plane.admin_kubeconfig.read_text())["users"]]
    tls.load_cert_chain(user["client-certificate"], user["client-key"])
    [etcd] = [part.removeprefix(CLIENT_URLS) for part in control_plane.etcd.command if part.startswith(CLIENT_URLS)]
    async with aiohttp.ClientSession() as session:
        api = Api(
            session,
            control_plane.server,
            tls=tls,
            compact=lambda: compact(session, etcd),
            comparison_operators=bool(control_plane.feature_gates),
        )
        await api.new_namespace()
        yield api
    await asyncio.sleep(CLOSING_SECONDS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(plain: ControlPlane) -> AsyncIterator[Api]:
    async with connected(plain) as api:
        yield api


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api_with_gate(own_control_plane: ControlPlane) -> AsyncIterator[Api]:
    """With the feature gate TaintTolerationComparisonOperators."""
    async with connected(own_control_plane) as api:
        yield api


def applicable(cases: list[Case]) -> list[Any]:
    """The cases, with those to be skipped that the version under test answers otherwise."""
    otherwise = OTHERWISE_IN_1_30 if is_before(31) else {}
    skip = {name: pytest.mark.skip(reason=f"this Kubernetes {does}") for name, does in otherwise.items()}
    assert skip.keys() <= {name_of(case) for case in CASES}
    return [pytest.param(case, marks=skip.get(name_of(case), ()), id=name_of(case)) for case in cases]


@pytest.mark.parametrize("case", applicable(CASES))
async def test_kube_apiserver(case: Case, api: Api) -> None:
    await api.new_namespace()
    await case(api)


@pytest.mark.parametrize("case", applicable(GATED))
async def test_kube_apiserver_with_comparison_operators(case: Case, api_with_gate: Api) -> None:
    await case(api_with_gate)
