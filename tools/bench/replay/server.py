"""The process that serves a replayed cluster, with TLS, as kube-apiserver does.

    python -m bench.replay.server RECORDING CERTIFICATES PORT NODES PODS

RECORDING is the folder of the recording, CERTIFICATES that of `serving.crt` and `serving.key`. What is not replayed
(discovery, policies, Leases, Events) is answered by a local cluster. It writes "ready" when it listens.
"""

import asyncio
import gc
import json
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from bench import population
from bench.population import Shape
from bench.replay import copies
from bench.replay.collection import Collection, Versions
from bench.replay.copies import Pods
from bench.replay.recording import Recording, recording
from bench.replay.scenario import Scenario
from localcluster import LocalCluster
from taintwarden.kube.wire.resources import (
    BUDGETS,
    DAEMON_SETS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)

COMMANDS = "/replay/"
CRDS = Path(__file__).resolve().parents[3] / "crds"
OPERATOR_NAMESPACE = "taintwarden-system"
PROTOBUF = "application/vnd.kubernetes.protobuf"
Copy = Callable[[Recording, Shape], Iterable[Any]]
REPLAYED: tuple[tuple[Resource[Any], Copy], ...] = (
    (NODES, copies.nodes),
    (PODS, copies.pods),
    (NAMESPACES, copies.namespaces),
    (REPLICA_SETS, copies.replica_sets),
    *((resource, lambda *_: ()) for resource in (STATEFUL_SETS, DAEMON_SETS, REPLICATION_CONTROLLERS, JOBS, BUDGETS)),
)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Replay:
    """Answers for the replayed resources, and takes the commands of the bench."""

    def __init__(self, recorded: Recording, shape: Shape):
        versions = Versions()
        self._collections = {
            resource.path: Collection(resource, versions, copy(recorded, shape)) for resource, copy in REPLAYED
        }
        nodes, pods = self._collections[NODES.path], self._collections[PODS.path]
        self._scenario = Scenario(shape, nodes, pods, Pods(recorded))

    async def answer(self, request: web.Request, otherwise: Handler) -> web.StreamResponse:
        """The answer, or that of another handler to what is not replayed."""
        collection = self._collections.get(request.path)
        try:
            if collection is not None and request.method == "GET":
                watches = request.query.get("watch") == "true"
                return await _watch(request, collection) if watches else _list(request, collection)
            match request.path.strip("/").split("/"):
                case ["replay", command]:
                    arguments = await request.json()
                    return web.json_response(await getattr(self._scenario, command)(**arguments))
                case ["api", "v1", "nodes", name] if request.method == "PATCH":
                    patch = json.loads(await request.read())
                    return web.json_response(await self._scenario.patch_node(name, patch))
                case ["api", "v1", "nodes", name]:
                    return web.json_response(self._scenario.node(name))
                case ["api", "v1", "namespaces", namespace, "pods", name, "eviction"]:
                    self._scenario.evict(f"{namespace}/{name}")
                    return _status(201, "Success")
                case _:
                    return await otherwise(request)
        except KeyError:
            return _status(404, "Failure")


def _list(request: web.Request, collection: Collection) -> web.Response:
    body = collection.page(int(request.query.get("limit", "0")), request.query.get("continue", ""))
    return web.Response(body=body, content_type=PROTOBUF)


async def _watch(request: web.Request, collection: Collection) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": f"{PROTOBUF};stream=watch"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    query = request.query
    async for frames in collection.watch(int(query["resourceVersion"]), float(query["timeoutSeconds"])):
        await response.write(frames)
    return response


def _status(code: int, status: str) -> web.Response:
    return web.json_response({"kind": "Status", "apiVersion": "v1", "status": status, "code": code}, status=code)


def surroundings() -> LocalCluster:
    """The cluster that answers for everything else."""
    cluster = LocalCluster()
    for path in sorted(CRDS.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            cluster.create("customresourcedefinitions", document)
    for name in (OPERATOR_NAMESPACE, *map(population.namespace_name, range(population.NAMESPACES))):
        cluster.create("namespaces", {"metadata": {"name": name}})
    return cluster


async def serve(recorded: Path, certificates: Path, port: int, shape: Shape) -> None:
    replay = Replay(recording(recorded), shape)
    app = surroundings().application()

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await replay.answer(request, handler)

    app.middlewares.append(answer)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificates / "serving.crt", certificates / "serving.key")
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    recorded, certificates, port, nodes, pods = sys.argv[1:]
    asyncio.run(serve(Path(recorded), Path(certificates), int(port), Shape(int(nodes), int(pods))))
