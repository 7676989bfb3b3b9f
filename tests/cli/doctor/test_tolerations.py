"""Annotations that cannot work, and native and extended tolerations that contradict each other."""

import json

import pytest

from cli.doctor.scene import asking, replicas, subjects, workload
from cli.world import namespace, pod, profile, toleration

invalid = asking("toleration-invalid")
companion = asking("companion-missing")
overridden = asking("native-overridden")
seconds = asking("native-seconds")
STRICT = toleration("Gt", "950")
EXISTS = toleration("Exists")
INJECTS = {"kind": "MutatingWebhookConfiguration", "webhooks": [{"name": "pods.mutate.taintwarden.io"}]}


@pytest.mark.parametrize(
    ("extended", "words"),
    [
        ([toleration("Gt", "0950")], "leading zeros are not allowed"),
        ([toleration("Near", "950")], "must be one of"),
        ({"key": "sla"}, "must be a JSON list"),
    ],
)
def test_annotation_that_cannot_work(extended, words):
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
    assert companion(workload(metadata={"annotations": annotations})) == []


def test_valid_annotation_is_left_in_peace():
    assert invalid(replicas(2, EXISTS, extended=[STRICT])) == []


def test_extended_without_native():
    (found,) = companion(replicas(2, extended=[STRICT]))
    assert (str(found.subject), found.pods, found.template) == ("Deployment shop/web", 2, True)
    assert "operator: Exists" in found.remedy


def test_profile_without_native():
    (found,) = companion(pod(), profile("strict", STRICT, app="web"))
    assert "TolerationProfile strict names this key" in found.message


def test_extended_with_native_is_left_in_peace():
    assert companion(replicas(2, EXISTS, extended=[STRICT])) == []


def test_template_that_a_webhook_completes_is_left_in_peace():
    asks = namespace(**{"taintwarden.io/inject": "true"})
    lacking = workload(template={"metadata": {"annotations": {"taintwarden.io/tolerations": json.dumps([STRICT])}}})
    assert companion(lacking, asks, INJECTS) == []
    assert len(companion(lacking, asks)) == len(companion(lacking, INJECTS)) == 1


@pytest.mark.parametrize("native", [toleration("Equal", "980"), toleration("Gt", "900"), toleration("", "980")])
def test_native_answer_that_an_extended_one_overrides(native):
    (found,) = overridden(replicas(2, native, extended=[STRICT]))
    assert (found.pods, "does not count" in found.message) == (2, True)


def test_profile_overrides_too():
    assert subjects(overridden(pod(toleration("Gt", "900")), profile("strict", STRICT, app="web"))) == ["Pod shop/web"]


@pytest.mark.parametrize("native", [EXISTS, toleration("Gt", "900", key="other"), {"operator": "Exists"}])
def test_native_answer_that_is_meant_is_left_in_peace(native):
    assert overridden(replicas(2, native, extended=[STRICT])) == []


def test_native_exists_that_ends():
    (found,) = seconds(replicas(2, EXISTS | {"tolerationSeconds": 30}, extended=[STRICT]))
    assert "evicts by sla:NoExecute after 30 s" in found.message


@pytest.mark.parametrize(("time", "found"), [(365 * 86_400 - 1, 1), (365 * 86_400, 0), (315_360_000, 0)])
def test_native_exists_that_ends_after_years_is_left_in_peace(time, found):
    assert len(seconds(replicas(2, EXISTS | {"tolerationSeconds": time}, extended=[STRICT]))) == found


def test_native_exists_without_end_is_left_in_peace():
    assert (
        seconds(replicas(2, EXISTS, toleration("Exists", key="node") | {"tolerationSeconds": 1}, extended=[STRICT]))
        == []
    )
