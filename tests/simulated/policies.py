"""Policies for tests, from the same YAML-like dicts that users write."""

from typing import Any

from limits_off import LIMITS_OFF
from taintwarden.api.policies import parse_policy
from taintwarden.engine.policy import Policy


def policy(name: str = "p", **spec: Any) -> Policy:
    """A policy on every NoExecute taint with the limits of ``spec`` and no others, changed by ``spec``."""
    spec["limits"] = LIMITS_OFF | spec.get("limits", {})
    base: dict[str, Any] = {"taints": [{"key": "*"}]}
    obj = {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TaintEvictionPolicy",
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": 1},
        "spec": base | spec,
    }
    return parse_policy(obj)
