"""A real control plane for tests, and the operator as a process beside it.

    with ControlPlane(feature_gates={"TaintTolerationComparisonOperators": True}) as control_plane:
        control_plane.apply_crds()
        control_plane.apply_manifests()
        with Operator(control_plane.operator_kubeconfig(), control_plane.folder) as operator:
            control_plane.client.create_node("n1", taints=[...])

Nothing here imports the package under test: what it does is judged from outside.
"""

from controlplane.availability import Availability, Count, Departure
from controlplane.binaries import MissingBinariesError
from controlplane.client import ApiError, Client, Json
from controlplane.cluster import Cluster, is_evicted
from controlplane.control_plane import ControlPlane
from controlplane.eviction_denial import EvictionDenial
from controlplane.kubelet import STOP_SECONDS_ANNOTATION, Kubelet
from controlplane.network import Link
from controlplane.operator_process import Extender, Operator, Publisher, Webhook
from controlplane.processes import Process, ProcessFailedError
from controlplane.pulse import Pulse
from controlplane.target import OPERATOR_NAMESPACE, OPERATOR_USER, Target
from controlplane.waiting import sleep_until, wait_until
from controlplane.working_cluster import WorkingCluster

__all__ = [
    "OPERATOR_NAMESPACE",
    "OPERATOR_USER",
    "STOP_SECONDS_ANNOTATION",
    "ApiError",
    "Availability",
    "Client",
    "Cluster",
    "ControlPlane",
    "Count",
    "Departure",
    "EvictionDenial",
    "Extender",
    "Json",
    "Kubelet",
    "Link",
    "MissingBinariesError",
    "Operator",
    "Process",
    "ProcessFailedError",
    "Publisher",
    "Pulse",
    "Target",
    "Webhook",
    "WorkingCluster",
    "is_evicted",
    "sleep_until",
    "wait_until",
]
