"""The binding subresource: what a scheduler does to a pod.

Rules: `setPodNodeAndMetadata` in `kubernetes/pkg/registry/core/pod/storage/storage.go`; the node need not exist.
Forbidden here: choosing a node.
"""

from typing import Any

from localcluster.errors import bad_request, conflict
from localcluster.kinds.pods import set_condition
from localcluster.kinds.resource import Object
from localcluster.store.store import Store, timestamp


def bind(store: Store, namespace: str, name: str, body: Any, *, dry_run: bool = False) -> Object:
    """Set the pod's node and its PodScheduled condition. Raises 400, 404, 409 for a pod that has a node."""
    if not isinstance(body, dict) or (body.get("metadata") or {}).get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = body.get("target") or {}
    node = target.get("name", "")
    if not node or target.get("kind", "Node") not in {"Node", ""}:
        raise bad_request("target.name: Required value")
    pod = store.get("pods", name, namespace)
    problem = _problem(pod, body["metadata"])
    if problem:
        raise conflict("pods/binding", "", name, problem)
    if not dry_run:
        pod["spec"]["nodeName"] = node
        _merge(pod["metadata"], body["metadata"])
        set_condition(pod, "PodScheduled", "True", timestamp(store.clock()))
        (pod.get("status") or {}).pop("nominatedNodeName", None)
        store.update("pods", pod, same_generation=True)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _problem(pod: Object, wanted: Object) -> str:
    meta, spec = pod["metadata"], pod["spec"]
    if wanted.get("uid") not in {None, "", meta["uid"]}:
        return f"Precondition failed: UID in precondition: {wanted['uid']}, UID in object meta: {meta['uid']}"
    if meta.get("deletionTimestamp"):
        return f"pod {meta['name']} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {meta["name"]} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {meta['name']} has non-empty .spec.schedulingGates"
    return ""


def _merge(meta: Object, given: Object) -> None:
    for field in ("annotations", "labels"):
        if given.get(field):
            meta[field] = {**(meta.get(field) or {}), **given[field]}
