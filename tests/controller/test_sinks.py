"""What streams deliver, as events for the machine."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controller import Clock, namespace_object, node_object, pod_object
from taintwarden.controller.cache import NamespaceSink, NodeSink, PodSink, Translator
from taintwarden.engine.machine import events
from taintwarden.telemetry.metrics import Metrics


class Fed:
    """A sink of each kind, and the events that come out of it."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.events: list[Any] = []
        parts = (self.events.append, Translator(Clock()), self.metrics)
        self.pods = PodSink("pods", *parts)
        self.nodes = NodeSink("nodes", *parts)
        self.namespaces = NamespaceSink("namespaces", *parts)

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


def test_listed_pods_are_seen(fed):
    fed.pods.list_began()
    fed.pods.listed([pod_object("a"), pod_object("b")])
    assert [event.pod.name for event in fed.events] == ["a", "b"]


def test_the_end_of_a_list_names_all_its_pods(fed):
    fed.pods.list_began()
    fed.pods.listed([pod_object("a")])
    fed.pods.listed([pod_object("b", metadata=TERMINATING)])
    fed.pods.list_ended("10")
    assert fed.events[-1] == events.PodsListed(frozenset({"uid-a", "uid-b"}))


def test_a_list_that_began_anew_forgets_the_one_before(fed):
    fed.pods.list_began()
    fed.pods.listed([pod_object("a")])
    fed.pods.list_began()
    fed.pods.listed([pod_object("b")])
    fed.pods.list_ended("10")
    assert fed.events[-1] == events.PodsListed(frozenset({"uid-b"}))


def test_the_first_complete_list_is_told(fed):
    fed.pods.list_began()
    fed.pods.listed([])
    assert not fed.pods.listed_once.is_set()
    fed.pods.list_ended("10")
    assert fed.pods.listed_once.is_set()


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_a_changed_pod_is_seen(fed, kind):
    fed.pods.changed([(kind, pod_object("a"))])
    assert isinstance(fed.events[0], events.PodSeen)


def test_a_deleted_pod_is_gone(fed):
    fed.pods.changed([("DELETED", pod_object("a"))])
    assert fed.events == [events.PodGone("uid-a", "n1")]


@pytest.mark.parametrize(
    "change",
    [{"metadata": TERMINATING}, {"status": {"phase": "Failed"}}],
    ids=["terminating", "failed"],
)
def test_a_pod_that_need_not_be_evicted_any_more_is_gone(fed, change):
    fed.pods.changed([("MODIFIED", pod_object("a", **change))])
    assert fed.events == [events.PodGone("uid-a", "n1")]


def test_changes_come_in_order(fed):
    fed.pods.changed([("ADDED", pod_object("a")), ("DELETED", pod_object("a")), ("ADDED", pod_object("b"))])
    assert [type(event).__name__ for event in fed.events] == ["PodSeen", "PodGone", "PodSeen"]


def test_a_pod_with_an_unreadable_time_is_undecodable_and_costs_no_other(fed):
    fed.pods.changed([("ADDED", pod_object("a", metadata={"creationTimestamp": "?"})), ("ADDED", pod_object("b"))])
    assert [event.pod.name for event in fed.events] == ["b"]
    assert fed.counted("taintwarden_undecodable_objects_total", resource="pods") == 1


def test_a_pod_with_an_unreadable_time_is_still_there(fed):
    fed.pods.list_began()
    fed.pods.listed([pod_object("a", metadata={"creationTimestamp": "?"})])
    fed.pods.list_ended("10")
    assert fed.events == [events.PodsListed(frozenset({"uid-a"}))]


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_listed_nodes_are_seen_and_the_end_names_them(fed):
    fed.nodes.list_began()
    fed.nodes.listed([node_object("n1"), node_object("n2")])
    fed.nodes.list_ended("10")
    seen = [event.node.name for event in fed.events[:2]]
    assert seen == ["n1", "n2"]
    assert fed.events[2:] == [events.NodesListed(frozenset({"n1", "n2"})), events.NodesReached(10)]
    assert fed.nodes.listed_once.is_set()


def test_changed_nodes_are_seen_and_deleted_ones_gone(fed):
    fed.nodes.changed([("MODIFIED", node_object("n1")), ("DELETED", node_object("n2"))])
    assert fed.events[0].node.name == "n1"
    assert fed.events[1] == events.NodeGone("n2")


def test_how_far_the_node_stream_has_come_is_told(fed):
    fed.nodes.reached("99")
    assert fed.events == [events.NodesReached(99)]


def test_how_far_other_streams_have_come_is_nothing(fed):
    fed.pods.reached("99")
    fed.namespaces.reached("99")
    assert fed.events == []


# -- namespaces -------------------------------------------------------------------------------------------------------


def test_listed_namespaces_are_seen_with_their_labels(fed):
    fed.namespaces.list_began()
    fed.namespaces.listed([namespace_object("shop", team="a")])
    fed.namespaces.list_ended("10")
    assert fed.events == [events.NamespaceSeen("shop", {"team": "a"})]
    assert fed.namespaces.listed_once.is_set()


def test_a_namespace_that_the_next_list_does_not_name_is_gone(fed):
    for names in (["a", "b"], ["b"]):
        fed.take()
        fed.namespaces.list_began()
        fed.namespaces.listed([namespace_object(name) for name in names])
        fed.namespaces.list_ended("10")
    assert fed.events == [events.NamespaceSeen("b", {}), events.NamespaceGone("a")]


def test_a_namespace_that_came_by_the_watch_goes_by_the_list(fed):
    fed.namespaces.list_began()
    fed.namespaces.list_ended("10")
    fed.namespaces.changed([("ADDED", namespace_object("a")), ("ADDED", namespace_object("b"))])
    fed.namespaces.changed([("DELETED", namespace_object("b"))])
    fed.take()
    fed.namespaces.list_began()
    fed.namespaces.listed([])
    fed.namespaces.list_ended("11")
    assert fed.events == [events.NamespaceGone("a")]


def test_a_list_that_began_twice_still_notices_who_is_gone(fed):
    fed.namespaces.list_began()
    fed.namespaces.listed([namespace_object("a")])
    fed.namespaces.list_ended("10")
    fed.namespaces.list_began()
    fed.namespaces.listed([])
    fed.namespaces.list_began()
    fed.namespaces.listed([])
    fed.namespaces.list_ended("11")
    assert events.NamespaceGone("a") in fed.events


# -- what all share ---------------------------------------------------------------------------------------------------


def test_an_undecodable_object_is_always_counted_and_logged_once(fed):
    with capture_logs() as logs:
        for _ in range(3):
            fed.nodes.undecodable("n1", "labels are no map")
    assert fed.counted("taintwarden_undecodable_objects_total", resource="nodes") == 3
    assert logs == [
        {
            "event": "object-undecodable",
            "log_level": "warning",
            "resource": "nodes",
            "name": "n1",
            "reason": "labels are no map",
        }
    ]


def test_another_reason_is_logged_again(fed):
    with capture_logs() as logs:
        fed.nodes.undecodable("n1", "one")
        fed.nodes.undecodable("n1", "two")
    assert [entry["reason"] for entry in logs] == ["one", "two"]


def test_what_is_remembered_of_undecodable_objects_is_bounded(fed):
    with capture_logs():
        for number in range(2_500):
            fed.pods.undecodable(str(number), "why")
    assert len(fed.pods._undecodable) <= 1_001


@pytest.mark.parametrize(("reason", "logged"), [("ended", 0), ("expired", 1), ("unreachable", 1), ("refused", 1)])
def test_restarts_are_counted_and_logged_unless_the_time_was_over(fed, reason, logged):
    with capture_logs() as logs:
        fed.pods.restarted(reason, "detail")
    assert fed.counted("taintwarden_watch_restarts_total", resource="pods", reason=reason) == 1
    assert [entry["event"] for entry in logs] == ["watch-restarted"] * logged
