"""Placement begins and ends with the policy that asks for it."""

from blackbox.box import Box
from controlplane import Json
from e2e.stories import taint

LABEL = "value.taintwarden.io/box-sla"
GOOD, WORSE = taint("980", "box-sla", "NoSchedule"), taint("970", "box-sla", "NoSchedule")
SECONDS = 15


def remove(box: Box) -> int:
    return box.run_command("placement", "remove", "box-sla", "--yes").returncode


def test_labels_follow_the_value_and_go_when_placement_has_ended(box: Box) -> None:
    box.enforce(taints=[{"key": "box-sla", "placement": True}])
    node = box.node(GOOD)

    def placed(value: str | None) -> bool:
        labels: Json = box.cluster.get("nodes", node)["metadata"]["labels"]
        return labels.get(LABEL) == value

    box.wait(lambda: placed("980"), SECONDS, "the label of the value")
    box.taint(node, WORSE)
    box.wait(lambda: placed("970"), SECONDS, "the label of the next value")
    assert remove(box) == 1, "a policy places by the key"
    box.edit(taints=[{"key": "box-sla"}])
    box.wait(lambda: not placed("970"), SECONDS, "the label to restrict no pod any more")
    assert remove(box) == 0
    labels = box.cluster.get("nodes", node)["metadata"]["labels"]
    assert not [key for key in labels if key.endswith("taintwarden.io/box-sla")]
