"""What is read of pods that are to be scheduled, and of the volumes that they claim."""

import msgspec

from taintwarden.kube.wire.kinds import PodObject
from taintwarden.kube.wire.resources import Resource


class UnboundPod(PodObject):
    """A v1 Pod that is to be scheduled. It is never streamed: schedulers send it."""


class ClaimMeta(msgspec.Struct, gc=False, rename="camel"):
    """``metadata`` of a claim."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class ClaimSpec(msgspec.Struct, gc=False, rename="camel"):
    """``spec`` of a claim; ``volume_name`` is empty until it is bound."""

    volume_name: str = ""


class ClaimObject(msgspec.Struct):
    """A v1 PersistentVolumeClaim."""

    metadata: ClaimMeta = msgspec.field(default_factory=ClaimMeta)
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)


class VolumeAnnotations(msgspec.Struct, gc=False):
    """The annotation that is ours."""

    node_affinity: str | None = msgspec.field(default=None, name="taintwarden.io/node-affinity")


class VolumeMeta(msgspec.Struct, rename="camel"):
    """``metadata`` of a volume."""

    name: str = ""
    resource_version: str = ""
    annotations: VolumeAnnotations | None = None


class VolumeObject(msgspec.Struct):
    """A v1 PersistentVolume."""

    metadata: VolumeMeta = msgspec.field(default_factory=VolumeMeta)


CLAIMS = Resource("persistentvolumeclaims", "/api/v1/persistentvolumeclaims", ClaimObject)
VOLUMES = Resource("persistentvolumes", "/api/v1/persistentvolumes", VolumeObject)
