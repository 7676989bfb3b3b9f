"""The pods that have to leave depend on the stored objects only, not on earlier states or the order of events."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.rig import NO_LIMITS, Rig
from taintwarden.engine import events
from taintwarden.engine.model import DeviceId, DeviceUse, SchedulingGroup, Toleration
from taintwarden.engine.policy import DeviceTaintSelector, Policy, Timing
from taintwarden_devices import events as device_events
from taintwarden_devices import source
from taintwarden_devices.inventory import DeviceClaim, DeviceTaint, Slice, TaintRule

KEY = "health"
PODS = {"a": "n1", "b": "n1", "c": "n2"}
GROUPS = {"b": SchedulingGroup("g", ("k",)), "c": SchedulingGroup("g", ("k", "l"))}
DEVICES = [DeviceId("d", pool, name) for pool in ("p", "q") for name in ("x", "y")]
POLICY = Policy(
    name="p", devices=(DeviceTaintSelector(KEY),), limits=NO_LIMITS, timing=Timing(violation_grace_seconds=10**6)
)

taints = st.sampled_from([(), (DeviceTaint(KEY, "1", "NoExecute"),), (DeviceTaint(KEY, "2", "NoExecute"),)])
slices = st.builds(
    Slice,
    st.just("d"),
    st.sampled_from(["p", "q"]),
    st.integers(1, 2),
    st.just(1),
    st.dictionaries(st.sampled_from(["x", "y"]), taints),
)
rules = st.builds(TaintRule, st.just(DeviceTaint(KEY, "3", "NoExecute")), pool=st.sampled_from([None, "p"]))
tolerations = st.sampled_from([(), (Toleration(KEY, "Equal", "1"),), (Toleration(KEY, "Exists"),)])
uses = st.builds(DeviceUse, st.sampled_from(DEVICES), tolerations)
claims = st.builds(
    DeviceClaim,
    st.lists(uses, min_size=1, max_size=2, unique=True).map(tuple),
    st.frozensets(st.sampled_from(["shop/g", *(f"uid-{name}" for name in PODS)]), min_size=1),
)
changes = st.one_of(
    st.tuples(st.just("slice"), st.sampled_from(["s", "t"]), st.none() | slices),
    st.tuples(st.just("rule"), st.sampled_from(["r", "u"]), st.none() | rules),
    st.tuples(st.just("claim"), st.sampled_from(["shop/k", "shop/l"]), st.none() | claims),
    st.tuples(st.just("pod"), st.sampled_from(sorted(PODS)), st.booleans()),
    st.tuples(st.just("known"), st.just(""), st.booleans()),
)


def event_of(kind: str, name: str, found: Any) -> events.Event:
    made = {
        "slice": device_events.SliceChanged,
        "rule": device_events.TaintRuleChanged,
        "claim": device_events.ClaimChanged,
    }
    return made[kind](name, found)


class Cluster(Rig):
    def __init__(self) -> None:
        super().__init__(POLICY, source=source.Devices)
        for node in ("n1", "n2"):
            self.node(node)

    def change(self, kind: str, name: str, found: Any) -> None:
        if kind == "known":
            self.feed(device_events.DevicesKnown(found))
        elif kind == "pod" and found:
            self.pod(name, node=PODS[name], group=GROUPS.get(name))
        elif kind == "pod":
            self.feed(events.PodGone(f"uid-{name}", PODS[name]))
        else:
            self.feed(event_of(kind, name, found))
        self.wake()

    def leaving(self) -> dict[str, set[str]]:
        """The pods that have to leave, each with the taints that evict it."""
        found = {}
        for name in PODS:
            for claim in self.machine.view.claims(f"uid-{name}"):
                found[name] = {str(verdict.taint) for verdict in claim.grounds.verdicts}
        return found


BEGIN = [
    ("known", "", True),
    *(("pod", name, True) for name in sorted(PODS)),
    ("slice", "s", Slice("d", "p", 1, 1, {"x": (DeviceTaint(KEY, "1", "NoExecute"),), "y": ()})),
    ("rule", "r", TaintRule(DeviceTaint(KEY, "3", "NoExecute"), pool="p")),
    ("claim", "shop/k", DeviceClaim((DeviceUse(DEVICES[0], ()),), frozenset({"uid-a", "shop/g"}))),
]
"""A pod and those of a group have to leave, so that there is something to change."""


@given(st.lists(changes, max_size=12))
def test_the_history_of_events_does_not_change_which_pods_leave(history):
    rig = Cluster()
    stored: dict[tuple[str, str], Any] = {}
    known = False
    for kind, name, found in [*BEGIN, *history]:
        rig.change(kind, name, found)
        if kind == "known":
            known = found
            if not found:  # the streams ended: their objects are dropped
                stored = {key: value for key, value in stored.items() if key[0] == "pod"}
        else:
            stored[kind, name] = found
    fresh = Cluster()
    for (kind, name), found in sorted(stored.items(), key=lambda one: one[0][0] == "slice"):
        if found not in (None, False):
            fresh.change(kind, name, found)
    fresh.change("known", "", known)
    assert rig.leaving() == fresh.leaving()
