"""The composition root of ``taintwarden publisher``."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import kopf
import structlog
from kubernetes.aio import client

from taintwarden.controller.clock import system_clock
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.http.client import Client
from taintwarden.serving.metrics_server import MetricsServer
from taintwarden.serving.probes import ProbeServer
from taintwarden.telemetry.metrics import Metrics, Process
from taintwarden_publisher import handlers
from taintwarden_publisher.cluster import Cluster, configuration
from taintwarden_publisher.prometheus import open_session
from taintwarden_publisher.rounds import Tools
from taintwarden_publisher.settings import PublisherSettings

IDENTITY: Any = "taintwarden-publisher"
"""Identity for kopf's peering, which is not used. Otherwise kopf would look up the user's name, which a pod lacks."""
log = structlog.get_logger()


async def run(settings: PublisherSettings) -> BaseException | None:
    """Publish until kopf receives a signal to stop.

    Raises:
        ConfigError: the kubeconfig or a port cannot be used.

    """
    load = partial(configuration, settings.kubeconfig, settings.context)
    found = await load()
    metrics, ready = Metrics(Process.PUBLISHER), asyncio.Event()
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(client.ApiClient(found))
        session = await stack.enter_async_context(open_session())
        probes = ProbeServer(
            settings,
            unready=lambda: "" if ready.is_set() else "not connected to the API server yet",
            dead=lambda: "",
            metrics=metrics.exposition,
        )
        await probes.start()
        stack.push_async_callback(probes.stop)
        if settings.metrics_port:
            connection = Connection.load(settings.kubeconfig, settings.context)
            reviews = await stack.enter_async_context(Client(connection, max_connections=1))
            server = MetricsServer(settings, reviews, metrics.exposition, system_clock)
            await server.start()
            stack.push_async_callback(server.stop)
        registry = kopf.OperatorRegistry()
        handlers.register(registry, Tools(Cluster(api, settings.namespace), session, metrics), load)
        log.info("process-started", process=Process.PUBLISHER.value, server=found.host)
        await kopf.operator(registry=registry, clusterwide=True, standalone=True, identity=IDENTITY, ready_flag=ready)
    log.info("process-stopped", process=Process.PUBLISHER.value)
    return None
