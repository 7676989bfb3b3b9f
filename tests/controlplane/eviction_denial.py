"""Evictions denied by a policy of the cluster, for as long as a namespace carries a label."""

from uuid import uuid4

from controlplane.client import Json
from controlplane.cluster import Cluster
from controlplane.waiting import wait_until

DENIAL = "taintwarden-e2e-deny-evictions"
DENIED_LABEL = "taintwarden-e2e/deny-evictions"
REFUSAL_SECONDS = 60  # the server reads new admission policies about once a second


class EvictionDenial:
    """Denies the eviction and deletion of pods in chosen namespaces, by a ValidatingAdmissionPolicy.

    A new policy takes a second or two to hold, a label on a namespace none: the policy is installed ahead.
    """

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        # A name of its own: the namespace of an earlier one may still be ending.
        self._probe = f"eviction-denial-{uuid4().hex[:8]}"

    def install(self) -> None:
        """Install the policy and wait until it is in force."""
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
        self.cluster.create_namespace(self._probe, {DENIED_LABEL: "true"})
        try:
            self.cluster.create_pod("probe", self._probe)
            wait_until(self._is_obeyed, REFUSAL_SECONDS, "the denial of evictions to hold")
        finally:
            self.allow(self._probe)
            self.cluster.remove_namespace(self._probe)

    def remove(self) -> None:
        self.cluster.delete("validatingadmissionpolicybindings", DENIAL)
        self.cluster.delete("validatingadmissionpolicies", DENIAL)

    def deny(self, namespace: str) -> None:
        self.cluster.patch("namespaces", namespace, {"metadata": {"labels": {DENIED_LABEL: "true"}}})

    def allow(self, namespace: str) -> None:
        self.cluster.patch("namespaces", namespace, {"metadata": {"labels": {DENIED_LABEL: None}}})

    def _is_obeyed(self) -> bool:
        return "denied" in self.cluster.refusal("DELETE", f"/api/v1/namespaces/{self._probe}/pods/probe")
