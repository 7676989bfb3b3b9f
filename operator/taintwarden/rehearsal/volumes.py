"""Reads the volumes of a pod, which may have node affinity of ours."""

from urllib.parse import quote

from taintwarden.kube.wire.kinds import ClaimObject
from taintwarden.kube.wire.resources import VOLUMES
from taintwarden.placement.scheduling.demands import claim_of
from taintwarden.rehearsal.places import PlacedPod, PlacedVolume
from taintwarden.rehearsal.session import Session


async def read_volumes(session: Session, pod: PlacedPod) -> tuple[list[ClaimObject], list[PlacedVolume]]:
    """Its claims that are bound, and their volumes.

    Raises:
        ClusterError: they cannot be read.

    """
    claims, volumes = list[ClaimObject](), list[PlacedVolume]()
    space = f"/api/v1/namespaces/{quote(pod.metadata.namespace, safe='')}/persistentvolumeclaims"
    for name in filter(None, (claim_of(volume, pod) for volume in pod.spec.volumes)):
        claim = await session.read(f"{space}/{quote(name, safe='')}", ClaimObject, "persistentvolumeclaims")
        if claim is None or not claim.spec.volume_name:
            continue
        path = f"{VOLUMES.path}/{quote(claim.spec.volume_name, safe='')}"
        volume = await session.read(path, PlacedVolume, VOLUMES.name)
        claims.append(claim)
        volumes += [] if volume is None else [volume]
    return claims, volumes
