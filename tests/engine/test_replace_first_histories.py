"""Histories of one pod that its Deployment replaces: lost answers, lag, reverts, rollouts and restarts in any order.

Judged: a process asks once for the pod, a later one only if the annotation says that none did; the pod is evicted when
its time is over and not before; and it is never forgotten.
"""

import random

import pytest

from engine.rig import START, Rig, limited
from taintwarden.engine import commands, events
from taintwarden.engine.limit_settings import GuardSettings
from taintwarden.engine.model import Deployment, Owner, Revision
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import EvictionSettings, Policy, ReplaceFirst
from taintwarden.engine.rfc3339 import read_time

TIMEOUT, STEPS, LAG, SLACK = 60, 40, 3.0, 90.0
"""Seconds for a replacement; actions of a history; seconds by which a stream is late; and those of a back-off."""
GUARDED = limited(guard=GuardSettings(min_pods=5, settle_seconds=0, window_seconds=120))
EVICTION = EvictionSettings(replace_first=ReplaceFirst(TIMEOUT))
POLICY = Policy(name="p", uid="u", taints=GUARDED.taints, limits=GUARDED.limits, eviction=EVICTION)
OWNER = Owner("ReplicaSet", "web-1", "rs")
HISTORIES = 300


class History:
    """A pod, its Deployment as it is stored, and the process that leads."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.wall, self.version, self.template, self.is_paused = START, 1, "", False
        self.is_gone, self.evicted_at, self.was_refused = False, list[float](), False
        self.pending: list[tuple[float, events.DeploymentSeen]] = []
        self.begin()

    # -- processes

    def begin(self) -> None:
        self.rig, self.asked_at, self.was_refused = Rig(POLICY, synced=False), None, False
        self.rig.monotonic += self.draw.random() * 1e6
        self.rig.wall, self.pending, self.order = self.wall, [], None
        self.rig.feed(events.WorkloadSeen(("shop", "rs"), 1, revision=Revision("web", "")))
        self.rig.feed(self.seen(), events.DeploymentsKnown(is_known=True))
        self.rig.budget("pdb", 1)
        if not self.is_gone:
            self.rig.pod("a", owner=OWNER, ready=True)
        self.rig.node("n1", "sla=900", added=START)
        self.rig.process(events.Synced())
        self.take()

    def seen(self) -> events.DeploymentSeen:
        can = not self.is_paused and not self.template
        return events.DeploymentSeen(Deployment("shop", "web", "web", str(self.version), can, self.template))

    def change(self, template: str | None = None, *, pause: bool | None = None) -> None:
        """Store another version of the Deployment, which the stream delivers later."""
        self.version += 1
        self.template = self.template if template is None else template
        self.is_paused = self.is_paused if pause is None else pause
        self.pending.append((self.wall + self.draw.random() * LAG, self.seen()))

    def pass_time(self, seconds: float) -> None:
        while seconds > 0:
            step = min(seconds, 0.5)
            self.rig.advance(step, step=0.25)
            self.wall, seconds = self.rig.wall, seconds - step
            while self.pending and self.pending[0][0] <= self.wall:
                self.rig.process(self.pending.pop(0)[1])
            self.take()

    # -- calls

    def take(self) -> None:
        """Store what the machine writes, and judge what it ordered."""
        while self.rig.ordered:
            self.rig.answer(type(self.rig.ordered[0]))
        for order in self.rig.take(commands.Evict):
            self.order = order
            if order.deployment is None:
                self.judge_eviction()
            else:
                assert self.asked_at is None, "a process asks once"
                assert not self.was_refused, "a refused request is not repeated"
                self.asked_at = self.wall

    def judge_eviction(self) -> None:
        times = [at for at in (self.asked_at, read_time(self.template or None)) if at is not None]
        if times and not self.was_refused:
            assert self.wall >= min(times) + TIMEOUT - 1.0, "evicted before its time was over"
        self.evicted_at.append(self.wall)

    def answer(self) -> None:
        """The API server answers the call that is in progress, or never got it."""
        order, self.order = self.order, None
        if order is None:
            return
        if order.deployment is None:
            self.settle(self.draw.choice([Outcome.ACCEPTED, Outcome.BLOCKED, Outcome.FAILED]))
        elif order.deployment.version != str(self.version):
            self.asked_at = None
            self.settle(Outcome.NOT_SENT)
        else:
            outcome = self.draw.choice([Outcome.ASKED, Outcome.ASKED, Outcome.FAILED, Outcome.NOT_REPLACED])
            self.was_refused = outcome is Outcome.NOT_REPLACED
            if outcome is Outcome.ASKED or (outcome is Outcome.FAILED and self.draw.random() < 0.5):
                self.carry_out(order)
            self.settle(outcome)

    def carry_out(self, order: commands.Evict) -> None:
        assert not self.template, "asked although the annotation says that another process did"
        self.change(order.deployment.restarted_at)

    def settle(self, outcome: Outcome) -> None:
        if outcome is Outcome.ACCEPTED:
            self.end()
        self.rig.settle("a", outcome)
        self.take()

    def end(self) -> None:
        self.is_gone = True
        self.rig.gone("a")

    # -- what happens

    def act(self) -> None:
        draw = self.draw.random()
        if self.order is not None and draw < 0.5:
            self.answer()
        elif draw < 0.6:
            self.restart()
        elif draw < 0.68:
            self.change("", pause=False)  # a revert by another tool
        elif draw < 0.74:
            self.change(pause=not self.is_paused)
        elif draw < 0.78 and self.template:
            self.end()  # the replacement is Ready
        else:
            self.pass_time(self.draw.choice([0.5, 2.0, 10.0, TIMEOUT / 2]))

    def restart(self) -> None:
        """Another process leads. A request in progress may be carried out or not."""
        deployment = None if self.order is None else self.order.deployment
        if deployment is not None and deployment.version == str(self.version) and self.draw.random() < 0.5:
            self.carry_out(self.order)
        self.begin()

    def finish(self) -> None:
        """No more faults: the pod is called within its time, a back-off, and what a stream is late."""
        until = self.wall + TIMEOUT + SLACK + LAG
        while not self.is_gone and self.wall < until:
            if self.order is not None and self.order.deployment is None:
                return
            if self.order is not None:
                self.settle(Outcome.FAILED)
                self.order = None
            self.pass_time(1.0)
        assert self.is_gone, "the pod is forgotten"


def play(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        if history.is_gone:
            return
        history.act()
    history.finish()


@pytest.mark.parametrize("block", range(10))
def test_a_pod_is_asked_for_once_and_never_forgotten(block: int) -> None:
    for seed in range(block * HISTORIES // 10, (block + 1) * HISTORIES // 10):
        try:
            play(seed)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
