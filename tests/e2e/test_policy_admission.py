"""The real API server and the package accept and refuse the same policies and profiles, naming the same fields.

Neither is the reference alone: the server's refusal is what users meet first, the package's is what keeps an object
that slipped past (an older definition, a file checked offline) from being half understood.
"""

from typing import Any

from api import policy_cases, profile_cases
from api.policy_cases import Json, policy
from api.profile_cases import profile
from controlplane import ApiError, Cluster
from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile
from taintwarden.fields.field_errors import InvalidObject

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
    """Create an object in a dry run, and return what the server would store."""
    namespace = body["metadata"].get("namespace", "")
    return cluster.create(PLURALS[body["kind"]], body, namespace, dryRun="All", fieldValidation="Strict")


def refusal(cluster: Cluster, body: Json) -> str:
    """The server's answer to a create; empty if it would store the object."""
    try:
        create(cluster, body)
    except ApiError as error:
        return str(error)
    return ""


def names_field(message: str, path: str) -> bool:
    """Return True if the answer is about this field. An entry of a map is [a] to CEL rules and .a to the schema."""
    dotted = path.replace("[a]", ".a")
    return f"{path}: " in message or f"{dotted}: " in message or f'unknown field "{path}"' in message


def paths(body: Json) -> list[str]:
    """The fields that the package refuses."""
    try:
        parse(body)
    except InvalidObject as error:
        return [one.path for one in error.errors]
    return []


def test_server_and_parser_refuse_and_name_the_field(cluster):
    wrong = {}
    for name, (path, body) in BAD.items():
        message, refused = refusal(cluster, body), paths(body)
        if not names_field(message, path) or path not in refused:
            wrong[name] = (path, message, refused)
    assert wrong == {}


def test_server_and_parser_accept_with_the_same_defaults(cluster):
    wrong = {}
    for name, body in GOOD.items():
        try:
            stored = create(cluster, body)
            stored["metadata"] = body["metadata"]
            if parse(stored) != parse(body):
                wrong[name] = stored
        except (ApiError, InvalidObject) as error:
            wrong[name] = str(error)
    assert wrong == {}


def test_the_server_says_what_a_value_of_a_profile_must_be(cluster):
    for operator, value, fault in (
        ("Gt", "0950", "must be a whole number of 64 bits for Gt and Lt, such as 950"),
        ("SemverGt", "1.2-rc1", "must be a version for SemverGt, SemverLt and SemverEq, such as 1.28.0"),
    ):
        message = refusal(cluster, profile({"tolerations": [{"key": "k", "operator": operator, "value": value}]}))
        assert "spec.tolerations[0].value: Invalid value:" in message
        assert fault in message
