"""The sentences in Events, conditions and logs."""

import pytest

from controller import policy, verdict
from taintwarden.controller.words import wording
from taintwarden.engine.evaluate import VerdictKind
from taintwarden.engine.limits import refusal
from taintwarden.engine.machine.claim_views import SETTLING
from taintwarden.engine.model import Gates, Toleration, Tolerations
from taintwarden.engine.reported_status import LimitStatus, StuckPod

DUE = "2023-11-14T22:13:20Z"

GT = Toleration(key="sla", operator="Gt", value="950")
EXISTS = Toleration(key="sla", operator="Exists", toleration_seconds=30)
OTHER = Toleration(key="spot", operator="Exists")


def why(*tolerations: Toleration, gates: Gates | None = None, **more: object) -> str:
    return wording.why(verdict(tolerations=Tolerations(tuple(tolerations)), **more), gates)


@pytest.mark.parametrize(("number", "said"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods")])
def test_one_pod_is_singular_and_other_numbers_are_plural(number, said):
    assert wording.pods(number) == said


def test_every_limit_has_a_reason_for_its_delay():
    limits = {value for name, value in vars(refusal).items() if name.isupper() and isinstance(value, str)}
    assert set(refusal.DELAYS) == limits


def test_a_limit_is_named_with_number_reason_and_times():
    said = wording.held(LimitStatus("policy-rate", 97, DUE, "2023-11-14T22:13:30Z"))
    assert said == (
        "policy-rate delays 97 since 2023-11-14T22:13:20Z: the rate of the policy; the next may be evicted at "
        "2023-11-14T22:13:30Z"
    )


def test_a_limit_without_an_end_names_no_end():
    said = wording.held(LimitStatus("guard", 97, DUE))
    assert said == "guard delays 97 since 2023-11-14T22:13:20Z: it has tripped"


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("failing", "eviction calls fail or hang"),
        ("budget", "a PodDisruptionBudget allows no disruption now"),
        ("zone", "limit zone of policy sla: nodes of the zone are unhealthy"),
        ("guard", "the guard of policy sla holds evictions: it has tripped"),
    ],
)
def test_each_limit_says_what_pods_wait_for(limit, said):
    assert wording.waiting(limit, "sla", "") == said


DETAIL = "PodDisruptionBudget shop/web allows no disruption now"


def test_an_armed_guard_says_that_it_waits_for_the_rest_of_the_wave():
    said = "the guard of policy sla waits for the rest of the wave (settleSeconds)"
    assert wording.waiting("guard", "sla", SETTLING) == said


def test_a_message_that_names_the_budget_is_not_extended():
    assert wording.why_held("budget", DETAIL) == DETAIL


def test_a_server_that_fails_is_named():
    assert "the API server fails" in wording.why_held("calls", "")
    assert wording.why_held("calls", "40 calls are in progress") == "40 calls are in progress"


def test_violated_by_a_comparison():
    assert why(GT) == "taint sla=940:NoExecute is not tolerated (sla Gt '950' does not hold)"


def test_a_taint_without_a_toleration_says_so():
    assert why(OTHER) == "taint sla=940:NoExecute is not tolerated (no toleration for it)"


def test_every_toleration_for_the_key_says_why_it_does_not_hold():
    exact = Toleration(key="sla", value="980")
    assert why(GT, exact).endswith("(sla Gt '950' does not hold; sla Equal '980' does not hold)")


@pytest.mark.parametrize(
    ("toleration", "said"),
    [
        (Toleration(key="sla", operator="Gt", value="x"), "has a value that cannot be compared"),
        (Toleration(key="sla", operator="Like", value="9"), "has an unknown operator"),
    ],
)
def test_a_toleration_that_cannot_be_evaluated_is_the_reason(toleration, said):
    assert said in why(toleration)


def test_a_value_that_cannot_be_compared_is_named():
    assert "cannot compare the taint's value" in why(GT, value="high")


def test_an_operator_that_is_switched_off_says_so():
    assert "uses an operator that is switched off" in why(GT, gates=Gates(numeric_operators=False))


def test_grace_is_named():
    assert why(GT, seconds=30).endswith("does not hold), 30 s of grace")


def test_a_quarantine_is_named():
    policies = {"in_policy": policy(quarantine=True)}
    assert why(**policies) == "taint sla=940:NoExecute is a quarantine, and no toleration counts"
    assert why(seconds=60, **policies).endswith("no toleration counts, 60 s of grace")


def test_the_time_of_protection_is_named():
    protected = ", not within 4h of its binding (karpenter.sh/do-not-disrupt)"
    assert why(GT, seconds=30, protected_seconds=14_400.0).endswith(f"does not hold), 30 s of grace{protected}")
    used = {"kind": VerdictKind.TOLERATED_FOR, "toleration": EXISTS}
    assert why(EXISTS, protected_seconds=14_400.0, **used).endswith(f"for 30s only{protected}")


def test_a_judged_value_that_differs_is_named():
    said = why(GT, value="high", judged_value="940")
    assert said == (
        "taint sla=high:NoExecute, judged by its last valid value 940, is not tolerated (sla Gt '950' does not hold)"
    )


def test_a_tolerated_taint_names_the_toleration():
    assert why(EXISTS, kind=VerdictKind.TOLERATED, toleration=GT).endswith("is tolerated by sla Gt '950'")


def test_a_taint_tolerated_for_a_while_names_the_seconds():
    said = why(EXISTS, kind=VerdictKind.TOLERATED_FOR, toleration=EXISTS)
    assert said.endswith("is tolerated by sla Exists for 30s only")


def test_a_taint_value_that_was_never_valid_evicts_no_pod():
    said = "taint sla=high:NoExecute cannot be compared and never could, so it evicts no pod"
    assert why(GT, value="high", kind=VerdictKind.HELD) == said


@pytest.mark.parametrize(
    ("listed", "others"), [(1, "Z: a"), (3, "Z (and 2 more pods): a"), (10, "Z (and at least 9 more pods): a")]
)
def test_of_pods_that_should_have_ended_a_status_lists_the_first_ten(listed: int, others: str) -> None:
    stuck = StuckPod("shop", "web-0", "n1", "2026-01-01T00:00:00Z")
    assert others in wording.not_ended([stuck] * listed)
