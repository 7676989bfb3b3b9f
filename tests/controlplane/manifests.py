"""The shipped YAML, document by document, in an order that a server can take."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from controlplane.client import Json

KUSTOMIZE = "kustomize.config.k8s.io/"
ACCESS_KINDS = (
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)


def documents(folder: Path) -> Iterator[tuple[Path, Json]]:
    """Every YAML document below the folder with its file, except kustomize's own files."""
    for path in sorted(folder.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document and not document.get("apiVersion", KUSTOMIZE).startswith(KUSTOMIZE):
                yield path, document


def access_documents(folder: Path) -> list[Json]:
    """Documents that grant operator and webhook their rights, and bound them.

    No Deployment, which nothing would run, and no webhook configuration, for which there is no server.
    """
    found = [document for _, document in documents(folder) if document["kind"] in ACCESS_KINDS]
    return sorted(found, key=lambda document: ACCESS_KINDS.index(document["kind"]))
