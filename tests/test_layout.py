"""The layout of the sources: ``operator/`` is a source root and never a package."""

import ast
import importlib
import operator
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest

import taintwarden

ROOT = Path(__file__).parent.parent


def test_no_module_lies_directly_in_the_source_root():
    """A package named ``operator`` would shadow the standard library's, and nearly everything imports that."""
    found = [path.name for pattern in ("*.py", "*.pyi", "*.so") for path in (ROOT / "operator").glob(pattern)]
    assert found == []


def test_the_source_root_holds_one_package():
    packages = [
        path.name for path in (ROOT / "operator").iterdir() if path.is_dir() and (path / "__init__.py").exists()
    ]
    assert packages == ["taintwarden"]


def test_operator_is_the_standard_librarys():
    assert Path(operator.__file__).is_relative_to(sysconfig.get_path("stdlib"))
    assert operator.itemgetter(0)([7]) == 7


def test_operator_is_the_standard_librarys_at_the_top_of_the_project():
    """`python -c` puts the current directory first: that is where the folder of that name lies."""
    code = "import operator; print(operator.__file__)"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert Path(said.stdout.strip()).is_relative_to(sysconfig.get_path("stdlib"))


def test_the_package_is_the_one_of_the_source_root():
    assert Path(taintwarden.__file__).parent == ROOT / "operator" / "taintwarden"


def test_every_package_says_what_is_forbidden_in_it():
    rooms = (
        "api",
        "controller",
        "engine",
        "kube",
        "serving",
        "telemetry",
    )
    names = [f"taintwarden.{room}" for room in rooms]
    names += [
        "taintwarden_cli",
        "taintwarden_cli.rehearsal",
        "taintwarden_placement",
        *(f"taintwarden_placement.{room}" for room in ("admission", "affinity", "scheduling")),
    ]
    silent = [name for name in names if "orbidden" not in (importlib.import_module(name).__doc__ or "")]
    assert silent == []


def test_each_package_of_the_workspace_has_the_products_version():
    """The packages are released together, and require each other by that version."""
    texts = [path.read_text() for path in (ROOT / "pyproject.toml", *ROOT.glob("packages/*/pyproject.toml"))]
    assert len(texts) == 4
    version = metadata.version("taintwarden")
    assert all(tomllib.loads(text)["project"]["version"] == version for text in texts)
    asked = {one for text in texts for one in re.findall(r'"taintwarden[\w-]*==([^"]+)"', text)}
    assert asked == {version}
    assert taintwarden.__version__ == version


def test_every_module_has_a_docstring():
    files = [*(ROOT / "operator").rglob("*.py"), *ROOT.glob("packages/*/src/**/*.py")]
    assert [str(path) for path in files if not path.read_text().lstrip().startswith(('"""', 'r"""'))] == []


SOURCES = [ROOT / "operator", *sorted(ROOT.glob("packages/*/src"))]
"""Source roots of the distributions. One may use a module name of another."""


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_module_has_a_name_of_its_own(source):
    """The name of a module in a log or a traceback is then that of one file."""
    shared = {"__init__.py", "command.py"}  # of each package; of each command that has a folder
    names = Counter(path.name for path in source.rglob("*.py") if path.name not in shared)
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_public_class_has_a_name_of_its_own(source):
    names = Counter(
        node.name
        for path in source.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []
