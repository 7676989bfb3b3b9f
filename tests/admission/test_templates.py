"""Additions to the template of a DaemonSet, also after its author has changed it."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.patching import patched
from admission.workloads import Json, exists
from taintwarden_placement.admission.injection import Additions
from taintwarden_placement.admission.pod_review import RECORD_ANNOTATION
from taintwarden_placement.admission.response import AdmissionResponse
from taintwarden_placement.admission.templates import MAX_RECORD_BYTES, complete_template

OURS, NEWER = {"ours": 1}, {"ours": 2}


def daemon_set(labels: Json | None = None, **spec: Any) -> Json:
    template = {"metadata": {"labels": {"app": "web", **(labels or {})}}, "spec": {"containers": [], **spec}}
    return {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"template": template}}


class Adding:
    """Additions of one toleration and one term, which record the pods that they were requested for."""

    def __init__(self, affinity: Json | None = None, **more: Any) -> None:
        self.affinity = affinity
        self.more = more
        self.pods: list[Json] = []

    def __call__(self, pod: Json) -> Additions:
        self.pods.append(pod)
        fields = dict(self.more)
        if self.affinity is not None:
            fields["affinity"] = {"own": pod["spec"].get("affinity"), **self.affinity}
        if fields and exists() not in (own := pod["spec"].get("tolerations") or []):
            fields["tolerations"] = [*own, exists()]
        return Additions(fields)


def completed(workload: Json, old: Json | None = None, adding: Adding | None = None) -> Json:
    return patched(workload, complete_template(workload, old, adding or Adding(OURS)).patch)


def spec_of(workload: Json) -> Json:
    return workload["spec"]["template"]["spec"]


def test_a_template_gets_the_additions_of_its_pods():
    adding = Adding(OURS)
    spec = spec_of(completed(daemon_set(), None, adding))
    assert (spec["tolerations"], spec["affinity"]) == ([exists()], {"own": None, **OURS})
    [asked] = adding.pods
    assert (asked["metadata"]["namespace"], asked["metadata"]["labels"]) == ("shop", {"app": "web"})
    assert asked["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"


def test_a_template_without_additions_is_not_changed():
    assert complete_template(daemon_set(), None, Adding()) == AdmissionResponse()


def test_a_template_that_does_not_change_is_not_completed():
    """An update that only scales or labels must not replace pods."""
    workload = daemon_set()
    assert complete_template({**workload, "metadata": {"labels": {"a": "b"}}}, workload, Adding(OURS)).patch == ()


def test_a_second_review_adds_nothing():
    once = completed(daemon_set())
    assert complete_template(once, None, Adding(OURS)).patch == ()


def test_additions_that_are_not_needed_any_more_are_removed():
    old = completed(daemon_set(affinity={"mine": 1}))
    changed = deepcopy(old)
    changed["spec"]["template"]["metadata"]["annotations"] |= {"restartedAt": "now"}
    after = completed(changed, old, Adding())
    assert spec_of(after) == {"containers": [], "affinity": {"mine": 1}}
    assert after["spec"]["template"]["metadata"]["annotations"] == {"restartedAt": "now"}


def test_a_field_that_its_author_changes_counts_as_written():
    old = completed(daemon_set())
    changed = deepcopy(old)
    spec_of(changed)["affinity"] = {"mine": 2}
    assert spec_of(completed(changed, old, Adding(NEWER)))["affinity"] == {"own": {"mine": 2}, **NEWER}


def test_a_manifest_that_is_applied_again_replaces_no_pod():
    """The applied manifest has neither the additions nor the record of them."""
    old = completed(daemon_set(affinity={"mine": 1}))
    again = daemon_set(affinity={"mine": 1})
    assert completed(again, old) == old


def test_a_template_that_opts_out_loses_its_additions():
    old = completed(daemon_set())
    changed = deepcopy(old)
    changed["spec"]["template"]["metadata"]["labels"]["taintwarden.io/inject"] = "false"
    assert spec_of(completed(changed, old)) == {"containers": []}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"affinity": 7}',
        '{"affinity": {"before": ' + "[" * 100_000,
        '{"containers": {"before": 1, "after": ""}}',
    ],
)
def test_a_record_that_was_edited_does_not_count(text):
    workload = daemon_set()
    workload["spec"]["template"]["metadata"]["annotations"] = {RECORD_ANNOTATION: text}
    after = completed(workload)
    assert spec_of(after)["affinity"] == {"own": None, **OURS}
    assert json.loads(after["spec"]["template"]["metadata"]["annotations"][RECORD_ANNOTATION]).keys() == {
        "affinity",
        "tolerations",
    }


def test_a_record_that_would_be_too_long_is_a_warning():
    large = daemon_set(affinity={"mine": "x" * MAX_RECORD_BYTES})
    found = complete_template(large, None, Adding(OURS))
    assert found.patch == ()
    assert "the template is left as it is" in found.warnings[0]


def test_a_node_selector_is_added_and_removed_again():
    old = completed(daemon_set(), None, Adding(nodeSelector={"no": "node"}))
    assert spec_of(old)["nodeSelector"] == {"no": "node"}
    changed = deepcopy(old)
    changed["spec"]["template"]["metadata"]["labels"]["more"] = "x"
    assert "nodeSelector" not in spec_of(completed(changed, old, Adding()))


KEPT, AGAIN, UNDONE = "kept", "applied again", "undone"
AFFINITIES = st.sampled_from([None, {"mine": 1}, {"mine": 2}])


@given(
    st.lists(
        st.tuples(AFFINITIES, st.sampled_from([None, OURS, NEWER]), st.sampled_from([KEPT, AGAIN, UNDONE])), min_size=1
    )
)
def test_a_changed_template_equals_a_new_one(steps):
    """The history of edits does not matter: new templates, reverts to the first one, and other changes."""
    stored: Json | None = None
    first: tuple[Json, Json | None] | None = None
    written: Json | None = None
    for number, (affinity, ours, how) in enumerate(steps):
        if stored is None or first is None or how == AGAIN:
            written, sent = affinity, daemon_set(**({} if affinity is None else {"affinity": affinity}))
        elif how == UNDONE:
            sent, written = {**stored, "spec": first[0]["spec"]}, first[1]
        else:
            sent = stored
        sent = deepcopy(sent)
        sent["spec"]["template"]["metadata"].setdefault("annotations", {})["step"] = str(number)
        stored = completed(sent, stored, Adding(ours))
        first = first or (stored, written)
        fresh = daemon_set(**({} if written is None else {"affinity": written}))
        assert spec_of(stored) == spec_of(completed(fresh, None, Adding(ours)))
