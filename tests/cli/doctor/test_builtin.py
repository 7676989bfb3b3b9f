"""Where the built-in taint eviction controller would undo what a policy says."""

import pytest

from cli.doctor.scene import asking, named, replicas
from cli.world import policy, taint, toleration
from taintwarden_cli.doctor.doctor_snapshot import BuiltIn

evicts = asking("builtin-evicts")
GOOD = named("n1", taint("980"))
STRICT = toleration("Gt", "950")
EXISTS = toleration("Exists")


def test_pods_with_only_extended_tolerations_are_found():
    (found,) = evicts(GOOD, replicas(3, extended=[STRICT]), policy())
    assert (str(found.subject), found.pods, found.severity) == ("Deployment shop/web", 3, "error")
    assert "if the built-in controller is on" in found.message


def test_pods_with_a_native_toleration_for_some_time_are_found():
    (found,) = evicts(GOOD, replicas(3, EXISTS | {"tolerationSeconds": 300}, extended=[STRICT]), policy())
    assert "no native toleration does indefinitely" in found.message


def test_known_flags_of_the_controller_make_the_finding_certain():
    (found,) = evicts(GOOD, replicas(3, extended=[STRICT]), policy(), built_in=BuiltIn.RUNS)
    assert found.message.endswith("they are evicted")


@pytest.mark.parametrize(
    "objects",
    [
        (GOOD, replicas(3, EXISTS, extended=[STRICT]), policy()),
        (GOOD, replicas(3, extended=[STRICT]), policy(mode="DryRun")),
        (GOOD, replicas(3, extended=[STRICT])),
        (named("n1", taint("900")), replicas(3, extended=[STRICT]), policy()),
        (
            named("n1", taint("980", effect="NoSchedule")),
            replicas(3, extended=[toleration("Gt", "950") | {"effect": "NoSchedule"}]),
            policy(taints=[{"key": "sla", "effects": ["NoSchedule"]}]),
        ),
    ],
)
def test_pods_that_the_controller_does_not_evict_are_no_finding(objects):
    assert evicts(*objects) == []


def test_absent_controller_is_no_finding():
    assert evicts(GOOD, replicas(3, extended=[STRICT]), policy(), built_in=BuiltIn.ABSENT) == []
