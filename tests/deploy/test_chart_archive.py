"""The chart on its way to users: links lead to what the repository ships, and an archive holds what they lead to."""

import re
import shutil
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from controlplane.binaries import ROOT
from deploy.rendering import CHART, RenderingError, chart, run, tool

LINKS = {
    "alerts.yaml": "deploy/components/alerts/alerts.yaml",
    "crds": "crds",
    "dashboard.json": "deploy/components/dashboard/taintwarden.json",
    "metrics-access.yaml": "deploy/components/protected-metrics/metrics-access.yaml",
    "scheduler-extender-alerts.yaml": "deploy/components/scheduler-extender-alerts/alerts.yaml",
    "scheduler-extender-rbac.yaml": "deploy/components/scheduler-extender/rbac.yaml",
    "scheduler-extender-service.yaml": "deploy/components/scheduler-extender/service.yaml",
    **{
        name: f"deploy/base/{name}"
        for name in ("admission-policy.yaml", "rbac.yaml", "webhook-rbac.yaml", "webhooks.yaml")
    },
}
META = yaml.safe_load((CHART / "Chart.yaml").read_text())


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    run(tool("helm"), "package", CHART, "--destination", tmp_path)
    [found] = tmp_path.glob("*.tgz")
    return found


@pytest.mark.parametrize(("link", "to"), LINKS.items())
def test_a_link_leads_to_what_is_shipped(link, to):
    path = CHART / "source" / link
    assert path.is_symlink()
    assert path.resolve() == ROOT / to


def test_the_chart_holds_no_copy():
    assert {path.name for path in (CHART / "source").iterdir()} == LINKS.keys()
    assert not [path for path in (CHART / "templates").rglob("*.*") if "openAPIV3Schema" in path.read_text()]


def test_the_archive_holds_what_the_links_lead_to(archive):
    with tarfile.open(archive) as packed:
        assert not [one.name for one in packed if one.issym() or one.islnk()]
        for definition in (ROOT / "crds").glob("*.yaml"):
            inside = packed.extractfile(f"taintwarden/source/crds/{definition.name}")
            assert inside is not None
            assert inside.read() == definition.read_bytes()


def test_the_archive_renders_the_same(archive):
    assert chart(chart=archive) == chart()


def test_the_chart_of_the_source_distribution_renders_the_same(tmp_path):
    run(Path(sys.executable).with_name("uv"), "build", "--sdist", "--quiet", "--out-dir", tmp_path, ROOT)
    [packed] = tmp_path.glob("*.tar.gz")
    with tarfile.open(packed) as files:
        files.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.glob("*/deploy/chart/taintwarden")
    assert chart(chart=unpacked) == chart()


def test_links_that_were_not_followed_are_no_empty_installation(tmp_path):
    """As in a clone without links, where each is a short text file."""
    shutil.copytree(CHART, tmp_path / "chart", symlinks=True)
    for link in (tmp_path / "chart" / "source").iterdir():
        to = str(link.readlink())
        link.unlink()
        link.write_text(to)
    with pytest.raises(RenderingError, match="links of the chart were not followed"):
        chart(chart=tmp_path / "chart")


def test_the_versions_are_those_of_the_package():
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert META["version"] == META["appVersion"] == version[1]
