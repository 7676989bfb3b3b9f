"""The chart as published: it has copies of the repository's files, and its archive renders the same."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from controlplane.binaries import ROOT
from deploy.rendering import CHART, chart, run, tool
from reference.chart import SHIPPED

META = yaml.safe_load((CHART / "Chart.yaml").read_text())


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    run(tool("helm"), "package", CHART, "--destination", tmp_path)
    [found] = tmp_path.glob("*.tgz")
    return found


def test_helm_lint_says_nothing_but_that_there_is_no_icon():
    """Helm prints a line for each link, too."""
    done = subprocess.run(
        [tool("helm"), "lint", CHART], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert re.findall(r"^\[?(?:INFO|WARN|level).*", done.stdout, re.MULTILINE) == [
        "[INFO] Chart.yaml: icon is recommended"
    ]


def test_the_copies_in_the_chart_are_all_made():
    folder = CHART / "source"
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {*SHIPPED, "dashboard.json"}
    assert not [path for path in (CHART / "templates").rglob("*.*") if "openAPIV3Schema" in path.read_text()]


def test_the_archive_renders_the_same(archive):
    assert chart(chart=archive) == chart()


def test_the_chart_of_the_source_distribution_renders_the_same(tmp_path):
    run(Path(sys.executable).with_name("uv"), "build", "--sdist", "--quiet", "--out-dir", tmp_path, ROOT)
    [packed] = tmp_path.glob("*.tar.gz")
    with tarfile.open(packed) as files:
        files.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.glob("*/deploy/chart/taintwarden")
    assert chart(chart=unpacked) == chart()


def test_the_annotation_for_a_hub_lists_the_definitions():
    stated = yaml.safe_load(META["annotations"]["artifacthub.io/crds"])
    definitions = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml")]
    names = {
        (one["spec"]["names"]["kind"], version["name"], one["metadata"]["name"])
        for one in definitions
        for version in one["spec"]["versions"]
    }
    assert {(one["kind"], one["version"], one["name"]) for one in stated} == names


def test_the_examples_for_a_hub_are_valid(tmp_path):
    examples = yaml.safe_load(META["annotations"]["artifacthub.io/crdsExamples"])
    publisher = examples.pop()
    sample = yaml.safe_load_all((ROOT / "deploy" / "samples" / "publisher.yaml").read_text())
    assert publisher["spec"].items() <= next(sample)["spec"].items()
    assert len(examples) == 2
    file = tmp_path / "examples.yaml"
    file.write_text(yaml.safe_dump_all(examples))
    run(Path(sys.executable).with_name("taintwarden"), "validate", file)


def test_the_versions_are_those_of_the_package():
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert META["version"] == META["appVersion"] == version[1]
