"""The chart with its default values installs what deploy/base installs; only what Helm has to add differs."""

import copy
import os
from pathlib import Path

import pytest
import yaml

from deploy.rendering import BASE, NAMESPACE, Json, by_key, chart, key, kustomize

HELMS_LABELS = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
}
HOOKS = {"helm.sh/hook", "helm.sh/hook-weight", "helm.sh/hook-delete-policy"}
KEPT = {"helm.sh/resource-policy": "keep"}
EXTENDER = BASE.parent / "components" / "scheduler-extender"
PUBLISHER = BASE.parent / "components" / "publisher"
NOT_HELMS = ("Namespace", NAMESPACE)  # created by helm before it renders anything, or by the user


@pytest.fixture(scope="module")
def base() -> dict[tuple[str, str], Json]:
    return {name: document for name, document in by_key(kustomize(BASE)).items() if name != NOT_HELMS}


@pytest.fixture(scope="module")
def rendered() -> dict[tuple[str, str], Json]:
    return by_key(chart())


@pytest.fixture(scope="module")
def with_extender(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Json]:
    """The base with the component of the scheduler extender."""
    return base_with(EXTENDER, tmp_path_factory.mktemp("overlay"))


def base_with(component: Path, folder: Path) -> dict[tuple[str, str], Json]:
    """The base with a component."""
    paths = [os.path.relpath(path, folder.resolve()) for path in (BASE, component)]
    kind = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kind | {"resources": paths[:1], "components": paths[1:]}))
    return {name: document for name, document in by_key(kustomize(folder)).items() if name != NOT_HELMS}


def without_helms(document: Json) -> Json:
    """The object as it would be without Helm. A label that the base knows has to stay."""
    document = copy.deepcopy(document)
    labels = {name: value for name, value in document["metadata"]["labels"].items() if name not in HELMS_LABELS}
    if document["kind"] == "CustomResourceDefinition":  # those of crds/ have neither
        assert document["metadata"].pop("annotations") == KEPT
        assert document["metadata"].pop("labels").keys() == HELMS_LABELS | {"app.kubernetes.io/name"}
    else:
        document["metadata"]["labels"] = labels
    if document["metadata"]["name"] == "taintwarden-webhook-trust":  # helm runs it, and removes it with its rights
        assert document["metadata"].pop("annotations").keys() == HOOKS
    for webhook in document.get("webhooks", ()):  # the label of a namespace that is not the chart's may be missing
        webhook["namespaceSelector"]["matchExpressions"][0]["values"].remove(NAMESPACE)
    return document


def test_each_object_is_the_same(base, rendered):
    assert {name: without_helms(document) for name, document in rendered.items()} == base


def test_the_scheduler_extender_is_that_of_the_component(with_extender, base):
    found = {name: without_helms(one) for name, one in by_key(chart({"schedulerExtender.enabled": True})).items()}
    alone = (
        "ClusterRoleBinding",
        "taintwarden-scheduler-extender-metrics-access",
    )  # the chart binds all accounts at once
    assert found == {name: one for name, one in with_extender.items() if name != alone}
    assert len(found.keys() - base.keys()) == 9


def test_the_publisher_is_that_of_the_component(base, tmp_path):
    found = {name: without_helms(one) for name, one in by_key(chart({"publisher.enabled": True})).items()}
    wanted = base_with(PUBLISHER, tmp_path)
    alone = ("ClusterRoleBinding", "taintwarden-publisher-metrics-access")  # the chart binds all accounts at once
    assert found == {name: one for name, one in wanted.items() if name != alone}
    assert len(found.keys() - base.keys()) == 14


def test_rules_that_the_cluster_gathers_are_not_given(tmp_path):
    """The controller that fills them in would own them besides the release: helm refuses the next upgrade."""
    kustomized, charted = base_with(PUBLISHER, tmp_path), by_key(chart({"publisher.enabled": True}))
    gathered = [one for found in (kustomized, charted) for one in found.values() if "aggregationRule" in one]
    assert len(gathered) == 2
    assert [one for one in gathered if "rules" in one] == []


def test_every_object_carries_helms_labels(rendered):
    assert [key(one) for one in rendered.values() if not one["metadata"]["labels"].keys() >= HELMS_LABELS] == []


def test_a_difference_would_be_seen(base):
    other = {name: without_helms(document) for name, document in by_key(chart({"replicas": 5})).items()}
    assert [name for name in base if base[name] != other[name]] == [("Deployment", "taintwarden")]


def test_every_release_has_the_same_names(rendered):
    """Equal names have a second operator refused, which would act on the same policies."""
    assert by_key(chart(release="another")).keys() == rendered.keys()
