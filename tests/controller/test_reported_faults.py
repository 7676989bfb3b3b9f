"""Faults that are reported once while they do not change."""

from taintwarden.controller.reported_faults import ReportedFaults


def test_a_fault_is_new_until_reported_and_again_after_another_or_none():
    reported = ReportedFaults()
    assert [reported.is_new("a", fault) for fault in ("x", "x", "y", "x")] == [True, False, True, True]
    reported.forget("a")
    assert reported.is_new("a", "x")


def test_the_least_recently_reported_fault_is_dropped():
    reported = ReportedFaults(max_remembered=2)
    for about in "abac":
        reported.is_new(about, "x")
    assert [reported.is_new(about, "x") for about in "acb"] == [False, False, True]
