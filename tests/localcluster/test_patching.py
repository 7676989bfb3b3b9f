"""Patches, and what is refused of them: no list is merged of which it is not known how."""

from typing import Any

import pytest

from contract.api import APPLY, STRATEGIC, Api
from localcluster import LocalCluster
from localcluster.operations.patching import merge_patch


def test_merge_patch_of_the_rfc() -> None:
    target = {"title": "Goodbye!", "author": {"givenName": "John", "familyName": "Doe"}, "tags": ["a", "b"]}
    patch = {"title": "Hello!", "author": {"familyName": None}, "tags": ["c"], "phone": {"home": None, "work": "1"}}
    expected = {"title": "Hello!", "author": {"givenName": "John"}, "tags": ["c"], "phone": {"work": "1"}}
    assert merge_patch(target, patch) == expected


@pytest.mark.parametrize(
    ("form", "patch"),
    [
        (STRATEGIC, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
        (STRATEGIC, {"status": {"conditions": [{"$patch": "replace", "type": "Ready"}]}}),
        (STRATEGIC, {"metadata": {"finalizers": ["a"]}}),
        (APPLY, {"apiVersion": "v1", "kind": "Node", "spec": {"unschedulable": True}}),
        (APPLY, {"apiVersion": "v1", "kind": "Node", "metadata": {"finalizers": ["a"]}}),
    ],
)
async def test_what_is_not_served_is_refused(cluster: LocalCluster, api: Api, form: str, patch: Any) -> None:
    cluster.create("nodes", {"metadata": {"name": "a"}})
    query = {"fieldManager": "a", "force": "true"} if form == APPLY else {}
    assert (await api.request("PATCH", "/api/v1/nodes/a", patch, content_type=form, **query)).status == 501


async def test_an_apply_takes_force(cluster: LocalCluster, api: Api) -> None:
    cluster.create("nodes", {"metadata": {"name": "a"}})
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"annotations": {"a": "1"}}}
    answer = await api.request("PATCH", "/api/v1/nodes/a", body, content_type=APPLY, fieldManager="a")
    assert answer.status == 501


async def test_a_condition_has_its_type(cluster: LocalCluster, api: Api) -> None:
    cluster.create("nodes", {"metadata": {"name": "a"}})
    patch = {"status": {"conditions": [{"status": "True"}]}}
    assert (await api.request("PATCH", "/api/v1/nodes/a/status", patch, content_type=STRATEGIC)).status == 400
