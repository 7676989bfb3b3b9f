"""No eviction leaves a workload with fewer Ready pods than it may spare, as far as anybody can know."""

from fractions import Fraction

from simulated.histories import WATCHED_KINDS, Played, histories
from simulated.onlooker import Onlooker
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
        share = known.policies[moment.what.verdict.policy.name].limits.max_unavailable
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
