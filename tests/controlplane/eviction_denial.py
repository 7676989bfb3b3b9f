"""Evictions denied by a policy of the cluster, for as long as a namespace carries a label."""

from controlplane.client import Json
from controlplane.cluster import Cluster
from controlplane.waiting import wait_until

DENIAL = "taintwarden-e2e-deny-evictions"
DENIED_LABEL = "taintwarden-e2e/deny-evictions"
PROBE_NAMESPACE = "eviction-denial-probe"
REFUSAL_SECONDS = 30  # the server reads new admission policies about once a second


class EvictionDenial:
    """Denies the eviction and deletion of pods in chosen namespaces, by a ValidatingAdmissionPolicy.

    A new policy takes a second or two to hold, a label on a namespace none: the policy is installed ahead.
    """

    def __init__(self, cluster: Cluster):
        self.cluster = cluster

    def install(self) -> None:
        """Install the policy and wait until the server obeys it."""
        rules = [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]},
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]},
        ]
        selector = {"matchLabels": {DENIED_LABEL: "true"}}
        spec: Json = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules, "namespaceSelector": selector},
            "validations": [{"expression": "false", "message": "evictions are denied here", "reason": "Forbidden"}],
        }
        binding = {"policyName": DENIAL, "validationActions": ["Deny"]}
        self.cluster.create("validatingadmissionpolicies", {"metadata": {"name": DENIAL}, "spec": spec})
        self.cluster.create("validatingadmissionpolicybindings", {"metadata": {"name": DENIAL}, "spec": binding})
        self.cluster.create_namespace(PROBE_NAMESPACE, {DENIED_LABEL: "true"})
        try:
            self.cluster.create_pod("probe", PROBE_NAMESPACE)
            wait_until(self._is_obeyed, REFUSAL_SECONDS, "the denial of evictions to hold")
        finally:
            self.allow(PROBE_NAMESPACE)
            self.cluster.remove_namespace(PROBE_NAMESPACE)

    def remove(self) -> None:
        self.cluster.delete("validatingadmissionpolicybindings", DENIAL)
        self.cluster.delete("validatingadmissionpolicies", DENIAL)

    def deny(self, namespace: str) -> None:
        self.cluster.patch("namespaces", namespace, {"metadata": {"labels": {DENIED_LABEL: "true"}}})

    def allow(self, namespace: str) -> None:
        self.cluster.patch("namespaces", namespace, {"metadata": {"labels": {DENIED_LABEL: None}}})

    def _is_obeyed(self) -> bool:
        return "denied" in self.cluster.refusal("DELETE", f"/api/v1/namespaces/{PROBE_NAMESPACE}/pods/probe")
