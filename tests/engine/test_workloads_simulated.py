"""No eviction leaves a workload with fewer Ready pods than it may spare, as far as anybody can know."""

from fractions import Fraction
from random import Random

import msgspec
import pytest

from simulated import Simulation, policy
from simulated.drawing import NO_LIMITS
from simulated.histories import BAD, TOLERATION, WATCHED_KINDS, Played, histories
from simulated.onlooker import Onlooker
from simulated.workloads import Workloads, is_ready
from taintwarden.engine.machine import commands
from taintwarden.engine.model import Owner, Share


def spare(share: Share, wanted: int) -> int:
    return max(1, share.number or int(Fraction(share.percent, 100) * wanted))


def missing(owner: Owner, known: Onlooker) -> int:
    ready = [
        pod for pod in known.pods.values() if pod.shared.owner == owner and pod.ready and pod.uid not in known.calls
    ]
    return known.wanted[owner.uid] - len(ready)


def overdrawn(history: Played) -> list[str]:
    found = []
    for moment, known in history.moments():
        if not isinstance(moment.what, commands.Evict):
            continue
        pod = known.pods[moment.what.pod.uid]
        share = known.limits(moment.what.verdict.policy.name).max_unavailable
        owner = pod.shared.owner
        if share is None or owner is None or not pod.ready or pod.uid in known.calls:
            continue
        assert owner.kind in WATCHED_KINDS
        if owner.uid not in known.wanted:
            found.append(f"{pod} leaves at {moment.at} although nobody knows how many {owner} wants")
        elif missing(owner, known) + 1 > spare(share, known.wanted[owner.uid]):
            found.append(f"{pod} leaves {owner} at {moment.at}: {missing(owner, known)} are missing already")
    return found


def test_no_eviction_leaves_fewer_ready_pods_than_a_workload_may_spare():
    for history in histories("max-unavailable"):
        assert overdrawn(history) == [], history


@pytest.mark.parametrize("kind", ["ReplicaSet", "CloneSet"])
@pytest.mark.parametrize("seed", range(8))
def test_whether_its_controller_is_watched_or_not_a_workload_has_pods_left(kind, seed):
    """Nothing but evictions happens to it, so what is missing is what was evicted and not replaced yet."""
    chance = Random(seed)
    share = chance.choice([Share(percent=10), Share(percent=40), Share(number=2)])
    limits = msgspec.structs.replace(NO_LIMITS, max_unavailable=share)
    sim = Simulation([msgspec.structs.replace(policy(taints=[{"key": "sla"}]), limits=limits)])
    for number in range(6):
        sim.create_node(f"n{number}")
    workloads = Workloads(sim, chance)
    web = workloads.create("web", chance.randint(3, 12), kind, tolerations=[TOLERATION], labels={"app": "web"})
    fewest: list[int] = []
    sim.observers.append(lambda *_: fewest.append(sum(map(is_ready, workloads.pods(web)))))
    sim.start()
    sim.run(5)
    for number in range(3):
        sim.set_taints(f"n{number}", [BAD])
        sim.run(sim.at + chance.uniform(0.1, 10.0))
    sim.run(sim.at + 200)
    assert min(fewest) >= web.replicas - spare(share, web.replicas)
    assert not any(pod["spec"]["nodeName"] in ("n0", "n1", "n2") for pod in sim.pods.values())
