"""The page about installing against what is installed: values of the chart, overlays, versions of the tools."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from controlplane.binaries import pinned_version
from docs.pages import BY_NAME, ROOT, only_span, spans

PAGE = BY_NAME["docs/installing.md"]
VALUES = yaml.safe_load((ROOT / "deploy" / "chart" / "taintwarden" / "values.yaml").read_text())
AS_KUBERNETES = (
    "resources",
    "affinity",
    "podSecurityContext",
    "securityContext",
    "podAnnotations",
)  # described by Kubernetes
TOOLS = ROOT / "tests" / "deploy" / "tools"


def leaves(values: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value and name not in AS_KUBERNETES:
            yield from leaves(value, f"{path}{name}.")
        else:
            yield path + name, value


LEAVES = dict(leaves(VALUES))
ROWS = {only_span(value): default for value, default, _ in PAGE.table("Values").rows}


def test_every_value_is_told():
    assert set(ROWS) == set(LEAVES)


def test_the_defaults_are_those_of_the_chart():
    plain = {name: value for name, value in LEAVES.items() if isinstance(value, (bool, int, str)) and value != ""}
    assert {name: yaml.safe_load(only_span(ROWS[name])) for name in plain} == plain
    assert {name for name in set(LEAVES) - set(plain) if ROWS[name] == ""} == set()


def test_the_ports_of_the_api_server_are_those_of_the_chart():
    assert [int(port) for port in spans(ROWS["networkPolicy.apiServerPorts"])] == VALUES["networkPolicy"][
        "apiServerPorts"
    ]


def test_every_overlay_is_told():
    told = [only_span(folder) for folder in PAGE.table("With kubectl and Kustomize").column("folder")]
    overlays = sorted(path.parent.name for path in (ROOT / "deploy" / "overlays").glob("*/kustomization.yaml"))
    assert told == ["deploy/base", *(f"deploy/overlays/{name}" for name in overlays)]


def test_the_versions_of_kubernetes_that_are_claimed_can_be_tested():
    """What is claimed has a control plane here, from the oldest that the chart takes."""
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
    pinned = (TOOLS / "go.mod").read_text() + (TOOLS / "build").read_text().replace("@", " ")
    for name, module in (
        ("Helm", "helm.sh/helm/v4"),
        ("kind", "sigs.k8s.io/kind"),
        ("cert-manager", "github.com/cert-manager/cert-manager"),
        ("Prometheus operator", "github.com/prometheus-operator/prometheus-operator"),
    ):
        version = re.search(rf"{re.escape(module)} v([0-9.]+)", pinned)
        assert version is not None
        assert f"{name} {version[1]}" in PAGE.text
