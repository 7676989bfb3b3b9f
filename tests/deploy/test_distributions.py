"""Distributions for a package index: the product, the demo and the demo's API server."""

import re
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from controlplane.binaries import ROOT
from deploy.rendering import run

DISTRIBUTIONS = {
    "taintwarden": {"taintwarden", "taintwarden_cli", "taintwarden_devices", "taintwarden_placement"},
    "taintwarden_demo": {"taintwarden_demo"},
    "taintwarden_localcluster": {"localcluster"},
    "taintwarden_publisher": {"taintwarden_publisher"},
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Source distributions, and the wheels that come of them."""
    folder = tmp_path_factory.mktemp("dist")
    run(Path(sys.executable).with_name("uv"), "build", "--all-packages", "--quiet", "--out-dir", folder, ROOT)
    return folder


def wheel(built: Path, distribution: str) -> zipfile.ZipFile:
    [path] = built.glob(f"{distribution}-*.whl")
    return zipfile.ZipFile(path)


def test_every_package_is_built(built):
    for pattern in ("*.tar.gz", "*.whl"):
        assert {re.split(r"-\d", path.name)[0] for path in built.glob(pattern)} == DISTRIBUTIONS.keys()


@pytest.mark.parametrize(("distribution", "packages"), DISTRIBUTIONS.items())
def test_a_wheel_holds_its_packages_alone(built, distribution, packages):
    names = wheel(built, distribution).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == packages


def test_the_wheel_of_a_source_distribution_has_the_definitions(built):
    names = set(wheel(built, "taintwarden").namelist())
    wanted = {f"taintwarden/crds/{path.name}" for path in (ROOT / "crds").glob("*.yaml")}
    assert names >= wanted


def test_the_source_distribution_holds_the_product_alone(built):
    [path] = built.glob("taintwarden-*.tar.gz")
    with tarfile.open(path) as packed:
        names = [one.name.split("/")[1:] for one in packed if one.name.count("/") > 1]
    assert {first for first, *_ in names} == {"operator", "packages", "crds", "deploy"}
    assert {second for first, second, *_ in names if first == "packages"} == {"cli", "devices", "placement"}


def test_demo_and_publisher_are_extras(built):
    [name] = [one for one in wheel(built, "taintwarden").namelist() if one.endswith(".dist-info/METADATA")]
    asked = Parser().parsestr(wheel(built, "taintwarden").read(name).decode()).get_all("Requires-Dist") or []
    ours = [re.split(r"==\S+ ?; ?", one) for one in asked if "taintwarden" in one]
    assert ours == [[f"taintwarden-{extra}", f"extra == '{extra}'"] for extra in ("demo", "publisher")]
