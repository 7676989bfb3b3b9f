"""Karpenter's scheduler and pods that are placed: it needs the labels of placement in the template of a NodePool."""

import json
import os
import subprocess

import pytest

from cli.placed import ABOVE, pending, stored
from cli.world import policy
from controlplane.binaries import ROOT, MissingBinariesError
from taintwarden_cli.change.placement_removal import labels_for

BINARY = ROOT / ".cache" / "karpenter" / "karpenter"
CNI = "example.com/cni"
PLACING = policy("placing", taints=[{"key": key, "effects": [], "placement": True} for key in ("sla", CNI)])
NEWER = {"key": CNI, "operator": "SemverGt", "value": "3.27.0", "effect": "NoSchedule"}
POD = stored(pending(extended=[ABOVE, NEWER]), PLACING)
NEW = f"{CNI}=v3.28.0:NoSchedule"


def refusal(labels: dict[str, str]) -> str:
    """Return Karpenter's reason to add no node with these labels for the pod; empty if it would add one."""
    if not os.access(BINARY, os.X_OK):
        raise MissingBinariesError(f"no Karpenter: {BINARY} is missing. Run `make karpenter` (needs Go).")
    asked = json.dumps({"pod": POD, "labels": labels})
    return subprocess.run([BINARY], input=asked, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


def test_without_placement_labels_karpenter_adds_no_node() -> None:
    assert refusal({"disk": "ssd"}).endswith("does not have known values")


@pytest.mark.parametrize("taints", [("sla=980:NoSchedule", NEW), ("sla", CNI), ("sla=980:NoSchedule", CNI)])
def test_with_placement_labels_of_a_suitable_node_karpenter_adds_one(taints: tuple[str, ...]) -> None:
    assert refusal(labels_for(taints)) == ""


@pytest.mark.parametrize(
    ("taints", "label"),
    [
        (("sla=900:NoSchedule", NEW), "value-or-max.taintwarden.io/sla"),
        (("sla=980:NoSchedule", f"{CNI}=v3.26.0:NoSchedule"), "example.com.version.taintwarden.io/cni"),
    ],
)
def test_with_placement_labels_of_an_unsuitable_node_karpenter_adds_none(taints: tuple[str, ...], label: str) -> None:
    assert label in refusal(labels_for(taints))
