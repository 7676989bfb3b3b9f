"""The page about the doctor has a row for every check, with its words."""

import re

from docs.pages import BY_NAME, only_span
from taintwarden_cli.doctor.checks import CATALOGUE

PAGE = BY_NAME["docs/doctor.md"]
FAMILIES = re.findall(r"^### (.+)$", PAGE.text, re.MULTILINE)


def test_the_checks_are_those_of_the_catalogue():
    rows = [row for family in FAMILIES for row in PAGE.table(family).rows]
    assert [(only_span(row[0]), *row[1:]) for row in rows] == [
        (check.id, str(check.severity), check.finds, check.remedy) for check in CATALOGUE
    ]


def test_the_checks_of_the_example_exist():
    (block,) = [one for one in PAGE.blocks if one.language == "console"]
    shown = re.findall(r"^(error|warning) ([a-z-]+): ", block.text, re.MULTILINE)
    known = {(str(check.severity), check.id): check for check in CATALOGUE}
    assert len(shown) == 3
    for one in shown:
        assert known[one].finds.split()[0] in block.text


def test_the_role_is_enough_to_be_named_where_rights_are():
    assert "taintwarden-doctor" in PAGE.text
    assert "doctor.md#rights" in BY_NAME["docs/operating.md"].text
