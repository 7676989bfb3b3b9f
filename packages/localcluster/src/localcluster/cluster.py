"""A whole cluster in the process, built from its parts.

Forbidden here: rules of the API server, which belong to the parts.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from localcluster.controllers.disruption import DisruptionController
from localcluster.controllers.kubelet import Kubelet
from localcluster.faults import Faults
from localcluster.http.app import Application
from localcluster.http.handlers import Handlers
from localcluster.http.streams import Streams
from localcluster.kinds.registry import Registry
from localcluster.kinds.resource import Target
from localcluster.operations.deleting import DeleteOptions, Deleter
from localcluster.operations.evicting import Evictor
from localcluster.operations.writing import Writer
from localcluster.store.store import Store

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class Server:
    """The address of a served cluster."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def write_kubeconfig(self, path: str | Path) -> Path:
        """Write a kubeconfig with this server as its only context, `local`. Only its owner can read a new file."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "local",
            "clusters": [{"name": "local", "cluster": {"server": self.url}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
            "users": [{"name": "local", "user": {}}],
        }
        path = Path(path)
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return path


class LocalCluster:
    """An API server in the process. Without `serve` it is only a store with its rules.

    Writes to `store` skip admission and validation; `create`, `delete` and `evict` pass both, as a client would.
    While it is served, `disruption` runs a controller that computes budgets, `kubelet` one that starts pods and removes
    terminating ones after `termination_seconds` at most. `bookmark_seconds` is the interval of bookmarks in watches.
    """

    def __init__(
        self,
        *,
        comparison_operators: bool = False,
        bookmark_seconds: float = 60.0,
        disruption: bool = False,
        kubelet: bool = False,
        termination_seconds: float | None = None,
    ) -> None:
        self.faults = Faults()
        self.store = Store()
        self.registry = Registry(self.store, comparison_operators=comparison_operators)
        self.disruption = DisruptionController(self.store) if disruption else None
        self.kubelet = (
            Kubelet(self.store, self._remove_pod, termination_seconds=termination_seconds) if kubelet else None
        )
        self._writer = Writer(self.store)
        self._deleter = Deleter(self.store)
        self._evictor = Evictor(self.store, self._deleter, self.registry.by_plural("pods"))
        self._streams = Streams(self.store, self.faults, bookmark_seconds=bookmark_seconds)
        handlers = Handlers(self.store, self.registry)
        self._application = Application(self.registry, handlers, self._streams, self.faults)
        for name in _NAMESPACES:
            self.create("namespaces", {"metadata": {"name": name}})

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[Server]:
        """Serve on 127.0.0.1 within the context, then end open watches. Port 0 selects a free port."""
        runner = web.AppRunner(self._application.build(), shutdown_timeout=1.0, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        controllers = [one for one in (self.disruption, self.kubelet) if one is not None]
        try:
            await site.start()
            for controller in controllers:
                controller.start()
            yield Server(runner.addresses[0][1])
        finally:
            for controller in controllers:
                await controller.stop()
            self.faults.clear()
            self._streams.end()
            await runner.cleanup()

    # Requests of a client, without HTTP

    def create(self, resource: str, body: dict[str, Any]) -> dict[str, Any]:
        """POST an object of the resource with this plural. The namespace is `default` unless the body names one."""
        known = self.registry.by_plural(resource)
        namespace = (body.get("metadata") or {}).get("namespace") or "default"
        body = {"kind": known.kind, "apiVersion": known.api_version, **body}
        target = Target(known, namespace if known.namespaced else "")
        return self._writer.create(target, body, "localcluster")

    def delete(self, resource: str, name: str, namespace: str = "", *, grace_seconds: int | None = None) -> None:
        """DELETE an object."""
        known = self.registry.by_plural(resource)
        self._deleter.delete(known, namespace, name, DeleteOptions(grace_seconds=grace_seconds))

    def evict(self, name: str, namespace: str = "default") -> dict[str, Any]:
        """POST an eviction."""
        return self._evictor.evict(namespace, name, {"metadata": {"name": name}})

    def _remove_pod(self, namespace: str, name: str, uid: str) -> None:
        options = DeleteOptions(uid=uid, grace_seconds=0)
        self._deleter.delete(self.registry.by_plural("pods"), namespace, name, options)

    # Faults of the whole server

    def expire_history(self, resource: str | None = None) -> None:
        """Compact the history of a resource, or of all. New watches and tokens of an older revision get a 410."""
        self.store.compact(resource)

    def drop_watches(self, resource: str | None = None) -> int:
        """End open watches of one resource, or of all. Returns their number."""
        return self._streams.end(resource)

    def open_watches(self, resource: str | None = None) -> int:
        """Return the number of open watches."""
        return sum(resource is None or watcher.resource == resource for watcher in self._streams.open)
