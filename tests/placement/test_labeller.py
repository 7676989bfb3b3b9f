"""The labels of nodes follow the taints that they repeat, also against failures and other clients."""

import asyncio
import itertools
import json
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from kube.scripted import refusal
from simulated import policy
from simulated.world.playing import FIRST_SEED, RUNS
from taintwarden.engine import events
from taintwarden.engine.model import Effect, Node, SourceValue, Taint, ValueSource
from taintwarden.engine.policy import Policy
from taintwarden.kube.errors import Fenced, Unreachable
from taintwarden_placement.node_labels import neutral_labels
from taintwarden_placement.node_labels.labeller import MAX_COMPARED_AT_ONCE, MAX_WRITES, Labeller
from taintwarden_placement.node_labels.notices import LabelsContested, NotMirrored
from work import steps

pytestmark = pytest.mark.looptime

SLA = "value.taintwarden.io/sla"
NOT_THERE = neutral_labels(["sla"])
REFUSED, LOST = refusal(403), Unreachable("lost")
NAMESAKE = refusal(422, causes=[{"field": "metadata.uid"}])


def says(value: str, key: str = "sla") -> dict[str, str]:
    """The labels of a value that is neither a number nor a version."""
    return {f"value.taintwarden.io/{key}": value, f"value-or-max.taintwarden.io/{key}": value}


def instead(value: str) -> dict[str, str | None]:
    """The changes of a node that did not have the taint before, and has it now with this value."""
    return {**dict.fromkeys(NOT_THERE), **says(value)}


def placing(name: str = "p", *, key: str = "sla", **spec: Any) -> Policy:
    return policy(name, taints=[{"key": key, "placement": True, "effects": ["NoExecute", "NoSchedule"]}], **spec)


def ended() -> Policy:
    """A policy that names the key, and does not place by it."""
    return policy(taints=[{"key": "sla"}])


class Order(msgspec.Struct):
    """A write in progress."""

    node: str
    uid: str
    labels: dict[str, str | None]
    answer: asyncio.Future[bytes]


def answered(version: int) -> bytes:
    """The answer to a write, with this version of the node."""
    return json.dumps({"metadata": {"resourceVersion": str(version)}}).encode()


class Scene:
    """A labeller, and the API server that it writes to."""

    def __init__(self, *policies: Policy, leading: bool = True, synced: bool = True) -> None:
        self.held = True
        self.orders: list[Order] = []
        self.seen = 0
        self.version = 10
        self.notices: list[object] = []
        self.connecting: Callable[[], None] = lambda: None
        """Called just before a write is sent."""
        self.tasks: list[asyncio.Task[None]] = []
        self.labeller = Labeller(self, lambda: self.held, self.notices.extend, self.spawn)  # type: ignore[arg-type]
        self.labeller.take(events.PoliciesChanged(policies))
        if synced:
            self.labeller.take(events.Synced())
        if leading:
            self.lead(leading=True)

    def spawn(self, work: Any) -> asyncio.Task[None]:
        self.tasks.append(asyncio.ensure_future(work))
        return self.tasks[-1]

    async def request(self, method: str, path: str, *, body: Any, fence: Any, **_: Any) -> bytes:
        assert method == "PATCH"
        self.connecting()
        if not fence():
            raise Fenced
        order = Order(path.rpartition("/")[2], body["metadata"]["uid"], body["metadata"]["labels"], asyncio.Future())
        self.orders.append(order)
        return await order.answer

    def lead(self, *, leading: bool) -> None:
        self.labeller.take(events.LeadershipChanged(leading=leading))

    def node(self, name: str, *taints: str, uid: str = "", labels: Any = None, version: int = 0, **more: Any) -> None:
        found = [one.partition("=") for one in taints]
        parsed = [(key, *value.partition(":")[::2]) for key, _, value in found]
        pairs = tuple((Taint(key, value, effect or Effect.NO_EXECUTE), None) for key, value, effect in parsed)
        self.version += 1
        listed = more.pop("listed", False)
        seen = Node(name, uid or f"uid-{name}", labels or {}, pairs, version or self.version, **more)
        self.labeller.take(events.NodeSeen(seen, listed))

    async def written(self) -> list[tuple[str, dict[str, str | None]]]:
        """The writes that began since the last call."""
        for _ in range(8):
            await asyncio.sleep(0)
        begun, self.seen = self.orders[self.seen :], len(self.orders)
        return [(one.node, one.labels) for one in begun]

    async def answer(self, error: Exception | None = None, version: int = 0) -> None:
        """Answer the first write in progress."""
        await self.written()
        order = next(one for one in self.orders if not one.answer.done())
        self.version += 1
        if error is None:
            order.answer.set_result(
                json.dumps({"metadata": {"resourceVersion": str(version or self.version)}}).encode()
            )
        else:
            order.answer.set_exception(error)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def take(self, kind: type) -> list[Any]:
        return [one for one in self.notices if isinstance(one, kind)]


@pytest.fixture
async def scene() -> Scene:
    """A node whose labels are not written yet."""
    found = Scene(placing())
    found.node("n1", "sla=x")
    return found


async def test_the_value_of_a_new_taint_is_written():
    scene = Scene(placing())
    scene.node("n1", "sla=950")
    number = {"version.taintwarden.io/sla": "9500000000000001", "version-or-min.taintwarden.io/sla": "9500000000000001"}
    least = {"value-or-min.taintwarden.io/sla": "950", "order.taintwarden.io/sla": "4610400139578703873"}
    assert await scene.written() == [("n1", says("950") | number | least)]


WRITTEN = {
    "other labels of the node are not touched": ("x", {"zone": "a"}, says("x")),
    "a changed value is written": ("x", says("y"), says("x")),
    "a label goes with the taint": (None, {**says("x"), "zone": "a"}, {SLA: None, **NOT_THERE}),
    "a label comes with the taint": ("x", NOT_THERE, instead("x")),
    "labels that are right are not written": ("x", says("x"), None),
}


@pytest.mark.parametrize(("value", "labels", "expected"), WRITTEN.values(), ids=WRITTEN)
async def test_labels_follow_the_taint(value, labels, expected):
    scene = Scene(placing())
    scene.node("n1", *([f"sla={value}"] if value else []), labels=labels)
    assert await scene.written() == ([] if expected is None else [("n1", expected)])


async def test_labels_follow_a_derived_taint():
    source = {"from": {"nodeInfo": "kubeletVersion"}}
    scene = Scene(policy(taints=[{"key": "kubelet", "placement": True, "valueType": "Version", **source}]))
    derived = scene.labeller._policies[0].taints[0].source
    assert isinstance(derived, ValueSource)
    scene.node("n1", values={derived: SourceValue("v1.30.1")})
    [(_, labels)] = await scene.written()
    assert labels["value.taintwarden.io/kubelet"] == "v1.30.1"
    await scene.answer()
    for version in ("v1.30.1", "v1.30.2"):
        scene.node("n1", labels=labels, values={derived: SourceValue(version)})
    [(_, labels)] = await scene.written()
    assert labels["value.taintwarden.io/kubelet"] == "v1.30.2"


async def test_changes_during_a_write_of_a_node_are_written_after_it(scene):
    assert await scene.written() == [("n1", says("x"))]
    scene.node("n1", "sla=y")
    assert await scene.written() == []
    await scene.answer()
    assert await scene.written() == [("n1", says("y"))]


async def test_the_number_of_nodes_written_at_once_is_bounded():
    scene = Scene(placing())
    for number in range(MAX_WRITES + 3):
        scene.node(f"n{number}", "sla=x")
    assert len(await scene.written()) == MAX_WRITES
    await scene.answer()
    assert len(await scene.written()) == 1


async def test_a_write_is_not_repeated_before_the_stream_delivers_it():
    scene = Scene(placing())
    scene.node("n1", "sla=x", version=11)
    await scene.answer(version=20)
    scene.node("n1", "sla=x", labels={"zone": "a"}, version=12)
    assert await scene.written() == []


@pytest.mark.parametrize("is_answered", [True, False])
async def test_a_write_counts_before_the_stream_delivers_it(scene, is_answered):
    """A pod may have been placed by the label already."""
    if is_answered:
        await scene.answer()
    await scene.written()
    scene.labeller.take(events.PoliciesChanged((ended(),)))
    if not is_answered:
        await scene.answer()
    assert await scene.written() == [("n1", {SLA: None, **NOT_THERE})]


async def test_a_change_that_the_stream_delivers_before_the_answer_is_corrected(scene):
    """No other event of the node may come for minutes."""
    await scene.written()
    scene.node("n1", "sla=x", labels=says("theirs"), version=30)
    await scene.answer(version=20)
    assert await scene.written() == [("n1", says("x"))]


async def test_after_a_restore_of_etcd_the_labels_of_a_list_count():
    scene = Scene(placing())
    scene.node("n1", "sla=x", version=50)
    await scene.answer(version=60)
    await scene.written()
    scene.node("n1", "sla=x", labels=says("y"), version=5, listed=True)
    assert await scene.written() == [("n1", says("x"))]


@pytest.mark.parametrize(("error", "soonest", "latest"), [(LOST, 0.8, 1.2), (REFUSED, 24, 36)], ids=["lost", "refused"])
async def test_a_write_that_failed_is_made_again_later(scene, error, soonest, latest):
    await scene.answer(error)
    await asyncio.sleep(soonest - 0.1)
    scene.node("n1", "sla=y")
    assert await scene.written() == []
    await asyncio.sleep(latest - soonest + 0.2)
    assert await scene.written() == [("n1", says("y"))]


@pytest.mark.parametrize(("errors", "lines"), [([LOST, LOST], 1), ([LOST, REFUSED], 2), ([NAMESAKE], 0)])
async def test_a_failed_write_is_logged_once_for_the_same_reason(scene, errors, lines):
    with capture_logs() as logs:
        for error in errors:
            await scene.answer(error)
            await asyncio.sleep(60)
    assert [(one["event"], one["node"]) for one in logs] == [("node-labels-not-written", "n1")] * lines


async def test_a_repeated_write_that_succeeds_resets_the_back_off(scene):
    with capture_logs() as logs:
        for _ in range(2):
            await scene.answer(LOST)
            await asyncio.sleep(3)
        await scene.answer()
        await scene.written()
        scene.node("n1", "sla=x", labels=says("theirs"))
        assert await scene.written() == [("n1", says("x"))]
        await scene.answer(LOST)
    await asyncio.sleep(1.3)
    assert await scene.written() == [("n1", says("x"))]
    assert len(logs) == 2


async def test_an_older_version_of_a_node_does_not_count():
    scene = Scene(placing())
    scene.node("n1", "sla=x", labels=says("x"), version=30)
    scene.node("n1", "sla=y", labels=says("x"), version=20)
    assert await scene.written() == []


async def test_a_write_that_failed_is_not_made_again_when_the_value_is_back():
    scene = Scene(placing())
    scene.node("n1", "sla=x", labels=says("y"))
    await scene.answer(LOST)
    scene.node("n1", "sla=y", labels=says("y"))
    await asyncio.sleep(60)
    assert await scene.written() == []


async def test_writes_are_sent_only_with_the_lease():
    scene = Scene(placing())
    scene.held = False
    scene.node("n1", "sla=x")
    assert await scene.written() == []
    scene.held = True
    await asyncio.sleep(2)
    assert await scene.written() == [("n1", says("x"))]


@pytest.mark.parametrize("state", [{"leading": False}, {"synced": False}], ids=lambda one: next(iter(one)))
async def test_writes_wait_for_leadership_and_for_all_policies(state):
    scene = Scene(placing(), **state)
    scene.node("n1", "sla=x")
    assert await scene.written() == []
    if "leading" in state:
        scene.lead(leading=True)
    else:
        scene.labeller.take(events.Synced())
    assert await scene.written() == [("n1", says("x"))]


async def test_a_new_leader_retries_a_refused_write_at_once(scene):
    await scene.answer(REFUSED)
    scene.lead(leading=False)
    scene.lead(leading=True)
    assert await scene.written() == [("n1", says("x"))]


async def test_a_node_that_the_policy_does_not_select_is_labelled_too():
    scene = Scene(placing(nodeSelector={"matchLabels": {"pool": "spot"}}))
    scene.node("n1", "sla=x")
    assert await scene.written() == [("n1", says("x"))]


async def test_a_node_that_is_replaced_while_its_write_waits_for_a_connection_is_not_written(scene):
    await scene.answer()
    replaced = iter([True])
    scene.connecting = lambda: next(replaced, False) and scene.node("n1", "sla=y", uid="another")
    scene.node("n1", "sla=y")
    await scene.written()
    assert [one.uid for one in scene.orders] == ["uid-n1", "another"]


async def test_another_node_of_the_same_name_is_labelled_again(scene):
    await scene.written()
    scene.node("n1", "sla=x", uid="another")
    assert await scene.written() == [("n1", says("x"))]
    assert [one.uid for one in scene.orders] == ["uid-n1", "another"]


@pytest.mark.parametrize(
    "event", [events.NodeGone("n1"), events.NodesListed(frozenset())], ids=lambda e: type(e).__name__
)
async def test_a_node_that_is_gone_is_not_written_again(scene, event):
    await scene.written()
    scene.labeller.take(event)
    await scene.answer(LOST)
    await asyncio.sleep(60)
    assert await scene.written() == []


async def test_other_tasks_run_during_a_change_of_policies():
    scene = Scene(placing(), leading=False)
    for number in range(3 * MAX_COMPARED_AT_ONCE):
        scene.node(f"n{number}", "sla=x")
    scene.lead(leading=True)
    await asyncio.sleep(0)
    assert len(scene.labeller._waiting) == 2 * MAX_COMPARED_AT_ONCE


async def test_a_write_that_waits_is_not_evaluated_when_another_leads():
    scene = Scene(placing())
    for number in range(MAX_WRITES):
        scene.node(f"n{number}", "sla=x")
    await scene.written()
    scene.node("late", "sla=x", labels={"driver": "latest"})
    await scene.written()
    scene.lead(leading=False)
    scene.labeller.take(events.PoliciesChanged((placing(versionLabels=["driver"]),)))
    await scene.answer()
    await scene.written()
    assert scene.notices == []


# -- what is reported -------------------------------------------------------------------------------------------------


async def test_a_taint_that_labels_cannot_express_is_reported_once_for_a_node():
    scene = Scene(placing())
    for zone, uid in zip("abb", ("first", "first", "second"), strict=True):
        scene.node("n1", "sla=900", "sla=990:NoSchedule", uid=uid, labels={"zone": zone})
        await scene.answer()
    assert [(one.node_uid, one.subject.key) for one in scene.take(NotMirrored)] == [("first", "sla"), ("second", "sla")]


@pytest.mark.parametrize("mode", ["Enforce", "DryRun"])
async def test_a_taint_that_labels_cannot_express_is_reported_only_if_a_policy_places(mode):
    scene = Scene(policy(taints=[{"key": "other"}], versionLabels=["driver"], mode=mode))
    scene.node("n1", labels={"driver": "latest", "label-version.taintwarden.io/driver": "30027000000021"})
    assert [str(one.subject) for one in scene.take(NotMirrored)] == ["driver=latest"] * (mode == "Enforce")


# -- where another client changes labels ------------------------------------------------------------------------------


async def fight(scene: Scene, seconds: int) -> list[float]:
    """Let another client change the labels of n1 soon after each write; return the times of the writes."""
    times = list[float]()
    for _ in range(2 * seconds):
        await asyncio.sleep(0.5)
        if await scene.written():
            times.append(asyncio.get_running_loop().time())
            await scene.answer()
            scene.node("n1", "sla=x", labels=says("theirs"))
    return times


async def test_labels_that_another_client_keeps_changing_are_written_later_each_time(scene):
    assert len(await fight(scene, 6)) <= 7
    times = await fight(scene, 1_200)
    assert len(times) <= 12
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) <= 300 * 1.2 + 1


async def test_contested_labels_are_reported_with_the_time_of_the_next_write(scene):
    await fight(scene, 2)
    first = scene.take(LabelsContested)[0]
    assert (first.node, first.number, first.labels) == ("n1", 4, tuple(sorted(says("x"))))
    assert 0.8 <= first.after <= 1.2


async def test_a_label_that_is_changed_a_few_times_is_corrected_at_once(scene):
    for _ in range(3):
        await scene.answer()
        await scene.written()
        scene.node("n1", "sla=x", labels=says("theirs"))
        assert await scene.written() == [("n1", says("x"))]


async def test_a_taint_value_that_changes_often_is_not_contested():
    scene = Scene(placing())
    for number in range(20):
        scene.node("n1", f"sla=x{number % 2}", labels=says("x1") if number else {})
        for _ in await scene.written():
            await scene.answer()
    assert scene.take(LabelsContested) == []


async def test_a_value_that_is_back_before_its_write_is_not_contested():
    scene = Scene(placing())
    scene.node("n1", "sla=x", labels=says("x"))
    for _ in range(6):
        scene.node("n1", "sla=y", labels=says("x"))
        scene.node("n1", "sla=x", labels=says("x"))
        assert await scene.written() == []
    scene.node("n1", "sla=y", labels=says("x"))
    assert await scene.written() == [("n1", says("y"))]


async def test_another_value_of_a_contested_label_is_written_at_once(scene):
    await fight(scene, 60)
    await scene.written()
    scene.node("n1", "sla=y", labels=says("theirs"))
    assert await scene.written() == [("n1", says("y"))]
    await asyncio.sleep(400)
    assert await scene.written() == []


async def test_a_contest_is_forgotten_after_half_an_hour(scene):
    await fight(scene, 60)
    await asyncio.sleep(120)
    await scene.answer()
    scene.node("n1", "sla=x", labels=says("x"))
    await asyncio.sleep(2_000)
    scene.node("n1", "sla=x", labels=says("theirs"))
    assert await scene.written() == [("n1", says("x"))]


# -- where placement has ended ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("now", [ended(), placing(mode="DryRun")])
async def test_after_the_end_of_placement_labels_show_no_taint(now):
    """The affinity of a running pod then holds, with any requirements."""
    scene = Scene(placing())
    scene.node("n1", "sla=x", labels=says("x"))
    scene.labeller.take(events.PoliciesChanged((now,)))
    assert await scene.written() == [("n1", {SLA: None, **NOT_THERE})]


async def test_labels_of_a_key_that_no_policy_names_stay_as_they_are():
    scene = Scene(placing(), placing("q", key="other"))
    labels = {**says("x"), **neutral_labels(["other"])}
    scene.node("n1", "sla=x", labels=labels)
    scene.labeller.take(events.PoliciesChanged((placing("q", key="other"),)))
    scene.node("n1", "sla=y", labels=labels)
    assert await scene.written() == []


async def test_labels_settle_even_if_the_stream_is_late():
    """The stream delivers each write two writes later, and this late state must not cause the opposite write."""
    names = ("n1", "n2", "n3")
    scene, stored, stream = Scene(placing()), {name: dict[str, str]() for name in names}, list[Any]()
    for name in names:
        scene.node(name, "sla=x")
    await scene.written()
    scene.labeller.take(events.PoliciesChanged((ended(),)))
    writes = 0
    for _ in range(20):
        await scene.written()
        for order in [one for one in scene.orders if not one.answer.done()]:
            changed = stored[order.node] | order.labels
            stored[order.node] = {label: value for label, value in changed.items() if value is not None}
            scene.version += 1
            stream.append((order.node, stored[order.node], scene.version))
            order.answer.set_result(answered(scene.version))
            writes += 1
        if len(stream) > 2:
            name, labels, version = stream.pop(0)
            scene.node(name, "sla=x", labels=labels, version=version)
    assert stored == dict.fromkeys(names, NOT_THERE)
    assert writes == 2 * len(names)


@pytest.mark.parametrize("now", [ended(), placing(mode="DryRun")])
async def test_after_the_end_of_placement_a_node_without_labels_gets_none(now):
    scene = Scene(now)
    scene.node("n1", labels=NOT_THERE)
    scene.node("n2", "sla=x")
    scene.node("n1")
    assert await scene.written() == []


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 2 * RUNS))
async def test_labels_follow_taints_in_the_end_after_any_events(seed):
    """Values, other clients, policies and leaders change; answers are lost after their writes; the stream is late."""
    chance = Random(seed)
    scene, stored, stream = Scene(placing(), synced=True), dict[str, tuple[str, dict[str, str]]](), list[Any]()
    placed = True

    def put(name: str, value: str, labels: dict[str, str]) -> None:
        stored[name] = value, labels
        scene.version += 1
        stream.append((name, value, labels, scene.version))

    for name in ("n1", "n2", "n3"):
        put(name, "x", {})
    for number in range(80):
        name, act = chance.choice(list(stored)), 1.0 if number > 60 else chance.random()
        value, labels = stored[name]
        if act < 0.3:
            put(name, chance.choice("xyz"), labels)
        elif act < 0.4:
            put(name, value, {**labels, SLA: "stray"})
        elif act < 0.5:
            placed = chance.random() < 0.7
            scene.labeller.take(events.PoliciesChanged((placing() if placed else ended(),)))
        elif act < 0.6:
            scene.lead(leading=False)
            await asyncio.sleep(chance.choice([0, 1]))
            scene.lead(leading=True)
        await scene.written()
        for order in [one for one in scene.orders if not one.answer.done()]:
            if chance.random() < 0.7 or number > 60:
                value, labels = stored[order.node]
                merged = {label: text for label, text in {**labels, **order.labels}.items() if text is not None}
                put(order.node, value, merged)
                lost = chance.random() < 0.2
                _ = order.answer.set_exception(LOST) if lost else order.answer.set_result(answered(scene.version))
        while stream and (chance.random() < 0.5 or number > 60):
            name, value, labels, version = stream.pop(0)
            scene.node(name, f"sla={value}", labels=labels, version=version)
        await asyncio.sleep(chance.choice([0.01, 2, 400]) if number < 60 else 400)
    if placed:
        assert {name: labels for name, (_, labels) in stored.items()} == {n: says(v) for n, (v, _) in stored.items()}
    else:
        assert all(labels in ({}, NOT_THERE) for _, labels in stored.values())


async def test_labels_of_unknown_keys_cost_nothing():
    """A kubelet may write any number of labels on its own node. Only the keys that policies name are read."""
    scene = Scene(placing())
    scene.node("n1", labels=NOT_THERE)
    invented = NOT_THERE | neutral_labels(f"k{number}" for number in range(4_000))
    few = steps(lambda: scene.node("n1", "other=1", labels=NOT_THERE))
    many = steps(lambda: scene.node("n1", "other=2", labels=invented))
    assert await scene.written() == []
    assert many < few + 100


# -- versions in other labels -----------------------------------------------------------------------------------------

DRIVER, NUMBER = "example.com/driver", "example.com.label-version.taintwarden.io/driver"

VERSIONS = {
    "a version is repeated as a number": ({DRIVER: "v3.27.2"}, {NUMBER: "30027000000021"}),
    "the number follows the version": ({DRIVER: "v3.28.0", NUMBER: "30027000000021"}, {NUMBER: "30028000000001"}),
    "the number is removed with the label": ({NUMBER: "30027000000021"}, {NUMBER: None}),
    "a number without a version is removed": ({DRIVER: "latest", NUMBER: "30027000000021"}, {NUMBER: None}),
}


@pytest.mark.parametrize(("labels", "expected"), VERSIONS.values(), ids=VERSIONS)
async def test_versions_in_listed_labels_are_repeated_as_numbers(labels, expected):
    scene = Scene(policy(taints=[{"key": "other"}], versionLabels=[DRIVER]))
    scene.node("n1", labels=labels)
    assert await scene.written() == [("n1", expected)]


@pytest.mark.parametrize(("mode", "expected"), [("DryRun", [("n1", {NUMBER: "30028000000001"})]), (None, [])])
async def test_numbers_follow_while_a_policy_lists_the_label(mode, expected):
    """A volume, whose affinity never changes, may name the numbers."""
    listing = {} if mode is None else {"versionLabels": [DRIVER], "mode": mode}
    scene = Scene(policy(taints=[{"key": "other"}], **listing))
    scene.node("n1", labels={DRIVER: "v3.28.0", NUMBER: "30027000000021"})
    assert await scene.written() == expected
