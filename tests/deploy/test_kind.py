"""The kind cluster, as far as it can be seen without a container engine; tests/kind runs on the real one."""

import os
import re
import subprocess

import yaml

from controlplane.binaries import ROOT, minor_of, node_version, pinned_version
from controlplane.target import ALLOWED_CONTEXTS

CONFIG = yaml.safe_load((ROOT / "deploy" / "kind" / "cluster.yaml").read_text())
UP = ROOT / "deploy" / "kind" / "up"
NAME = CONFIG["name"]


def test_workers_are_in_three_zones():
    zones = [node.get("labels", {}).get("topology.kubernetes.io/zone") for node in CONFIG["nodes"]]
    assert zones == [None, "a", "b", "c"]


def test_the_built_in_controller_is_switched_off():
    """The controllers that kubeadm itself switches on stay on: without them no worker joins."""
    assert '"*,bootstrapsigner,tokencleaner,-taint-eviction-controller"' in str(CONFIG)


def test_the_tests_agree_to_evict_there():
    assert f"kind-{NAME}" in ALLOWED_CONTEXTS
    assert f"cluster={NAME}" in (ROOT / "tests" / "kind" / "e2e").read_text()


def test_the_published_node_is_of_the_minor_version_of_the_built_one():
    [image] = re.findall(r"NODE_IMAGE:-kindest/node:(v\d+\.\d+\.\d+)@sha256:[0-9a-f]{64}}", UP.read_text())
    assert minor_of(image) == minor_of(node_version())


def test_with_another_engine_than_docker_the_published_node_is_used():
    settings = ROOT / "tests" / "kind" / "settings"
    done = subprocess.run(
        [settings], check=True, env={**os.environ, "ENGINE": "podman"}, capture_output=True, text=True
    )
    assert re.fullmatch(r"NODE_IMAGE=kindest/node:v[\d.]+@sha256:[0-9a-f]{64}\n", done.stdout)


def test_the_rehearsal_removes_what_the_documents_say():
    said = (ROOT / "docs" / "operating.md").read_text().partition("To remove the operator")[2].partition("\n## ")[0]
    script = (ROOT / "tests" / "kind" / "rehearsal").read_text()
    commands = re.findall(r"^(?:kubectl delete (?!-k)|taintwarden placement remove )[^#\n]*?(?=\s*(?:#|$))", said, re.M)
    assert len(commands) == 4
    assert [command for command in commands if command.replace("taintwarden-system", "$namespace") not in script] == []


def test_the_built_node_is_of_the_version_of_the_control_plane():
    assert node_version() == pinned_version()


def test_the_script_says_what_is_missing():
    done = subprocess.run(
        [UP], check=False, env={**os.environ, "ENGINE": "no-such-engine"}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "kind: no-such-engine is needed (ENGINE=podman for Podman)\n")
