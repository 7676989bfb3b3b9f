"""Placement with the real scheduler and controllers: each kind of owner in each event.

Where a kubelet restarts, it is the real one too, with a container runtime in its memory.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controlplane import WorkingCluster, wait_until
from controlplane.binaries import is_before, minor_of, node_version
from controlplane.following import Follower
from controlplane.real_kubelet import RealKubelet
from e2e.household import APPS, BAD, POOL, SECONDS, Household
from e2e.placement_table import TABLE, Event, Outcome, Owner
from e2e.servants import Servants, served

OBSERVED_SECONDS = 4.0  # how long "stays" is looked at

pytestmark = pytest.mark.timeout(600)
WITH_KUBELET = pytest.mark.skipif(is_before(minor_of(node_version())), reason="no kubelet is newer than its server")


@pytest.fixture(scope="module")
def servants(populated_cluster: WorkingCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servants]:
    with served(populated_cluster, tmp_path_factory.mktemp("life")) as servants:
        yield servants


@contextmanager
def household(servants: Servants, effect: str = "NoSchedule", *, evicts: bool = False) -> Iterator[Household]:
    for name in servants.has:
        servants.switch(name, on=True)
    found = Household(servants.ground, effect, evicts=evicts)
    found.begin()
    try:
        yield found
    finally:
        found.clear()


@contextmanager
def running(servants: Servants, effect: str = "NoSchedule", *, evicts: bool = False) -> Iterator[Household]:
    """With a pod of each owner on its first node, which the bare one shares."""
    with household(servants, effect, evicts=evicts) as found:
        fill(found)
        yield found


def fill(house: Household) -> None:
    house.client.patch("nodes", house.second, {"spec": {"unschedulable": True}})
    house.ground.wait_scheduler(house.second)
    house.create_all()
    house.wait_running()
    house.client.patch("nodes", house.second, {"spec": {"unschedulable": False}})


@contextmanager
def with_kubelet(servants: Servants) -> Iterator[tuple[Household, RealKubelet]]:
    """A household whose first node has a kubelet of its own."""
    others = servants.ground.kubelet.others
    with household(servants) as house:
        others.add(house.first)
        try:
            with (
                Follower(house.client, "pods", house.see_pod),
                RealKubelet(servants.ground, house.first) as kubelet,
            ):
                fill(house)
                house.wait(lambda: all(map(house.runs_on_first, Owner)), "the kubelet to run all pods")
                yield house, kubelet
        finally:
            others.discard(house.first)


def expect(house: Household, event: Event, before: dict[Owner, dict[str, str]], since: float) -> None:
    """Wait until what is seen is what the table says, and see that it stays so where pods stay."""
    row = TABLE[event]

    def seen() -> dict[Owner, Outcome]:
        return {owner: house.seen(owner, before[owner], since) for owner in Owner}

    try:
        wait_until(lambda: seen() == row, SECONDS, f"{event}")
    except TimeoutError as error:
        raise TimeoutError(f"{error}: { ({one: text for one, text in seen().items() if text != row[one]}) }") from error
    if Outcome.STAYS in row.values() or Outcome.STAYS_FALLEN in row.values():
        time.sleep(OBSERVED_SECONDS)  # nothing tells that nothing happens
        assert seen() == row


def test_the_value_falls(servants: Servants) -> None:
    with running(servants, "NoExecute", evicts=True) as house:
        before = house.uids()
        since = house.set_value(house.first, BAD)
        expect(house, Event.FALLS_NO_EXECUTE, before, since)


def test_placement_ends(servants: Servants) -> None:
    """A pod that waited for a node with a greater value is scheduled."""
    with running(servants) as house:
        house.bare("waiting", "990")
        house.wait(lambda: bool(pending(house, "waiting")), "the pod to wait")
        before, since = house.uids(), time.monotonic()
        house.set_policy(taints=[{"key": house.key, "effects": ["PreferNoSchedule"]}], versionLabels=[])
        expect(house, Event.EDITED, before, since)
        house.wait(lambda: bool(bound(house, "waiting")), "the pod that waited to be bound")
        house.set_value(house.first, BAD)
        expect(house, Event.EDITED, before, since)


def test_the_policy_is_deleted(servants: Servants) -> None:
    """Labels keep their last values."""
    with running(servants) as house:
        before, since = house.uids(), time.monotonic()
        house.client.delete("taintevictionpolicies", house.name)
        expect(house, Event.DELETED, before, since)


@WITH_KUBELET
def test_the_kubelet_restarts_after_the_value_fell(servants: Servants) -> None:
    with with_kubelet(servants) as (house, kubelet):
        before = house.uids()
        since = house.set_value(house.first, BAD)
        expect(house, Event.FALLS_NO_SCHEDULE, before, since)
        kubelet.restart()
        expect(house, Event.KUBELET_FALLEN, before, since)


def bound(house: Household, app: str) -> list[str]:
    return [node for pod in house.pods(app) if (node := pod["spec"].get("nodeName"))]


def pending(house: Household, app: str) -> list[str]:
    """Return the scheduler's reasons to bind no pod."""
    found = [one for pod in house.pods(app) for one in pod.get("status", {}).get("conditions", [])]
    return [one["message"] for one in found if one.get("reason") == "Unschedulable"]


def test_the_webhook_is_away(servants: Servants) -> None:
    """Pods created meanwhile wait; when it is back, they are created again, and the DaemonSet is restarted."""
    with household(servants) as house:
        servants.switch("webhook", on=False)
        house.create_all()
        waiting = [owner for owner in Owner if TABLE[Event.WEBHOOK_AWAY][owner] is Outcome.PENDING]
        house.wait(lambda: all(pending(house, APPS[owner]) for owner in waiting), "pods to wait")
        assert [owner for owner in Owner if owner not in waiting] == [Owner.DAEMON_SET]
        assert house.pods(APPS[Owner.DAEMON_SET]) == []
        servants.switch("webhook", on=True)
        for owner in waiting:
            for pod in house.pods(APPS[owner]):
                house.client.delete("pods", pod["metadata"]["name"], house.name, grace_seconds=0)
        house.bare(APPS[Owner.BARE])
        restart(house)
        house.wait_running()


def restart(house: Household) -> None:
    """Restart the rollouts as `kubectl rollout restart` does."""
    stamp = {"kubectl.kubernetes.io/restartedAt": str(time.time())}
    template = {"metadata": {"annotations": stamp}}
    house.client.patch("daemonsets", APPS[Owner.DAEMON_SET], {"spec": {"template": template}}, house.name)


def test_the_operator_is_away(servants: Servants) -> None:
    """Labels keep their values, so nothing changes; a new node stays closed until it is back."""
    with running(servants, "NoExecute", evicts=True) as house:
        house.bare("waiting", "990")
        house.wait(lambda: bool(pending(house, "waiting")), "the pod to wait")
        before = house.uids()
        servants.switch("operator", on=False)
        since = house.set_value(house.first, BAD)
        new = f"{house.name}-new"
        house.client.create_node(new, {POOL: house.name}, house.taints("999"))
        expect(house, Event.OPERATOR_AWAY, before, since)
        assert bound(house, "waiting") == []
        servants.switch("operator", on=True)
        house.wait(lambda: bound(house, "waiting") == [new], "the pod that waited to be bound")
