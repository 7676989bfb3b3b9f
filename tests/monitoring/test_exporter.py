"""The exporter that people change by hand: what it takes, and what it serves."""

import pytest
import urllib3

from monitoring.exporter import Exporter


@pytest.fixture
def exporter():
    with Exporter() as started:
        started.values = {"a1": 0.985, "a2": 0.985}
        yield started


def put(exporter, nodes, said):
    return urllib3.request("PUT", f"{exporter.url}/{nodes}", body=said, retries=False, timeout=5)


def test_nodes_change_together(exporter):
    assert put(exporter, "a1,a2", "0.5").status == 200
    served = urllib3.request("GET", f"{exporter.url}/metrics", retries=False, timeout=5).data.decode()
    assert served == 'node_availability{node="a1"} 0.5\nnode_availability{node="a2"} 0.5\n'


@pytest.mark.parametrize(
    ("nodes", "said", "status", "why"),
    [("a1,a9", "0.5", 404, "no such node: a9\n"), ("a1", "half", 400, "'half' is no number\n")],
)
def test_what_it_does_not_understand_changes_nothing(exporter, nodes, said, status, why):
    answer = put(exporter, nodes, said)
    assert (answer.status, answer.data.decode()) == (status, why)
    assert exporter.values == {"a1": 0.985, "a2": 0.985}
