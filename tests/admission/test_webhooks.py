"""Requests are answered from the known policies, profiles and namespaces."""

import json

import msgspec
import pytest

from admission.patching import patched
from admission.workloads import Json, controlled, exists, extended, gt, inside, pod, review
from taintwarden.controller.clock import system_clock
from taintwarden.engine import events
from taintwarden.engine.model import Profile, Toleration
from taintwarden.engine.operators import ALL_GATES, Operator
from taintwarden.engine.policy import Exclude, Policy, TaintSelector
from taintwarden.engine.selectors import EVERYTHING, LabelSelector, Requirement, SelectorOperator
from taintwarden_placement.admission.cluster_state import ClusterState
from taintwarden_placement.admission.response import AdmissionResponse
from taintwarden_placement.admission.webhooks import AdmissionRequest
from taintwarden_placement.webhook_process import admission_webhooks

POD = {"group": "", "version": "v1", "kind": "Pod"}
GOLD = LabelSelector((Requirement("tier", SelectorOperator.IN, ("gold",)),))


class Stage:
    """The known state of the cluster, and the webhook that reads it."""

    def __init__(self) -> None:
        self.known = ClusterState()
        self.webhook = admission_webhooks(self.known, system_clock, ALL_GATES)

    def feed(self, *fed: events.Event) -> None:
        for event in fed:
            self.known.feed(event)

    def profile(self, selector: LabelSelector = EVERYTHING, namespace: str = "shop") -> None:
        toleration = Toleration("sla", Operator.GT, "950", "NoExecute")
        self.feed(events.ProfileSeen(Profile(namespace, "gold", selector, (toleration,))))

    def place(self, **more: object) -> None:
        selector = TaintSelector("sla", placement=True)
        self.feed(events.PoliciesChanged((Policy(name="p", taints=(selector,), **more),)))

    def ask(self, obj: Json | None, asked_kind: Json = POD, **more: object) -> AdmissionRequest:
        asked = review(kind=asked_kind, object=obj, **more)["request"]
        return msgspec.convert(asked, AdmissionRequest)

    def mutate(self, obj: Json | None, **more: object) -> AdmissionResponse:
        return self.webhook.mutate(self.ask(obj, **more))

    def validate(self, obj: Json | None, **more: object) -> AdmissionResponse:
        return self.webhook.validate(self.ask(obj, **more))

    def paths(self, obj: Json) -> list[str]:
        return [step.path for step in self.mutate(obj).patch]


@pytest.fixture
def stage() -> Stage:
    return Stage()


DEPLOYMENT = {"group": "apps", "version": "v1", "kind": "Deployment"}


def deployment(text: str) -> Json:
    return {"spec": {"template": {"metadata": {"annotations": {"taintwarden.io/node-affinity": text}}, "spec": {}}}}


def newer(version: str = "3.27.0") -> str:
    expression = {"key": "driver", "operator": "SemverGt", "values": [version]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return json.dumps({"requiredDuringSchedulingIgnoredDuringExecution": terms})


def injecting(stage: Stage) -> Stage:
    stage.feed(events.NamespaceSeen("shop", {"taintwarden.io/inject": "true"}))
    return stage


def test_node_affinity_that_is_added_to_no_pod_is_a_warning(stage):
    opted_out = deployment(newer())
    opted_out["spec"]["template"]["metadata"]["labels"] = {"taintwarden.io/inject": "false"}
    for asked, workload in ((stage, deployment(newer())), (injecting(Stage()), opted_out)):
        [warning] = asked.validate(workload, asked_kind=DEPLOYMENT).warnings
        assert warning.endswith("must be true on the namespace, and not false on the pod")
    stage.webhook = admission_webhooks(stage.known, system_clock, ALL_GATES, by_extender=True)
    assert stage.validate(deployment(newer()), asked_kind=DEPLOYMENT).warnings == ()


def test_node_affinity_that_labels_cannot_express_is_a_warning_for_the_author_of_a_template(stage):
    warning, stays = injecting(stage).validate(deployment(newer()), asked_kind=DEPLOYMENT).warnings
    assert warning.endswith("no policy lists the label driver under versionLabels")
    assert stays.endswith("no node can match it, so the pod stays Pending")


def test_node_affinity_over_published_labels_is_no_warning(stage):
    stage.feed(events.PoliciesChanged((Policy(name="p", version_labels=("driver",)),)))
    assert injecting(stage).validate(deployment(newer()), asked_kind=DEPLOYMENT) == AdmissionResponse()


def test_invalid_node_affinity_is_refused_in_a_template(stage):
    [fault] = injecting(stage).validate(deployment(newer("latest")), asked_kind=DEPLOYMENT).refusals
    assert fault.path.endswith("nodeSelectorTerms[0].matchExpressions[0].values")


def test_a_pod_gets_the_native_toleration_for_a_profile_that_selects_it(stage):
    stage.profile(GOLD)
    assert stage.paths(pod(labels={"tier": "gold"})) == ["/spec/tolerations"]
    assert stage.paths(pod(labels={"tier": "tin"})) == []


def test_a_profile_that_selects_every_pod_counts_in_its_namespace_only(stage):
    stage.profile()
    assert stage.mutate(pod()).patch
    assert stage.mutate(pod(), namespace="other").patch == ()


def test_a_pod_without_name_and_namespace_is_that_of_the_request(stage):
    stage.profile()
    obj = pod()
    obj["metadata"] = {"generateName": "web-"}
    assert stage.mutate(obj).patch


def test_a_pod_is_placed_by_a_policy_that_may_evict_it(stage):
    stage.place()
    assert "/spec/affinity" in stage.paths(pod(extended(gt())))


def test_a_pod_is_not_placed_by_a_policy_that_excludes_it(stage):
    stage.place(exclude=Exclude(namespaces=("shop",)))
    assert stage.paths(pod(extended(gt()))) == ["/spec/tolerations"]


def test_only_valid_entries_get_native_tolerations(stage):
    obj = pod(extended(gt("0950"), gt(key="disk")))
    (step,) = stage.mutate(obj).patch
    assert step.value == [exists("disk", effect="NoExecute")]


@pytest.mark.parametrize("by_extender", [False, True])
def test_a_mirror_pod_is_not_changed(stage, by_extender):
    stage.webhook = admission_webhooks(stage.known, system_clock, ALL_GATES, by_extender=by_extender)
    obj = pod(extended(gt()))
    obj["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "x"
    assert stage.mutate(obj) == AdmissionResponse()


def test_an_object_that_is_no_pod_is_not_changed(stage):
    assert stage.mutate(pod(extended(gt())), asked_kind={**POD, "kind": "ConfigMap"}) == AdmissionResponse()


def test_a_request_without_an_object_is_allowed(stage):
    assert stage.mutate(None) == stage.validate(None) == AdmissionResponse()


def test_a_missing_native_toleration_is_a_warning_unless_the_namespace_is_injected(stage):
    request = stage.ask(inside(("spec", "template"), pod(extended(gt()))), asked_kind=DEPLOYMENT)
    stage.place()
    assert stage.webhook.validate(request).warnings
    stage.feed(events.NamespaceSeen("shop", {"taintwarden.io/inject": "true"}))
    assert stage.webhook.validate(request) == AdmissionResponse()
    stage.feed(events.NamespaceSeen("shop"))
    assert stage.webhook.validate(request).warnings


def test_the_author_of_a_template_is_warned_of_missing_placement(stage):
    workload = inside(("spec", "template"), pod(extended(gt())))
    [warning] = injecting(stage).validate(workload, asked_kind=DEPLOYMENT).warnings
    assert warning.endswith("no policy sets placement for sla")
    stage.place()
    many = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}] * 65}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": many}}
    workload["spec"]["template"]["spec"]["affinity"] = affinity
    [warning] = stage.validate(workload, asked_kind=DEPLOYMENT).warnings
    assert "placement allows 64" in warning


def test_a_controller_gets_no_warnings(stage):
    workload = controlled(inside(("spec", "template"), pod(extended(gt()))))
    kind = {**DEPLOYMENT, "kind": "ReplicaSet"}
    assert injecting(stage).validate(workload, asked_kind=kind).warnings == ()


DAEMON_SET = {"group": "apps", "version": "v1", "kind": "DaemonSet"}


def daemon_set(*native: Json) -> Json:
    return inside(("spec", "template"), pod(extended(gt()), *native))


def test_the_template_of_a_daemon_set_is_completed(stage):
    stage.place()
    completed = patched(daemon_set(), stage.mutate(daemon_set(), asked_kind=DAEMON_SET).patch)
    assert completed["spec"]["template"]["spec"].keys() >= {"affinity", "tolerations"}
    assert injecting(stage).validate(completed, asked_kind=DAEMON_SET) == AdmissionResponse()


def test_the_template_of_a_daemon_set_never_counts_as_completed(stage):
    """The webhook that completes it may be away."""
    stage.place()
    [warning] = injecting(stage).validate(daemon_set(), asked_kind=DAEMON_SET).warnings
    assert "add to spec.tolerations" in warning


def test_with_the_extender_the_template_of_a_daemon_set_gets_native_tolerations(stage):
    stage.place()
    stage.webhook = admission_webhooks(stage.known, system_clock, ALL_GATES, by_extender=True)
    completed = patched(daemon_set(), stage.mutate(daemon_set(), asked_kind=DAEMON_SET).patch)
    spec = completed["spec"]["template"]["spec"]
    assert (spec["tolerations"], "affinity" in spec) == ([exists()], False)
    assert stage.validate(completed, asked_kind=DAEMON_SET).warnings == ()


def test_a_namespace_that_comes_back_still_has_its_profiles(stage):
    """Profiles have a stream of their own, which reports their deletion."""
    stage.profile()
    stage.feed(events.NamespaceSeen("shop", {}), events.NamespaceSeen("shop"), events.NamespaceSeen("shop", {}))
    assert stage.mutate(pod()).patch
    stage.feed(events.ProfileGone("shop", "gold"), events.ProfileGone("shop", "never"))
    assert stage.mutate(pod()).patch == ()


@pytest.mark.parametrize("part", [{"spec": 7}, {"metadata": []}, {"spec": {"tolerations": [None]}}])
def test_a_malformed_pod_is_not_changed(part):
    request = msgspec.convert({"uid": "u", "kind": POD, "object": pod(extended(gt())) | part}, AdmissionRequest)
    assert Stage().webhook.mutate(request) == AdmissionResponse()


REQUIRED, PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))


NO_TERMS = [7, "x", {"a": 1}, [7], [None], [[]], *([{"matchExpressions": one}] for one in (7, [None], [{"key": []}]))]


@pytest.mark.parametrize("terms", NO_TERMS, ids=str)
def test_malformed_node_selector_terms_are_not_changed(stage, terms):
    """No API server sends such terms, but any client may, and each internal error would be logged."""
    stage.place(version_labels=("example.com/driver",))
    injecting(stage)
    hostile = pod(extended(gt()), affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})
    assert stage.mutate(hostile).patch == ()
    template = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"template": hostile}}
    for kind in ("Deployment", "DaemonSet"):
        asked = {"group": "apps", "version": "v1", "kind": kind}
        assert stage.validate(template, asked_kind=asked).refusals == ()
        assert stage.mutate(template, asked_kind=asked).patch == ()


@pytest.mark.parametrize("affinity", [7, [], {"nodeAffinity": "x"}, {"nodeAffinity": {PREFERRED: {"a": 1}}}], ids=str)
def test_a_pod_with_malformed_affinity_is_not_changed(stage, affinity):
    stage.place()
    assert stage.mutate(pod(extended(gt()), affinity=affinity)).patch == ()
