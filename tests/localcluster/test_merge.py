"""Patches and field sets beyond what the contract asks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcluster import ApiError
from localcluster.merge.fieldset import from_fields, leaves, spelt, to_fields
from localcluster.merge.patch import merge_patch
from localcluster.merge.strategic import strategic_merge
from localcluster.merge.topology import BuiltIn

_PATHS = st.sets(
    st.lists(st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"']), min_size=1, max_size=4).map(tuple)
)


@given(_PATHS)
def test_field_sets_survive_their_spelling(paths: set[tuple[str, ...]]) -> None:
    assert from_fields(to_fields(paths)) == paths


def test_fields_of_an_object() -> None:
    value = {
        "metadata": {"name": "n", "finalizers": ["f"], "annotations": {"a": "b"}},
        "spec": {"taints": [{"key": "a"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    paths = {spelt(path) for path in leaves(value, BuiltIn())}
    assert paths == {
        '.metadata.finalizers[="f"]',
        ".metadata.annotations.a",
        ".spec.taints",
        '.status.conditions[type="Ready"]',
        '.status.conditions[type="Ready"].type',
        '.status.conditions[type="Ready"].status',
    }


def test_merge_patch_of_the_rfc() -> None:
    target = {"title": "Goodbye!", "author": {"givenName": "John", "familyName": "Doe"}, "tags": ["a", "b"]}
    patch = {"title": "Hello!", "author": {"familyName": None}, "tags": ["c"], "phone": {"home": None, "work": "1"}}
    expected = {"title": "Hello!", "author": {"givenName": "John"}, "tags": ["c"], "phone": {"work": "1"}}
    assert merge_patch(target, patch) == expected


def _containers(*names: str) -> list[dict]:
    return [{"name": name, "image": name} for name in names]


def test_strategic_order_is_the_patch_s_where_it_says_so() -> None:
    target = {"containers": _containers("a", "b", "c")}
    patch = {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "c", "image": "z"}]}
    merged = strategic_merge(target, patch)["containers"]
    assert [one["name"] for one in merged] == ["b", "c", "a"]
    assert merged[1]["image"] == "z"


def test_strategic_directives() -> None:
    target = {"metadata": {"finalizers": ["a", "b"], "labels": {"x": "y"}}, "containers": _containers("a", "b")}
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "labels": {"$patch": "replace", "z": "1"}},
        "containers": [{"$patch": "delete", "name": "a"}],
    }
    merged = strategic_merge(target, patch)
    assert merged["metadata"] == {"finalizers": ["b"], "labels": {"z": "1"}}
    assert [one["name"] for one in merged["containers"]] == ["b"]
    replaced = strategic_merge(target, {"containers": [{"$patch": "replace"}, {"name": "z"}]})
    assert replaced["containers"] == [{"name": "z"}]
    retained = strategic_merge({"strategy": {"a": 1, "b": 2}}, {"strategy": {"$retainKeys": ["a"], "a": 3}})
    assert retained["strategy"] == {"a": 3}
    with pytest.raises(ApiError):
        strategic_merge(target, {"containers": [{"image": "z"}]})
