"""Each state of placement is one finding of `doctor`, whose remedy is executed and helps, on the real scheduler."""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import pytest

from controlplane import Json, WorkingCluster, wait_until
from e2e.household import AFFINITY, BAD, GOOD, POOL, SECONDS, Household
from e2e.placement_table import Owner
from e2e.real_town import Servants, served
from taintwarden.cli.doctor.checks import daemon_sets, pending_pods, placement_checks

pytestmark = pytest.mark.timeout(300)
CHECKS = [
    "injection-skipped",
    *(one.id for module in (pending_pods, placement_checks, daemon_sets) for one in module.CHECKS),
]
INJECT = "taintwarden.io/inject"
EFFECT = "effect.taintwarden.io"


@pytest.fixture(scope="module")
def servants(populated_cluster: WorkingCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servants]:
    with served(populated_cluster, tmp_path_factory.mktemp("doctor")) as servants:
        yield servants


class State(ABC):
    """A household, and what is done to it."""

    check: ClassVar[str]
    remedy: ClassVar[str]
    """Words of it."""
    also: ClassVar[frozenset[str]] = frozenset()
    """Checks that find it, too."""

    def __init__(self, servants: Servants, house: Household) -> None:
        self.servants = servants
        self.house = house
        self.client = house.client
        self.other = f"example.com/{house.name}"
        """A label of the nodes, which has a version."""

    @abstractmethod
    def begin(self) -> None:
        """Bring it about."""

    @abstractmethod
    def follow(self) -> None:
        """Do what the remedy says."""

    def findings(self) -> dict[str, str]:
        """The remedy by check of what is found about the household: one finding each."""
        only = [word for check in CHECKS for word in ("--only", check)]
        _, said = self.servants.command("doctor", *only, "-o", "json")
        mine = [one for one in json.loads(said)["findings"] if self._is_mine(one)]
        found = {one["check"]: one["remedy"] for one in mine}
        assert len(found) == len(mine), mine
        return found

    def _is_mine(self, one: Json) -> bool:
        name = self.house.name
        return bool(one["namespace"] == name or one["name"] == name or one["name"].startswith(f"{name}-"))

    def inject(self, *, on: bool) -> None:
        self.client.patch("namespaces", self.house.name, {"metadata": {"labels": {INJECT: str(on).lower()}}})
        wait_until(lambda: self.house.is_completed() is on, SECONDS, "the API server to hear of it")

    def workload(self, resource: str, template: Json, **spec: object) -> None:
        app = template["metadata"]["labels"]["app"]
        body = {"selector": {"matchLabels": {"app": app}}, "template": template, **spec}
        self.client.create(resource, {"metadata": {"name": app}, "spec": body}, self.house.name)

    def set_template(self, resource: str, app: str, **template: object) -> None:
        self.client.patch(resource, app, {"spec": {"template": template}}, self.house.name)

    def restart(self, resource: str, app: str) -> None:
        stamp = {"kubectl.kubernetes.io/restartedAt": str(time.time())}
        self.set_template(resource, app, metadata={"annotations": stamp})

    def delete_pods(self, app: str) -> None:
        for pod in self.house.pods(app):
            self.client.delete("pods", pod["metadata"]["name"], self.house.name, grace_seconds=0)

    def profile(self, bound: str) -> None:
        above = {"key": self.house.key, "operator": "Gt", "value": bound}
        head = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TolerationProfile", "metadata": {"name": "p"}}
        if self.client.find("tolerationprofiles", "p", self.house.name):
            self.client.delete("tolerationprofiles", "p", self.house.name)
        self.client.create("tolerationprofiles", {**head, "spec": {"tolerations": [above]}}, self.house.name)
        template = unannotated(self.house)
        is_heard = lambda: bound in json.dumps(self.house.rehearsed(template).get("affinity", {}))  # noqa: E731
        self.house.wait(is_heard, "the webhook to hear of the profile")

    def list_labels(self, *labels: str) -> None:
        """Repeat these labels as numbers. Wait until operator and webhook have heard of it."""
        self.house.set_policy(versionLabels=list(labels))
        self.house.wait_observed()
        template = self.house.template("probe")
        template["metadata"]["annotations"] |= newer(self.other)
        spec = lambda: self.house.rehearsed(template)  # noqa: E731
        self.house.wait(
            lambda: (AFFINITY in spec()["nodeSelector"]) is (self.other not in labels), "the webhook to hear"
        )

    def exists(self) -> Json:
        return {"key": self.house.key, "operator": "Exists"}

    def wait_refused(self, app: str) -> None:
        def refused() -> bool:
            found = [one for pod in self.house.pods(app) for one in pod["status"].get("conditions", [])]
            return any(one.get("reason") == "Unschedulable" for one in found)

        wait_until(refused, SECONDS, f"{app} to be refused")


def unannotated(house: Household) -> Json:
    """A template whose pods tolerate what profiles say."""
    template = house.template("web")
    template["metadata"].pop("annotations")
    return template


class InjectionSkipped(State):
    check = "injection-skipped"
    remedy = "see that the webhook runs"

    def begin(self) -> None:
        self.servants.switch("webhook", on=False)
        self.workload("replicasets", self.house.template("web"))
        self.wait_refused("web")

    def follow(self) -> None:
        self.servants.switch("webhook", on=True)
        self.delete_pods("web")


class PendingOutdated(State):
    check = "pending-outdated"
    remedy = "kubectl delete pod web-"

    def begin(self) -> None:
        self.profile("990")
        self.workload("replicasets", unannotated(self.house))
        self.wait_refused("web")
        self.profile("950")

    def follow(self) -> None:
        self.delete_pods("web")


def newer(label: str) -> dict[str, str]:
    expression = {"key": label, "operator": "SemverGt", "values": ["1.0.0"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {AFFINITY: json.dumps({"requiredDuringSchedulingIgnoredDuringExecution": terms})}


def labelled(self: State) -> Json:
    """A template that compares the version of a label, which nodes have."""
    self.client.patch("nodes", self.house.first, {"metadata": {"labels": {self.other: "2.0.0"}}})
    template = self.house.template("web")
    template["metadata"]["annotations"] |= newer(self.other)
    return template


class PendingUnwritten(State):
    check = "pending-unwritten"
    remedy = "under versionLabels of a policy, then kubectl delete pod"

    def begin(self) -> None:
        self.workload("replicasets", labelled(self))
        self.wait_refused("web")

    def follow(self) -> None:
        self.list_labels(self.other)
        self.delete_pods("web")


class PendingUnpublished(State):
    check = "pending-unpublished"
    remedy = "under versionLabels of a policy"

    def begin(self) -> None:
        template = labelled(self)
        self.list_labels(self.other)
        self.list_labels()
        assert self.servants.command("placement", "remove", self.other, "--force", "--yes")[0] == 0
        self.list_labels(self.other)
        self.client.patch("nodes", self.house.first, {"spec": {"unschedulable": True}})
        self.workload("replicasets", template)
        self.wait_refused("web")
        self.list_labels()
        assert self.servants.command("placement", "remove", self.other, "--force", "--yes")[0] == 0
        self.client.patch("nodes", self.house.first, {"spec": {"unschedulable": False}})

    def follow(self) -> None:
        self.list_labels(self.other)


class PendingNowhere(State):
    check = "pending-nowhere"
    remedy = "add a node, correct a value"

    def begin(self) -> None:
        self.house.bare("web", "990")
        self.wait_refused("web")

    def follow(self) -> None:
        self.client.create_node(f"{self.house.name}-new", {POOL: self.house.name}, self.house.taints("999"))


class DaemonsetWaits(State):
    check = "daemonset-waits"
    remedy = "kubectl rollout restart daemonset/web"
    also = frozenset({"daemonset-incomplete"})

    def begin(self) -> None:
        self.inject(on=False)
        template = self.house.template("web")
        template["spec"]["tolerations"] = [self.exists()]
        self.workload("daemonsets", template)
        wait_until(lambda: len(self.house.pods("web")) == 3, SECONDS, "its pods")
        self.inject(on=True)
        self.delete_pods("web")
        self.wait_refused("web")

    def follow(self) -> None:
        self.restart("daemonsets", "web")


class PlacementMismatch(State):
    check = "placement-mismatch"
    remedy = "delete them one by one"

    def begin(self) -> None:
        self.client.patch("nodes", self.house.second, {"spec": {"unschedulable": True}})
        self.workload("replicasets", self.house.template("web"))
        self.house.wait(lambda: is_bound(self), "the pod to run")
        self.client.patch("nodes", self.house.second, {"spec": {"unschedulable": False}})
        self.house.set_value(self.house.first, BAD)
        self.house.wait_labels({self.house.first: BAD})

    def follow(self) -> None:
        self.delete_pods("web")


class PlacementEnded(State):
    check = "placement-ended"
    remedy = "restart the workloads that name them, then: taintwarden placement remove"

    def begin(self) -> None:
        self.workload("deployments", self.house.template("web"))
        self.house.wait(lambda: is_bound(self), "the pod to run")
        self.house.set_policy(taints=[{"key": self.house.key, "effects": ["PreferNoSchedule"]}], versionLabels=[])
        self.house.wait_labels({self.house.first: None})
        self.house.wait(lambda: not self.house.is_completed(), "the webhook to hear of it")

    def follow(self) -> None:
        self.set_template("deployments", "web", spec={"tolerations": [self.exists()]})
        wait_until(lambda: self.servants.command("placement", "remove", self.house.key, "--yes")[0] == 0, SECONDS, "it")


class PlacementVolumes(State):
    check = "placement-volumes"
    remedy = "under versionLabels of a policy"

    def begin(self) -> None:
        self.house.create(Owner.VOLUME)
        self.house.wait(lambda: bool(self.house.where(Owner.VOLUME)), "the pod to run")
        self.list_labels()

    def follow(self) -> None:
        self.list_labels("example.com/driver")


class PlacementTooLarge(State):
    check = "placement-too-large"
    remedy = "use fewer nodeSelectorTerms in the template"

    def begin(self) -> None:
        template = self.house.template("web")
        template["spec"]["affinity"] = selecting(65)
        self.workload("deployments", template, replicas=0)

    def follow(self) -> None:
        self.set_template("deployments", "web", spec={"affinity": selecting(1)})


def selecting(terms: int) -> Json:
    found = [{"matchExpressions": [{"key": f"k{number}", "operator": "Exists"}]} for number in range(terms)]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}}


class SpreadHonorsTaints(State):
    check = "spread-honors-taints"
    remedy = "set nodeTaintsPolicy to Ignore"

    def begin(self) -> None:
        self.inject(on=False)
        template = self.house.template("web")
        template["spec"] |= {"tolerations": [self.exists()], "topologySpreadConstraints": [spreading("Honor")]}
        self.workload("deployments", template, replicas=0)

    def follow(self) -> None:
        self.set_template("deployments", "web", spec={"topologySpreadConstraints": [spreading("Ignore")]})


def spreading(policy: str) -> Json:
    where = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    return {**where, "nodeTaintsPolicy": policy, "labelSelector": {"matchLabels": {"app": "web"}}}


class DaemonsetIncomplete(State):
    check = "daemonset-incomplete"
    remedy = "then kubectl rollout restart daemonset/web"

    def begin(self) -> None:
        self.inject(on=False)
        template = self.house.template("web")
        template["spec"]["tolerations"] = [self.exists()]
        self.workload("daemonsets", template)

    def follow(self) -> None:
        self.inject(on=True)
        self.restart("daemonsets", "web")


class PlacementLabels(State):
    check = "placement-labels"
    remedy = "the operator writes them while it leads"

    def begin(self) -> None:
        self.servants.switch("operator", on=False)
        self.house.set_value(self.house.first, "999")

    def follow(self) -> None:
        self.servants.switch("operator", on=True)


class PlacementInexpressible(State):
    check = "placement-inexpressible"
    remedy = "use values that the scheduler can compare"

    def begin(self) -> None:
        self.house.set_value(self.house.first, "0950")

    def follow(self) -> None:
        self.house.set_value(self.house.first, GOOD)


def is_bound(self: State) -> bool:
    pods = self.house.pods("web")
    return bool(pods) and all(pod["spec"].get("nodeName") for pod in pods)


STATES = State.__subclasses__()


@pytest.mark.parametrize("kind", STATES, ids=lambda kind: kind.check)
def test_one_finding_and_its_remedy(servants: Servants, kind: type[State]) -> None:
    for name in servants.has:
        servants.switch(name, on=True)
    house = Household(servants.ground)
    house.begin()
    try:
        state = kind(servants, house)
        assert state.findings() == {}
        state.begin()
        wait_until(lambda: state.findings().keys() == {kind.check, *kind.also}, SECONDS, f"{kind.check} to be found")
        assert kind.remedy in state.findings()[kind.check]
        state.follow()
        wait_until(lambda: not state.findings(), SECONDS, f"the remedy of {kind.check} to help")
        wait_until(lambda: not house.pods("web") or is_bound(state), SECONDS, "the pods to be bound")
    finally:
        house.clear()


def test_every_check_has_its_state() -> None:
    in_the_recipe = {"placement-missing"}  # test_readme_recipe.py
    assert {one.check for one in STATES} | in_the_recipe == set(CHECKS)
