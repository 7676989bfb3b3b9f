"""Keeps the labels of nodes as the taints that they repeat ask for.

It takes the events of the machine before the machine does, since the scheduler places the replacements of evicted pods
by the labels. For each node at most one write is in progress; when it ends, the node is compared again. A write that
failed waits, and so do labels that another client keeps changing.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import msgspec
import structlog

from taintwarden.controller.complaints import Complaints
from taintwarden.controller.effector import kind_of, outcome_of
from taintwarden.controller.handlers.following import Spawn
from taintwarden.engine.derived import Derivations, derivations, with_derived
from taintwarden.engine.machine import Event, Timings, WriteOutcome, events, retry_delay
from taintwarden.engine.model import Node, Policy, Taint
from taintwarden.kube.calls.node_calls import FIELD_MANAGER, PATH
from taintwarden.kube.calls.patching import Fence, patch
from taintwarden.kube.errors import Fenced, KubeError
from taintwarden.kube.http.client import Client
from taintwarden.kube.wire.kinds import version_number
from taintwarden_placement.node_labels.notices import LabelsContested, NotMirrored
from taintwarden_placement.node_labels.wanted import Label, placed_keys, published_labels, wanted_labels

WRITES = 4
"""Nodes labelled at once."""
DOMAIN = "taintwarden.io/"
"""Each of the labels has it."""
MAX_COMPLAINTS = 10_000
"""As many nodes as may fail together, so that each is logged once; a few dozen bytes each."""
AT_ONCE = 20
"""Nodes compared after a change of policies before others get their turn."""
MAX_IN_A_ROW = 3
"""How often the same labels are written without delay: a person, or a kubelet that starts, changes them once."""
CONTESTED_SECONDS = (1.0, 300.0)
"""First and longest delay before labels are written again that another client keeps changing."""
CALM_SECONDS = 1800.0
"""How long such labels have to stay until the delays begin again."""
TIMINGS = Timings()
RETRY_SECONDS = {
    WriteOutcome.OUTDATED: TIMINGS.write_outdated,
    WriteOutcome.FAILED: TIMINGS.write_failed,
    WriteOutcome.REFUSED: TIMINGS.write_refused,
    WriteOutcome.GONE: TIMINGS.write_refused,
}
"""First and longest delay after a write, as of the machine. If the node is gone, the stream says so before that."""

log = structlog.get_logger()

Labels = Mapping[str, str | None]
"""A change of labels: None removes one."""


class _Labelled(msgspec.Struct, eq=False):
    """What is known of a node."""

    node: Node
    """As the stream has delivered it."""
    unseen: Labels = {}
    """What was written, and not delivered yet: a pod may have been placed by that already."""
    version: int = -1
    """Of the node after that."""
    is_busy: bool = False
    """A write is in progress."""
    pause: asyncio.TimerHandle | None = None
    """It is written again when this ends."""
    failures: int = 0
    faults: Sequence[tuple[Taint | Label, str]] = ()
    """What labels cannot express, as it was reported."""
    put: Labels = {}
    """The labels that were sent last, and when."""
    put_at: float = 0.0
    number: int = 0
    """How often the same were to be sent again, since another client had changed them back."""

    @property
    def labels(self) -> dict[str, str]:
        """Of the node, with what was written."""
        if not self.unseen:
            return self.node.labels
        return _kept({**self.node.labels, **self.unseen})

    def rest(self) -> None:
        """No pause any more."""
        if self.pause is not None:
            self.pause.cancel()
            self.pause = None


class Labeller:
    """Writes the labels of nodes while this process leads.

    Args:
        client: the session to use.
        leads: whether the lease is held now.
        report: takes notices.
        spawn: starts the tasks.

    """

    def __init__(self, client: Client, leads: Fence, report: Callable[[Sequence[object]], None], spawn: Spawn) -> None:
        self._client, self._leads, self._report, self._spawn = client, leads, report, spawn
        self._nodes: dict[str, _Labelled] = {}
        self._policies: tuple[Policy, ...] = ()
        self._derived: Derivations = {}
        self._places = False
        self._is_synced = self._is_leading = False
        self._complaints = Complaints(MAX_COMPLAINTS)
        self._slots = asyncio.Semaphore(WRITES)
        self._waiting: dict[str, None] = {}
        """Nodes to be compared, since policies or the leader changed."""

    def take(self, event: Event) -> None:
        """Something changed; the machine is going to see the same."""
        match event:
            case events.NodeSeen(node, listed):
                self._see(node, listed=listed)
            case events.NodeGone(name):
                self._forget(name)
            case events.NodesListed(names):
                for name in [name for name in self._nodes if name not in names]:
                    self._forget(name)
            case events.PoliciesChanged(policies):
                self._policies, self._derived = policies, derivations(policies)
                self._places = bool(placed_keys(policies) or published_labels(policies))
                self._compare_all()
            case events.Synced():
                self._is_synced = True
                self._compare_all()
            case events.LeadershipChanged(leading):
                self._is_leading = leading
                for name, state in list(self._nodes.items()):
                    self._forget(name)
                    self._nodes[name] = _Labelled(state.node)
                self._compare_all()

    # -- what nodes have ------------------------------------------------------------------------------------------

    def _see(self, node: Node, *, listed: bool) -> None:
        state = self._nodes.get(node.name)
        if state is None or state.node.uid != node.uid:
            self._forget(node.name)
            state = self._nodes[node.name] = _Labelled(node)
        elif not listed and node.resource_version < state.node.resource_version:
            return
        else:
            known, state.node = state.node, node
            if state.unseen and (listed or node.resource_version >= state.version):
                state.unseen = {}
            elif known.labels == node.labels and known.taints == node.taints and known.values == node.values:
                return
        self._compare(state)

    def _forget(self, name: str) -> None:
        """The node is gone, another one has its name, or the leader changed: what is in progress does not count."""
        state = self._nodes.pop(name, None)
        if state is not None:
            state.rest()

    def _compare_all(self) -> None:
        is_idle = not self._waiting
        self._waiting.update(dict.fromkeys(self._nodes))
        if is_idle and self._waiting:
            self._spawn(self._compare_waiting())

    async def _compare_waiting(self) -> None:
        while self._waiting:
            for name in list(islice(self._waiting, AT_ONCE)):
                del self._waiting[name]
                if (state := self._nodes.get(name)) is not None:
                    self._compare(state)
            await asyncio.sleep(0)

    # -- what they should have ------------------------------------------------------------------------------------

    def _compare(self, state: _Labelled) -> None:
        """Write what a node lacks, unless that has to wait."""
        if not (self._is_synced and self._is_leading) or state.is_busy:
            return
        change = self._change(state)
        if not change and not state.failures:
            state.rest()
        elif change and not self._has_to_wait(state, change):
            self._begin(state)

    def _change(self, state: _Labelled) -> Labels:
        """All labels that the node should have and those that it should lose; none if it has exactly these."""
        labels = state.labels
        if not self._places and not any(DOMAIN in label for label in labels):
            return {}
        node = with_derived(msgspec.structs.replace(state.node, labels=labels), self._derived)
        wanted = wanted_labels(node, self._policies)
        if wanted.faults != state.faults:
            state.faults = wanted.faults
            self._report([NotMirrored(node.name, node.uid, *fault) for fault in wanted.faults])
        present = {label: labels[label] for label in wanted.owned if label in labels}
        if wanted.labels == present:
            return {}
        return {**dict.fromkeys(label for label in present if label not in wanted.labels), **wanted.labels}

    def _has_to_wait(self, state: _Labelled, change: Labels) -> bool:
        """Whether a write has failed, or another client changes the labels of a node back whenever they are written."""
        wanted = _kept(change)
        if state.pause is not None and (state.failures or wanted == state.put):
            return True
        state.rest()
        is_again = wanted == state.put and _now() <= state.put_at + CALM_SECONDS
        state.number = state.number + 1 if is_again else 0
        if state.number <= MAX_IN_A_ROW:
            return False
        delay = self._pause(state, CONTESTED_SECONDS, state.number - MAX_IN_A_ROW)
        labels = {label: text for label, text in state.labels.items() if label in change}
        differing = dict.fromkeys(label for label, _ in sorted(wanted.items() ^ labels.items()))
        self._report([LabelsContested(state.node.name, state.node.uid, tuple(differing), state.number, delay)])
        return True

    def _pause(self, state: _Labelled, bounds: tuple[float, float], number: int) -> float:
        delay = retry_delay(bounds, number, state.node.name)
        state.pause = asyncio.get_running_loop().call_later(delay, self._begin, state)
        return delay

    # -- writes ---------------------------------------------------------------------------------------------------

    def _begin(self, state: _Labelled) -> None:
        state.rest()
        state.is_busy = True
        self._spawn(self._write(state))

    async def _write(self, state: _Labelled) -> None:
        node, path = state.node, f"{PATH}/{state.node.name}"
        async with self._slots:
            if self._nodes.get(node.name) is not state:
                return
            change, outcome = self._change(state), WriteOutcome.DONE
            try:
                if change:
                    state.put, state.put_at = _kept(change), _now()
                    labels = {"metadata": {"labels": dict(change)}}
                    saved = await patch(
                        self._client, path, labels, lambda: self._stands(state), uid=node.uid, manager=FIELD_MANAGER
                    )
                    state.version = version_number(saved, unreadable=-1)
                    state.unseen = {**state.unseen, **change} if state.version > state.node.resource_version else {}
            except Fenced:
                outcome = WriteOutcome.FAILED
            except KubeError as error:
                outcome = outcome_of(error)
                is_fault = outcome not in (WriteOutcome.GONE, WriteOutcome.OUTDATED)
                if is_fault and self._complaints.is_new(node.uid, kind_of(error)):
                    log.warning("node-labels-not-written", node=node.name, reason=str(error))
        state.is_busy = False
        if self._nodes.get(node.name) is not state:
            return
        if outcome is WriteOutcome.DONE:
            state.failures = 0
            self._complaints.settle(node.uid)
            self._compare(state)
        else:
            state.failures += 1
            self._pause(state, RETRY_SECONDS[outcome], state.failures)

    def _stands(self, state: _Labelled) -> bool:
        """Whether a node may be written, and nothing has replaced what is known of it."""
        return self._leads() and self._nodes.get(state.node.name) is state


def _kept(change: Labels) -> dict[str, str]:
    """The labels that a change does not remove."""
    return {label: text for label, text in change.items() if text is not None}


def _now() -> float:
    return asyncio.get_running_loop().time()
