"""Tolerations and affinity that a pod gets before it is stored."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.patching import patched
from admission.workloads import Json, exists, pod
from taintwarden.engine.affinity import NOWHERE, NodeAffinity, NodeOperator, NodeRequirement, Preference
from taintwarden.engine.model import Effect, PodClass, Toleration, Tolerations
from taintwarden.engine.operators import ALL_GATES, Operator
from taintwarden.engine.policy import Exclude, Mode, Policy, TaintSelector
from taintwarden_placement.admission.injection import NO_NODE, Additions, additions, native_additions
from taintwarden_placement.admission.placing import ConcerningPolicies, concerning_policies
from taintwarden_placement.admission.response import AdmissionResponse
from taintwarden_placement.scheduling.feasibility import Demand, SourcedAffinity

NODE_TERMS = "nodeSelectorTerms"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def above(value: str = "950", key: str = "sla", effect: str = "") -> Toleration:
    return Toleration(key, Operator.GT, value, effect)


EVICTING = Policy(name="evicting", taints=(TaintSelector("*", tuple(Effect)),))


def placing(*effects: Effect, key: str = "sla", mode: Mode = Mode.ENFORCE) -> Policy:
    selector = TaintSelector(key, effects or (Effect.NO_EXECUTE,), placement=True)
    return Policy(name="p", taints=(selector,), mode=mode, rehearses=mode is Mode.DRY_RUN)


def inject(
    obj: Json, demand: Demand, policies: ConcerningPolicies, published: tuple[str, ...] = ()
) -> AdmissionResponse:
    return additions(obj, demand, policies, published, ALL_GATES).response()


def injected(obj: Json, *extended: Toleration, policies: tuple[Policy, ...] = ()) -> AdmissionResponse:
    native = msgspec.convert(obj["spec"].get("tolerations", []), tuple[Toleration, ...])
    return inject(obj, Demand(Tolerations(native, extended)), concerning(policies))


def concerning(policies: tuple[Policy, ...], **pod_class: Any) -> ConcerningPolicies:
    return concerning_policies(policies, PodClass("shop", {}, Tolerations(), **pod_class), {})


def tolerations(obj: Json, *extended: Toleration) -> list[Json]:
    return patched(obj, injected(obj, *extended, policies=(EVICTING,)).patch)["spec"].get("tolerations", [])


def test_a_pod_without_extended_tolerations_is_not_changed():
    assert injected(pod(None, exists()), policies=(placing(),)) == AdmissionResponse()


NO_EXECUTE = above(effect="NoExecute")


@pytest.mark.parametrize(
    ("native", "extended", "added"),
    [
        pytest.param(None, [NO_EXECUTE], [exists(effect="NoExecute")], id="for the key and the effect"),
        pytest.param(None, [above()], [exists()], id="for every effect"),
        pytest.param(None, [above(), above("900"), NO_EXECUTE], [exists()], id="one for a key"),
        pytest.param(
            None,
            [above(effect="NoSchedule"), NO_EXECUTE],
            [exists(effect="NoSchedule"), exists(effect="NoExecute")],
            id="one for each effect",
        ),
        pytest.param(None, [Toleration(operator=Operator.EXISTS)], [], id="none for every key"),
        pytest.param(exists(), [NO_EXECUTE], [], id="covered for every effect"),
        pytest.param({"operator": "Exists"}, [NO_EXECUTE], [], id="covered for every key"),
        pytest.param(exists(effect="NoExecute"), [NO_EXECUTE], [], id="covered"),
        *(
            pytest.param(native, [NO_EXECUTE], [exists(effect="NoExecute")], id=f"not covered by {native}")
            for native in (
                exists(effect="NoSchedule"),
                exists(tolerationSeconds=30, effect="NoExecute"),
                {"key": "sla", "operator": "Equal", "value": "950"},
                exists("other"),
            )
        ),
    ],
)
def test_a_native_toleration_is_added_after_those_of_the_pod(
    native: Json | None, extended: list[Toleration], added: list[Json]
):
    own = [] if native is None else [native]
    assert tolerations(pod(None, *own), *extended) == [*own, *added]


def test_an_empty_list_gets_a_native_toleration_too():
    obj = pod()
    for nothing in ([], None):
        obj["spec"]["tolerations"] = nothing
        response = inject(obj, Demand(Tolerations((), (above(),))), ConcerningPolicies())
        assert patched(obj, response.patch)["spec"]["tolerations"]


def terms(response: AdmissionResponse) -> list[Json]:
    (affinity,) = (step.value for step in response.patch if step.path == "/spec/affinity")
    return affinity["nodeAffinity"][REQUIRED][NODE_TERMS]


@pytest.mark.parametrize(
    ("policy", "spec", "is_placed"),
    [
        pytest.param(placing(mode=Mode.PAUSED), {}, True, id="a pause"),
        pytest.param(placing(mode=Mode.DRY_RUN), {}, False, id="a rehearsal"),
        pytest.param(Policy(name="p", taints=(TaintSelector("sla"),)), {}, False, id="without placement"),
        pytest.param(placing(key="disk"), {}, False, id="a key that the pod does not name"),
        pytest.param(placing(), {"nodeName": "n1"}, False, id="a pod that names its node"),
    ],
)
def test_pods_that_a_placing_policy_concerns_get_affinity(policy: Policy, spec: Json, is_placed: bool):
    paths = [step.path for step in injected(pod(**spec), above(), policies=(policy,)).patch]
    assert paths == ["/spec/tolerations"] + ["/spec/affinity"] * is_placed


def test_a_toleration_that_affinity_cannot_express_is_a_warning():
    prerelease = Toleration("cni", Operator.SEMVER_GT, "1.28.0-rc.1")
    (warning, *_) = injected(pod(), prerelease, policies=(placing(key="cni"),)).warnings
    assert warning.startswith("placement: pre-releases of 1.28.0")


def test_a_pod_without_placement_or_eviction_does_not_tolerate_no_schedule():
    response = injected(pod(), above(), above(effect="NoSchedule"), above("5", "other", "NoExecute"))
    assert [step.value for step in response.patch] == [
        [exists(effect="NoExecute"), exists("other", effect="NoExecute")]
    ]
    [warning] = response.warnings
    assert warning.startswith("a NoSchedule taint keeps the pod off a node")
    assert warning.endswith("no policy sets placement for sla")


@pytest.mark.parametrize("own", [exists(), exists(effect="NoSchedule"), exists("")])
def test_a_pod_that_tolerates_no_schedule_itself_gets_no_warning(own: Json):
    assert injected(pod(None, own), above()).warnings == ()


def test_many_keys_are_one_warning():
    [warning] = injected(pod(), *(above(key=f"k{number}") for number in range(9))).warnings
    assert warning.endswith("for k0, k1, k2, k3, k4 and 4 more")


def test_a_pod_that_tolerates_every_value_needs_no_placement():
    every = Toleration("sla", Operator.EXISTS, "", "NoSchedule")
    assert tolerations(pod(), every) == [exists(effect="NoSchedule")]


@pytest.mark.parametrize("policy", [placing(), EVICTING])
def test_placement_or_an_eviction_by_no_schedule_adds_a_toleration_for_it(policy: Policy):
    (first, *_) = injected(pod(), above(effect="NoSchedule"), policies=(policy,)).patch
    assert first.value == [exists(effect="NoSchedule")]


def test_a_dry_run_by_no_schedule_adds_no_toleration_for_it():
    rehearsing = msgspec.structs.replace(EVICTING, mode=Mode.DRY_RUN, rehearses=True)
    assert injected(pod(), above(effect="NoSchedule"), policies=(rehearsing,)).patch == ()


def preferred(response: AdmissionResponse) -> list[Json]:
    (affinity,) = (step.value for step in response.patch if step.path == "/spec/affinity")
    return affinity["nodeAffinity"].get(PREFERRED, [])


def test_a_taint_that_keeps_no_pod_off_is_not_compared():
    response = injected(pod(), above(effect="PreferNoSchedule"), policies=(placing(Effect.PREFER_NO_SCHEDULE),))
    assert [step.value for step in response.patch] == [[exists(effect="PreferNoSchedule")]]


def own_terms(number: int) -> Json:
    """Affinity with `number` terms of the pod's own."""
    term = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    return {"nodeAffinity": {REQUIRED: {NODE_TERMS: [term] * number}}}


@pytest.mark.parametrize("native", [[], [exists()]])
def test_a_pod_that_cannot_be_placed_is_placed_on_no_node(native: list[Json]):
    """The pod would be scheduled on nodes that it does not tolerate, and evicted repeatedly."""
    response = injected(pod(None, *native, affinity=own_terms(65)), above(), policies=(placing(),))
    assert [step.value for step in response.patch if step.path != "/spec/tolerations"] == [NO_NODE]
    assert "placement allows 64" in response.warnings[0]
    assert response.warnings[0].endswith("no node is used")


def test_seven_keys_are_placed():
    extended = [above(key=f"k{number}") for number in range(7)]
    policies = tuple(placing(key=one.key) for one in extended)
    response = injected(pod(), *extended, policies=policies)
    assert (len(terms(response)), response.warnings) == (1, ())


@pytest.mark.parametrize("excluded", [{"daemon_set": True}, {"do_not_evict": True}, {"do_not_disrupt": True}])
def test_a_pod_that_is_excluded_from_evictions_is_placed(excluded: Json):
    found = concerning((placing(),), **excluded)
    assert (len(found.placing), len(found.evicting)) == (1, 0)


def test_a_pod_that_no_policy_would_evict_does_not_tolerate_no_schedule():
    """Policies may exclude pods of DaemonSets; other pods get the toleration by the same policy."""
    demand = Demand(Tolerations((), (above(effect="NoSchedule"),)))
    guarded, unguarded = concerning((EVICTING,)), concerning((EVICTING,), daemon_set=True)
    assert inject(pod(), demand, guarded).patch
    assert not inject(pod(), demand, unguarded).patch


@pytest.mark.parametrize("exclude", [Exclude(namespaces=("shop",)), Exclude(priority_at_least=0)])
def test_a_pod_that_a_policy_does_not_concern_is_not_placed_by_it(exclude: Exclude):
    assert concerning((msgspec.structs.replace(placing(), exclude=exclude),)) == ConcerningPolicies()


DRIVER = "example.com/driver"
REPEATED = "example.com.label-version.taintwarden.io/driver"


def newer(version: str = "3.27.0", key: str = DRIVER) -> tuple[NodeRequirement, ...]:
    return (NodeRequirement(key, NodeOperator.SEMVER_GT, (version,)),)


def demanding(obj: Json, *affinities: NodeAffinity, fault: str = "", **more: Any) -> AdmissionResponse:
    sourced = tuple(SourcedAffinity("the annotation", affinity, fault) for affinity in affinities)
    extended = more.pop("extended", ())
    demand = Demand(Tolerations((), extended), sourced)
    return inject(obj, demand, concerning(more.pop("policies", ())), (DRIVER,))


def test_versions_in_node_affinity_become_numbers_of_repeated_labels():
    response = demanding(pod(), NodeAffinity((newer(),)))
    assert terms(response) == [
        {"matchExpressions": [{"key": REPEATED, "operator": "Gt", "values": ["30027000000001"]}]}
    ]
    assert response.warnings == ()


def test_every_affinity_has_to_match():
    (term,) = terms(demanding(pod(), NodeAffinity((newer(),)), NodeAffinity((newer("2.0.0"),))))
    assert len(term["matchExpressions"]) == 2


def test_preferences_keep_their_weight():
    response = demanding(pod(), NodeAffinity(None, (Preference(7, newer()),)))
    assert [one["weight"] for one in preferred(response)] == [7]


@pytest.mark.parametrize(
    ("affinity", "fault", "words"),
    [
        (NOWHERE, "is not JSON", "node affinity of the annotation: is not JSON"),
        (NodeAffinity((newer(key="other"),)), "", "no policy lists the label other under versionLabels"),
        (NodeAffinity((newer("1.10000.0"),)), "", "too many digits"),
    ],
)
def test_a_pod_whose_affinity_cannot_be_written_is_placed_on_no_node_with_a_warning(
    affinity: NodeAffinity, fault: str, words: str
):
    obj = pod(nodeSelector={"disk": "ssd"})
    response = demanding(obj, affinity, fault=fault)
    assert patched(obj, response.patch)["spec"]["nodeSelector"] == {"disk": "ssd", **NO_NODE}
    assert words in response.warnings[0]
    assert response.warnings[-1].endswith("no node can match it, so the pod stays Pending")


def test_one_term_that_cannot_be_written_is_left_out():
    response = demanding(pod(), NodeAffinity((newer(key="other"), newer())))
    assert len(terms(response)) == len(response.warnings) == 1


def test_too_many_terms_with_an_affinity_place_the_pod_on_no_node():
    obj = pod(affinity=own_terms(64))
    response = demanding(obj, NodeAffinity((newer(), newer("9.0.0"))))
    assert patched(obj, response.patch)["spec"] == {**obj["spec"], "nodeSelector": NO_NODE}
    assert "at most 64" in response.warnings[0]


def test_ten_thousand_terms_are_not_merged():
    many = NodeAffinity(tuple(newer(f"{number}.0.0") for number in range(10_000)))
    assert "they take 10000 native ones, at most 64 are possible" in demanding(pod(), many).warnings[0]


@pytest.mark.parametrize(
    "affinity", [NOWHERE, NodeAffinity((newer(),), (Preference(7, newer()), Preference(7, newer())))]
)
def test_a_second_review_adds_no_affinity(affinity: NodeAffinity):
    more = {"extended": (above(),), "policies": (placing(),)}
    after = patched(pod(), demanding(pod(), affinity, **more).patch)
    assert demanding(after, affinity, **more).patch == ()


keys = st.sampled_from(["sla", "example.com/cni"])
effects = st.sampled_from(["", "NoSchedule", "NoExecute"])
extended = st.lists(
    st.one_of(
        st.builds(above, st.sampled_from(["1", "950"]), keys, effects),
        st.builds(lambda key, effect: Toleration(key, Operator.SEMVER_GT, "1.2.3", effect), keys, effects),
    ),
    max_size=4,
)


def dropped(entry: Json) -> Json:
    return {name: value for name, value in entry.items() if value}


native = st.lists(
    st.fixed_dictionaries(
        {"key": keys, "operator": st.sampled_from(["Exists", "Equal"]), "effect": effects},
        optional={"tolerationSeconds": st.just(30)},
    ).map(dropped),
    max_size=3,
)
policies = st.lists(
    st.builds(lambda key, effect: placing(effect, key=key), keys, st.sampled_from(list(Effect))), max_size=2
)
affinities = st.sampled_from(
    [None, {}, {"nodeAffinity": {REQUIRED: {NODE_TERMS: [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}]
)


@given(native, extended, policies, affinities)
def test_a_second_review_adds_nothing_and_tolerations_of_the_pod_stay(
    brought: list[Json], wanted: list[Toleration], placed: list[Policy], affinity: Any
):
    obj = pod(None, *brought, **({} if affinity is None else {"affinity": affinity}))
    after = patched(obj, injected(obj, *wanted, policies=tuple(placed)).patch)
    assert injected(after, *wanted, policies=tuple(placed)).patch == ()
    assert after["spec"].get("tolerations", [])[: len(brought)] == brought
    covered = [one for one in after["spec"].get("tolerations", []) if one["operator"] == "Exists"]
    evicting = (entry.key for entry in wanted if entry.effect in ("", "NoExecute"))
    assert set(evicting) <= {one["key"] for one in covered}


def test_with_the_extender_every_key_gets_a_native_toleration_and_nothing_else():
    found = native_additions(pod(), Tolerations((), (above(effect="NoSchedule"), above(key="cni"))))
    assert found == Additions({"tolerations": [exists(effect="NoSchedule"), exists("cni")]})
