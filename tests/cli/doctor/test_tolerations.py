"""Annotations that cannot work, and native and extended tolerations that contradict each other."""

import json

import pytest

from cli.doctor.scene import asking, replicas, workload
from cli.world import namespace, pod, profile, toleration

invalid = asking("toleration-invalid")
native = asking("native-missing")
STRICT = toleration("Gt", "950")
EXISTS = toleration("Exists")
INJECTS = {"kind": "MutatingWebhookConfiguration", "webhooks": [{"name": "pods.mutate.taintwarden.io"}]}


@pytest.mark.parametrize(
    ("extended", "words"),
    [
        ([toleration("Gt", "0950")], "leading zeros are not allowed"),
        ([toleration("Near", "950")], "supported values: "),
        ({"key": "sla"}, "must be a JSON list"),
    ],
)
def test_invalid_annotation_is_found(extended, words):
    (found,) = invalid(replicas(2, EXISTS, extended=extended))
    assert (str(found.subject), found.severity, found.pods, found.template) == ("Deployment shop/web", "error", 2, True)
    assert words in found.message


def test_unknown_annotation_is_a_warning():
    (found,) = invalid(pod(EXISTS, annotations={"taintwarden.io/toleration": "[]"}))
    assert (found.severity, "unknown annotation" in found.message) == ("warning", True)


def test_annotation_on_the_workload_itself_has_no_effect():
    annotations = {"taintwarden.io/tolerations": json.dumps([STRICT])}
    (found,) = invalid(workload(metadata={"annotations": annotations}))
    assert (found.severity, found.remedy) == ("warning", "move it to spec.template.metadata.annotations")
    assert native(workload(metadata={"annotations": annotations})) == []


@pytest.mark.parametrize("context", [(), (namespace(**{"taintwarden.io/inject": "true"}), INJECTS)])
def test_valid_annotation_with_a_native_toleration_is_no_finding(context):
    web = replicas(3, EXISTS, extended=[STRICT])
    assert (invalid(*context, web), native(*context, web)) == ([], [])


def test_annotation_without_a_native_toleration_is_found():
    (found,) = native(replicas(2, extended=[STRICT]))
    assert (str(found.subject), found.pods, found.template) == ("Deployment shop/web", 2, True)
    assert "operator: Exists" in found.remedy


def test_profile_without_a_native_toleration_is_found():
    (found,) = native(pod(), profile("strict", STRICT, app="web"))
    assert "TolerationProfile strict names this key" in found.message


def test_template_that_a_webhook_completes_is_no_finding():
    asks = namespace(**{"taintwarden.io/inject": "true"})
    lacking = workload(template={"metadata": {"annotations": {"taintwarden.io/tolerations": json.dumps([STRICT])}}})
    assert native(lacking, asks, INJECTS) == []
    assert len(native(lacking, asks)) == len(native(lacking, INJECTS)) == 1


def test_pods_that_the_webhook_missed_are_found():
    asks = namespace(**{"taintwarden.io/inject": "true"})
    (found,) = native(asks, INJECTS, replicas(3, extended=[STRICT]))
    assert (found.pods, found.template) == (3, False)
    assert found.remedy.startswith("they are older than the webhook, the namespace")
