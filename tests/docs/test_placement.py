"""The page about placement says what the code does: numbers of versions, labels, what pods get."""

import re

import pytest

from docs.pages import BY_NAME, data_blocks
from taintwarden.engine.model import Taint, Toleration
from taintwarden.engine.policy import TaintSelector, ValueType
from taintwarden.engine.versions import parse_version
from taintwarden.fields.names import MAX_PLACED_PREFIX_LENGTH
from taintwarden_placement.admission.merged_affinity import restrict
from taintwarden_placement.affinity import MAX_TERMS, requirements
from taintwarden_placement.node_labels import encode_version, neutral_labels, node_labels

PAGE = BY_NAME["docs/placement.md"]
NUMBERS = PAGE.table("Versions as numbers").rows
SHORT = {
    f"{domain}.taintwarden.io/sla": domain.partition("-")[0]
    for domain in ("value-or-max", "value-or-min", "version", "version-or-min", "order")
}
WORDS = {"Gt": "above", "Lt": "below", "In": "in"}


@pytest.mark.parametrize(("version", "number"), NUMBERS)
def test_versions_have_the_numbers_of_the_table(version, number):
    encoded = encode_version(parse_version(version.strip("`")))
    assert ("none" if encoded is None else str(encoded)) == number


def test_nodes_carry_what_the_examples_say():
    selector = TaintSelector("example.com/cni", ("NoSchedule",), ValueType.VERSION, placement=True)
    found = node_labels([Taint("example.com/cni", "v3.27.2", "NoSchedule")], [selector]).labels
    written = [cell.strip("`").replace('"', "") for *_, cell in PAGE.table("What nodes carry").rows if cell]
    assert written == [f"{label}: {value}" for label, value in found.items()]


def test_nodes_without_the_taint_carry_what_the_table_says():
    prefix, told = "`[PREFIX.]", {"absent": None}
    rows = PAGE.table("What nodes carry").rows
    written = {row[0].removeprefix(prefix).partition("/")[0]: told.get(row[2], row[2].strip("`")) for row in rows}
    found = neutral_labels(["NAME"])
    assert {domain: found.get(f"{domain}/NAME") for domain in written} == written


def test_a_pod_gets_the_affinity_that_is_shown():
    [shown] = [
        block["affinity"] for where, block in data_blocks() if where.startswith(PAGE.name) and "affinity" in block
    ]
    assert restrict(None, [requirements("sla", [Toleration("sla", "Gt", "950")])]) == (shown, None)


def requirements_in_words(text):
    """Requirements of a toleration, written as in the table, for nodes with the taint, in the words of the table."""
    operator, _, value = text.partition(" ")
    found = requirements("sla", [Toleration("sla", operator, value)])
    assert found.faults == ()
    return [f"{SHORT[one.key]} {WORDS[one.operator]} {one.values[0]}" for (one,) in found.terms if one.key in SHORT]


@pytest.mark.parametrize("row", PAGE.table("What pods get").rows, ids=lambda row: row[0])
def test_tolerations_let_in_what_the_table_says(row):
    tolerations = re.findall(r"`([^`]+)`", row[0])
    requirements = [one for toleration in tolerations for one in requirements_in_words(toleration)]
    said = row[1].partition(":")[0].replace("`", "")
    bound = re.search(r"\d+$", said)
    for requirement in requirements:
        words, _, value = requirement.rpartition(" ")
        assert words in said
        assert value in said or (bound is None and value in row[0])
    assert len(requirements) == (0 if said == "all" else sum(map(said.count, ("value", "version", "order"))))


def test_bounds_are_those_of_the_code():
    text = " ".join(PAGE.prose)
    assert f"more than {MAX_TERMS} terms" in text
    assert f"at most {MAX_PLACED_PREFIX_LENGTH} characters" in text
