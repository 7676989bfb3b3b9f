"""The ledger and the latch beside a model that keeps every pod and every time."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.guard.bench import SLOT, WINDOW, Bench, pods
from taintwarden.engine.guard import ALL
from taintwarden.engine.limit_settings import GuardAction
from taintwarden.engine.records import GuardRecord

ALLOWED = 10
NAMESPACES = st.sampled_from(["shop", "bank", "play"])


class Model(RuleBasedStateMachine):
    """Pods are called as limits ask it; what answers say, and when pods leave, is open."""

    action = GuardAction.HALT

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(min_pods=ALLOWED, max_pods=ALLOWED, action=self.action)
        self.record = GuardRecord(population=100)
        self.there: dict[str, str] = {}
        """UID -> namespace of the pods that have to leave and are there."""
        self.called: dict[str, float] = {}
        """UID -> when it was called last, of those that may leave because of that."""
        self.in_flight: dict[str, None] = {}
        self.open: dict[str, None] = {}
        """Pods of which a call was answered otherwise than by a budget."""
        self.left: dict[str, float] = {}
        """UID -> when a pod left after its call."""
        self.left_before: dict[str, float] = {}
        """Value of ``left`` when the record was stored."""
        self.was_narrow = False
        self.number = 0

    @property
    def now(self):
        return self.bench.now.wall

    def pick(self, uids, index):
        uids = list(uids)
        return uids[index % len(uids)] if uids else None

    @rule(namespace=NAMESPACES, size=st.integers(1, 8))
    def wave(self, namespace, size):
        uids = pods(size, f"{self.number}-")
        self.number += 1
        self.there |= dict.fromkeys(uids, namespace)
        self.bench.expect(*uids, namespace=namespace)

    @rule(succeeds=st.booleans())
    def ask(self, succeeds):
        """The due pods want to be reserved, and the record is written."""
        for uid, namespace in self.there.items():
            if uid not in self.in_flight and not self.bench.may_call(uid):
                self.bench.guard.want(uid, namespace)
        if self.bench.guard.has_to_save:
            record = self.bench.store(succeeded=succeeds)
            if succeeds:
                self.record, self.left_before = record, dict(self.left)

    @rule(most=st.integers(1, 6))
    def call(self, most):
        guard = self.bench.guard
        for uid, namespace in self.there.items():
            may = self.bench.may_call(uid) and guard.latch.is_stored and not guard.holds(namespace)
            if uid not in self.in_flight and may and most:
                most -= 1
                self.bench.call(uid, namespace=namespace)
                if self.now >= self.called.get(uid, 0.0) + WINDOW:
                    self.open.pop(uid, None)
                self.called[uid] = self.now
                self.in_flight[uid] = None

    @precondition(lambda self: self.in_flight)
    @rule(index=st.integers(0, 50), how=st.sampled_from(["accepted", "failed", "refused"]))
    def answer(self, index, how):
        """A call is accepted, or fails, or a budget refuses it; the pod is due again after the latter two."""
        uid = self.pick(self.in_flight, index)
        del self.in_flight[uid]
        self.bench.guard.settle(uid, stays=how == "refused")
        if how != "refused":
            self.open[uid] = None
        elif uid not in self.open:
            del self.called[uid]
        if how != "accepted":
            self.bench.expect(uid, namespace=self.there[uid])

    @precondition(lambda self: self.there)
    @rule(index=st.integers(0, 50))
    def leave(self, index):
        uid = self.pick(self.called or self.there, index)
        self.bench.see_gone(uid)
        if uid in self.called and (self.now < self.called.pop(uid) + WINDOW or uid in self.in_flight):
            self.left[uid] = self.now
        self.in_flight.pop(uid, None)
        self.there.pop(uid, None)

    @rule(slots=st.sampled_from([1, 2, 3, 19, 21]))
    def advance(self, slots):
        self.bench.seconds += slots * SLOT

    @precondition(lambda self: not self.in_flight)
    @rule()
    def lead(self):
        """Another process has the record that was stored last, and sees which pods are there."""
        stored, known = dict(self.record.reserved), {uid for uid in self.left if self.counts(uid)}
        self.bench = self.bench.restart(self.record)
        for uid, namespace in self.there.items():
            self.bench.expect(uid, namespace=namespace)
        self.bench.guard.resolve(lambda _: self.there, self.bench.now)
        self.bench.is_known = True
        self.left = self.left_before | {uid: self.now for uid in stored if uid not in self.there}
        self.called, self.open = {uid: self.now for uid in stored if uid in self.there}, {}
        assert known <= self.left.keys(), "none is forgotten"

    def counts(self, uid):
        return self.left[uid] + WINDOW + SLOT > self.now

    @invariant()
    def holds(self):
        bench, guard = self.bench, self.bench.guard
        guard.check_wave(bench.now)
        self.was_narrow |= guard.scope != ALL
        assert guard.evicted() == sum(map(self.counts, self.left)), "each counts once"
        assert guard.expected() == len(self.there)
        assert guard.ledger.used <= ALLOWED * (1.5 if self.was_narrow else 1)
        assert guard.latch.is_tripped or guard.evicted() + guard.expected() <= ALLOWED or not self.there
        assert not guard.latch.is_tripped or self.there or not guard.latch.is_stored
        assert self.in_flight.keys() <= guard.ledger.rows.keys()


class Paced(Model):
    """Called pods are never more than the allowance, since it narrows to no namespace."""

    action = GuardAction.PACE


TestModel, TestPaced = Model.TestCase, Paced.TestCase
TestModel.settings = TestPaced.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
