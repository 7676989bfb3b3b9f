"""The validating and the mutating webhook: a response for each request, from the current cluster state."""

from collections.abc import Callable
from typing import Any

import msgspec

from taintwarden.api.node_affinity import AFFINITY_ANNOTATION
from taintwarden.api.node_affinity import PATH as AFFINITY_PATH
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.engine.model import Gates
from taintwarden.kube.wire.kinds import MAX_POD_ENTRIES
from taintwarden_placement.admission.annotated_objects import TEMPLATES, pod_in
from taintwarden_placement.admission.checking import mapping, sequence, value_at
from taintwarden_placement.admission.cluster_state import ClusterState
from taintwarden_placement.admission.injection import Additions, additions, native_additions
from taintwarden_placement.admission.merged_affinity import is_affinity
from taintwarden_placement.admission.own_objects import INJECT, check_change, is_controlled, opts_out
from taintwarden_placement.admission.placing import concerning_policies
from taintwarden_placement.admission.response import AdmissionResponse
from taintwarden_placement.admission.templates import complete_template
from taintwarden_placement.node_labels.wanted import published_labels
from taintwarden_placement.scheduling.demands import UnboundPod
from taintwarden_placement.scheduling.feasibility import Demand

_UNPLACED = f"{AFFINITY_PATH}: has no effect: {INJECT} must be true on the namespace, and not false on the pod"
_MIRROR = "kubernetes.io/config.mirror"
_POD, _DAEMON_SET = ("", "Pod"), ("apps", "DaemonSet")


class GroupVersionKind(msgspec.Struct, frozen=True):
    """``request.kind``."""

    group: str = ""
    version: str = ""
    kind: str = ""


class AdmissionRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields of ``AdmissionReview.request`` that webhooks read. ``object`` is None in a deletion."""

    uid: str
    kind: GroupVersionKind
    name: str = ""
    namespace: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class AdmissionWebhooks:
    """The responses of both webhooks.

    Args:
        known: policies, profiles and namespaces.
        decoder: decodes pods into engine values.
        demand_of: returns what a pod requires of nodes.
        gates: which operators are switched on.
        by_extender: True if schedulers call the extender, so that pods need no node affinity.

    """

    def __init__(
        self,
        known: ClusterState,
        decoder: Decoder,
        demand_of: Callable[[UnboundPod], Demand],
        gates: Gates,
        *,
        by_extender: bool = False,
    ) -> None:
        self._by_extender = by_extender
        self._known = known
        self._decoder = decoder
        self._demand_of = demand_of
        self._gates = gates

    def validate(self, request: AdmissionRequest) -> AdmissionResponse:
        """Return whether the object may be stored, with warnings for its author."""
        if request.object is None:
            return AdmissionResponse()
        kind = (request.kind.group, request.kind.kind)
        if kind in TEMPLATES and (too_large := _too_large(pod_in(request.object, *kind))):
            return too_large
        labels = self._known.namespace_labels(request.namespace) or {}
        is_injected = labels.get(INJECT) == "true"
        found = check_change(
            request.object,
            request.old_object,
            *kind,
            self._known.profiles.in_namespace(request.namespace),
            is_injected=is_injected,
        )
        if kind not in TEMPLATES:
            return found
        template = pod_in(request.object, *kind)
        is_injected = is_injected and not opts_out(template)
        warnings = list(found.warnings)
        affinity = value_at(template, "metadata", "annotations", AFFINITY_ANNOTATION)
        if affinity is not None and not (is_injected or self._by_extender):
            warnings.append(_UNPLACED)
        # For pods and DaemonSets, the mutating webhook has returned these warnings already.
        if is_injected and kind not in (_POD, _DAEMON_SET) and not is_controlled(request.object):
            pod = {"metadata": mapping(value_at(template, "metadata")), "spec": mapping(value_at(template, "spec"))}
            warnings += self._additions(pod, request.namespace).warnings
        return msgspec.structs.replace(found, warnings=tuple(warnings))

    def mutate(self, request: AdmissionRequest) -> AdmissionResponse:
        """Return the additions to a pod or to the template of a DaemonSet."""
        if request.object is None:
            return AdmissionResponse()
        kind = (request.kind.group, request.kind.kind)
        if kind not in (_POD, _DAEMON_SET):
            return AdmissionResponse()
        if too_large := _too_large(pod_in(request.object, *kind)):
            return too_large
        if kind == _DAEMON_SET:
            return complete_template(
                request.object, request.old_object, lambda pod: self._additions(pod, request.namespace)
            )
        return self._additions(request.object, request.namespace).response()

    def _additions(self, pod: dict[str, Any], namespace: str) -> Additions:
        read = _decode_pod(pod, namespace)
        # Nothing to add: the kubelet already runs the static pod of a mirror pod; the API server rejects invalid pods.
        if read is None or value_at(pod, "metadata", "annotations", _MIRROR) is not None:
            return Additions()
        demand = self._demand_of(read)
        if self._by_extender:
            return native_additions(pod, demand.tolerations)
        pod_class, policies = self._decoder.pod_class(read), self._known.policies
        concerning = concerning_policies(policies, pod_class, self._known.namespace_labels(pod_class.namespace))
        return additions(pod, demand, concerning, published_labels(policies), self._gates)


def _decode_pod(pod: object, namespace: str) -> UnboundPod | None:
    try:
        read = msgspec.convert(pod, UnboundPod)
    except msgspec.ValidationError:
        return None
    if not is_affinity(value_at(pod, "spec", "affinity")):
        return None
    # A pod in a request may lack its namespace, for example if the API server still has to generate its name.
    read.metadata.namespace = namespace
    return read


def _too_large(pod: object) -> AdmissionResponse | None:
    """Return a response that allows a pod with too many tolerations without reading it; None for any other pod."""
    native = len(sequence(value_at(pod, "spec", "tolerations")))
    if native <= MAX_POD_ENTRIES:
        return None
    text = f"spec.tolerations has {native} items, more than {MAX_POD_ENTRIES}: the pod is too large to be checked"
    return AdmissionResponse(warnings=(text,))
