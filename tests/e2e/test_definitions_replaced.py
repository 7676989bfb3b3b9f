"""Our definitions are deleted and created again, on a real API server: policies act again, and soon.

All policies are gone with their definition, so this module has a control plane of its own.
"""

import time
from collections.abc import Iterator

import pytest

from controlplane import ControlPlane, Operator, wait_until
from e2e.stories import conditions, policy

NAMES = ("taintevictionpolicies", "tolerationprofiles")
WATCHED_SECONDS = 10  # a status is written every three
NOTICED_SECONDS = 20  # a list that is refused is requested again after at most 7.5 s
AWAY_SECONDS = 15
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs a control plane of its own, not --kubeconfig")
    with ControlPlane(tmp_path_factory.mktemp("replaced")) as started:
        started.apply_crds()
        started.apply_manifests()
        yield started


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """It has seen its definitions go and come back, with a policy in them."""
    cluster = control_plane.client
    folder = tmp_path_factory.mktemp("replaced-operator")
    with Operator(control_plane.operator_kubeconfig(), folder) as operator:
        operator.wait_leading()
        cluster.create("taintevictionpolicies", policy("before"))
        wait_until(lambda: is_told(control_plane, "before"), WATCHED_SECONDS, "the first policy to be accepted")
        for name in NAMES:
            cluster.delete("customresourcedefinitions", f"{name}.taintwarden.io")
        wait_until(lambda: not any(map(control_plane.answers, map(path_of, NAMES))), 30, "the definitions to be gone")
        time.sleep(AWAY_SECONDS)
        control_plane.apply_crds()
        cluster.create("taintevictionpolicies", policy("after"))
        wait_until(lambda: is_told(control_plane, "after"), NOTICED_SECONDS, "the new policy to be accepted")
        yield operator


def path_of(plural: str) -> str:
    return f"/apis/taintwarden.io/v1alpha1/{plural}"


def is_told(control_plane: ControlPlane, name: str, reason: str = "") -> bool:
    """Whether the operator says that it enforces the policy, or why it does not."""
    enforcing = conditions(control_plane.client, name).get("Enforcing", {})
    return enforcing.get("reason") == reason if reason else bool(enforcing)


def seconds_to_pause(control_plane: ControlPlane, *, paused: bool) -> float:
    """How long a pause takes until the operator says so."""
    cluster, began = control_plane.client, time.monotonic()
    cluster.patch("taintevictionpolicies", "after", {"spec": {"paused": paused}})

    def is_done() -> bool:
        enforcing = conditions(cluster, "after").get("Enforcing", {})
        return (enforcing.get("reason") == "Paused") is paused

    wait_until(is_done, NOTICED_SECONDS, f"paused: {paused} to be told")
    return time.monotonic() - began


def test_changes_are_watched_again(control_plane: ControlPlane, operator: Operator) -> None:
    wait_until(lambda: operator.metric("taintwarden_stale_view") == 0, NOTICED_SECONDS, "policies to be watched")
    taken = [seconds_to_pause(control_plane, paused=paused) for paused in (True, False, True, False)]
    assert max(taken) < WATCHED_SECONDS, taken


def test_profiles_are_watched_again(control_plane: ControlPlane, operator: Operator) -> None:
    wait_until(lambda: operator.metric("taintwarden_stale_view") == 0, NOTICED_SECONDS, "profiles to be watched")
    cluster, tolerations = control_plane.client, [{"key": "sla", "operator": "Gt", "value": "950"}]
    spec = {"podSelector": {}, "tolerations": tolerations}
    body = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TolerationProfile", "metadata": {"name": "after"}}
    cluster.create("tolerationprofiles", body | {"spec": spec}, "default")
    wait_until(
        lambda: cluster.get("tolerationprofiles", "after", "default").get("status"),
        WATCHED_SECONDS,
        "the profile to be accepted",
    )


def test_it_is_ready(operator: Operator) -> None:
    assert operator.is_ready()
    assert operator.process.is_running
