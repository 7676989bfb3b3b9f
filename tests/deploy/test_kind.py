"""The kind cluster, as far as it can be seen without a container engine.

The real kind binary reads deploy/kind/cluster.yaml, starts "nodes" of a stand-in engine and writes the kubeadm
configuration into them; there it ends. Whether Kubernetes then comes up is not seen here.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.binaries import ROOT, binary, minor_of, node_version, pinned_version
from controlplane.target import ALLOWED_CONTEXTS
from deploy.rendering import tool

Json = dict[str, Any]
CLUSTER = ROOT / "deploy" / "kind" / "cluster.yaml"
UP = ROOT / "deploy" / "kind" / "up"
CONFIG = yaml.safe_load(CLUSTER.read_text())
NAME = CONFIG["name"]
SECONDS = 60


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which `docker` is the stand-in."""
    folder = tmp_path_factory.mktemp("engine")
    (folder / "bin").mkdir()
    (folder / "commands").touch()
    docker = folder / "bin" / "docker"
    docker.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("engine_double.py")} "$@"\n')
    docker.chmod(0o755)
    path = os.pathsep.join([str(folder / "bin"), str(binary("kubectl").parent), os.environ["PATH"]])
    return {**os.environ, "ENGINE_DOUBLE": str(folder), "PATH": path}


@pytest.fixture(scope="module")
def create(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], str]:
    """`kind create cluster` with a configuration; what it said."""

    def created(config: Path) -> str:
        (Path(engine["ENGINE_DOUBLE"]) / "commands").write_text("")
        kubeconfig = tmp_path_factory.mktemp("kind") / "kubeconfig"
        command = [tool("kind"), "create", "cluster", "--config", config, "--kubeconfig", kubeconfig, "--retain"]
        done = subprocess.run(command, check=False, env=engine, capture_output=True, text=True, timeout=SECONDS)
        return done.stdout + done.stderr

    return created


@pytest.fixture(scope="module")
def nodes(create: Callable[[Path], str], engine: dict[str, str]) -> dict[str, dict[str, Json]]:
    """The kubeadm configuration of each node, by kind of document."""
    said = create(CLUSTER)
    assert "kubeadm init" in said, f"kind did not come as far as Kubernetes' start:\n{said}"
    found = Path(engine["ENGINE_DOUBLE"]).glob("*/kind/kubeadm.conf")
    return {
        path.parents[1].name: {document["kind"]: document for document in yaml.safe_load_all(path.read_text())}
        for path in found
    }


@pytest.fixture(scope="module")
def cluster(nodes: dict[str, dict[str, Json]]) -> Json:
    return nodes[f"{NAME}-control-plane"]["ClusterConfiguration"]


def arguments(component: Json) -> dict[str, str]:
    names = [one["name"] for one in component["extraArgs"]]
    assert len(names) == len(set(names)), "an argument is given twice"
    return {one["name"]: one["value"] for one in component["extraArgs"]}


def labels(node: dict[str, Json]) -> dict[str, str]:
    [given] = [
        one["value"]
        for one in node["JoinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"]
        if one["name"] == "node-labels"
    ]
    return dict(pair.split("=") for pair in given.split(",") if pair)


def test_a_wrong_configuration_is_refused(create, tmp_path):
    """Else nothing here would mean anything."""
    wrong = tmp_path / "cluster.yaml"
    wrong.write_text(CLUSTER.read_text().replace("featureGates:", "featureGate:"))
    assert "field featureGate not found" in create(wrong)


@pytest.mark.parametrize("component", ["apiServer", "controllerManager", "scheduler"])
def test_every_component_knows_the_comparison_operators(cluster, component):
    assert arguments(cluster[component])["feature-gates"] == "TaintTolerationComparisonOperators=true"


def test_nobody_else_evicts_by_taints(cluster):
    """The controllers that kubeadm itself switches on stay on: without them no worker joins."""
    controllers = arguments(cluster["controllerManager"])["controllers"].split(",")
    assert set(controllers) == {"*", "bootstrapsigner", "tokencleaner", "-taint-eviction-controller"}


def test_workers_are_in_three_zones(nodes):
    zones = {name: labels(node).get("topology.kubernetes.io/zone") for name, node in nodes.items()}
    assert zones.pop(f"{NAME}-control-plane") is None
    assert sorted(zones.values()) == ["a", "b", "c"]


def test_the_tests_agree_to_evict_there():
    assert f"kind-{NAME}" in ALLOWED_CONTEXTS
    assert f"cluster={NAME}" in (ROOT / "tests" / "kind" / "e2e").read_text()


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, False),
        ({"controllers": "*,-taint-eviction"}, True),
        ({"node-monitor-grace-period": "long"}, True),
        ({"feature-gates": "TaintTolerationComparison=true"}, True),
    ],
)
def test_the_real_controller_manager_understands_its_arguments(cluster, tmp_path, change, refused):
    """It looks at them before it looks for its kubeconfig, which is not there."""
    given = arguments(cluster["controllerManager"]) | change | {"kubeconfig": str(tmp_path / "none")}
    command = [binary("kube-controller-manager"), *(f"--{name}={value}" for name, value in given.items())]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode != 0
    assert (f"{tmp_path / 'none'}: no such file" not in done.stderr) is refused, done.stderr[-2000:]


def test_kubelets_may_run_on_the_old_control_groups(nodes):
    assert all(node["KubeletConfiguration"]["failCgroupV1"] is False for node in nodes.values())


def test_the_published_node_is_of_the_minor_version_of_the_built_one():
    [image] = re.findall(r"NODE_IMAGE:-kindest/node:(v\d+\.\d+\.\d+)@sha256:[0-9a-f]{64}}", UP.read_text())
    assert minor_of(image) == minor_of(node_version())


def test_the_built_node_is_of_the_version_of_the_control_plane():
    assert node_version() == pinned_version()


# -- the script -------------------------------------------------------------------------------------------------------


def up(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([UP], check=False, env=environment, capture_output=True, text=True, timeout=SECONDS)


def test_the_script_says_what_is_missing():
    done = up({**os.environ, "ENGINE": "no-such-engine"})
    assert done.returncode == 1
    assert done.stderr == "kind: no-such-engine is needed (ENGINE=podman for Podman)\n"


def test_the_script_makes_this_cluster_and_stops_when_that_fails(engine, tmp_path):
    log = Path(engine["ENGINE_DOUBLE"]) / "commands"
    log.write_text("")
    done = up({**engine, "NODE_IMAGE": "node:of-mine", "KIND_KUBECONFIG": str(tmp_path / "kubeconfig")})
    assert done.returncode != 0
    commands = [json.loads(line) for line in log.read_text().splitlines()]
    started = [words[words.index("--name") + 1] for words in commands if words[0] == "run"]
    assert sorted(started)[0] == f"{NAME}-control-plane"
    assert len(started) == len(CONFIG["nodes"])
    images = {words[-1] for words in commands if words[0] == "run"}
    assert images == {"node:of-mine"}
    assert not [words for words in commands if words[0] == "build"]
