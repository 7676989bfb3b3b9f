"""The output of `status` in the runbooks, which was recorded, has the columns and lines that it has today."""

import re

import pytest

from docs.pages import BLOCKS, Block
from taintwarden.api.status import (
    BlockedBudget,
    InvalidTaintStatus,
    LimitStatus,
    NextPod,
    ReclaimStatus,
    ZoneStatus,
)
from taintwarden.cli.rendering import render
from taintwarden.cli.status.policy_status import GuardSummary, PolicySummary, StatusSummary
from taintwarden.cli.status.policy_status_table import parts

AT = "2026-01-31T12:00:00Z"
SHOWN = [one for one in BLOCKS if one.language == "console" and re.search(r"^\$ taintwarden status", one.text, re.M)]
GUARDS = {
    "-": None,
    "armed": GuardSummary(),
    "tripped": GuardSummary(tripped_at=AT),
    "zones Full": GuardSummary(zones_full=True),
}
NUMBERS = {
    "NODES": "selected_nodes",
    "EVICTING": "evicting_nodes",
    "PENDING": "pending",
    "BLOCKED": "blocked",
    "EVICTED": "evicted",
}


def lines_of(*policies: PolicySummary) -> list[str]:
    """What `status` prints of them, with details, into a file."""
    return render(*parts(StatusSummary(AT, list(policies), reported_at=AT), details=True)).splitlines()


def table_of(lines: list[str]) -> list[str]:
    """The header and the row of the one policy."""
    begin = next(number for number, line in enumerate(lines) if line.startswith("POLICY "))
    return lines[begin : begin + 2]


def read_row(header: str, row: str) -> PolicySummary:
    """The policy that a row shows."""
    cells = dict(zip(header.split(), re.split(r"\s{2,}", row), strict=True))
    return PolicySummary(
        name=cells["POLICY"],
        mode=cells["MODE"],
        accepted=cells["ACCEPTED"],
        guard=GUARDS[cells["GUARD"]],
        limited_by=None if cells["LIMIT"] == "-" else cells["LIMIT"],
        **{field: int(cells[name]) for name, field in NUMBERS.items()},
    )


def labels_of(lines: list[str]) -> list[str]:
    """Of the lines about the policy, each once, in their order."""
    found = [re.match(r"  ( {0,2}[A-Z]?[a-z]+(?: [a-z]+)*)  ", line) for line in lines]
    return list(dict.fromkeys(match[1] for match in found if match))


def everything() -> list[str]:
    """The lines of a policy of which there is everything to tell."""
    one = PolicySummary(
        name="sla",
        mode="Enforce",
        accepted="True",
        problem="something",
        progress="9 pods have to leave",
        next_deadline=AT,
        held_invalid=3,
        invalid_taints=(InvalidTaintStatus("n1", "sla=x:NoExecute", 2),),
        guard=GuardSummary(tripped_at=AT, cause="taint sla", message="it holds"),
        limits=(LimitStatus("failing", 1, AT, message="denied"),),
        blocked_budgets=(BlockedBudget("shop", "web", 1),),
        reclaims=(ReclaimStatus("n1", AT, 1, 0, 0),),
        zones=(ZoneStatus("z", "Full", 1, 1),),
        next_pods=(NextPod("shop", "web-0", "n1", "sla=1:NoExecute", AT, "Blocked", "denied", "no", 2),),
    )
    return lines_of(one)


def test_eight_runbooks_show_it():
    assert len({one.where for one in SHOWN if "/runbooks/" in one.where}) == 8


@pytest.mark.parametrize("block", SHOWN, ids=lambda one: one.where)
def test_the_table_is_the_one_that_is_printed(block: Block):
    header, row = table_of(block.text.splitlines())
    assert table_of(lines_of(read_row(header, row))) == [header, row]


@pytest.mark.parametrize("block", SHOWN, ids=lambda one: one.where)
def test_the_lines_below_it_have_labels_that_are_printed(block: Block):
    known = labels_of(everything())
    shown = labels_of(block.text.splitlines())
    assert shown
    assert shown == [label for label in known if label in shown]


def test_the_labels_of_everything_are_found():
    assert labels_of(everything()) == [
        *("Problem", "Now", "Next", "Invalid", "Guard", "  cause", "  says"),
        *("Limit", "  answer", "Budget", "Reclaim", "Zone", "Next pod"),
    ]
