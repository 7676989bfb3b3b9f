"""The CustomResourceDefinitions that are shipped, parsed once: that takes longer than most tests."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from localcluster import LocalCluster

FOLDER = Path(__file__).parents[1] / "crds"
ALL = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def define(cluster: LocalCluster, *plurals: str) -> None:
    """Create these definitions in a cluster, or all of them."""
    for plural in plurals or ALL:
        cluster.create("customresourcedefinitions", msgspec.json.decode(_as_json(plural)))


@cache
def _as_json(plural: str) -> bytes:
    content: dict[str, Any] = yaml.safe_load((FOLDER / f"{plural}.yaml").read_text())
    return msgspec.json.encode(content)
