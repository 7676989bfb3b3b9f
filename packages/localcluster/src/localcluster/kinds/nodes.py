"""Nodes: rules of taints, and the taint that admission adds to new nodes.

Rules: `ValidateNode`, `ValidateNodeUpdate`, the admission plugin NodeTaint. Forbidden here: heartbeats, readiness.
"""

from localcluster.errors import Cause, refused
from localcluster.kinds.resource import Object, Strategy
from localcluster.kinds.tolerations import check_taints

_NODE_INFO = """
machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion kubeProxyVersion
operatingSystem architecture
"""
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class NodeStrategy(Strategy):
    """The rules of nodes. Field paths of taints begin with `metadata`, as upstream."""

    status_writes_metadata = True

    def prepare_create(self, value: Object) -> None:
        """Add the not-ready taint to a new node. In a real cluster the node lifecycle controller removes it."""
        status = value["status"] = dict(value.get("status") or {})
        status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
        status["nodeInfo"] = dict.fromkeys(_NODE_INFO.split(), "") | (status.get("nodeInfo") or {})
        spec = value.setdefault("spec", {})
        taints = spec.get("taints") or []
        if not any((taint.get("key"), taint.get("effect")) == tuple(NOT_READY.values()) for taint in taints):
            spec["taints"] = [*taints, dict(NOT_READY)]

    def validate(self, value: Object, old: Object | None) -> list[Cause]:
        """Check taints, and that the provider ID and the pod CIDR do not change once set."""
        spec = value.get("spec") or {}
        causes = check_taints(spec.get("taints") or [], "metadata.taints")
        before = (old or {}).get("spec") or {}
        for name, shown in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
            if before.get(name) and before[name] != spec.get(name):
                text = f'node updates may not change {shown} except from "" to valid'
                causes.append(refused(f"spec.{name}", text))
        return causes
