"""The validating and the mutating webhook: a response for each request, from what is known of the cluster now."""

from collections.abc import Callable
from typing import Any

import msgspec

from taintwarden.api.node_affinity import AFFINITY_ANNOTATION
from taintwarden.api.node_affinity import PATH as AFFINITY_PATH
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.engine.model import Gates
from taintwarden.kube.wire.kinds import MAX_POD_ENTRIES
from taintwarden_placement.admission.annotated_objects import TEMPLATES, pod_in
from taintwarden_placement.admission.checking import look, mapping, sequence
from taintwarden_placement.admission.injection import Additions, additions, tolerate
from taintwarden_placement.admission.known import Known
from taintwarden_placement.admission.merged_affinity import is_affinity
from taintwarden_placement.admission.own_objects import INJECT, check_change, is_controlled, opts_out
from taintwarden_placement.admission.placing import acting
from taintwarden_placement.admission.response import AdmissionResponse
from taintwarden_placement.admission.templates import complete_template
from taintwarden_placement.node_labels.wanted import published_labels
from taintwarden_placement.scheduling.demands import UnboundPod
from taintwarden_placement.scheduling.feasibility import Demand

_UNPLACED = f"{AFFINITY_PATH}: has no effect on pods that are not injected: label the namespace {INJECT}=true"
_MIRROR = "kubernetes.io/config.mirror"
_POD, _DAEMON_SET = ("", "Pod"), ("apps", "DaemonSet")


class GroupVersionKind(msgspec.Struct, frozen=True):
    """``request.kind``."""

    group: str = ""
    version: str = ""
    kind: str = ""


class AdmissionRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``AdmissionReview.request``, as far as it is used. ``object`` is absent in deletions."""

    uid: str
    kind: GroupVersionKind
    name: str = ""
    namespace: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class AdmissionWebhooks:
    """Answers from the policies, profiles and namespaces that are known.

    Args:
        known: where they are.
        decoder: makes engine values of pods.
        demand_of: what a pod demands of nodes.
        gates: which operators may match at all.
        by_extender: schedulers ask the extender, so that pods need no node affinity.

    """

    def __init__(
        self,
        known: Known,
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
        """Whether the object may be stored."""
        if request.object is None:
            return AdmissionResponse()
        kind = (request.kind.group, request.kind.kind)
        if kind in TEMPLATES and (left_alone := _too_large(pod_in(request.object, *kind))):
            return left_alone
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
        affinity = look(template, "metadata", "annotations", AFFINITY_ANNOTATION)
        if affinity is not None and not (is_injected or self._by_extender):
            warnings.append(_UNPLACED)
        # Pods and the templates of DaemonSets have been completed before, so their authors were warned.
        if is_injected and kind not in (_POD, _DAEMON_SET) and not is_controlled(request.object):
            pod = {"metadata": mapping(look(template, "metadata")), "spec": mapping(look(template, "spec"))}
            warnings += self._additions(pod, request.namespace).warnings
        return msgspec.structs.replace(found, warnings=tuple(warnings))

    def mutate(self, request: AdmissionRequest) -> AdmissionResponse:
        """What a pod or the template of a DaemonSet gets before it is stored."""
        if request.object is None:
            return AdmissionResponse()
        kind = (request.kind.group, request.kind.kind)
        if kind not in (_POD, _DAEMON_SET):
            return AdmissionResponse()
        if left_alone := _too_large(pod_in(request.object, *kind)):
            return left_alone
        if kind == _DAEMON_SET:
            return complete_template(
                request.object, request.old_object, lambda pod: self._additions(pod, request.namespace)
            )
        return self._additions(request.object, request.namespace).response()

    def _additions(self, pod: dict[str, Any], namespace: str) -> Additions:
        read = _read(pod, namespace)
        # A mirror pod stands for one that runs; and no API server asks about what is no pod, nor stores it.
        if read is None or look(pod, "metadata", "annotations", _MIRROR) is not None:
            return Additions()
        demand = self._demand_of(read)
        if self._by_extender:
            return tolerate(pod, demand.tolerations)
        pod_class, policies = self._decoder.pod_class(read), self._known.policies
        concerning = acting(policies, pod_class, self._known.namespace_labels(pod_class.namespace))
        return additions(pod, demand, concerning, published_labels(policies), self._gates)


def _read(pod: object, namespace: str) -> UnboundPod | None:
    try:
        read = msgspec.convert(pod, UnboundPod)
    except msgspec.ValidationError:
        return None
    if not is_affinity(look(pod, "spec", "affinity")):
        return None
    # A pod whose name is still to be made may come without its namespace, too.
    read.metadata.namespace = namespace
    return read


def _too_large(pod: object) -> AdmissionResponse | None:
    """Allows a pod with more tolerations than may count, unread. None for any other pod."""
    native = len(sequence(look(pod, "spec", "tolerations")))
    if native <= MAX_POD_ENTRIES:
        return None
    text = f"spec.tolerations has {native} items, more than {MAX_POD_ENTRIES}: the pod is too large to be looked at"
    return AdmissionResponse(warnings=(text,))
