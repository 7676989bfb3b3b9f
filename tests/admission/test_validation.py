"""Faults that the webhook refuses, and those for which it only warns."""

import pytest

from admission.workloads import ANNOTATION, PATHS, Json, controlled, exists, extended, gt, inside, pod
from api import policy_cases, profile_cases
from taintwarden.engine.model import Profile, Toleration
from taintwarden.engine.operators import Operator
from taintwarden.engine.selectors import EVERYTHING
from taintwarden_placement.admission.own_objects import check_change
from taintwarden_placement.admission.response import ALLOWED

BAD = extended(gt("0950"))
OTHER_BAD = extended(gt("95.5"))
GOOD = extended(gt())
DEPLOYMENT = ("apps", "Deployment")


def check(obj: Json, old: Json | None = None, group: str = "", kind: str = "Pod", **more):
    return check_change(obj, old, group, kind, **more)


@pytest.mark.parametrize(("group", "kind"), PATHS)
def test_a_bad_annotation_is_refused_in_every_kind_and_a_good_one_is_allowed(group, kind):
    path = PATHS[group, kind]
    (refusal,) = check(inside(path, pod(BAD, exists())), None, group, kind).refusals
    prefix = ".".join((*path, "metadata"))
    assert refusal.path == f"{prefix}.annotations[{ANNOTATION}][0].value"
    assert "write 950, not 0950" in str(refusal)
    assert check(inside(path, pod(GOOD, exists())), None, group, kind) == ALLOWED


def test_all_faults_are_reported_at_once():
    response = check(pod(extended(gt("0950"), gt(), {"key": "sla", "operator": "Above", "value": "1"}), exists()))
    assert [refusal.path.rpartition("]")[2] or refusal.path for refusal in response.refusals] == [".value", ".operator"]


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("sla > 950", "must be JSON"),
        ('{"key": "sla"}', "must be a JSON list"),
        ('[{"key": 7}]', "string"),
        ('[{"key": "sla", "operator": "Gt", "value": 950}]', "string"),
        ("[1]", "object"),
        (extended(*[gt()] * 300), "Too many: 300: must have at most 100 items"),
        (extended(gt(seconds=3)), "seconds"),
    ],
)
def test_malformed_annotations_are_refused_with_the_reason(annotation, message):
    (refusal, *_) = check(pod(annotation, exists())).refusals
    assert message in str(refusal)


def test_the_same_entry_twice_is_no_fault():
    assert check(pod(extended(gt(), gt()), exists())) == ALLOWED


def test_an_annotation_that_did_not_change_refuses_nothing():
    response = check(pod(BAD, exists(), labels={"a": "b"}), pod(BAD, exists()))
    assert response.refusals == ()
    assert "counts as absent" in response.warnings[0]


def test_node_affinity_that_cannot_be_read_is_not_said_to_count_as_absent():
    """No node matches such an affinity."""
    unreadable = {"metadata": {"annotations": {"taintwarden.io/node-affinity": "{"}}}
    (warning,) = check(unreadable, unreadable, kind="Pod").warnings
    assert "must be JSON" in warning
    assert "counts as absent" not in warning


@pytest.mark.parametrize(("new", "old"), [(OTHER_BAD, BAD), (BAD, None)], ids=["changed", "new"])
def test_an_annotation_that_changed_refuses(new, old):
    assert check(pod(new, exists()), pod(old, exists())).refusals


def test_an_object_that_a_controller_made_is_never_refused():
    response = check(controlled(pod(BAD, exists())))
    assert response.refusals == ()
    assert "write 950, not 0950" in response.warnings[0]


def test_an_object_with_an_owner_that_does_not_control_it_is_refused():
    obj = controlled(pod(BAD, exists()))
    obj["metadata"]["ownerReferences"][0]["controller"] = False
    assert check(obj).refusals


def test_a_missing_native_toleration_is_a_warning():
    response = check(pod(GOOD))
    assert response.refusals == ()
    assert "add to spec.tolerations: key: sla, operator: Exists" in response.warnings[0]


def test_a_template_whose_pods_get_the_native_toleration_has_no_warning():
    assert check(inside(PATHS[DEPLOYMENT], pod(GOOD)), None, *DEPLOYMENT, is_injected=True) == ALLOWED


def test_a_missing_native_toleration_in_a_template_that_opts_out_is_a_warning():
    template = pod(GOOD, labels={"taintwarden.io/inject": "false"})
    assert check(inside(PATHS[DEPLOYMENT], template), None, *DEPLOYMENT, is_injected=True).warnings


def test_a_missing_native_toleration_of_a_pod_in_an_injected_namespace_is_a_warning():
    assert check(pod(GOOD), is_injected=True).warnings


def test_a_key_of_a_profile_without_native_toleration_is_a_warning():
    profile = Profile("shop", "gold", EVERYTHING, (Toleration("sla", Operator.GT, "950"),))
    (warning,) = check(pod(), profiles=[profile]).warnings
    assert "TolerationProfile gold" in warning


def test_a_semantic_comparison_by_text_is_a_warning_and_no_refusal():
    compared = {"key": "kernel", "operator": "SemverGt", "value": "5.15.0-91-generic"}
    obj = profile_cases.profile({"tolerations": [compared]}, "kernel", "shop")
    response = check(obj, None, "taintwarden.io", "TolerationProfile")
    (warning,) = response.warnings
    assert (response.refusals, "use VersionGt" in warning) == ((), True)


def test_an_annotation_on_the_workload_itself_is_a_warning():
    obj = inside(PATHS["apps", "Deployment"], pod())
    obj["metadata"]["annotations"] = {ANNOTATION: GOOD}
    (warning,) = check(obj, None, "apps", "Deployment").warnings
    assert "move it to spec.template.metadata.annotations" in warning


def test_an_unknown_taintwarden_annotation_is_a_warning_with_the_likely_name():
    obj = pod()
    obj["metadata"]["annotations"] = {"taintwarden.io/toleration": GOOD}
    (warning,) = check(obj).warnings
    assert f"did you mean {ANNOTATION}?" in warning


def test_invalid_native_tolerations_are_ignored():
    assert check(pod(None, {"key": "sla", "operator": "Gt", "value": "950"})) == ALLOWED
    assert check(pod(None, {"key": "sla", "operator": "Nonsense"})) == ALLOWED


def policy(schedule: str, **meta: str) -> Json:
    window = {"schedule": schedule, "duration": "1h"}
    made = policy_cases.policy({"taints": [{"key": "sla"}], "windows": [window]}, "p")
    return {**made, "metadata": made["metadata"] | meta}


def test_a_policy_is_refused_for_a_fault_that_its_schema_cannot_express():
    (refusal,) = check(policy("0 25 * * *"), None, "taintwarden.io", "TaintEvictionPolicy").refusals
    assert refusal.path == "spec.windows[0].schedule"


def test_a_policy_whose_spec_did_not_change_is_allowed():
    response = check(
        policy("0 25 * * *", resourceVersion="2"), policy("0 25 * * *"), "taintwarden.io", "TaintEvictionPolicy"
    )
    assert response == ALLOWED


def test_an_object_of_another_kind_is_allowed():
    assert check({"metadata": {"annotations": {ANNOTATION: BAD}}}, None, "", "ConfigMap") == ALLOWED


def test_a_pod_without_annotations_is_allowed():
    assert check({}) == ALLOWED
