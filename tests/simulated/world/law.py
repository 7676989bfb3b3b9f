"""The law from due to gone (docs/concepts.md), said once more as a judge of histories. Nothing of the engine is used.

A history is a list of facts in the order of their times, each a mapping with ``at`` (seconds since 1970) and ``what``:

object   ``kind``, ``name`` and the ``object`` as the API server stores it; None: it is gone. Kinds: nodes, pods (named
         by UID), policies, profiles, namespaces, workloads (by UID), budgets; devices (``pool/device``, with taints in
         the spec as nodes have, and ``isAbsent`` while they are in no slice) and claims (by UID of the pod: for each
         device the tolerations). Of a node with ``since`` when it may have been so before
state    ``leader`` and its ``term``; ``there``: it follows nodes without a gap, and what it saw is kept; ``well``:
         nothing else hinders it; ``renews``: the last renewal of its Lease was answered
forgot   what was kept of the node ``name``, or of all (""), is lost
read     the node ``name`` is read, or that has ``ended``
order    a call was decided on: ``id``, ``policy`` (without it: any), ``pod`` (UID) and ``verb``; without it, when
         ``call`` says so
call     it went out: the same, and ``by`` whom; or it will not, if it is ``withheld``
effect   the API server carried out the call ``id``
answer   the ``code`` (0: none came), the ``body`` and ``retry_after`` of the answer to the call ``id``

Each bound has two sides. *Not before*: what no operator could decide by anything that it may have known is a breach.
*Not later*: what no row of the table can hold is called within ``SLACK`` while all is well. So what a row needs is a
pair: [surely, perhaps].
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from simulated.calendar import Schedule
from simulated.world import when
from simulated.world.when import LAG, NEVER, Due, Json, Node, Pod, Rules, State

TICK, MOMENT = 0.5, 0.2
SLACK = 3.0  # how long a pod that nothing holds may wait
UNTIDY = 45.0  # seconds for which the stored record may reserve a pod that left; without a leader none is written
SEEN = 1.5  # what happened longer ago is known to an operator that is well
STALE = 10.0  # how old what an operator acts on may be: far below the shortest notice of a spot node (30 s)
KEPT = 30.0  # what was seen for this time is kept for the next leader
EARLY, LATE = 0.85, 1.3  # jitter of back-off
POD_SECONDS = 5.0, 60.0  # how long a pod waits after an answer for it alone, at first and at most: it doubles
READ_SECONDS, PAUSE_SECONDS = 6.5, 30.0
"""Until a read shows whether an accepted eviction has an effect; and the longest pause that a server may ask for."""
OVERDUE_SECONDS, UNCOUNTED_SECONDS, UNSEEN_SECONDS, LONGEST_STOP_SECONDS = 15.0, 600.0, 10.0, 600.0
HAND_SECONDS, MOST_RESERVED = 600.0, 64  # how long a webhook keeps a pod; reservations after failed calls
CALL_SECONDS, DOUBT_SECONDS = 30.0, 60.0  # how long a call may take; and one without an answer may count
FEW_NODES = 3
IDLE_SECONDS = 300.0
"""Seconds for which a node keeps a place without a pod that leaves for good, while others wait."""
ROUNDS, ROW_SECONDS = 3, 600.0
OTHERS_PER_FAILING = 3
OF_LANES = ("calls", "failing")  # rows that hold whole lanes, in whatever order their pods are
OF_PARTS = ("zone", "zone-rate", "namespace-rate")  # rates of a part of the policy's pods
LIMITS: dict[str, Any] = {"evictionsPerSecond": 10.0, "burst": 20, "guard": {}, "bounce": {}, "perWorkload": {}}
GUARD: dict[str, Any] = {"maxPercent": 20, "minPods": None, "maxPods": None, "windowSeconds": 600, "settleSeconds": 2}
HEALTH: dict[str, Any] = {"unhealthy": (), "threshold": 0.55, "evictionsPerSecond": 1.0}


@dataclass(frozen=True)
class Breach:
    """A rule that was broken: which, when, a sentence, and whom it is about."""

    judge: str
    at: float
    sentence: str
    whom: str = ""

    def __str__(self) -> str:
        return f"{self.judge}: {self.sentence} (at {self.at:.3f})"


@dataclass(slots=True)
class Want:
    """A pod that a policy wants to leave."""

    rules: Rules
    pod: Pod
    due: Due
    zone: tuple[str, ...]
    free: float | None = None  # since when no row but a rate holds it
    ready: float | None = None  # the same, whatever holds its lane
    failed: int = 0  # calls that failed since the leader leads
    is_known: bool = False  # did calls fail before, which a process that leads again may know
    tries: int = 0  # the same of those whose answer concerned it alone
    again: tuple[float, float] = (0.0, 0.0)  # since when it may be called again, and when it has to be
    blocked: tuple[float, float] = (0.0, 0.0)
    """Since when its budgets allow nothing, but for moments, and until when."""
    tried: float = NEVER  # when the leader surely has known that nothing but its budgets holds it
    passed: Counter[Any] = field(default_factory=Counter)  # turns that other lanes had while it was free


@dataclass(slots=True)
class Call:
    """One call for one pod."""

    want: Want
    lane: "Lane"
    at: float  # when it was ordered, at the latest
    early: float  # the same, at the earliest
    term: int
    effect: float | None = None
    answered: float | None = None
    doubted: float = 0.0  # until when it may count as carried out: no answer, or an error of the server, came


class Bucket:
    """Tokens: how many there are at the most, and at the least. It fills from empty when a leader ``began``."""

    def __init__(self, rate: float, burst: float, began: float, now: float) -> None:
        self.rate, self.burst, self.at = rate, burst, now
        self.most, self.least = min(self.burst, (now - began + MOMENT / 2) * rate), 0.0
        self.since: float | None = None  # since when there surely is one
        self.known = 0.0  # when its limits are known

    def resize(self, rate: float, burst: float, now: float) -> None:
        """A changed limit is known within ``SEEN``; it adds no tokens."""
        self.fill(now)
        self.most += max(0.0, self.rate - rate) * SEEN
        self.rate, self.burst, self.least, self.since, self.known = rate, burst, 0.0, None, now + SEEN

    def fill(self, now: float) -> None:
        gained, self.at = max(0.0, now - self.at) * self.rate, max(now, self.at)
        self.most = min(self.burst if now >= self.known else NEVER, self.most + gained)
        self.least = min(self.burst, self.least + gained)
        self.since = None if self.least < 1.0 else now if self.since is None else self.since

    def take(self, now: float, held: int) -> bool:
        """Take a token. True if there was one, or if calls that were ``held`` had taken theirs before."""
        self.fill(now)
        self.most, self.least = self.most - 1.0, max(0.0, self.least - 1.0)
        self.since = self.since if self.least >= 1.0 else None
        was_there, self.most = self.most > -0.2 - held, max(self.most, -0.2 - held)
        return was_there


class Lane:
    """The due pods of a policy in a namespace. While its calls fail it waits, 1 s, 2 s, 4 s, to the ``longest``."""

    def __init__(self, key: tuple[str, str, bool]) -> None:
        self.key, self.longest = key, 2.0 if key[2] else 30.0
        self.fails, self.until, self.failed_at = [0, 0], [0.0, 0.0], [0.0, 0.0]
        self.air: dict[int, Call] = {}

    def fail(self, call: Call, now: float, *, is_sure: bool) -> None:
        """A call failed."""
        counts = [not self.fails[side] or call.early >= self.failed_at[side] for side in (0, 1)]
        for side in (0, 1):
            if counts[side] and (is_sure or side):
                self.fails[side], self.failed_at[side] = self.fails[side] + 1, now
        for side, jitter in enumerate((EARLY, LATE)):
            if any(counts[: side + 1]) and (is_sure or side):
                wait = min(self.longest, 2.0 ** min(9, self.fails[side] - 1))
                self.until[side] = max(self.until[side] if side else 0.0, now + wait * jitter)

    def succeed(self, *, is_sure: bool) -> None:
        """Another answer came."""
        self.fails, self.until = [0, 0 if is_sure else self.fails[1]], [0.0, 0.0 if is_sure else self.until[1]]

    def fails_at(self, now: float, *, surely: bool) -> bool:
        """Return True if the last call of the lane failed, or has no answer for a second."""
        return self.fails[not surely] > 0 or self.slow(now if surely else now + MOMENT) > 0

    def slow(self, now: float) -> int:
        """Calls without an answer for a second."""
        return sum(now - one.at >= 1.0 + MOMENT / 2 for one in self.air.values())

    def fast(self, now: float) -> int:
        """Calls that take slots."""
        return sum(now - one.early < 0.999 for one in self.air.values())


def whose(code: int, body: str) -> str:
    """Party that an answer concerns: ``done``, ``gone``, a ``budget``, a ``webhook`` that has the pod, a ``lane``, or a
    ``pause`` of the server; ``silence``: none. No status says that the server fails, since tenants cause each.
    """
    text = body.lower()
    if 200 <= code < 300 or code == 0:
        return "done" if code else "silence"
    if code in (404, 409):
        return "gone"
    if "disruptionbudget" in text.replace(" ", ""):
        return "budget"
    return ("webhook" if "webhook" in text else "pause") if code == 429 else "lane"


def limits_of(rules: Rules) -> dict[str, Any]:
    """The limits of a policy by the names of their rows. One that its own value switches off is not there."""
    given = LIMITS | rules.limits
    guard, rate, share = GUARD | given["guard"], given["evictionsPerSecond"], given["perWorkload"].get("maxUnavailable")
    health = given.get("zoneHealth")
    found = {
        "policy-rate": rate if rate < 10_000 else None,
        "namespace-rate": (given.get("perNamespace") or {}).get("evictionsPerSecond"),
        "zone-rate": (given.get("perZone") or {}).get("evictionsPerSecond"),
        "zone": None if health is None else HEALTH | health,
        "place": given.get("concurrentNodes"),
        "node": (given.get("perNode") or {}).get("maxConcurrent"),
        "workload": None if share == "100%" else share or "25%",
        "release": guard["maxPercent"] < 100 or None,  # without a guard nothing is released
        "guard": guard if guard["maxPercent"] < 100 and guard.get("action") != "Report" else None,
        "burst": given["burst"],
    }
    found = {"bounce": given["bounce"].get("maxBackoffSeconds", 3600) or None} | (found if not rules.reclaim else {})
    return {name: value for name, value in found.items() if value is not None}


def allows(budget: Json) -> int:
    """Number of disruptions that a budget allows."""
    return int(budget.get("status", {}).get("disruptionsAllowed", 0))


def answer_of(budget: Json) -> tuple[Any, bool, bool]:
    """RefusalScope a budget selects, and whether it allows a pod to leave: one that is Ready, and one that is not."""
    status, spec = budget.get("status", {}), budget["spec"]
    healthy = status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0
    is_old = status.get("observedGeneration", 0) < budget["metadata"].get("generation", 1)
    allowed = not is_old and allows(budget) > 0
    return spec.get("selector"), allowed, allowed or healthy or spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow"


READ: Mapping[str, Callable[[Any], Any]] = {
    "nodes": Node,
    "devices": Node,
    "pods": Pod,
    "policies": Rules,
    "profiles": lambda one: (one["spec"].get("podSelector") or {}, when.valid(one["spec"].get("tolerations", ()))),
    "namespaces": lambda one: one["metadata"].get("labels") or {},
    "workloads": lambda one: one["spec"].get("replicas", 1),
    "budgets": dict,
    "claims": dict,
}


@dataclass(slots=True)
class Asked:
    """A pod that was called for: its eviction is reserved until it is seen to leave, for one window at most."""

    namespace: str
    first: float
    last: float  # when it was called for first, and last
    is_sure: bool = True  # False: another process reserved it
    failed_at: float = NEVER  # when it is known at the latest that a call for it failed, and no budget refused it


class Guard:
    """The guard of a policy: what it surely counts, by which it has to hold, and what it may count, by which it may."""

    def __init__(self, rules: Rules, released: Mapping[str, bool], now: float) -> None:
        self.settings, self.began = rules.limits["guard"], now
        self.could = 0  # how many pods the policy could evict now
        self.people: list[tuple[float, int, int]] = []  # since when ``A`` is a share of how many pods: least, most
        self.missing: tuple[dict[str, tuple[str, float]], ...] = ({}, {})
        """UID of who was evicted -> the owner, and when; until a pod of the owner is created, or is bound."""
        self.asked: dict[str, Asked] = {}
        self.dates: dict[str, float] = {}  # UID -> when it left, or a process began that found it reserved
        self.gone: list[tuple[float, str, str, bool]] = []  # when it evicted whom: UID, namespace, is it sure
        self.released = released
        self.paused = -NEVER  # when its policy was paused last: whether a wave has grown meanwhile is not known
        self.counted: Collection[str] = set()  # UIDs of the pods that surely counted when it was looked at last
        self.joined = now  # when another one did last
        self.above: float | None = None  # since when the sum is surely above the allowance
        self.held: dict[str, str] = {}  # what it surely counted since it tripped: UID -> namespace
        self.most: Counter[str] = Counter()  # by namespace the most of them at a time
        self.maybe: dict[str, tuple[float, str, float]] = {}  # UID -> when it was counted last, namespace, when first
        self.grown: tuple[dict[str, float], dict[str, float]] = ({}, {})  # when a namespace grew last in these two
        self.restarted = now  # when a process began to count
        self.tripped: float | None = None  # since when it may be tripped
        self.trips = now  # when that may have been at the latest
        self.is_resized = False  # other settings may have armed it, and it may trip again
        self.oldest = -NEVER  # what left before was forgotten: the window was shorter
        self.due: Collection[str] = ()  # UIDs of the pods that had to leave when it was looked at last
        self.used: set[str] = set()  # UIDs of evictions of the window, or reserved, that may count
        self.allowed = 0  # what the allowance surely is
        self.alone: dict[str, float] = {}  # namespace -> when it may have been the only one that is held
        self.narrow: dict[str, None] = {}  # those to which it may be narrowed, and others are few
        self.wide: dict[str, float] = {}  # namespace -> since when others have more
        self.only, self.single = "", now  # the only one that is held; when others were due last

    @property
    def paces(self) -> bool:
        """True if it holds none while it is tripped, but those beyond its allowance."""
        return self.settings.get("action") == "Pace"

    def change(self, settings: dict[str, Any], now: float) -> None:
        """Other settings apply."""
        self.oldest = max(self.oldest, now - self.settings["windowSeconds"])
        self.settings, self.began, self.above, self.is_resized = settings, now, None, True
        self.held, self.most = {}, Counter()

    def restart(self, now: float) -> None:
        """Another process counts: it begins with the evictions of the record, in which no pod may have come since."""
        begin = now - self.settings["windowSeconds"] - STALE
        self.missing[1].update({uid: ("", at) for at, uid, *_ in self.gone if at > begin})
        self.dates |= {uid: now for uid, at in self.dates.items() if at > now - UNTIDY}
        self.restarted, self.only, self.single = now, "", now

    def count(self, now: float) -> None:
        """``A`` is a share of the pods that the policy could evict, and of those evicted that are not replaced yet."""
        begin = now - self.settings["windowSeconds"]
        least = sum(at > begin + STALE for _, at in self.missing[0].values())
        most = sum(at > begin - STALE for _, at in self.missing[1].values())
        if not self.people or self.people[-1][1:] != (self.could + least, self.could + most):
            self.people.append((now, self.could + least, self.could + most))

    def allowance(self, now: float, *, least: bool, since: float = NEVER) -> int:
        """The share, by anything that may have been known within ``STALE``, or since then."""
        if not self.people:
            return 0 if least else 1_000_000
        first = max(0, bisect_right(self.people, min(now, since) - STALE, key=lambda one: one[0]) - 1)
        people = min(one[1] for one in self.people[first:]) if least else max(one[2] for one in self.people[first:])
        minimum = self.settings["minPods"]
        minimum = min(50, max(5, people // 2)) if minimum is None else minimum
        return int(min(max(people * self.settings["maxPercent"] // 100, minimum), self.settings["maxPods"] or NEVER))

    def add_replacement(self, owner: str, *, is_created: bool, is_bound: bool) -> None:
        """A pod of a workload replaces one that was evicted, at the earliest when it is created."""
        for missing, comes in zip(self.missing, (is_created, is_bound), strict=True):
            if comes and (uid := next((uid for uid, (of, _) in missing.items() if of == owner), None)):
                del missing[uid]

    def past(self, since: float, *, surely: bool) -> dict[str, str]:
        """UIDs and namespaces of those evicted since then that were surely not released, or perhaps not."""
        first, known = (
            bisect_right(self.gone, max(since, self.oldest) if surely else since, key=lambda one: one[0]),
            self.released,
        )
        return {
            uid: name
            for _, uid, name, sure in self.gone[first:]
            if not (uid in known or not sure if surely else known.get(uid))
        }

    def reserved(self, now: float, *, surely: bool) -> dict[str, Asked]:
        """Those that were called for and have not left yet."""
        window, known = self.settings["windowSeconds"] + (-STALE if surely else STALE), self.released
        return {
            uid: one
            for uid, one in self.asked.items()
            if now - one.first < window
            and not (uid in known or uid not in self.due or not one.is_sure if surely else known.get(uid))
        }

    def ask(self, pod: Pod, now: float) -> str:
        """A call for a pod is decided on. Returns what is wrong with that."""
        window, known = self.settings["windowSeconds"], self.asked.get(pod.uid)
        if known is not None and now - known.first < window + STALE:
            known.last, known.is_sure = now, True
            return ""
        begin, allowed = now - window + 0.1, self.allowance(now, least=False)
        used = {*self.past(begin, surely=True), *self.reserved(now, surely=True)}
        self.asked[pod.uid] = Asked(pod.namespace, now, now)
        if pod.uid in self.released:  # it does not count
            return ""
        used.add(pod.uid)
        is_alone = not self.paces and any(at > begin for at in self.alone.values())
        allowed = int(allowed * 1.5) if is_alone else allowed
        return (
            f"{len(used)} pods left or were called for within the window, {allowed} may" if len(used) > allowed else ""
        )

    def answered(self, pod: Pod, how: str, now: float, known_at: float) -> None:
        """A call ended: the pod was ``gone``, a budget ``refused`` it, or it is known by then that it failed."""
        known = self.asked.get(pod.uid)
        if how == "gone":
            self.departs(pod, now, is_sure=False)
        elif known is not None and how != "refused":
            known.failed_at = min(known.failed_at, known_at)
        elif known is not None and known.failed_at == NEVER:
            del self.asked[pod.uid]

    def departs(self, pod: Pod, now: float, *, is_sure: bool = True) -> None:
        """A pod leaves, or is gone: that counts within a window after a call, whatever the answer was."""
        known = self.asked.pop(pod.uid, None)
        if known is None or now - known.last > self.settings["windowSeconds"]:
            return
        self.gone.append((now, pod.uid, pod.namespace, is_sure and known.is_sure and now - self.began > SEEN))
        self.dates[pod.uid] = now
        for missing in self.missing:
            missing[pod.uid] = pod.owner["uid"] if pod.owner else "", now
        if not self.released.get(pod.uid):
            self.maybe.setdefault(pod.uid, (now, pod.namespace, now))

    def recount(self, wants: Iterable[Want], now: float, blocked: Collection[str], *, well: bool) -> None:
        """Count again the pods that have to leave, and trip or arm the guard."""
        window, before = self.settings["windowSeconds"], self.allowed
        self.allowed = self.allowance(now, least=True)
        self.trips = now if (self.allowed < before or not well) and not self.held else self.trips
        wants = {one.pod.uid: one for one in wants if not self.released.get(one.pod.uid)}
        self.due = wants
        surely = {
            uid: one.pod.namespace
            for uid, one in wants.items()
            if one.due.late <= now + window - SEEN and uid not in self.released and uid not in blocked
        }
        count = len({*surely, *self.past(now - window + STALE, surely=True)})
        self.joined, self.counted = now if surely.keys() - {*self.counted} else self.joined, surely.keys()
        is_above = count > self.allowance(now, least=False, since=self.joined)  # an allowance that falls trips nothing
        self.above = self.above or now if is_above and well else None
        soon = {uid for uid, one in wants.items() if one.due.late <= now + window - SEEN}
        if self.held and not self.held.keys() & soon:
            self.held, self.most = {}, Counter()
        if well and not self.maybe.keys() & wants.keys():  # without a leader none is armed, and the next pods join
            self.tripped = None
        past = self.past(now - window - STALE, surely=False)
        reserved = {uid: one.namespace for uid, one in self.reserved(now, surely=False).items()}
        if self.tripped is None:
            self.maybe = {uid: found for uid, found in self.maybe.items() if found[0] > now - STALE or uid in past}
        for one in wants.values():
            self.may_count(one.pod, one.due, now)
        if well and (self.held or (self.above is not None and now - self.above >= SEEN)):
            most, self.most = self.most, self.most | Counter(surely.values())
            self.held |= surely
            for name in self.most:
                if self.most[name] > most[name]:
                    first_seen = sorted(first for _, of, first in self.maybe.values() if of == name)
                    self.grown[0][name] = first_seen[self.most[name] - 1] if self.most[name] <= len(first_seen) else now
        begin, dates = now - window * 1.05 - SEEN, self.dates.items()  # each may count until the end of its slot
        self.used = {*(uid for uid, at in dates if at > begin and not self.released.get(uid)), *reserved}
        if self.tripped is None and len({*self.maybe, *past, *reserved}) > self.allowed:
            self.tripped, self.single, self.only = now, now, ""
            self.maybe = {uid: (now, name, now) for uid, name in (past | reserved).items()} | self.maybe
        if self.is_resized and self.tripped is not None:  # if it trips again, it holds all namespaces at first
            self.tripped, self.is_resized, self.only = now, self.above is None, ""
        self._look_who_is_alone(wants, soon, now, well=well)

    def may_count(self, pod: Pod, due: Due, now: float) -> None:
        """Count a pod as one that perhaps has to leave within the window."""
        if due.early <= now + self.settings["windowSeconds"] + SEEN and not self.released.get(pod.uid):
            last, _, first = self.maybe.get(pod.uid, (0.0, "", now))
            if last <= now - SLACK:
                self.grown[1][pod.namespace] = now
                self.trips = self.trips if self.held else now
            self.maybe[pod.uid] = (now, pod.namespace, first)

    def _look_who_is_alone(self, wants: Collection[str], soon: Collection[str], now: float, *, well: bool) -> None:
        """Note if the guard holds one namespace only: surely, or perhaps. ``soon``: who surely is due in the window."""
        left = {self.held[uid] for uid in self.held if uid in soon}
        near = {name for uid, (_, name, _) in self.maybe.items() if uid in wants and self.tripped is not None}
        self.single = self.single if len(near) == 1 and self.held else now
        counts = Counter(name for _, name, _ in self.maybe.values())
        largest = max(counts, key=lambda name: (counts[name], name), default="")
        tripped = max(self.tripped or 0.0, self.trips)
        if now - self.single >= SLACK:
            (self.only,) = near
        elif not self.only and now - max(self.restarted, tripped, self._grown(1, largest)) >= 60.0 + SLACK:
            self.only = largest if len(near) > 1 or largest in near else ""
        if self.tripped is None or (near != {self.only} and counts.total() - counts[self.only] > self.allowed / 2):
            self.only = ""
        for name in {*self.held.values(), *near}:
            half = self.allowance(now, least=False) / 2
            rest = sum(uid in soon for uid, other in self.held.items() if other != name)
            self.wide = {one: at for one, at in self.wide.items() if one != name or (well and rest > half)}
            if well and rest > half and now - self.wide.setdefault(name, now) >= SEEN:
                self.narrow.pop(name, None)
            is_quiet = now - self._grown(0, name) >= 60.0 - STALE
            is_small = (rest if name in self.narrow else self.most.total() - self.most[name]) <= half
            is_narrow = left <= {name} or ((is_quiet or name in self.narrow) and is_small)
            if near == {name} or (self.held and is_narrow):
                self.alone[name], self.narrow[name] = now, None

    def _grown(self, side: int, name: str) -> float:
        """When namespaces but this one grew last."""
        return max((at for other, at in self.grown[side].items() if other != name), default=-NEVER)

    def has_to_hold(self, pod: Pod, now: float) -> bool:
        """True if the guard holds the pod whatever the operator may know: it is tripped, or others failed before."""
        if pod.uid in self.released or now - self.paused < 60.0 + SLACK:
            return False
        if self._has_reserved_half(pod, now, surely=True):
            return True
        return (
            bool(self.held)
            and not self.paces
            and not any(at > now - SEEN for name, at in self.alone.items() if name != pod.namespace)
        )

    def may_hold(self, pod: Pod, now: float) -> bool:
        """True if the guard may be tripped, or have no allowance left."""
        used = len(self.used - {pod.uid})
        if self._has_reserved_half(pod, now, surely=False):
            return True
        if self.tripped is None or self.paces:
            return used >= self.allowed
        is_alone = self.alone.get(pod.namespace, -NEVER) > now - SEEN
        return is_alone or self.only in ("", pod.namespace) or used + 1 > self.allowed * 1.5

    def _has_reserved_half(self, pod: Pod, now: float, *, surely: bool) -> bool:
        """True if pods of the namespace whose calls failed have all that one namespace may reserve."""
        reserved = self.reserved(now, surely=surely)
        count = sum(
            one.namespace == pod.namespace and (one.failed_at <= now or not surely) for one in reserved.values()
        )
        most = min(MOST_RESERVED, self.allowance(now, least=not surely) / 2)
        return pod.uid not in self.asked and (count >= most if surely else count + 1 > most and count > 0)


class Judge:
    """Takes facts in the order of their times. ``breaches`` has at most one for each rule and subject.

    ``slots`` are for calls, ``overall`` is evictions per second over all policies. Clocks differ by ``skew`` seconds.
    What an operator acts on that is not well is at most ``stale`` seconds old. Calls that went out apart may arrive at
    once, at most ``held`` of them, and each may take up to ``transit`` seconds from the order on.
    """

    def __init__(
        self,
        *,
        slots: int = 10,
        overall: float = 50.0,
        skew: float = 0.0,
        stale: float = STALE,
        held: int = 0,
        transit: float = 0.0,
    ) -> None:
        self.transit = transit
        self.slots, self.skew, self.oldest, self.held = slots + held, skew + 0.05, stale, held
        self.breaches: list[Breach] = []
        self.now = 0.0
        self.policies: dict[str, Rules] = {}
        self.wants: dict[tuple[str, str], Want] = {}
        self.calls: dict[Any, Call] = {}
        self.evicted: list[Call] = []
        self._nodes: dict[str, list[tuple[float, Node | None]]] = defaultdict(list)  # states of nodes and devices
        self._known: dict[str, tuple[Any, list[State]]] = {}
        self._pods: dict[str, list[tuple[float, Pod | None]]] = defaultdict(list)
        self._there: list[list[float]] = []  # times in which an operator follows nodes without a gap
        self._edited: dict[str, tuple[float, Rules]] = {}  # when a policy was edited last, and what it was before
        self._forgotten: dict[str, float] = {}
        self._unread: dict[str, tuple[float, float]] = {}
        """Node -> since when a later leader does not know its taints, and when it learned them at the earliest."""
        self._objects: dict[str, dict[str, Any]] = defaultdict(dict)  # of other kinds, as they are now
        self._scaled: dict[str, tuple[float, int | None]] = {}  # when a workload was scaled last, and from how many
        self._answers: dict[str, tuple[Any, float]] = {}  # answer of a budget, its pods, and when that began
        self._allowed: dict[str, float] = {}  # until when a budget allowed a disruption last
        self._unseen: dict[str, float] = {}  # until when a budget may count a pod that left already
        self._ended: dict[tuple[str, str], tuple[float, Want]] = {}  # when a due pod was so no longer; 0: it was not
        self._rested: dict[tuple[str, str], float] = {}
        """Policy and pod -> NEVER while it would have to leave if the policy acted; or until when."""
        self._released: dict[str, dict[str, bool]] = defaultdict(dict)
        """UID of a policy -> UIDs of pods that a person may have released, and whether that is sure."""
        self._let_go: dict[str, dict[str, None]] = {}  # pods that were there at a release while paused
        self._zones: dict[tuple[str, ...], tuple[str, float]] = {}  # policy and zone, or policy -> state, since when
        self._guards: dict[str, Guard] = {}
        self._off: dict[str, Guard] = {}  # those that are switched off: the record remains
        self._lanes: dict[tuple[str, str, bool], Lane] = {}
        self._buckets: dict[Any, Bucket] = {}
        self._overall = overall
        self._reads: dict[str, float] = {}  # node -> when its last read ended, NEVER: not yet; its pods have no turns
        self._leader, self._term, self._well = "", 0, 0.0  # the leader, and when all became well; NEVER: it is not
        self._done: dict[str, int] = {}  # UID of a pod that an answer says to be gone, or to leave -> in which term
        self._accepted: dict[str, float] = {}  # UID -> when its eviction was accepted last
        self._hands: dict[str, tuple[float, int]] = {}  # UID -> when a webhook took it over, in which term
        self._former: dict[str, float] = {}  # pods that a former leader called for, until when
        self._pause, self._renews = [0.0, 0.0], (True, 0.0)  # pauses; is the Lease renewed, since when
        self._places: dict[str, tuple[float, float]] = {}  # of a policy: when its limits, and its stored places changed
        self._idle: dict[tuple[str, str, str], tuple[float, float]] = {}
        """Policy, node and the time when it took its place -> the times when it was drained, and became idle."""
        self._placeless: dict[tuple[str, str], float] = {}  # policy and node -> when that lost its place
        self._extra = 0.0  # by how many calls lanes that fail had more than a quarter
        self.rows: Counter[str] = Counter()  # rows of the table that may have held a pod
        self._changed: dict[str, None] = {}  # UIDs of pods that have to be judged again
        self._is_recounted = self._is_zoned = False
        self._rules_changed = 0.0
        self._had_wants, self._ticked, self._began = False, 0.0, 0.0
        self._due_lanes: set[tuple[str, str, bool]] = set()
        self._failing = 0  # how many lanes may fail

    # -- facts --------------------------------------------------------------------------------------------------------

    def feed(self, facts: Iterable[Json]) -> "Judge":
        """Take the next facts."""
        for fact in facts:
            self._pass(fact["at"])
            getattr(self, f"on_{fact['what']}")(fact)
        return self

    def end(self, at: float) -> list[Breach]:
        """Time passes until the end."""
        self._pass(at)
        return self.breaches

    def _breach(self, rule: str, whom: str, sentence: str) -> None:
        if not any((one.judge, one.whom) == (rule, whom) for one in self.breaches):
            self.breaches.append(Breach(rule, self.now, sentence, whom))

    def _pass(self, at: float) -> None:
        if at > self.now:
            self._settle()
            if not self._is_recounted:
                self._look_at_guards()
        quiet_from = self.now + 20 * TICK
        while (self.wants or self._had_wants) and self._ticked + TICK <= at:
            step = TICK if self._ticked < quiet_from else min(4 * TICK, at - self._ticked)
            self.now = self._ticked = max(self.now, self._ticked + step)
            self._had_wants = bool(self.wants)
            self._tick()
        self.now = max(self.now, at)
        self._ticked = self._ticked if self.wants else self.now

    def on_object(self, fact: Json) -> None:
        kind, name = fact["kind"], fact["name"]
        found = None if fact["object"] is None else READ[kind](fact["object"])
        concerned = [uid for uid, states in self._pods.items() if states[-1][1] is not None]
        if kind in ("nodes", "devices"):
            self._nodes[name].append((fact.get("since", self.now), found))
            concerned = [
                u for u in concerned if name == self._pod(u).node or name in self._objects["claims"].get(u, ())
            ]
        elif kind == "pods":
            self._pod_changed(name, found)
            concerned = [name]
        elif kind == "policies":
            self._policy(name, found)
        else:
            before = self._objects[kind].pop(name, None)
            if found is not None:
                self._objects[kind][name] = found
            if kind == "workloads" and found != before:
                self._scaled[name] = self.now, before
            if kind == "budgets" and self._answers.get(name, ("",))[0] != (answer := found and answer_of(found)):
                if any((self._answers.get(name, (None,))[0] or ())[1:2]):  # it allowed a pod that is Ready
                    self._allowed[name] = self.now
                self._answers[name] = answer, self.now
            concerned = [name] if kind == "claims" else concerned if kind in ("profiles", "namespaces") else []
        self._changed |= dict.fromkeys(concerned)
        self._is_recounted &= kind not in ("nodes", "pods", "policies", "namespaces")
        self._is_zoned &= kind not in ("nodes", "policies")
        if kind in ("profiles", "namespaces"):
            self._rules_changed = self.now

    def _pod_changed(self, uid: str, pod: Pod | None) -> None:
        """A pod that is seen to leave, or comes, counts at guards."""
        states = self._pods[uid]
        before = states[-1][1] if states else None
        leaves = before is not None and before.stops is None and (pod is None or pod.stops is not None)
        is_bound = pod is not None and bool(pod.node) and not any(one is not None and one.node for _, one in states)
        for guard in self._guards.values():
            if leaves and before is not None:
                guard.departs(before, self.now)
            elif pod is not None and pod.owner is not None:
                guard.add_replacement(pod.owner["uid"], is_created=not states, is_bound=is_bound)
        states.append((self.now, pod))

    def _policy(self, name: str, rules: Rules | None) -> None:
        before = self.policies.pop(name, None)
        if rules is None or before is None or before.spec != rules.spec:
            self._rules_changed = self.now
        if rules is None:
            return
        self.policies[name], rules.limits = rules, limits_of(rules)
        if before is not None and before.spec != rules.spec:
            self._edited[name] = self.now, before
            if rules.enforces and not before.enforces:
                self._empty(rules)
            for (row, key), bucket in self._buckets.items():
                if key[:1] == (rules.uid,) and row not in rules.limits:
                    bucket.resize(10_000.0, rules.limits["burst"], self.now)  # switched on again, it is empty
        self._compare_places(before, rules)
        guard = self._guards.pop(rules.uid, None)
        if guard is None and (guard := self._off.pop(rules.uid, None)) is not None:
            for one in [one for one in self.wants.values() if one.rules.uid == rules.uid]:
                guard.may_count(one.pod, one.due, self.now)  # while it was off, nothing armed it
        if "guard" not in rules.limits and guard is not None:
            self._off[rules.uid] = guard
        elif "guard" in rules.limits:
            if guard is None:
                guard = Guard(rules, self._released[rules.uid], self.now)
            elif before is not None and before.spec != rules.spec:  # what it counted remains, and may fit now
                guard.change(rules.limits["guard"], self.now)
            self._guards[rules.uid] = guard
        if before is not None and rules.reset != before.reset:  # it is asked for, or was granted
            self._release(rules)
        for key, want in self.wants.items():
            if key[0] == name:
                if want.rules.enforces and not rules.enforces and want.due.early <= self.now + self.skew:
                    self._ended[key] = self.now, want
                if want.rules.enforces is not rules.enforces:
                    want.tried = NEVER
                is_same = before is not None and before.spec == rules.spec
                want.rules, want.free, want.ready = rules, *((want.free, want.ready) if is_same else (None, None))

    def _empty(self, rules: Rules) -> None:
        """A dry run takes the tokens that evictions would take."""
        for (_, key), bucket in self._buckets.items():
            if key[:1] == (rules.uid,):
                bucket.fill(self.now)
                bucket.least, bucket.since = 0.0, None

    def _compare_places(self, before: Rules | None, rules: Rules) -> None:
        """Check the number of places: more than the limit only where that is new, or has become lower."""
        limited, placed = self._places.get(rules.uid, (-NEVER, self.now))
        if before is not None and before.uid == rules.uid and before.limits.get("place") != rules.limits.get("place"):
            limited = self.now
        known, stored = (before.places or {}) if before is not None else {}, rules.places or {}
        self._places[rules.uid] = limited, placed if stored == known else self.now
        self._placeless.update({(rules.uid, node): self.now for node in known.keys() - stored.keys()})
        is_more = stored.keys() - known.keys() and len(stored) > self._most_nodes(rules)
        for node in known.keys() - stored.keys() if before is not None and "place" in rules.limits else ():
            idle = self.now - self._idle.get((rules.uid, node, known[node]), (0.0, self.now))[1]
            of_node = (one for one in self.wants.values() if (one.rules.uid, one.pod.node) == (rules.uid, node))
            if any(one.due.late < self.now - SLACK for one in of_node) and idle < IDLE_SECONDS - STALE:
                self._breach("place", node, f"{node} loses its place of {rules.name} after {idle:.1f} s")
        if "place" in rules.limits and is_more and self.now - limited > HAND_SECONDS:
            self._breach("place", rules.name, f"{rules.name} lets {len(stored)} nodes lose pods")

    def _most_nodes(self, rules: Rules) -> int:
        most, nodes = rules.limits.get("place", 0), [states[-1][1] for states in self._nodes.values()]
        number = sum(node is not None and when.matches(rules.nodes, node.labels) for node in nodes)
        return most if isinstance(most, int) else max(1, number * int(most.rstrip("%")) // 100)

    def _release(self, rules: Rules) -> None:
        """A person releases what is held, or that was granted: what is held by then may be released, too."""
        guard, known, (zone, since) = self._guards.get(rules.uid), self._released[rules.uid], self._zone(rules.uid)
        if "release" not in rules.limits:
            return
        self._look_at_guards()
        if not rules.acts:  # every pod may have to leave
            self._let_go[rules.uid] = {uid: None for uid, states in self._pods.items() if states[-1][1] is not None}
            known.update({uid: False for uid in self._let_go[rules.uid] if uid not in known})
        may_be_full = zone == "Full" or self.now - since < SLACK
        if not may_be_full and guard is not None and guard.tripped is None:
            return  # one that only reports may be tripped, and releases what it counted
        for want in [one for one in self.wants.values() if one.rules.uid == rules.uid]:
            is_asked = rules.method != "Delete" and not may_be_full and guard is not None
            if is_asked and self._never_allowed(want.pod, guard.tripped or 0.0):
                continue  # it is not counted
            is_held = self._all_full(rules) or (guard is not None and guard.has_to_hold(want.pod, self.now))
            is_held |= guard is not None and guard.paces and bool(guard.held)
            is_sure = is_held and want.due.late < self.now and bool(rules.reset) and self._is_well(SEEN)
            known[want.pod.uid] = known.get(want.pod.uid, False) or is_sure
        if guard is not None:
            guard.held, guard.most, guard.above, guard.only = {}, Counter(), None, ""
            guard.single = guard.restarted = self.now
            if all(known.get(uid) for uid in guard.maybe if (rules.name, uid) in self.wants):
                guard.tripped, guard.maybe = None, {}

    def on_state(self, fact: Json) -> None:
        if fact["there"] != bool(self._there and self._there[-1][1] == NEVER):
            if fact["there"]:
                self._there.append([self.now, NEVER])
                begin, end = fact.get("behind", (0.0, 0.0))  # who leads now learned at its end what happened meanwhile
                changed = [one for one, states in self._nodes.items() if any(begin <= at < end for at, _ in states)]
                self._unread.update({one: (min(begin, self._unread.get(one, (NEVER,))[0]), end) for one in changed})
                self._known.clear()
            else:
                self._there[-1][1] = self.now
                self._forget_unselected()
            self._changed |= {uid: None for uid, states in self._pods.items() if states[-1][1] is not None}
        if fact["term"] != self._term:  # what is in memory only is lost
            self._forget_unselected()
            for call in (call for lane in self._lanes.values() for call in lane.air.values()):
                self._former[call.want.pod.uid] = call.at + CALL_SECONDS + SLACK
            self._lanes, self._buckets, self._reads, self._began = {}, {}, {}, self.now
            self._pause = [0.0, self._pause[1]]
            for uid, known in self._released.items():  # what one leader releases, the next one holds
                guard = self._guards.get(uid) or self._off.get(uid)
                gone = {pod for _, pod, *_ in guard.gone} if guard is not None else set()
                in_air = {pod: False for pod in known if pod in self._former}
                kept = {pod: is_sure for pod, is_sure in known.items() if pod in gone}
                known.clear()
                known.update(in_air | kept)
            self._let_go = {}
            for rules in [one for one in self.policies.values() if one.uid in self._guards]:
                (guard := self._guards[rules.uid]).restart(self.now)
                for uid in [one for one in rules.reserved or () if one in self._pods and self._runs(one)]:
                    guard.asked.setdefault(uid, Asked(self._pod(uid).namespace, self.now, self.now, is_sure=False))
            for want in self.wants.values():
                want.is_known |= want.failed > 0
                want.failed, want.tries, want.free, want.ready, want.tried = 0, 0, None, None, NEVER
                want.again = 0.0, want.again[1]
        self._leader, self._term = fact["leader"], fact["term"]
        if fact.get("renews", True) != self._renews[0]:
            self._renews = not self._renews[0], self.now
            for lane in self._lanes.values() if self._renews[0] else ():  # it is tried at once
                lane.until = [min(at, self.now) for at in lane.until]
        self._well = NEVER if not fact["well"] else self.now if self._well == NEVER else self._well

    def _forget_unselected(self) -> None:
        """A history of a key is stored on the nodes that a policy with the key selects."""
        keys = {one.uid: {key for key, *_ in (*one.taints, *one.sources)} for one in self.policies.values()}
        for name, states in self._nodes.items():
            node = states[-1][1] if "/" not in name else None
            selecting = [one.uid for one in self.policies.values() if node and when.matches(one.nodes, node.labels)]
            if node is not None and set().union(*keys.values()) - set().union(*(keys[uid] for uid in selecting)):
                self._unread[name] = 0.0, self.now
                self._known.pop(name, None)

    def on_forgot(self, fact: Json) -> None:
        self._forgotten[fact["name"]] = self.now
        self._done = self._done if fact["name"] else {}
        self._hands = self._hands if fact["name"] else {}
        self._known.clear()

    def on_read(self, fact: Json) -> None:
        self._reads[fact["name"]] = self.now if fact["ended"] else NEVER

    def on_order(self, fact: Json) -> None:
        self._settle()
        key = (fact.get("policy") or self._whose(fact["pod"]), fact["pod"])
        want = self.wants.get(key) or self._ended.get(key, (0.0, None))[1] or self._once_wanted(key)
        if want is None:
            if self._runs(fact["pod"]):
                self._breach("right", fact["pod"], f"{key[0]} called for {fact['pod']}, which it never had to")
            return
        lane = self._lanes.setdefault(self._lane_of(want), Lane(self._lane_of(want)))
        call = Call(want, lane, self.now, self.now - self.transit, self._term)
        if fact.get("by", self._leader) != self._leader:
            self.calls[fact["id"]] = call
            return  # it does not know the leader's calls
        for row, sentence in self._rows(want, surely=True):
            if row == "budget" and fact.get("verb") != "POST":
                continue  # in spite of them
            self._breach(row, want.pod.uid, f"{want.rules.name} called for {want.pod.uid} {sentence}")
        self._turns(call)
        self._try_before(call)
        guard, stored = self._guards.get(want.rules.uid), self.policies.get(want.rules.name, want.rules).reserved
        if stored is not None and guard is not None and not {want.pod.uid} & {*stored, *guard.released}:
            self._breach("guard", want.pod.uid, f"{want.rules.name} called for {want.pod.uid}, which is not reserved")
        if guard is not None and (wrong := guard.ask(want.pod, self.now)):
            self._breach("guard", want.rules.name, f"{want.rules.name}: {wrong}")
        self.calls[fact["id"]] = lane.air[fact["id"]] = call
        for name, bucket in self._buckets_of(want):
            was_there = bucket.take(self.now, self.held)
            if name == "zone" and self.now - self._zone(want.rules.uid, *want.zone)[1] < SLACK:
                bucket.most = bucket.burst  # the state of the zone may not be known yet: nothing was taken
            elif not was_there:
                self._breach(name, want.rules.name, f"{want.rules.name} called for {fact['pod']} without a token")
        want.free = want.ready = None
        for other in self.wants.values():
            if self._lane_of(other) == lane.key:
                other.passed.clear()

    def on_call(self, fact: Json) -> None:
        if fact["id"] not in self.calls:
            self.on_order(fact)
        call = self.calls.get(fact["id"])
        if call is None:
            return
        if fact.get("withheld"):
            self._answered(fact["id"], call, "refused")
            return
        uid = call.want.pod.uid
        if self._leader and fact.get("by", self._leader) != self._leader:
            self._breach("leader", uid, f"{fact['by']} called for {uid}, and {self._leader} leads")
        if call.term != self._term:
            self._breach("leader", uid, f"a call for {uid} was decided on in another term")
        self._call_is_right(call, fact["verb"])

    def on_effect(self, fact: Json) -> None:
        call = self.calls.get(fact["id"])
        if call is None or call.effect is not None:
            return
        call.effect = self.now
        self.evicted.append(call)

    def on_answer(self, fact: Json) -> None:
        call = self.calls.get(fact["id"])
        if call is None or call.answered is not None:
            return
        code, body = fact["code"], fact.get("body", "")
        whom, lane, want, now = whose(code, body), call.lane, call.want, self.now
        runs = whom == "done" and call.effect is None and self._runs(want.pod.uid)
        how = "gone" if code == 404 else "refused" if whom == "budget" or code == 409 else ""
        self._answered(fact["id"], call, how, now + {"done": READ_SECONDS, "pause": NEVER}.get(whom, 0.0))
        is_kept = (call.effect or now) >= self._forgotten.get("", 0.0)  # not undone by a restore of etcd
        if is_kept and ((whom == "done" and not runs) or code == 404):
            self._done[want.pod.uid] = call.term
        asked = float(fact.get("retry_after") or 0.0)
        if whom == "done" and not (call.effect is not None and self._pod(want.pod.uid).ready):
            self._unseen |= dict.fromkeys(self._budgets_of(want.pod), now + UNSEEN_SECONDS + SEEN)
        if whom == "done":
            self._accepted[want.pod.uid] = now
        if whom == "webhook" or runs or (400 <= code < 500 and "webhook" in body.lower()):
            self._hands.setdefault(want.pod.uid, (now, self._term))
        if whom in ("gone", "budget", "webhook") or runs:
            want.tries += code != 409
            early, late = self._again(now, want.tries if code != 409 else 0, READ_SECONDS if runs else 0.0, asked)
            want.again = early if call.term == self._term else 0.0, late
        want.failed += (whom != "done" or runs) and code != 409
        if whom == "silence" or (whom == "lane" and code >= 500):
            call.doubted = now + DOUBT_SECONDS
        if whom in ("lane", "silence"):
            lane.fail(call, now, is_sure=whom == "lane")
        if whom == "pause" or asked:
            wait = min(PAUSE_SECONDS, max(1.0, asked))
            self._pause = [now + wait * EARLY if whom == "pause" else 0.0, now + wait * LATE]
        if whom in ("done", "gone", "budget", "webhook"):
            lane.succeed(is_sure=whom == "done")

    @staticmethod
    def _again(since: float, tries: int, read: float = 0.0, asked: float = 0.0) -> tuple[float, float]:
        """First and last moment of the next call for a pod after ``tries`` answers that concerned only this pod."""
        wait = min(POD_SECONDS[1], POD_SECONDS[0] * 2.0 ** (tries - 1)) if tries else 1.0
        return since + (POD_SECONDS[0] * 0.8 if tries else 0.0), since + read + max(wait * LATE, asked)

    def _answered(self, number: Any, call: Call, how: str, known_at: float = NEVER) -> None:
        call.answered = self.now
        call.lane.air.pop(number, None)
        self._former.pop(call.want.pod.uid, None)
        if (guard := self._guards.get(call.want.rules.uid)) is not None:
            guard.answered(call.want.pod, how, self.now, known_at)

    # -- who, and when ------------------------------------------------------------------------------------------------

    def _states(self, name: str) -> list[State]:
        """The states of a node, with when an operator has seen each at the latest, and whether it surely has."""
        raw = self._nodes[name]
        known = len(raw), len(self._there), self._there and self._there[-1][1]
        if name in self._known and self._known[name][0] == known:
            return self._known[name][1]
        last = raw[-1][1]  # after a restore of etcd it may be one that was deleted, with the history on it
        mine = [one is not None and last is not None and one.uid == last.uid for _, one in raw]
        begin = mine.index(True) if last is not None else len(raw) - 1
        forgotten = max(self._forgotten.get(name, 0.0), self._forgotten.get("", 0.0))
        end, new, (unread, learned) = NEVER, [], self._unread.get(name, (NEVER, 0.0))
        for (at, node), is_mine in reversed([*zip(raw, mine, strict=True)][begin:]):
            is_followed = any(a <= at and end <= b for a, b in self._there)
            if node is not None and node.is_absent and not is_followed:  # in memory only
                forgotten = max(forgotten, end)
            lost = learned if at >= unread else 0.0
            periods = [(max(at, a, lost), b) for a, b in self._there if b - max(at, a, lost) >= LAG]
            seen = periods[0][0] + LAG if periods else NEVER
            sure = any(max(a, forgotten) <= end and b - max(a, forgotten) >= KEPT for a, b in periods)
            new.append((at, seen, sure, node if is_mine else None))
            end = at
        self._known[name] = known, new[::-1]
        return self._known[name][1]

    def _pod(self, uid: str, at: float = NEVER) -> Pod:
        states = self._pods[uid]
        index = bisect_right(states, at, key=lambda one: one[0]) - 1
        while index > 0 and states[index][1] is None:
            index -= 1
        found = states[max(0, index)][1]
        assert found is not None
        return found

    def _bound(self, uid: str, pod: Pod) -> tuple[float, float]:
        at = next(at for at, one in self._pods[uid] if one is not None and one.node == pod.node)
        stated = at if pod.bound is None else pod.bound
        return max(min(at, stated), min(pod.created, self._pods[uid][0][0])), max(at, stated + 1.0) + LAG

    def _demands(self, uid: str, pod: Pod, *, paused: bool = False) -> Iterator[tuple[Rules, Due]]:
        node = self._nodes[pod.node][-1][1] if pod.node in self._nodes else None
        if node is None or not pod.is_there:
            return
        extended = pod.extended + tuple(
            toleration
            for name, (selector, found) in sorted(self._objects["profiles"].items())
            if name.startswith(f"{pod.namespace}/") and when.matches(selector.get("matchLabels", {}), pod.labels)
            for toleration in found
        )
        given = (list(self.policies.values()), pod, node, self._objects["namespaces"].get(pod.namespace), extended)
        bound = self._bound(uid, pod)
        yield from when.demands(*given, self._states(pod.node), bound, paused=paused)
        for device, claimed in self._objects["claims"].get(uid, {}).items():
            if device in self._nodes:
                states, tolerations = when.carried_over(self._states(device)), when.tolerations_in(claimed)
                yield from when.demands(*given, states, bound, tolerations, paused=paused)

    def _settle(self) -> None:
        """Judge again all pods that a change concerns."""
        self._zone()
        changed, self._changed = list(self._changed), {}
        for uid in changed:
            pod = self._pods[uid][-1][1]
            self._rest(uid, pod)
            best: dict[str, tuple[Rules, Due]] = {}
            for rules, one in self._demands(uid, pod) if pod is not None else ():
                known = best.get(rules.name)
                if known is not None:
                    one.early, one.late = min(one.early, known[1].early), min(one.late, known[1].late)
                best[rules.name] = (rules, one)
            for key in [key for key in self.wants if key[1] == uid and key[0] not in best]:
                ended = self.wants.pop(key)
                if uid in (released := self._released[ended.rules.uid]):  # who recovers is released no more
                    released[uid] = False
                self._ended[key] = (self.now if ended.due.early <= self.now + self.skew else 0.0, ended)
            self._may_count(uid, pod)
            for name, (rules, one) in best.items():
                assert pod is not None
                node = self._nodes[pod.node][-1][1]
                want = self.wants.get((name, uid))
                if want is None:
                    self._end_release(name, uid)
                    want = self.wants[name, uid] = Want(rules, pod, one, node.zone if node else ())
                    if uid in self._accepted:  # it runs in spite of that
                        last = max(self._accepted[uid], self._forgotten.get("", 0.0))
                        was_gone = any(one is None and since > self._accepted[uid] for since, one in self._pods[uid])
                        early = 0.0 if was_gone else self._again(self._accepted[uid], 1)[0]
                        want.again = early, self._again(last, 1, READ_SECONDS)[1]
                else:
                    if want.due.early <= self.now + self.skew < one.early:
                        self._ended[name, uid] = (self.now, want)
                    want.rules, want.pod, want.due, want.zone = rules, pod, one, node.zone if node else ()

    def _may_count(self, uid: str, pod: Pod | None) -> None:
        """Count a pod by what its node was: a leader may see the pod before the change of the node."""
        if pod is None or not any(at > self.now - SEEN for at, _ in self._nodes.get(pod.node, ())[1:]):
            return
        for rules, one in [*self._demanded_since(self.now - SEEN, uid, pod, self.policies)]:
            if rules.uid in self._guards:
                self._guards[rules.uid].may_count(pod, one, self.now)

    def _rest(self, uid: str, pod: Pod | None) -> None:
        """A pod that a paused policy would evict does not recover by the pause: a release lasts."""
        is_paused = pod is not None and not all(rules.acts for rules in self.policies.values())
        by = {rules.name for rules, _ in self._demands(uid, pod, paused=True)} if is_paused and pod is not None else ()
        for key in [(name, uid) for name in self.policies]:
            if key[0] in by:
                if key not in self.wants:
                    self._end_release(*key)
                self._rested[key] = NEVER
            elif self._rested.get(key) == NEVER:
                self._rested[key] = self.now

    def _end_release(self, name: str, uid: str) -> None:
        """A pod that has to leave by a policy, and had not for a while, is not released by an earlier reset."""
        policy, key = self.policies[name].uid, (name, uid)
        ended_at = max(self._ended.get(key, (0.0, None))[0], self._rested.get(key, 0.0))
        if ended_at < self.now - STALE and uid not in self._let_go.get(policy, ()):
            self._released[policy].pop(uid, None)

    # -- what rows need -----------------------------------------------------------------------------------------------

    def _whose(self, uid: str) -> str:
        """The policy that may have called for a pod, rather one without a guard; one that wants it, if none may."""
        known = [name for name, of in (*self.wants, *self._ended) if of == uid]
        may = [one for one in (*known, *self.policies) if self._may_call((one, uid))]
        guarded = [one for one, rules in self.policies.items() if rules.uid in self._guards]
        return min(may or known[:1] or [""], key=lambda one: one in guarded)

    def _lane_of(self, want: Want) -> tuple[str, str, bool]:
        return want.rules.uid, want.pod.namespace, want.rules.reclaim is not None

    def _buckets_of(self, want: Want) -> Iterator[tuple[str, Bucket]]:
        limits, uid = want.rules.limits, want.rules.uid
        rates = [("overall-rate", (), self._overall, self._overall)]
        if (rate := limits.get("policy-rate")) is not None:
            rates.append(("policy-rate", (uid,), rate, limits["burst"]))
        for name, where in (("namespace-rate", want.pod.namespace), ("zone-rate", want.zone)):
            if (rate := limits.get(name)) is not None:
                rates.append((name, (uid, where), rate, rate))
        if "zone" in limits and self._zone(uid, *want.zone)[0] != "Normal":
            rate = limits["zone"]["evictionsPerSecond"]
            rates.append(("zone", (uid, "health", want.zone), rate, rate))
        for name, key, rate, most in rates:
            bucket, burst = self._buckets.get((name, key)), max(1.0, most)
            if bucket is None:
                bucket = self._buckets[name, key] = Bucket(rate, burst, self._began, self.now)
            if (bucket.rate, bucket.burst) != (rate, burst):
                bucket.resize(rate, burst, self.now)
            bucket.fill(self.now)
            yield name, bucket

    def _zone(self, *key: str) -> tuple[str, float]:
        if not self._is_zoned:
            self._is_zoned = True
            self._look_at_zones()
        return self._zones.get(key, ("Normal", 0.0))

    def _all_full(self, rules: Rules) -> bool:
        state, since = self._zone(rules.uid)
        return state == "Full" and self.now - since >= SEEN

    def _look_at_zones(self) -> None:
        nodes = [states[-1][1] for name, states in self._nodes.items() if "/" not in name and states[-1][1] is not None]
        for rules in self.policies.values():
            if (health := rules.limits.get("zone")) is None:
                continue
            bad = [when.toleration_of({"operator": "Exists"} | one) for one in health["unhealthy"]]
            zones: dict[tuple[str, ...], list[bool]] = defaultdict(list)
            for node in nodes:
                if when.matches(rules.nodes, node.labels):
                    zones[node.zone].append(any(when.holds(one, taint) for one in bad for taint in node.taints))
            found = {(rules.uid, *zone): "Normal" for zone in zones}
            for zone, ill in zones.items():
                if len(ill) >= FEW_NODES and sum(ill) >= health["threshold"] * len(ill):
                    found[rules.uid, *zone] = "Degraded"
            every = [is_ill for ill in zones.values() for is_ill in ill]
            found[rules.uid,] = "Full" if len(every) >= FEW_NODES and all(every) else "Normal"
            for key, state in found.items():
                if self._zones.get(key, ("Normal", 0.0))[0] != state:
                    self._zones[key] = (state, self.now)

    def _budgets_of(self, pod: Pod) -> list[str]:
        return [
            name
            for name, one in self._objects["budgets"].items()
            if name.startswith(f"{pod.namespace}/")
            and when.matches((one["spec"].get("selector") or {}).get("matchLabels", {}), pod.labels)
        ]

    def _never_allowed(self, pod: Pod, since: float) -> bool:
        """True if the budgets of a pod allow nothing, and never did since then."""
        states = self._pods[pod.uid]
        known = states[max(0, bisect_right(states, since - SEEN, key=lambda one: one[0]) - 1) :]
        is_same = all(one is None or (one.ready, one.phase) == (pod.ready, pod.phase) for _, one in known)
        found = self._budgets_of(pod)
        return self._budgets_block(pod) and is_same and all(self._answers[name][1] < since - SEEN for name in found)

    def _budgets_block(self, pod: Pod) -> bool:
        found = self._budgets_of(pod)
        if len(found) != 1 or pod.phase != "Running":
            return len(found) > 1
        return not self._answers[found[0]][0][1 if pod.ready else 2]

    def _may_wait(self, wants: Sequence[Want]) -> set[str]:
        """UIDs of the pods that may wait for a budget: it allows none, or fewer than have to leave."""
        budgets = {want.pod.uid: self._budgets_of(want.pod) for want in wants}
        asked = Counter(name for names in budgets.values() for name in names)
        few = {name for name in asked if allows(self._objects["budgets"][name]) < asked[name]}
        return {one.pod.uid for one in wants if few & {*budgets[one.pod.uid]} or self._budgets_block(one.pod)}

    def _is_blocked(self, want: Want) -> bool:
        """True if budgets may hold a pod, indefinitely or until it is deleted. An allowed moment starts that again."""
        if self.now - want.blocked[1] >= SLACK:
            return False
        allowed = [self._allowed.get(name, 0.0) for name in self._budgets_of(want.pod)]
        begin = max(want.blocked[0], want.due.late, self._began, want.tried, *allowed)
        ends = begin + want.rules.budget_seconds + POD_SECONDS[1] * LATE
        return want.rules.method == "Evict" or (want.rules.method != "Delete" and self.now < ends)

    def _leaving(self, *, surely: bool) -> set[str]:
        """UIDs of pods that are called for, or perhaps evicted by a call that had no answer."""
        late = NEVER if surely else self.now - CALL_SECONDS - SLACK  # a former process may have ended before it sent it
        return {
            one.want.pod.uid
            for one in self.calls.values()
            if (one.answered is None and (one.term == self._term or one.at > late)) or one.doubted > late + CALL_SECONDS
        }

    def _stopping(self, node: str, *, surely: bool) -> int:
        """Number of pods with a deadline that terminate on a node, or have a call."""
        count, margin, leaving = 0, SEEN if surely else -SEEN, self._leaving(surely=surely)
        for uid, states in self._pods.items():
            pod = self._pod(uid, self.now - margin) if surely else self._pod(uid)
            gone = states[-1][0] if states[-1][1] is None else NEVER
            if pod.node != node or self.now >= gone - margin:
                continue
            if pod.stops is None:
                count += uid in leaving
                continue
            began = next(at for at, one in states if one is not None and one.stops is not None)
            if self.now < min(pod.stops, began + LONGEST_STOP_SECONDS) + OVERDUE_SECONDS - margin:
                had_one = any(of == uid for _, of in self._ended)
                is_known = had_one or self._nodes[node][-1][0] <= self.now - SEEN
                count += (
                    self._has_deadline(uid, pod) and is_known if surely else had_one or self._has_deadline(uid, pod)
                )
        return count

    def _has_deadline(self, uid: str, pod: Pod) -> bool:
        """True if a policy would evict a pod that terminates."""
        pod = copy(pod)
        pod.stops = None
        return any(True for _ in self._demands(uid, pod))

    def _lacks(self, want: Want, at: float, *, surely: bool) -> bool | None:
        """True if a workload could not spare a pod at a moment; None: not known."""
        owner, share = want.pod.owner, want.rules.limits.get("workload")
        first = self.now - HAND_SECONDS + (SLACK if surely else -POD_SECONDS[1])
        hands = {
            uid for uid, (began, term) in self._hands.items() if began > first and (term == self._term or not surely)
        }
        is_ready = all(one.ready for one in (want.pod, self._pod(want.pod.uid), self._pod(want.pod.uid, at)))
        is_missing = not is_ready or self._hands.get(want.pod.uid, (0.0, 0))[1] == self._term
        if owner is None or share is None or is_missing:
            return False
        if owner["uid"] not in self._objects["workloads"]:
            return None
        scaled, before = self._scaled[owner["uid"]]
        wanted = self._objects["workloads"][owner["uid"]]
        if before is not None and self.now - scaled <= self._stale:  # pods and controllers are in different streams
            wanted = min(before, wanted) if surely else max(before, wanted)
        gone = self._leaving(surely=surely) | self._done.keys() | hands
        ready = 0
        for uid, states in self._pods.items():
            index = bisect_right(states, at, key=lambda one: one[0]) - 1
            pod = states[index][1] if index >= 0 else None
            if pod is not None and pod.owner is not None and pod.owner["uid"] == owner["uid"]:
                ready += pod.ready and pod.stops is None and uid not in gone
        spare = max(1, share if isinstance(share, int) else wanted * int(share.rstrip("%")) // 100)
        return wanted - ready + 1 > spare

    def _is_uncounted(self, want: Want) -> bool:
        """True if some pods may count as missing of an owner whose desired number of pods is not known."""
        owner = want.pod.owner
        assert owner is not None
        uids = [u for u in self._pods if (one := self._pod(u)).owner and one.owner["uid"] == owner["uid"]]
        last = max(self._pods[uid][-1][0] for uid in uids)
        is_new = self.now - max(last, want.due.late) < UNCOUNTED_SECONDS + 2 * self.oldest
        return is_new or any(not self._pod(uid).ready for uid in uids)

    def _bounce(self, want: Want, *, least: bool) -> float:
        """Until when a pod has to wait that came back to its node, or (not ``least``) may have to."""
        most, pod, began, last, rounds = want.rules.limits.get("bounce"), want.pod, 0.0, 0.0, 0
        perhaps = 0.0  # when a round perhaps began: of a pod that was created just before the round, and seen in it
        place = (want.rules.uid, pod.namespace, pod.node, pod.owner and pod.owner["uid"])
        for call in self.evicted if most is not None else ():
            one = call.want.pod
            if (call.want.rules.uid, one.namespace, one.node, one.owner and one.owner["uid"]) != place:
                continue
            if least and call.term != self._term:
                continue  # in memory only
            wait = min(most, 60.0 * 2 ** (rounds - ROUNDS)) if rounds >= ROUNDS else 0.0
            if rounds and call.at > last + ROW_SECONDS + wait:
                rounds = 0
            perhaps = call.at if self._pods[one.uid][0][0] > began - SEEN else perhaps
            if not rounds or self._pods[one.uid][0][0] > began or not least:
                began, rounds = call.at, rounds + 1
            last = call.at
        if most is None or rounds < ROUNDS or (least and self._pods[pod.uid][0][0] <= perhaps):
            return 0.0
        return last + min(most, 60.0 * 2 ** (rounds - ROUNDS))

    def _is_open(self, rules: Rules, at: float) -> bool:
        windows = rules.spec.get("windows") or ()
        for one in windows:
            schedule, seconds = Schedule(one["schedule"]), when.duration(one["duration"])
            first = int(at - seconds) // 60 * 60 + 60
            minutes = (datetime.fromtimestamp(t, UTC).replace(tzinfo=None) for t in range(first, int(at) + 1, 60))
            if any(map(schedule.matches, minutes)):
                return True
        return not windows

    def _is_well(self, seconds: float) -> bool:
        return self.now - self._well >= seconds

    # -- the table ----------------------------------------------------------------------------------------------------

    def _rows(self, want: Want, *, surely: bool) -> Iterator[tuple[str, str]]:
        """The rows but rates that hold a due pod: surely, whatever the operator may have known; or perhaps.

        Those that hold its lane, in whatever order its pods are, come last.
        """
        rules, now, perhaps = want.rules, self.now, not surely
        if perhaps and not self._is_well(SLACK):
            yield "view", ""
        if want.again[perhaps] > now:
            yield "budget", f"{want.again[0] - now:.1f} s before it may be called again"
        if surely and self._is_well(SEEN) and self._never_allowed(want.pod, now - self.transit):
            yield "budget", "though its budgets allow no disruption"
        if perhaps and (
            self._is_blocked(want) or any(self._unseen.get(name, 0.0) > now for name in self._budgets_of(want.pod))
        ):
            yield "budget", ""
        if self._bounce(want, least=surely) > now + (1.0 if surely else -SLACK):
            yield "bounce", "though it came back to its node"
        if rules.reclaim is None:
            yield from self._rows_of_limits(want, surely=surely)
        begun = now if perhaps else now - self.transit
        renews, since = self._renews
        fails = not renews and now - since >= SEEN if surely else not renews or now - since < SLACK
        if self._pause[perhaps] > now or fails:
            yield "calls", "in a pause of all lanes"
        if sum(one.fast(now) for one in self._lanes.values()) >= self.slots:
            yield "calls", "and all slots are in use"
        lane = self._lanes.get(self._lane_of(want))
        if lane is None:
            return
        if perhaps and lane.fast(now) >= max(1, self.slots // 2) and len(self._due_lanes) > 1:
            yield "calls", ""
        if lane.slow(now if surely else now + MOMENT) >= 4:
            yield "calls", "with four slow calls in its lane"
        if surely and lane.failed_at[0] > begun:
            return  # the call was sent before
        if lane.until[perhaps] > now:
            yield "failing", f"{lane.until[0] - now:.1f} s before its lane may try again"
        if lane.fails[perhaps] and any(perhaps or one.at > lane.failed_at[0] for one in lane.air.values()):
            yield "failing", "though its lane tries one call already"

    def _rows_of_limits(self, want: Want, *, surely: bool) -> Iterator[tuple[str, str]]:
        """Those that do not hold pods with a hard deadline."""
        rules, pod, now, limits, is_seen = want.rules, want.pod, self.now, want.rules.limits, self._is_well(SEEN)
        is_released = self._released[rules.uid].get(pod.uid)
        if surely and now - self._rules_changed < SEEN:
            return  # other limits may be known
        if not any(self._is_open(rules, at) for at in ((now - self.skew, now + self.skew) if surely else (now,))):
            yield "window", "and no window is open"
        zone, since = self._zone(rules.uid)
        has_to_stay = self._all_full(rules) and is_seen and pod.uid not in self._released[rules.uid]
        if has_to_stay if surely else not is_released and (zone == "Full" or now - since < SLACK):
            yield "zone", "though all nodes are unhealthy"
        if (guard := self._guards.get(rules.uid)) is not None:
            settles = not surely and want.due.late + guard.settings["settleSeconds"] + SEEN > now
            holds_it = guard.has_to_hold(pod, now) if surely else not is_released and guard.may_hold(pod, now)
            if settles or holds_it:
                yield "guard", f"though its guard holds {len(guard.held)} pods"
        if "place" in limits:
            yield from self._row_of_places(want, surely=surely)
        most = limits.get("node")
        if most is not None and (is_seen or not surely) and self._stopping(pod.node, surely=surely) >= most:
            yield "node", f"though {most} pods of {pod.node} terminate"
        if "workload" in limits:
            long_ago = () if not surely or self._is_well(STALE) else (now - self.oldest / 2, now - self.oldest)
            lacks = [self._lacks(want, at, surely=surely) for at in (now, now - SEEN, *long_ago)]
            if all(lacks) if surely else True in lacks or (None in lacks and self._is_uncounted(want)):
                yield "workload", "though its workload lacks pods"

    def _row_of_places(self, want: Want, *, surely: bool) -> Iterator[tuple[str, str]]:
        """A node has a stored place before it loses pods, and no more nodes do than may."""
        rules, node, now = self.policies.get(want.rules.name, want.rules), want.pod.node, self.now
        (limited, placed), most, stored = self._places[rules.uid], self._most_nodes(rules), rules.places or {}
        if not surely:
            if now - placed < SLACK or now - limited < SLACK or (len(stored) >= most and node not in stored):
                yield "place", ""
            return
        lost = self._placeless.get((rules.uid, node), -NEVER)
        if rules.places is not None and node not in stored and now - max(lost + STALE - SEEN, limited) > STALE:
            yield "place", f"though {node} has no stored place"
        others = {one.node for one in self._leaves_by(rules)} - {node}
        if len(others) >= most and now - limited > HAND_SECONDS:
            yield "place", f"though {', '.join(sorted(others))} lose pods"

    def _leaves_by(self, rules: Rules) -> Iterator[Pod]:
        """The pods that a policy called for, and that terminate within their grace, unless they came back before."""
        first: dict[str, float] = {}
        calls = [*self.evicted, *(call for call in self.calls.values() if call.answered is None)]
        for call in (one for one in calls if one.want.rules.uid == rules.uid):
            pod, states = self._pod(call.want.pod.uid), self._pods[call.want.pod.uid]
            is_there = states[-1][1] is not None and (pod.stops is None or self.now < pod.stops + OVERDUE_SECONDS)
            if is_there and states[0][0] <= first.setdefault(pod.node, call.at):
                yield pod

    def _look_at_places(self, waiting: Collection[tuple[str, str]]) -> None:
        """A place ends soon after its node is drained, and after it was idle for long while others waited.

        ``waiting``: policy and node of the pods that only a place holds.
        """
        before, self._idle = self._idle, {}
        for rules in self.policies.values() if self._is_well(SLACK) else ():
            for node, since in (rules.places or {}).items() if "place" in rules.limits else ():
                if not any(name == rules.name and other != node for name, other in waiting):
                    self._idle[rules.uid, node, since] = before.get((rules.uid, node, since), (self.now, self.now))
                    continue
                drained, idle = before.get((rules.uid, node, since), (self.now, self.now))
                there = any(one.rules.uid == rules.uid and one.pod.node == node for one in self.wants.values())
                drained = self.now if there or self._stopping(node, surely=False) else drained
                idle = self.now if any(one.node == node and one.stops for one in self._leaves_by(rules)) else idle
                self._idle[rules.uid, node, since] = drained, idle
                if self.now - drained > SLACK + 1.0 or self.now - idle > IDLE_SECONDS + PAUSE_SECONDS:
                    self._breach("place", node, f"{node} keeps its place of {rules.name}, and others wait")

    # -- not before ---------------------------------------------------------------------------------------------------

    def _call_is_right(self, call: Call, verb: str) -> None:
        """Check that the pod had to leave, by any state that the operator may have known when it sent the call."""
        want = call.want
        key = (want.rules.name, want.pod.uid)
        if key[1] in self._done and (self._done[key[1]] == call.term or self._well < NEVER or self._runs(key[1])):
            self._breach("twice", key[1], f"{key[0]} called once more for {key[1]}")
        if key[1] in self._done or not self._runs(key[1]):
            return
        current = self.wants.get(key)
        deletes = verb == "DELETE" and want.rules.method == "EvictThenDelete" and want.rules.reclaim is None
        patience = want.rules.budget_seconds - 2 * SLACK
        is_refused = self.now - want.blocked[1] <= SLACK and self.now - want.blocked[0] >= patience
        if verb == "DELETE" and (want.rules.method == "Evict" or (deletes and not is_refused)):
            sentence = f"{want.pod.uid} was deleted before its budgets had refused it for long"
            self._breach("budget", want.pod.uid, sentence)
        if self._may_call(key):
            return
        if current is None or not current.rules.enforces:
            self._breach("right", key[1], f"{key[0]} called for {key[1]}, which need not leave")
        else:
            wait = current.due.early - self.now
            self._breach("early", key[1], f"{key[0]} called for {key[1]}, which need not leave for {wait:.1f} s")

    def _runs(self, uid: str) -> bool:
        """True if a pod runs: calls for others do no harm."""
        states = self._pods.get(uid)
        return not states or (states[-1][1] is not None and states[-1][1].stops is None)

    def _may_call(self, key: tuple[str, str]) -> bool:
        """True if a pod has to leave by a policy, or had to as long ago as an operator may know it."""
        want = self.wants.get(key)
        if want is not None and want.rules.enforces and want.due.early <= self.now + self.skew:
            return True
        return self._ended.get(key, (0.0, None))[0] >= self.now - self._stale or self._once_wanted(key) is not None

    def _once_wanted(self, key: tuple[str, str]) -> Want | None:
        """Streams differ in how far they are: the pod as it is, or was last, on its node as it was at one time.

        But a pod that is newer than its node is evicted only by what is read of the node.
        """
        uid, begin, found = key[1], self.now - self._stale, None
        if uid not in self._pods:
            return None
        if self.now - self._forgotten.get("", 0.0) > STALE:
            begin = max(begin, self._pods[uid][0][0])
        edited, before = self._edited.get(key[0], (-NEVER, None))
        before = before if edited >= self.now - self._stale else None
        pod, policies = self._pod(uid), self.policies
        for rules, one in self._demanded_since(begin, uid, pod, policies | {key[0]: before} if before else policies):
            if rules.name == key[0] and rules.enforces and one.early <= self.now + self.skew:
                found = Want(rules, pod, one, ())
        return found

    def _demanded_since(self, begin: float, uid: str, pod: Pod, other: dict[str, Rules]) -> Iterator[tuple[Rules, Due]]:
        """Yield what the policies, and the ``other`` ones, demand of a pod by each state of its node since then."""
        name, kept, policies = pod.node, self._nodes[pod.node], self.policies
        for index in range(max(1, bisect_right(kept, begin, key=lambda one: one[0])), len(kept) + 1):
            self._nodes[name] = kept[:index]
            self._known.pop(name, None)
            for self.policies in (policies, other):
                yield from self._demands(uid, pod)
        self._nodes[name], self.policies = kept, policies
        self._known.pop(name, None)

    @property
    def _stale(self) -> float:
        """Maximum age of the state that the operator knows now."""
        is_known = self._is_well(STALE) and self.now - self._rules_changed > STALE
        return SEEN if is_known else self.oldest

    def _turns(self, call: Call) -> None:
        """Check that it was the turn of this lane, and of this pod in it."""
        mine, lane, now, others = call.want, call.lane, self.now, False
        for want in self.wants.values():
            comes_first = want.rules.reclaim is not None and mine.rules.reclaim is None
            is_other = want.rules.uid != mine.rules.uid and not comes_first
            if want.pod.uid == mine.pod.uid or is_other or want.ready is None or now - want.ready < SLACK:
                continue
            if not self._is_read(want) or any(
                bucket.since is None for name, bucket in self._buckets_of(want) if name in OF_PARTS
            ):
                continue
            if any(row not in OF_LANES for row, _ in self._rows(want, surely=False)):
                continue  # an earlier call took what it needs
            key, is_free = self._lane_of(want), want.free is not None and now - want.free >= SLACK
            if key == lane.key:
                known = self._released[key[0]]  # those have lanes of their own
                is_apart = (want.pod.uid in known) != (mine.pod.uid in known)
                if (is_free or not self._guards.get(key[0])) and not is_apart:  # a guard stores first that it goes
                    self._is_first(mine, want)
            elif is_free and comes_first:
                self._breach("turns", want.pod.uid, f"{mine.pod.uid} was called before {want.pod.uid}")
            elif is_free:
                want.passed[lane.key] += 1
                fails = key in self._lanes and self._lanes[key].fails_at(now, surely=False)
                others |= not fails
                most = OTHERS_PER_FAILING * self._failing + 2 * len(self._due_lanes) if fails else 3
                turns = want.passed.total() if fails else want.passed[lane.key]
                if turns > most:
                    self._breach("turns", want.pod.uid, f"others had {turns} turns while {want.pod.uid} waited")
        self._extra = max(0.0, self._extra - 1 / 3) if not lane.fails_at(now, surely=True) else self._extra + others
        if self._extra > 2.0:
            self._breach("turns", lane.key[1], f"{lane.key[1]} fails, and has more than a quarter of the calls")
        if others and lane.fast(now) >= max(1, self.slots // 2):
            self._breach("calls", lane.key[1], f"{lane.key[1]} has {lane.fast(now)} slots, and others wait")

    def _try_before(self, call: Call) -> None:
        """Pods before this one in its lane were tried before, if nothing but budgets held them."""
        mine, minute = call.want, call.want.due.early // 60
        mine.tried = min(mine.tried, self.now)
        for want in self.wants.values():
            is_before = want.failed <= mine.failed and want.due.late // 60 < minute
            if is_before and self._lane_of(want) == call.lane.key and self._is_tried(want):
                want.tried = self.now

    def _is_tried(self, want: Want) -> bool:
        """True if nothing but budgets may keep a due pod from its turn, for the first time."""
        is_new = want.tried == NEVER and want.rules.method == "EvictThenDelete"
        is_known = want.due.late <= self.now - self.skew - SLACK and self._is_read(want)
        return is_new and is_known and all(row == "budget" for row, _ in self._rows(want, surely=False))

    def _is_read(self, want: Want) -> bool:
        """True if the last read of its node is over, and its result is known."""
        return self.now - self._reads.get(want.pod.node, 0.0) >= SEEN

    def _is_first(self, mine: Want, want: Want) -> None:
        """Check the order within a lane: by failed calls, then by deadline, then by priority."""
        a, b = want.due.late // 60, mine.due.early // 60
        same = a == b == want.due.early // 60 == mine.due.late // 60
        is_lower = same and "Priority" in want.rules.order[:1] and want.pod.priority < mine.pod.priority
        if not want.is_known and (want.failed < mine.failed or (want.failed == mine.failed and (a < b or is_lower))):
            self._breach("order", want.pod.uid, f"{mine.pod.uid} was called before {want.pod.uid}")

    # -- not later ----------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        now = self.now
        for want in self.wants.values():
            since, last = want.blocked
            if self._budgets_block(want.pod):
                want.blocked = since if now - last < SLACK + 4 * TICK else now, now
        self._look_at_guards()
        waiting: dict[tuple[str, str], None] = {}
        enforced = [want for want in self.wants.values() if want.rules.enforces]
        self._due_lanes = {self._lane_of(want) for want in enforced if want.due.early <= now}
        in_air = {call.want.pod.uid for lane in self._lanes.values() for call in lane.air.values()}
        in_air |= {uid for uid, until in self._former.items() if until > now}
        self._failing = sum(lane.fails_at(now, surely=False) for lane in self._lanes.values())
        for want in enforced:
            is_due = want.due.late <= now - self.skew and want.pod.uid not in in_air
            row = next(self._rows(want, surely=False), ("", ""))[0] if is_due else ""
            if row == "place" and all(one == row for one, _ in self._rows(want, surely=False)):
                waiting[want.rules.name, want.pod.node] = None
            self.rows[row] += 1
            is_ready = is_due and (not row or row in OF_LANES)
            if row == "budget" and self._is_tried(want):
                tokens = [bucket.since for _, bucket in self._buckets_of(want)]
                want.tried = now if all(one is not None and now - one >= SLACK for one in tokens) else NEVER
            want.ready = None if not is_ready else now if want.ready is None else want.ready
            if row or not is_due:
                want.free = None
                want.passed.clear()
                continue
            want.free = now if want.free is None else want.free
            lane = self._lanes.get(self._lane_of(want))
            slack = SLACK
            if lane is not None and lane.fails_at(now, surely=False):
                slack += 4.0 * self._failing / want.rules.limits.get("policy-rate", self._overall)
            tokens = [bucket.since for _, bucket in self._buckets_of(want)]
            tokens += [self._zone(want.rules.uid, *want.zone)[1]] if "zone" in want.rules.limits else []
            if None not in tokens and now - max(want.free, *tokens) > slack:  # type: ignore[type-var]
                cause = f"{want.rules.name} had to evict it because of {want.due.taint.key}"
                sentence = f"{want.pod.uid} is still on {want.pod.node}, {now - want.due.late:.1f} s after {cause}"
                self._breach("late", want.pod.uid, f"{sentence}, and nothing holds it")
        self._look_at_places(waiting)

    def _look_at_guards(self) -> None:
        for rules in self.policies.values():
            guard = self._guards.get(rules.uid)
            if guard is None:
                continue
            if not self._is_recounted:
                there = [states[-1][1] for states in self._pods.values()]
                guard.could = sum(self._could(rules, pod) for pod in there if pod is not None and pod.is_there)
            guard.count(self.now)
            if not rules.acts:  # it counts, and nothing is demanded by which to know whom
                guard.paused, guard.held, guard.most, guard.above = self.now, {}, Counter(), None
                continue
            wants = [one for one in self.wants.values() if one.rules.uid == rules.uid]
            guard.recount(wants, self.now, self._may_wait(wants), well=self._is_well(SEEN))
        self._is_recounted = True

    def _could(self, rules: Rules, pod: Pod) -> bool:
        states = self._nodes.get(pod.node)
        node = states[-1][1] if states else None
        return node is not None and when.selects(rules, pod, node, self._objects["namespaces"].get(pod.namespace))
