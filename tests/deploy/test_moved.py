"""Base, overlays and components in another namespace and with other names: every object still means the others.

Kustomize changes a name where it knows that one is; in an expression, an argument or a selector it changes nothing.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.rendering import BASE, NAMESPACE, OVERLAYS, Json, chart, key, kustomize

COMPONENTS = sorted(path.parent for path in (BASE.parent / "components").glob("*/kustomization.yaml"))
FOLDERS = {"base": BASE} | {path.name: path for path in OVERLAYS}
MOVES: dict[str, Json] = {
    "namespace": {"namespace": "platform"},
    "prefix": {"namePrefix": "acme-"},
    "suffix": {"nameSuffix": "-two"},
    "both": {"namespace": "platform", "namePrefix": "acme-"},
}
BEFORE: dict[str, list[Json]] = {}
STAYS = {"CustomResourceDefinition", "Namespace"}
"""Kinds whose objects keep their names."""
APART = {"app.kubernetes.io/name", "app.kubernetes.io/part-of"}
"""Labels by which objects are selected: the same everywhere."""
LEASE = ("leases", "taintwarden")
"""The operator creates it, in its namespace, with a name that is part of its program."""
CREDENTIALS = ("secrets", "taintwarden-publisher")
"""Yours, for Prometheus: the name is the one that the documents give it, and nothing that is shipped."""


def moved(folder: Path, made: Path, move: Mapping[str, Any], components: bool) -> list[Json]:
    """Objects of an overlay of a folder with these fields, and with the components of the base if asked for."""
    folders = [os.path.relpath(one, made.resolve()) for one in (folder, *(COMPONENTS if components else ()))]
    kind = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    text = yaml.safe_dump({**kind, **move, "resources": folders[:1], "components": folders[1:]})
    (made / "kustomization.yaml").write_text(text)
    return kustomize(made)


def words(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text of an object, with the fields that lead to it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from words(inner, (*path, name))
    elif isinstance(value, list):
        for inner in value:
            yield from words(inner, path)
    elif isinstance(value, str):
        yield path, value


def names_of(documents: list[Json]) -> set[str]:
    return {one["metadata"]["name"] for one in documents if one["kind"] not in STAYS}


@pytest.fixture(scope="module", params=[(folder, move) for folder in FOLDERS for move in MOVES], ids="-".join)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[Json], list[Json], Json]:
    """The moved objects, the objects before, and the fields that moved them."""
    folder, move = request.param
    # The components that belong to the base; the overlays have theirs already.
    if folder not in BEFORE:
        BEFORE[folder] = moved(FOLDERS[folder], tmp_path_factory.mktemp("before"), {}, components=folder == "base")
    after = moved(FOLDERS[folder], tmp_path_factory.mktemp("after"), MOVES[move], components=folder == "base")
    return BEFORE[folder], after, MOVES[move]


def test_nothing_names_the_namespace_that_was_left(case):
    _, after, move = case
    if "namespace" not in move:
        return
    assert not [(key(one), path) for one in after for path, word in words(one) if NAMESPACE in word]


def test_every_object_of_a_namespace_is_in_the_new_one(case):
    _, after, move = case
    namespaces = {one["metadata"]["namespace"] for one in after if "namespace" in one["metadata"]}
    assert namespaces == {move.get("namespace", NAMESPACE)}


def test_no_name_is_left_of_an_object_that_is_called_otherwise(case):
    before, after, move = case
    if not {"namePrefix", "nameSuffix"} & move.keys():
        return
    gone = names_of(before) - names_of(after)
    assert gone == names_of(before)
    left = [
        (key(one), path, word)
        for one in after
        if one["kind"] not in STAYS
        for path, word in words(one)
        if word in gone and not means_no_object(path, one)
    ]
    assert left == []


def means_no_object(path: tuple[str, ...], document: Json) -> bool:
    """Labels, names of containers, volumes and ports, roles' leases, and the groups of Prometheus' rules."""
    if path[-1] in APART or path[:2] == ("metadata", "labels"):
        return True
    if path[-2:] == ("containers", "name"):
        return True
    if document["kind"] in ("ConfigMap", "PrometheusRule"):
        return True
    if path[-2:] == ("matchExpressions", "values"):  # of labels
        return True
    rules = document.get("rules", ())
    leases = [rule.get("resourceNames") for rule in rules if LEASE[0] in rule.get("resources", ())]
    secrets = [rule.get("resourceNames") for rule in rules if CREDENTIALS[0] in rule.get("resources", ())]
    return path[-1] == "resourceNames" and (leases == [[LEASE[1]], None] or secrets == [[CREDENTIALS[1]]])


def test_the_webhooks_call_the_service_whose_name_their_process_has(case):
    _, after, _ = case
    services = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in after if one["kind"] == "Service"}
    called = {
        (webhook["clientConfig"]["service"]["namespace"], webhook["clientConfig"]["service"]["name"])
        for one in after
        for webhook in one.get("webhooks", ())
    }
    (service,) = called
    assert service in services
    for kind, arguments in (("Deployment", "webhook"), ("Job", "webhook-trust")):
        (container,) = (
            container
            for one in after
            if one["kind"] == kind
            for container in one["spec"]["template"]["spec"]["containers"]
            if container["args"][0] == arguments
        )
        given = {one["name"]: one.get("value") for one in container["env"]}
        assert given["TAINTWARDEN_WEBHOOK_SERVICE"] == service[1]
        assert [
            one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"] if one["name"] == "POD_NAMESPACE"
        ] == ["metadata.namespace"]


def test_the_webhooks_ignore_the_namespace_by_a_label_that_it_has(case):
    _, after, _ = case
    (namespace,) = (one for one in after if one["kind"] == "Namespace")
    for webhook in (webhook for one in after for webhook in one.get("webhooks", ())):
        rules = webhook["namespaceSelector"]["matchExpressions"]
        assert any(namespace["metadata"]["labels"].get(rule["key"]) in rule["values"] for rule in rules)


def test_the_job_may_change_the_configurations_that_there_are(case):
    _, after, _ = case
    there = {one["metadata"]["name"] for one in after if one["kind"].endswith("WebhookConfiguration")}
    (role,) = (one for one in after if one["kind"] == "ClusterRole" and "webhook-trust" in one["metadata"]["name"])
    (names,) = (set(rule["resourceNames"]) for rule in role["rules"] if "resourceNames" in rule)
    assert names == there


def test_rights_go_to_accounts_that_there_are(case):
    _, after, _ = case
    accounts = {
        (one["metadata"]["namespace"], one["metadata"]["name"]) for one in after if one["kind"] == "ServiceAccount"
    }
    bound = {
        (subject["namespace"], subject["name"])
        for one in after
        if one["kind"].endswith("Binding") and "subjects" in one
        for subject in one["subjects"]
    }
    assert bound <= accounts


def test_the_chart_in_another_namespace_names_no_other():
    values = {"networkPolicy.enabled": True, "schedulerExtender.enabled": True, "metrics.protected": True}
    found = chart(values, namespace="platform", more=())
    assert not [(key(one), path) for one in found for path, word in words(one) if re.search(rf"\b{NAMESPACE}\b", word)]
    assert {one["metadata"]["namespace"] for one in found if "namespace" in one["metadata"]} == {"platform"}
