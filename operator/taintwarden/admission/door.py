"""What is answered to a request of the API server, from what the operator knows at this moment."""

from typing import Any

import msgspec

from taintwarden.admission.changes import INJECT, check_change
from taintwarden.admission.injection import inject
from taintwarden.admission.ruling import Ruling
from taintwarden.controller.cache import Translator
from taintwarden.engine.machine import Machine
from taintwarden.engine.model import Gates
from taintwarden.kube.objects import PodObject


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


class Door:
    """Answers from the machine's policies, profiles and namespaces.

    Args:
        machine: where they are.
        translator: makes engine values of pods.
        gates: which operators may match at all.

    """

    def __init__(self, machine: Machine, translator: Translator, gates: Gates) -> None:
        self._machine = machine
        self._translator = translator
        self._gates = gates

    def validate(self, request: Request) -> Ruling:
        """Whether the object may be stored."""
        if request.object is None:
            return Ruling()
        labels = self._machine.namespace_labels(request.namespace) or {}
        return check_change(
            request.object,
            request.old_object,
            request.kind.group,
            request.kind.kind,
            self._machine.policies,
            self._machine.profiles,
            is_injected=labels.get(INJECT) == "true",
        )

    def mutate(self, request: Request) -> Ruling:
        """What a pod gets before it is stored."""
        if request.object is None or (request.kind.group, request.kind.kind) != ("", "Pod"):
            return Ruling()
        pod = msgspec.convert(request.object, PodObject)
        # A pod whose name is still to be made may come without its namespace, too.
        pod.metadata.namespace = request.namespace
        pod_class = self._translator.pod_class(pod)
        tolerations = self._machine.tolerations_of(pod_class)
        return inject(request.object, tolerations, self._machine.policies_for(pod_class), self._gates)
