import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.profile_cases import BAD, BAD_FOR_US, GOOD, GT, profile
from api.test_tolerations import ENTRY
from taintwarden.api.profiles import MAX_ENTRIES_IN_NAMESPACE, check_size, parse_profile
from taintwarden.engine.model import Profile, Toleration
from taintwarden.engine.selectors import EVERYTHING, LabelSelector, Requirement, SelectorOperator
from taintwarden.fields.field_errors import FieldError, InvalidObject


def errors_of(obj: object) -> list[FieldError]:
    with pytest.raises(InvalidObject) as caught:
        parse_profile(obj)  # type: ignore[arg-type]
    return list(caught.value.errors)


@pytest.mark.parametrize("name", GOOD)
def test_good_profile_is_accepted(name):
    assert parse_profile(profile(GOOD[name])).name == "case"


@pytest.mark.parametrize("bad", (BAD | BAD_FOR_US).values(), ids=BAD | BAD_FOR_US)
def test_bad_profile_is_refused_at_its_field(bad):
    assert {error.path for error in errors_of(profile(bad.spec))} == {bad.path}


def test_every_field_arrives():
    entry = GT | {"effect": "NoExecute", "tolerationSeconds": 30, "violationGraceSeconds": 60}
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "canary", "operator": "DoesNotExist"}]}
    obj = profile({"podSelector": selector, "tolerations": [entry, {"operator": "Exists"}]}, "fast", "shop")
    obj["metadata"] |= {"uid": "u", "generation": 3}
    obj["status"] = {"matchedPods": 1}
    assert parse_profile(obj) == Profile(
        "shop",
        "fast",
        LabelSelector(
            (
                Requirement("app", SelectorOperator.IN, ("web",)),
                Requirement("canary", SelectorOperator.DOES_NOT_EXIST),
            )
        ),
        (Toleration("sla", "Gt", "950", "NoExecute", 30, 60), Toleration(operator="Exists")),
    )


@pytest.mark.parametrize("selector", [{}, {"podSelector": {}}, {"podSelector": None}])
def test_a_profile_without_a_selector_is_for_every_pod(selector):
    assert parse_profile(profile({"tolerations": [GT], **selector})).selector == EVERYTHING


def test_a_duplicate_toleration_is_reported_with_both_places():
    assert [str(error) for error in errors_of(profile({"tolerations": [{"operator": "Exists"}] * 2}))] == [
        'spec.tolerations: Duplicate value: "* Exists": is listed in [0] and [1]; write each toleration once'
    ]


def test_a_policy_is_no_profile():
    assert [error.path for error in errors_of(profile({"tolerations": [GT]}) | {"kind": "TaintEvictionPolicy"})] == [
        "kind"
    ]


@given(st.lists(ENTRY, max_size=3))
def test_any_list_is_accepted_or_refused_at_an_entry(entries):
    accepted, faults = 0, ()
    try:
        accepted = len(parse_profile(profile({"tolerations": entries})).tolerations)
    except InvalidObject as error:
        faults = error.errors
    assert accepted == len(entries) or faults
    assert all(fault.path.startswith("spec.tolerations") for fault in faults)


@pytest.mark.parametrize(
    ("name", "size"), [("least", 1), ("most_values", 32), ("expression", 3), ("affinity_most_values", 32)]
)
def test_the_entries_of_the_profiles_of_a_namespace_are_bounded(name, size):
    one = parse_profile(profile(GOOD[name]))
    check_size(one, MAX_ENTRIES_IN_NAMESPACE - size)
    with pytest.raises(InvalidObject, match=r"would have 1001 entries with it, and at most 1000 count"):
        check_size(one, MAX_ENTRIES_IN_NAMESPACE - size + 1)
