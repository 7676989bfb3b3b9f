"""Controllers of pods: how many pods each of them wants. Nothing here makes pods of them."""

from contract.api import MERGE, Api, Json, unique

LABELS = {"app": "web"}
TEMPLATE: Json = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "pause"}]}}
SELECTED: Json = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
ONCE: Json = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
REPLICATED: dict[str, Json] = {
    "/apis/apps/v1 replicasets": SELECTED,
    "/apis/apps/v1 statefulsets": {**SELECTED, "serviceName": "web"},
    "/api/v1 replicationcontrollers": {"selector": LABELS, "template": TEMPLATE},
}
EVERYWHERE = "/apis/apps/v1 daemonsets"
JOBS = "/apis/batch/v1 jobs"


def _path(api: Api, kind: str) -> str:
    prefix, plural = kind.split()
    return f"{prefix}/namespaces/{api.namespace}/{plural}"


async def _create(api: Api, kind: str, spec: Json) -> tuple[str, Json]:
    created = await api.create(_path(api, kind), {"metadata": {"name": unique("web")}, "spec": spec})
    return f"{_path(api, kind)}/{created['metadata']['name']}", created


async def one_replica_is_wanted_unless_told_otherwise(api: Api) -> None:
    for kind, spec in REPLICATED.items():
        _, created = await _create(api, kind, spec)
        assert (created["spec"]["replicas"], created["status"]["replicas"]) == (1, 0), kind


async def a_workload_is_scaled_by_its_spec(api: Api) -> None:
    for kind, spec in REPLICATED.items():
        path, created = await _create(api, kind, {**spec, "replicas": 0})
        assert created["spec"]["replicas"] == 0, kind
        scaled = await api.ok("PATCH", path, {"spec": {"replicas": 3}}, content_type=MERGE)
        assert scaled["spec"]["replicas"] == 3, kind
        assert scaled["metadata"]["generation"] == 2, kind


async def a_daemon_set_wants_what_its_status_says(api: Api) -> None:
    path, created = await _create(api, EVERYWHERE, SELECTED)
    assert created["status"]["desiredNumberScheduled"] == 0
    counts = {**created["status"], "desiredNumberScheduled": 5}
    await api.ok("PATCH", f"{path}/status", {"status": counts, "spec": {"minReadySeconds": 9}}, content_type=MERGE)
    found = await api.get(path)
    assert found["status"]["desiredNumberScheduled"] == 5
    assert found["spec"].get("minReadySeconds", 0) == 0


async def a_job_runs_one_pod_once(api: Api) -> None:
    _, created = await _create(api, JOBS, ONCE)
    assert (created["spec"]["parallelism"], created["spec"]["completions"]) == (1, 1)


async def a_job_with_parallelism_alone_has_no_completions(api: Api) -> None:
    _, created = await _create(api, JOBS, {**ONCE, "parallelism": 3})
    assert created["spec"]["parallelism"] == 3
    assert "completions" not in created["spec"]


async def a_job_with_completions_alone_runs_one_pod_at_a_time(api: Api) -> None:
    _, created = await _create(api, JOBS, {**ONCE, "completions": 3})
    assert (created["spec"]["parallelism"], created["spec"]["completions"]) == (1, 3)


async def all_of_them_are_listed_and_watched(api: Api) -> None:
    specs = {**REPLICATED, EVERYWHERE: SELECTED, JOBS: ONCE}
    for kind, spec in specs.items():
        path = _path(api, kind)
        version = (await api.get(path))["metadata"]["resourceVersion"]
        _, created = await _create(api, kind, spec)
        name, uid = created["metadata"]["name"], created["metadata"]["uid"]
        async with api.watch(path, resourceVersion=version) as watch:
            assert (await watch.expect("ADDED", name))["metadata"]["uid"] == uid
        assert [one["metadata"]["uid"] for one in (await api.get(path))["items"]] == [uid], kind


async def a_cron_job_has_its_template(api: Api) -> None:
    spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": ONCE}}
    _, created = await _create(api, "/apis/batch/v1 cronjobs", spec)
    assert (created["spec"]["suspend"], created["spec"]["concurrencyPolicy"]) == (False, "Allow")
    assert created["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] == "Never"


async def a_volume_has_its_node_affinity(api: Api) -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "none.example.com", "volumeHandle": "v"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    name = unique("volume")
    created = await api.create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})
    assert created["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] == terms
    assert (await api.get(f"/api/v1/persistentvolumes/{name}"))["spec"]["volumeMode"] == "Filesystem"
    await api.ok("DELETE", f"/api/v1/persistentvolumes/{name}")
