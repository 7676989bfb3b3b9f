"""Structs with the used fields of Dynamic Resource Allocation (``resource.k8s.io/v1``), and the API paths."""

import msgspec

from taintwarden.engine.model import Int64, Toleration
from taintwarden.kube.wire.kinds import Metadata, TaintObject
from taintwarden.kube.wire.resources import Resource


class DeviceObject(msgspec.Struct):
    """``spec.devices[]``."""

    name: str = ""
    taints: list[TaintObject] = []


class PoolObject(msgspec.Struct, gc=False, rename="camel"):
    """``spec.pool``."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class SliceSpec(msgspec.Struct, rename="camel"):
    """``spec`` of a ResourceSlice."""

    driver: str = ""
    node_name: str = ""
    pool: PoolObject = msgspec.field(default_factory=PoolObject)
    devices: list[DeviceObject] = []


class SliceObject(msgspec.Struct):
    """A resource.k8s.io/v1 ResourceSlice."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: SliceSpec = msgspec.field(default_factory=SliceSpec)


class DeviceSelectorObject(msgspec.Struct, gc=False):
    """``spec.deviceSelector`` of a DeviceTaintRule."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class TaintRuleSpec(msgspec.Struct, rename="camel"):
    """``spec`` of a DeviceTaintRule. An absent selector selects no device, an empty one every device."""

    device_selector: DeviceSelectorObject | None = None
    taint: TaintObject = msgspec.field(default_factory=TaintObject)


class TaintRuleObject(msgspec.Struct):
    """A resource.k8s.io/v1 DeviceTaintRule."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: TaintRuleSpec = msgspec.field(default_factory=TaintRuleSpec)


class SubRequestObject(msgspec.Struct):
    """``spec.devices.requests[].exactly``, or one of ``firstAvailable[]``. Only the latter has a name."""

    name: str = ""
    tolerations: list[Toleration] = []


class RequestObject(msgspec.Struct, rename="camel"):
    """``spec.devices.requests[]``."""

    name: str = ""
    exactly: SubRequestObject | None = None
    first_available: list[SubRequestObject] = []


class DeviceRequests(msgspec.Struct):
    """``spec.devices`` of a ResourceClaim."""

    requests: list[RequestObject] = []


class DeviceClaimSpec(msgspec.Struct):
    """``spec`` of a ResourceClaim."""

    devices: DeviceRequests = msgspec.field(default_factory=DeviceRequests)


class AllocatedDevice(msgspec.Struct):
    """``status.allocation.devices.results[]``. ``request`` is ``name``, or ``name/subrequest``."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    tolerations: list[Toleration] = []


class AllocatedDevices(msgspec.Struct):
    """``status.allocation.devices``."""

    results: list[AllocatedDevice] = []


class Allocation(msgspec.Struct):
    """``status.allocation``."""

    devices: AllocatedDevices = msgspec.field(default_factory=AllocatedDevices)


class Consumer(msgspec.Struct, gc=False, rename={"api_group": "apiGroup"}):
    """``status.reservedFor[]``."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceClaimStatus(msgspec.Struct, rename="camel"):
    """``status`` of a ResourceClaim."""

    allocation: Allocation | None = None
    reserved_for: list[Consumer] = []


class DeviceClaimObject(msgspec.Struct):
    """A resource.k8s.io/v1 ResourceClaim."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: DeviceClaimSpec = msgspec.field(default_factory=DeviceClaimSpec)
    status: DeviceClaimStatus = msgspec.field(default_factory=DeviceClaimStatus)


DEVICES_PATH = "/apis/resource.k8s.io/v1"
SLICES = Resource("resourceslices", f"{DEVICES_PATH}/resourceslices", SliceObject)
TAINT_RULES = Resource("devicetaintrules", f"{DEVICES_PATH}/devicetaintrules", TaintRuleObject)
CLAIMS = Resource("resourceclaims", f"{DEVICES_PATH}/resourceclaims", DeviceClaimObject)
