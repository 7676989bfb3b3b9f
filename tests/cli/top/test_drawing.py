"""The picture of `top`: readable in 80 columns, without colours or Unicode, and never higher than its terminal."""

import io

import pytest
from rich.console import Console

from taintwarden.api.status import Condition, ConditionStatus, GuardStatus, PolicyStatus
from taintwarden.engine.reported_status import ReclaimStatus
from taintwarden.engine.rfc3339 import at
from taintwarden_cli.status.event_timeline import Happening
from taintwarden_cli.status.policy_status import PolicySummary
from taintwarden_cli.top.drawing import LEGEND, Picture
from taintwarden_cli.top.looking import Look, NodeLook, PodLook, PodMark, PolicyLook, TaintLook
from taintwarden_cli.top.state import State, Wish

NOW = 1_800_000_000.0


def pod(
    name: str, node: str = "a1", fate: PodMark = PodMark.STAYS, due: float | None = None, holds: str = ""
) -> PodLook:
    return PodLook("shop", name, node, fate, None if due is None else NOW + due, "sla", "sla=940:NoExecute", holds)


def node(
    name: str, *pods: PodLook, zone: str = "zone-a", value: str = "980", worst: PodMark = PodMark.STAYS
) -> NodeLook:
    return NodeLook(name, zone, [TaintLook("sla", value, "NoExecute", worst, acts=True, before="980")], list(pods))


ARMED = Condition("GuardTripped", ConditionStatus.FALSE, "Armed", "", "2026-01-31T12:00:00Z")


def policy(problem: str = "", **status: object) -> PolicyLook:
    found = PolicyStatus(conditions=(ARMED,), **status)
    return PolicyLook(PolicySummary(name="sla", mode="Enforce", accepted="True", problem=problem, status=found), 12, 50)


def look(*nodes: NodeLook, policies: tuple[PolicyLook, ...] = (), problem: str = "", **more: object) -> Look:
    found = Look(NOW, "https://test", problem, NOW - 2, list(nodes), list(policies), [], [])
    for field, value in more.items():
        setattr(found, field, value)
    return found


def drawn(found: Look, state: State | None = None, width: int = 80, height: int | None = None, *, plain: bool = False):
    console = Console(width=width, file=io.StringIO(), color_system=None, highlight=False, markup=False, height=200)
    with console.capture() as captured:
        console.print(Picture(width, height, plain=plain).draw(found, state or State(), NOW))
    return captured.get().splitlines()


BAD = node(
    "a1", pod("a", fate=PodMark.OVERDUE, due=-61, holds="its budget"), pod("b"), value="940", worst=PodMark.OVERDUE
)


def test_what_has_to_leave_since_when_and_what_it_waits_for():
    lines = drawn(look(BAD, policies=(policy(),)))
    assert any(line.split() == ["shop/a", "a1", "for", "1m1s", "its", "budget"] for line in lines)
    assert lines[0].startswith("Taintwarden  1 node, 2 pods  1 overdue  reported 2s ago")


def test_a_picture_that_is_not_renewed_says_so_first():
    """It would go on to say that no pod is overdue, while the API server is away."""
    state = State(unseen="cannot reach the cluster")
    found = look(node("a1", pod("a")), at=NOW - 90)
    assert drawn(found, state)[0] == "As of 1m30s ago: cannot reach the cluster"
    state.press("j", found)
    assert drawn(found, state)[0].startswith("As of 1m30s ago")


@pytest.mark.parametrize(("due", "said"), [(90, "in 1m30s"), (0.4, "now"), (-0.4, "now"), (-5, "for 5s")])
def test_countdowns(due, said):
    assert any(said in line for line in drawn(look(node("a1", pod("a", fate=PodMark.SCHEDULED, due=due)))))


def test_a_node_is_a_row_with_its_value_and_a_mark_for_each_pod():
    [row] = [line for line in drawn(look(BAD)) if line.startswith("zone-a")]
    assert row.split() == ["zone-a", "a1", "sla=940", "(980", "before)", "2", "▲●"]


def test_marks_have_different_shapes():
    for column in (1, 2):
        assert len({entry[column] for entry in LEGEND.values()}) == len(PodMark)


def test_a_plain_terminal_gets_ascii():
    text = "\n".join(drawn(look(BAD, policies=(policy(),)), width=40, height=30, plain=True))
    assert text.isascii()
    assert "..." in text


def test_an_operator_that_does_not_run_is_the_first_line():
    assert drawn(look(BAD, problem="the operator is not running"))[0] == "The operator is not running"


def test_the_guard_is_a_gauge():
    assert any("guard armed ██░░░░░░░░ 12/50" in line for line in drawn(look(BAD, policies=(policy(),))))
    tripped = policy(guard=GuardStatus(tripped_at="2026-01-31T12:00:00Z"), problem="its guard has tripped")
    lines = drawn(look(BAD, policies=(tripped,)))
    assert any("guard tripped" in line for line in lines)
    assert any("its guard has tripped" in line for line in lines)


def test_a_long_problem_takes_several_lines():
    words = [f"w{number}" for number in range(60)]
    lines = drawn(look(BAD, policies=(policy(problem=" ".join(words)),)), width=80)
    told = [line.strip() for line in lines if line.strip().startswith("w")]
    assert (len(told) > 1, " ".join(told)) == (True, " ".join(words))


def test_the_end_of_a_node_has_an_age_as_problem_and_without_one():
    end = ReclaimStatus("b1", at(NOW + 2), pods=1, at_risk=1, missed=0)
    told = "node b1 is gone in 2s; 1 pod will be killed with it"
    risky = policy(reclaims=(end,), problem=f"node b1 is gone at {at(NOW + 2)}; 1 pod will be killed with it")
    assert [line.strip() for line in drawn(look(BAD, policies=(risky,)))].count(told) == 1
    calm = policy(reclaims=(ReclaimStatus("b1", at(NOW + 90), pods=2, at_risk=0, missed=0),))
    lines = [line.strip() for line in drawn(look(BAD, policies=(calm,)))]
    assert "node b1 is gone in 1m30s; 2 pods have to leave it before" in lines


def test_events_have_ages():
    one = Happening(
        at=at(NOW - 75), reason="Evicted", type="Normal", kind="Pod", namespace="shop", name="a", note="Evicted from a1"
    )
    assert any(line.strip() == "1m15s Evicted shop/a: Evicted from a1" for line in drawn(look(BAD, events=[one])))


def test_what_could_not_be_read_is_told():
    assert drawn(look(BAD, unread=["you may not read events"]))[-1] == "not read: you may not read events"


MANY = look(
    *(
        node(f"node-{number:04}", *(pod(f"p-{number}-{one}", f"node-{number:04}") for one in range(30)), zone=zone)
        for number in range(1000)
        for zone in [f"zone-{'abc'[number % 3]}"]
    ),
    node("worst", pod("x", "worst", PodMark.OVERDUE, -5), worst=PodMark.OVERDUE, value="0"),
    policies=(policy(),),
)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 20), (120, 50), (200, 60)])
def test_a_thousand_nodes_fit(width, height):
    lines = drawn(MANY, width=width, height=height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert any(line.startswith("zone-b") and "333" in line for line in lines)
    assert any("worst" in line and "sla=0" in line for line in lines)
    assert any("more nodes" in line for line in lines)


def test_without_a_height_every_node_is_shown():
    assert sum(line.startswith("zone-") for line in drawn(MANY)) == 1001


def test_the_filter_shows_only_what_it_names():
    lines = drawn(MANY, State(filter="node-0007"), height=30)
    assert sum(line.startswith("zone-") for line in lines) == 1


# -- keys -----------------------------------------------------------------------------------------------------------


def pressed(*keys: str, found: Look | None = None) -> tuple[State, list[Wish | None]]:
    state = State()
    return state, [state.press(key, found or look(BAD, policies=(policy(),))) for key in keys]


def test_q_quits():
    assert pressed("q")[1] == [Wish.QUIT]


def test_a_filter_is_typed_and_removed():
    state, _ = pressed("/", "w", "q", "\x7f", "e", "\r")
    assert (state.filter, state.typing) == ("we", False)
    state.press("\x1b", look(BAD))
    assert state.filter == ""


def test_a_pod_is_selected_and_explained():
    two = look(node("a1", pod("a", fate=PodMark.OVERDUE, due=-9), pod("b", fate=PodMark.OVERDUE, due=-5)))
    state, wishes = pressed("j", "down", "k", "j", "e", found=two)
    assert (str(state.pod(two)), wishes[-1]) == ("shop/b", Wish.EXPLAIN)
    assert pressed("e", found=look(node("a1", pod("b"))))[1] == [None]


def test_an_explanation_replaces_the_nodes_until_a_key():
    state = State(text="Pod  shop/a\nFate leaves")
    assert "Pod  shop/a" in drawn(look(BAD), state, height=20)
    assert state.press("e", look(BAD)) is None
    assert state.text == ""


def test_q_quits_from_an_explanation_too():
    assert State(text="Pod  shop/a").press("q", look(BAD)) is Wish.QUIT
