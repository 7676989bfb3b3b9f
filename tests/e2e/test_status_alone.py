"""Incidents on the real control plane, seen with `status` and `top` alone: when they name the cause, with which code.

The two say the same: what `status` calls the problem of a policy is what `top` shows below its name.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from controlplane import Json, Operator, WorkingCluster, wait_until
from controlplane.binaries import binaries_folder
from controlplane.operator_process import BYTECODE, EXECUTABLE
from e2e.stories import policy, taint, toleration

pytestmark = pytest.mark.timeout(600)

FINE, PERSON = 0, 10
NAMED_SECONDS = 40.0
"""The longest that is waited; the documents state what was measured."""
LABEL = "taintwarden-e2e/alone"
GOOD = taint("980")


@dataclass
class Report:
    """Of each incident: seconds from the break to the name of its cause, the exit code of `status`, and its text."""

    measured: dict[str, float] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def note(self, name: str, seconds: float, code: int, text: str) -> None:
        """Only the first look: the others are what follows."""
        if name not in self.measured:
            self.measured[name], self.codes[name], self.said[name] = seconds, code, text


@dataclass
class Stage:
    """Nodes, a Deployment and a policy of one incident, and how a person looks at it."""

    ground: WorkingCluster
    name: str
    environment: dict[str, str]
    report: Report
    nodes: list[str] = field(default_factory=list)

    def run(self, *command: str) -> tuple[int, str]:
        """Run one command."""
        ran = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=120, check=False)
        return ran.returncode, ran.stdout + ran.stderr

    def status(self) -> tuple[int, str]:
        """What `status` says of the policy."""
        return self.run(str(EXECUTABLE), "status", self.name)

    def top(self) -> str:
        """What `top` shows of the policy."""
        code, text = self.run(str(EXECUTABLE), "top", "--once")
        assert code == FINE, text
        return text

    def set_values(self, text: str, *nodes: str) -> None:
        """Give the nodes this value; all of them unless some are named."""
        for node in nodes or self.nodes:
            self.ground.client.set_taints(node, [taint(text)])

    def wait_history(self, text: str) -> None:
        """Wait until the operator has seen this value on all nodes: it writes down what it sees."""

        def written() -> bool:
            nodes = [self.ground.client.get("nodes", name)["metadata"] for name in self.nodes]
            return all(
                f'"{text}"' in one.get("annotations", {}).get("taintwarden.io/taint-history", "") for one in nodes
            )

        wait_until(written, NAMED_SECONDS, f"the operator to see {text} on the nodes of {self.name}")

    def sees(self, code: int, status: str, top: str, incident: str = "") -> str:
        """Wait until both name the cause, and record after how many seconds. Returns what `status` says."""
        began = time.monotonic()

        def seen() -> str:
            with ThreadPoolExecutor() as both:  # as in two terminals
                shows = both.submit(self.top)
                found, text = self.status()
                shown = shows.result()
            is_seen = found == code and re.search(status, text) and re.search(top, shown)
            return text if is_seen and self.agree(text, shown) else ""

        text = wait_until(seen, NAMED_SECONDS, f"status and top of {self.name} to say {status!r} and {top!r}")
        self.report.note(incident or self.name, time.monotonic() - began, code, text)
        return text

    def agree(self, text: str, shown: str) -> bool:
        """Whether two looks say the same. They are not at the same time, so they may differ for a while."""
        problem = re.search(r"Problem +(.+)", text)
        is_tripped = problem is not None and "guard has tripped" in problem[1]
        return not (is_tripped and "guard armed" in _of_policy(shown, self.name))


def _of_policy(shown: str, name: str) -> str:
    """The lines of `top` about one policy."""
    found = re.search(rf"^[> ▸]*{name}  .*\n(?:    .*\n)*", shown, re.MULTILINE)
    return found[0] if found else ""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    """Written at the end: the table and the examples of the documents are made of it."""
    found = Report()
    yield found
    rows = [f"{name} | {seconds:.1f} | {found.codes[name]}" for name, seconds in found.measured.items()]
    said = [f"## {name}\n{text}" for name, text in found.said.items()]
    (tmp_path_factory.mktemp("report") / "report.txt").write_text("\n".join([*rows, "", *said]))


@pytest.fixture(scope="module")
def operator(own_working_cluster: WorkingCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    folder = tmp_path_factory.mktemp("alone")
    with Operator(own_working_cluster.operator_kubeconfig(), folder) as running:
        running.wait_leading()
        yield running


@pytest.fixture
def stage(own_working_cluster: WorkingCluster, operator: Operator, report: Report) -> Callable[..., Stage]:
    """Build a stage: nodes by zone, replicas, and the spec of the policy."""

    def build(name: str, zones: dict[str, int], replicas: int, *, budget: int = 0, **spec: object) -> Stage:
        ground, path = own_working_cluster, os.pathsep.join([str(EXECUTABLE.parent), str(binaries_folder())])
        plain = {"KUBECONFIG": str(ground.admin_kubeconfig), "NO_COLOR": "1", "COLUMNS": "200"}
        environment = {**os.environ, **BYTECODE, **plain, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
        made = Stage(ground, name, environment, report)
        ground.client.create_namespace(name)
        made.nodes = ground.create_zones(name, zones, {LABEL: name}, GOOD)
        ground.create_deployment(
            "web",
            name,
            replicas,
            node_selector={LABEL: name},
            tolerations=[toleration("Gt", "950")],
            grace_seconds=1,
            spread="kubernetes.io/hostname",
        )
        if budget:
            body = {"minAvailable": budget, "selector": {"matchLabels": {"app": "web"}}}
            ground.client.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": body}, name)
        ground.wait_complete(f"{name}/web")
        timing = {"violationGraceSeconds": 0, "stabilizationWindowSeconds": 0}
        given: Json = {"taints": [{"key": "sla", "valueType": "Integer"}], "timing": timing, **spec}
        given["nodeSelector"] = {"matchLabels": {LABEL: name}}
        ground.client.create("taintevictionpolicies", policy(name) | {"spec": given})
        wait_until(lambda: made.status()[0] == FINE, NAMED_SECONDS, f"{name} to be accepted")
        return made

    return build


def test_every_value_at_zero_and_repaired_node_by_node(stage: Callable[..., Stage]) -> None:
    scene = stage("alone-zero", {"a": 2, "b": 2}, 12)
    scene.set_values("0")
    scene.sees(PERSON, r"Problem .*Still bad: nodes .*sla=0 \(980 before\)", r"guard tripped|Still bad")
    for left in (3, 2, 1):
        scene.set_values("980", scene.nodes[-left - 1])
        bad = scene.nodes[-left:]
        names = rf"Still bad: nodes? {bad[0]} sla=0"
        text = scene.sees(PERSON, names, r"guard tripped")
        repaired = [one for one in scene.nodes if one not in bad]
        assert not [one for one in repaired if f"{one} sla=0" in text.partition("Still bad")[2].partition("\n")[0]]
    scene.set_values("980")
    text = scene.sees(FINE, r"no pod has to leave", r"guard armed")
    assert re.search(r"alone-zero .* 0  armed", text)


def test_a_budget_that_never_allows(stage: Callable[..., Stage]) -> None:
    scene = stage("alone-budget", {"a": 1, "b": 1}, 2, budget=2, limits={"base": "None"})
    scene.set_values("900", scene.nodes[0])
    scene.sees(
        FINE, r"Budget +1 pod waiting for alone-budget/web", r"alone-budget/web.*PodDisruptionBudget|budget holds 1"
    )


def test_a_typo(stage: Callable[..., Stage]) -> None:
    scene = stage("alone-typo", {"a": 1, "b": 1}, 2)
    scene.set_values("98O", scene.nodes[0])
    scene.sees(FINE, r"Invalid +sla=98O:NoExecute on alone-typo-a-0 cannot be compared", r"sla=98O")


def test_all_zones(stage: Callable[..., Stage]) -> None:
    limits = {"base": "None", "zoneHealth": {}, "guard": {"minPods": 50}}
    scene = stage("alone-zones", {"a": 3, "b": 3}, 6, limits=limits)
    scene.set_values("0")
    scene.sees(PERSON, r"Problem +every zone is Full", r"every zone (is )?Full")
    scene.set_values("980")
    scene.sees(FINE, r"no pod has to leave", r"alone-zones")


def test_a_wrong_edit(stage: Callable[..., Stage]) -> None:
    """The policy selected no pod; an edit in the middle of a wave makes it select all."""
    none = {"matchLabels": {"app": "none"}}
    scene = stage("alone-edit", {"a": 2, "b": 2}, 12, podSelector=none)
    scene.set_values("900")
    scene.wait_history("900")
    edit = '{"spec":{"podSelector":null}}'
    scene.run("kubectl", "patch", "tep", scene.name, "--type=merge", "-p", edit)
    scene.sees(PERSON, r"cause +when it tripped: the policy changed to generation 2", r"its guard has tripped")


@pytest.mark.parametrize("seconds", [30, 120])
def test_a_notice_of_a_spot_node(stage: Callable[..., Stage], seconds: int) -> None:
    name = f"alone-spot-{seconds}"
    spot = {"taints": [{"key": "spot"}], "reclaim": {"deadlineSeconds": seconds}}
    scene = stage(name, {"a": 1, "b": 1}, 2, budget=2, **spot)
    notice = {"key": "spot", "value": "1", "effect": "NoExecute"}
    scene.ground.client.set_taints(scene.nodes[0], [GOOD, notice])
    gone = rf"node {name}-a-0 is gone in [0-9ms]+; 1 pod will be killed with it"
    scene.sees(PERSON, rf"Problem +{gone}", gone)
    if seconds == 30:
        ended = rf"node {name}-a-0 is gone for [0-9]+s: 1 pod was still on it and ended with it"
        scene.sees(PERSON, rf"Problem +{ended}", ended)
    scene.set_values("980")


def test_a_node_that_is_deleted_and_created_again(stage: Callable[..., Stage]) -> None:
    scene = stage("alone-again", {"a": 1, "b": 1}, 2, budget=2, limits={"base": "None"})
    scene.set_values("900", scene.nodes[0])
    scene.sees(FINE, r"Budget +1 pod waiting", r"budget")
    scene.ground.client.delete("nodes", scene.nodes[0])
    scene.sees(FINE, r"Now +no pod has to leave", r"alone-again +Enforce +0 pending")
    scene.ground.create_zones(scene.name, {"a": 1}, {LABEL: scene.name}, taint("900"))
    scene.sees(FINE, r"alone-again +Enforce +True +2 ", r"alone-again-a-0")


def test_a_drain_at_the_same_time(stage: Callable[..., Stage]) -> None:
    scene = stage("alone-drain", {"a": 1, "b": 2}, 3, budget=2, limits={"base": "None"})
    scene.set_values("900", scene.nodes[0])
    command = ("kubectl", "drain", scene.nodes[0], "--ignore-daemonsets", "--timeout=60s", "--force")
    code, text = scene.run(*command)
    assert code == 0, text
    scene.sees(FINE, r"Now +no pod has to leave", r"alone-drain +Enforce +0 pending")
    scene.ground.wait_complete("alone-drain/web")


def test_the_right_to_evict_is_removed(stage: Callable[..., Stage]) -> None:
    scene = stage("alone-rights", {"a": 1, "b": 1}, 2, limits={"base": "None"})
    with _without_right(scene):
        scene.set_values("900", scene.nodes[0])
        scene.sees(PERSON, r"Problem +1 pod waits.*refuses", r"refuses")


def test_a_webhook_without_a_ready_replica(stage: Callable[..., Stage]) -> None:
    scene = stage("alone-webhook", {"a": 1}, 1)
    with _webhook_that_never_starts(scene):
        told = r"Of Deployment taintwarden-system/taintwarden-webhook, the webhook, no replica is ready"
        scene.sees(PERSON, told, told)
    scene.sees(FINE, r"The operator reported", r"Taintwarden .* reported")


@contextmanager
def _webhook_that_never_starts(scene: Stage) -> Iterator[None]:
    """The Deployment of the webhook, on a node that does not exist."""
    name, namespace = "taintwarden-webhook", "taintwarden-system"
    containers = [{"name": "webhook", "image": "none", "args": ["webhook"]}]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, "nodeName": "none"}}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    meta = {"name": name, "labels": {"app.kubernetes.io/name": "taintwarden"}}
    scene.ground.client.create("deployments", {"metadata": meta, "spec": spec}, namespace)
    try:
        yield
    finally:
        scene.ground.client.delete("deployments", name, namespace)


@contextmanager
def _without_right(scene: Stage) -> Iterator[None]:
    role = scene.ground.client.get("clusterroles", "taintwarden")
    kept = [rule for rule in role["rules"] if "pods/eviction" not in rule.get("resources", [])]
    scene.ground.client.patch("clusterroles", "taintwarden", {"rules": kept})
    try:
        yield
    finally:
        scene.ground.client.patch("clusterroles", "taintwarden", {"rules": role["rules"]})


def test_an_operator_that_is_frozen_or_killed(stage: Callable[..., Stage], operator: Operator) -> None:
    scene, late = stage("alone-operator", {"a": 1}, 1), r"The operator has not renewed its Lease for \d+s"
    pid = operator.process.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        scene.sees(PERSON, late, late, "frozen")
    finally:
        os.kill(pid, signal.SIGCONT)
    scene.sees(FINE, r"The operator reported", r"Taintwarden .* reported")
    operator.kill9()
    scene.sees(PERSON, late, late, "killed")
    operator.start(wait_ready=False)
    scene.sees(FINE, r"The operator reported", r"Taintwarden .* reported")
