"""The values of the chart as paths, with the schema of each."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from deploy.rendering import CHART, Json

VALUES: Json = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: Json = json.loads((CHART / "values.schema.json").read_text())


def schema(node: Json) -> Json:
    """The schema itself, where the node only names it."""
    found: Json = SCHEMA["definitions"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return found


def paths(values: Json = VALUES, node: Json = SCHEMA, prefix: str = "") -> Iterator[tuple[str, Any, Json]]:
    """Every value that has a name of its own, groups first: path, default, schema. Kubernetes' own types have none."""
    for name, value in values.items():
        inner = schema(node["properties"][name])
        yield prefix + name, value, inner
        if value and "properties" in inner:
            yield from paths(value, inner, f"{prefix}{name}.")
