"""Watches: order, selectors, bookmarks, the end of history."""

from contract.api import MERGE, Api


async def _revision(api: Api) -> str:
    return (await api.get(api.pods))["metadata"]["resourceVersion"]


async def a_watch_shows_a_life(api: Api) -> None:
    async with api.watch(api.pods, resourceVersion=await _revision(api)) as watch:
        assert watch.status == 200
        created = await api.new_pod("pod-a")
        assert await watch.expect("ADDED", "pod-a") == created
        patched = await api.ok("PATCH", f"{api.pods}/pod-a", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
        seen = await watch.expect("MODIFIED", "pod-a")
        assert seen == patched
        assert (seen["kind"], seen["apiVersion"]) == ("Pod", "v1")
        deleted = await api.ok("DELETE", f"{api.pods}/pod-a")
        marked = await watch.expect("MODIFIED", "pod-a")
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
        gone = await watch.expect("DELETED", "pod-a")
        assert gone == deleted
        assert int(gone["metadata"]["resourceVersion"]) > int(marked["metadata"]["resourceVersion"])
        assert gone["metadata"]["labels"] == {"a": "b"}


async def a_watch_from_the_past_replays(api: Api) -> None:
    start = await _revision(api)
    await api.new_pod("pod-a")
    await api.ok("DELETE", f"{api.pods}/pod-a")
    async with api.watch(api.pods, resourceVersion=start) as watch:
        await watch.expect("ADDED", "pod-a")
        await watch.expect("MODIFIED", "pod-a")
        await watch.expect("DELETED", "pod-a")


async def leaving_a_field_selection_is_a_deletion(api: Api) -> None:
    query = {"resourceVersion": await _revision(api), "fieldSelector": "status.phase=Pending"}
    async with api.watch(api.pods, **query) as watch:
        await api.new_pod("pod-a")
        await watch.expect("ADDED", "pod-a")
        await api.run("pod-a")
        left = await watch.expect("DELETED", "pod-a")
        now = await api.get(f"{api.pods}/pod-a")
        assert left["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]
        assert left["status"]["phase"] == "Pending"


async def entering_a_label_selection_is_an_addition(api: Api) -> None:
    await api.new_pod("pod-a")
    async with api.watch(api.pods, resourceVersion=await _revision(api), labelSelector="app=x") as watch:
        await api.ok("PATCH", f"{api.pods}/pod-a", {"metadata": {"labels": {"app": "x"}}}, content_type=MERGE)
        await watch.expect("ADDED", "pod-a")
        await api.ok("PATCH", f"{api.pods}/pod-a", {"metadata": {"labels": {"app": "y"}}}, content_type=MERGE)
        left = await watch.expect("DELETED", "pod-a")
        assert left["metadata"]["labels"] == {"app": "x"}


async def another_namespace_is_not_seen(api: Api) -> None:
    async with api.watch(api.pods, resourceVersion=await _revision(api)) as watch:
        lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        name = (await api.create(lease, {"metadata": {"generateName": "other-"}}))["metadata"]["name"]
        await api.ok("DELETE", f"{lease}/{name}")
        await api.new_pod("pod-a")
        await watch.expect("ADDED", "pod-a")


async def bookmarks_come_before_the_end(api: Api) -> None:
    await api.new_pod("pod-a")
    query = {"resourceVersion": await _revision(api), "allowWatchBookmarks": "true", "timeoutSeconds": 3}
    async with api.watch(api.pods, **query) as watch:
        pod = await api.new_pod("pod-b")
        await watch.expect("ADDED", "pod-b")
        event = await watch.next()
        assert event is not None
        assert event["type"] == "BOOKMARK"
        assert event["object"]["kind"] == "Pod"
        assert int(event["object"]["metadata"]["resourceVersion"]) >= int(pod["metadata"]["resourceVersion"])
        assert event["object"]["spec"] == {"containers": None}
        while event is not None:
            assert event["type"] == "BOOKMARK"
            event = await watch.next()


async def nonsense_as_revision_is_refused(api: Api) -> None:
    async with api.watch(api.pods, resourceVersion="abc") as watch:
        assert watch.status == 500


async def an_unknown_field_selector_is_refused(api: Api) -> None:
    async with api.watch(api.pods, fieldSelector="spec.color=red") as watch:
        assert watch.status == 400


async def one_object_can_be_watched(api: Api) -> None:
    query = {"resourceVersion": await _revision(api), "fieldSelector": "metadata.name=pod-b"}
    async with api.watch(api.pods, **query) as watch:
        await api.new_pod("pod-a")
        await api.new_pod("pod-b")
        await watch.expect("ADDED", "pod-b")
