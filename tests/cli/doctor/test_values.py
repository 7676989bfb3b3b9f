"""Values of taints that cannot be compared."""

import pytest

from cli.doctor.scene import asking, named, replicas
from cli.world import Json, history, policy, profile, taint, toleration

unreadable = asking("taint-value-invalid")
STRICT = toleration("Gt", "950")
EXISTS = toleration("Exists")
TYPED = {"taints": [{"key": "sla", "valueType": "Integer"}]}


def test_value_that_is_not_of_the_policys_type_is_found():
    (found,) = unreadable(named("a1", taint("high")), policy(**TYPED))
    assert (str(found.subject), "policy sla expects Integer" in found.message) == ("Node a1", True)


def test_a_value_that_the_operator_reports_is_found_once():
    stored = policy(**TYPED)
    invalid = [{"node": "a1", "taint": "sla=high:NoExecute", "pods": 3}]
    stored["status"] = {"observedGeneration": 1, "invalidTaints": invalid}
    objects = (named("a1", taint("high")), stored)
    assert (len(unreadable(*objects)), asking("policy-problem")(*objects)) == (1, [])


def test_value_that_tolerations_cannot_compare_is_found():
    (found,) = unreadable(named("a1", taint("99.5")), replicas(3, STRICT), profile("p", STRICT, app="web"))
    assert found.message == "sla=99.5:NoExecute cannot be compared by the tolerations of Deployment shop/web"


def fell(*values: str) -> Json:
    """A node whose taint had these values, 100 s each."""
    made = named("a1", taint(values[-1]))
    ages = range(100 * len(values), 0, -100)
    recorded = history(*zip(values, ages, strict=True))
    made["metadata"]["annotations"] = {"taintwarden.io/taint-history": recorded}
    return made


@pytest.mark.parametrize("objects", [[policy(**TYPED)], replicas(3, STRICT)])
def test_the_remedy_is_the_last_value_that_can_be_compared(objects):
    """One that is made up would evict every pod above it."""
    (found,) = unreadable(fell("970", "980", "99.5", "98O"), *objects)
    assert found.remedy == "kubectl taint node a1 sla=980:NoExecute --overwrite"


@pytest.mark.parametrize("objects", [[policy(**TYPED)], replicas(3, STRICT)])
def test_without_such_a_value_the_remedy_says_what_is_wrong(objects):
    (found,) = unreadable(fell("98O"), *objects)
    edit = "kubectl taint node a1 sla=VALUE:NoExecute --overwrite"
    assert found.remedy == f"{edit}, with another VALUE: 'O' at position 3 is not a digit"


def test_many_workloads_that_compare_are_counted():
    asking_too = [one for number in range(5) for one in replicas(1, STRICT, name=f"web-{number}")]
    (found,) = unreadable(named("a1", taint("high")), asking_too)
    assert "and 2 more" in found.message


@pytest.mark.parametrize(
    "objects",
    [
        (named("a1", taint("980")), policy(**TYPED), replicas(1, STRICT)),
        (named("a1", taint("high")), replicas(1, EXISTS)),
        (named("a1", taint("99.5", key="other")), replicas(1, STRICT)),
        (named("a1", taint("high")), replicas(1, toleration("Gt", "950"), extended=[EXISTS])),
        (named("a1", taint("high")), policy(nodeSelector={"matchLabels": {"pool": "x"}}, **TYPED)),
        (named("a1", taint("high")), policy(nodeSelector={"matchLabels": {"pool": "x"}}), replicas(1, STRICT)),
        (named("a1", taint("high")), policy(podSelector={"matchLabels": {"app": "x"}}), replicas(1, STRICT)),
    ],
)
def test_value_that_no_toleration_compares_is_no_finding(objects):
    assert unreadable(*objects) == []


def test_under_a_type_a_value_may_be_invalid_to_a_comparison_alone():
    """10.0.20348.2700 is a version, and no semantic one."""
    typed = policy(taints=[{"key": "sla", "valueType": "Version"}])
    node = named("a1", taint("10.0.20348.2700"))
    (found,) = unreadable(node, typed, replicas(1, EXISTS, extended=[toleration("SemverGt", "10.0.0")]))
    assert "by the tolerations of Deployment shop/web" in found.message
    assert unreadable(node, typed, replicas(1, EXISTS, extended=[toleration("VersionGt", "10.0.0")])) == []
