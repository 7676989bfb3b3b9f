"""Stories: behaviours played side by side against one operator, each judged by a test of its own.

A story is a function of a Scene. It acts, waits and asserts from top to bottom; all stories of a module run at the
same time, in threads, so that together they take as long as the longest. `-k name` plays only that one.

    STORIES = Stories()

    @STORIES.under("strict")
    def a_pod_leaves(scene: Scene) -> None: ...

    @pytest.fixture(scope="module")
    def running(request, control_plane, tmp_path_factory):
        with running_stories(request, control_plane, tmp_path_factory.mktemp("it"), STORIES, {"strict": SPEC}) as it:
            yield it

    @pytest.mark.parametrize("story", STORIES, ids=str)
    def test_story(running, story): running.judge(story)
"""

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from chaos.plane import judging
from controlplane import OPERATOR_USER, Cluster, ControlPlane, Json, Operator, Target, sleep_until, wait_until
from e2e.pod_watch import RUN_LABEL, PodWatch
from limits_off import LIMITS_OFF

T = TypeVar("T")

POLICY_LABEL = "taintwarden-e2e/policy"
TOLERATIONS = "taintwarden.io/tolerations"
HISTORY = "taintwarden.io/taint-history"
NO_LIMITS = LIMITS_OFF

# How late a pod may leave, beside what the machine lost: objects tell times to the second, and stories are many.
SLACK_SECONDS = 3.5
EARLY_SECONDS = 0.1  # between the test's clock readings and the operator's
PATIENCE_SECONDS = 30.0


def taint(value: str, key: str = "sla", effect: str = "NoExecute") -> Json:
    return {"key": key, "value": value, "effect": effect}


def toleration(operator: str, value: str = "", seconds: int | None = None, key: str = "sla", **more: Any) -> Json:
    """A NoExecute toleration; `seconds` is its tolerationSeconds."""
    given = {"key": key, "operator": operator, "effect": "NoExecute", **more}
    return given | ({"value": value} if value else {}) | ({} if seconds is None else {"tolerationSeconds": seconds})


def annotation(*tolerations: Json) -> dict[str, str]:
    """The annotation with extended tolerations."""
    return {TOLERATIONS: json.dumps(tolerations)}


def policy(name: str, **spec: Any) -> Json:
    """A policy for the nodes that carry its label. By default it covers the key `sla`, without limits."""
    selected = {"nodeSelector": {"matchLabels": {POLICY_LABEL: name}}, "taints": [{"key": "sla"}], "limits": NO_LIMITS}
    kind = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy"}
    return {**kind, "metadata": {"name": name}, "spec": selected | spec}


@contextmanager
def policies(cluster: Cluster, specs: Mapping[str, Json]) -> Iterator[None]:
    """Create policies by name from what differs from `policy`'s defaults; they go at the end."""
    try:
        for name, spec in specs.items():
            cluster.create("taintevictionpolicies", policy(name, **spec))
        yield
    finally:
        for name in specs:
            if cluster.find("taintevictionpolicies", name):
                cluster.delete("taintevictionpolicies", name)


def conditions(cluster: Cluster, name: str) -> dict[str, Json]:
    """The conditions of a policy by type."""
    status = cluster.get("taintevictionpolicies", name).get("status", {})
    return {condition["type"]: condition for condition in status.get("conditions", [])}


def events(cluster: Cluster, namespace: str, about: str, reason: str) -> list[Json]:
    """The Events about one object with this reason. Those about nodes and policies are in `default`."""
    found = cluster.items("events", namespace)
    return [event for event in found if (event["regarding"]["name"], event["reason"]) == (about, reason)]


def wait_event(
    cluster: Cluster,
    namespace: str,
    about: str,
    reason: str,
    seconds: float = PATIENCE_SECONDS,
    lost: Callable[[float], float] = lambda _: 0.0,
) -> Json:
    """Wait for an Event about an object and return it; `lost` is what `wait_until` takes."""
    what = f"an Event {reason} about {about}"
    return wait_until(lambda: events(cluster, namespace, about, reason), seconds, what, lost)[0]


def calls(control_plane: ControlPlane, namespace: str) -> list[Json]:
    """Audit entries of the operator's evictions and deletions in a namespace, with any answer."""
    by_operator = [entry for entry in control_plane.audit() if entry["user"]["username"] == OPERATOR_USER]
    return [entry for entry in by_operator if entry["objectRef"].get("namespace") == namespace]


def accepted(control_plane: ControlPlane, namespace: str) -> Counter[str]:
    """Number of the operator's evictions and deletions that the server accepted, by pod."""
    good = [entry for entry in calls(control_plane, namespace) if entry["responseStatus"]["code"] < 300]
    return Counter(entry["objectRef"]["name"] for entry in good)


def denials(cluster: Cluster) -> int:
    """Number of requests of any client that the server has denied since it started because a right was missing."""
    lines = cluster.request("GET", "/metrics").splitlines()
    counted = [line for line in lines if line.startswith("authorization_attempts_total{")]
    return sum(int(float(line.split()[-1])) for line in counted if 'result="allowed"' not in line)


def complaints(operator: Operator) -> list[Json]:
    """Log lines that no story provokes: missing rights, files not written, faults, and what is no log line.

    Stories provoke refusals of admission, and of namespaces that end with them; the API server calls both forbidden.
    """
    bad = ("forbidden", "Read-only", "task-failed", "Traceback", "not-saved", "not-written")
    provoked = ("denied", "namespace-terminating")
    lines = (line for line in operator.logs() if line.get("outcome") not in provoked)
    return [line for line in lines if "text" in line or any(word in json.dumps(line) for word in bad)]


@dataclass(frozen=True)
class PodRef:
    """A pod that a story watches. Another pod of its name is not it."""

    name: str
    uid: str


@dataclass
class Scene:
    """The objects of one story: a namespace, nodes that one policy selects, and the watch of its pods.

    Moments are of the monotonic clock.
    """

    cluster: Cluster
    operator: Operator
    watch: PodWatch
    run: str
    policy: str
    namespace: str = field(default_factory=lambda: f"story-{uuid.uuid4().hex[:8]}")
    event_seconds: float = PATIENCE_SECONDS
    """Seconds until an Event must be there: they are written slowly while evictions are many."""

    def node(self, *taints: Json, name: str = "n1", policy: str = "", labels: Mapping[str, str] | None = None) -> str:
        """Create a node of this story, selected by its policy; returns the full name."""
        full = f"{self.namespace}-{name}"
        self.cluster.create_node(full, {POLICY_LABEL: policy or self.policy, **(labels or {})}, taints)
        return full

    def pod(self, name: str, node: str = "", *tolerations: Json, **more: Any) -> PodRef:
        """Create a running pod of this story; `more` is what Cluster.create_pod takes."""
        labels = {RUN_LABEL: self.run, **more.pop("labels", {})}
        given = {"tolerations": tolerations, "labels": labels, **more}
        pod = self.cluster.create_pod(name, self.namespace, node, **given)
        return PodRef(name, pod["metadata"]["uid"])

    def taint(self, node: str, *taints: Json) -> float:
        """Replace the taints of a node; returns the moment."""
        began = time.monotonic()
        self.cluster.set_taints(node, taints)
        return began

    def leaves(self, pod: PodRef, since: float, seconds: float = 0.0, slack: float = SLACK_SECONDS) -> float:
        """Assert that the pod is evicted `seconds` after a moment: not earlier, and at most `slack` later.

        Seconds that the machine lost meanwhile do not count.
        """

        def is_settled() -> bool:
            self.watch.check()
            late = time.monotonic() - since - self.watch.lost(since) > seconds + slack
            return self.watch.evicted_at(pod.uid) is not None or late

        wait_until(is_settled, 2 * (seconds + slack) + PATIENCE_SECONDS, f"{pod.name} to leave or not")
        at = self.watch.evicted_at(pod.uid)
        assert at is not None, f"{pod.name} was not evicted within {seconds} + {slack} s"
        after, lost = at - since, self.watch.lost(since, at)
        said = f"{pod.name} was evicted after {after:.2f} s, of which the machine lost {lost:.2f}"
        assert seconds - EARLY_SECONDS <= after <= seconds + slack + lost, said
        return at

    def wait(self, found: Callable[[], T], seconds: float, what: str) -> T:
        """Wait until something is truthy and return it. What the machine loses meanwhile does not count."""
        return wait_until(found, seconds, what, self.watch.lost)

    def lost(self, since: float, until: float) -> float:
        """Return the seconds that the machine lost between two moments."""
        return self.watch.lost(since, until)

    def stays(self, *pods: PodRef, until: float) -> None:
        """Assert that none of the pods is evicted before a moment, and wait for it."""
        sleep_until(until)
        self.watch.check()
        evicted = [pod.name for pod in pods if (self.watch.evicted_at(pod.uid) or until) < until]
        assert not evicted, f"evicted: {evicted}"

    def event(self, about: PodRef | str, reason: str) -> Json:
        """Wait for an Event about a pod, or about a node or policy by its name."""
        if isinstance(about, PodRef):
            event = self._event(self.namespace, about.name, reason)
            assert event["regarding"]["uid"] == about.uid
            return event
        return self._event("default", about, reason)

    def _event(self, namespace: str, about: str, reason: str) -> Json:
        return wait_event(self.cluster, namespace, about, reason, self.event_seconds, self.watch.lost)

    def wait_seen(self, node: str, value: str) -> None:
        """Wait until the operator has seen this value of a taint: it writes down what it sees."""

        def is_written() -> bool:
            annotations = self.cluster.get("nodes", node)["metadata"].get("annotations", {})
            return f'"{value}"' in annotations.get(HISTORY, "")

        self.wait(is_written, PATIENCE_SECONDS, f"the operator to see {value} on {node}")

    def events(self, about: PodRef, reason: str) -> list[Json]:
        """The Events about a pod so far."""
        return events(self.cluster, self.namespace, about.name, reason)

    def status(self) -> Json:
        """Return the status of the story's policy."""
        return self.cluster.get("taintevictionpolicies", self.policy).get("status", {})

    def clear(self) -> None:
        """Remove everything of this story."""
        self.cluster.remove_namespace(self.namespace)
        for node in self.cluster.items("nodes"):
            if node["metadata"]["name"].startswith(f"{self.namespace}-"):
                self.cluster.delete("nodes", node["metadata"]["name"])


@dataclass(frozen=True)
class Story:
    """A function and the policy it is played under."""

    play: Callable[[Scene], None]
    policy: str
    many: bool = False

    def __str__(self) -> str:
        return f"{self.play.__name__}-{self.policy}" if self.many else self.play.__name__


class Stories(list[Story]):
    """The stories of one module."""

    def under(self, *policies: str) -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
        """Play the function once under each of these policies."""

        def add(play: Callable[[Scene], None]) -> Callable[[Scene], None]:
            self.extend(Story(play, policy, many=len(policies) > 1) for policy in policies)
            return play

        return add


@dataclass
class RunningStories:
    """Stories in progress, and the operator they run against."""

    cluster: Cluster
    operator: Operator
    denied_before: int | None
    """None where others, such as kubelets, are denied requests too: the server counts all clients."""
    scenes: dict[Story, Scene]
    endings: dict[Story, "Future[None]"]

    def judge(self, story: Story) -> None:
        """Wait for a story's end; raises what it raised."""
        self.endings[story].result()

    def wait(self) -> None:
        """Wait for the end of all stories, whichever way they end."""
        wait(self.endings.values())

    def judge_rights(self) -> None:
        """Assert that nothing was refused to the operator for lack of rights, and that it did not complain."""
        self.wait()
        lines = complaints(self.operator)
        assert not lines, f"the operator complains: {lines}"
        denied = 0 if self.denied_before is None else denials(self.cluster) - self.denied_before
        assert denied == 0, f"{denied} requests were denied: some right is missing in deploy/base"


@contextmanager
def running_stories(
    request: pytest.FixtureRequest,
    control_plane: Target,
    folder: Path,
    stories: Sequence[Story],
    specs: Mapping[str, Json],
    *,
    scene: Callable[..., Scene] = Scene,
) -> Iterator[RunningStories]:
    """Start an operator and play the selected stories side by side; each has its scene removed at its end.

    `scene` makes the scenes, where a story needs more than a Scene has. At the end the law judges what was evicted.
    """
    judge = judging(control_plane) if isinstance(control_plane, ControlPlane) else nullcontext()
    cluster, run = control_plane.client, uuid.uuid4().hex[:6]
    chosen = [story for story in stories if story in selected(request)] or stories
    denied = denials(cluster) if isinstance(control_plane, ControlPlane) else None
    with (
        judge,
        policies(cluster, specs),
        Operator(control_plane.operator_kubeconfig(), folder) as operator,
        PodWatch(cluster, run) as watch,
        ThreadPoolExecutor(len(chosen), "story") as pool,
    ):
        operator.wait_leading()
        scenes = {story: scene(cluster, operator, watch, run, story.policy) for story in chosen}
        endings = {story: pool.submit(play, story, scenes[story]) for story in chosen}
        yield RunningStories(cluster, operator, denied, scenes, endings)


def selected(request: pytest.FixtureRequest) -> list[Story]:
    """The stories that this session's selection of tests asks for."""
    calls = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    return [params["story"] for params in calls if "story" in params]


def play(story: Story, scene: Scene) -> None:
    """Play one story on its scene, in a thread of its own."""
    scene.cluster.create_namespace(scene.namespace)
    try:
        story.play(scene)
    finally:
        scene.clear()
