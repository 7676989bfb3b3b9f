"""Incidents on the real control plane with the running operator: what a person sees, after which time, and the repair.

Each breaks something, waits for its Event, its alert and what `taintwarden status` shows, follows the page of the
runbook to the letter, and waits until the alert is over.
"""

import datetime
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from api.policy_cases import policy
from controlplane import (
    OPERATOR_NAMESPACE,
    Cluster,
    Extender,
    Json,
    Operator,
    Webhook,
    WorkingCluster,
    wait_until,
    webhook_setup,
)
from controlplane.api_server import free_port
from e2e import extender_scenes
from e2e.runbook import Desk, Done
from e2e.stories import taint, toleration
from monitoring.rules import Alert, alerts
from monitoring.server import Prometheus

ALERTS = {alert.name: alert for alert in alerts()}
PATIENCE_SECONDS = 90.0
OPERATORS = ("operator-a", "operator-b")
STRANGE, READER, ASKING, API_SERVER = "oncall-strange", "oncall-reader", "oncall-asking", "kube-apiserver"
INCIDENT = "taintwarden-e2e/incident"
GOOD = taint("980")
DEMANDING = toleration("Gt", "950")


@dataclass
class World:
    """Operators, webhook, extender, and a Prometheus that scrapes them and the API server."""

    ground: WorkingCluster
    folder: Path
    desk: Desk
    operators: list[Operator]
    webhook: Webhook
    webhook_port: int
    extender: Extender
    stranger: Operator
    """Operator of another installation; not started."""
    prometheus: Prometheus
    stack: ExitStack

    @property
    def cluster(self) -> Cluster:
        return self.ground.client

    def start_stranger(self) -> None:
        """A second installation, in a namespace of its own."""
        self.cluster.create_namespace(STRANGE)
        self.stranger.start(wait_ready=False)

    def busy(self, work: Callable[[], object]) -> None:
        """Repeat some work every second until the world ends."""
        stop = threading.Event()

        def repeat() -> None:
            while not stop.wait(1.0):
                work()

        thread = threading.Thread(target=repeat)
        thread.start()
        self.stack.callback(thread.join)
        self.stack.callback(stop.set)


@contextmanager
def opened(ground: WorkingCluster, folder: Path) -> Iterator[World]:
    """Start operators, webhook, extender and a Prometheus that scrapes them."""
    with ExitStack() as stack:
        port = free_port()
        webhook_setup.install(ground.client, port)
        stack.callback(webhook_setup.remove, ground.client)
        operators = [Operator(ground.operator_kubeconfig(), folder, name=name) for name in OPERATORS]
        stranger = Operator(ground.admin_kubeconfig, folder, name=STRANGE, namespace=STRANGE)
        webhook = Webhook(ground.webhook_kubeconfig(), folder, port)
        for one in (*operators, stranger, webhook):
            stack.callback(one.process.stop)
        operators[0].start()
        operators[0].wait_leading()
        operators[1].start()
        webhook.start(wait_ready=False)
        webhook_setup.trust(ground)
        webhook.wait_ready()
        extender = asked_extender(ground, folder, stack)
        targets = {one.process.name: one.url for one in (*operators, stranger, webhook, extender)}
        prometheus = Prometheus(folder / "prometheus", targets, [of_the_api_server(ground)])
        stack.enter_context(prometheus)
        prometheus.wait_scraped([*OPERATORS, "webhook", "scheduler-extender", API_SERVER])
        desk = Desk(folder / "desk", ground.admin_kubeconfig)
        yield World(ground, folder, desk, operators, webhook, port, extender, stranger, prometheus, stack)


def asked_extender(ground: WorkingCluster, folder: Path, stack: ExitStack) -> Extender:
    """A scheduler extender, with a scheduler of its own that calls it repeatedly about a pod that no node suits."""
    extender_scenes.installed(ground)
    extender, entry = stack.enter_context(extender_scenes.serving(ground, folder))
    ground.start_configured_scheduler(ASKING, extender_scenes.configuration(entry, scheduler=ASKING))
    ground.client.create_namespace(ASKING)
    scene = extender_scenes.SchedulingScene(ground.client, ASKING, ASKING)
    scene.node("a", taint("900"))
    scene.pod("web", DEMANDING)
    return extender


def of_the_api_server(ground: WorkingCluster) -> Json:
    """Scrape configuration for the API server: the one metric that an alert uses."""
    ground.client.create("serviceaccounts", {"metadata": {"name": READER}}, OPERATOR_NAMESPACE)
    subject = {"kind": "ServiceAccount", "name": READER, "namespace": OPERATOR_NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "taintwarden-metrics-reader"}
    ground.client.create("clusterrolebindings", {"metadata": {"name": READER}, "roleRef": role, "subjects": [subject]})
    host = ground.server.removeprefix("https://")
    kept = {"source_labels": ["__name__"], "regex": "apiserver_admission_webhook_fail_open_count", "action": "keep"}
    return {
        "job_name": API_SERVER,
        "scheme": "https",
        "tls_config": {"ca_file": str(ground.ca)},
        "authorization": {"credentials": ground.token(READER)},
        "static_configs": [{"targets": [host], "labels": {"instance": API_SERVER}}],
        "metric_relabel_configs": [kept],
    }


@dataclass
class Incident:
    """One fault with the alert that reports it, and the values of the runbook's placeholders."""

    alert: str
    break_it: Callable[[World], object]
    labels: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    event: tuple[str, str] | None = None
    """Namespace and reason of the first Event about it."""
    shows: Callable[[Json], bool] | None = None
    """Returns True if the status of the policy shows it."""
    headings: tuple[str, ...] = ("Repair",)
    """Headings of the page's parts that repair it; empty where only the test can."""
    helps: Callable[[World], object] = lambda _: None
    """Steps that the commands do not do, such as starting a process in place of a kubelet."""
    ends: bool = True
    """True if the alert is over within the test; one with a range of ten minutes is not."""

    @property
    def rule(self) -> Alert:
        return ALERTS[self.alert]


@dataclass
class Seen:
    """Observations of one incident; times are seconds since the break, those of the end since the repair."""

    incident: Incident
    event: float | None = None
    shown: float | None = None
    holds: float = 0.0
    fires: float = 0.0
    """Seconds until the shipped alert fires, with the minutes of its `for`."""
    repair: float = 0.0
    over: float | None = None
    text: str = ""
    looked: list[Done] = field(default_factory=list)
    repaired: list[Done] = field(default_factory=list)


def play(incident: Incident, world: World) -> Seen:
    """Break, see, repair."""
    seen, began = Seen(incident), time.time()
    incident.break_it(world)
    found = world.prometheus.wait_firing(incident.alert, incident.labels)
    seen.holds, seen.text = found.active_at - began, found.annotations["summary"]
    seen.fires = seen.holds + incident.rule.seconds
    if incident.event is not None:
        seen.event = first_event(world, *incident.event) - began
    if incident.shows is not None:
        wait_until(partial(shown, world, incident), PATIENCE_SECONDS, f"the status to show {incident.alert}")
        seen.shown = time.time() - began
    names = named(incident, world)
    seen.looked = world.desk.run_first_commands(incident.rule.page, names)
    began = time.time()
    for heading in incident.headings:
        seen.repaired += world.desk.repair(incident.rule.page, heading, names)
    incident.helps(world)
    seen.repair = time.time() - began
    if incident.ends:
        world.prometheus.wait_over(incident.alert, incident.labels)
        seen.over = time.time() - began
    return seen


def named(incident: Incident, world: World) -> dict[str, str]:
    """The words of the incident; a pod gets its name from its controller."""
    if "POD" not in incident.words:
        return dict(incident.words)
    namespace = incident.words["NAMESPACE"]
    pod = world.cluster.items("pods", namespace)[0]["metadata"]["name"]
    return {**incident.words, "POD": f"{namespace}/{pod}"}


def shown(world: World, incident: Incident) -> bool:
    assert incident.shows is not None
    return incident.shows(world.cluster.get("taintevictionpolicies", incident.words["POLICY"]).get("status", {}))


def first_event(world: World, namespace: str, reason: str) -> float:
    """When the first Event with this reason was written, in seconds since 1970."""
    found = lambda: [one for one in world.cluster.items("events", namespace) if one["reason"] == reason]  # noqa: E731
    return min(map(written_at, wait_until(found, PATIENCE_SECONDS, f"an Event {reason}")))


def written_at(event: Json) -> float:
    """The time of an Event."""
    return datetime.datetime.fromisoformat(event["eventTime"]).timestamp()


# -- what is staged before


def stage(
    world: World,
    name: str,
    zones: Mapping[str, int],
    replicas: int,
    *,
    app: Mapping[str, Any] | None = None,
    **spec: Any,
) -> None:
    """A namespace, nodes with a good value, a workload on them and a policy, all of this name."""
    world.cluster.create_namespace(name)
    world.ground.create_zones(name, zones, {INCIDENT: name}, GOOD)
    given: dict[str, Any] = {"tolerations": [DEMANDING], "grace_seconds": 1, **(app or {})}
    world.ground.create_deployment("web", name, replicas, node_selector={INCIDENT: name}, **given)
    selector = {"nodeSelector": {"matchLabels": {INCIDENT: name}}}
    timing = {"timing": {"violationGraceSeconds": 0, "stabilizationWindowSeconds": 0}}
    body = {"taints": [{"key": "sla", "valueType": "Integer"}], **selector, **timing, **spec}
    world.cluster.create("taintevictionpolicies", policy(body, name))


def value(name: str, text: str, zone: str = "") -> Callable[[World], None]:
    """Give the nodes of a stage this value, or those of one zone."""

    def set_all(world: World) -> None:
        nodes = [node["metadata"]["name"] for node in world.cluster.items("nodes")]
        # At the same time, as where one source of values fails.
        with ThreadPoolExecutor() as pool:
            list(
                pool.map(
                    lambda node: world.cluster.set_taints(node, [taint(text)]),
                    [node for node in nodes if node.startswith(f"{name}-{zone}")],
                )
            )

    return set_all


def words(name: str, **more: str) -> dict[str, str]:
    """Values of the runbooks' placeholders, which are words in capitals."""
    selector = {"SELECTOR": f"{INCIDENT}={name}", "TAINT": "sla=980:NoExecute"}
    return {"POLICY": name, "NAMESPACE": name, "NODE": f"{name}-a-0", **selector, **more}


def limited(limit: str) -> Callable[[Json], bool]:
    return lambda status: limit in [one["limit"] for one in status.get("limits", [])]


def holds(kind: str, wanted: str, reason: str = "") -> Callable[[Json], bool]:
    def are_so(status: Json) -> bool:
        found = [one for one in status.get("conditions", []) if one["type"] == kind]
        return any(one["status"] == wanted and reason in ("", one["reason"]) for one in found)

    return are_so
