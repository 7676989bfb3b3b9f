"""Packages of the image: each is locked by hash, in the bill of materials, and under an allowed licence."""

import json
import re
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from controlplane.binaries import ROOT
from deploy.rendering import Json, run

UV = Path(sys.executable).with_name("uv")
LOCK = tomllib.loads((ROOT / "uv.lock").read_text())
SBOM_SECONDS = 300
OURS = set(LOCK["manifest"]["members"])
FOREIGN = [package for package in LOCK["package"] if package["name"] not in OURS]
LICENCES = {
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "MIT",
    "MIT-0",
    "PSF-2.0",
    "Python-2.0",
    "License :: OSI Approved :: Apache Software License",
    "License :: OSI Approved :: BSD License",
}
"""SPDX identifiers, and classifiers of packages that name no identifier. All of them may be used in closed products."""


FREE_TEXT = {"protobuf": "3-Clause BSD License"}
"""Licences of packages that do not state an identifier; the bill of materials leaves them out."""


def normal(name: str) -> str:
    """By PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked_for_the_image(*more: str) -> dict[str, str]:
    """Name and version of what uv would install for this Python; ``more`` names extras."""
    text = run(UV, "export", "--quiet", "--frozen", "--no-emit-workspace", "--no-default-groups", "--no-hashes",
               "--no-annotate", "--no-header", f"--project={ROOT}", *more)  # fmt: skip
    asked = [Requirement(line) for line in text.splitlines()]
    return {one.name: str(one.specifier).removeprefix("==") for one in asked if not one.marker or one.marker.evaluate()}


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> Json:
    """The bill of materials that `make sbom` writes."""
    folder = tmp_path_factory.mktemp("sbom")
    path = folder / "sbom.json"
    words = f"SBOM={path}", f"RUNTIME={folder / 'runtime'}", f"PYTHON={sys.executable}"
    run("make", "-C", ROOT, "sbom", *words, seconds=SBOM_SECONDS)
    found: Json = json.loads(path.read_text())
    return found


# -- the bill of materials --------------------------------------------------------------------------------------------


def test_the_bill_of_materials_is_that_of_the_product(bill):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    product = bill["metadata"]["component"]
    assert (product["name"], product["version"]) == (project["name"], project["version"])
    assert bill["bomFormat"] == "CycloneDX"


def test_it_lists_what_is_locked_for_the_image_and_nothing_else(bill):
    locked = locked_for_the_image()
    assert {normal(one["name"]): one["version"] for one in bill["components"]} == locked
    assert len(locked) > 20
    assert not {"pytest", "kubernetes", "uv", "hatchling"} & locked.keys()


def test_it_says_what_needs_what(bill):
    needs = {one["ref"]: one.get("dependsOn", []) for one in bill["dependencies"]}
    assert len(needs[bill["metadata"]["component"]["bom-ref"]]) >= 12
    assert {one["bom-ref"] for one in bill["components"]} <= needs.keys()


def licences(component: Json) -> set[str]:
    """Licences that the authors state, each part of an expression by itself."""
    found: set[str] = set()
    for one in component.get("licenses", ()):
        if "expression" in one:
            found |= set(re.findall(r"[\w.+-]+", one["expression"])) - {"AND", "OR"}
        else:
            found.add(one["license"].get("id") or one["license"]["name"])
    return found


def test_every_licence_is_known_and_allowed(bill):
    told = {one["name"]: licences(one) for one in bill["components"] if one["name"] not in FREE_TEXT}
    assert {name: found - LICENCES for name, found in told.items() if not found or found - LICENCES} == {}


@pytest.mark.parametrize("name", FREE_TEXT)
def test_a_licence_in_free_text_is_the_one_that_was_read(name):
    assert metadata(name)["License"] == FREE_TEXT[name]


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ([], set()),
        ([{"expression": "Apache-2.0 AND GPL-3.0-only"}], {"Apache-2.0", "GPL-3.0-only"}),
        ([{"license": {"id": "MIT"}}, {"license": {"name": "Ours"}}], {"MIT", "Ours"}),
    ],
)
def test_another_licence_would_be_seen(told, found):
    assert licences({"licenses": told}) == found


# -- the lock ---------------------------------------------------------------------------------------------------------


def artifacts(package: dict[str, Any]) -> list[Json]:
    return [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else ())]


def test_every_artifact_is_locked_by_its_hash():
    assert len(FOREIGN) > 50
    for package in FOREIGN:
        assert artifacts(package), package["name"]
        assert [one["url"] for one in artifacts(package) if not re.fullmatch(r"sha256:[0-9a-f]{64}", one["hash"])] == []


def test_everything_comes_from_one_index():
    assert len({json.dumps(package["source"]) for package in FOREIGN}) == 1
    assert FOREIGN[0]["source"].keys() == {"registry"}


def test_nothing_is_a_version_before_its_release():
    assert [one["name"] for one in FOREIGN if Version(one["version"]).is_prerelease] == []


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_image_needs_no_compiler(machine):
    """Its base has none: each package has a wheel for the image's Python, C library and architecture."""
    tags = {
        *cpython_tags((3, 13), platforms=[f"manylinux_2_{minor}_{machine}" for minor in range(36, 16, -1)]),
        *compatible_tags((3, 13), "cp313", ["any"]),
    }
    wanted = locked_for_the_image().keys()
    wheels = {package["name"]: [one["url"] for one in package["wheels"]] for package in FOREIGN}
    fits = {
        name: [url for url in wheels[name] if parse_wheel_filename(url.rpartition("/")[2])[3] & tags] for name in wanted
    }
    assert [name for name, found in fits.items() if not found] == []
    assert any(machine in url for url in fits["cryptography"])


def test_the_lock_is_that_of_the_project():
    """Else `uv sync --frozen` would install something else than pyproject.toml asks for."""
    run(UV, "lock", "--check", "--offline", f"--project={ROOT}")


def test_uv_itself_is_installed_by_the_hashes_that_are_locked():
    [locked] = [package for package in FOREIGN if package["name"] == "uv"]
    text = (ROOT / "deploy" / "uv.txt").read_text()
    assert re.findall(r"^(\S+)==(\S+)", text) == [("uv", locked["version"])], "run `make lock`"
    assert set(re.findall(r"sha256:[0-9a-f]{64}", text)) == {one["hash"] for one in artifacts(locked)}


def test_every_installation_of_uv_requires_hashes():
    for path in (ROOT / "Makefile", ROOT / "deploy" / "Dockerfile"):
        lines = [line for line in path.read_text().splitlines() if "pip install" in line and "uv pip" not in line]
        assert len(lines) == 1
        assert "--require-hashes" in lines[0]
