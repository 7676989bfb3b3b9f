"""The publisher in its pod: its probes, and how it ends. What it publishes is in tests/e2e/test_slo_loop.py."""

import json

from kind.installation import Installation

END_SECONDS = 30.0
"""Half of its grace."""


def test_its_probes_answer_and_one_replica_runs(publisher: Installation) -> None:
    """Its Deployment says so, and replaces it only once it is gone: two would write against each other."""
    [pod] = publisher.pods()
    assert publisher.proxied(pod, "/livez") == publisher.proxied(pod, "/readyz") == "ok\n"
    assert publisher.restarts(pod) == 0
    spec = publisher.deployment["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_a_pod_that_is_deleted_ends_in_order(publisher: Installation) -> None:
    """Well within its grace, with 0 and without a complaint."""
    [pod] = publisher.pods()
    ended = publisher.stop(pod)
    lines = [json.loads(line) for line in ended.log]
    assert ended.code == 0
    assert ended.seconds < END_SECONDS
    assert [line for line in lines if line["level"] not in ("info", "debug")] == []
    assert lines[-1]["event"] == "process-stopped"
    publisher.wait_complete()


def test_a_pod_that_is_deleted_as_it_starts_is_gone_at_once(publisher: Installation) -> None:
    """SIGTERM ends it while it imports, and not SIGKILL after its grace."""
    assert publisher.stop_starting() < END_SECONDS
