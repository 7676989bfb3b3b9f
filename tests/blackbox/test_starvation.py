"""A namespace whose evictions are refused or fail delays no other one."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from blackbox.box import NO_LIMIT, Box, at_once
from controlplane import ApiError, Client, ControlPlane
from e2e.stories import PodRef, taint

NAMESPACES, PODS, PER_SECOND = 200, 2, 100
RATED = NO_LIMIT | {"evictionsPerSecond": PER_SECOND, "burst": 10}
LATER_SECONDS = 3
"""Maximum delay of the last pod of the others, compared to a run without refusals."""
GIVE_UP_SECONDS = 20
ONE_NAMESPACE, SLOW_PER_SECOND, SETTLED_SECONDS = 300, 10, 15
LONGEST_RETRY_SECONDS = 30
POISONED, OTHER_PODS, OTHERS_SECONDS = 30, 60, 10
STORE_BYTES = 2 * 1024 * 1024
"""More than a store takes of one object: 1.5 MiB, and half a MiB for the request around it."""

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
    """The namespaces, whose pods are removed afterwards."""
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


def test_pods_that_their_kubelet_made_too_large_to_be_changed_delay_no_other_node(
    box: Box, control_plane: ControlPlane
) -> None:
    poisoned, [other] = box.add_namespaces(POISONED), box.add_namespaces(1)
    box.enforce(limits=NO_LIMIT | {"evictionsPerSecond": SLOW_PER_SECOND, "burst": 2 * SLOW_PER_SECOND})
    bad, fallen = box.node(name="bad"), box.node(name="fallen")
    large = box.crowd(poisoned, 1, bad)
    with filled(control_plane, bad, large):
        others = box.crowd([other], OTHER_PODS, fallen)
        box.stays(*large, until=box.taint(bad, BAD) + LATER_SECONDS)
        assert box.last_gone(others, box.taint(fallen, BAD), OTHERS_SECONDS + LATER_SECONDS) <= OTHERS_SECONDS
        assert box.left(large) == POISONED
        box.wait(lambda: "request is too large" in box.delay("failing"), 30, "the cause to be in the status")


@contextmanager
def filled(control_plane: ControlPlane, node: str, pods: Sequence[PodRef]) -> Iterator[None]:
    """Let the kubelet of a node write messages into the status of its pods, until the store takes no larger object."""
    pair = control_plane.client_certificate(f"system:node:{node}", "system:nodes")
    client = Client(control_plane.server, control_plane.ca, certificate=pair)

    def takes(pod: PodRef, size: int) -> bool:
        namespace, _, name = pod.name.partition("/")
        try:
            client.patch("pods", name, {"status": {"message": "x" * size}}, namespace, subresource="status")
        except ApiError as error:
            if error.status not in (413, 500):
                raise
            return False
        return True

    fits, too_large = STORE_BYTES // 4, STORE_BYTES
    while too_large - fits > 8:
        middle = (fits + too_large) // 2
        fits, too_large = (middle, too_large) if takes(pods[0], middle) else (fits, middle)
    for pod in pods:  # their names have one length but for a digit
        assert takes(pod, fits - 8)
    try:
        yield
    finally:
        for pod in pods:  # else they cannot be deleted either
            takes(pod, 0)
        client.close()
