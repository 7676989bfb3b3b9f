"""Each notice as a metric, a log line and an Event: the table, row by row."""

from types import SimpleNamespace
from typing import Any, get_args

import msgspec
import pytest
from structlog.testing import capture_logs

from controller import NOW, pod, policy, verdict
from taintwarden.controller.decoding.decoding import PodIssue
from taintwarden.controller.words.issues import Issues
from taintwarden.controller.words.notifier import ROWS, Notifier
from taintwarden.controller.words.policy_changes import ChangeKind
from taintwarden.engine import commands
from taintwarden.engine.evaluate import TaintVerdict, VerdictKind
from taintwarden.engine.limit_settings import GuardSettings, Limits
from taintwarden.engine.model import Gates, Owner, PodClass, Taint, Toleration, Tolerations
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Mode, Policy
from taintwarden.engine.records import GuardRecord, Pace
from taintwarden.fields.field_errors import FieldError
from taintwarden.kube.calls.recorder import MAX_NOTE_BYTES, NORMAL, WARNING, EventSubject, Message
from taintwarden.telemetry.metrics import Metrics
from taintwarden_placement.node_labels import Label
from taintwarden_placement.node_labels.notices import LabelsContested, NotMirrored

WHY = "taint sla=940:NoExecute is not tolerated (sla Gt '950' does not hold)"
FACTS = {"pod": "shop/web-1", "uid": "uid-web-1", "node": "n1", "taint": "sla=940:NoExecute", "policy": "sla"}
REHEARSAL = "Dry run: "
DUE = "2023-11-14T22:13:20Z"
POD = EventSubject("Pod", "web-1", "uid-web-1", "shop")
NODE = EventSubject("Node", "n1", "uid-n1")
OUR_POLICY = EventSubject("TaintEvictionPolicy", "sla", "uid-sla", api_version="taintwarden.io/v1alpha1")


class Events:
    """A recorder that keeps complete messages."""

    def __init__(self, events: list[Message]) -> None:
        self.record = lambda message: events.append(message.with_text())


class Rig:
    """A notifier, the Events that it recorded and the lines that it logged."""

    def __init__(self, gates: Gates | None = None) -> None:
        self.metrics = Metrics()
        self.events: list[Message] = []
        self.logs: list[Any] = []
        self.about = Notifier(Events(self.events), self.metrics, gates or Gates())
        self.issues = Issues(self.about)
        self.issues.set_leading(True)

    def notice(self, *notices: commands.Notice) -> "Rig":
        with capture_logs() as self.logs:
            self.about.report(notices)
        return self

    def counted(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0

    @property
    def log(self) -> dict[str, Any]:
        [entry] = self.logs
        return dict(entry)

    @property
    def event(self) -> Message:
        [event] = self.events
        return event


@pytest.fixture
def rig() -> Rig:
    return Rig()


def event(kind: str, reason: str, action: str, note: str, subject: EventSubject = POD, policy: str = "") -> Message:
    return Message(subject, kind, reason, action, note, policy)


def info(name: str, **more: Any) -> dict[str, Any]:
    return {"event": name, "log_level": "info"} | FACTS | more


def test_every_notice_has_a_row():
    assert {*ROWS, commands.Scheduled} == {*get_args(commands.Notice), LabelsContested, NotMirrored}


def test_scheduled(rig):
    rig.notice(commands.Scheduled(pod(), verdict(), NOW))
    line = {"pods": ["shop/web-1"], "node": "n1", "taint": "sla=940:NoExecute", "policy": "sla", "due": DUE}
    assert rig.log == {"event": "eviction-scheduled", "log_level": "info"} | line
    note = f"Will be evicted from n1 at {DUE}: {WHY} (policy sla)"
    assert rig.event == event(NORMAL, "EvictionScheduled", "Schedule", note, policy="sla")


def test_pods_of_a_node_with_the_same_deadline_are_one_line_and_have_an_event_each(rig):
    rig.notice(*(commands.Scheduled(pod(name), verdict(), NOW) for name in ("web-1", "web-2")))
    assert rig.log["pods"] == ["shop/web-1", "shop/web-2"]
    assert [event.subject.name for event in rig.events] == ["web-1", "web-2"]


def test_each_pod_of_a_line_has_its_own_reason(rig):
    used = Toleration(key="sla", operator="Exists", toleration_seconds=30)
    others = verdict(kind=VerdictKind.TOLERATED_FOR, toleration=used)
    rig.notice(commands.Scheduled(pod("web-1"), verdict(), NOW), commands.Scheduled(pod("web-2"), others, NOW))
    assert len(rig.logs) == 1
    assert "is not tolerated" in rig.events[0].note
    assert "is tolerated by sla Exists for 30s only" in rig.events[1].note


def test_the_parts_of_a_note_that_is_made_late_take_at_most_a_kibibyte():
    messages: list[Message] = []
    long = verdict(kind=VerdictKind.TOLERATED, toleration=Toleration(key="k" * 5_000, operator="Exists"))
    recorder = SimpleNamespace(record=messages.append)
    Notifier(recorder, Metrics(), Gates()).report([commands.Scheduled(pod(), long, NOW)])
    assert len(messages[0].note()) < MAX_NOTE_BYTES + 200


@pytest.mark.parametrize(
    "other",
    [
        commands.Scheduled(pod("web-2"), verdict(), NOW + 1),
        commands.Scheduled(pod("web-2"), verdict(in_policy=policy(name="other")), NOW),
        commands.Scheduled(msgspec.structs.replace(pod("web-2"), node="n2"), verdict(), NOW),
    ],
    ids=["deadline", "policy", "node"],
)
def test_notices_that_differ_are_logged_in_separate_lines(rig, other):
    rig.notice(commands.Scheduled(pod(), verdict(), NOW), other)
    assert [line["pods"] for line in rig.logs] == [["shop/web-1"], ["shop/web-2"]]


def test_a_line_has_at_most_a_hundred_pods(rig):
    rig.notice(*(commands.Scheduled(pod(f"web-{number}"), verdict(), NOW) for number in range(101)))
    assert [len(line["pods"]) for line in rig.logs] == [100, 1]


def test_scheduled_under_a_policy_that_rehearses(rig):
    rig.notice(commands.Scheduled(pod(), verdict(in_policy=policy(mode=Mode.DRY_RUN)), NOW))
    assert rig.event.note == f"Would be evicted from n1 at {DUE}: {WHY} (policy sla: DryRun)"


def test_cancelled(rig):
    rig.notice(commands.Cancelled(pod(), verdict()))
    assert rig.log == info("eviction-cancelled")
    note = "Stays on n1: taint sla=940:NoExecute no longer evicts it, its deadline was 2023-11-14T22:11:40Z"
    assert rig.event == event(NORMAL, "EvictionCancelled", "Cancel", note)
    assert rig.counted("taintwarden_evictions_cancelled_total", policy="sla") == 1


def test_cancelled_by_a_pause(rig):
    rig.notice(commands.Cancelled(pod(), verdict(in_policy=policy(mode=Mode.PAUSED))))
    assert rig.event.note == "Stays on n1: policy sla is paused, so taint sla=940:NoExecute evicts no pod"


def test_decided(rig):
    rig.notice(commands.Decided(pod(), verdict(), NOW, 7.0, "policy-rate"))
    assert rig.log == info("eviction-decided", due=DUE, why=WHY)
    assert rig.events == []


def test_rehearsed(rig):
    rig.notice(commands.Rehearsed(pod(), verdict(in_policy=policy(mode=Mode.DRY_RUN)), NOW))
    assert rig.log == info("eviction-rehearsed", why=WHY)
    note = f"Would be evicted from n1 now: {WHY} (policy sla: DryRun)"
    assert rig.event == event(NORMAL, "EvictionDryRun", "Evict", note)
    assert rig.counted("taintwarden_evictions_total", policy="sla", outcome="dry-run") == 1


def test_evicted(rig):
    rig.notice(commands.Evicted(pod(), verdict(), 0.12345))
    assert rig.log == info("eviction-settled", outcome="evicted", lateness=0.123)
    assert rig.event == event(NORMAL, "Evicted", "Evict", f"Evicted from n1: {WHY} (policy sla)", policy="sla")
    assert rig.counted("taintwarden_evictions_total", policy="sla", outcome="evicted") == 1
    assert rig.counted("taintwarden_eviction_lateness_seconds_sum") == pytest.approx(0.12345)


def test_a_pod_that_was_deleted_in_spite_of_budgets_is_reported_as_past_budget(rig):
    rig.notice(commands.Evicted(pod(), verdict(), 0.0, ("shop/a", "shop/b")))
    note = f"Deleted in spite of PodDisruptionBudgets shop/a, shop/b from n1: {WHY} (policy sla)"
    assert rig.event == event(NORMAL, "Evicted", "Evict", note, policy="sla")
    assert rig.counted("taintwarden_evictions_total", policy="sla", outcome="past-budget") == 1


def test_blocked(rig):
    rig.notice(commands.EvictionFailed(pod(), verdict(), Outcome.BLOCKED, "budget web needs 2", 3, NOW + 5))
    retry = "2023-11-14T22:13:25Z"
    facts = {"outcome": "blocked", "message": "budget web needs 2", "attempts": 3}
    assert rig.log == info("eviction-settled", **facts, retry=retry)
    assert (rig.event.type, rig.event.reason) == (WARNING, "EvictionBlocked")
    assert "budget web needs 2" in rig.event.note
    assert "PodDisruptionBudget" in rig.event.note
    assert rig.counted("taintwarden_evictions_total", policy="sla", outcome="blocked") == 1


@pytest.mark.parametrize("outcome", [one for one in Outcome if one.row.why and one is not Outcome.NOT_SENT])
def test_each_outcome_has_its_words_and_its_count(rig, outcome):
    rig.notice(commands.EvictionFailed(pod(), verdict(), outcome, "no right", 1, NOW))
    reason = "EvictionBlocked" if outcome.row.by_budget else "EvictionFailed"
    assert (rig.event.type, rig.event.reason) == (WARNING, reason)
    why = outcome.row.why.replace("their", "its").replace("them", "it")
    assert rig.event.note == f"Not evicted from n1 ({why}): no right. It is retried."
    assert rig.counted("taintwarden_evictions_total", policy="sla", outcome=outcome) == 1


def test_the_event_about_a_blocked_eviction_is_the_same_at_each_try(rig):
    """A count or a time in the note would make each of them a new Event."""
    for attempt in range(3):
        rig.notice(commands.EvictionFailed(pod(), verdict(), Outcome.BLOCKED, "budget web", attempt, NOW + attempt))
    assert len(set(rig.events)) == 1


def test_a_pod_that_was_already_gone_has_no_event(rig):
    rig.notice(commands.PodAlreadyGone(pod(), verdict()))
    assert rig.log == info("eviction-settled", outcome="gone")
    assert rig.events == []
    assert rig.counted("taintwarden_evictions_total", policy="sla", outcome="gone") == 1


def invalid(in_policy: Policy | None = None, judged: str | None = None) -> TaintVerdict:
    return verdict("98O", in_policy, kind=VerdictKind("Tolerated" if judged else "Held"), judged_value=judged)


@pytest.mark.parametrize(
    ("judged", "held", "said"),
    [
        ("980", True, "pods with a comparison toleration are judged by its last valid value, 980"),
        (None, True, "it evicts no pod, as no valid value of it is known"),
        (None, False, "pods with a comparison toleration are evicted (onInvalidValue: Evict)"),
    ],
)
def test_invalid_value(rig, judged, held, said):
    rig.notice(commands.InvalidValue("n1", "uid-n1", invalid(judged=judged), held))
    assert rig.log == {
        "event": "taint-value-invalid",
        "log_level": "warning",
        "node": "n1",
        "taint": "sla=98O:NoExecute",
        "policy": "sla",
        "held": held,
        "judged_by": judged,
    }
    assert (rig.event.subject, rig.event.type, rig.event.reason) == (NODE, WARNING, "InvalidTaintValue")
    why = "'O' at position 3 is not a digit"
    assert rig.event.note == f"Taint sla=98O:NoExecute is invalid ({why}): {said} (policy sla)"
    assert rig.counted("taintwarden_invalid_values_total", side="taint") == 1


def test_events_of_nodes_in_a_dry_run_say_that_no_pod_is_evicted(rig):
    rehearsing = policy(mode=Mode.DRY_RUN)
    rig.notice(commands.InvalidValue("n1", "uid-n1", invalid(rehearsing), held=False))
    [wrong] = (event.note for event in rig.events)
    assert wrong.startswith(REHEARSAL)
    assert wrong.endswith("would be evicted (onInvalidValue: Evict) (policy sla)")


def test_taint_that_labels_cannot_repeat(rig):
    rig.notice(NotMirrored("n1", "uid-n1", Taint("sla", "0950"), "0950 is not an integer"))
    assert (rig.log["event"], rig.log["reason"]) == ("taint-not-mirrored", "0950 is not an integer")
    assert (rig.event.subject, rig.event.reason) == (NODE, "TaintNotMirrored")
    assert (
        "sla=0950:NoExecute cannot be repeated in labels of placement: 0950 is not an integer. New pods"
        in rig.event.note
    )


def test_a_label_that_is_no_version_is_reported(rig):
    rig.notice(NotMirrored("n1", "uid-n1", Label("driver", "latest"), "it is not a version"))
    assert (rig.log["event"], rig.log["label"]) == ("label-not-mirrored", "driver=latest")
    assert (rig.event.subject, rig.event.reason) == (NODE, "LabelNotMirrored")
    assert rig.event.note.startswith(
        "Label driver=latest cannot be repeated in labels of placement: it is not a version"
    )


def test_labels_that_another_client_keeps_changing(rig):
    rig.notice(LabelsContested("n1", "uid-n1", ("value.taintwarden.io/sla",), 7, 64.2))
    assert rig.log == {
        "event": "node-labels-contested",
        "log_level": "warning",
        "node": "n1",
        "labels": ["value.taintwarden.io/sla"],
        "times": 7,
        "after": 64,
    }
    assert (rig.event.subject, rig.event.reason) == (NODE, "LabelsContested")
    assert "7 times: value.taintwarden.io/sla. They are written again after 1m4s" in rig.event.note


def test_unreadable_history(rig):
    rig.notice(commands.UnreadableHistory("n1", "uid-n1", "not JSON"))
    assert rig.log == {
        "event": "taint-history-unreadable",
        "log_level": "warning",
        "node": "n1",
        "reason": "not JSON",
    }


BUDGET_SAYS_NO = "PodDisruptionBudget shop/web allows no disruption now"


def test_held_by_a_budget(rig):
    rig.notice(commands.Held(pod(), verdict(), BUDGET_SAYS_NO, None))
    assert rig.log == info("eviction-held", reason=BUDGET_SAYS_NO)
    note = f"Has to leave n1, but {BUDGET_SAYS_NO}. It waits until that changes."
    assert rig.event == event(WARNING, "EvictionBlocked", "Evict", note)


def test_held_by_a_budget_for_a_while(rig):
    rig.notice(commands.Held(pod(), verdict(), BUDGET_SAYS_NO, NOW))
    assert rig.log == info("eviction-held", reason=BUDGET_SAYS_NO, until=DUE)
    assert rig.event.note.endswith(f"now. It is deleted at {DUE} (EvictThenDelete), unless a limit holds it then.")


def test_held_as_bouncing(rig):
    rig.notice(commands.Held(pod(), verdict(), CAME_BACK, NOW, is_bouncing=True))
    assert rig.log == info("eviction-bouncing", reason=CAME_BACK, until=DUE)
    note = (
        f"Waits until {DUE}: {CAME_BACK}. The scheduler places it there because it does not compare the taint. To "
        "prevent that, set placement: true for the taint in the policy and label its namespace "
        "taintwarden.io/inject=true, or use the scheduler extender; a pod that names its node comes back regardless."
    )
    assert rig.event == event(WARNING, "EvictionBouncing", "Evict", note)


def test_held_as_bouncing_where_there_is_no_other_node(rig):
    shared = PodClass("shop", {}, Tolerations(), owner=Owner("DaemonSet", "agent", "uid-agent"))
    one = msgspec.structs.replace(pod(), shared=shared)
    rig.notice(commands.Held(one, verdict(), CAME_BACK, NOW, is_bouncing=True))
    assert "A DaemonSet has no other node: see exclude.daemonSets" in rig.event.note


CAUSE = "taint sla:NoExecute on 9 nodes, such as sla=0:NoExecute on n1, 980 before"


BAD = commands.BadNodes(9, tuple(commands.BadNode(f"n{number}", Taint("sla", "0"), "980") for number in (1, 2, 3)))
GUARDED = policy(uid="uid-sla", generation=3, limits=Limits(guard=GuardSettings()))
ADVICE = (
    "Pause the policy (taintwarden pause sla), correct the cause, and check with taintwarden plan --enforce sla what "
    "would be evicted; the guard is armed again when none of these pods has to leave. Only if you want all of them "
    "evicted: taintwarden guard reset sla"
)


CAME_BACK = "ReplicaSet web was evicted from node n1 3 times in a row, and came back"


def tripped(in_policy: Policy = GUARDED, **more: Any) -> commands.GuardTripped:
    counts = {"due": 120, "evicted": 3, "allowance": 50, "bad": BAD, "halts": True, "window_seconds": 600.0}
    return commands.GuardTripped(in_policy, commands.GuardReport(**{"record": GuardRecord(NOW, CAUSE)} | counts | more))


@pytest.mark.parametrize("before", ["", f"{CAME_BACK}; "])
def test_event_of_a_trip_names_no_profile(rig, before):
    cause = f"{before}TolerationProfile bank/payments was changed; {CAUSE}"
    rig.notice(tripped(record=GuardRecord(NOW, cause)))
    assert f"Cause: {before}a TolerationProfile was changed; {CAUSE}." in rig.event.note


def test_guard_tripped(rig):
    rig.notice(tripped())
    assert rig.log == {
        "event": "guard-tripped",
        "log_level": "warning",
        "policy": "sla",
        "cause": CAUSE,
        "due": 120,
        "evicted": 3,
        "allowance": 50,
        "halts": True,
    }
    note = (
        "No pod is evicted: 3 evicted in the last 10m + 120 due in the next 10m = 123, 50 are allowed. Still bad: "
        f"nodes n1 sla=0 (980 before), n2 sla=0 (980 before), n3 sla=0 (980 before) and 6 more. "
        f"Cause: {CAUSE}. {ADVICE}"
    )
    assert rig.event == event(WARNING, "GuardTripped", "Guard", note, OUR_POLICY)


@pytest.mark.parametrize(
    ("more", "begins"),
    [
        (
            {"due": 1, "evicted": 0, "allowance": 0},
            "No pod is evicted: 1 pod due in the next 10m, 0 are allowed. Still bad",
        ),
        ({"scope": "shop"}, "It holds one namespace only: 3 evicted"),
        (
            {"halts": False, "pace": Pace(120, NOW + 1_200)},
            "Evictions continue at a pace of 50 in 10m, 120 left, until about 22:33 UTC: 3 evicted",
        ),
        ({"halts": False}, "It holds nothing (action Report): 3 evicted"),
        ({"in_policy": policy(uid="uid-sla", mode=Mode.DRY_RUN)}, f"{REHEARSAL}It holds nothing: 3 evicted"),
    ],
    ids=["one pod too many", "one namespace", "it paces", "it only reports", "it rehearses"],
)
def test_the_event_of_a_tripped_guard_names_what_it_holds(rig, more, begins):
    rig.notice(tripped(**more))
    assert rig.event.note.startswith(begins)


NONE_LEFT = "None of the pods that it counted has to leave any more"


def test_guard_armed(rig):
    rig.notice(commands.GuardArmed(GUARDED, None))
    assert rig.log == {"event": "guard-armed", "log_level": "info", "policy": "sla", "released": None}
    assert rig.event == event(NORMAL, "GuardArmed", "Guard", f"{NONE_LEFT}: evictions continue", OUR_POLICY)


@pytest.mark.parametrize(("mode", "says"), [(Mode.PAUSED, "Policy sla is paused: "), (Mode.DRY_RUN, "Dry run: ")])
def test_a_guard_of_a_policy_that_evicts_none_is_armed_and_says_why_none_is_evicted(rig, mode, says):
    rig.notice(commands.GuardArmed(policy(uid="uid-sla", mode=mode), None))
    assert rig.event.note == f"{says}{NONE_LEFT}"


def test_a_change_of_a_policy(rig):
    for kind, reason in zip(ChangeKind, ("PolicyPaused", "PolicyResumed", "PolicyChanged"), strict=True):
        rig.events.clear()
        with capture_logs() as rig.logs:
            rig.issues.report_policy_change("sla", "uid-sla", kind, "Paused by ann at noon")
        assert (rig.log["event"], rig.log["kind"]) == ("policy-changed", kind)
        assert rig.event == event(NORMAL, reason, "Change", "Paused by ann at noon", OUR_POLICY)


@pytest.mark.parametrize(
    ("released", "said"),
    [(120, "120 pods"), (1, "1 pod"), (0, "0 pods. Pods that a PodDisruptionBudget keeps count when it allows them")],
)
def test_guard_reset(rig, released, said):
    rig.notice(commands.GuardArmed(GUARDED, released))
    assert rig.log["released"] == released
    assert rig.event.note == f"The guard was reset: it releases {said}"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("not-evicted", "It was not evicted in time and ends with its node: n1 counts as gone since"),
        ("grace-cut", "It had less time to stop than its terminationGracePeriodSeconds: n1 is gone at"),
    ],
)
def test_deadline_missed(rig, reason, said):
    rig.notice(commands.DeadlineMissed(pod(), verdict(), NOW, reason))
    assert rig.log == info("deadline-missed", gone=DUE, reason=reason) | {"log_level": "warning"}
    assert rig.event == event(WARNING, "DeadlineMissed", "Evict", f"{said} {DUE} (policy sla)")
    assert rig.counted("taintwarden_missed_deadlines_total", policy="sla", reason=reason) == 1


def test_pod_that_ends_with_its_node_is_named_with_its_opt_out(rig):
    rig.notice(commands.EndsWithNode(pod(), verdict(), NOW, "the pod opts out"))
    assert rig.log == info("ends-with-node", gone=DUE, reason="the pod opts out") | {"log_level": "warning"}
    note = f"Is not evicted and ends with its node, since the pod opts out: n1 is gone at {DUE} (policy sla)"
    assert rig.event == event(WARNING, "EndsWithNode", "Reclaim", note)


def test_an_event_names_an_operator_that_is_switched_off():
    rig = Rig(Gates(numeric_operators=False))
    rig.notice(commands.Evicted(pod(), verdict(), 0.0))
    assert "is switched off" in rig.event.note


def test_invalid_tolerations_of_a_pod_are_reported_in_one_event(rig):
    fault = FieldError("metadata.annotations[x][0].value", "0950", "leading zeros are not allowed")
    with capture_logs() as logs:
        rig.issues.report_pod(PodIssue("web-1", "shop", "uid-web-1", (fault, fault)))
    assert logs[0]["event"] == "toleration-invalid"
    assert (rig.event.subject, rig.event.type, rig.event.reason) == (POD, WARNING, "InvalidToleration")
    assert rig.event.note.count("leading zeros") == 2
    assert rig.counted("taintwarden_invalid_values_total", side="toleration") == 1


def test_values_of_a_pod_without_effect_are_reported(rig):
    fault = FieldError("metadata.annotations[x]", "yes", "has no effect")
    with capture_logs() as logs:
        rig.issues.report_pod(PodIssue("web-1", "shop", "uid-web-1", (), (fault,)))
    assert [(line["event"], line["pod"]) for line in logs] == [("pod-value-ignored", "shop/web-1")]
    note = f"These values of the pod have no effect: {fault}"
    assert rig.events == [event(WARNING, "IgnoredValue", "Evaluate", note)]


def test_an_invalid_policy_is_reported(rig):
    with capture_logs() as logs:
        rig.issues.report_policy("sla", "uid-sla", "spec.mode is wrong")
    assert logs == [
        {"event": "policy-invalid", "log_level": "warning", "policy": "sla", "reason": "spec.mode is wrong"}
    ]
    assert rig.event.subject == OUR_POLICY
    assert (rig.event.type, rig.event.reason, rig.event.note) == (WARNING, "InvalidPolicy", "spec.mode is wrong")


def test_an_invalid_profile_is_reported(rig):
    with capture_logs() as logs:
        rig.issues.report_profile("shop/fast", "uid-fast", "spec.tolerations is wrong")
    assert logs == [
        {
            "event": "profile-invalid",
            "log_level": "warning",
            "profile": "shop/fast",
            "reason": "spec.tolerations is wrong",
        }
    ]
    assert rig.event.subject == EventSubject("TolerationProfile", "fast", "uid-fast", "shop", "taintwarden.io/v1alpha1")
    assert (rig.event.type, rig.event.reason) == (WARNING, "InvalidProfile")
    assert rig.counted("taintwarden_invalid_values_total", side="toleration") == 1


def test_no_label_of_a_metric_names_a_pod_or_a_node(rig):
    rig.notice(commands.Evicted(pod("very-special"), verdict(), 0.0))
    rig.notice(commands.UnreadableHistory("very-special-node", "u", "not JSON"))
    assert b"very-special" not in rig.metrics.exposition()


def test_a_toleration_that_was_used_is_named(rig):
    used = Toleration(key="sla", operator="Exists", toleration_seconds=30)
    found = verdict(kind=VerdictKind.TOLERATED_FOR, toleration=used)
    rig.notice(commands.Evicted(pod(tolerations=[used]), found, 0.0))
    assert "is tolerated by sla Exists for 30s only" in rig.event.note


def test_the_faults_of_a_pod_are_one_short_line(rig):
    faults = tuple(FieldError(f"f{number}", "x" * 500, "y" * 500) for number in range(10))
    with capture_logs() as logs:
        rig.issues.report_pod(PodIssue("web-1", "shop", "uid-web-1", faults))
    [line] = logs
    assert len(line["errors"]) < 1_100
    assert len(rig.events[0].note) < 1_200
