"""100 pods created a second: what the webhooks add to that, while they answer and while nobody does."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

from bench.bulk import Bulk
from bench.cluster import ControlPlane, Webhook, wait_until
from bench.usage import CpuMeter, settle
from controlplane import webhook_setup  # after bench.cluster, which says where it is

PER_SECOND = 100
SECONDS, QUICK_SECONDS = 10, 3
CONNECTIONS = 256
NAMESPACE = "creations"
HEARD_SECONDS = 30
DURATION = "apiserver_admission_webhook_admission_duration_seconds_"
ANNOTATION = json.dumps([{"key": "sla", "operator": "Gt", "value": "950", "effect": "NoExecute"}])
PLAIN: dict[str, str] = {}
EXTENDED = {"taintwarden.io/tolerations": ANNOTATION}


@dataclass(frozen=True)
class Subject:
    """Which pods, in what namespace, and whether webhooks are installed and answered."""

    name: str
    annotations: dict[str, str]
    injects: bool = False
    has_webhooks: bool = True
    is_answered: bool = True


WITHOUT = "no webhooks"
SUBJECTS = (
    Subject(WITHOUT, EXTENDED, has_webhooks=False),
    Subject("installed, pods that are none of their business", PLAIN),
    Subject("checked", EXTENDED),
    Subject("checked and completed", EXTENDED, injects=True),
    Subject("checked and completed, operator gone", EXTENDED, injects=True, is_answered=False),
)


@dataclass(frozen=True)
class Creations:
    """One subject's pods.

    Milliseconds are from the moment when a pod should be asked for to the answer: a server that lags is not spared.
    """

    subject: str
    pods: int
    refused: int
    answered: float
    median_ms: float
    p90_ms: float
    p99_ms: float
    slowest_ms: float
    webhook_ms: float | None
    """What the API server waited for one answer, on average."""
    operator_cpu_seconds: float
    api_server_cpu_seconds: float
    others_cpu_seconds: float


@dataclass
class Ground:
    """A control plane, and one webhook that is put up and taken down."""

    control_plane: ControlPlane
    webhook: Webhook
    port: int

    @classmethod
    @contextmanager
    def open(cls) -> Iterator["Ground"]:
        port = webhook_setup.free_port()
        with ControlPlane() as control_plane:
            control_plane.apply_crds()
            control_plane.apply_manifests()
            control_plane.client.create_namespace(NAMESPACE)
            webhook_setup.install(control_plane.client, port)
            folder: Path = control_plane.folder
            with Webhook(control_plane.webhook_kubeconfig(), folder, port) as webhook:
                yield cls(control_plane, webhook, port)

    def prepare(self, subject: Subject) -> None:
        """As the subject wants it, and seen to be so."""
        client = self.control_plane.client
        labels = {"taintwarden.io/inject": "true" if subject.injects else None}
        client.patch("namespaces", NAMESPACE, {"metadata": {"labels": labels}})
        if not self.webhook.process.is_running:
            self.webhook.start()
        if not subject.has_webhooks:
            webhook_setup.remove_configurations(client)
            return
        webhook_setup.install(client, self.port)
        webhook_setup.wait_trusted(client)
        webhook_setup.wait_asked(client, self.webhook)
        if subject.injects:
            wait_until(self._completes, HEARD_SECONDS, "pods to be completed")
        if not subject.is_answered:
            self.webhook.kill9()

    def _completes(self) -> bool:
        body = pod("probe", EXTENDED)
        stored = self.control_plane.client.create("pods", body, NAMESPACE, dryRun="All")
        return any(one.get("key") == "sla" for one in stored["spec"]["tolerations"])

    def waited(self) -> tuple[float, float]:
        """How many seconds the API server has waited for our webhooks so far, and for how many answers."""
        totals = {"sum": 0.0, "count": 0.0}
        for line in self.control_plane.client.request("GET", "/metrics").splitlines():
            if line.startswith(DURATION) and "taintwarden.io" in line:
                kind = line.removeprefix(DURATION).partition("{")[0]
                if kind in totals:
                    totals[kind] += float(line.rpartition(" ")[2])
        return totals["sum"], totals["count"]

    def pids(self) -> dict[str, int]:
        found = {"api": self.control_plane.api_server.pid or 0}
        return found | ({"operator": self.webhook.process.pid or 0} if self.webhook.process.is_running else {})


def measure(ground: Ground, subject: Subject, seconds: int) -> Creations:
    """Create pods at the rate for so long, and take them away again."""
    ground.prepare(subject)
    settle(ground.pids())
    meter, waited = CpuMeter(ground.pids()), ground.waited()
    answered = webhook_setup.reviews(ground.webhook) if subject.is_answered else 0
    milliseconds, refused = asyncio.run(create_pods(ground, subject, seconds))
    cpu = meter.read()
    seconds_waited, calls = (after - before for after, before in zip(ground.waited(), waited, strict=True))
    if subject.is_answered:
        answered = webhook_setup.reviews(ground.webhook) - answered
    ground.control_plane.client.delete_all("pods", NAMESPACE)
    tenths, hundredths = quantiles(milliseconds, n=10), quantiles(milliseconds, n=100)
    return Creations(
        subject=subject.name,
        pods=len(milliseconds),
        refused=refused,
        answered=answered,
        median_ms=tenths[4],
        p90_ms=tenths[8],
        p99_ms=hundredths[98],
        slowest_ms=max(milliseconds),
        webhook_ms=seconds_waited / calls * 1000 if calls else None,
        operator_cpu_seconds=cpu.get("operator", 0.0),
        api_server_cpu_seconds=cpu["api"],
        others_cpu_seconds=cpu["others"],
    )


async def create_pods(ground: Ground, subject: Subject, seconds: int) -> tuple[list[float], int]:
    """Milliseconds of each, and how many were refused. The pace is kept whether or not the server does."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    async with Bulk.open(ground.control_plane.admin_kubeconfig, CONNECTIONS) as bulk:

        async def create(number: int, due_at: float) -> tuple[float, bool]:
            status = await bulk.send("POST", path, pod(f"web-{number}", subject.annotations))
            return (time.perf_counter() - due_at) * 1000, status >= 300

        began = time.perf_counter()
        tasks = []
        for number in range(PER_SECOND * seconds):
            due_at = began + number / PER_SECOND
            await asyncio.sleep(max(0.0, due_at - time.perf_counter()))
            tasks.append(asyncio.create_task(create(number, due_at)))
        answers = await asyncio.gather(*tasks)
    return [taken for taken, _ in answers], sum(is_refused for _, is_refused in answers)


def pod(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    spec = {
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}],
        "automountServiceAccountToken": False,
    }
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


Measure = Callable[[Subject], Creations]


@contextmanager
def measuring(seconds: int) -> Iterator[Measure]:
    """Measure subjects one after the other on the same control plane."""
    with Ground.open() as ground:
        yield lambda subject: measure(ground, subject, seconds)
