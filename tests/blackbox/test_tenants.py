"""One tenant's flood of pods and annotations delays no eviction of others."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from blackbox.box import Box
from controlplane import ApiError
from controlplane.cluster import IMAGE
from e2e.stories import taint, toleration

VICTIMS, FIRST_SECONDS = 8, 4
LATER_SECONDS = 3
FLOODED, LIVING, PER_SECOND = 4, 20, 10
WIDE = {"taintwarden.io/tolerations": json.dumps([{"key": "sla", "operator": "Gt", "value": "9"}] * 60)}
INVALID = {"taintwarden.io/tolerations": "[{" * 5_000}
BAD = taint("900")


def flood(box: Box, namespace: str, node: str, number: int, ended: threading.Event) -> int:
    """Pods that come, change their annotations and go, as fast as the server takes it. How many came."""
    made = 0
    while not ended.is_set():
        name = f"flood-{number}-{made}"
        spec = {"nodeName": node, "containers": [{"name": "main", "image": IMAGE}], "terminationGracePeriodSeconds": 0}
        box.cluster.create("pods", {"metadata": {"name": name, "annotations": WIDE}, "spec": spec}, namespace)
        with suppress(ApiError):  # it is evicted
            box.cluster.annotate("pods", name, INVALID, namespace)
            box.cluster.annotate("pods", name, WIDE, namespace)
        with suppress(ApiError):
            if made >= LIVING:
                box.cluster.delete("pods", f"flood-{number}-{made - LIVING}", namespace)
        made += 1
    return made


def test_a_tenant_that_floods_the_cluster_delays_no_other(box: Box) -> None:
    box.enforce()
    [tenant] = box.add_namespaces(1)
    node, quiet = box.node(), box.node(taint("5"), name="quiet")
    seconds = [FIRST_SECONDS + number for number in range(VICTIMS)]
    pods = [box.pod(f"victim-{after}", node, toleration("Exists", seconds=after)) for after in seconds]
    ended = threading.Event()
    with ThreadPoolExecutor(FLOODED) as pool:
        floods = [pool.submit(flood, box, tenant, quiet, number, ended) for number in range(FLOODED)]
        try:
            began = time.monotonic()
            tainted = box.taint(node, BAD)
            for pod, after in zip(pods, seconds, strict=True):
                box.leaves(pod, tainted, after, slack=LATER_SECONDS)
            lasted = time.monotonic() - began
        finally:
            ended.set()
    assert sum(each.result() for each in floods) > lasted * PER_SECOND, "a flood"
