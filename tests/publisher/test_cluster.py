"""Nodes as the official client reads and writes them: no content of one node can hide the others."""

import json
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from kubernetes.aio import client

from publisher.answering import Answers
from taintwarden.kube.errors import ConfigError
from taintwarden.serving.key_pairs import make_key_pair
from taintwarden_publisher.cluster import Cluster, ClusterError, WriteOutcome, configuration

DEEP = '{"f:a":' * 20_000 + "{}" + "}" * 20_000
NESTED = '{"metadata":{"name":"evil","managedFields":[{"fieldsV1":' + DEEP + "}]}}"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with one authority, since those of the machine take longer to read than a test."""
    path = tmp_path_factory.mktemp("authority") / "ca.crt"
    path.write_bytes(make_key_pair(["localhost"], time.time()).certificate)
    return str(path)


@pytest.fixture
async def cluster(prometheus: Answers, authority: str) -> AsyncIterator[Cluster]:
    """A cluster whose API server gives the answers of a test."""
    configuration = client.Configuration(host=prometheus.url)
    configuration.ssl_ca_cert = authority
    async with client.ApiClient(configuration) as api:
        yield Cluster(api, "default")


async def test_a_node_with_deeply_nested_managed_fields_is_read_without_them(cluster, prometheus):
    prometheus.says('{"items":[{"metadata":{"name":"a1"}},' + NESTED + '],"metadata":{}}')
    assert [one.name for one in await cluster.nodes()] == ["a1", "evil"]


@pytest.mark.parametrize("text", ["<html>", '{"items":[],"metadata":' + DEEP + "}", '{"items":[{}]}'])
async def test_a_list_that_cannot_be_read_is_an_error(cluster, prometheus, text):
    prometheus.says(text)
    with pytest.raises(ClusterError, match="the nodes cannot be listed"):
        await cluster.nodes()


async def test_all_pages_are_read(cluster, prometheus):
    async def pages(request: web.Request) -> web.Response:
        is_first = "continue" not in request.query
        name, token = ("a1", "more") if is_first else ("a2", "")
        return web.json_response({"items": [{"metadata": {"name": name}}], "metadata": {"continue": token}})

    prometheus.handler = pages
    assert [one.name for one in await cluster.nodes()] == ["a1", "a2"]


async def test_a_write_to_a_node_with_any_content_is_done(cluster, prometheus):
    prometheus.says('{"kind":"Node",' + NESTED[1:])
    assert await cluster.patch_node("evil", {}) == (WriteOutcome.DONE, "")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (403, WriteOutcome.REFUSED),
        (404, WriteOutcome.GONE),
        (409, WriteOutcome.CONFLICT),
        (422, WriteOutcome.REFUSED),
        (500, WriteOutcome.FAILED),
    ],
)
async def test_each_answer_to_a_write_has_its_outcome(cluster, prometheus, status, outcome):
    prometheus.says(json.dumps({"kind": "Status", "message": "no"}), status)
    assert await cluster.patch_node("a1", {}) == (outcome, f"{status} no")


@pytest.mark.parametrize("status", [200, 403, 404, 409, 422])
async def test_an_answer_of_a_load_balancer_fails_the_write(cluster, prometheus, status):
    prometheus.says("<html>back soon", status)
    outcome, words = await cluster.patch_node("a1", {})
    assert outcome is WriteOutcome.FAILED
    assert words == f"{status}, which is not an answer of an API server"


async def test_an_error_that_is_nested_deeply_has_no_message(cluster, prometheus):
    prometheus.says('{"kind":"Status","message":' + DEEP + "}", 403)
    outcome, words = await cluster.patch_node("a1", {})
    assert outcome is WriteOutcome.FAILED
    assert words.startswith("403")


async def test_a_server_that_does_not_answer_fails_a_write(prometheus):
    async with client.ApiClient(client.Configuration(host="http://127.0.0.1:1")) as api:
        outcome, words = await Cluster(api, "default").patch_node("a1", {})
    assert outcome is WriteOutcome.FAILED
    assert words


def write_kubeconfig(path, **user):
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}}
    context = {"name": "one", "context": {"cluster": "c", "user": "u"}}
    content = {"apiVersion": "v1", "kind": "Config", "current-context": "one"}
    content |= {"users": [{"name": "u", "user": {"token": "t", **user}}], "clusters": [cluster], "contexts": [context]}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


async def test_a_kubeconfig_that_acts_as_another_user_is_refused(tmp_path):
    """The official client ignores the impersonation, and would act as the owner of the file."""
    path = tmp_path / "config"
    write_kubeconfig(path, **{"as": "jane"})
    with pytest.raises(ConfigError, match="remove the field as"):
        await configuration(str(path), None)


async def test_a_kubeconfig_comes_before_the_service_account_as_for_the_operator(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "")
    write_kubeconfig(tmp_path / ".kube" / "config")
    (tmp_path / "token").touch()
    assert (await configuration(None, None, tmp_path)).host == "https://127.0.0.1:1"
