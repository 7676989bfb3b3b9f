"""The samples for nodes that other projects write, on the real API server: nodes are written as those write them.

None of these projects runs here. What they write is in docs/neighbours.md.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import Json, Target
from e2e.stories import NO_LIMITS, Scene, Stories, Story, Told, annotation, taint, telling, toleration
from e2e.test_value_sources import turns

SAMPLES = Path(__file__).resolve().parents[2] / "deploy" / "samples"
READINESS, PROBLEMS, FAULTS = "node-readiness", "node-problems", "nvsentinel"
GRACE_SECONDS, OBSERVED_SECONDS = 15, 3  # within the grace something is seen, told and taken back
STORIES = Stories()

pytestmark = pytest.mark.timeout(600)


def sample(name: str) -> Json:
    """What a sample selects, enforced, with a short grace and without limits."""
    spec: dict[str, Any] = yaml.safe_load((SAMPLES / f"{name}.yaml").read_text())["spec"]
    return {**spec, "mode": "Enforce", "timing": {"violationGraceSeconds": GRACE_SECONDS}, "limits": NO_LIMITS}


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, control_plane: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    specs = {name: sample(name) for name in (READINESS, PROBLEMS, FAULTS)}
    with telling(request, control_plane, tmp_path_factory.mktemp("neighbours"), STORIES, specs) as told:
        yield told


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


@STORIES.under(READINESS)
def a_component_that_is_not_ready_any_more_evicts_who_does_not_tolerate_that(scene: Scene) -> None:
    """As a NodeReadinessRule with enforcementMode continuous: the taint comes when the condition fails."""
    key, node = "readiness.k8s.io/network-not-ready", scene.node()
    needs = scene.pod("needs", node)
    does_without = scene.pod("does-without", node, toleration("Exists", key=key, effect="NoSchedule"))
    scene.stays(needs, until=time.monotonic() + OBSERVED_SECONDS)
    failed = scene.taint(node, taint("pending", key, "NoSchedule"))
    scene.leaves(needs, failed, GRACE_SECONDS)
    scene.stays(does_without, until=time.monotonic() + OBSERVED_SECONDS)


@STORIES.under(READINESS)
def a_component_that_is_ready_again_within_the_grace_evicts_nobody(scene: Scene) -> None:
    node = scene.node()
    needs = scene.pod("needs", node)
    failed = scene.taint(node, taint("pending", "readiness.k8s.io/network-not-ready", "NoSchedule"))
    scene.event(needs, "EvictionScheduled")
    scene.taint(node)
    scene.event(needs, "EvictionCancelled")
    scene.stays(needs, until=failed + GRACE_SECONDS + OBSERVED_SECONDS)


@STORIES.under(PROBLEMS)
def a_problem_of_the_kernel_evicts_who_asks_for_none(scene: Scene) -> None:
    node = scene.node()
    turns(scene.cluster, node, "KernelDeadlock", "False")
    wanted = toleration("NotIn", key="example.com/kernel-deadlock", values=["True"])
    careful = scene.pod("careful", node, annotations=annotation(wanted))
    unaware = scene.pod("unaware", node)
    scene.stays(careful, until=time.monotonic() + OBSERVED_SECONDS)
    found = turns(scene.cluster, node, "KernelDeadlock", "True")
    scene.leaves(careful, found, GRACE_SECONDS)
    scene.stays(unaware, until=time.monotonic() + OBSERVED_SECONDS)


@STORIES.under(FAULTS)
def a_fault_of_a_gpu_evicts_and_the_taint_of_every_gpu_does_not(scene: Scene) -> None:
    """fault-quarantine cordons the node, and adds the taint of the rule set."""
    own = taint("present", "nvidia.com/gpu", "NoSchedule")
    node = scene.node(own)
    train = scene.pod("train", node)
    scene.stays(train, until=time.monotonic() + OBSERVED_SECONDS)
    scene.cluster.patch("nodes", node, {"spec": {"unschedulable": True}})
    found = scene.taint(node, own, taint("fatal", "nvidia.com/gpu-error", "NoSchedule"))
    scene.leaves(train, found, GRACE_SECONDS)
