"""Requirements are merged into every term of a pod's affinity that can hold, and nothing else changes."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.node_selector import holds
from taintwarden.engine.affinity import NodeOperator, NodeRequirement
from taintwarden.engine.model import Toleration
from taintwarden_placement.admission.merged_affinity import prefer, restrict
from taintwarden_placement.affinity import MAX_TERMS, Alternatives, requirements

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
HERE = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
ABOVE = {"key": "value-or-max.taintwarden.io/sla", "operator": "Gt", "values": ["950"]}
BELOW = {"key": "value-or-min.taintwarden.io/sla", "operator": "Lt", "values": ["5"]}
NEWER = {"key": "version.taintwarden.io/cni", "operator": "Gt", "values": ["10000000000001"]}


def wanted(key, operator, value):
    return requirements(key, [Toleration(key, operator, value)])


SLA, CNI = wanted("sla", "Gt", "950"), wanted("cni", "SemverGt", "1.0.0")
EITHER = requirements("sla", [Toleration("sla", "Gt", "950"), Toleration("sla", "Lt", "5")])


def required(*terms, **more):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}, **more}}


def term(*expressions, **more):
    return {"matchExpressions": list(expressions), **more}


class Compared(dict):
    """An entry that counts comparisons with it."""

    number = 0

    def __eq__(self, other):
        Compared.number += 1
        return super().__eq__(other)

    __hash__ = None


def test_many_entries_of_a_pod_are_not_compared_with_each_addition():
    restrict(required(term(*[Compared(SSD)] * 100)), [wanted(f"k{one}", "Gt", "950") for one in range(10)])
    prefer({"nodeAffinity": {PREFERRED: [Compared(OWN)] * 100}}, [WANTED] * 10)
    assert Compared.number == 0


@pytest.mark.parametrize("affinity", [None, {}, {"nodeAffinity": None}, {"nodeAffinity": {REQUIRED: None}}])
def test_a_pod_without_required_affinity_gets_the_requirements(affinity):
    assert restrict(affinity, [SLA]) == (required(term(ABOVE)), None)


def test_every_term_gets_every_alternative():
    found, fault = restrict(required(term(SSD), {"matchFields": [HERE]}), [EITHER])
    assert fault is None
    assert found == required(
        term(SSD, ABOVE), term(SSD, BELOW), term(ABOVE, matchFields=[HERE]), term(BELOW, matchFields=[HERE])
    )


def test_the_requirements_of_several_keys_must_all_hold():
    assert restrict(None, [SLA, CNI]) == (required(term(ABOVE, NEWER)), None)
    assert restrict(None, [EITHER, CNI]) == (required(term(ABOVE, NEWER), term(BELOW, NEWER)), None)


def test_the_terms_of_many_keys_do_not_multiply():
    many = [wanted(f"k{number}", operator, "5") for number in range(20) for operator in ("Gt", "Lt", "SemverGt")]
    found, fault = restrict(None, many)
    assert fault is None
    assert len(found["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]) == 1


def fast(*disks):
    return Alternatives("annotation", terms=tuple((NodeRequirement("disk", NodeOperator.IN, (one,)),) for one in disks))


NVME = {**SSD, "values": ["nvme"]}
OF_SLA = {"key": "value.taintwarden.io/sla", "operator": "Gt", "values": ["900"]}
OF_CNI = {"key": "version.taintwarden.io/cni", "operator": "In", "values": ["10002000000001"]}


@pytest.mark.parametrize(
    ("terms", "added", "merged"),
    [
        pytest.param([], [SLA], [], id="a list without terms is left to the API server"),
        pytest.param([{}, term(), term(SSD)], [SLA], [{}, term(), term(SSD, ABOVE)], id="an empty term is for no node"),
        pytest.param([term(OF_SLA), term(SSD)], [SLA], [term(OF_SLA), term(SSD, ABOVE)], id="own of the label"),
        pytest.param([term(OF_CNI)], [SLA, CNI], [term(OF_CNI, ABOVE)], id="own of the label of another key"),
        pytest.param([term(NVME)], [fast("ssd")], [term(NVME, SSD)], id="own of an ordinary label"),
        pytest.param([term(SSD, HERE)], [fast("ssd", "nvme")], [term(SSD, HERE)], id="has what is demanded"),
    ],
)
def test_terms_of_the_pod_are_merged_with_requirements(terms, added, merged):
    assert restrict(required(*terms), added) == (required(*merged), None)


def test_a_term_that_only_names_the_effect_is_not_added_again():
    by_effect = [Toleration("sla", "Gt", "950", "NoExecute"), Toleration("sla", "Exists", "", "NoSchedule")]
    once, _ = restrict(None, [requirements("sla", by_effect)])
    effect = {"key": "effect.taintwarden.io/sla", "operator": "In", "values": ["NoSchedule"]}
    assert term(effect) in once["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert restrict(once, [SLA]) == (once, None)


def test_requirements_change_no_preferences_and_no_other_affinity():
    others = {"podAffinity": {"x": 1}, "podAntiAffinity": {"y": 2}}
    preferred = {PREFERRED: [{"weight": 1, "preference": term(SSD)}]}
    found, _ = restrict({**required(term(SSD), **preferred), **others}, [SLA])
    assert found == {**required(term(SSD, ABOVE), **preferred), **others}


def test_the_given_affinity_is_not_changed_in_place():
    given_affinity = required(term(SSD))
    before = deepcopy(given_affinity)
    restrict(given_affinity, [SLA])
    assert given_affinity == before


@pytest.mark.parametrize("affinity", [None, {}, required(term(SSD))])
def test_without_restrictions_nothing_is_added(affinity):
    assert restrict(affinity, []) == restrict(affinity, [wanted("sla", "Exists", "")]) == (affinity, None)


def test_too_many_terms_are_refused_and_nothing_is_added():
    affinity = required(*(term({**SSD, "values": [str(index)]}) for index in range(MAX_TERMS // 2 + 1)))
    found, fault = restrict(affinity, [EITHER, CNI])
    assert found == affinity
    assert fault == "placement by sla, cni takes 66 nodeSelectorTerms, at most 64 are possible"


def test_terms_up_to_the_limit_are_added():
    affinity = required(*(term({**SSD, "values": [str(index)]}) for index in range(MAX_TERMS // 2)))
    found, fault = restrict(affinity, [EITHER])
    assert fault is None
    assert len(found["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]) == MAX_TERMS


WANTED = [{"weight": weight, "preference": term(ABOVE)} for weight in (2, 3)]
OWN = {"weight": 1, "preference": term(SSD)}


def test_preferences_are_added_after_those_of_the_pod():
    found, fault = prefer({"nodeAffinity": {PREFERRED: [OWN]}}, [WANTED])
    assert (found, fault) == ({"nodeAffinity": {PREFERRED: [OWN, *WANTED]}}, None)


def test_preferring_twice_changes_nothing():
    once, _ = prefer(required(term(SSD)), [WANTED])
    assert prefer(once, [WANTED]) == (once, None)


def test_too_many_preferences_do_not_change_the_affinity():
    given_affinity = {"nodeAffinity": {PREFERRED: [OWN] * (MAX_TERMS - 1)}}
    found, fault = prefer(given_affinity, [WANTED])
    assert found == given_affinity
    assert fault == "the pod has 63 preferences and gets 2: placement allows 64"


LABELS = st.fixed_dictionaries(
    {},
    optional={
        "disk": st.sampled_from(["ssd", "hdd"]),
        "value-or-max.taintwarden.io/sla": st.sampled_from(["", "940", "980"]),
        "effect.taintwarden.io/sla": st.sampled_from(["None", "NoSchedule"]),
        "version.taintwarden.io/cni": st.sampled_from(["10000000000000", "20000000000001"]),
        "value.taintwarden.io/cni": st.just("x"),
    },
)
TERMS = st.lists(st.sampled_from([{}, term(), term(SSD), term({**SSD, "operator": "NotIn"})]), min_size=1, max_size=3)


def as_terms(alternatives):
    return [term(*(one.as_json() for one in each)) for each in alternatives.terms]


@given(TERMS, LABELS)
def test_a_node_must_match_the_own_terms_and_the_requirements(terms, labels):
    merged = restrict(required(*terms), [SLA, CNI])[0]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    both = holds(as_terms(SLA), labels) and holds(as_terms(CNI), labels)
    assert holds(merged, labels) == (holds(terms, labels) and both)


@given(TERMS)
def test_merging_twice_changes_nothing(terms):
    once, _ = restrict(required(*terms), [SLA, CNI])
    assert restrict(once, [SLA, CNI]) == (once, None)
