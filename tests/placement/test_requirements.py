"""Tolerations as requirements on the labels of nodes."""

from functools import reduce

import pytest

from taintwarden.engine.model import Effect, Gates, Toleration
from taintwarden.engine.natural import parse_natural
from taintwarden_placement.affinity import requirements
from taintwarden_placement.node_labels.encoding import encode_natural

SHORT = {
    "value-or-max.taintwarden.io/k": "high",
    "value-or-min.taintwarden.io/k": "low",
    "version-or-min.taintwarden.io/k": "low-version",
    "value.taintwarden.io/k": "value",
    "version.taintwarden.io/k": "version",
    "order.taintwarden.io/k": "order",
    "effect.taintwarden.io/k": "effect",
    str(2**63 - 1): "MAX",
}
ABSENT = "effect In None"
EXECUTE, SCHEDULE = Effect.NO_EXECUTE, Effect.NO_SCHEDULE
KERNEL = "5.15.0-91-generic"
NUMBER, KERNEL_NUMBER = (encode_natural(parse_natural(text) or ())[0] for text in ("5.15.0-91", KERNEL))
MAX, MIN = str(2**63 - 1), str(-(2**63))


def tolerates(operator, value="", effect="", key="k"):
    return Toleration(key, operator, value, effect)


def asked(*tolerations, **more):
    return requirements("k", tolerations, **more)


def written(alternatives):
    """The terms in a short form."""
    terms = [
        " & ".join(f"{one.key} {one.operator}" + (f" {','.join(one.values)}" if one.values else "") for one in term)
        for term in alternatives.terms
    ]
    return [reduce(lambda text, pair: text.replace(*pair), SHORT.items(), term) for term in terms]


@pytest.mark.parametrize(
    ("operator", "value", "terms"),
    [
        ("Gt", "950", ["high Gt 950"]),
        ("Gt", "0", ["high Gt 0"]),
        ("Gt", "-5", ["high Gt 0", "low Lt 1"]),
        ("Gt", MIN, ["high Gt 0", "low Lt 1"]),
        ("Gt", MAX, [ABSENT]),
        ("Gt", "0950", [ABSENT]),
        ("Lt", "950", ["low Lt 950"]),
        ("Lt", MAX, ["low Lt MAX"]),
        ("Lt", "0", [ABSENT]),
        ("Lt", "-5", [ABSENT]),
        ("Equal", "gold", ["high In gold,MAX"]),
        ("", "gold", ["high In gold,MAX"]),
        ("Equal", "", [ABSENT, "value In  & version DoesNotExist"]),
        ("SemverGt", "1.28", ["version Gt 10028000000001"]),
        ("SemverLt", "v1.28.0", ["low-version Lt 10028000000001"]),
        ("SemverEq", "1.28.0", ["version In 10028000000001,MAX"]),
        ("SemverLt", "1.28.0-0", ["low-version Lt 10028000000000"]),
        ("SemverGt", "latest", [ABSENT]),
        ("VersionGt", "5.15.0-91", [ABSENT, f"order Gt {NUMBER}"]),
        ("VersionLt", "v5.15-91", [ABSENT, f"order Lt {NUMBER}"]),
        ("VersionEq", "5.15.0-91", [ABSENT, f"order In {NUMBER}"]),
        ("VersionGt", "latest", [ABSENT]),
        ("Near", "950", [ABSENT]),
    ],
)
def test_each_toleration_has_its_terms(operator, value, terms):
    found = asked(tolerates(operator, value))
    assert (written(found), found.faults) == (terms, ())


@pytest.mark.parametrize(
    ("operator", "value", "terms", "fault"),
    [
        ("SemverGt", "1.28.0-rc.1", ["version Gt 10028000000000"], "pre-releases of 1.28.0 above 1.28.0-rc.1"),
        ("SemverLt", "1.28.0-rc.1", ["low-version Lt 10028000000000"], "pre-releases of 1.28.0 below 1.28.0-rc.1"),
        ("SemverEq", "v1.27.3-gke.1", ["high In 1.27.3-gke.1,v1.27.3-gke.1,MAX"], "only nodes that spell the version"),
        ("VersionGt", KERNEL, [ABSENT, f"order Gt {KERNEL_NUMBER}"], f"versions above {KERNEL} that begin as it does"),
        ("VersionLt", KERNEL, [ABSENT, f"order Lt {KERNEL_NUMBER}"], f"versions below {KERNEL} that begin as it does"),
        ("VersionEq", KERNEL, [f"high In {KERNEL},MAX"], f"only nodes that spell the version {KERNEL}"),
        ("VersionEq", f"v1.2+{'k' * 20}", [ABSENT], "only nodes that spell the version"),
        ("SemverEq", "1.0.0--", [ABSENT], "only nodes that spell the version"),
        ("SemverEq", "1.10000.0", ["high In 1.10000.0,v1.10000.0,MAX"], "only nodes that spell the version"),
        ("SemverGt", "1.10000.0", [ABSENT], "too many digits"),
        ("Equal", "0950", [ABSENT], "is not a canonical integer"),
    ],
)
def test_a_value_that_labels_cannot_express_is_left_out_and_reported(operator, value, terms, fault):
    found = asked(tolerates(operator, value))
    assert written(found) == terms
    [reported] = found.faults
    assert fault in reported


def test_several_tolerations_admit_nodes_that_any_of_them_admits():
    found = asked(*(tolerates(*pair) for pair in (("Gt", "9"), ("Gt", "7"), ("Lt", "3"), ("Lt", "2"), ("Equal", "x"))))
    assert written(found) == ["high Gt 7", "low Lt 3", "high In x,MAX"]


def test_several_versions_admit_nodes_that_any_of_them_admits():
    pairs = (("SemverGt", "1.9.0"), ("SemverGt", "1.8.0-rc.1"), ("SemverLt", "0.2.0"), ("SemverLt", "0.3.0-rc.1"))
    found = asked(*(tolerates(*pair) for pair in pairs))
    assert written(found) == ["version Gt 10008000000000", "low-version Lt 3000000000"]
    assert len(found.faults) == 2


def test_terms_may_overlap_and_are_no_more_than_the_tolerations():
    pairs = (("Lt", "3"), ("SemverGt", "2.0.0"), ("Equal", "v2.1.0"))
    found = asked(*(tolerates(*pair) for pair in pairs))
    assert written(found) == ["low Lt 3", "high In v2.1.0,MAX", "version Gt 20000000000001"]


def test_a_pre_release_that_the_other_bound_includes_is_not_left_out():
    assert asked(tolerates("SemverGt", "1.8.0-rc.1"), tolerates("SemverLt", "1.9.0")).faults == ()


def test_exists_admits_every_node():
    found = asked(tolerates("SemverGt", "1.0.0-rc.1"), tolerates("Exists"))
    assert (found.unrestricted, found.terms, found.faults) == (True, (), ())


def test_exists_for_all_keys_counts_too():
    assert asked(tolerates("Gt", "950"), tolerates("Exists", key="")).unrestricted


def test_a_key_that_is_not_named_is_left_to_the_scheduler():
    assert asked(tolerates("Gt", "950", key="other"), tolerates("Exists", key="")).unrestricted
    assert asked().unrestricted


def test_a_toleration_for_one_effect_does_not_count_for_the_other():
    assert written(asked(tolerates("Gt", "950", SCHEDULE))) == ["effect In None,NoSchedule & high Gt 950"]


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_numbers_can_be_switched_off(operator):
    assert written(asked(tolerates(operator, "5"), gates=Gates(numeric_operators=False))) == [ABSENT]


@pytest.mark.parametrize("operator", ["SemverGt", "SemverLt", "SemverEq"])
def test_versions_can_be_switched_off(operator):
    assert written(asked(tolerates(operator, "5"), gates=Gates(semver_operators=False))) == [ABSENT]


def test_effects_that_differ_are_distinguished_by_their_label():
    found = asked(tolerates("Gt", "950", EXECUTE), tolerates("Gt", "900", SCHEDULE))
    assert (written(found), found.faults) == (
        [
            "effect DoesNotExist & high Gt 950",
            "effect In None,NoSchedule & high Gt 900",
            "effect In NoExecute_NoSchedule & high Gt 950 & high Gt 900",
        ],
        (),
    )


def test_an_effect_that_is_always_tolerated_has_no_requirement():
    found = asked(tolerates("Gt", "950", EXECUTE), tolerates("Exists", "", SCHEDULE))
    assert written(found) == [
        "effect In None,NoExecute_NoSchedule & high Gt 950",
        "effect DoesNotExist & high Gt 950",
        "effect In NoSchedule",
    ]


def test_a_node_without_labels_does_not_count_as_one_with_another_effect():
    found = asked(tolerates("Exists", "", EXECUTE), tolerates("Gt", "950", SCHEDULE))
    assert written(found) == [
        "effect DoesNotExist & value Exists",
        "effect In None,NoSchedule,NoExecute_NoSchedule & high Gt 950",
    ]


@pytest.mark.parametrize("effects", [[EXECUTE], [SCHEDULE], [EXECUTE, SCHEDULE]])
@pytest.mark.parametrize("operator", ["Gt", "Lt", "Equal", "SemverGt", "SemverLt", "SemverEq"])
def test_one_comparison_is_one_term(operator, effects):
    """The terms of several keys therefore do not multiply."""
    assert len(asked(tolerates(operator, "5"), effects=effects).terms) == 1


def test_effects_that_the_scheduler_rejects_itself_need_no_requirement():
    found = asked(tolerates("Gt", "950", EXECUTE), effects=[EXECUTE])
    assert written(found) == ["high Gt 950"]
    assert asked(tolerates("Gt", "950", EXECUTE), effects=[]).unrestricted


def test_an_effect_that_is_never_tolerated_admits_no_node():
    found = asked(tolerates("Gt", "950", EXECUTE))
    assert written(found) == [ABSENT, "effect DoesNotExist & high Gt 950"]


def test_a_key_that_is_too_long_is_reported():
    key = "a" * 224 + "/k"
    found = requirements(key, [tolerates("Gt", "1", key=key)])
    assert (found.unrestricted, found.faults) == (True, (f"{key}: its prefix is too long for a label",))


def test_a_requirement_is_written_in_the_format_of_the_api():
    [[only]] = asked(tolerates("Gt", "950")).terms
    assert only.as_json() == {"key": "value-or-max.taintwarden.io/k", "operator": "Gt", "values": ["950"]}
