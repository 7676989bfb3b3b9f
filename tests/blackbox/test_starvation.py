"""A namespace whose evictions are refused delays no other one."""

import time
from collections.abc import Iterator

import pytest

from blackbox.box import NO_LIMIT, Box, at_once
from controlplane import ControlPlane
from e2e.stories import taint

NAMESPACES, PODS, PER_SECOND = 200, 2, 100
RATED = NO_LIMIT | {"evictionsPerSecond": PER_SECOND, "burst": 10}
LATER_SECONDS = 3
"""How much later the last pod of the others may leave than without refusals."""
GIVE_UP_SECONDS = 20
ONE_NAMESPACE, SLOW_PER_SECOND, SETTLED_SECONDS = 300, 10, 15
LONGEST_RETRY_SECONDS = 30

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("denial")]
BAD = taint("900")


@pytest.fixture(scope="module")
def namespaces(control_plane: ControlPlane) -> list[str]:
    """Empty namespaces of other tenants, for all stories: to create them takes longer than a story."""
    names = [f"tenant-{index}" for index in range(NAMESPACES)]
    at_once([lambda name=name: control_plane.client.create_namespace(name) for name in names])
    return names


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, float]:
    """`seconds`: until the last pod left where nothing was refused."""
    return {"seconds": NAMESPACES * PODS / PER_SECOND}


@pytest.fixture
def tenants(box: Box, namespaces: list[str]) -> Iterator[list[str]]:
    """The same, empty again afterwards."""
    yield namespaces
    box.allow(*namespaces)
    at_once([lambda name=name: box.cluster.delete_all("pods", name) for name in namespaces])


@pytest.mark.parametrize("denied", [0, NAMESPACES - 1])
def test_refused_namespaces_delay_no_other(
    box: Box, tenants: list[str], undisturbed: dict[str, float], denied: int
) -> None:
    box.deny(*tenants[:denied])
    box.enforce(limits=RATED)
    node = box.node()
    refused, others = box.crowd(tenants[:denied], PODS, node), box.crowd(tenants[denied:], PODS, node)
    seconds = box.last_gone(others, box.taint(node, BAD), GIVE_UP_SECONDS)
    assert box.left(refused) == len(refused), "evictions of these pods are denied"
    if denied == 0:
        undisturbed["seconds"] = seconds
    assert seconds <= undisturbed["seconds"] + LATER_SECONDS


def test_pods_that_have_been_refused_for_a_while_delay_no_pod_that_becomes_due(box: Box) -> None:
    denied, other = box.add_namespaces(2)
    box.deny(denied)
    box.enforce(limits=NO_LIMIT | {"evictionsPerSecond": SLOW_PER_SECOND, "burst": SLOW_PER_SECOND})
    bad, fallen = box.node(name="bad"), box.node(name="fallen")
    refused = box.crowd([denied], ONE_NAMESPACE, bad)
    [pod] = box.crowd([other], 1, fallen)
    box.stays(pod, *refused, until=box.taint(bad, BAD) + SETTLED_SECONDS)
    box.leaves(pod, box.taint(fallen, BAD), slack=LATER_SECONDS)


def test_pods_leave_once_nothing_refuses_them(box: Box) -> None:
    box.deny(box.namespace)
    box.enforce()
    node = box.node()
    pods = box.crowd([box.namespace], 20, node)
    box.stays(*pods, until=box.taint(node, BAD) + 3)
    box.allow(box.namespace)
    box.last_gone(pods, time.monotonic(), LONGEST_RETRY_SECONDS + LATER_SECONDS)
    assert set(box.accepted().values()) == {1}
