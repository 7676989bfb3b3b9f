"""The judge itself: for each rule a history that breaks it on each side, by hand. That it allows what is right, random
histories show (``test_world_histories.py``), and here what is near a breach.
"""

import json
from datetime import UTC, datetime

import pytest

from limits_off import LIMITS_OFF
from simulated.world.law import Judge

GT = [{"key": "sla", "operator": "Gt", "value": "950"}]
SLA = {"taints": [{"key": "sla"}]}
PATIENT = {"timing": {"violationGraceSeconds": 30}}
DENIED = '{"message": "admission webhook \\"x\\" denied the request"}'
BUDGET = '{"message": "Cannot evict pod as it would violate the pod\'s disruption budget."}'
START = 1_000_000.0


def _stamp(at):
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class History:
    """Facts of a cluster with one operator that is always well. Times are seconds since ``START``."""

    def __init__(self, limits=None, **spec):
        self.facts = []
        self.now = START
        self.number = 0
        self.pods = {}
        self.state(there=True, well=True)
        self.policy(limits, **spec)

    def add(self, what, **more):
        self.facts.append({"at": self.now, "what": what, **more})

    def at(self, seconds):
        self.now = START + seconds
        return self

    def state(self, *, there=True, well=True, leader="a", term=1, **more):
        self.add("state", leader=leader, term=term, there=there, well=well, **more)

    def object(self, kind, name, obj):
        self.add("object", kind=kind, name=name, object=obj)

    def policy(self, limits=None, *, reset=None, name="p", reserved=None, **spec):
        self.spec = SLA | spec | {"limits": LIMITS_OFF | (limits or {})} if limits is not None or spec else self.spec
        annotations = {"taintwarden.io/guard-reset": reset} if reset else {}
        meta = {"name": name, "uid": f"uid-{name}", "annotations": annotations}
        status = {} if reserved is None else {"guard": {"reserved": [{"uid": uid} for uid in reserved]}}
        self.object("policies", name, {"metadata": meta, "spec": self.spec, "status": status})

    def node(self, name, value="980", *, zone="z", added=None, key="sla", uid=""):
        taint = {"key": key, "value": value, "effect": "NoExecute"} | ({"timeAdded": added} if added else {})
        meta = {"name": name, "uid": uid or name, "labels": {"topology.kubernetes.io/zone": zone}}
        self.object("nodes", name, {"metadata": meta, "spec": {"taints": [taint] if value is not None else []}})

    def pod(
        self, uid, namespace="a", node="n", *, tolerations=GT, owner=None, ready=True, labels=None, priority=0, **meta
    ):
        meta = {"name": uid, "namespace": namespace, "uid": uid, "labels": labels or {}, **meta}
        meta.setdefault("creationTimestamp", _stamp(self.now - 1))
        if owner:
            meta["ownerReferences"] = [{"kind": "ReplicaSet", "uid": owner, "controller": True}]
        conditions = [{"type": "Ready", "status": str(ready)}]
        spec = {"nodeName": node, "tolerations": tolerations, "priority": priority}
        self.pods[uid] = {"metadata": meta, "spec": spec, "status": {"phase": "Running", "conditions": conditions}}
        self.object("pods", uid, self.pods[uid])

    def call(self, uid, code=201, body="{}", *, policy="p", verb="POST", by="a", takes=0.02, gone=True, effect=True):
        """A call, its answer and what follows."""
        self.number += 1
        self.add("call", id=self.number, policy=policy, pod=uid, verb=verb, by=by)
        self.now += takes
        if code == 201 and effect:
            self.add("effect", id=self.number)
        if code is not None:
            self.add("answer", id=self.number, code=code, body=body)
        if code == 201 and gone and effect:
            self.object("pods", uid, None)

    def calls(self, *uids, every=0.0):
        for uid in uids:
            self.call(uid)
            self.now += every

    def breaches(self, until=None):
        judge = Judge(slots=10, overall=10_000.0)
        judge.feed(sorted(self.facts, key=lambda one: one["at"]))
        return sorted({one.judge for one in judge.end(self.now if until is None else START + until)})


def many(history, namespace, number, *, node="n", prefix="", **more):
    names = [f"{namespace}{prefix}{index:03}" for index in range(number)]
    for name in names:
        history.pod(name, namespace, node, **more)
    return names


# -- who, and when ----------------------------------------------------------------------------------------------------


def violated(**spec):
    """A pod of which the value falls below what it tolerates at 100."""
    history = History({}, **spec)
    history.node("n")
    history.pod("x")
    history.at(100).node("n", "940")
    return history


def test_a_pod_that_nothing_holds_may_not_stay():
    assert violated().breaches(110) == ["late"]


@pytest.mark.parametrize(("at", "found"), [(120.0, ["early"]), (130.1, []), (132.0, [])])
def test_a_grace_is_neither_cut_nor_prolonged(at, found):
    history = violated(**PATIENT)
    history.at(at).call("x")
    assert history.breaches(140) == found
    assert violated(**PATIENT).breaches(140) == ["late"]


def test_a_pod_that_tolerates_the_value_stays():
    history = violated()
    history.at(101).node("n", "960")
    history.at(106).call("x")
    assert history.breaches() == ["right"]


def falling(value_at, *, until, tolerations=GT, **spec):
    """A pod on a node whose value is ``value_at(seconds)`` and changes each 30 s from 100 on."""
    history = History({}, **spec)
    history.node("n")
    history.pod("x", tolerations=tolerations)
    for seconds in range(100, until, 30):
        history.at(seconds).node("n", value_at(seconds))
    return history


@pytest.mark.parametrize("leaves", [True, False])
def test_a_steady_fall_is_one_violation(leaves):
    history = falling(lambda at: str(949 - (at - 100) // 30), until=1600, timing={"violationGraceSeconds": 600})
    if leaves:
        history.at(701).call("x")
    assert history.breaches(1600) == ([] if leaves else ["late"])


def test_a_steady_fall_makes_nothing_early():
    history = falling(lambda at: str(949 - (at - 100) // 30), until=690, timing={"violationGraceSeconds": 600})
    history.at(690).call("x")
    assert history.breaches() == ["early"]


@pytest.mark.parametrize(("at", "found"), [(400, ["late"]), (222, [])])
def test_the_last_valid_value_is_kept(at, found):
    values = ["error", "unknown"]
    history = falling(
        lambda at: "900" if at == 100 else values[at // 30 % 2], until=420, timing={"violationGraceSeconds": 120}
    )
    history.at(at).call("x")
    assert history.breaches(420) == found


def test_codes_that_rotate_outside_of_a_list_are_one_violation():
    tolerations = [{"key": "sla", "operator": "Exists"}]
    extended = json.dumps([{"key": "sla", "operator": "In", "values": ["31", "43"], "violationGraceSeconds": 60}])
    for leaves in (True, False):
        history = History({})
        history.node("n", "31")
        history.pod("x", tolerations=tolerations, annotations={"taintwarden.io/tolerations": extended})
        for index, at in enumerate(range(100, 400, 5)):
            history.at(at).node("n", ("79", "48", "63")[index % 3])
        if leaves:
            history.at(160.5).call("x")
        assert history.breaches(400) == ([] if leaves else ["late"])


@pytest.mark.parametrize(("at", "found"), [(102.0, ["early"]), (115.1, [])])
def test_an_old_time_cuts_no_grace_of_a_taint_that_was_seen_to_come(at, found):
    history = History({}, timing={"violationGraceSeconds": 15})
    history.node("n", None)
    history.pod("x", tolerations=[])
    history.at(100).node("n", "x", added=_stamp(START - 500))
    history.at(at).call("x")
    assert history.breaches() == found


@pytest.mark.parametrize(("uid", "found"), [("n", []), ("other", ["early"])])
def test_only_the_same_node_comes_back_with_its_history(uid, found):
    """After a restore of etcd a node is there again that was deleted: its annotation tells since when it is bad."""
    history = violated(timing={"violationGraceSeconds": 60})
    history.at(150).object("nodes", "n", None)
    history.at(190).add("forgot", name="")
    history.node("n", "940", uid=uid)
    history.state(there=False, well=False)
    history.at(191).state()
    history.at(192).call("x")
    assert history.breaches() == found


def test_an_old_time_counts_where_no_operator_was():
    history = History({}, timing={"violationGraceSeconds": 15})
    history.node("n", None)
    history.pod("x", tolerations=[])
    history.at(50).state(there=False, well=False)
    history.at(100).node("n", "x", added=_stamp(START + 60))
    history.at(110).state()
    history.at(111).call("x")
    assert history.breaches() == []


def after_a_gap(value, added, tolerations=GT, grace=100):
    """A value and its time that no operator saw written, after 970 at 10 and 980 at 60; a leader sees it at 210."""
    history = History({}, timing={"violationGraceSeconds": grace})
    history.node("n", None)
    history.pod("x", tolerations=tolerations)
    for at, before in ((10, "970"), (60, "980")):
        history.at(at).node("n", before)
    history.at(120).state(there=False, well=False)
    history.at(200).node("n", value, added=_stamp(START + added))
    history.at(210).state()
    return history


@pytest.mark.parametrize("added", [40, 130, 4000])
@pytest.mark.parametrize(("at", "found"), [(290, ["early"]), (308, []), (330, ["late"])])
def test_a_value_counts_from_when_it_was_seen_whatever_its_time_is(added, at, found):
    history = after_a_gap("900", added)
    history.at(at).call("x")
    assert history.breaches() == found


@pytest.mark.parametrize(("added", "at", "found"), [(4000, 240, ["late"]), (130, 240, []), (130, 380, ["late"])])
def test_only_a_later_time_that_is_not_in_the_future_adds_a_taint_again(added, at, found):
    history = after_a_gap("990", added, [], 150)
    history.at(at).call("x")
    assert history.breaches() == found


def test_two_keys_of_one_condition_are_one_taint():
    tolerations = [{"operator": "Exists", "tolerationSeconds": 40}]
    history = History({}, taints=[{"key": "*"}])
    history.node("n", None)
    history.pod("x", tolerations=tolerations)
    for at, key in ((100, "not-ready"), (130, "unreachable")):
        history.at(at).node("n", "", key=f"node.kubernetes.io/{key}")
    history.at(141.5).call("x")
    assert history.breaches() == []


@pytest.mark.parametrize(
    ("key", "condition", "found"), [("gpu", "True", []), ("gpu", "False", ["late"]), ("other", "False", [])]
)
def test_what_a_policy_reads_from_a_node_is_a_taint_for_pods_that_name_its_key(key, condition, found):
    history = History({}, taints=[{"key": "gpu", "from": {"condition": "GPUHealthy"}}])
    status = {"conditions": [{"type": "GPUHealthy", "status": condition, "lastTransitionTime": _stamp(START)}]}
    history.object("nodes", "n", {"metadata": {"name": "n"}, "status": status})
    history.pod("x", tolerations=[{"key": key, "operator": "Equal", "value": "True"}])
    assert history.breaches(10) == found


def test_a_call_by_a_replica_that_does_not_lead_is_a_breach():
    history = violated()
    history.at(101).call("x", by="b")
    assert history.breaches() == ["leader"]


def test_a_call_is_of_the_term_in_which_it_was_decided_on():
    for term, found in ((1, []), (2, ["leader"])):
        history = violated()
        history.at(101).add("order", id=1, policy="p", pod="x", verb="POST")
        history.state(term=term)
        history.at(101.5).call("x")
        assert history.breaches() == found


def test_an_opt_out_counts():
    history = violated()
    history.at(60).pod("x", annotations={"taintwarden.io/do-not-evict": "true"})
    history.at(101).call("x")
    assert history.breaches() == ["right"]


# -- lanes ------------------------------------------------------------------------------------------------------------


def two_namespaces(limits, first=20, second=1):
    history = History(limits)
    history.node("n")
    names = many(history, "a", first), many(history, "b", second)
    history.at(100).node("n", "940")
    return history, *names


def test_no_lane_has_many_turns_while_another_waits():
    history, first, _ = two_namespaces({"evictionsPerSecond": 1, "burst": 1})
    for index in range(15):
        history.at(101 + index).call(first[index])
    assert history.breaches() == ["turns"]


def failing(times, *, others=True):
    """Lane a is denied at these times; lane b is evicted at once."""
    history, first, second = two_namespaces({}, first=3)
    if others:
        history.at(100.5).call(second[0])
    for index, at in enumerate(times):
        history.at(at).call(first[index % 3], 403, DENIED)
    return history


def test_a_lane_that_fails_is_tried_again_at_increasing_times():
    assert failing([101, 102.2, 104.4, 108.6, 116.8]).breaches(125) == []


def test_a_lane_that_fails_tries_another_pod():
    history, first, second = two_namespaces({}, first=3)
    history.at(100.5).call(second[0])
    for at in (103, 104.2, 106.4):
        history.at(at).call(first[0], 403, DENIED)
    assert history.breaches() == ["order"]


@pytest.mark.parametrize(("again", "found"), [(102.2, []), (101.4, ["failing"]), (115.0, ["late"])])
def test_calls_that_were_in_the_air_count_once(again, found):
    history, first, second = two_namespaces({}, first=8)
    history.at(100.5).call(second[0])
    for uid in first[:4]:
        history.at(100.6).call(uid, 403, DENIED, takes=0.4)
    history.at(again).calls(*first[4:], *first[:4])
    assert history.breaches() == found


def test_a_lane_that_fails_has_its_turn():
    history, first, second = two_namespaces({"evictionsPerSecond": 2, "burst": 1}, first=3, second=60)
    history.at(101).call(first[0], 403, DENIED)
    history.at(101.5).calls(*second[:40], every=0.48)
    assert history.breaches() == ["turns"]


def test_a_lane_that_fails_waits():
    assert failing([101, 101.3]).breaches() == ["failing"]
    assert failing([101, 102.2, 103.4]).breaches() == ["failing"]


def test_a_lane_that_fails_is_not_given_up():
    assert failing([101, 102.2]).breaches(130) == ["late"]


def test_another_lane_does_not_wait_for_it():
    assert failing([101, 102.2, 104.4, 108.6], others=False).breaches(112) == ["late"]


def test_a_lane_that_fails_tries_one_call():
    history, first, second = two_namespaces({}, first=3)
    history.at(100.5).call(second[0])
    history.at(101).call(first[0], 403, DENIED)
    history.at(102.5).call(first[0], None)
    history.at(102.7).call(first[1], None)
    assert history.breaches() == ["failing"]


@pytest.mark.parametrize(("at", "found"), [(112, ["calls"]), (115.5, []), (125, ["late"])])
def test_no_lane_calls_while_the_lease_is_not_renewed(at, found):
    history = violated()
    history.at(99).state(renews=False)
    history.at(115).state()
    history.at(at).call("x")
    assert history.breaches() == found


def test_a_hard_deadline_tries_every_two_seconds():
    history = History({}, reclaim={"deadlineSeconds": 120})
    history.node("n")
    history.pod("x")
    history.at(100).node("n", "940")
    for at in (101, 102.2, 104.4, 106.6, 108.8, 111.0):
        history.at(at).call("x", 403, DENIED)
    assert history.breaches(112) == []
    assert history.breaches(120) == ["late"]


def test_an_error_of_the_server_makes_its_lane_wait_and_no_other():
    def play(again, other):
        history, first, second = two_namespaces({}, first=1)
        history.at(101).call(first[0], 500, "etcdserver: request is too large")
        history.at(other).call(second[0])
        history.at(again).call(first[0])
        return history.breaches(130)

    assert play(103.0, 101.2) == []
    assert play(101.5, 101.2) == ["failing"]
    assert play(103.0, 125.0) == ["late"]


@pytest.mark.parametrize(("ended", "found"), [(False, []), (True, ["order"])])
def test_pods_whose_node_is_read_are_not_in_their_lane(ended, found):
    history = History({"evictionsPerSecond": 1, "burst": 1})
    for name, value in (("n", "940"), ("m", "980")):
        history.node(name, value)
        history.pod(name, node=name)
    history.at(140).node("m", "940")
    history.at(145).add("read", name="n", ended=False)
    if ended:
        history.at(145.1).add("read", name="n", ended=True)
    history.at(147).call("m")
    assert [one for one in history.breaches() if one != "late"] == found


def crowded(calls, *, others=True, every=0.0):
    """`calls` calls of lane a hang from 105 on; lane b waits, or is empty."""
    history, first, second = two_namespaces({"evictionsPerSecond": 20, "burst": 20}, second=40 if others else 0)
    history.at(105)
    for uid in first[:calls]:
        history.call(uid, None, takes=every)
    return history, second


def test_a_lane_has_half_of_the_slots_while_others_could_go():
    assert "calls" not in crowded(5)[0].breaches()
    assert "calls" in crowded(6)[0].breaches()
    assert "calls" not in crowded(9, others=False)[0].breaches()


def test_a_lane_alone_has_all_of_them():
    history, _ = crowded(5, others=False)
    for index in range(20):  # each hangs for 0.8 s, and five slots are never used
        history.at(105 + 0.16 * index).add("answer", id=index + 1, code=201, body="{}")
    assert history.breaches(112) == ["late"]


def test_a_call_that_hangs_makes_its_lane_fail():
    """Its calls hang, and it has a quarter of the turns, or half."""
    for others, found in ((3, []), (1, ["turns"])):
        history, second = crowded(1)
        history.at(106.5)
        for index in range(3):
            history.call(f"a{index + 1:03}", None)
            history.calls(*second[index * others : (index + 1) * others], every=0.03)
        assert [one for one in history.breaches() if one != "late"] == found


def test_lanes_that_fail_have_a_quarter_of_the_turns():
    for others, found in ((3, []), (0, ["turns"])):
        history = History({"evictionsPerSecond": 2, "burst": 1})
        history.node("n")
        fail, fit = ([many(history, namespace, 1)[0] for namespace in "abcd"], many(history, "e", 40))
        history.at(100).node("n", "940")
        for index, uid in enumerate(fail):
            history.at(102 + index).call(uid, 403, DENIED)
        for index, uid in enumerate(fail):
            history.at(108 + 2 * index)
            history.calls(*fit[3 * index : 3 * index + others], every=0.5)
            history.call(uid, 403, DENIED)
        assert [one for one in history.breaches() if one != "late"] == found


def test_there_are_not_more_calls_than_slots():
    history, first, _ = two_namespaces({})
    for uid in first[:12]:
        history.at(101).call(uid, None, takes=0.0)
    assert history.breaches() == ["calls"]


# -- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("every", "found"), [(0.5, []), (0.2, ["policy-rate"]), (4.0, ["late"])])
def test_a_rate_is_kept_and_used(every, found):
    history, first, _ = two_namespaces({"evictionsPerSecond": 2, "burst": 2}, second=0)
    history.at(101.5).calls(*first[:10], every=every - 0.02)
    assert history.breaches() == found


@pytest.mark.parametrize(("every", "found"), [(1.0, []), (0.1, ["policy-rate"]), (8.0, ["late"])])
def test_a_rate_that_is_edited_adds_no_tokens(every, found):
    history, first, _ = two_namespaces({"evictionsPerSecond": 2, "burst": 20}, first=60, second=0)
    history.at(103).calls(*first[:20])
    history.at(104).policy({"evictionsPerSecond": 1, "burst": 20})
    history.at(105).calls(*first[20:36], every=every)
    assert history.breaches() == found


@pytest.mark.parametrize(("every", "found"), [(1.0, []), (0.4, ["namespace-rate"])])
def test_a_rate_of_a_namespace(every, found):
    history, first, second = two_namespaces({"perNamespace": {"evictionsPerSecond": 1}})
    history.at(101).call(second[0])
    history.at(101.5).calls(*first[:10], every=every - 0.02)
    assert history.breaches() == found


def test_the_order_in_a_lane_is_by_deadline_and_priority():
    def called(*names, **more):
        history = History({"evictionsPerSecond": 1, "burst": 1})
        history.node("n")
        history.node("m")
        history.pod("w", node="n", **more)
        history.pod("x", node="n", **more)
        history.pod("y", node="m")
        history.pod("z", node="m")
        history.at(20.1).node("n", "940")
        history.at(140 if not more else 20.1).node("m", "940")
        history.at(145).state()
        for seconds, name in enumerate(names, 146):
            history.at(seconds).call(name)
        return history.breaches()

    assert called("y") == ["late", "order"]
    assert [one for one in called("x", "w", "y", "z") if one != "late"] == []
    assert [one for one in called("x", "w", "y", "z", priority=5) if one != "late"] == ["order"]


def test_what_an_earlier_call_took_holds_others_at_once():
    history = History({"perWorkload": {"maxUnavailable": 1}, "evictionsPerSecond": 1, "burst": 2})
    history.object("workloads", "w", {"spec": {"replicas": 2}})
    history.node("n")
    for uid, more in (("x", {"owner": "w"}), ("y", {"owner": "w"}), ("z", {"priority": 5})):
        history.pod(uid, **more)
    history.at(100).node("n", "940")
    history.at(110).call("x", gone=False)
    history.call("z")
    assert [one for one in history.breaches() if one != "late"] == []


@pytest.mark.parametrize(("at", "found"), [(102, ["window"]), (605, []), (640, ["late"])])
def test_a_window(at, found):
    opens = START - START % 3600 + 3600
    history = violated(windows=[{"schedule": "0 * * * *", "duration": "30m"}])
    shift = opens - START - 600
    history.at(at if at < 500 else at + shift).call("x")
    assert history.breaches(at + shift + 1 if at > 500 else None) == found


def terminating(history, uid, seconds):
    pod = history.pods[uid]
    meta = pod["metadata"] | {"deletionTimestamp": _stamp(history.now + seconds)}
    history.object("pods", uid, pod | {"metadata": meta})


@pytest.mark.parametrize(("at", "found"), [(103, ["node"]), (147.5, []), (155, ["late"])])
def test_pods_that_terminate_on_a_node(at, found):
    history = History({"perNode": {"maxConcurrent": 1}})
    history.node("n")
    history.pod("x")
    history.pod("y")
    history.at(100)
    terminating(history, "y", 30)
    history.at(100.1).node("n", "940")
    history.at(at).call("x")
    assert history.breaches() == found


def test_pods_that_terminate_without_a_deadline_hold_no_other():
    history = History({"perNode": {"maxConcurrent": 1}})
    history.node("n")
    history.pod("x")
    history.pod("y", tolerations=[{"operator": "Exists"}])
    history.at(100)
    terminating(history, "y", 300)
    history.at(110).node("n", "940")
    assert history.breaches(120) == ["late"]


@pytest.mark.parametrize(("until", "found"), [(700, []), (730, ["late"])])
def test_a_pod_that_terminates_for_months_holds_others_for_ten_minutes(until, found):
    history = History({"perNode": {"maxConcurrent": 1}})
    history.node("n")
    history.pod("x")
    history.pod("y")
    history.at(100)
    terminating(history, "y", 10_000_000)
    history.node("n", "940")
    assert history.breaches(until) == found


@pytest.mark.parametrize(("until", "found"), [(155, []), (180, ["late"])])
def test_a_call_without_an_answer_counts_for_a_minute(until, found):
    history = History({"perNode": {"maxConcurrent": 1}})
    history.policy({}, name="q", taints=[{"key": "other"}])
    history.node("n", None)
    history.pod("x")
    history.pod("y", tolerations=[{"key": "other", "operator": "Exists"}])
    taints = [{"key": key, "value": "0", "effect": "NoExecute"} for key in ("sla", "other")]
    history.at(100).object("nodes", "n", {"metadata": {"uid": "n", "labels": {}}, "spec": {"taints": taints[1:]}})
    history.at(101.5).call("x", 0, "", policy="q")
    history.object("policies", "q", None)
    history.policy({"perNode": {"maxConcurrent": 1}})
    history.at(102).object("nodes", "n", {"metadata": {"uid": "n", "labels": {}}, "spec": {"taints": taints}})
    history.pod("x", tolerations=[{"operator": "Exists"}])
    assert history.breaches(until) == found


def test_a_share_of_a_workload():
    def called(*times):
        history = History({"perWorkload": {"maxUnavailable": 1}})
        history.object("workloads", "w", {"spec": {"replicas": 3}})
        history.node("n")
        for uid in "xyz":
            history.pod(uid, owner="w")
        history.at(100).node("n", "940")
        for uid, at in zip("xyz", times, strict=False):
            history.at(at).call(uid)
        return history

    assert called(101).breaches(130) == []
    assert called(101, 103).breaches() == ["workload"]
    assert called().breaches(110) == ["late"]
    history = called(101)
    history.at(110).pod("v", owner="w", node="m")
    assert history.breaches(130) == ["late"]


def allow(history, number):
    budget = {
        "metadata": {"namespace": "a", "name": "b", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
        "status": {"observedGeneration": 1, "disruptionsAllowed": number, "currentHealthy": 1, "desiredHealthy": 1},
    }
    history.object("budgets", "a/b", budget)


def budgeted(allowed, method="Evict", **limits):
    history = History(limits, eviction={"method": method, "pdbTimeoutSeconds": 60})
    allow(history, allowed)
    history.node("n")
    history.pod("x", labels={"app": "x"})
    history.at(100).node("n", "940")
    return history


def test_a_budget_holds_a_pod_and_nothing_else_does():
    assert budgeted(0).breaches(500) == []
    assert budgeted(1).breaches(130) == ["late"]


@pytest.mark.parametrize(("first", "found"), [("x", []), ("y", ["late", "turns"])])
def test_hard_deadlines_come_first(first, found):
    history = History({})
    history.policy({}, name="spot", taints=[{"key": "spot"}], reclaim={"deadlineSeconds": 60})
    history.node("m", None)
    history.pod("x", node="m", tolerations=[])
    history.node("n")
    history.pod("y")
    history.at(100).node("m", "", key="spot")
    history.node("n", "940")
    history.at(101 if first == "x" else 105).call(first, policy="spot" if first == "x" else "p")
    assert history.breaches(103 if first == "x" else 106) == found


def test_a_pod_that_its_budget_blocks_is_not_called():
    history = budgeted(0)
    history.at(110).call("x", 429, BUDGET)
    assert history.breaches() == ["budget"]
    history = budgeted(0)
    history.at(109.8).pod("x", labels={"app": "x"}, ready=False)  # it is healthy enough for one that is not Ready
    history.at(110).call("x", 429, BUDGET)
    assert history.breaches() == []


@pytest.mark.parametrize(("at", "found"), [(112, []), (119, ["late"])])
def test_what_was_accepted_counts_at_its_budget_for_10_seconds(at, found):
    """No status says that it includes a pod that was leaving already."""
    history = budgeted(1)
    history.pod("y", labels={"app": "x"}, node="n")
    history.at(101).call("y", gone=False)
    history.facts = [one for one in history.facts if one["what"] != "effect"]
    history.object("pods", "y", None)
    history.at(at).call("x")
    assert history.breaches() == found


def test_a_pod_that_was_refused_waits_5_to_60_seconds():
    def refused(again):
        history = budgeted(1)
        history.at(101).call("x", 429, BUDGET)
        history.object("budgets", "a/b", None)
        history.at(again).call("x")
        return history.breaches()

    assert refused(104) == ["budget"]
    assert refused(108) == []
    assert refused(190) == ["late"]


@pytest.mark.parametrize(("at", "found"), [(120, ["budget"]), (170, []), (420, ["late"])])
def test_evict_then_delete_deletes_in_time(at, found):
    history = budgeted(0, "EvictThenDelete")
    history.at(at).call("x", verb="DELETE")
    assert history.breaches() == found


@pytest.mark.parametrize(("until", "found"), [(310, []), (330, ["late"])])
def test_a_budget_that_allows_for_a_moment_starts_its_timeout_again(until, found):
    history = budgeted(0, "EvictThenDelete")
    for at, number in ((180, 1), (180.1, 0)):
        allow(history.at(at), number)
    assert history.breaches(until) == found


SLOW = {"evictionsPerSecond": 0.05, "burst": 1}


@pytest.mark.parametrize(("until", "found"), [(440, []), (470, ["late"])])
def test_a_budget_blocks_a_pod_from_its_first_try_on(until, found):
    history = budgeted(0, "EvictThenDelete", **SLOW)
    history.at(101).calls(*many(history.at(100), "a", 10), every=21)
    assert history.breaches(until) == found


@pytest.mark.parametrize(("calls", "found"), [(6, []), (8, ["order"])])
def test_a_pod_is_tried_before_later_ones_are_called(calls, found):
    history = budgeted(0, "EvictThenDelete", **SLOW)
    first, second = many(history, "a", 5), many(history, "a", calls, node="m", prefix="m")
    history.at(180).node("m", "940")
    history.at(101).calls(*first, *second, every=21)
    assert history.breaches() == found


def test_the_next_leader_knows_no_refusal():
    history = budgeted(1)
    history.at(101).call("x", 429, BUDGET)
    history.object("budgets", "a/b", None)
    history.at(102).state(leader="b", term=2)
    history.at(104).call("x", by="b")
    assert history.breaches() == []


def test_a_falling_value_does_not_delay_the_deletion():
    history = budgeted(0, "EvictThenDelete")
    for index in range(160):
        history.at(101 + 5 * index).node("n", str(939 - index))
    assert history.breaches() == ["late"]


def bouncing(*times, others=()):
    """``others``: other taints that evict the first of them, too."""
    history = History({"bounce": {"maxBackoffSeconds": 3600}}, taints=[{"key": "sla"}, {"key": "flag"}])
    history.node("n", "940")
    history.facts[-1]["object"]["spec"]["taints"][:0] = others
    for index, at in enumerate(times):
        history.at(at).pod(f"x{index}", owner="w")
        history.at(at + 1).call(f"x{index}")
        history.node("n", "940")
    return history


def test_what_comes_back_is_delayed_after_three_rounds():
    assert bouncing(10, 20, 30).breaches() == []
    assert bouncing(10, 20, 30, 40).breaches() == ["bounce"]
    assert bouncing(10, 20, 30, 95).breaches() == []
    history = bouncing(10, 20, 30)
    history.at(40).pod("y", owner="w")
    assert history.breaches(80) == []
    assert history.breaches(120) == ["late"]


def test_a_row_is_of_all_taints():
    flag = {"key": "flag", "value": "x", "effect": "NoExecute"}
    assert bouncing(10, 20, 30, 40, others=[flag]).breaches() == ["bounce"]


@pytest.mark.parametrize(("again", "found"), [(103, ["budget"]), (107, []), (122, ["late"])])
def test_an_eviction_that_was_accepted_without_effect_is_due_again(again, found):
    history = violated()
    history.at(101).call("x", effect=False)
    history.at(again).call("x")
    assert history.breaches() == found


@pytest.mark.parametrize(("again", "found"), [(112, []), (140, ["late"])])
def test_a_pod_that_an_older_store_brings_back_is_due_again(again, found):
    history = violated()
    history.at(101).call("x")
    history.at(105).add("forgot", name="")
    history.node("n", "940")
    history.pod("x", creationTimestamp=_stamp(START))
    history.at(again).call("x")
    assert history.breaches() == found


def test_a_pod_that_leaves_is_not_called_again():
    history = violated()
    history.at(101).call("x", gone=False)
    history.pod("x", deletionTimestamp=_stamp(START + 131))
    history.at(110).call("x")
    assert history.breaches() == ["twice"]


MIGRATES = '{"message": "admission webhook \\"x\\" denied the request: Eviction triggered migration"}'


@pytest.mark.parametrize(
    ("code", "body", "found"),
    [(429, MIGRATES, ["workload"]), (403, DENIED, ["workload"]), (201, "{}", ["workload"]), (500, "no", [])],
)
def test_pods_that_a_webhook_took_over_are_missing(code, body, found):
    history = History({"perWorkload": {"maxUnavailable": 1}})
    history.node("n")
    history.object("workloads", "w", {"spec": {"replicas": 3}})
    names = many(history, "a", 3, owner="w")
    history.at(100).node("n", "940")
    history.at(101).call(names[0], code, body, effect=False)
    history.at(102.5).call(names[1])
    assert history.breaches() == found


def test_a_pod_that_no_webhook_moves_is_missing_for_ten_minutes():
    history = History({"perWorkload": {"maxUnavailable": 1}})
    history.node("n")
    history.object("workloads", "w", {"spec": {"replicas": 3}})
    names = many(history, "a", 3, owner="w")
    history.at(100).node("n", "940")
    history.at(101).call(names[0], 429, MIGRATES)
    for at in (107, 118, 139, 180, 240, 301, 362, 423, 484, 545, 606, 667, 728):
        history.at(at).call(names[0], 429, MIGRATES)
    assert history.breaches(750) == []
    assert history.breaches(850) == ["late"]


# -- the guard --------------------------------------------------------------------------------------------------------

GUARD = {"guard": {"maxPercent": 10, "minPods": 10}}


def wave(*counts, limits=GUARD, stay=20):
    """Pods of namespaces a, b, ... on a node that falls at 100, beside pods that stay."""
    history = History(limits)
    history.node("n")
    history.node("m")
    many(history, "stay", stay, node="m")
    names = [many(history, namespace, number) for namespace, number in zip("abcdefghij", counts, strict=False)]
    history.at(100).node("n", "940")
    return history, *names


def test_a_wave_within_the_allowance_goes():
    history, first = wave(10)
    assert history.breaches(106) == []
    assert history.breaches(115) == ["late"]
    history.at(103).calls(*first)
    assert history.breaches() == []


def test_a_wave_above_it_is_held_before_its_first_eviction():
    history, first = wave(11)
    assert history.breaches(400) == []
    history.at(104).call(first[0])
    assert history.breaches() == ["guard"]


def test_a_pod_that_leaves_after_a_failed_call_was_evicted():
    history, first = wave(5)
    for uid in first:
        history.at(103).call(uid, 429, MIGRATES)
    for uid in first:
        history.at(106).object("pods", uid, None)
    history.at(110)
    more = many(history, "b", 6)
    history.at(115).call(more[0])
    assert history.breaches() == ["guard"]


def test_a_pod_that_leaves_after_its_budget_refused_it_was_not():
    history, first = wave(5)
    for uid in first:
        history.at(103).call(uid, 429, BUDGET)
    for uid in first:
        history.at(106).object("pods", uid, None)
    history.at(110)
    more = many(history, "b", 6)
    history.at(114).calls(*more)
    assert history.breaches() == []


@pytest.mark.parametrize(("number", "found"), [(5, []), (6, ["guard"])])
def test_failed_calls_reserve_half_of_the_allowance_for_one_namespace(number, found):
    history, first = wave(8)
    for uid in first[:number]:
        history.at(history.now - START + 3).call(uid, 429, MIGRATES)
    assert [one for one in history.breaches() if one == "guard"] == found


@pytest.mark.parametrize(("reserved", "found"), [(["a000"], []), ([], ["guard"])])
def test_an_eviction_is_stored_before_its_call(reserved, found):
    history, first = wave(1)
    history.policy(reserved=reserved)
    history.at(103).call(first[0])
    assert history.breaches() == found


@pytest.mark.parametrize(("replaced", "found"), [(True, ["guard"]), (False, [])])
def test_evicted_pods_count_until_they_are_replaced(replaced, found):
    """12 of 60 pods may go, of 54 only 10."""
    history = History({"guard": {"minPods": 1, "maxPercent": 20}})
    for name in ("n", "k", "m"):
        history.node(name)
    first, second = (many(history, "a", 6, node=node, prefix=node, owner="w") for node in ("n", "k"))
    rest = many(history, "b", 48, node="m")
    history.at(100).node("n", "940")
    history.at(103).calls(*first)
    for uid in rest[:6] if replaced else ():
        history.at(110).object("pods", uid, None)
    if replaced:
        many(history, "a", 6, node="m", prefix="r", owner="w")
    history.at(130).node("k", "940")
    history.at(133).calls(*second)
    assert history.breaches() == found


def test_what_grew_after_the_trip_is_held_by_the_next_leader():
    history, _, second = wave(16, 8)
    for uid in second[:5]:
        history.at(120).object("pods", uid, None)
    history.at(125).state(leader="b", term=2)
    history.at(190).call(second[7], by="b")
    assert history.breaches() == ["guard"]


@pytest.mark.parametrize(("at", "found"), [(165, []), (190, ["late"])])
def test_growth_of_the_largest_namespace_delays_no_other(at, found):
    history, _, second = wave(16, 4)
    for index in range(10):
        history.at(100 + 9 * index).pod(f"drip{index}")
        history.facts[-1]["object"]["metadata"]["namespace"] = "a"
    history.at(at).calls(*second)
    assert history.breaches() == found


@pytest.mark.parametrize(("until", "found"), [(185, []), (205, ["late"])])
def test_a_guard_that_trips_later_than_it_might_have_narrows_later(until, found):
    history, _, _, third = wave(6, 4, 1)
    history.at(100.3).object("pods", third[0], None)
    history.at(130).pod("more")
    assert history.breaches(until) == found


def test_ten_namespaces_are_held_together():
    history, *names = wave(*[4] * 10)
    assert history.breaches(400) == []
    history.at(300).call(names[3][0])
    assert history.breaches() == ["guard"]


@pytest.mark.parametrize(
    ("small_at", "large_at", "found"), [(165, None, []), (120, None, ["guard"]), (165, 300, ["guard"])]
)
def test_a_small_namespace_goes_after_a_minute_and_the_large_one_does_not(small_at, large_at, found):
    history, first, second = wave(16, 4)
    history.at(small_at).calls(*second)
    if large_at is not None:
        history.at(large_at).call(first[0])
    assert history.breaches(400) == found


PACE = {"guard": GUARD["guard"] | {"action": "Pace"}}


@pytest.mark.parametrize(("number", "found"), [(9, ["late"]), (10, []), (11, ["guard"])])
def test_a_pace_lets_the_allowance_leave_in_a_window_neither_more_nor_fewer(number, found):
    history, first, second = wave(16, 4, limits=PACE)
    history.at(104).calls(*(second + first)[:number])
    assert history.breaches(200) == found


@pytest.mark.parametrize(("again", "found"), [(690, ["guard"]), (708, []), (760, ["late"])])
def test_a_pace_continues_when_the_window_is_over(again, found):
    history, first = wave(20, limits=PACE)
    history.at(104).calls(*first[:10])
    history.at(again).calls(*first[10:])
    assert history.breaches() == found


def test_a_small_namespace_may_not_be_held_indefinitely():
    history, *_ = wave(16, 4)
    assert history.breaches(200) == ["late"]


def test_half_as_much_again_and_no_more_goes_while_one_is_held():
    history, _, second = wave(16, 5)
    history.at(165).calls(*second)
    third = many(history, "c", 12)
    history.at(175).calls(*third)
    assert "guard" in history.breaches()


def test_repair_node_by_node_does_not_arm_it():
    history = History(GUARD)
    history.node("m")
    many(history, "stay", 20, node="m")
    for index in range(16):
        history.node(f"n{index}")
        history.pod(f"x{index:02}", "ab"[index % 2], f"n{index}")
    history.at(100)
    for index in range(16):
        history.node(f"n{index}", "940")
    for index in range(14):
        history.at(130 + 4 * index).node(f"n{index}")
    assert history.breaches(200) == []
    history.at(200).call("x15")
    assert history.breaches() == ["guard"]


def test_the_guard_is_armed_when_no_pod_has_to_leave():
    history, *_ = wave(8, 8)
    history.at(130).node("n")
    history.pod("new", "c", "k")
    history.at(800).node("k", "940")
    assert history.breaches(804) == []
    assert history.breaches(812) == ["late"]
    history.at(803).call("new")
    assert history.breaches() == []


def test_while_one_namespace_has_to_leave_it_holds_only_that():
    history, first, _second = wave(8, 1)
    for uid in many(history, "c", 6, prefix="x"):
        history.at(100.2).pod(uid, "c", "n")
    history.at(130)
    for uid in [*first, *(f"cx{index:03}" for index in range(6))]:
        history.object("pods", uid, None)
    history.at(200).pod("new", "d", "n")
    history.at(208).call("new")
    assert history.breaches(200) == []


def test_a_release_lets_exactly_the_held_go():
    history, first = wave(13)
    history.at(160).policy(reset="1")
    assert history.breaches(162) == []
    assert history.breaches(170) == ["late"]
    history.at(160.5).policy()
    history.at(161).calls(*first)
    after = many(history, "a", 6, prefix="r")
    history.at(167).calls(*after)
    assert history.breaches() == []
    more = many(history, "a", 12, prefix="s")
    history.at(180).call(more[0])
    assert history.breaches() == ["guard"]


@pytest.mark.parametrize(("recovers", "found"), [(False, []), (True, ["guard"])])
def test_a_pause_ends_no_release_but_a_good_value_does(recovers, found):
    history, first = wave(13)
    guard = history.spec["limits"]
    history.at(160).policy(reset="1")
    history.at(160.5).policy()
    history.at(161).policy(guard, mode="Paused")
    if recovers:
        history.at(170).node("n")
        history.at(190).node("n", "940")
    history.at(200).policy(guard, mode="Enforce", reserved=[])
    history.at(204).call(first[0])
    assert history.breaches() == found


def test_a_release_counts_also_after_one_that_was_asked_of_a_former_leader():
    history, first = wave(66)
    history.at(140).policy(reset="1")
    history.at(140.1).state(term=2)
    history.at(141).policy()
    history.at(160).policy(reset="2")
    history.at(161).calls(*first)
    assert history.breaches() == []


def test_what_was_counted_in_a_rehearsal_counts():
    """By that count, the smaller namespace is above half of the allowance; by now it is not."""
    history, *_ = wave(60, 30)
    for policy in (history.facts[1], history.facts[1] | {"at": START + 150}):
        spec = policy["object"]["spec"] | ({"mode": "DryRun"} if policy["at"] == START else {})
        history.facts.append(policy | {"object": policy["object"] | {"spec": spec}})
    history.facts.remove(history.facts[1])
    for index in range(10):
        history.at(110).object("pods", f"b{index:03}", None)
    assert history.breaches(400) == []


def test_pods_that_wait_for_a_budget_do_not_count():
    history, first, second = wave(5, 6)
    for uid in first:
        history.at(99).pod(uid, "a", labels={"app": "x"})
    status = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}
    spec = {"selector": {"matchLabels": {"app": "x"}}}
    history.object("budgets", "a/b", {"metadata": {"generation": 1}, "spec": spec, "status": status})
    history.at(103).calls(*second)
    assert history.breaches() == []


def test_a_release_does_not_release_what_waits_for_a_budget():
    """The pod was not counted: when its budget allows it, the guard trips again."""
    history, first, second = wave(11, 11)
    spec, status = {"selector": {"matchLabels": {"app": "x"}}}, {"observedGeneration": 1, "disruptionsAllowed": 0}
    history.at(50).object("budgets", "b/b", {"metadata": {"generation": 1}, "spec": spec, "status": status})
    for uid in second:
        history.at(50).pod(uid, "b", labels={"app": "x"})
    history.at(110).policy(reset="1")
    history.at(111).policy()
    history.at(112).calls(*first)
    history.at(120).object("budgets", "b/b", None)
    assert history.breaches(300) == []
    history.at(130).call(second[0])
    assert history.breaches() == ["guard"]


def test_while_it_holds_one_namespace_others_have_half_as_much_again():
    """The one namespace that has to leave has nearly used up the allowance."""
    limits = {"guard": {"minPods": 10, "maxPercent": 1}}
    history, first = wave(9, limits=limits, stay=0)
    history.at(103).calls(*first)
    many(history, "a", 6, prefix="r")
    assert history.breaches(170) == []
    many(history.at(180), "c", 4)
    assert history.breaches(190) == ["late"]


def test_an_allowance_is_counted_across_leaders():
    history, first = wave(8)
    history.at(103).calls(*first)
    history.at(120).state(leader="b", term=2)
    for uid in many(history, "b", 2):
        history.at(124).call(uid, by="b")
    assert history.breaches() == []
    for uid in many(history, "c", 1):
        history.at(128).call(uid, by="b")
    assert history.breaches() == ["guard"]


# -- zones ------------------------------------------------------------------------------------------------------------

ILL = {"zoneHealth": {"unhealthy": [{"key": "sla", "operator": "Lt", "value": "950"}]}}


def zones(*bad, total=4, limits=ILL):
    history = History(limits)
    names = []
    for zone, number in zip("xyz", bad, strict=False):
        for index in range(total):
            history.node(f"{zone}{index}", zone=zone)
            names += many(history, "a", 5 if index < number else 0, node=f"{zone}{index}", prefix=f"{zone}{index}")
    history.at(100)
    for zone, number in zip("xyz", bad, strict=False):
        for index in range(number):
            history.node(f"{zone}{index}", "940", zone=zone)
    return history, names


def test_a_zone_that_is_degraded_has_its_own_rate():
    history, names = zones(3, 0)
    history.at(105).calls(*names, every=1.0)
    assert history.breaches() == []
    history, names = zones(3, 0)
    history.at(105).calls(*names)
    assert history.breaches() == ["zone"]


def test_a_normal_zone_has_no_rate():
    history, names = zones(2, 0)
    history.at(101).calls(*names)
    assert history.breaches() == []


def test_nothing_leaves_when_all_are_unhealthy():
    history, names = zones(4, 4)
    assert history.breaches(400) == []
    history.at(104).call(names[0])
    assert history.breaches() == ["zone"]
    assert zones(4, 3)[0].breaches(200) == ["late"]


def test_nothing_leaves_when_all_nodes_of_small_zones_are_unhealthy():
    history, names = zones(1, 1, 1, total=1)
    assert history.breaches(400) == []
    history.at(104).call(names[0])
    assert history.breaches() == ["zone"]


@pytest.mark.parametrize(("which", "found"), [(0, []), (5, ["zone"])])
def test_a_guard_that_reports_releases_from_zones(which, found):
    history, names = zones(4, limits=ILL | {"guard": {"action": "Report", "minPods": 2}})
    for fact in history.facts[-3:]:  # all but one of the nodes
        fact["at"] += 3
    history.at(101).policy(reset="1")
    history.at(101.1).policy()
    history.at(105).call(names[which])
    assert history.breaches() == found


def test_two_nodes_are_no_zone():
    history, names = zones(2, total=2)
    history.at(101).calls(*names)
    assert history.breaches() == []


# -- places -----------------------------------------------------------------------------------------------------------


class Placed(History):
    """Two nodes with a pod each, of which one may lose pods."""

    def __init__(self, **limits):
        super().__init__({"concurrentNodes": 1} | limits)
        for name in "xy":
            self.node(f"n{name}")
            self.pod(name, node=f"n{name}")
        self.at(100)
        for name in "xy":
            self.node(f"n{name}", "940")

    def place(self, *nodes):
        status = {"places": {"nodes": [{"node": node, "since": "then"} for node in nodes]}}
        self.object("policies", "p", {"metadata": {"name": "p", "uid": "uid-p"}, "spec": self.spec, "status": status})
        return self


def test_one_node_after_the_other_is_right():
    history = Placed()
    history.at(100.2).place("nx").call("x")
    history.at(101.5).place("ny").call("y")
    assert history.breaches() == []


def test_a_call_for_a_node_without_a_stored_place():
    history = Placed()
    history.at(100.2).place("nx")
    history.at(100.3).call("y")
    assert "place" in history.breaches(100.5)


def test_more_nodes_with_a_place_than_may():
    history = Placed()
    history.at(100.2).place("nx", "ny")
    assert history.breaches(100.5) == ["place"]


def test_a_call_while_another_node_loses_pods():
    history = Placed()
    history.at(100.2).place("nx").call("x", gone=False)
    terminating(history, "x", 30)
    history.at(101).place("ny").call("y")
    assert history.breaches(101.5) == ["place"]


def test_a_place_that_no_node_takes():
    history = Placed()
    history.at(100.2).place()
    assert history.breaches(110) == ["late"]


@pytest.mark.parametrize(("until", "found"), [(104, []), (110, ["place"])])
def test_a_drained_node_that_keeps_its_place(until, found):
    history = Placed()
    history.at(100.2).place("nx").call("x")
    assert history.breaches(until) == found
