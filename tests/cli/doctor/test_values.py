"""Values that nobody can compare, and comparisons that hold nowhere."""

import pytest

from cli.doctor.scene import asking, named, replicas, subjects
from cli.world import Json, history, pod, policy, profile, taint, toleration
from taintwarden.engine.model import Gates

unreadable = asking("taint-value-invalid")
nowhere = backwards = asking("toleration-holds-nowhere")
STRICT = toleration("Gt", "950")
EXISTS = toleration("Exists")
TYPED = {"taints": [{"key": "sla", "valueType": "Integer"}]}


def test_value_that_is_not_of_the_policys_type():
    (found,) = unreadable(named("a1", taint("high")), policy(**TYPED))
    assert (str(found.subject), "policy sla expects Integer" in found.message) == ("Node a1", True)


def test_value_that_tolerations_cannot_compare():
    (found,) = unreadable(named("a1", taint("99.5")), replicas(3, STRICT), profile("p", STRICT, app="web"))
    assert found.message == "sla=99.5:NoExecute cannot be compared, which Deployment shop/web ask for"


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
    assert found.remedy == "set a value that can be compared: 'O' at position 3 is no digit"


def test_many_who_ask_are_counted():
    asking_too = [one for number in range(5) for one in replicas(1, STRICT, name=f"web-{number}")]
    (found,) = unreadable(named("a1", taint("high")), asking_too)
    assert "and 2 more ask for" in found.message


@pytest.mark.parametrize(
    "objects",
    [
        (named("a1", taint("980")), policy(**TYPED), replicas(1, STRICT)),
        (named("a1", taint("high")), replicas(1, EXISTS)),
        (named("a1", taint("99.5", key="other")), replicas(1, STRICT)),
        (named("a1", taint("high")), replicas(1, toleration("Gt", "950"), extended=[EXISTS])),
        (named("a1", taint("high")), policy(nodeSelector={"matchLabels": {"pool": "x"}}, **TYPED)),
    ],
)
def test_value_that_nobody_compares_is_left_in_peace(objects):
    assert unreadable(*objects) == []


def test_comparison_the_wrong_way_round():
    (found,) = backwards(named("a1", taint("980")), named("a2", taint("990")), replicas(2, toleration("Lt", "950")))
    assert found.message == "sla Lt '950':NoExecute holds for none of 980, 990, but Gt would"
    assert (found.pods, found.template) == (2, True)


def test_versions_the_wrong_way_round():
    sem = toleration("SemverLt", "1.14.0", key="cni")
    assert len(backwards(named("a1", taint("1.15.0", key="cni")), pod(sem))) == 1


def test_comparison_that_neither_way_holds():
    (found,) = nowhere(named("a1", taint("950")), pod(STRICT))
    assert found.message == "sla Gt '950':NoExecute holds for none of 950"


def test_version_that_no_node_has():
    assert len(nowhere(named("a1", taint("1.15.0", key="cni")), pod(toleration("SemverEq", "1.14.0", key="cni")))) == 1


@pytest.mark.parametrize(
    "objects",
    [
        (named("a1", taint("980")), named("a2", taint("900")), pod(STRICT)),
        (named("a1"), pod(STRICT)),
        (named("a1", taint("900", effect="NoSchedule")), pod(STRICT)),
        (named("a1", taint("900")), pod(STRICT, EXISTS)),
        (named("a1", taint("900")), pod(STRICT, toleration("Gt", "850"))),
        (named("a1", taint("high")), pod(STRICT)),
    ],
)
def test_comparison_that_has_a_use_is_left_in_peace(objects):
    assert nowhere(*objects) == []


def test_operator_that_is_switched_off_is_not_called_reversed():
    off = Gates(numeric_operators=False)
    assert backwards(named("a1", taint("980")), pod(toleration("Lt", "950")), gates=off) == []


def test_of_many_values_a_few_are_named():
    nodes = [named(f"n{value}", taint(str(value))) for value in range(900, 910)]
    assert subjects(backwards(*nodes, pod(STRICT))) == ["Pod shop/web"]
    assert "900, 901, 902 and 7 more values" in backwards(*nodes, pod(STRICT))[0].message


def test_under_a_type_a_value_may_be_invalid_to_a_comparison_alone():
    """10.0.20348.2700 is a version, and no semantic one."""
    typed = policy(taints=[{"key": "sla", "valueType": "Version"}])
    node = named("a1", taint("10.0.20348.2700"))
    (found,) = unreadable(node, typed, replicas(1, EXISTS, extended=[toleration("SemverGt", "10.0.0")]))
    assert "which Deployment shop/web ask for" in found.message
    assert unreadable(node, typed, replicas(1, EXISTS, extended=[toleration("VersionGt", "10.0.0")])) == []
