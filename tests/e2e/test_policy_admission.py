"""The real API server and the package accept and refuse the same policies and profiles, naming the same fields.

Neither is the reference alone: the server's refusal is what users meet first, the package's is what keeps an object
that slipped past (an older definition, a file checked offline) from being half understood.
"""

from typing import Any

import pytest

from api import policy_cases, profile_cases
from api.policy_cases import Json, policy
from api.profile_cases import profile
from controlplane import ApiError, Cluster
from taintwarden.api.field_errors import InvalidObject
from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile

PLURALS = {"TaintEvictionPolicy": "taintevictionpolicies", "TolerationProfile": "tolerationprofiles"}
PARSERS = {"TaintEvictionPolicy": parse_policy, "TolerationProfile": parse_profile}
GOOD = {f"policy-{name}": policy(spec) for name, spec in policy_cases.GOOD.items()} | {
    f"profile-{name}": profile(spec) for name, spec in profile_cases.GOOD.items()
}
BAD = {f"policy-{name}": (bad.path, policy(bad.spec)) for name, bad in policy_cases.BAD.items()} | {
    f"profile-{name}": (bad.path, profile(bad.spec)) for name, bad in profile_cases.BAD.items()
}


def parse(body: Json) -> Any:
    return PARSERS[body["kind"]](body)


def create(cluster: Cluster, body: Json) -> Json:
    """What the server would store."""
    namespace = body["metadata"].get("namespace", "")
    return cluster.create(PLURALS[body["kind"]], body, namespace, dryRun="All", fieldValidation="Strict")


def refusal(cluster: Cluster, body: Json) -> str:
    """The server's answer to a create that must fail."""
    with pytest.raises(ApiError) as caught:
        create(cluster, body)
    return str(caught.value)


def names_field(message: str, path: str) -> bool:
    """Whether the answer is about this field. An entry of a map is [a] to CEL rules and .a to the schema."""
    dotted = path.replace("[a]", ".a")
    return f"{path}: " in message or f"{dotted}: " in message or f'unknown field "{path}"' in message


@pytest.mark.parametrize("name", BAD)
def test_both_refuse_and_name_the_field(cluster, name):
    path, body = BAD[name]
    message = refusal(cluster, body)
    with pytest.raises(InvalidObject) as caught:
        parse(body)
    assert path in [error.path for error in caught.value.errors]
    assert names_field(message, path)


@pytest.mark.parametrize("name", GOOD)
def test_both_accept(cluster, name):
    assert parse(create(cluster, GOOD[name]))


@pytest.mark.parametrize("name", GOOD)
def test_the_servers_defaults_are_ours(cluster, name):
    body = GOOD[name]
    stored = create(cluster, body)
    stored["metadata"] = body["metadata"]
    assert parse(stored) == parse(body)


@pytest.mark.parametrize(
    ("operator", "value", "told"),
    [
        ("Gt", "0950", "must be a whole number of 64 bits for Gt and Lt, such as 950"),
        ("SemverGt", "1.2-rc1", "must be a version for SemverGt, SemverLt and SemverEq, such as 1.28.0"),
    ],
)
def test_the_server_says_what_a_value_of_a_profile_must_be(cluster, operator, value, told):
    message = refusal(cluster, profile({"tolerations": [{"key": "k", "operator": operator, "value": value}]}))
    assert "spec.tolerations[0].value: Invalid value:" in message
    assert told in message
