"""Edits in the middle of a wave apply from the next pod on."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from blackbox.box import FINE, LEAVES, NO_LIMIT, STAYS, Box, NewBox
from controlplane import sleep_until
from e2e.stories import annotation, conditions, taint

PODS, PER_SECOND = 30, 1
BEGUN, OBSERVED_SECONDS = 2, 3
GOOD, BAD = taint("980"), taint("900")
ABOVE = annotation({"key": "sla", "operator": "Gt", "value": "950"})
ABOVE_LESS = annotation({"key": "sla", "operator": "Gt", "value": "800"})


def pause(box: Box) -> None:
    assert box.run_command("pause", box.policy, "--reason", "a story").returncode == 0
    box.wait(lambda: conditions(box.cluster, box.policy)["Enforcing"]["reason"] == "Paused", 30, "the pause")


def resume(box: Box) -> None:
    assert box.run_command("resume", box.policy).returncode == 0


def tolerate(box: Box) -> None:
    for pod in box.cluster.items("pods", box.namespace):
        box.cluster.annotate("pods", pod["metadata"]["name"], ABOVE_LESS, box.namespace)
    wait_over(box)


def repair(box: Box) -> None:
    box.taint(f"{box.namespace}-n1", GOOD)
    wait_over(box)


def wait_over(box: Box) -> None:
    """Wait until no pod has to leave, as the status says."""
    box.wait(lambda: box.status().get("pending") == 0, 30, "the operator to see it")


EDITS: dict[str, tuple[Callable[[Box], None], int]] = {
    "paused": (pause, STAYS),
    "dry-run": (lambda box: box.edit(mode="DryRun"), STAYS),
    "grace": (lambda box: box.edit(timing={"violationGraceSeconds": 600}), LEAVES),
    "toleration": (tolerate, STAYS),
    "repaired": (repair, STAYS),
}
"""Each edit, which returns once the operator has observed it, and the state of the other pods in `explain` then."""


@pytest.fixture(scope="module")
def played(new_box: NewBox) -> Iterator[dict[str, "Future[None]"]]:
    """All edits, played side by side, since each wave takes its time."""

    def play(edit: str) -> None:
        with new_box() as box:
            ends_a_wave(box, edit)

    with ThreadPoolExecutor(len(EDITS)) as pool:
        yield {edit: pool.submit(play, edit) for edit in EDITS}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_ends_a_wave(played: dict[str, "Future[None]"], edit: str) -> None:
    played[edit].result()


def ends_a_wave(box: Box, edit: str) -> None:
    act, code = EDITS[edit]
    box.enforce(limits=NO_LIMIT | {"evictionsPerSecond": PER_SECOND, "burst": 1})
    node = box.node(GOOD)
    pods = [box.pod(f"web-{index}", node, annotations=ABOVE) for index in range(PODS)]
    box.wait_seen(node, "980")
    box.taint(node, BAD)
    box.wait(lambda: box.left(pods) <= PODS - BEGUN, 15, "the wave to begin")
    box.wait(lambda: box.status().get("pending"), 30, "the status to count who has to leave")
    act(box)
    seen = time.time()
    sleep_until(time.monotonic() + OBSERVED_SECONDS)
    assert not box.received(since=seen)  # a call that was in progress may still end a pod
    rest = [pod for pod in pods if box.watch.evicted_at(pod.uid) is None]
    assert rest, "the wave was over before"
    assert (box.explains(rest[0]), box.status_code()) == (code, FINE)
    if edit == "paused":
        resume(box)
        box.wait(lambda: box.left(rest) <= len(rest) - BEGUN, 15, "the wave to go on")
