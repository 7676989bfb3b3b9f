"""Pods that are due one after the other, and what is seen of operators while something burdens them."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controlplane import Cluster, Json, Operator, wait_until

ANSWER_SECONDS, END_SECONDS, FIRST_SECONDS = 30.0, 120.0, 10.0
LATEST_SECONDS = 5.0
"""How late an eviction of others may be. It is a second at most where nothing else runs, and 18 s or more without what
limits a burden; a bound between the two holds on a busy machine.
"""
PROBE_SECONDS = 5.0
"""The kubelet's ``timeoutSeconds``."""
MOST_BYTES = 300 * 2**20
TAINT = {"key": "sla", "value": "900", "effect": "NoExecute"}


def lateness(logs: Callable[[], Iterable[Mapping[str, Any]]], pods: str, number: int) -> list[float]:
    """Return the lateness of each eviction of a pod with ``pods`` in its name, once ``number`` are logged.

    A pod is gone before the operator has read the answer. After ``ANSWER_SECONDS``, return those logged so far.
    """
    ends_at = time.monotonic() + ANSWER_SECONDS
    while True:
        settled = [line for line in logs() if line.get("event") == "eviction-settled" and pods in line.get("pod", "")]
        found = [line["lateness"] for line in settled if line.get("outcome") == "evicted"]
        if len(found) >= number or time.monotonic() > ends_at:
            return found
        time.sleep(0.1)


def peak_bytes(process: Operator) -> int:
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


@dataclass
class Seen:
    """Observations of one story."""

    due: int = 0
    """Number of pods that were due."""
    lateness: list[float] = field(default_factory=list)
    probes: list[float] = field(default_factory=list)
    """Seconds for an answer of /livez, infinite for none."""
    lost: int = 0
    """Number of times leadership was lost."""
    bytes_at_most: list[int] = field(default_factory=list)
    """Peak memory of each replica."""

    def make_due(self, cluster: Cluster, namespace: str, node: str, number: int, every_seconds: float) -> None:
        """Create pods of which the first is due ``FIRST_SECONDS`` after its node has ``TAINT``."""
        for index in range(number):
            seconds = int(FIRST_SECONDS + index * every_seconds)
            tolerations = [{"key": "sla", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]
            cluster.create_pod(f"victim-{index}", namespace, node, tolerations=tolerations, grace_seconds=0)
        self.due = number

    def wait(self, cluster: Cluster, namespace: str) -> None:
        """Wait until the last of them is gone."""
        last = f"victim-{self.due - 1}"
        wait_until(lambda: not cluster.find("pods", last, namespace), END_SECONDS, "the last pod to be evicted")

    def probe(self, operator: Operator, ended: threading.Event) -> None:
        """Call the probe until `ended` is set."""
        while not ended.wait(0.5):
            began = time.monotonic()
            self.probes.append(time.monotonic() - began if operator.is_live() else float("inf"))

    def judge(self, *replicas: Operator) -> list[Json]:
        """Read the logs, and return them."""

        def logs() -> list[Json]:
            return [line for one in replicas for line in one.logs()]

        self.lateness = lateness(logs, "/victim-", self.due)
        lines = logs()
        self.lost = sum(line.get("event") == "leadership-lost" for line in lines)
        self.bytes_at_most = [peak_bytes(one) for one in replicas]
        figures = {
            "late": max(self.lateness, default=-1),
            "probes": max(self.probes, default=-1),
            "MiB": [one >> 20 for one in self.bytes_at_most],
        }
        print(json.dumps(figures))  # noqa: T201 - docs/security.md has these figures
        return lines


class Unharmed:
    """Tests of a module with a fixture ``story``."""

    def test_no_eviction_is_late(self, story: Seen) -> None:
        assert len(story.lateness) == story.due
        assert max(story.lateness) < LATEST_SECONDS

    def test_probes_are_answered(self, story: Seen) -> None:
        assert max(story.probes) < PROBE_SECONDS

    def test_leadership_is_kept(self, story: Seen) -> None:
        assert story.lost == 0

    def test_memory_is_bounded(self, story: Seen) -> None:
        assert max(story.bytes_at_most) < MOST_BYTES
