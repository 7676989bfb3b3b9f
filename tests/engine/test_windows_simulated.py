"""Outside its windows a policy evicts nobody."""

from simulated.drawing import is_open
from simulated.histories import Played, histories
from taintwarden.engine.machine import commands


def outside(history: Played) -> list[str]:
    found = []
    for moment, known in history.moments():
        if isinstance(moment.what, commands.Evict):
            policy = known.policies[moment.what.verdict.policy.name]
            windows = () if policy.reclaim else policy.windows
            if windows and not any(is_open(window, moment.now.wall) for window in windows):
                found.append(f"{moment.what.pod} leaves at {moment.at}")
    return found


def test_outside_its_windows_a_policy_evicts_nobody():
    for history in histories("window"):
        assert outside(history) == [], history
