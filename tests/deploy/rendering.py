"""The chart, the base and the overlays as the objects that a user would apply."""

import copy
import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from controlplane.binaries import ROOT, MissingBinariesError, binary

Json = dict[str, Any]

CHART = ROOT / "deploy" / "chart" / "taintwarden"
BASE = ROOT / "deploy" / "base"
OVERLAYS = sorted(path.parent for path in (ROOT / "deploy" / "overlays").glob("*/kustomization.yaml"))
TOOLS = ROOT / ".cache" / "deploy-tools" / "bin"
FOREIGN_DEFINITIONS = TOOLS.parent / "definitions"
"""Definitions of foreign kinds that the chart can use."""
NAMESPACE = "taintwarden-system"
SECONDS = 60


class RenderingError(Exception):
    """A tool refused; the message is what it said."""


class MissingToolError(Exception):
    """A tool was not built; the message says how to."""


class Loader(yaml.CSafeLoader):
    """YAML 1.2's numbers, as Kubernetes reads them: PyYAML takes 1e-05 for text."""


Loader.yaml_implicit_resolvers = {
    **yaml.CSafeLoader.yaml_implicit_resolvers,
    **{
        first: [
            *yaml.CSafeLoader.yaml_implicit_resolvers.get(first, []),
            ("tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")),
        ]
        for first in "-+0123456789"
    },
}


def tool(name: str) -> Path:
    """The path of a pinned tool. Raises MissingToolError."""
    path = TOOLS / name
    if not os.access(path, os.X_OK):
        raise MissingToolError(f"{path} is not there. Run `make deploy-tools` (needs Go).")
    return path


def run(*command: str | Path, seconds: float = SECONDS) -> str:
    """Return a tool's output. Raises RenderingError when it fails."""
    words = [str(part) for part in command]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=seconds)
    if done.returncode:
        raise RenderingError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def load(text: str) -> list[Json]:
    return [document for document in yaml.load_all(text, Loader) if document]


def chart(
    values: Mapping[str, Any] | None = None,
    *,
    chart: Path = CHART,
    release: str = "taintwarden",
    namespace: str = NAMESPACE,
    more: Iterable[str] = ("--skip-tests",),
) -> list[Json]:
    """Return the objects that `helm install` would create. Raises RenderingError with helm's words."""
    sets = [f"--set-json={name}={json.dumps(value)}" for name, value in (values or {}).items()]
    command = tool("helm"), "template", release, chart, f"--namespace={namespace}", *sets, *more
    return copy.deepcopy(_rendered(command) if chart == CHART else load(run(*command)))


@cache
def _rendered(command: tuple[str | Path, ...]) -> list[Json]:
    """Many tests ask for the same."""
    return load(run(*command))


def kubectl() -> str | Path:
    """The pinned one; on a machine without the control plane, for tests on kind, the user's own."""
    try:
        return binary("kubectl")
    except MissingBinariesError:
        return "kubectl"


def kustomize(folder: Path) -> list[Json]:
    """Return the objects that `kubectl apply -k` would apply. Raises RenderingError."""
    command = kubectl(), "kustomize", folder
    return copy.deepcopy(_rendered(command)) if folder.is_relative_to(ROOT) else load(run(*command))


def key(document: Json) -> tuple[str, str]:
    return document["kind"], document["metadata"]["name"]


def by_key(documents: Iterable[Json]) -> dict[tuple[str, str], Json]:
    """By kind and name. Nothing may be there twice."""
    found: dict[tuple[str, str], Json] = {}
    for document in documents:
        assert key(document) not in found, f"{key(document)} is there twice"
        found[key(document)] = document
    return found
