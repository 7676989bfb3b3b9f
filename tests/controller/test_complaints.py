"""A fault is reported once while it does not change, and what is remembered of faults is bounded."""

from taintwarden.controller.complaints import Complaints


def test_a_fault_is_new_once_until_it_is_another_or_was_gone():
    complaints = Complaints()
    assert complaints.is_new("n1", "denied")
    assert not complaints.is_new("n1", "denied")
    assert complaints.is_new("n2", "denied")
    assert complaints.is_new("n1", "late")
    complaints.settle("n1")
    assert complaints.is_new("n1", "late")
    assert not complaints.is_new("n2", "denied")


def test_the_oldest_are_forgotten_and_those_that_come_again_are_not_old():
    complaints = Complaints(max_remembered=3)
    assert all(complaints.is_new(str(number), "bad") for number in range(10))
    assert not any(complaints.is_new(number, "bad") for number in "789")
    assert not complaints.is_new("7", "bad")
    assert complaints.is_new("6", "bad")
    assert not complaints.is_new("7", "bad")
    assert complaints.is_new("8", "bad")
