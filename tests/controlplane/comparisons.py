"""The operators Gt and Lt in spec.tolerations, and where pods carry them on a Kubernetes that does not know them."""

import copy
import json

from controlplane.binaries import is_before
from controlplane.client import Json

GATE = "TaintTolerationComparisonOperators"
SINCE_MINOR = 35
OPERATORS = ("Gt", "Lt")
TEMPLATED = ("daemonsets", "deployments", "jobs", "replicasets", "statefulsets")
ANNOTATION = "taintwarden.io/tolerations"


def known_gates() -> dict[str, bool]:
    """The feature gate, switched on, where the Kubernetes under test has it: components refuse one that they lack."""
    return {} if is_before(SINCE_MINOR) else {GATE: True}


def in_annotation(resource: str, body: Json) -> Json:
    """Return the pod or workload with its comparisons in the annotation, as documented for older clusters.

    For a key that the annotation names, only the annotation counts. So all tolerations of such a key go there, and a
    native `Exists` stands for them.
    """
    plural = resource.rpartition("/")[2]
    if plural not in ("pods", *TEMPLATED):
        return body
    changed = copy.deepcopy(body)
    pod = changed["spec"]["template"] if plural in TEMPLATED else changed
    tolerations = pod["spec"].get("tolerations", [])
    keys = {one.get("key") for one in tolerations if one.get("operator") in OPERATORS}
    annotations = pod.setdefault("metadata", {}).get("annotations") or {}
    if not keys or ANNOTATION in annotations:
        return body
    extended = [one for one in tolerations if one.get("key") in keys]
    stand_ins = [{"key": one["key"], "operator": "Exists", "effect": one.get("effect", "")} for one in extended]
    pod["spec"]["tolerations"] = [*stand_ins, *(one for one in tolerations if one not in extended)]
    pod["metadata"]["annotations"] = annotations | {ANNOTATION: json.dumps(extended)}
    return changed
