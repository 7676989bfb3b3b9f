"""Who waits for something that is over is asked again: at rest, what refused a pod last still does."""

import pytest
from msgspec.structs import replace

from engine.rig import NO_LIMITS, Rig, budget
from engine.test_recount import MODES, History
from simulated import policy
from taintwarden.engine.limits import Refusal
from taintwarden.engine.machine import events
from taintwarden.engine.machine.claims import Claim
from taintwarden.engine.model import BounceSettings, GuardSettings, Policy, Share, Toleration, ZoneHealth

EVERY = {
    "max_unavailable": (None, Share(percent=50)),
    "node_max_concurrent": (None, 1, 2),
    "guard": (None, GuardSettings(min_pods=1, window_seconds=60, settle_seconds=0)),
    "zone_health": (None, ZoneHealth((Toleration("other", "Exists"),))),
    "bounce": (None, BounceSettings()),
    "namespace_evictions_per_second": (None, 0.5),
    "evictions_per_second": (None, 1.0),
}


class Limited(History):
    """The same with every limit, and budgets."""

    def policy(self, name: str) -> Policy:
        limits = {limit: self.chance.choice(values) for limit, values in EVERY.items()}
        return replace(policy(name), limits=replace(NO_LIMITS, **limits), mode=self.chance.choice(MODES))

    def budgets(self) -> None:
        name = self.chance.choice("xy")
        gone = events.BudgetGone("shop", name)
        seen = events.BudgetSeen(budget(name, self.chance.choice((0, 0, 1, 2)), app=self.chance.choice("ab")))
        self.rig.feed(self.chance.choice((gone, seen, seen)))

    def wants(self) -> None:
        self.rig.feed(
            events.WorkloadSeen(("shop", f"uid-of-o{self.chance.choice('01')}"), self.chance.choice((0, 2, 8)))
        )

    def stores(self) -> None:
        for name in self.rig.world.limiter.guards.by_policy:
            self.rig.save(name, succeeded=self.chance.random() < 0.9)

    def minute(self) -> None:
        self.rig.advance(61, step=1.0)

    STEPS = (*History.STEPS, budgets, budgets, wants, stores, stores, stores, minute)


def unwoken(rig: Rig) -> list[str]:
    """The pods that nothing refuses any more, and that nothing wakes."""
    world, acting = rig.world, rig.machine._acting
    if not world.may_evict:
        return []
    found = []
    for key, lines in world.queues._blocked.items():
        chained = {one.lane for one in world.queues._positions.values() if one.released_by == key}
        if world.queues._releases.at(key) is None:
            heads = [line.first_of(line.head()) for lane, line in lines.items() if lane not in chained]
            found += [
                f"{one.key} by {key}" for one in heads if acting._asks.at(one.key) is None and not _refused(rig, one)
            ]
    for lane, line in world.queues._lanes.items():
        refusal = acting.refused.get(lane.group) or world.queues.parked(lane)
        if refusal is not None and refusal.until is None:
            claim = line.first_of(line.head())
            if not _refused(rig, claim):
                found.append(f"{claim.key} by {refusal}")
    return found


def _refused(rig: Rig, claim: Claim) -> Refusal | None:
    pod = rig.world.cluster.nodes[claim.node].pods[claim.uid]
    return rig.world.limiter.admit(rig.machine._acting._request(claim, pod, others_could_go=True))


@pytest.mark.parametrize("seed", range(25))
def test_nobody_waits_for_what_is_over(seed):
    history = Limited(seed)
    for number in range(200):
        history.chance.choice(Limited.STEPS)(history)
        if history.chance.random() < 0.7:
            history.rig.wake()
            assert unwoken(history.rig) == [], number
