"""A real API server takes every object that README and docs/ show; test_control_plane.py has those of deploy/."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane import ApiError, Cluster
from docs.pages import objects

Json = dict[str, Any]
SHOWN = objects()


@pytest.fixture
def apply(cluster: Cluster, namespace: str) -> Callable[[Json], Json]:
    """Apply as a dry run; what is namespaced goes into a namespace that exists."""

    def applied(document: Json) -> Json:
        metadata = document["metadata"]
        here = {"namespace": namespace} if "namespace" in metadata else {}
        return cluster.apply({**document, "metadata": {**metadata, **here}}, dry_run=True)

    return applied


def test_the_pages_have_objects() -> None:
    assert {document["kind"] for _, document in SHOWN} >= {"TaintEvictionPolicy", "Deployment", "Pod"}


@pytest.mark.parametrize(("where", "document"), SHOWN, ids=lambda value: value if isinstance(value, str) else "")
def test_the_server_takes_it(apply: Callable[[Json], Json], where: str, document: Json) -> None:
    assert apply(document)["metadata"]["name"] == document["metadata"]["name"]


def test_an_invalid_object_is_refused(apply: Callable[[Json], Json]) -> None:
    wrong = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy", "metadata": {"name": "wrong"}}
    with pytest.raises(ApiError):
        apply(wrong | {"spec": {"taints": [{"key": "sla", "effect": "NoExecute"}]}})
