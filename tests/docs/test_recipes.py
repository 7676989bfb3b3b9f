"""The recipes of docs/policies.md, played by the machine that the operator runs."""

import pytest

from docs.pages import objects
from engine.rig import START, Rig, gt
from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile
from taintwarden.engine import commands, events

SHOWN = {one["metadata"]["name"]: one for where, one in objects() if where.startswith("docs/policies.md")}
NODES = ("n1", "n2", "n3", "n4")
HOUR = 3_600.0


class Night(Rig):
    """Nodes with a pod each. It is 23:13 in Berlin. Pods that are called stop when a test says so."""

    def __init__(self, hours_later: float = 0.0) -> None:
        super().__init__(parse_policy(SHOWN["over-night"] | {"metadata": {"name": "p", "uid": "u"}}), leading=False)
        self.wall += hours_later * HOUR
        self.feed(events.LeadershipChanged(leading=True))
        self.monotonic += HOUR
        for node in NODES:
            self.node(node)
            self.pod(f"of-{node}", node=node)
        for node in NODES:
            self.node(node, "sla=0")

    def pass_time(self, seconds: float = 30.0) -> list[str]:
        """Time passes, and records are stored. Returns the nodes whose pods were called."""
        self.store(seconds)
        while any(isinstance(one, commands.SavePlaces) for one in self.ordered):
            self.answer(commands.SavePlaces)
            self.store(5.0)
        called = self.evictions()
        for name in called:
            self.settle(name)
            self.gone(name, name.removeprefix("of-"), self.wall + 30)
        return [name.removeprefix("of-") for name in called]


def test_over_night_two_nodes_lose_pods_at_a_time():
    rig = Night()
    first = rig.pass_time()
    assert len(first) == 2
    assert rig.pass_time() == []
    for node in first:
        rig.gone(f"of-{node}", node)
    assert sorted([*first, *rig.pass_time()]) == list(NODES)


@pytest.mark.parametrize("hours_later", [7.0, 12.0, 22.5])
def test_by_day_no_node_loses_pods(hours_later):
    assert Night(hours_later).pass_time() == []


def test_batch_jobs_may_finish_for_four_hours():
    rig = Rig()
    rig.feed(events.ProfileSeen(parse_profile(SHOWN["finish"])))
    rig.pod("job", labels={"batch.kubernetes.io/job-name": "nightly-7"})
    rig.pod("web", gt())
    rig.node("n1", "sla=0")
    assert [rig.deadline(name) for name in ("job", "web")] == [4 * HOUR, 0.0]
    assert rig.wall == START
