"""What was decided change by change is what is decided at once: to judge everything again changes nothing."""

import pytest

from engine.rig import Rig, gt
from engine.test_woken import Limited
from taintwarden.engine.guard import Guard
from taintwarden.engine.machine import Phase, events
from taintwarden.engine.model import Profile
from taintwarden.engine.selectors import LabelSelector


class Tenanted(Limited):
    """The same with profiles, and a namespace that is relabelled."""

    def namespace(self) -> None:
        self.rig.feed(events.NamespaceSeen("shop", {"team": self.chance.choice("ab")}))

    def profile(self) -> None:
        gone = events.ProfileGone("shop", "x")
        seen = events.ProfileSeen(Profile("shop", "x", LabelSelector(), (gt(self.chance.choice(("100", "950"))),)))
        self.rig.feed(self.chance.choice((gone, seen, seen)))

    STEPS = (*Limited.STEPS, namespace, profile, profile)


def decided(rig: Rig) -> dict[str, object]:
    """What follows from the state of the cluster."""
    world = rig.world
    zones, guards = world.limiter.zones, world.limiter.guards.by_policy
    under_way = (Phase.IN_FLIGHT, Phase.LEAVING)
    return {
        "zones": {name: table for name in zones._zones if (table := zones.table(name))},
        "claims": {
            key: (one.due_at, one.verdict, one.policy, one.rests)
            for key, one in world.claims.by_key.items()
            if one.phase not in under_way
        },
        "guards": {name: _ahead(one) for name, one in guards.items()},
        "histories": {name: dict(state.histories) for name, state in world.cluster.nodes.items()},
    }


def _ahead(guard: Guard) -> tuple[object, ...]:
    return dict(guard.near), dict(guard._expected), dict(guard._standing), dict(guard.nodes)


@pytest.mark.parametrize("seed", range(15))
def test_to_judge_everything_again_changes_nothing(seed):
    history = Tenanted(seed)
    for number in range(150):
        history.chance.choice(Tenanted.STEPS)(history)
        if history.chance.random() < 0.6:
            history.rig.wake()
            if history.rig.world.may_evict:
                before = decided(history.rig)
                history.rig.machine._judging.all_again()
                history.rig.machine._judging.advance(1_000_000)
                after = decided(history.rig)
                assert {what: after[what] for what in before if before[what] != after[what]} == {}, number
