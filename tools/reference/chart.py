"""The README of the Helm chart: its use, and every value with its comment in values.yaml."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from reference.markdown import code, plain, table

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "chart" / "taintwarden"
SHIPPED = {
    "alerts.yaml": "deploy/components/alerts/alerts.yaml",
    "crds/taintevictionpolicies.yaml": "crds/taintevictionpolicies.yaml",
    "crds/taintpublishers.yaml": "crds/taintpublishers.yaml",
    "crds/tolerationprofiles.yaml": "crds/tolerationprofiles.yaml",
    "metrics-access.yaml": "deploy/components/protected-metrics/metrics-access.yaml",
    "publisher-admission-policy.yaml": "deploy/components/publisher/admission-policy.yaml",
    "publisher-alerts.yaml": "deploy/components/publisher-alerts/alerts.yaml",
    "publisher-rbac.yaml": "deploy/components/publisher/rbac.yaml",
    "scheduler-extender-alerts.yaml": "deploy/components/scheduler-extender-alerts/alerts.yaml",
    "scheduler-extender-rbac.yaml": "deploy/components/scheduler-extender/rbac.yaml",
    "scheduler-extender-service.yaml": "deploy/components/scheduler-extender/service.yaml",
    "admission-policy.yaml": "deploy/base/admission-policy.yaml",
    "rbac.yaml": "deploy/base/rbac.yaml",
    "webhook-rbac.yaml": "deploy/base/webhook-rbac.yaml",
    "webhook-trust.yaml": "deploy/base/webhook-trust.yaml",
    "webhooks.yaml": "deploy/base/webhooks.yaml",
}
"""Files in the chart's ``source``, each a copy of a file that is also shipped without the chart."""
LONGEST_DEFAULT = 60
"""Maximum number of characters of a default. A longer one is only in values.yaml."""
HEAD = """# The chart taintwarden

{description}

```sh
helm upgrade --install taintwarden deploy/chart/taintwarden \\
  --namespace taintwarden-system --create-namespace \\
  --set image.repository=registry.example.com/taintwarden
helm test taintwarden --namespace taintwarden-system
```

`helm test` starts a pod of the same image, which calls the Services of the release: that of the webhook, and those
of metrics where there are any. A Service leads only to replicas that are ready. A NetworkPolicy that lets in only
API servers or Prometheus also keeps out this pod.

Needed: Kubernetes {kubernetes} or newer, Helm 3 or 4. Installing, upgrading, removing:
[installing.md](../../../docs/installing.md).

## Values

Made by `make reference` from [values.yaml](values.yaml): change it there. A test compares the two. Unknown names and
wrong types are refused ([values.schema.json](values.schema.json)). Lists are replaced as a whole; maps are merged, and
`null` removes a key from them. Every value may be `null`: then it is off, empty, or left to Kubernetes. If the chart
needs a value that is `null`, the error names it.

"""


@dataclass(frozen=True)
class Value:
    """One value: its path for `--set`, its default, and the comments above and beside it."""

    path: str
    default: Any
    comment: str
    is_group: bool


def chart_sources() -> dict[str, str]:
    """Return the files in the chart's ``source`` by path. They are copies, since Helm prints a line for each link."""
    root, folder = FOLDER.parents[2], FOLDER.relative_to(FOLDER.parents[2])
    return {f"{folder}/source/{name}": (root / path).read_text("utf-8") for name, path in SHIPPED.items()}


def chart_readme() -> str:
    """Return the whole page."""
    chart = yaml.safe_load((FOLDER / "Chart.yaml").read_text("utf-8"))
    kubernetes = re.search(r"\d+\.\d+", chart["kubeVersion"])
    head = HEAD.format(description=chart["description"], kubernetes=kubernetes[0] if kubernetes else "")
    rows = [(code(value.path), _default(value), plain(value.comment)) for value in values()]
    return head + table(["value", "default", "meaning"], rows)


def values() -> Iterator[Value]:
    """Yield every value in the order of the file. A group comes before its values."""
    text = (FOLDER / "values.yaml").read_text("utf-8")
    root: Any = yaml.compose(text, yaml.SafeLoader)
    schema = json.loads((FOLDER / "values.schema.json").read_text("utf-8"))
    yield from _values(root, schema, schema["definitions"], text.splitlines())


def _values(group: Any, schema: Any, definitions: Any, lines: list[str], prefix: str = "") -> Iterator[Value]:
    for key, node in group.value:
        path, inner = prefix + key.value, schema["properties"][key.value]
        inner = definitions[inner["$ref"].rpartition("/")[2]] if "$ref" in inner else inner
        is_group = isinstance(node, yaml.MappingNode) and bool(node.value) and "properties" in inner
        default = yaml.safe_load(yaml.serialize(node))
        yield Value(path, default, _comment(lines, key.start_mark.line, key.start_mark.column), is_group)
        if is_group:
            yield from _values(node, inner, definitions, lines, f"{path}.")


def _comment(lines: list[str], number: int, column: int) -> str:
    """Return the block of comments above a key, followed by the comment beside it."""
    above = number
    while above and lines[above - 1].startswith(" " * column + "#"):
        above -= 1
    beside = re.search(r" # (.*)$", lines[number])
    comments = [line.strip(" #") for line in lines[above:number]] + ([beside[1]] if beside else [])
    return " ".join(comments)


def _default(value: Value) -> str:
    text = json.dumps(value.default)
    if value.is_group:
        return ""
    return code(text) if len(text) <= LONGEST_DEFAULT else "in values.yaml"
