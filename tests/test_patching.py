"""Tests patch no constant of the product: what they need to be other is handed in."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PRODUCT = {path.name for source in (ROOT / "operator", *ROOT.glob("packages/*/src")) for path in source.iterdir()}
PATCHES = {"setattr", "setitem", "delattr", "delitem"}
MAY_PATCH = re.compile(
    r"(?:set|del)(?:attr\(|item\([\w.]*[A-Z_]{2,})|\.[A-Z_]{2,} [-+*/|&]?= |[A-Z_]\[[^\]\n]*\] [-+*/|&]?= "
    r"|del [^\n]*[A-Z_]{2,}"
)
"""To read a file as Python takes longer."""
_ROWS = "the product has no setting for it; shorter rows keep the tests short"
_BOUND = "a bound on what is remembered; a low one keeps the tests short"
EXCEPTIONS: dict[str, str] = {
    "tests/engine/limits/test_bounces.py: bounces.MAX_LOOPS": _BOUND,
    "tests/engine/test_judgements.py: evaluate.MAX_ACTING": _BOUND,
    "tests/engine/test_judgements.py: evaluate.MAX_JUDGEMENTS": _BOUND,
    "tests/engine/limits/test_bounces.py: limit_settings.BOUNCING_EVICTIONS": _ROWS,
    "tests/engine/limits/test_bounces.py: bounces.BOUNCING_SECONDS": _ROWS,
    "tests/engine/test_machine_bounces.py: limit_settings.BOUNCING_EVICTIONS": _ROWS,
}
"""``path: constant`` -> why it cannot be handed in."""


def patched(source: str) -> Iterator[str]:
    """The constants of the product that a file patches or assigns to."""
    tree = ast.parse(source)
    ours = set(_names_of_product(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PATCHES:
            yield from _of_call(node, ours)
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1:  # of a loop that patches
            yield from _by_name(node.elts[0], node.elts[1], ours)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
            yield from (constant for one in targets for constant in _of_target(one, ours))


def _names_of_product(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PRODUCT:
            yield from (one.asname or one.name for one in node.names)
        elif isinstance(node, ast.Import):
            names = [one for one in node.names if one.name.partition(".")[0] in PRODUCT]
            yield from (one.asname or one.name.partition(".")[0] for one in names)


def _of_call(call: ast.Call, ours: set[str]) -> Iterator[str]:
    """A constant by its dotted name, by its owner and name, or in a table."""
    first, *others = call.args
    if path := _text(first):
        if path.partition(".")[0] in PRODUCT and _is_constant(path.rpartition(".")[2]):
            yield path
    elif _root(first) in ours and _is_constant(_last(first)):
        yield ast.unparse(first)
    elif others:
        yield from _by_name(first, others[0], ours)


def _by_name(owner: ast.expr, name: ast.expr, ours: set[str]) -> Iterator[str]:
    if _root(owner) in ours and _is_constant(_text(name)):
        yield f"{ast.unparse(owner)}.{_text(name)}"


def _of_target(target: ast.expr, ours: set[str]) -> Iterator[str]:
    """``module.CONSTANT = ...`` and ``CONSTANT[...] = ...``"""
    if isinstance(target, ast.Subscript):
        target = target.value
    elif not isinstance(target, ast.Attribute):
        return
    if _root(target) in ours and _is_constant(_last(target)):
        yield ast.unparse(target)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_constant(name: str) -> bool:
    return name.isidentifier() and name.isupper()


def test_no_test_patches_a_constant_of_the_product():
    found = {
        f"{path.relative_to(ROOT).as_posix()}: {constant}"
        for path in (ROOT / "tests").rglob("*.py")
        if MAY_PATCH.search(text := path.read_text("utf-8"))
        for constant in patched(text)
    }
    assert found - EXCEPTIONS.keys() == set(), "hand it in instead: an argument with the constant as its default"
    assert EXCEPTIONS.keys() - found == set(), "no exception is needed any more"


IMPORTS = (
    "import sys\nimport taintwarden.app\nfrom taintwarden.kube import lease\nfrom taintwarden.x import Judge, TABLE\n"
)


@pytest.mark.parametrize(
    ("line", "constant"),
    [
        ('monkeypatch.setattr(lease, "LEASE_SECONDS", 1)', "lease.LEASE_SECONDS"),
        ('monkeypatch.setattr("taintwarden.kube.lease.LEASE_SECONDS", 1)', "taintwarden.kube.lease.LEASE_SECONDS"),
        ('monkeypatch.setattr(Judge, "MAX", 1)', "Judge.MAX"),
        ('context.setattr(lease, "MAX", 1)', "lease.MAX"),
        ('for one in ((lease, "MAX", 1),): monkeypatch.setattr(*one)', "lease.MAX"),
        ("monkeypatch.setitem(TABLE, 1, 2)", "TABLE"),
        ("monkeypatch.delitem(lease.TABLE, 1)", "lease.TABLE"),
        ("lease.LEASE_SECONDS = 1", "lease.LEASE_SECONDS"),
        ("taintwarden.app.STOP += 1", "taintwarden.app.STOP"),
        ("TABLE[1] = 2", "TABLE"),
    ],
)
def test_a_patch_is_found(line: str, constant: str):
    assert list(patched(IMPORTS + line)) == [constant]
    assert MAY_PATCH.search(line)


@pytest.mark.parametrize(
    "line",
    [
        'monkeypatch.setattr(sys, "STDIN", 1)',
        'monkeypatch.setattr("os.SEP", 1)',
        'monkeypatch.setattr(lease, "now", 1)',
        'monkeypatch.setenv("HOME", "x")',
        "STEPS = 1",
        "stage.LIMIT = 1",
    ],
)
def test_other_patches_are_none(line: str):
    assert list(patched(IMPORTS + line)) == []
