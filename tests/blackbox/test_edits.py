"""What people change in the middle of a wave holds from the next pod on."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from blackbox.box import FINE, LEAVES, NO_LIMIT, STAYS, Box, NewBox
from e2e.stories import annotation, taint

PODS, PER_SECOND = 30, 1
BEGUN, OBSERVED_SECONDS = 2, 3
GOOD, BAD = taint("980"), taint("900")
ABOVE = annotation({"key": "sla", "operator": "Gt", "value": "950"})
ABOVE_LESS = annotation({"key": "sla", "operator": "Gt", "value": "800"})


def pause(box: Box) -> None:
    assert box.run_command("pause", box.policy, "--reason", "a story").returncode == 0


def resume(box: Box) -> None:
    assert box.run_command("resume", box.policy).returncode == 0


def tolerate(box: Box) -> None:
    for pod in box.cluster.items("pods", box.namespace):
        box.cluster.annotate("pods", pod["metadata"]["name"], ABOVE_LESS, box.namespace)


def repair(box: Box) -> None:
    box.taint(f"{box.namespace}-n1", GOOD)


EDITS: dict[str, tuple[Callable[[Box], None], int]] = {
    "paused": (pause, STAYS),
    "dry-run": (lambda box: box.edit(mode="DryRun"), STAYS),
    "grace": (lambda box: box.edit(timing={"violationGraceSeconds": 600}), LEAVES),
    "toleration": (tolerate, STAYS),
    "repaired": (repair, STAYS),
}
"""What is done, and what `explain` says of the rest afterwards."""


@pytest.fixture(scope="module")
def played(new_box: NewBox) -> Iterator[dict[str, "Future[None]"]]:
    """All of them side by side, since each wave takes its time."""

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
    act(box)
    time.sleep(1)  # until the operator has seen it: not all of these changes are confirmed
    rest = [pod for pod in pods if box.watch.evicted_at(pod.uid) is None]
    assert rest, "the wave was over before"
    box.stays(*rest, until=time.monotonic() + OBSERVED_SECONDS)
    assert (box.explains(rest[0]), box.status_code()) == (code, FINE)
    if edit == "paused":
        resume(box)
        box.wait(lambda: box.left(rest) <= len(rest) - BEGUN, 15, "the wave to go on")
