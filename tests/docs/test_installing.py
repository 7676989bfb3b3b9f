"""The page about installing against what is installed: overlays, versions of the tools."""

import re

import yaml

from controlplane.binaries import pinned_version
from docs.pages import BY_NAME, ROOT, only_span

PAGE = BY_NAME["docs/installing.md"]
TOOLS = ROOT / "tests" / "deploy" / "tools"
MONITORING = ROOT / "tests" / "monitoring" / "tools"


def test_every_overlay_is_in_the_table():
    listed = [only_span(folder) for folder in PAGE.table("With kubectl and Kustomize").column("folder")]
    overlays = sorted(path.parent.name for path in (ROOT / "deploy" / "overlays").glob("*/kustomization.yaml"))
    assert listed == ["deploy/base", *(f"deploy/overlays/{name}" for name in overlays)]


def test_the_versions_of_kubernetes_that_are_claimed_can_be_tested():
    """Each claimed version has a control plane here, from the oldest that the chart accepts."""
    others = (ROOT / "tests" / "controlplane" / "versions").glob("*.mod")
    pinned = {version.removeprefix("v") for version in (*(path.stem for path in others), pinned_version())}
    rows = dict(PAGE.tables("What was run and what was not")[0].rows)
    claimed = re.findall(r"1\.\d+\.\d+", rows["end-to-end tests"])
    assert set(claimed) <= pinned
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "taintwarden" / "Chart.yaml").read_text())
    oldest = claimed[0].rpartition(".")[0]
    assert chart["kubeVersion"] == f">={oldest}.0-0"
    assert f"Kubernetes {oldest} or newer" in PAGE.text


def test_the_tools_are_those_that_are_pinned():
    pinned = (
        (TOOLS / "go.mod").read_text()
        + (MONITORING / "go.mod").read_text()
        + (TOOLS / "build").read_text().replace("@", " ")
    )
    for name, module in (
        ("Helm", "helm.sh/helm/v4"),
        ("kind", "sigs.k8s.io/kind"),
        ("cert-manager", "github.com/cert-manager/cert-manager"),
        ("Prometheus operator", "github.com/prometheus-operator/prometheus-operator"),
        ("Prometheus", "github.com/prometheus/prometheus"),
    ):
        version = re.search(rf"{re.escape(module)} v([0-9.]+)", pinned)
        assert version is not None
        assert f"{name} {version[1]}" in PAGE.text
