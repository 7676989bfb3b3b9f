"""A small synchronous client: JSON in, JSON out, every refusal an ApiError. Independent of the code under test."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from controlplane.certificates import Pair

Json = dict[str, Any]

# Where the resources live that tests name; any other is written out, as in "apps/v1/deployments".
GROUPS = {
    "v1": "configmaps namespaces nodes persistentvolumeclaims persistentvolumes pods secrets serviceaccounts services",
    "admissionregistration.k8s.io/v1": "validatingadmissionpolicies validatingadmissionpolicybindings",
    "apiextensions.k8s.io/v1": "customresourcedefinitions",
    "apps/v1": "daemonsets deployments replicasets statefulsets",
    "authorization.k8s.io/v1": "selfsubjectaccessreviews",
    "coordination.k8s.io/v1": "leases",
    "events.k8s.io/v1": "events",
    "policy/v1": "poddisruptionbudgets",
    "rbac.authorization.k8s.io/v1": "clusterroles clusterrolebindings roles rolebindings",
    "resource.k8s.io/v1": "deviceclasses devicetaintrules resourceclaims resourceclaimtemplates resourceslices",
    "scheduling.k8s.io/v1": "priorityclasses",
    "taintwarden.io/v1alpha1": "taintevictionpolicies taintpublishers tolerationprofiles",
}
GROUP_OF = {resource: group for group, resources in GROUPS.items() for resource in resources.split()}
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
WATCH_SECONDS = 60
FIELD_MANAGER = "taintwarden-e2e"


class ApiError(Exception):
    """The server answered, and the answer is no."""

    def __init__(self, status: int, body: Any):
        self.status = status
        self.body = body
        self.reason: str = body.get("reason", "") if isinstance(body, dict) else ""
        message = body.get("message", "") if isinstance(body, dict) else str(body)
        super().__init__(f"{status} {self.reason}: {message}")


def group_path(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def resource_path(resource: str, name: str = "", namespace: str = "", subresource: str = "") -> str:
    """The path of a resource: a plural of GROUPS, or group/version/plural. Raises KeyError for a plural not there."""
    *api_version, plural = resource.split("/")
    parts = [group_path("/".join(api_version) or GROUP_OF[plural])]
    if namespace:
        parts += ["namespaces", namespace]
    return "/".join([*parts, plural, *(part for part in (name, subresource) if part)])


class Client:
    """Requests to one API server as one user. Connections are kept; threads may share a client."""

    def __init__(self, server: str, ca: Path | None, *, certificate: Pair | None = None, token: str = ""):
        self.server = server.rstrip("/")
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        files: Json = {"ca_certs": str(ca)} if ca else {}
        if certificate:
            files |= {"cert_file": str(certificate.certificate), "key_file": str(certificate.key)}
        self._pool = urllib3.PoolManager(maxsize=64, retries=False, timeout=urllib3.Timeout(30), **files)

    def close(self) -> None:
        self._pool.clear()

    def request(
        self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None, patch: str = ""
    ) -> Any:
        """Send one request. Return the decoded answer (text if it is not JSON). Raises ApiError, urllib3's errors."""
        headers = {**self._headers, "Content-Type": PATCHES[patch] if patch else "application/json"}
        url = f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
        response = self._pool.request(method, url, body=None if body is None else json.dumps(body), headers=headers)
        text = response.data.decode()
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        answer = json.loads(text) if is_json else text
        if response.status >= 400:
            raise ApiError(response.status, answer)
        return answer

    def send(self, path: str, body: bytes, content_type: str) -> None:
        """Create an object that is encoded already. Raises ApiError."""
        headers = {**self._headers, "Content-Type": content_type, "Accept": "application/json"}
        response = self._pool.request("POST", f"{self.server}{path}", body=body, headers=headers)
        if response.status >= 400:
            raise ApiError(response.status, response.json())

    def get(self, resource: str, name: str, namespace: str = "") -> Json:
        return self.request("GET", resource_path(resource, name, namespace))

    def find(self, resource: str, name: str, namespace: str = "") -> Json | None:
        """The object, or None when there is none."""
        try:
            return self.get(resource, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def items(self, resource: str, namespace: str = "", **query: Any) -> list[Json]:
        """All objects, of one namespace if given; labelSelector and the like as keywords."""
        return self.request("GET", resource_path(resource, "", namespace), query=query)["items"]

    def create(
        self, resource: str, body: Json, namespace: str = "", *, name: str = "", subresource: str = "", **query: Any
    ) -> Json:
        """Create an object; with name and subresource, POST to a subresource such as pods/NAME/binding."""
        return self.request("POST", resource_path(resource, name, namespace, subresource), body, query)

    def patch(
        self,
        resource: str,
        name: str,
        body: Any,
        namespace: str = "",
        *,
        subresource: str = "",
        kind: str = "merge",
        **query: Any,
    ) -> Json:
        """Patch an object or its status; `kind` is one of PATCHES."""
        query = {"fieldManager": FIELD_MANAGER, **query}
        return self.request("PATCH", resource_path(resource, name, namespace, subresource), body, query, kind)

    def delete(self, resource: str, name: str, namespace: str = "", *, grace_seconds: int | None = None) -> Json:
        body = None if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        return self.request("DELETE", resource_path(resource, name, namespace), body)

    def delete_all(self, resource: str, namespace: str = "", *, grace_seconds: int = 0, **query: Any) -> Json:
        """Delete a collection, by default by force: there is no kubelet to end a pod in order."""
        path = resource_path(resource, "", namespace)
        return self.request("DELETE", path, {"gracePeriodSeconds": grace_seconds}, query)

    def apply(self, document: Json, *, dry_run: bool = False) -> Json:
        """Server-side apply of one document of any kind the server knows, unknown fields refused."""
        resource, namespace = self._place(document)
        query = {"force": "true", "fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        return self.patch(resource, document["metadata"]["name"], document, namespace, kind="apply", **query)

    def check_creation(self, document: Json) -> None:
        """Raise ApiError if the server would not create a document of any kind it knows, unknown fields refused.

        An existing object of that name is no obstacle: the server validates first.
        """
        resource, namespace = self._place(document)
        try:
            self.create(resource, document, namespace, dryRun="All", fieldValidation="Strict")
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    def watch(self, resource: str, resource_version: str, namespace: str = "", **query: Any) -> Iterator[Json]:
        """Yield watch events until the server ends the stream after WATCH_SECONDS. Raises ApiError."""
        query = {"watch": "1", "resourceVersion": resource_version, "timeoutSeconds": WATCH_SECONDS, **query}
        for line in self.lines(resource_path(resource, "", namespace), query):
            yield json.loads(line)

    def lines(self, path: str, query: Mapping[str, Any]) -> Iterator[str]:
        """Yield the lines of an answer as they come, until the server ends it. Raises ApiError."""
        url = f"{self.server}{path}?{urlencode(query)}"
        timeout = urllib3.Timeout(connect=5, read=WATCH_SECONDS + 30)
        response = self._pool.request("GET", url, headers=self._headers, preload_content=False, timeout=timeout)
        try:
            if response.status >= 400:
                raise ApiError(response.status, response.data.decode())
            rest = b""
            for chunk in response.stream(2**16):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line.decode() for line in lines if line)
        finally:
            response.close()

    def _place(self, document: Json) -> tuple[str, str]:
        """The resource and the namespace of a document."""
        plural, is_namespaced = self._plural(document["apiVersion"], document["kind"])
        namespace = document["metadata"].get("namespace", "default") if is_namespaced else ""
        return f"{document['apiVersion']}/{plural}", namespace

    def _plural(self, api_version: str, kind: str) -> tuple[str, bool]:
        """The plural of a kind and whether it is namespaced, as the server itself says."""
        if (api_version, kind) not in self._plurals:
            for resource in self.request("GET", group_path(api_version))["resources"]:
                if "/" not in resource["name"]:
                    self._plurals[api_version, resource["kind"]] = (resource["name"], resource["namespaced"])
        return self._plurals[api_version, kind]
