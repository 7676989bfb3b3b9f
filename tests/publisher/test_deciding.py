"""Decisions about the taints of nodes: those that change, and above all those that do not."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.scene import NOW, STEPS, after, node, owned, record, taint, view
from taintwarden_publisher.deciding import Kind, State, decide, max_changes, patch, recent_changes, withdrawals
from taintwarden_publisher.records import bounds, read_record
from taintwarden_publisher.reporting import publishing
from taintwarden_publisher.spec import PublisherMode


def only(decision):
    [change] = decision.changes
    return change


def states(decision):
    return {state: names for state, names in decision.states.items() if names}


def test_a_first_value_adds_the_taint_and_its_record():
    change = only(decide(view([node("a1", taint("x", key="other"))], {"a1": 939.6})))
    assert (change.kind, change.after) == (Kind.ADDED, "900")
    assert list(change.taints) == [taint("x", key="other"), taint("900")]
    assert (change.record.value, change.record.at) == ("900", NOW)
    assert change.record.from_value == 939.6


def test_a_value_that_falls_changes_the_taint_in_place():
    has = node("a1", taint("980", timeAdded="2026-01-01T00:00:00Z"), taint("x", key="other"), record=record("980"))
    change = only(decide(view([has], {"a1": 950})))
    assert (change.kind, change.before, change.after) == (Kind.CHANGED, "980", "940")
    assert list(change.taints) == [taint("940", timeAdded="2026-01-01T00:00:00Z"), taint("x", key="other")]


@pytest.mark.parametrize(
    ("has", "values", "stale", "state"),
    [
        pytest.param(owned("a1", "940"), {"a1": 945.0}, (), State.PUBLISHED, id="a value of the same step"),
        pytest.param(node("a1"), {}, (), State.WITHOUT_VALUE, id="none yet"),
        pytest.param(owned("a1", "940"), {}, (), State.PUBLISHED, id="none for a while"),
        pytest.param(node("a1", record=record("940")), {}, (), State.WITHOUT_VALUE, id="none, taint removed"),
        pytest.param(node("a1", record=record("940")), {}, ["a1"], State.WITHOUT_VALUE, id="stale, taint removed"),
        pytest.param(owned("a1", "940"), {}, ["a1"], State.STALE, id="none for long"),
    ],
)
def test_nodes_that_keep_their_taint_have_a_state(has, values, stale, state):
    assert states(decide(view([has], values, stale=stale))) == {state: ("a1",)}


@pytest.mark.parametrize("effects", [["NoSchedule"], ["NoExecute", "NoSchedule"]])
def test_other_effects_replace_those_before(effects):
    change = only(decide(view([owned("a1", "940")], {"a1": 945}, effects=effects)))
    assert (change.kind, list(change.taints)) == (Kind.CHANGED, [taint("940", effect=effect) for effect in effects])


@pytest.mark.parametrize(
    "foreign",
    [
        node("a1", taint("800")),
        node("a1", taint("800", effect="NoSchedule")),
        node("a1", taint("800"), record=record("940")),
        node("a1", taint("940"), taint("1", effect="NoSchedule"), record=record("940")),
        node("a1", taint("940"), taint("940", effect="NoSchedule"), record=record("940")),
        node("a1", taint("940"), record=record("940", publisher="another")),
        node("a1", taint("940"), record=record("940", at=NOW.replace(tzinfo=None))),
        node("a1", taint("940"), record="not json"),
        node("a1", taint("940"), record='{"a":' * 20_000 + "1" + "}" * 20_000),
        node(
            "a1",
            taint("940"),
            record='{"publisher": "sla", "effects": [], "value": "940", "from": 1, "at": "2026-01-01"}',
        ),
    ],
)
@pytest.mark.parametrize("values", [{"a1": 950.0}, {}])
def test_a_taint_that_the_publisher_did_not_write_is_never_touched(foreign, values):
    decision = decide(view([foreign], values, stale=["a1"], onStale="Remove"))
    assert (decision.changes, states(decision)) == ((), {State.CONFLICTING: ("a1",)})


def test_a_node_that_is_not_selected_gets_nothing():
    decision = decide(view([node("a1"), node("a2", taint("1"))], {"a1": 1.0}, nodeSelector={"matchLabels": {"a": "b"}}))
    assert (decision.selected, decision.changes, states(decision)) == (0, (), {})


# -- the minimum time of a value --------------------------------------------------------------------------------------


def aged(seconds: float):
    return node("a1", taint("940"), record=record("940", at=NOW - timedelta(seconds=seconds)))


@pytest.mark.parametrize(("seconds", "is_waiting"), [(0, True), (59, True), (60, False), (-3600, False)])
def test_a_value_stays_for_its_minimum_time(seconds, is_waiting):
    """A record of the future delays nothing: either its clock was wrong or the publisher's is."""
    decision = decide(view([aged(seconds)], {"a1": 100.0}, minDwellSeconds=60))
    if is_waiting:
        assert states(decision) == {State.WAITING: ("a1",)}
    else:
        assert only(decision).after == "0"


def test_a_taint_that_was_removed_is_added_again_at_once():
    gone = node("a1", record=record("940", at=NOW))
    change = only(decide(view([gone], {"a1": 100.0}, minDwellSeconds=60)))
    assert (change.kind, change.before, change.after) == (Kind.ADDED, "", "0")


def test_another_effect_of_the_same_value_does_not_wait():
    decision = decide(view([aged(30)], {"a1": 945.0}, minDwellSeconds=60, effects=["NoSchedule"]))
    assert only(decision).kind is Kind.CHANGED


# -- the number of nodes that may change ------------------------------------------------------------------------------


def fleet(count: int, value: str = "980"):
    return [owned(f"n{index:04}", value) for index in range(count)]


def test_nodes_up_to_the_limit_may_change():
    nodes = fleet(10)
    values = {one.name: 985.0 for one in nodes} | {"n0000": 0.0}
    assert not decide(view(nodes, values, maxChangedNodes="10%")).is_too_much
    assert decide(view(nodes, values | {"n0001": 0.0}, maxChangedNodes="10%")).is_too_much


@pytest.mark.parametrize(
    ("limit", "selected", "wanted"), [("10%", 6, 1), ("10%", 11, 2), (3, 1000, 3), ("100%", 7, 7), ("1%", 0, 0)]
)
def test_a_share_is_rounded_up(limit, selected, wanted):
    assert max_changes(limit, selected) == wanted


def test_a_node_that_changed_recently_and_changes_again_counts_once():
    decision = decide(view(fleet(2), {"n0000": 0.0, "n0001": 985.0}, recent=["n0000"], maxChangedNodes=1))
    assert decision.counted == 1
    assert decide(view(fleet(1), {"n0000": 985.0}, recent=["n0000"])).counted == 0, "nothing changes now"


@pytest.mark.parametrize(("falling", "is_too_much"), [(1, False), (2, True)])
def test_a_percentage_is_of_all_nodes_that_count_now_or_did_recently(falling, is_too_much):
    """20 % of nine selected nodes and one that is gone are two nodes."""
    values = {f"n{index:04}": 0.0 if index < falling else 985.0 for index in range(9)}
    decision = decide(view(fleet(9), values, recent=["gone"], maxChangedNodes="20%"))
    assert (decision.concerned, decision.limit, decision.is_too_much) == (10, 2, is_too_much)


@pytest.mark.parametrize("nodes", [[], fleet(9)], ids=["gone", "selected no more"])
def test_recent_changes_count_even_if_the_node_is_gone(nodes):
    nodes = [*nodes, owned("a1", "980", labels={"pool": "spot"})]
    fields = {"nodeSelector": {"matchLabels": {"pool": "spot"}}, "maxChangedNodes": 9}
    assert decide(view(nodes, {"a1": 0.0}, recent=[f"n{index:04}" for index in range(9)], **fields)).is_too_much


@pytest.mark.parametrize(
    ("has", "age"),
    [
        (node("a1", record=record("0", at=NOW - timedelta(minutes=9))), timedelta(minutes=9)),
        (node("a1", record=record("0", at=NOW)), timedelta()),
        (node("a1", record=record("0", at=NOW), created=NOW - timedelta(minutes=10)), timedelta()),
        (node("a1", record=record("0", at=NOW - timedelta(minutes=10))), None),
        (node("a1", record=record("0", at=NOW + timedelta(minutes=1))), None),
        (node("a1", record=record("0", at=NOW, publisher="another")), None),
        (node("a1", record=record("0", at=NOW), created=NOW - timedelta(minutes=9)), None),
        (node("a1", record="not json"), None),
        (node("a1", record=record("9" * 64, at=NOW - timedelta(minutes=1))), None),
        (node("a1"), None),
    ],
    ids=[
        "lately",
        "now",
        "not a first value",
        "earlier",
        "in the future",
        "of another",
        "a first value",
        "unreadable",
        "too long",
        "none",
    ],
)
def test_a_publisher_that_starts_reads_recent_changes_from_records(has, age):
    others = [node("a0"), node("a2", record="not json")]
    assert recent_changes("sla", "sla", [*others, has], NOW) == ({} if age is None else {"a1": age})


def test_the_first_values_of_new_nodes_do_not_count():
    nodes = [node(f"a{index}", created=NOW - timedelta(minutes=9)) for index in range(9)]
    decision = decide(view(nodes, {one.name: 980.0 for one in nodes}, maxChangedNodes=1))
    assert (len(decision.changes), decision.is_too_much) == (9, False)
    young = owned("a1", "980", created=NOW - timedelta(minutes=9))
    assert decide(view([young], {"a1": 0.0})).counted == 1


def test_the_first_values_of_nodes_that_are_there_already_count():
    nodes = [node(f"a{index}", created=NOW - timedelta(minutes=10)) for index in range(9)]
    assert decide(view(nodes, {one.name: 980.0 for one in nodes}, maxChangedNodes=8)).is_too_much


# -- deletion ---------------------------------------------------------------------------------------------------------


def test_a_deleted_object_withdraws_its_own_taints():
    nodes = [
        owned("a1", "940"),
        node("a2", taint("940"), record=record("940", publisher="another")),
        node("a3", taint("940")),
        node("a4", taint("800"), record=record("940")),
        node("a5", record=record("940")),
    ]
    changes = withdrawals("sla", "sla", nodes)
    assert [change.node.name for change in changes] == ["a1", "a4", "a5"]
    assert [list(change.taints) for change in changes] == [[], [taint("800")], []]
    assert all(change.record is None for change in changes)


# -- what is written --------------------------------------------------------------------------------------------------


def test_a_write_fails_where_the_node_has_changed_since():
    change = only(decide(view([node("a1")], {"a1": 950})))
    written = patch(change, "sla")
    assert written["metadata"]["resourceVersion"] == "7"
    assert written.keys() == {"metadata", "spec"}
    assert written["spec"].keys() == {"taints"}


def test_the_record_has_the_bounds_of_values_that_keep_the_taint():
    change = only(decide(view([node("a1")], {"a1": 950.0}, hysteresis=2)))
    assert read_record({"published.taintwarden.io/sla": change.record.text()}, "sla").keeps == (938, 962)


@pytest.mark.parametrize(
    ("value", "keeps"), [(0.0, (None, 902)), (985.0, (978, None))], ids=["lowest level", "highest level"]
)
def test_the_record_of_a_level_without_end_has_no_bound_there(value, keeps):
    change = only(decide(view([node("a1")], {"a1": value}, hysteresis=2)))
    assert read_record({"published.taintwarden.io/sla": change.record.text()}, "sla").keeps == keeps


@pytest.mark.parametrize(("low", "kept"), [(0, None), (0.5, 0.5)])
def test_no_value_is_below_0(low, kept):
    assert bounds((low, 900)) == (kept, 900)


# -- in general -------------------------------------------------------------------------------------------------------

TAINTS = st.lists(
    st.builds(
        taint,
        st.sampled_from(["0", "900", "940", "x"]),
        key=st.sampled_from(["sla", "other"]),
        effect=st.sampled_from(["NoExecute", "NoSchedule"]),
    ),
    max_size=3,
    unique_by=lambda one: (one["key"], one["effect"]),
)
RECORDS = st.just("") | st.builds(
    record,
    st.sampled_from(["0", "900", "940"]),
    publisher=st.sampled_from(["sla", "another"]),
    effects=st.sampled_from([["NoExecute"], ["NoSchedule"], ["NoExecute", "NoSchedule"]]),
)
NODES = st.builds(lambda taints, written: node("a1", *taints, record=written), TAINTS, RECORDS)
VALUES = st.just({}) | st.floats(0, 2000).map(lambda value: {"a1": value})
FIELDS = st.fixed_dictionaries(
    {
        "effects": st.sampled_from([["NoExecute"], ["NoSchedule"], ["NoExecute", "NoSchedule"]]),
        "onStale": st.sampled_from(["Hold", "Remove"]),
        "hysteresis": st.sampled_from([0, 3]),
        "nodeSelector": st.sampled_from([{}, {"matchLabels": {"pool": "spot"}}]),
    }
)


@given(NODES, VALUES, st.booleans(), FIELDS)
def test_only_taints_that_the_publisher_wrote_ever_change(has, values, is_stale, fields):
    decision = decide(view([has], values, stale=["a1"] if is_stale else [], **fields))
    written = read_record(has.metadata.annotations, "sla")
    mine = written is not None and written.publisher == "sla"
    for change in decision.changes:
        for one in has.spec.taints:
            if one not in change.taints:
                assert mine
                assert one["key"] == "sla"
                assert (one["effect"] in written.effects, one["value"]) == (True, written.value)


@given(NODES, VALUES, FIELDS)
def test_a_second_round_changes_nothing(has, values, fields):
    for change in decide(view([has], values, **fields)).changes:
        assert decide(view([after(has, change)], values, **fields)).changes == ()


@given(NODES, VALUES, FIELDS)
def test_each_taint_that_is_written_has_a_step_and_all_effects(has, values, fields):
    for change in decide(view([has], values, **fields)).changes:
        ours = {one["effect"]: one["value"] for one in change.taints if one["key"] == "sla"}
        if change.kind is Kind.REMOVED:
            continue
        assert ours.keys() == set(fields["effects"])
        assert set(ours.values()) <= {str(step) for step in STEPS}


@given(NODES, VALUES, FIELDS)
def test_a_published_taint_is_withdrawn_with_its_record(has, values, fields):
    for change in decide(view([has], values, **fields)).changes:
        if change.kind is Kind.ADDED:
            written = after(has, change)
            [removal] = withdrawals("sla", "sla", [written])
            assert after(written, removal).taints("sla") == {}
            assert after(written, removal).metadata.annotations == {}


@pytest.mark.parametrize(("mode", "is_named"), [(PublisherMode.DRY_RUN, False), (PublisherMode.PUBLISH, True)])
def test_a_dry_run_names_no_write_that_follows(mode, is_named):
    decision = decide(view([owned("a1", "940")], {}, ["a1"], onStale="Remove"))
    found = publishing(decision, "sla", mode, "100%", [], None, has_answer=False)
    assert ("to be written again" in found.message) is is_named
