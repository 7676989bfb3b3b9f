"""The page about installing against what is installed: overlays, versions of the tools."""

import re

from docs.pages import BY_NAME, ROOT, only_span

PAGE = BY_NAME["docs/installing.md"]
TOOLS = ROOT / "tests" / "deploy" / "tools"


def test_every_overlay_is_told():
    told = [only_span(folder) for folder in PAGE.table("With kubectl and Kustomize").column("folder")]
    overlays = sorted(path.parent.name for path in (ROOT / "deploy" / "overlays").glob("*/kustomization.yaml"))
    assert told == ["deploy/base", *(f"deploy/overlays/{name}" for name in overlays)]


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
