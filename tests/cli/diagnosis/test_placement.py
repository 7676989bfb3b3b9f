"""Labels for the scheduler that do not say what the taints say."""

import pytest

from cli.diagnosis.scene import asking, named
from cli.world import policy, taint

stale, inexpressible = asking("placement-labels"), asking("placement-inexpressible")
PLACES = policy(taints=[{"key": "sla", "placement": True, "valueType": "Integer"}])
LABEL = "value.taintwarden.io/sla"


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (named("a1", taint("980")), f"{LABEL}=980 is missing"),
        (named("a1", taint("980"), **{LABEL: "900"}), f"{LABEL} is 900 and should be 980"),
        (named("a1", **{LABEL: "900"}), f"{LABEL}=900 is left over"),
    ],
)
def test_labels_that_are_not_in_step(node, words):
    (found,) = stale(node, PLACES)
    assert (str(found.subject), words in found.message) == ("Node a1", True)


def test_labels_in_step_are_left_in_peace():
    assert stale(named("a1", taint("980"), **{LABEL: "980"}), PLACES) == []
    assert stale(named("a1", taint("980")), policy()) == []


def test_value_that_no_label_can_express():
    assert len(inexpressible(named("a1", taint("0950")), PLACES)) == 1
    assert inexpressible(named("a1", taint("950")), PLACES) == []
