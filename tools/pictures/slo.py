"""The timeline of docs/slo-tutorial.md, drawn from its commands on the cluster of `make cluster ARGS=--slo`."""

import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

from pictures.charts import Chart, Points, Series, draw_dashboard

# The harness of the end-to-end tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from controlplane import Cluster
from controlplane.to_try import ToTry, opened
from e2e.runbook import Desk
from e2e.slo_scene import FELL, WRONG, State, play, state

SOURCE = "Drawn from a run of the tutorial, by data of its Prometheus and API server. Not a screenshot."
QUERY = "1000 * avg_over_time(node_availability[20s])"
FALLEN = ("node-zone-a-0", "node-zone-b-0")
OTHER = "node-zone-a-1"
"""A node whose availability does not fall."""
STEP_SECONDS, AVERAGED_SECONDS = 0.5, 20
LEAST = 930.0
STATES = {
    980.0: ("sla=980", "green"),
    960.0: ("sla=960", "orange"),
    940.0: ("sla=940, which web does not tolerate", "red"),
}


class _Recorder:
    """Records the state of the cluster twice a second. Moments are in seconds since 1970."""

    def __init__(self, client: Cluster) -> None:
        self.moments: list[tuple[float, State]] = []
        self._client = client
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(STEP_SECONDS):
            self.moments.append((time.time(), state(self._client)))


def timeline() -> str:
    """Play the tutorial, and draw values, taints and pods from the fall of two nodes until their recovery."""
    with tempfile.TemporaryDirectory(prefix="taintwarden-pictures-") as folder, opened(slo=True) as found:
        desk = Desk(Path(folder) / "clone", found.cluster.admin_kubeconfig, found.variables)
        time.sleep(AVERAGED_SECONDS)  # until then it would be the average of a shorter time
        with _Recorder(found.cluster.client) as recorder:
            played = play(found, desk)
        past = time.time() - time.monotonic()
        begin, end = played.began[FELL] + past, played.began[WRONG] + past
        moments = [(at, seen) for at, seen in recorder.moments if begin <= at <= end]
        charts = [_values(found, begin, end), _taints(moments), _pods(moments)]
    return draw_dashboard("From an SLO to a drain", SOURCE, charts, begin, end, columns=1)


def _values(found: ToTry, begin: float, end: float) -> Chart:
    points = {labels["node"]: values for labels, values in found.loop.prometheus.over(QUERY, begin, end)}
    # The two nodes have the same values.
    series = [Series(" and ".join(FALLEN), points[FALLEN[0]]), Series(OTHER, points[OTHER])]
    return Chart("Availability in thousandths, average of 20 s", series, {}, LEAST)


def _taints(moments: list[tuple[float, State]]) -> Chart:
    series = [
        Series(node, [(at, float(seen.taints[node])) for at, seen in moments if node in seen.taints])
        for node in (*FALLEN, OTHER)
    ]
    return Chart("Taint sla", series, STATES)


def _pods(moments: list[tuple[float, State]]) -> Chart:
    def over(app: str, *, fallen: bool) -> Points:
        counts = [(at, seen.nodes(app)) for at, seen in moments]
        return [(at, float(sum(n for node, n in count.items() if (node in FALLEN) is fallen))) for at, count in counts]

    series = [
        Series("web on the two nodes", over("web", fallen=True)),
        Series("batch on the two nodes", over("batch", fallen=True)),
        Series("web on the other four", over("web", fallen=False)),
    ]
    return Chart("Pods", series, {})
