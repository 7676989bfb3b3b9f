"""Handlers turn the objects of streams into events for the machine."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controller import (
    NOW,
    Clock,
    budget_object,
    deletion,
    deliver,
    namespace_object,
    node_object,
    pod_object,
    workload_object,
)
from engine.kept import kept
from engine.rig import limited
from taintwarden.controller.decoding.bounds import MAX_SELECTED
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.decoding.times import moment
from taintwarden.controller.handlers.keyed_handlers import (
    BudgetHandler,
    DeploymentHandler,
    NamespaceHandler,
    WorkloadHandler,
)
from taintwarden.controller.handlers.stream_handlers import NodeHandler, PodHandler, StreamHandler
from taintwarden.engine import events
from taintwarden.engine.limit_settings import PerWorkload
from taintwarden.engine.model import Budget
from taintwarden.engine.selectors import LabelSelector
from taintwarden.kube.wire.kinds import MAX_TAINTS, Identity
from taintwarden.telemetry.metrics import Metrics


class Fed:
    """A handler of each kind, and the events that it feeds."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.events: list[Any] = []
        parts, decoder = (self.events.append, self.metrics), Decoder(Clock())
        self.pods = PodHandler("pods", *parts, decoder)
        self.nodes = NodeHandler("nodes", *parts, decoder)
        self.namespaces = NamespaceHandler("namespaces", *parts)
        self.workloads = WorkloadHandler("replicasets", *parts)
        self.budgets = BudgetHandler("poddisruptionbudgets", *parts)

    def take(self) -> list[Any]:
        taken, self.events[:] = list(self.events), []
        return taken

    def counted(self, name: str, **labels: str) -> float:
        registry: CollectorRegistry = self.metrics.registry
        return registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def fed() -> Fed:
    return Fed()


TERMINATING = {"deletionTimestamp": "2023-11-14T22:10:00Z"}

# -- pods -------------------------------------------------------------------------------------------------------------


def test_listed_pods_that_failed_are_gone(fed):
    fed.pods.list_began()
    fed.pods.listed([pod_object("a"), pod_object("b", status={"phase": "Failed"})])
    assert [type(event).__name__ for event in fed.events] == ["PodGone", "PodsSeen"]


def test_a_pod_that_ended_terminates_until_it_is_deleted(fed):
    deliver(fed.pods, pod_object("a", metadata=TERMINATING, status={"phase": "Succeeded"}))
    [gone] = fed.events
    assert (gone.uid, gone.until, gone.pod.name) == ("uid-a", moment(TERMINATING["deletionTimestamp"]), "a")


def test_a_mirror_pod_that_terminates_is_passed_on_without_the_pod(fed):
    mirrored = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    deliver(fed.pods, pod_object("a", metadata=TERMINATING | mirrored))
    assert [one.pod for one in fed.events] == [None]


def test_a_list_shows_the_pods_that_terminate(fed):
    """They may have been due before this process began."""
    fed.pods.list_began()
    fed.pods.listed([pod_object("a", metadata=TERMINATING)])
    [gone] = fed.events
    assert (gone.uid, gone.pod.uid, gone.pod.node) == ("uid-a", "uid-a", "n1")


def test_a_page_without_pods_that_run_is_no_event(fed):
    fed.pods.list_began()
    fed.pods.listed([pod_object("a", metadata={"creationTimestamp": "?"})])
    assert fed.events == []


def test_the_end_of_a_list_names_all_its_pods(fed):
    fed.pods.list_began()
    fed.pods.listed([pod_object("a")])
    fed.pods.listed([pod_object("b", metadata=TERMINATING)])
    fed.pods.list_ended("10")
    assert fed.events[-1] == events.PodsListed({"uid-a": "n1", "uid-b": "n1"}, 10)


def test_a_list_that_begins_again_drops_the_incomplete_one(fed):
    fed.pods.list_began()
    fed.pods.listed([pod_object("a")])
    fed.pods.list_began()
    fed.pods.listed([pod_object("b")])
    fed.pods.list_ended("10")
    assert fed.events[-1] == events.PodsListed({"uid-b": "n1"}, 10)


def test_an_empty_list_is_passed_on(fed):
    fed.pods.list_began()
    fed.pods.listed([])
    fed.pods.list_ended("10")
    assert fed.events == [events.PodsListed({}, 10)]


def test_a_changed_pod_is_seen(fed):
    deliver(fed.pods, pod_object("a"))
    assert isinstance(fed.events[0], events.PodSeen)


def test_a_deleted_pod_is_gone(fed):
    deliver(fed.pods, deletion(pod_object("a")))
    assert fed.events == [events.PodGone("uid-a", "n1")]


def test_a_deleted_pod_that_never_had_a_node_is_ignored(fed):
    deliver(fed.pods, Identity("a", "shop", "uid-a", "7"))
    assert fed.events == []


def test_an_unbound_pod_that_terminates_is_ignored(fed):
    deliver(fed.pods, pod_object("a", spec={"nodeName": ""}, metadata=TERMINATING))
    assert fed.events == []


def test_a_pod_that_finished_is_gone(fed):
    deliver(fed.pods, pod_object("a", status={"phase": "Failed"}))
    assert fed.events == [events.PodGone("uid-a", "n1")]


@pytest.mark.parametrize(("at", "until"), [("2023-11-14T22:14:20Z", NOW + 60), ("soon", None)])
def test_a_pod_that_terminates_is_on_its_node_until_its_grace_is_over(fed, at, until):
    deliver(fed.pods, pod_object("a", metadata={"deletionTimestamp": at}))
    [gone] = fed.events
    assert (gone.uid, gone.node, gone.until, gone.pod is None) == ("uid-a", "n1", until, until is None)


def test_a_pod_with_an_unreadable_time_does_not_affect_others(fed):
    deliver(fed.pods, pod_object("a", metadata={"creationTimestamp": "?"}), pod_object("b"))
    assert [event.pod.name for event in fed.events] == ["b"]
    assert fed.counted("taintwarden_undecodable_objects_total", resource="pods") == 1


def test_a_pod_with_an_unreadable_time_is_still_there(fed):
    fed.pods.list_began()
    fed.pods.listed([pod_object("a", metadata={"creationTimestamp": "?"})])
    fed.pods.list_ended("10")
    assert fed.events == [events.PodsListed({"uid-a": "n1"}, 10)]


def test_a_deleted_pod_that_does_not_decode_is_gone(fed):
    assert fed.pods.lost(Identity("a", "shop", "uid-a", "7", "n1"))
    assert fed.events == [events.PodGone("uid-a", "n1")]


@pytest.mark.parametrize("what", [Identity("a", "shop", "", "7", "n1"), Identity("a", "shop", "uid-a", "7", None)])
def test_a_deleted_pod_without_uid_or_node_needs_a_list(fed, what):
    assert not fed.pods.lost(what)
    assert fed.events == []


def test_the_known_state_of_a_pod_that_does_not_decode_is_kept(fed):
    fed.pods.undecodable(Identity("a", "shop", "uid-a", "7", "n1"), "why")
    assert fed.events == []
    assert kept(fed.pods, "uid-a") == []


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("pods", [events.PodsListed({"uid-a": "n1"}, 10)]),
        ("nodes", [events.NodeUnreadable("n1"), events.NodesListed(frozenset({"n1"}), 10)]),
        ("namespaces", []),
    ],
)
def test_an_object_of_a_list_that_does_not_decode_is_still_there(fed, named, says):
    """The version known before counts on."""
    handler = getattr(fed, named)
    if named == "namespaces":
        deliver(handler, namespace_object("n1"))
    fed.events.clear()
    handler.list_began()
    handler.undecodable(Identity("n1", "", "uid-a", "7", "n1"), "why")
    handler.listed([])
    handler.list_ended("10")
    assert fed.events == says


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_listed_nodes_are_seen_and_the_end_of_the_list_names_them(fed):
    fed.nodes.list_began()
    fed.nodes.listed([node_object("n1"), node_object("n2")])
    fed.nodes.list_ended("10")
    seen = [event.node.name for event in fed.events[:2]]
    assert seen == ["n1", "n2"]
    assert fed.events[2:] == [events.NodesListed(frozenset({"n1", "n2"}), 10)]


def test_changed_nodes_are_seen_and_deleted_ones_gone(fed):
    deliver(fed.nodes, node_object("n1"), deletion(node_object("n2")))
    assert fed.events[0].node.name == "n1"
    assert fed.events[1] == events.NodeGone("n2")


def test_of_a_node_with_too_many_taints_the_first_ones_count(fed):
    taints = [{"key": f"k{number}", "effect": "NoExecute"} for number in range(MAX_TAINTS + 1)]
    with capture_logs() as logs:
        for few in (taints[:-1], taints):
            deliver(fed.nodes, node_object(taints=few))
    assert [[taint.key for taint, _ in event.node.taints] for event in fed.events] == [
        [one["key"] for one in taints[:-1]] for _ in range(2)
    ]
    [said] = logs
    assert (said["name"], said["reason"]) == ("n1", "has more than 250 taints, and only the first 250 count")
    assert fed.counted("taintwarden_undecodable_objects_total", resource="nodes") == 1


def test_nodes_of_a_list_are_marked_as_listed(fed):
    fed.nodes.list_began()
    fed.nodes.listed([node_object("n1")])
    fed.nodes.list_ended("10")
    deliver(fed.nodes, node_object("n1"))
    assert [event.listed for event in fed.events if isinstance(event, events.NodeSeen)] == [True, False]


def test_a_deleted_node_that_does_not_decode_is_gone(fed):
    assert fed.nodes.lost(Identity("n1"))
    assert fed.events == [events.NodeGone("n1")]


def test_a_deleted_node_without_a_name_needs_a_list(fed):
    assert not fed.nodes.lost(Identity())
    assert fed.events == []


def test_the_version_that_the_node_stream_reached_is_passed_on(fed):
    fed.nodes.reached("99")
    assert fed.events == [events.NodesReached(99)]


def test_the_versions_that_other_streams_reached_are_ignored(fed):
    fed.pods.reached("99")
    for handler in (fed.namespaces, fed.workloads, fed.budgets):
        handler.reached("99")
    assert fed.events == []


# -- namespaces -------------------------------------------------------------------------------------------------------


def test_listed_namespaces_are_seen_with_their_labels(fed):
    fed.namespaces.list_began()
    fed.namespaces.listed([namespace_object("shop", team="a")])
    fed.namespaces.list_ended("10")
    assert fed.events == [events.NamespaceSeen("shop", {"team": "a"})]


def test_a_namespace_that_the_next_list_does_not_name_is_gone(fed):
    for names in (["a", "b"], ["b"]):
        fed.take()
        fed.namespaces.list_began()
        fed.namespaces.listed([namespace_object(name) for name in names])
        fed.namespaces.list_ended("10")
    assert fed.events == [events.NamespaceSeen("b", {}), events.NamespaceSeen("a")]


def test_a_namespace_of_the_watch_is_gone_if_the_next_list_does_not_name_it(fed):
    fed.namespaces.list_began()
    fed.namespaces.list_ended("10")
    deliver(fed.namespaces, namespace_object("a"), namespace_object("b"))
    deliver(fed.namespaces, deletion(namespace_object("b")))
    fed.take()
    fed.namespaces.list_began()
    fed.namespaces.listed([])
    fed.namespaces.list_ended("11")
    assert fed.events == [events.NamespaceSeen("a")]


def test_an_incomplete_list_keeps_no_namespace(fed):
    deliver(fed.namespaces, namespace_object("a"), namespace_object("b"))
    fed.namespaces.list_began()
    fed.namespaces.listed([namespace_object("a")])
    fed.namespaces.list_began()
    fed.namespaces.listed([namespace_object("b")])
    fed.namespaces.list_ended("11")
    assert [one for one in fed.events if one == events.NamespaceSeen(one.name)] == [events.NamespaceSeen("a")]


@pytest.mark.parametrize(("what", "fed_events"), [(Identity("a"), [events.NamespaceSeen("a")]), (Identity(), [])])
def test_a_deleted_namespace_that_does_not_decode_is_gone_if_it_has_a_name(fed, what, fed_events):
    deliver(fed.namespaces, namespace_object("a"))
    assert fed.namespaces.lost(what) is bool(fed_events)
    assert fed.events[1:] == fed_events


# -- workloads --------------------------------------------------------------------------------------------------------


def list_all(handler: StreamHandler[Any], *objects: Any) -> None:
    handler.list_began()
    handler.listed(objects)
    handler.list_ended("10")


def test_listed_workloads_are_seen_with_their_desired_replicas(fed):
    list_all(fed.workloads, workload_object("a", replicas=3), workload_object("b", replicas=0))
    assert fed.events == [events.WorkloadSeen(("shop", "a"), 3), events.WorkloadSeen(("shop", "b"), 0)]


def test_a_workload_is_passed_on_again_only_when_its_replicas_change(fed):
    changes = [workload_object("a", {"active": number}, replicas=2 + number // 2) for number in range(4)]
    deliver(fed.workloads, *changes)
    assert fed.events == [events.WorkloadSeen(("shop", "a"), 2), events.WorkloadSeen(("shop", "a"), 3)]


def test_a_list_passes_on_no_workloads_that_did_not_change(fed):
    for _ in range(2):
        list_all(fed.workloads, workload_object("a", replicas=3))
    assert fed.events == [events.WorkloadSeen(("shop", "a"), 3)]


def test_a_deleted_workload_is_gone_once(fed):
    web = workload_object("a", replicas=3)
    deliver(fed.workloads, web, deletion(web), deletion(web))
    assert fed.events == [events.WorkloadSeen(("shop", "a"), 3), events.WorkloadSeen(("shop", "a"))]


def test_a_workload_that_comes_back_is_passed_on_again(fed):
    web = workload_object("a", replicas=3)
    for change in (web, deletion(web), web):
        fed.take()
        deliver(fed.workloads, change)
    assert fed.events == [events.WorkloadSeen(("shop", "a"), 3)]


def test_an_undecodable_workload_counts_as_gone(fed):
    deliver(fed.workloads, workload_object("a", replicas=3))
    fed.workloads.undecodable(Identity("web", "shop", "a"), "replicas is not a number")
    assert fed.events[1:] == [events.WorkloadSeen(("shop", "a"))]
    assert fed.counted("taintwarden_undecodable_objects_total", resource="replicasets") == 1


@pytest.mark.parametrize("what", [Identity(), Identity("web", "shop", "uid-unheard")])
def test_an_undecodable_workload_that_is_not_known_changes_nothing(fed, what):
    fed.workloads.undecodable(what, "why")
    assert fed.events == []


@pytest.mark.parametrize("what", [Identity("web", "", "a"), Identity("web", "shop", "")])
def test_a_deleted_workload_without_namespace_or_uid_needs_a_list(fed, what):
    deliver(fed.workloads, workload_object("a", replicas=3))
    assert not fed.workloads.lost(what)


BY_APP = limited(per_workload=PerWorkload(label="app"))
DB = {"metadata": {"labels": {"app": "db", "tier": "x"}}}


def test_labels_of_pods_are_passed_on_only_while_a_policy_names_them(fed):
    for policies in ((), (BY_APP,), ()):
        fed.workloads.follow(policies)
        deliver(fed.workloads, workload_object("a", replicas=1, template=DB))
    assert [one.labels for one in fed.events] == [(), (("app", "db"),), ()]


def test_another_value_of_a_label_is_passed_on_even_with_the_same_replicas(fed):
    fed.workloads.follow([BY_APP])
    for value in ("db", "db", "web", ""):
        template = {"metadata": {"labels": {"app": value}}}
        deliver(fed.workloads, workload_object("a", replicas=1, template=template))
    assert [one.labels for one in fed.events] == [(("app", "db"),), (("app", "web"),), ()]


def test_controllers_are_listed_again_if_policies_name_new_labels(fed):
    by_tier = limited("q", per_workload=PerWorkload(label="tier"))
    named = [(), (BY_APP,), (BY_APP, limited("q")), (by_tier, BY_APP), (by_tier,), ()]
    assert [fed.workloads.follow(one) for one in named] == [False, True, False, True, True, False]


def test_a_workload_with_labels_that_is_deleted_is_gone(fed):
    fed.workloads.follow([BY_APP])
    web = workload_object("a", replicas=1, template=DB)
    deliver(fed.workloads, web)
    fed.workloads.follow([])
    deliver(fed.workloads, deletion(web))
    assert fed.events[1:] == [events.WorkloadSeen(("shop", "a"))]


@pytest.mark.parametrize(
    ("resource", "expected"),
    [("replicasets", 4), ("statefulsets", 4), ("replicationcontrollers", 4), ("daemonsets", 5), ("jobs", 6)],
)
def test_each_kind_has_its_own_number_of_desired_pods(fed, resource, expected):
    handler = WorkloadHandler(resource, fed.events.append, fed.metrics)
    deliver(handler, workload_object("a", {"desiredNumberScheduled": 5}, replicas=4, parallelism=6))
    assert fed.events == [events.WorkloadSeen(("shop", "a"), expected)]


# -- budgets ----------------------------------------------------------------------------------------------------------

UNREADABLE = Budget("shop", "web", selector=None, allowed=0)


def test_listed_budgets_are_seen(fed):
    list_all(fed.budgets, budget_object(status={"disruptionsAllowed": 2}))
    [event] = fed.events
    assert (str(event.budget), event.budget.allowed) == ("shop/web", 2)


def test_a_budget_is_passed_on_at_every_event_even_unchanged(fed):
    deliver(fed.budgets, budget_object(), budget_object())
    assert [type(event) for event in fed.events] == [events.BudgetSeen] * 2


def test_a_budget_without_a_selector_is_not_passed_on(fed):
    deliver(fed.budgets, budget_object(selector=None))
    assert fed.events == []


def test_a_budget_that_loses_its_selector_is_gone(fed):
    deliver(fed.budgets, budget_object(), budget_object(selector=None))
    assert fed.events[1:] == [events.BudgetGone("shop", "web")]


def test_an_undecodable_budget_holds_its_namespace(fed):
    deliver(fed.budgets, budget_object(selector={}))
    assert fed.take()[0].budget.selector == LabelSelector()
    fed.budgets.undecodable(Identity("web", "shop"), "why")
    assert fed.events == [events.BudgetSeen(UNREADABLE)]
    assert fed.counted("taintwarden_undecodable_objects_total", resource="poddisruptionbudgets") == 1


def test_a_budget_that_is_too_large_holds_its_namespace(fed):
    labels = {f"label-{number}": "x" for number in range(MAX_SELECTED + 1)}
    deliver(fed.budgets, budget_object(selector={"matchLabels": labels}))
    assert fed.events == [events.BudgetSeen(UNREADABLE)]
    assert fed.counted("taintwarden_undecodable_objects_total", resource="poddisruptionbudgets") == 1


def test_an_undecodable_listed_budget_holds_until_a_list_does_not_name_it(fed):
    fed.budgets.list_began()
    fed.budgets.undecodable(Identity("web", "shop"), "why")
    fed.budgets.listed([])
    fed.budgets.list_ended("10")
    assert fed.take() == [events.BudgetSeen(UNREADABLE)]
    list_all(fed.budgets)
    assert fed.events == [events.BudgetGone("shop", "web")]


def test_an_undecodable_budget_that_is_deleted_is_gone(fed):
    fed.budgets.undecodable(Identity("web", "shop"), "why")
    assert fed.budgets.lost(Identity("web", "shop"))
    assert fed.events == [events.BudgetSeen(UNREADABLE), events.BudgetGone("shop", "web")]


def test_a_budget_that_is_corrected_counts_again(fed):
    fed.budgets.undecodable(Identity("web", "shop"), "why")
    deliver(fed.budgets, budget_object())
    assert fed.events[1].budget.selector is not None


@pytest.mark.parametrize("what", [Identity(), Identity("web"), Identity(namespace="shop")])
def test_an_undecodable_object_without_full_name_is_only_counted(fed, what):
    fed.budgets.undecodable(what, "why")
    assert fed.events == []
    assert fed.counted("taintwarden_undecodable_objects_total", resource="poddisruptionbudgets") == 1


def test_objects_that_cannot_be_read_are_logged_by_name(fed):
    labels = {f"label-{number}": "x" for number in range(MAX_SELECTED + 1)}
    with capture_logs() as logs:
        fed.namespaces.undecodable(Identity("shop"), "why")
        for name in ("web", "db"):
            deliver(fed.budgets, budget_object(name, selector={"matchLabels": labels}))
    assert [entry["name"] for entry in logs] == ["shop", "shop/web", "shop/db"]


# -- what all share ---------------------------------------------------------------------------------------------------


def test_an_undecodable_object_is_always_counted_and_logged_once(fed):
    with capture_logs() as logs:
        for _ in range(3):
            fed.nodes.undecodable(Identity("n1"), "labels are not a map")
    assert fed.counted("taintwarden_undecodable_objects_total", resource="nodes") == 3
    assert logs == [
        {
            "event": "object-undecodable",
            "log_level": "warning",
            "resource": "nodes",
            "name": "n1",
            "reason": "labels are not a map",
        }
    ]


def test_another_reason_is_logged_again(fed):
    with capture_logs() as logs:
        fed.nodes.undecodable(Identity("n1"), "one")
        fed.nodes.undecodable(Identity("n1"), "two")
    assert [entry["reason"] for entry in logs] == ["one", "two"]


@pytest.mark.parametrize("name", ["pods", "nodes", "namespaces", "workloads", "budgets"])
def test_each_change_of_live_is_passed_on_once(fed, name):
    handler = getattr(fed, name)
    for live in (True, False, False, True):
        handler.live(live=live)
    assert fed.events == [
        events.ViewChanged(handler.resource, live=False),
        events.ViewChanged(handler.resource, live=True),
    ]


@pytest.mark.parametrize(("reason", "logged"), [("ended", 0), ("expired", 1), ("unreachable", 1), ("refused", 1)])
def test_restarts_are_counted_and_logged_unless_the_watch_just_ended(fed, reason, logged):
    with capture_logs() as logs:
        fed.pods.restarted(reason, "detail")
    assert fed.counted("taintwarden_watch_restarts_total", resource="pods", reason=reason) == 1
    assert [entry["event"] for entry in logs] == ["watch-restarted"] * logged


def test_a_refused_watch_of_deployments_that_is_resumed_changes_nothing(fed):
    handler = DeploymentHandler("deployments", fed.events.append, fed.metrics)
    handler.live(live=True)
    fed.take()
    handler.restarted("refused", "too many requests")
    assert fed.take() == []


def test_deployments_that_are_refused_are_reported_when_they_are_not_known(fed):
    handler = DeploymentHandler("deployments", fed.events.append, fed.metrics)
    handler.live(live=True)
    handler.live(live=False)
    fed.take()
    handler.restarted("refused", "forbidden")
    assert fed.take() == [events.DeploymentsKnown(is_known=False, problem="forbidden")]
