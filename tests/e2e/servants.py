"""Operator and webhook that are switched on and off."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from controlplane import Operator, Webhook, WorkingCluster, webhook_setup
from controlplane.api_server import free_port


class Servants:
    """The operator and the webhook on a cluster."""

    def __init__(self, ground: WorkingCluster, folder: Path) -> None:
        self.ground = ground
        self.port = free_port()
        self.operator = Operator(ground.operator_kubeconfig(), folder)
        self.webhook = Webhook(ground.webhook_kubeconfig(), folder, self.port)
        self.has = {"operator": False, "webhook": False}
        self._worker = ThreadPoolExecutor(1, "servants")
        """A process ends with the thread that started it."""

    def switch(self, name: str, *, on: bool) -> None:
        """Start or stop one of them."""
        self._worker.submit(self._switch, name, on=on).result()

    def _switch(self, name: str, *, on: bool) -> None:
        if self.has[name] == on:
            return
        process = self.operator if name == "operator" else self.webhook
        if on:
            process.start()
            if name == "operator":
                process.wait_leading()
            else:
                webhook_setup.trust(self.ground)
                webhook_setup.wait_asked(self.ground.client, self.webhook)
        else:
            process.stop()
        self.has[name] = on


@contextmanager
def served(ground: WorkingCluster, folder: Path) -> Iterator[Servants]:
    """Both run, and pods of namespaces that ask for it are completed."""
    servants = Servants(ground, folder)
    webhook_setup.install(ground.client, servants.port)
    try:
        servants.switch("webhook", on=True)
        servants.switch("operator", on=True)
        yield servants
    finally:
        for process in (servants.operator, servants.webhook):
            process.process.stop()
        webhook_setup.remove(ground.client)
