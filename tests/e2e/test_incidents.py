"""On call, on the real control plane: incidents with the running operator, a real Prometheus, and the runbook.

Each alert fires on the operator's real series, and the commands of its page are run as they are written.
"""

import base64
import copy
import math
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.profile_cases import profile
from controlplane import (
    OPERATOR_NAMESPACE,
    EvictionDenial,
    Json,
    WorkingCluster,
    sleep_until,
    wait_until,
    webhook_setup,
)
from controlplane.binaries import ROOT
from controlplane.client import resource_path
from controlplane.manifests import documents
from e2e import extender_scenes
from e2e.incidents import (
    INCIDENT,
    OPERATORS,
    STRANGE,
    Incident,
    Seen,
    World,
    holds,
    limited,
    opened,
    play,
    stage,
    value,
    words,
)
from e2e.stories import NO_LIMITS, annotation, policy, toleration
from monitoring.panels import Panel, filled, panels
from monitoring.rules import alerts
from taintwarden.serving.key_pairs import make_key_pair, read_key_pair

pytestmark = pytest.mark.timeout(900)  # the first test waits for all incidents

GUARD, PACE, BUDGET, TYPO, ZONES, ZONE, MISSED, DENIED, BOUNCE = (
    f"oncall-{name}" for name in ("guard", "pace", "budget", "typo", "zones", "zone", "missed", "denied", "bounce")
)
HEALTH = {"unhealthy": [{"key": "sla", "operator": "Lt", "value": "950"}]}
UNREAD = {"tolerations": [toleration("Exists")], "annotations": annotation(toleration("Gt", "950"))}
"""The scheduler reads the one, the operator the other, so pods come back."""
ON_EACH_NODE = {"spread": "kubernetes.io/hostname"}
"""A node without a pod has none to evict, so its zone would not be Full."""
ORDINARY_SECONDS = 15
DAY = 86_400.0
INVALID, INJECTED, DEVICES = "oncall-invalid", "oncall-injected", "oncall-devices"


STAGES: dict[str, tuple[dict[str, int], int, dict[str, Any]]] = {
    GUARD: ({"a": 2, "b": 2, "c": 2}, 12, {}),
    PACE: ({"a": 2, "b": 2, "c": 2}, 12, {"limits": {"guard": {"action": "Pace"}}}),
    BUDGET: ({"a": 1, "b": 1}, 1, {"limits": NO_LIMITS}),
    TYPO: ({"a": 1, "b": 1}, 4, {"limits": {"concurrentNodes": 2}}),
    ZONES: ({"a": 3, "b": 3, "c": 3}, 9, {"app": ON_EACH_NODE, "limits": {**NO_LIMITS, "zoneHealth": HEALTH}}),
    ZONE: ({"a": 3, "b": 3, "c": 3}, 9, {"app": ON_EACH_NODE, "limits": {**NO_LIMITS, "zoneHealth": HEALTH}}),
    MISSED: ({"a": 1, "b": 1}, 2, {"reclaim": {"deadlineSeconds": 5}}),
    DENIED: ({"a": 1}, 2, {"limits": NO_LIMITS}),
    BOUNCE: ({"a": 1}, 1, {"app": UNREAD, "limits": {**NO_LIMITS, "bounce": {}}}),
}
"""Nodes by zone, replicas, and what else differs, by the name of the policy."""


def staged(world: World, chosen: Iterable[str]) -> None:
    """Create the objects of these incidents, and let the ordinary time before them pass."""
    names = {incident.words["POLICY"] for incident in POLICY_INCIDENTS if incident.alert in chosen} | {TYPO}
    for name in names:
        zones, replicas, more = STAGES[name]
        stage(world, name, zones, replicas, **more)
    for name, healthy in {BUDGET: 1, MISSED: 2}.items():
        if name in names:
            spec = {"minAvailable": healthy, "selector": {"matchLabels": {"app": "web"}}}
            world.cluster.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": spec}, name)
    world.ground.wait_complete(*(f"{name}/web" for name in names), timeout_seconds=120)


# -- what breaks


def create_pods(world: World) -> None:
    """Create a pod in a namespace whose pods the webhook completes; the server calls it for each of them."""
    if world.cluster.find("namespaces", INJECTED) is None:
        world.cluster.create_namespace(INJECTED, {"taintwarden.io/inject": "true"})
    world.cluster.create_pod(f"web-{uuid.uuid4().hex[:8]}", INJECTED)


def store_pair(world: World, lifetime_seconds: float, service: str = webhook_setup.NAME) -> None:
    """A certificate of the same authority with this much time left, in the Secret of a Service."""
    names = (f"{service}.{OPERATOR_NAMESPACE}.svc", f"{service}.{OPERATOR_NAMESPACE}", service)
    stored = world.cluster.get("secrets", service, OPERATOR_NAMESPACE)["data"]
    pem = (base64.b64decode(stored[f"authority.{part}"]) for part in ("crt", "key"))
    authority = read_key_pair(*pem, is_authority=True)
    pair = make_key_pair(names, time.time(), authority, lifetime_seconds)
    content = {"tls.crt": pair.certificate, "tls.key": pair.key}
    data = {name: base64.b64encode(text).decode() for name, text in content.items()}
    world.cluster.patch("secrets", service, {"data": data}, OPERATOR_NAMESPACE)


def restart_without_rights(world: World) -> None:
    """A follower that may list nodes, and not watch them."""
    role = world.cluster.get("clusterroles", "taintwarden")
    rules = [copy.deepcopy(rule) for rule in role["rules"]]
    for rule in rules:
        if "nodes" in rule["resources"]:
            rule["verbs"] = [verb for verb in rule["verbs"] if verb != "watch"]
    world.cluster.patch("clusterroles", "taintwarden", {"rules": rules})
    follower = world.operators[1]
    follower.process.stop()
    follower.start(wait_ready=False)


def select_devices_without_rights(world: World) -> None:
    """A policy for devices, in an installation whose right to read them is gone."""
    world.cluster.delete("clusterrolebindings", "taintwarden-devices")
    body = policy(DEVICES, mode="DryRun", devices=[{"key": "*"}])
    del body["spec"]["taints"]
    world.cluster.create("taintevictionpolicies", body)


def corrected_policy() -> Json:
    return policy(INVALID, mode="DryRun")


def corrected_profile() -> Json:
    return profile({"tolerations": [toleration("Gt", "950")]}, "web", INVALID)


def write_corrected(world: World, name: str, document: Json) -> None:
    """The file that a person has corrected."""
    (world.desk.folder / name).write_text(yaml.safe_dump(document))


def come_back(world: World) -> None:
    """The operators start again, after a policy and a profile were stored that they cannot use."""
    with lenient_definitions(world):
        world.cluster.create("taintevictionpolicies", corrected_policy() | {"spec": {"mode": "Sometimes"}})
        world.cluster.create_namespace(INVALID)
        wrong = {"tolerations": [{"key": "sla", "operator": "Around", "value": "950"}]}
        world.cluster.create("tolerationprofiles", corrected_profile() | {"spec": wrong}, INVALID)
    for operator in world.operators:
        operator.start(wait_ready=False)
    world.operators[0].wait_ready()


@contextmanager
def lenient_definitions(world: World) -> Iterator[None]:
    """A cluster that stores any policy and profile, as one with older definitions would."""
    shipped = [document for _, document in documents(ROOT / "crds")]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for definition in copy.deepcopy(shipped):
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"] |= {"spec": anything, "status": anything}
        world.cluster.apply(definition)
    path, wrong = resource_path("taintevictionpolicies"), policy("probe", mode="Sometimes")
    refusal = lambda: world.cluster.refusal("POST", path, wrong)  # noqa: E731
    wait_until(lambda: not refusal(), 30, "the server to store anything")
    yield
    for definition in shipped:
        world.cluster.apply(definition)
    wait_until(refusal, 30, "the server to check policies again")


def run_job(world: World) -> None:
    """Do the work of an installation's Job, once its configurations are there."""
    there = lambda: all(map(partial(world.cluster.find, name="taintwarden"), webhook_setup.CONFIGURATIONS.values()))  # noqa: E731
    wait_until(there, 60, "the configurations")
    webhook_setup.trust(world.ground)


# -- the incidents

POLICY_INCIDENTS = [
    Incident(
        "TaintwardenGuardTripped",
        value(GUARD, "0"),
        {"policy": GUARD},
        words(GUARD),
        event=("default", "GuardTripped"),
        shows=holds("GuardTripped", "True"),
        headings=("The cause is a mistake",),
    ),
    Incident(
        "TaintwardenGuardPaces",
        value(PACE, "0"),
        {"policy": PACE},
        words(PACE),
        event=("default", "GuardTripped"),
        shows=holds("GuardTripped", "True"),
        headings=("The cause is a mistake",),
    ),
    Incident(
        "TaintwardenBudgetBlocked",
        value(BUDGET, "900"),
        {"policy": BUDGET, "budget": f"{BUDGET}/web"},
        words(BUDGET, BUDGET="web", POD=""),
        event=(BUDGET, "EvictionBlocked"),
        shows=limited("budget"),
    ),
    Incident(
        "TaintwardenInvalidTaintValue",
        value(TYPO, "98O", "b"),
        {"policy": TYPO},
        words(TYPO, NODE=f"{TYPO}-b-0"),
        event=("default", "InvalidTaintValue"),
        shows=lambda status: bool(status.get("retained")),
    ),
    Incident(
        "TaintwardenAllNodesUnhealthy",
        value(ZONES, "0"),
        {"policy": ZONES},
        words(ZONES),
        shows=limited("zone"),
        headings=("The values are wrong",),
    ),
    Incident(
        "TaintwardenZoneFull",
        value(ZONE, "0", "a"),
        {"policy": ZONE, "zone": "test/a"},
        words(ZONE),
        shows=lambda status: "Full" in [one["state"] for one in status.get("zones", [])],
    ),
    Incident(
        "TaintwardenDeadlineMissed",
        value(MISSED, "0", "a"),
        {"policy": MISSED, "reason": "not-evicted"},
        words(MISSED),
        event=(MISSED, "DeadlineMissed"),
        ends=False,
    ),
    Incident(
        "TaintwardenEvictionsRefused",
        value(DENIED, "0"),
        {"policy": DENIED, "reason": "denied"},
        words(DENIED),
        event=(DENIED, "EvictionFailed"),
        headings=(),
        helps=lambda world: EvictionDenial(world.cluster).allow(DENIED),
        ends=False,  # it is retried after minutes
    ),
    Incident(
        "TaintwardenWorkloadBounces",
        value(BOUNCE, "0"),
        {"policy": BOUNCE},
        words(BOUNCE),
        event=(BOUNCE, "EvictionBouncing"),
        shows=limited("bounce"),
        helps=lambda world: world.ground.create_zones(BOUNCE, {"b": 1}, {INCIDENT: BOUNCE}),
        ends=False,
    ),
]
"""Incidents of single policies, which are played at the same time."""
WEBHOOK_INCIDENTS = [
    Incident(
        "TaintwardenWebhookDown",
        lambda world: world.webhook.process.kill(),
        helps=lambda world: world.webhook.start(wait_ready=False),
    ),
    Incident(
        "TaintwardenWebhookNotConfigured",
        lambda world: webhook_setup.remove_configurations(world.cluster),
        {"configuration": "MutatingWebhookConfiguration"},
        helps=run_job,
    ),
    Incident(
        "TaintwardenWebhookUntrusted",
        lambda world: webhook_setup.distrust(world.cluster),
        {"configuration": "MutatingWebhookConfiguration"},
    ),
    Incident(
        "TaintwardenWebhookUnreachable",
        lambda world: world.busy(partial(create_pods, world)),
        {"name": "pods.mutate.taintwarden.io"},
        helps=lambda world: webhook_setup.lead_to(world.cluster, world.webhook_port),
        ends=False,
    ),
    Incident(
        "TaintwardenWebhookCertificateExpires",
        lambda world: store_pair(world, lifetime_seconds=5 * DAY),
        helps=lambda world: store_pair(world, lifetime_seconds=90 * DAY),
    ),
]
"""One after the other. Once the installation is applied again, the configurations lead to its Service, without pods."""
EXTENDER_INCIDENTS = [
    Incident(
        "TaintwardenSchedulerExtenderDown",
        lambda world: world.extender.process.kill(),
        helps=lambda world: world.extender.start(),
    ),
    Incident(
        "TaintwardenSchedulerExtenderCertificateExpires",
        lambda world: store_pair(world, 5 * DAY, extender_scenes.NAME),
    ),
]
"""One after the other."""
OPERATOR_INCIDENTS = [
    Incident(
        "TaintwardenDevicesNotKnown",
        select_devices_without_rights,
        {"policy": DEVICES},
        {"POLICY": DEVICES},
        shows=holds("DevicesKnown", "False"),
        headings=("The right is missing",),
    ),
    Incident(
        "TaintwardenNoLeader",
        lambda world: world.cluster.delete("rolebindings", "taintwarden", OPERATOR_NAMESPACE),
    ),
    Incident(
        "TaintwardenTwoLeaders",
        lambda world: world.start_stranger(),
        words={"NAMESPACE": STRANGE},
        headings=(),
        helps=lambda world: world.stranger.process.stop(),
    ),
    Incident(
        "TaintwardenStaleView",
        restart_without_rights,
        {"instance": OPERATORS[1]},
    ),
    Incident(
        "TaintwardenDown",
        lambda world: [operator.kill9() for operator in world.operators],
        helps=come_back,
    ),
]
"""Incidents that are played one after the other, since they stop all other parts."""
OBJECT_INCIDENTS = [
    Incident(
        "TaintwardenPolicyNotAccepted",
        partial(write_corrected, name="policy.yaml", document=corrected_policy()),
        {"policy": INVALID},
        {"POLICY": INVALID},
        event=("default", "InvalidPolicy"),
        shows=holds("Accepted", "False"),
    ),
    Incident(
        "TaintwardenProfileNotAccepted",
        partial(write_corrected, name="profile.yaml", document=corrected_profile()),
        event=(INVALID, "InvalidProfile"),
    ),
]
"""Objects that were stored while other definitions were in force, and no operator ran."""
ALL = [*POLICY_INCIDENTS, *WEBHOOK_INCIDENTS, *EXTENDER_INCIDENTS, *OPERATOR_INCIDENTS, *OBJECT_INCIDENTS]
FIRST = (
    "TaintwardenGuardTripped",
    "TaintwardenGuardPaces",
    "TaintwardenBudgetBlocked",
    "TaintwardenInvalidTaintValue",
    "TaintwardenAllNodesUnhealthy",
    "TaintwardenDown",
)
"""The most likely incidents. `INCIDENTS=all` plays the others, too, which takes several minutes more."""
PLAYED = [one for one in ALL if one.alert in FIRST or os.environ.get("INCIDENTS") == "all"]


# -- the trial


@dataclass
class Trial:
    """Observations by alert, and those of the ordinary time before."""

    world: World
    began: float
    chosen: list[str]
    ordinary_until: float = 0.0
    ordinary_alerts: list[str] = field(default_factory=list)
    seen: dict[str, Seen] = field(default_factory=dict)
    faults: dict[str, BaseException] = field(default_factory=dict)
    ended: float = 0.0

    def play(self, incident: Incident) -> None:
        """Keep what went wrong for the test that judges it."""
        if incident.alert not in self.chosen:
            return
        try:
            self.seen[incident.alert] = play(incident, self.world)
        except Exception as error:  # noqa: BLE001 - judged by its own test
            self.faults[incident.alert] = error

    def play_in_turn(self, incidents: Iterable[Incident]) -> None:
        for incident in incidents:
            self.play(incident)

    def judge(self, alert: str) -> Seen:
        if alert in self.faults:
            raise self.faults[alert]
        return self.seen[alert]


@pytest.fixture(scope="module")
def trial(
    request: pytest.FixtureRequest, own_working_cluster: WorkingCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trial]:
    """All incidents, in the order of a bad day; `-k` plays only those that it names."""
    asked = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    named = [params["incident"].alert for params in asked if "incident" in params]
    folder = tmp_path_factory.mktemp("incidents")
    with opened(own_working_cluster, folder) as world:
        chosen = named or [incident.alert for incident in PLAYED]
        staged(world, chosen)
        trial = Trial(world, time.time(), chosen)
        ordinary(trial)
        if "TaintwardenEvictionsRefused" in trial.chosen:
            denial = EvictionDenial(world.cluster)
            denial.install()
            denial.deny(DENIED)
        # Its threads live as long as the processes that they start.
        pool = world.stack.enter_context(ThreadPoolExecutor(len(POLICY_INCIDENTS) + 2))
        waiting = [pool.submit(trial.play, incident) for incident in POLICY_INCIDENTS]
        waiting += [pool.submit(trial.play_in_turn, row) for row in (WEBHOOK_INCIDENTS, EXTENDER_INCIDENTS)]
        wait(waiting)
        trial.play_in_turn(OPERATOR_INCIDENTS)
        wait([pool.submit(trial.play, incident) for incident in OBJECT_INCIDENTS])
        trial.ended = time.time()
        report(trial, folder)
        yield trial


def ordinary(trial: Trial) -> None:
    """A value falls on one node, its pods leave, and it recovers: no alert. Schedulers may choose that node again."""
    world = trial.world

    def there() -> set[str]:
        pods = world.cluster.items("pods", TYPO)
        return {pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName") == f"{TYPO}-a-0"}

    first = there()
    value(TYPO, "900", "a")(world)
    wait_until(lambda: first.isdisjoint(there()), 60, "the pods of a node to leave")
    value(TYPO, "980", "a")(world)
    sleep_until(time.monotonic() + max(0.0, ORDINARY_SECONDS - (time.time() - trial.began)))
    trial.ordinary_until = time.time()
    rows = world.prometheus.over('ALERTS{alertstate="firing"}', trial.began, trial.ordinary_until)
    trial.ordinary_alerts = sorted({labels["alertname"] for labels, _ in rows})


def report(trial: Trial, folder: Path) -> None:
    """Write the rows of the table in docs/runbooks/README.md, and the output of each command."""
    rows, said = [], []
    for alert, seen in trial.seen.items():
        times = [seen.event, seen.shown, seen.holds, seen.fires, seen.repair, seen.over]
        rows.append(" | ".join([alert, *("" if one is None else f"{one:.1f}" for one in times)]))
        for done in (*seen.looked, *seen.repaired):
            said += [f"## {alert}: exit code {done.code} after {done.seconds:.1f} s", f"$ {done.command}", done.output]
    faults = [f"{alert}: {fault!r}" for alert, fault in trial.faults.items()]
    head = "alert | Event | status | condition | fires | repaired | over"
    (folder / "report.txt").write_text("\n".join([head, *rows, "", *faults, "", *said]))


PUBLISHER_DOWN = "TaintwardenPublisherDown"
"""Here it fires all the time, since no publisher runs."""
OF_THE_PUBLISHER = {PUBLISHER_DOWN, "TaintwardenPublisherStuck"}
"""No publisher runs here: promtool alone tries these."""


OF_THE_BLACK_BOX = {"TaintwardenPodsStuck"}
"""Pods of these incidents end at once: a story of the black box has one that does not, and promtool tries the rule."""


def test_every_other_alert_is_tried():
    elsewhere = OF_THE_PUBLISHER | OF_THE_BLACK_BOX
    assert {incident.alert for incident in ALL} | elsewhere == {alert.name for alert in alerts()}


def test_an_ordinary_time_has_no_alert(trial: Trial):
    assert set(trial.ordinary_alerts) <= {PUBLISHER_DOWN}


@pytest.mark.parametrize("incident", PLAYED, ids=lambda incident: incident.alert)
def test_an_incident_is_seen_and_the_runbook_ends_it(trial: Trial, incident: Incident):
    seen = trial.judge(incident.alert)
    assert "{{" not in seen.text
    assert len(seen.looked) == 3
    assert seen.over is not None or not incident.ends


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel.title)
def test_a_panel_of_the_dashboard_shows_the_incidents(trial: Trial, panel: Panel):
    for expression, _ in panel.queries:
        query = filled(expression, "30s")
        series = trial.world.prometheus.over(query, trial.began, trial.ended, step=5.0)
        assert series, query
        assert [value for _, values in series for _, value in values if math.isfinite(value)], query


def test_the_states_of_a_panel_are_those_that_occur(trial: Trial):
    for panel in panels():
        for expression, _ in panel.queries if panel.states else ():
            rows = trial.world.prometheus.over(filled(expression, "30s"), trial.began, trial.ended, step=5.0)
            assert {f"{value:g}" for _, values in rows for _, value in values} <= panel.states.keys()
