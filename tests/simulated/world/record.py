"""Records events of a world as facts for the judge; counts requests and errors besides."""

import re
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from simulated.world import jsons
from simulated.world.adapter import Order, is_watched
from simulated.world.agenda import EPOCH
from simulated.world.drained import DrainedJudge
from simulated.world.law import Breach, Judge
from simulated.world.server import Answer
from simulated.world.store import DEVICE_KINDS

if TYPE_CHECKING:
    from simulated.world.replica import Replica
    from simulated.world.wire import Request
    from simulated.world.world import World

Fact = dict[str, Any]
LOOK_SECONDS = 0.5
SETTLED_SECONDS = 5.0
"""Seconds after bad weather of other calls than evictions in which work that it delayed may be in progress."""
WINDOW_SECONDS, FREE_REQUESTS = 60.0, 30
WRITTEN = {
    "nodes": jsons.node,
    "pods": jsons.pod,
    "policies": jsons.policy,
    "profiles": jsons.profile,
    "namespaces": lambda one: {"metadata": {"name": one.name, "labels": dict(one.labels)}},
    "workloads": lambda one: {"spec": {"replicas": one.replicas}},
    "budgets": jsons.budget,
}


class Record:
    """The facts of one world."""

    def __init__(self, world: "World") -> None:
        self.facts: list[Fact] = []
        options, plan = dict(world.plan.options), world.plan
        steps = [one.given["skew"] for one in plan.happenings if one.what == "clock"]
        skews = [0.0, *plan.skews, *steps]
        overall = options.get("overall_rate") or 10_000.0
        self.judge = Judge(slots=options.get("max_in_flight", 10), overall=overall, skew=max(skews) - min(skews))
        self.drained = DrainedJudge(self.judge)
        self.errors: list[Breach] = []
        self.evictions = 0
        self._world = world
        self._calls: dict[int, int] = {}
        """id of an order -> number of its call."""
        self._orders: list[Order] = []
        """Kept, so that no id is used twice."""
        self._state: Fact = {}
        self._requests: dict[tuple[str, str], deque[float]] = {}
        self._changes: Counter[str] = Counter()
        self._stored: dict[tuple[str, str], Any] = {}
        world.agenda.after(LOOK_SECONDS, self._look_again)

    @property
    def breaches(self) -> list[Breach]:
        """All breaches, in the order of their times."""
        return sorted([*self.errors, *self.judge.breaches, *self.drained.breaches], key=lambda one: one.at)

    def _note(self, what: str, **more: Any) -> None:
        fact = {"at": EPOCH + self._world.agenda.now, "what": what, **more}
        self.facts.append(fact)
        self.judge.feed([fact])

    # -- the truth ----------------------------------------------------------------------------------------------------

    def stored(self, kind: str, key: str, before: Any, after: Any) -> None:
        """An object changed."""
        self.drained.changed(kind, EPOCH + self._world.agenda.now)
        self._changes[key] += 1
        if kind == "policies":
            self._changes[""] += 1
        if kind == "pods" and (before or after):
            self._changes[(after or before).node] += 1
        if kind in DEVICE_KINDS:
            self._devices()
        if kind not in WRITTEN or (kind == "workloads" and after is not None and not is_watched(after)):
            return
        if (
            kind == "nodes"
            and before is not None
            and after is not None
            and before.history != after.history
            and not self._is_writing
        ):
            self._note("forgot", name=key)
        self._put(kind, key, None if after is None else WRITTEN[kind](after))

    _is_writing = False

    def _devices(self) -> None:
        """Devices, their taints, and which pods have them."""
        devices = self._world.devices
        for device in dict.fromkeys(devices.known):
            taints, is_published = devices.taints(device)
            found = {
                "isAbsent": not is_published,
                "metadata": {"uid": device},
                "spec": {"taints": [jsons.taint(one) | {"by": one.rule} for one in taints]},
            }
            self._put("devices", device, found)
        uids = dict.fromkeys(uid for claim in devices.claims.values() for uid in claim.pods)
        for uid in [*uids, *(key for kind, key in self._stored if kind == "claims" and key not in uids)]:
            self._put("claims", uid, {device: jsons.tolerations(one) for device, one in devices.uses(uid).items()})

    def _put(self, kind: str, key: str, found: Any) -> None:
        if self._stored.get((kind, key)) != found:
            self._stored[kind, key] = found
            self._note("object", kind=kind, name=key, object=found)

    def restored(self) -> None:
        """An older etcd was put back."""
        self._note("forgot", name="")
        for kind in WRITTEN:
            now = self._world.store.objects[kind]
            for key in [key for known, key in self._stored if known == kind and key not in now]:
                self.stored(kind, key, None, None)
            for key, obj in now.items():
                self.stored(kind, key, obj, obj)

    # -- operators ----------------------------------------------------------------------------------------------------

    def _look_again(self) -> None:
        self.note_operators()
        self._world.agenda.after(LOOK_SECONDS, self._look_again)

    def note_operators(self) -> None:
        """Note the state of the operators, if it has changed."""
        world = self._world
        leader, now = world.leader, world.agenda.now
        for one in world.replicas:
            if one.engine is not None and not (one.is_alive and one.streams["nodes"].is_well):
                begin, end = one.behind
                one.behind = (begin if end > now - 2 * LOOK_SECONDS else now - LOOK_SECONDS), now
        there = well = False
        if leader is not None and leader.is_alive and leader.synced_at is not None:
            streams = leader.streams
            writes = [
                one
                for one in world.wire.weather
                if not self._concerns_evictions_only(one) and now < one.end + one.seconds + SETTLED_SECONDS
            ]
            there = (
                all(streams[one].is_well for one in ("nodes", *DEVICE_KINDS) if one in streams)
                and not leader.is_behind
                and not any(not one.what or "history" in one.what for one in writes)
            )
            well = all(one.is_well for one in streams.values()) and not leader.is_behind and not writes
            well &= leader.skew == world.plan.skews[world.replicas.index(leader)]
        holder = world.lease.holder
        name = "" if holder is None or not world.lease.holds(holder) else holder.name
        state = {"leader": name, "term": 0 if leader is None else leader.term, "there": there, "well": well}
        state["renews"] = leader is None or leader.renews
        if state != self._state:
            self._state = state
            behind = (0.0, 0.0) if leader is None else leader.behind
            self._note("state", **state, behind=[EPOCH + at for at in behind])

    def _concerns_evictions_only(self, weather: Any) -> bool:
        return bool(weather.namespace) or (bool(weather.what) and set(weather.what) <= {"evict", "delete"})

    def ordered(self, order: Order) -> None:
        """A call was decided on."""
        if order.what == "check":
            self._note("read", name=order.key, ended=False)
        elif order.what in ("evict", "delete"):
            self._calls[id(order)] = number = len(self._calls)
            self._orders.append(order)
            verb = "DELETE" if order.what == "delete" else "POST"
            self.note_operators()
            self._note("order", id=number, policy=order.policy, pod=order.key, verb=verb)

    def sent(self, request: "Request") -> None:
        """A request goes out: what evicts is judged, and of the others there are not too many."""
        order, now = request.order, self._world.agenda.now
        if order.what == "condition" and request.verb == "PATCH":
            self.drained.sent(order.key, order, is_well=all(one.is_well for one in request.replica.streams.values()))
        if order.what not in ("evict", "delete"):
            times = self._requests.setdefault((order.what, order.key), deque())
            times.append(now)
            while times[0] < now - WINDOW_SECONDS:
                times.popleft()
            if len(times) > FREE_REQUESTS + self._changes[order.key] + self._changes[""]:
                self._error(
                    "requests",
                    f"{len(times)} requests in {WINDOW_SECONDS:g} s for {order.what} of {order.key}",
                    order.key,
                )
        elif request.verb != "PATCH":
            self.note_operators()
            verb, number = request.verb, self._calls[id(order)]
            self._note("call", id=number, policy=order.policy, pod=order.key, verb=verb, by=request.replica.name)

    def withheld(self, request: "Request") -> None:
        """An operator does not send what it ordered."""
        self.not_sent(request.order)

    def not_sent(self, order: Order) -> None:
        """An order is dropped before there is a request."""
        if order.what in ("evict", "delete"):
            verb = "DELETE" if order.what == "delete" else "POST"
            self._note("call", id=self._calls[id(order)], policy=order.policy, pod=order.key, verb=verb, withheld=True)

    def begins(self, request: "Request") -> None:
        """A request is about to be carried out."""
        self._is_writing = request.order.what == "history"
        if request.order.what == "condition" and request.verb == "PATCH":
            self.drained.writes(request.order.key)
        if request.order.what in ("evict", "delete") and request.verb != "PATCH":
            pod = self._world.store.get("pods", request.order.key)
            self._was_there = pod is not None and pod.stopping_until is None

    _was_there = False

    def effect(self, request: "Request", found: Answer) -> None:
        """A request was carried out."""
        self._is_writing = False
        if request.order.what == "condition" and request.verb == "PATCH" and found[0] == 200:
            self.drained.written(request.order.key, request.order.content, request.order)
        if (
            request.order.what in ("evict", "delete")
            and request.verb != "PATCH"
            and 200 <= found[0] < 300
            and self._was_there
        ):
            self.evictions += 1
            self._note("effect", id=self._calls[id(request.order)])

    def answered(self, request: "Request", found: Answer) -> None:
        """Its answer came, or it is given up."""
        if request.order.what == "check":
            self._note("read", name=request.order.key, ended=True)
        elif request.order.what in ("evict", "delete") and not (request.verb == "PATCH" and 200 <= found[0] < 300):
            body = found[1].decode(errors="replace")
            asked = re.search(r'"retryAfterSeconds":(\d{1,3})\b', body)
            more = {"retry_after": int(asked[1])} if asked else {}
            self._note("answer", id=self._calls[id(request.order)], code=found[0], body=body, **more)

    def read_pods(self, order: Order) -> None:
        """The pods of a node are read, to say that it is drained."""
        self.drained.read(order.key, order)

    def crashed(self, replica: "Replica", error: Exception) -> None:
        """An error ends a process."""
        self._error("crash", f"{replica.name} ended by {type(error).__name__}: {error}", "")

    def _error(self, judge: str, sentence: str, whom: str) -> None:
        if not any((one.judge, one.whom) == (judge, whom) for one in self.errors):
            self.errors.append(Breach(judge, EPOCH + self._world.agenda.now, sentence, whom))

    # -- for readers --------------------------------------------------------------------------------------------------

    def about(self, *keys: str) -> list[str]:
        """A line for each fact about these objects, or without any for all."""
        return [_line(one) for one in self.facts if not keys or keys_of(one) & {*keys}]


def keys_of(fact: Fact) -> set[str]:
    """RefusalScope a fact is about."""
    spec = ((fact.get("object") or {}).get("spec") or {}) if fact["what"] == "object" else {}
    return {
        fact.get("name", ""),
        fact.get("pod", ""),
        spec.get("nodeName", ""),
        fact["what"] if fact["what"] == "state" else "",
    } - {""}


def _line(fact: Fact) -> str:
    more = {name: value for name, value in fact.items() if name not in ("at", "what")}
    if fact["what"] == "object" and fact["kind"] == "nodes" and fact["object"]:
        more["object"] = [
            (one["key"], one["value"], one.get("timeAdded", "")) for one in fact["object"]["spec"]["taints"]
        ]
    elif fact["what"] == "object" and fact["kind"] == "pods" and fact["object"]:
        pod = fact["object"]
        more["object"] = (
            pod["spec"]["nodeName"],
            pod["metadata"].get("deletionTimestamp", ""),
            pod["status"]["conditions"][0]["status"],
        )
    return f"{fact['at'] - EPOCH:9.3f} {fact['what']} {more}"
