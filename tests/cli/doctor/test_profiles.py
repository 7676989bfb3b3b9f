"""Profiles that do nothing, or more than was meant."""

from cli.doctor.scene import asking, workload
from cli.world import namespace, pod, policy, profile, toleration

STRICT = toleration("Gt", "950")
nothing = asking("profile-matches-nothing")
everything = asking("profile-selects-everything")
excluded = asking("profile-excluded")


def test_profile_that_selects_nobody():
    assert len(nothing(profile("p", STRICT, app="db"), pod())) == 1
    assert len(nothing(profile("p", STRICT, space="other", app="web"), pod())) == 1


def test_profile_that_selects_pods_or_a_template_is_left_in_peace():
    assert nothing(profile("p", STRICT, app="web"), pod()) == []
    assert nothing(profile("p", STRICT, app="web"), workload()) == []


def test_profile_for_all_pods_is_a_note():
    (found,) = everything(profile("p", STRICT))
    assert found.severity == "info"
    assert everything(profile("p", STRICT, app="web")) == []


def test_profile_where_no_policy_goes():
    mine = profile("p", STRICT, app="web")
    assert len(excluded(mine, policy(exclude={"namespaces": ["shop"]}), namespace())) == 1
    elsewhere = policy(namespaceSelector={"matchLabels": {"team": "x"}})
    assert len(excluded(mine, elsewhere, namespace())) == 1
    assert excluded(mine, elsewhere, namespace(team="x")) == []


def test_one_policy_that_goes_there_is_enough():
    mine = profile("p", STRICT, app="web")
    assert excluded(mine, policy(exclude={"namespaces": ["shop"]}), policy("other"), namespace()) == []
    assert excluded(mine, policy(key="else", exclude={"namespaces": ["shop"]}), namespace()) == []


def test_profile_that_is_not_valid():
    ask = asking("profile-not-accepted")
    assert len(ask(profile("p", toleration("Gt", "0950")))) == 1
    assert ask(profile("p", STRICT)) == []
