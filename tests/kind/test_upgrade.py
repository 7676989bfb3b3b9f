"""From the first complete manifests and their image to those of today, in the middle of a wave."""

import os
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import OPERATOR_NAMESPACE, Cluster, wait_until
from controlplane.binaries import ROOT
from deploy.rendering import key, kustomize, run, tool
from kind.installation import Installation, KubeCtl
from kind.nodes import ENGINE
from kind.scene import Scene

EARLIER = "d577935cbb41f1ca38c9a7a6d638983f62f902d5"
OVERLAY = ROOT / "deploy" / "overlays" / "replacing-built-in"
MANY_SECONDS = 300
PODS = 24
RATE = 0.5  # the wave takes longer than the rollout
IMAGE = "registry.k8s.io/pause:3.10"
KUSTOMIZATION = f"""\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../overlays/replacing-built-in]
images: [{{name: taintwarden, newTag: {EARLIER[:7]}}}]
"""
ON_DEMAND = {("ResourceQuota", "critical-pods")}
"""What the earlier manifests install and today's only if asked to."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as it was."""
    folder = tmp_path_factory.mktemp("earlier")
    archive = folder / "source.tar"
    command = ["git", "-C", str(ROOT), "archive", f"--output={archive}", EARLIER]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip(f"needs a clone whose history has {EARLIER[:7]}")
    with tarfile.open(archive) as members:
        members.extractall(folder / "source", filter="data")
    return folder / "source"


@pytest.fixture(scope="module")
def earlier(source: Path, request: pytest.FixtureRequest) -> Path:
    """An overlay that installs it, with its image on every node."""
    image, archive = f"taintwarden:{EARLIER[:7]}", source.parent / "image.tar"
    base = os.environ.get("BASE_IMAGE")
    words = ["--build-arg", f"PYTHON={base}", "--network", "host"] if base else []
    run(ENGINE, "build", *words, "-f", source / "deploy" / "Dockerfile", "-t", image, source, seconds=MANY_SECONDS)
    run(ENGINE, "save", "-o", archive, image)
    name = request.config.getoption("--context").removeprefix("kind-")
    run(tool("kind"), "load", "image-archive", archive, "--name", name, seconds=MANY_SECONDS)
    archive.unlink()
    overlay = source / "deploy" / "earlier"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(KUSTOMIZATION)
    return overlay


@pytest.fixture
def installed(cluster: Cluster, earlier: Path, on_cluster: KubeCtl) -> Iterator[Installation]:
    """Nothing but the earlier version, with its definitions. Today's is there again afterwards."""
    on_cluster("delete", "-k", OVERLAY, "--ignore-not-found")
    try:
        on_cluster("apply", "-k", earlier)
        installation = Installation(cluster)
        installation.wait_complete()
        installation.leader()
        yield installation
    finally:
        on_cluster("apply", "-k", OVERLAY)
        for name in ("taintwarden", "taintwarden-webhook"):
            Installation(cluster, name).wait_complete()
        for _, name in ON_DEMAND:
            on_cluster("delete", "resourcequota", name, "-n", OPERATOR_NAMESPACE, "--ignore-not-found")


def test_nothing_is_left_of_the_earlier_manifests(earlier: Path) -> None:
    """`kubectl apply` removes nothing, so what is not installed any more would stay."""
    assert {key(one) for one in kustomize(earlier)} - {key(one) for one in kustomize(OVERLAY)} == ON_DEMAND


def test_an_upgrade_of_version_and_manifests_in_the_middle_of_a_wave(
    installed: Installation, on_cluster: KubeCtl, scene: Scene
) -> None:
    """Each pod is evicted once, some by each version, at the rate of the policy."""
    assert installed.image.endswith(EARLIER[:7])
    node, pause = scene.workers[0], {"image": IMAGE, "command": None}
    for number in range(PODS):
        scene.pod(f"web-{number}", on=node, grace_seconds=1, container=pause)
    scene.wait_running(PODS, seconds=120)
    scene.policy(limits={"evictionsPerSecond": RATE, "burst": 1, "guard": {"minPods": 50}})
    scene.wait_enforcing()
    old = {pod["metadata"]["name"] for pod in installed.pods()}
    began = scene.taint(node)
    wait_until(lambda: len(scene.running()) <= PODS - 3, 60, "the wave to begin")
    on_cluster("apply", "-k", OVERLAY)
    wait_until(lambda: not scene.pods(), 240, "all to be gone")
    assert time.monotonic() - began > (PODS - 1) / RATE * 0.8
    installed.wait_complete()
    assert not installed.image.endswith(EARLIER[:7])
    events = [one for one in scene.cluster.items("events", scene.name) if one["reason"] == "Evicted"]
    evicted = [one["regarding"]["name"] for one in events]
    assert len(evicted) == len(set(evicted)) == PODS
    by_old = [one for one in events if one["reportingInstance"].partition("_")[0] in old]
    assert 0 < len(by_old) < PODS
