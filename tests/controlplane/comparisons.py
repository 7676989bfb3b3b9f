"""The operators Gt and Lt in spec.tolerations, and where pods carry them on a Kubernetes that does not know them."""

import copy
import json

from controlplane.binaries import wanted_version
from controlplane.client import Json

GATE = "TaintTolerationComparisonOperators"
SINCE = (1, 35)
OPERATORS = ("Gt", "Lt")
ANNOTATION = "taintwarden.io/tolerations"


def known_gates() -> dict[str, bool]:
    """The feature gate, switched on, where the Kubernetes under test has it: components refuse one that they lack."""
    major, minor = wanted_version().removeprefix("v").split(".")[:2]
    return {GATE: True} if (int(major), int(minor)) >= SINCE else {}


def in_annotation(body: Json) -> Json:
    """The same pod, or object with a pod template, with its comparisons where the documents say for older clusters.

    For a key that the annotation names, only the annotation counts. So all tolerations of such a key go there, and a
    native `Exists` stands for them.
    """
    changed = copy.deepcopy(body)
    pod = changed.get("spec", {}).get("template", changed)
    tolerations = pod.get("spec", {}).get("tolerations", [])
    keys = {one.get("key") for one in tolerations if one.get("operator") in OPERATORS}
    annotations = pod.setdefault("metadata", {}).get("annotations") or {}
    if not keys or "containers" not in pod["spec"] or ANNOTATION in annotations:
        return body
    extended = [one for one in tolerations if one.get("key") in keys]
    stand_ins = [{"key": one["key"], "operator": "Exists", "effect": one.get("effect", "")} for one in extended]
    pod["spec"]["tolerations"] = [*stand_ins, *(one for one in tolerations if one not in extended)]
    pod["metadata"]["annotations"] = annotations | {ANNOTATION: json.dumps(extended)}
    return changed
