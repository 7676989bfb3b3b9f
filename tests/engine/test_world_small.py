"""Every small history up to a depth, and every point of each scenario (``simulated/world/small.py``, ``points.py``).

``python -m simulated.world small 1000000 FILE`` continues where this ends.
"""

import pytest

from simulated.world import points, small
from simulated.world.points import SCENARIOS, breaches_at, points_of
from simulated.world.snapshot import Snapshots

STATES = 2_500


def test_no_small_history_breaks_a_rule():
    found = small.Search().explore(STATES)
    assert found.states >= STATES
    assert found.left_alone > 20


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ([("taint", "n1", "flag", "bad"), ("deliver", "nodes"), ("tick",), ("tick",), ("tick",), ("send", 0)], None),
        ([("taint", "n1", "flag", "bad"), ("deliver", "nodes"), ("tick",), ("send", 9)], "IndexError"),
    ],
)
def test_a_path_is_played_again_step_by_step(path, rule):
    if rule is None:
        assert small.replayed(tuple(path)).calls[0].stage == "sent"
    else:
        with pytest.raises(IndexError):
            small.replayed(tuple(path))


def test_a_state_has_one_number_however_often_it_is_reached():
    path = (("taint", "n1", "sla", "bad"), ("deliver", "nodes"), ("tick",))
    assert small.replayed(path).key() == small.replayed(path).key()
    assert small.replayed(path).key() != small.replayed(path[:-1]).key()


def test_a_copy_continues_as_the_state_itself_does():
    path = (("taint", "n1", "sla", "bad"), ("deliver", "nodes"), ("crash",), ("taint", "n1", "flag", "bad"))
    snapshots = Snapshots(small.CONSTANTS)
    snapshot = snapshots.take(small.replayed(path))
    for action in small.replayed(path).actions():
        copy = snapshots.continued(snapshot)
        copy.act(action)
        assert copy.key() == small.replayed((*path, action)).key()
    assert snapshots.continued(snapshot).key() == small.replayed(path).key()


def test_a_node_whose_stream_is_silent_is_read():
    path = [("taint", "n1", "sla", "bad"), ("crash",), *[("tick",)] * 6, ("send", 0), ("fail", 0)]
    found = small.replayed(tuple(path))
    found.leave_alone()
    assert list(found.pods) == ["p3"]


def test_a_late_write_of_the_process_before_replaces_no_record():
    path = [("send", 0), ("crash",), ("send", 1), ("effect", 1), ("answer", 1), ("effect", 0)]
    assert small.replayed(tuple(path)).record.term == 2


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_that_goes_wrong_at_any_point_breaks_a_rule(name):
    every = list(points_of(name))
    assert len(every) > 20
    assert {str(point): found for point in every if (found := breaches_at(point))} == {}


def test_each_kind_of_point_is_played():
    assert {point.what for point in points_of("spot")} == {"crash-before", "crash-after", "hide", "rewind"}
    assert sum(len(list(points_of(name))) for name in SCENARIOS) > 250
    assert points.play_point(SCENARIOS["spot"](), None).judges.evictions
