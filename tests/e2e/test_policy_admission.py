"""The real API server and the package accept and refuse the same policies, naming the same fields.

Neither is the reference alone: the server's refusal is what users meet first, the package's is what keeps a policy that
slipped past (an older definition, a file checked offline) from being half understood.
"""

import pytest

from api.policy_cases import BAD, GOOD, policy
from controlplane import ApiError, Cluster
from controlplane.binaries import ROOT
from controlplane.manifests import documents
from taintwarden.api import InvalidObject, parse_policy

POLICIES = "taintevictionpolicies"
SHIPPED = [*documents(ROOT / "deploy" / "base"), *documents(ROOT / "deploy" / "samples")]


def refusal(cluster: Cluster, body: dict) -> str:
    """The server's answer to a create that must fail."""
    with pytest.raises(ApiError) as caught:
        cluster.create(POLICIES, body, dryRun="All", fieldValidation="Strict")
    return str(caught.value)


def names_field(message: str, path: str) -> bool:
    """Whether the answer is about this field. An entry of a map is [a] to CEL rules and .a to the schema."""
    dotted = path.replace("[a]", ".a")
    return f"{path}: " in message or f"{dotted}: " in message or f'unknown field "{path}"' in message


@pytest.mark.parametrize("name", BAD)
def test_both_refuse_and_name_the_field(cluster, name):
    body = policy(BAD[name].spec)
    message = refusal(cluster, body)
    with pytest.raises(InvalidObject) as caught:
        parse_policy(body)
    assert BAD[name].path in [error.path for error in caught.value.errors]
    assert names_field(message, BAD[name].path)


@pytest.mark.parametrize("name", GOOD)
def test_both_accept(cluster, name):
    stored = cluster.create(POLICIES, policy(GOOD[name]), dryRun="All", fieldValidation="Strict")
    assert parse_policy(stored).taints


@pytest.mark.parametrize("name", GOOD)
def test_the_servers_defaults_are_ours(cluster, name):
    body = policy(GOOD[name])
    stored = cluster.create(POLICIES, body, dryRun="All", fieldValidation="Strict")
    stored["metadata"] = body["metadata"]
    assert parse_policy(stored) == parse_policy(body)


@pytest.mark.parametrize(("path", "document"), SHIPPED, ids=lambda value: getattr(value, "name", ""))
def test_the_server_takes_what_we_ship(cluster, path, document):
    cluster.apply(document, dry_run=True)
