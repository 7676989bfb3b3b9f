"""Lists: selectors, pages, revisions."""

import pytest

from contract.api import MERGE, Api, unique


async def _three(api: Api) -> list[str]:
    return [(await api.new_pod(f"pod-{letter}", labels={"app": letter}))["metadata"]["name"] for letter in "abc"]


def _names(listed: dict) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def a_list_is_ordered_by_name(api: Api) -> None:
    names = await _three(api)
    listed = await api.get(api.pods)
    assert _names(listed) == names
    assert int(listed["metadata"]["resourceVersion"]) >= int(listed["items"][-1]["metadata"]["resourceVersion"])


async def labels_select(api: Api) -> None:
    await _three(api)
    for selector, expected in (
        ("app=a", ["pod-a"]),
        ("app==a", ["pod-a"]),
        ("app!=a", ["pod-b", "pod-c"]),
        ("app in (a,b)", ["pod-a", "pod-b"]),
        ("app notin (a, b)", ["pod-c"]),
        ("app", ["pod-a", "pod-b", "pod-c"]),
        ("!app", []),
        ("app=a,app=b", []),
        ("other!=a", ["pod-a", "pod-b", "pod-c"]),
    ):
        assert _names(await api.get(api.pods, labelSelector=selector)) == expected, selector


async def a_bad_label_selector_is_a_400(api: Api) -> None:
    assert (await api.request("GET", api.pods, labelSelector="a=b=c")).status == 400


async def fields_select(api: Api) -> None:
    await _three(api)
    await api.new_pod("pod-d", node="somewhere")
    for selector, expected in (
        ("metadata.name=pod-a", ["pod-a"]),
        ("metadata.name!=pod-a", ["pod-b", "pod-c", "pod-d"]),
        ("spec.nodeName=somewhere", ["pod-d"]),
        ("spec.nodeName=", ["pod-a", "pod-b", "pod-c"]),
        ("spec.nodeName!=", ["pod-d"]),
        ("status.phase=Pending,spec.nodeName!=somewhere", ["pod-a", "pod-b", "pod-c"]),
        (f"metadata.namespace={api.namespace}", ["pod-a", "pod-b", "pod-c", "pod-d"]),
    ):
        assert _names(await api.get(api.pods, fieldSelector=selector)) == expected, selector


async def an_unknown_field_selector_is_a_400(api: Api) -> None:
    answer = await api.request("GET", api.pods, fieldSelector="spec.color=red")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert "field label not supported: spec.color" in answer.message


async def pages_show_one_snapshot(api: Api) -> None:
    await _three(api)
    first = await api.get(api.pods, limit=1)
    await api.new_pod("pod-aa")
    await api.ok("DELETE", f"{api.pods}/pod-c", gracePeriodSeconds=0)
    second = await api.get(api.pods, limit=1, continue_=first["metadata"]["continue"])
    third = await api.get(api.pods, limit=5, continue_=second["metadata"]["continue"])
    assert [_names(one) for one in (first, second, third)] == [["pod-a"], ["pod-b"], ["pod-c"]]
    revisions = {one["metadata"]["resourceVersion"] for one in (first, second, third)}
    assert len(revisions) == 1
    assert "continue" not in third["metadata"]


async def selected_pages_are_full(api: Api) -> None:
    await _three(api)
    first = await api.get(api.pods, limit=1, labelSelector="app!=a")
    assert _names(first) == ["pod-b"]
    second = await api.get(api.pods, limit=1, labelSelector="app!=a", continue_=first["metadata"]["continue"])
    assert _names(second) == ["pod-c"]
    assert "continue" not in second["metadata"]


async def an_expired_page_is_a_410(api: Api) -> None:
    await _three(api)
    first = await api.get(api.pods, limit=1)
    if api.compact is None:
        pytest.skip("nobody can tell this server to forget")
    expired = None

    async def refused() -> bool:
        nonlocal expired
        await api.ok("PATCH", f"{api.pods}/pod-c", {"metadata": {"labels": {"n": unique("n")}}}, content_type=MERGE)
        await api.compact()
        expired = await api.request("GET", api.pods, limit=1, continue_=first["metadata"]["continue"])
        return expired.status == 410

    await api.eventually(refused, "410 for an old continue token", timeout_seconds=45)  # caches look every 15 s
    assert expired.reason == "Expired"
    assert expired.message.startswith("The provided continue parameter is too old to display a consistent list result.")


async def a_broken_page_token_is_a_400(api: Api) -> None:
    assert (await api.request("GET", api.pods, limit=1, continue_="nonsense")).status == 400


async def revision_zero_is_not_paged(api: Api) -> None:
    await _three(api)

    async def all_at_once() -> bool:
        listed = await api.get(api.pods, limit=1, resourceVersion="0")
        return _names(listed) == ["pod-a", "pod-b", "pod-c"]

    await api.eventually(all_at_once, "a full list at revision 0")


async def a_list_over_all_namespaces_finds_them(api: Api) -> None:
    created = await api.new_pod()
    listed = await api.get("/api/v1/pods", fieldSelector=f"metadata.namespace={api.namespace}")
    assert _names(listed) == [created["metadata"]["name"]]
