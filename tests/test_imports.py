"""Tests that need a control plane or kind import only names that exist, which no other check verifies."""

import ast
import importlib
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).parent
PACKAGES = ("taintwarden", "localcluster", "taintwarden_demo", "taintwarden_publisher")
MODULES = sorted(path for folder in ("blackbox", "e2e", "kind", "deploy") for path in (TESTS / folder).rglob("*.py"))


def test_imported_names_of_the_product_exist():
    for path in MODULES:
        for found in ast.walk(ast.parse(path.read_text())):
            if isinstance(found, ast.ImportFrom) and found.module and found.module.split(".")[0] in PACKAGES:
                module = importlib.import_module(found.module)
                names = [one.name for one in found.names]
                assert [name for name in names if not exists(module, name)] == [], found.module


def test_the_black_box_imports_nothing_of_the_product():
    """Its tests must not depend on the implementation."""
    for path in (TESTS / "blackbox").glob("*.py"):
        found = [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Import | ast.ImportFrom)]
        names = [getattr(one, "module", None) or one.names[0].name for one in found]
        assert [name for name in names if name.split(".")[0] in PACKAGES] == [], path.name


def exists(module: ModuleType, name: str) -> bool:
    """Return True if a module has a name, or is a package with a module of this name."""
    return hasattr(module, name) or find_spec(f"{module.__name__}.{name}") is not None
