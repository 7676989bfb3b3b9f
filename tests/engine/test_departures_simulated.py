"""A node never has more pods on their way out than it may, as far as anybody can know."""

from simulated.histories import Played, histories
from simulated.onlooker import Onlooker
from taintwarden.engine.machine import commands
from taintwarden.engine.model import Pod

OVERDUE_SECONDS = 15
"""A pod that should have stopped so long ago is on a node that does not answer: it holds up nobody."""


def others_leaving(pod: Pod, known: Onlooker, at: float) -> int:
    asked = sum(uid != pod.uid and known.pods[uid].node == pod.node for uid in known.calls if uid in known.pods)
    stopping = known.terminating.values()
    return asked + sum(node == pod.node and until + OVERDUE_SECONDS > at for node, until in stopping)


def crowded(history: Played) -> list[str]:
    found = []
    for moment, known in history.moments():
        if not isinstance(moment.what, commands.Evict):
            continue
        pod = moment.what.pod
        most = known.limits(moment.what.verdict.policy.name).node_max_concurrent
        if most is not None and (others := others_leaving(pod, known, moment.at)) >= most:
            found.append(f"{pod} leaves {pod.node} at {moment.at} with {others} others")
    return found


def test_a_node_has_no_more_pods_on_their_way_out_than_it_may():
    for history in histories("per-node"):
        assert crowded(history) == [], history
