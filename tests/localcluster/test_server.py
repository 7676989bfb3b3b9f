"""Serving: kubeconfigs, documents, what is refused, and serving again."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from contract.api import MERGE, Api, pod
from localcluster import ApiError, LocalCluster

ROOT = Path(__file__).parents[2]


async def test_a_kubeconfig_names_the_server(cluster: LocalCluster, tmp_path: Path) -> None:
    async with cluster.serve() as server:
        path = server.write_kubeconfig(tmp_path / "config")
        config = yaml.safe_load(path.read_text())
        assert config["current-context"] == "local"
        assert config["clusters"][0]["cluster"]["server"] == server.url == f"http://127.0.0.1:{server.port}"
        assert path.stat().st_mode & 0o077 == 0


async def test_a_cluster_may_be_served_again_at_the_same_port(cluster: LocalCluster) -> None:
    async with cluster.serve() as server:
        port = server.port
        cluster.create("nodes", {"metadata": {"name": "a"}})
    async with cluster.serve(port) as server, aiohttp.ClientSession() as session:
        assert server.port == port
        assert (await Api(session, server.url).get("/api/v1/nodes/a"))["metadata"]["name"] == "a"


async def test_stopping_ends_watches(cluster: LocalCluster) -> None:
    async with aiohttp.ClientSession() as session:
        async with cluster.serve() as server:
            response = await session.get(f"{server.url}/api/v1/pods", params={"watch": "1", "resourceVersion": "100"})
        assert await response.content.read() == b""
        assert cluster.open_watches() == 0


async def test_documents(api: Api) -> None:
    index = await api.get("/openapi/v3")
    assert index["paths"]["apis/policy/v1"]["serverRelativeURL"] == "/openapi/v3/apis/policy/v1"
    document = await api.get("/openapi/v3/api/v1")
    parameters = document["paths"]["/api/v1/nodes"]["patch"]["parameters"]
    assert "fieldValidation" in {one["name"] for one in parameters}
    for path in ("/nothing", "/openapi/v3/apis/nowhere/v1", "/apis/nowhere/v1"):
        assert (await api.request("GET", path)).status == 404, path


@pytest.mark.parametrize("path", sorted((ROOT / "crds").glob("*.yaml")), ids=lambda path: path.name)
def test_the_operator_s_own_definitions_are_served(cluster: LocalCluster, path: Path) -> None:
    for definition in yaml.safe_load_all(path.read_text()):
        cluster.create("customresourcedefinitions", definition)
        plural = definition["spec"]["names"]["plural"]
        assert cluster.registry.by_plural(plural).kind == definition["spec"]["names"]["kind"]
        cluster.delete("customresourcedefinitions", definition["metadata"]["name"])
        with pytest.raises(ApiError):
            cluster.registry.by_plural(plural)


def test_in_process_writes_pass_admission(cluster: LocalCluster) -> None:
    node = cluster.create("nodes", {"metadata": {"name": "a"}})
    assert node["spec"]["taints"][0]["key"] == "node.kubernetes.io/not-ready"
    with pytest.raises(ApiError) as refused:
        cluster.create("nodes", {"metadata": {"name": "b"}, "spec": {"colour": "red"}})
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "/api/v1/namespaces/default", None),
        ("DELETE", "/api/v1/namespaces/default/pods", None),
        ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases/held", None),
        ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases/free", {"dryRun": ["All"]}),
        ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases/free?dryRun=All", None),
        ("PATCH", "/api/v1/namespaces/default/pods/a", {"spec": {"tolerations": []}}),
        ("POST", "/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "web"}}),
        ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/default/leases/free", {"metadata": {"finalizers": ["a/b"]}}),
    ],
)
async def test_what_is_not_served_is_refused(
    cluster: LocalCluster, api: Api, method: str, path: str, body: dict[str, Any] | None
) -> None:
    cluster.create("leases", {"metadata": {"name": "held", "finalizers": ["a/b"]}})
    cluster.create("leases", {"metadata": {"name": "free"}})
    cluster.create("pods", pod("a"))
    path, _, query = path.partition("?")
    answer = await api.request(method, path, body, content_type=MERGE, **dict([query.split("=")] if query else ()))
    assert answer.status == 501
    assert len(cluster.store.list("leases")) == 2
