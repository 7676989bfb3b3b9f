"""Which pods count as evicted, and until when."""

import pytest

from engine.test_claims import POD, POLICY, claim
from taintwarden.engine.commands import Evict
from taintwarden.engine.machine.evictions import Evictions
from taintwarden.engine.model import Instant

WINDOW_SECONDS = POLICY.limits.guard.window_seconds


@pytest.mark.parametrize(("seconds", "counts"), [(WINDOW_SECONDS - 0.1, True), (WINDOW_SECONDS, False)])
def test_a_pod_that_leaves_within_a_window_after_its_call_counts(seconds, counts):
    evictions = Evictions()
    evictions.begin(Evict(POD, claim().verdict), 0.0, Instant(0.0, 0.0))
    evictions.settle(POD.uid, stays=False)
    assert (evictions.note_leaving(POD.uid, Instant(seconds, seconds)) is not None) == counts
    assert evictions.evicted(POLICY) == counts


def test_a_policy_that_is_in_force_again_has_evicted_none():
    evictions = Evictions()
    evictions.begin(Evict(POD, claim().verdict), 0.0, Instant(0.0, 0.0))
    evictions.settle(POD.uid, stays=False)
    evictions.note_leaving(POD.uid, Instant(1.0, 1.0))
    evictions.keep_only({(POLICY.name, POLICY.uid)})
    assert evictions.evicted(POLICY) == 1
    evictions.keep_only(set())
    assert evictions.evicted(POLICY) == 0


def test_a_pod_that_leaves_during_another_call_counts_once_when_that_has_ended():
    evictions = Evictions()
    for _ in range(2):
        evictions.begin(Evict(POD, claim().verdict), 0.0, Instant(0.0, 0.0))
        assert evictions.note_leaving(POD.uid, Instant(1.0, 1.0)) is None
        evictions.settle(POD.uid, stays=False)
    assert evictions.note_leaving(POD.uid, Instant(2.0, 2.0)) is not None
    assert evictions.evicted(POLICY) == 1
