"""The table of docs/placement.md where kubelets that run containers start again: no pod fails as placement ends."""

import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from controlplane import Cluster, wait_until
from e2e.household import APPS, BAD, DRIVER, SECONDS
from e2e.placement_table import TABLE, Event, Owner
from kind.household import Command, Home, home
from kind.installation import Installation, KubeCtl
from kind.nodes import engine, on_node
from kind.scene import is_ready

OBSERVED_SECONDS = 4.0  # how long "stays" is looked at
NODE_SECONDS = 120


@pytest.fixture
def house(cluster: Cluster, command: Command, workers: Sequence[str], operator: Installation) -> Iterator[Home]:
    """Pods of every kind of owner on the first worker, whose value they tolerate."""
    with home(cluster, command, workers, operator.image) as found:
        yield found
    operator.wait_complete()


def restart_kubelet(house: Home) -> None:
    with house.judged_again():
        on_node(house.first, "systemctl", "restart", "kubelet")


def restart_node(house: Home) -> None:
    """Its containers end, and its kubelet starts them again."""
    with house.judged_again():
        engine("restart", "--time", "1", house.first)
    wait_until(lambda: is_ready(house.client.get("nodes", house.first)), NODE_SECONDS, f"{house.first} to be ready")
    house.wait(house.is_ready, "all pods to be ready again")


Restart = Callable[[Home], None]


def drop(house: Home) -> None:
    house.set_policy(taints=[{"key": house.key, "effects": ["PreferNoSchedule"]}], versionLabels=[])


def rehearse(house: Home) -> None:
    house.set_policy(mode="DryRun")


def pause(house: Home) -> None:
    house.set_policy(paused=True)


def expect(house: Home, event: Event, before: dict[Owner, dict[str, str]], since: float) -> None:
    """Wait until what is seen is what the table says, and see that it stays so."""
    row = TABLE[event]

    def differs() -> dict[Owner, str]:
        seen = {owner: house.seen(owner, before[owner], since) for owner in Owner}
        return {owner: outcome for owner, outcome in seen.items() if outcome is not row[owner]}

    try:
        wait_until(lambda: not differs(), SECONDS, f"{event}")
    except TimeoutError as error:
        states = {owner: house.states(owner) for owner in differs()}
        raise TimeoutError(f"{error}: {differs()}; {states}") from error
    time.sleep(OBSERVED_SECONDS)  # nothing tells that nothing happens
    assert differs() == {}


@pytest.mark.parametrize("restart", [restart_kubelet, restart_node])
def test_a_restart_keeps_what_matches_its_node(house: Home, restart: Restart) -> None:
    before, since = house.uids(), time.monotonic()
    restart(house)
    expect(house, Event.KUBELET, before, since)
    house.wait(house.is_ready, "all pods to be ready after that")


@pytest.mark.parametrize(
    ("event", "end", "restart"),
    [
        (Event.EDITED, drop, restart_kubelet),
        (Event.DRY_RUN, rehearse, restart_kubelet),
        (Event.DRY_RUN, rehearse, restart_node),
    ],
)
def test_a_restart_keeps_pods_after_placement_ended(
    house: Home, event: Event, end: Callable[[Home], None], restart: Restart
) -> None:
    """Also where the value has fallen since."""
    before, since = house.uids(), time.monotonic()
    end(house)
    house.wait_labels({house.first: None})
    house.set_value(house.first, BAD)
    restart(house)
    expect(house, event, before, since)
    house.wait(house.is_ready, "all pods to be ready after that")


def test_a_restart_keeps_pods_of_a_policy_that_is_paused(house: Home) -> None:
    before, since = house.uids(), time.monotonic()
    pause(house)
    restart_kubelet(house)
    expect(house, Event.PAUSED, before, since)


def test_a_restart_after_the_value_fell_fails_what_does_not_match(house: Home) -> None:
    before = house.uids()
    since = house.set_value(house.first, BAD)
    expect(house, Event.FALLS_NO_SCHEDULE, before, since)
    restart_kubelet(house)
    expect(house, Event.KUBELET_FALLEN, before, since)


def test_turning_it_off_fails_no_pod(house: Home, command: Command, on_cluster: KubeCtl) -> None:
    """As the page says: end it, restart the workloads, remove the labels. Kubelets start again between the steps."""
    before, since = house.uids(), time.monotonic()
    drop(house)
    house.wait_labels({house.first: None})
    house.set_value(house.first, BAD)
    code, said = command("placement", "remove", house.key, "--yes")
    assert (code, f"{house.name}/bare" in said) == (1, True)
    restart_kubelet(house)
    expect(house, Event.EDITED, before, since)

    restart_workloads(house, on_cluster)
    wait_until(lambda: command("placement", "remove", house.key, "--yes")[0] == 0, SECONDS, "no pod to name the labels")
    labels = house.client.get("nodes", house.first)["metadata"]["labels"]
    assert not [label for label in labels if house.key in label and "taintwarden.io" in label]
    assert command("placement", "remove", DRIVER, "--yes")[0] == 1, "the volume names it"
    before, since = house.uids(), time.monotonic()
    restart_kubelet(house)
    assert house.is_ready()
    time.sleep(OBSERVED_SECONDS)  # nothing tells that nothing happens
    assert house.uids() == before
    assert not any(house.failures(pods) for pods in before.values())


def restart_workloads(house: Home, on_cluster: KubeCtl) -> None:
    """As an administrator does, with the taint gone: the new pods may be on any node but the two others."""
    house.client.set_taints(house.first, [])
    house.client.patch("nodes", house.second, {"spec": {"unschedulable": True}})
    for owner in (Owner.DEPLOYMENT, Owner.STATEFUL_SET, Owner.DAEMON_SET, Owner.VOLUME):
        kind = {Owner.DEPLOYMENT: "deployment", Owner.DAEMON_SET: "daemonset"}.get(owner, "statefulset")
        on_cluster("rollout", "restart", f"{kind}/{APPS[owner]}", "-n", house.name)
        on_cluster("rollout", "status", f"{kind}/{APPS[owner]}", "-n", house.name, "--timeout=60s")
    old = [pod["metadata"]["name"] for owner in (Owner.JOB, Owner.BARE) for pod in house.pods(APPS[owner])]
    for name in old:
        house.client.delete("pods", name, house.name)
    house.wait(lambda: not any(house.client.find("pods", name, house.name) for name in old), "the old pods to be gone")
    house.bare(APPS[Owner.BARE])
    house.wait(house.is_ready, "all pods to be replaced")
    house.client.patch("nodes", house.second, {"spec": {"unschedulable": False}})
