"""What is measured. Each case gives rows: what it cost the operator, and what else it found."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

from bench.population import NO_LIMITS, Json, Shape
from bench.replay.recording import recording
from bench.replay.rig import POLICIES, Cluster, Cost, Subject
from bench.sync import wait_for
from bench.usage import MIB, CpuMeter

PODS_PER_NODE = 30
STARTS = (10_000, 50_000, 150_000)
"""The figures per pod are those of each further pod, from one size to the next, without what a start uses once."""
LARGE = 150_000
KEY = "bench.example/outage"
"""Nothing tolerates this taint."""
LONG_SECONDS = 3600
CHURN_PER_SECOND, HEARTBEAT_SECONDS, WATCHED_SECONDS = 1_000, 10, 30
TAINTED_NODES = 1_000
DEADLINES = (20_000, 100_000)
SPREAD_SECONDS = 60
GRACE_SECONDS = 75
"""The last node is tainted before the first deadline."""
PATIENCE_SECONDS = 200
"""How long after the last deadline the last eviction is waited for."""
FLAP_SECONDS, STORM_SECONDS = 6, 60
ENDURANCE_ROUNDS, ENDURANCE_CHURN_SECONDS, ENDURANCE_PER_SECOND = 30, 100, 500
"""An hour, in rounds of two minutes."""
ROUNDS, TURNED_OVER, TURNED_OVER_PER_SECOND = 12, 5_000, 2_500

Row = dict[str, Any]
Named = tuple[str, Row]


def measure(folder: Path, scale: float) -> Iterator[Named]:
    """All cases, one after the other. The folder keeps the recording."""
    recording(folder)
    yield from starts(folder, scale)
    with Cluster.serve(folder, shape(LARGE * scale), policy(LONG_SECONDS)) as cluster:
        with cluster.leader() as operator:
            for case in (idle, churn, heartbeats, turn_over):
                yield case.__name__.replace("_", " "), case(cluster, operator, scale)
        with cluster.leader(is_timed=True) as operator:
            for case in (taints, relist, storm):
                yield case.__name__, case(cluster, operator, scale)
    for pods in DEADLINES:
        yield f"{pods * scale:,.0f} deadlines in a minute", deadlines(folder, round(pods * scale), scale)


def endurance(folder: Path, scale: float) -> Iterator[Named]:
    """An hour in which pods change all the time, and come and go. The growth is that of the second half."""
    recording(folder)
    pods, memory = round(TURNED_OVER * scale), []
    with Cluster.serve(folder, shape(LARGE * scale), policy(LONG_SECONDS)) as cluster, cluster.leader() as operator:
        with operator.measured() as cost:
            for _ in range(ENDURANCE_ROUNDS):
                cluster.command("churn", per_second=CHURN_PER_SECOND, seconds=ENDURANCE_CHURN_SECONDS * scale)
                cluster.command("turn_over", pods=pods, per_second=ENDURANCE_PER_SECOND)
                operator.settle()
                memory.append(round(operator.rss_mib(), 1))
        grown = memory[-1] - memory[len(memory) // 2 - 1]
        percent = cost.cpu_seconds / cost.seconds * 100
        yield "endurance", _row(cost, percent_of_a_core=percent, mib_grown=grown, rounds_mib=memory)


def shape(pods: float) -> Shape:
    return Shape(max(1, round(pods) // PODS_PER_NODE), round(pods))


def policy(grace_seconds: int) -> Json:
    timing = {"violationGraceSeconds": grace_seconds}
    return {"mode": "Enforce", "taints": [{"key": KEY}], "limits": NO_LIMITS, "timing": timing}


def starts(folder: Path, scale: float) -> Iterator[Named]:
    """From the start of the process until it is ready, in clusters of several sizes, beside clients that only read."""
    smaller: tuple[int, Row] | None = None
    for pods in STARTS:
        size, bare = shape(pods * scale), {}
        with Cluster.serve(folder, size, policy(LONG_SECONDS)) as cluster:
            if pods == LARGE:
                bare = {"transfer": transfer(cluster), "transfer_and_parse": transfer(cluster, "parse")}
            row = start(cluster)
        for name, other in bare.items():
            yield f"{name.replace('_', ' ')}, {size.pods:,} pods", other
            row[f"cpu_ratio_to_{name}"] = row["cpu_seconds"] / other["cpu_seconds"]
            row[f"ratio_to_{name}"] = row["seconds"] / other["seconds"]
        if smaller is not None:
            further, before = size.pods - smaller[0], smaller[1]
            row["cpu_us_per_further_pod"] = (row["cpu_seconds"] - before["cpu_seconds"]) / further * 1e6
            row["bytes_per_further_pod"] = (row["settled_mib"] - before["settled_mib"]) * MIB / further
        smaller = size.pods, row
        yield f"start, {size.pods:,} pods", row


def start(cluster: Cluster) -> Row:
    with cluster.operator() as operator:
        with operator.measured() as cost:
            operator.wait_ready()
        operator.settle()
        sync_seconds = operator.operator.metric("taintwarden_sync_seconds")
        return _row(cost, sync_seconds=sync_seconds, settled_mib=operator.rss_mib())


def transfer(cluster: Cluster, *arguments: str) -> Row:
    """The seconds are those of the whole process, as for the operator."""
    server = cluster.server.pid or 0
    meter, began = CpuMeter({"server": server}), time.monotonic()
    command = [sys.executable, "-m", "bench.transfer", str(cluster.kubeconfig), *arguments]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    used, seconds = meter.read(), time.monotonic() - began
    cost = Cost(
        found["cpu_seconds"],
        seconds,
        found["peak_mib"],
        used["server"],
        used["others"] - found["cpu_seconds"],
        os.getloadavg()[0],
    )
    return _row(cost, sync_seconds=found["seconds"])


def idle(_: Cluster, operator: Subject, scale: float) -> Row:
    """Nothing changes."""
    return _during(operator, lambda: time.sleep(WATCHED_SECONDS * scale), WATCHED_SECONDS * scale)


def churn(cluster: Cluster, operator: Subject, scale: float) -> Row:
    """1,000 status updates of pods a second, none of which matters."""
    seconds = WATCHED_SECONDS * scale
    return _during(operator, lambda: cluster.command("churn", per_second=CHURN_PER_SECOND, seconds=seconds), seconds)


def heartbeats(cluster: Cluster, operator: Subject, scale: float) -> Row:
    """Every node reports its status every 10 s."""
    seconds = WATCHED_SECONDS * scale
    return _during(
        operator, lambda: cluster.command("heartbeats", every_seconds=HEARTBEAT_SECONDS, seconds=seconds), seconds
    )


def _during(operator: Subject, act: Callable[[], Any], seconds: float) -> Row:
    with operator.measured() as cost:
        answer = act() or {}
        operator.settle()
    percent = cost.cpu_seconds / seconds * 100
    found = {"percent_of_a_core": percent, "server_behind_seconds": answer.get("behind_seconds", 0.0)}
    return _row(cost, **found)


def taints(cluster: Cluster, operator: Subject, scale: float) -> Row:
    """1,000 nodes are tainted at once. First until the status tells of every pod, then until all is written."""
    count = round(TAINTED_NODES * scale)
    cluster.command("hold_writes")
    operator.steps()
    with operator.measured() as cost:
        cluster.command("taint", key=KEY, first=0, count=count, seconds=0, grace_seconds=LONG_SECONDS)
        wait_for(lambda: _pending(cluster) == count * PODS_PER_NODE)
    steps = operator.steps()
    with operator.measured() as written:
        cluster.command("release_writes")
        wait_for(lambda: cluster.command("written")["nodes"] >= count)
    cluster.command("untaint", first=0, count=count)
    operator.settle()
    return _row(
        cost,
        pods=count * PODS_PER_NODE,
        **steps,
        history_cpu_seconds=written.cpu_seconds,
    )


def _pending(cluster: Cluster) -> int:
    """Of the policy's status, since asking the operator would cost it something."""
    status: Json = cluster.get(f"{POLICIES}/bench").get("status", {})
    return int(status.get("pending", 0))


def relist(cluster: Cluster, operator: Subject, _: float) -> Row:
    """The watch of pods ends with 410."""
    before = operator.rss_mib()
    operator.steps()
    with operator.measured() as cost:
        cluster.command("expire")
        operator.settle()
    return _row(cost, mib_before=before, **operator.steps())


def storm(cluster: Cluster, operator: Subject, scale: float) -> Row:
    """For a minute, every node gets or loses a taint every 6 s. The seconds last until nothing is left to do."""
    seconds = STORM_SECONDS * scale
    operator.steps()
    with operator.measured() as cost:
        answer = cluster.command("flap", key=KEY, every_seconds=FLAP_SECONDS, seconds=seconds)
        operator.settle()
    evicted = len(cluster.command("lateness")["seconds"])
    return _row(cost, node_changes=answer["sent"], evicted=evicted, **operator.steps())


def turn_over(cluster: Cluster, operator: Subject, scale: float) -> Row:
    """Rounds in which 5,000 pods of 50 new workloads come and go. The growth is that of the second half."""
    pods, memory = round(TURNED_OVER * scale), []
    with operator.measured() as cost:
        for _ in range(ROUNDS):
            cluster.command("turn_over", pods=pods, per_second=TURNED_OVER_PER_SECOND)
            operator.settle()
            memory.append(round(operator.rss_mib(), 1))
    half = ROUNDS // 2
    grown = (memory[-1] - memory[half - 1]) * MIB
    return _row(cost, bytes_per_pod_that_came_and_went=grown / (pods * (ROUNDS - half)), rounds_mib=memory)


def deadlines(folder: Path, pods: int, scale: float) -> Row:
    """Pods have to leave, spread over a minute. Lateness is from the deadline until the server has the eviction."""
    count = pods // PODS_PER_NODE
    with (
        Cluster.serve(folder, shape(LARGE * scale), policy(GRACE_SECONDS)) as cluster,
        cluster.leader("--max-evictions-per-second=0") as operator,
    ):
        give_up_at = time.monotonic() + SPREAD_SECONDS + GRACE_SECONDS + PATIENCE_SECONDS
        late: list[float] = []
        with operator.measured() as cost:
            tainted = {"first": 0, "count": count, "seconds": SPREAD_SECONDS, "grace_seconds": GRACE_SECONDS}
            cluster.command("taint", key=KEY, **tainted)
            while len(late) < count * PODS_PER_NODE and time.monotonic() < give_up_at:
                time.sleep(1)
                late += cluster.command("lateness")["seconds"]
    percentiles = quantiles(late, n=100)
    return _row(
        cost,
        evicted=len(late),
        missing=count * PODS_PER_NODE - len(late),
        lateness_p50_ms=percentiles[49] * 1e3,
        lateness_p99_ms=percentiles[98] * 1e3,
        latest_ms=max(late) * 1e3,
        earliest_ms=min(late) * 1e3,
        cpu_ms_per_eviction=cost.cpu_seconds / len(late) * 1e3,
    )


def _row(cost: Cost, **found: Any) -> Row:
    return dataclasses.asdict(cost) | found
