"""The validating and the mutating webhook: a response for each request, from what is known of the cluster now."""

from collections.abc import Callable
from typing import Any

import msgspec

from taintwarden.admission.checking import look, sequence
from taintwarden.admission.injection import inexpressible, inject, tolerate, unplaced
from taintwarden.admission.known import Known
from taintwarden.admission.objects import TEMPLATES, pod_in
from taintwarden.admission.response import AdmissionResponse
from taintwarden.admission.validation import INJECT, check_change, opts_out
from taintwarden.admission.volumes import inject_volume
from taintwarden.controller.decoding import MAX_NATIVE_TOLERATIONS, Decoder
from taintwarden.engine.model import Gates
from taintwarden.engine.scheduling import Demand
from taintwarden.kube.objects import UnboundPod


class Kind(msgspec.Struct, frozen=True):
    """``request.kind``."""

    group: str = ""
    version: str = ""
    kind: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``AdmissionReview.request``, as far as it is used. ``object`` is absent in deletions."""

    uid: str
    kind: Kind
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
        by_extender: schedulers ask the extender, so that pods and volumes need no node affinity.

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

    def validate(self, request: Request) -> AdmissionResponse:
        """Whether the object may be stored."""
        if request.object is None:
            return AdmissionResponse()
        kind = (request.kind.group, request.kind.kind)
        if kind in TEMPLATES and (left_alone := _too_large(pod_in(request.object, *kind))):
            return left_alone
        labels = self._known.namespace_labels(request.namespace) or {}
        is_injected = labels.get(INJECT) == "true"
        response = check_change(
            request.object,
            request.old_object,
            *kind,
            self._known.policies,
            self._known.profiles_in(request.namespace),
            is_injected=is_injected,
        )
        if kind not in TEMPLATES or self._by_extender:
            return response
        template = pod_in(request.object, *kind)
        told = unplaced(template) if not is_injected or opts_out(template) else ()
        if not told and kind != ("", "Pod"):  # a pod has been injected before: its author knows
            told = inexpressible(template, self._known.version_labels(), self._gates)
        return msgspec.structs.replace(response, warnings=(*response.warnings, *told))

    def mutate(self, request: Request) -> AdmissionResponse:
        """What a pod or a volume gets before it is stored."""
        if request.object is None:
            return AdmissionResponse()
        kind = (request.kind.group, request.kind.kind)
        if kind == ("", "PersistentVolume"):
            if self._by_extender:
                return AdmissionResponse()
            return inject_volume(request.object, request.old_object, self._known.version_labels(), self._gates)
        if kind != ("", "Pod"):
            return AdmissionResponse()
        if left_alone := _too_large(request.object):
            return left_alone
        try:
            pod = msgspec.convert(request.object, UnboundPod)
        except msgspec.ValidationError:  # no API server asks about such a pod, and it would store none
            return AdmissionResponse()
        # A pod whose name is still to be made may come without its namespace, too.
        pod.metadata.namespace = request.namespace
        if self._by_extender:
            return tolerate(request.object, self._demand_of(pod).tolerations)
        policies = self._known.policies_for(self._decoder.pod_class(pod))
        return inject(request.object, self._demand_of(pod), policies, self._known.version_labels(), self._gates)


def _too_large(pod: object) -> AdmissionResponse | None:
    """Allows a pod with more tolerations than count, unread. None for any other pod."""
    native = len(sequence(look(pod, "spec", "tolerations")))
    if native <= MAX_NATIVE_TOLERATIONS:
        return None
    told = f"spec.tolerations has {native} items, of which {MAX_NATIVE_TOLERATIONS} count: the pod is not looked at"
    return AdmissionResponse(warnings=(told,))
