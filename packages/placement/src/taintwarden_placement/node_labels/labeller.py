"""The labeller, which writes the node labels that repeat taints.

It receives each event before the machine does, since the scheduler places the replacements of evicted pods by the
labels. For each node at most one write is in progress; when it ends, the node is compared again. The labeller delays
the next write after a failure, and while another client keeps changing the labels back.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import msgspec
import structlog

from taintwarden.controller.effector import kind_of, outcome_of
from taintwarden.controller.handlers.following import Spawn
from taintwarden.controller.reported_faults import ReportedFaults
from taintwarden.engine import events
from taintwarden.engine.derived import Derivations, derivations, with_derived
from taintwarden.engine.events import Event, WriteOutcome
from taintwarden.engine.machine import Timings, retry_delay
from taintwarden.engine.model import Node, Taint
from taintwarden.engine.policy import Policy
from taintwarden.kube.calls.node_calls import FIELD_MANAGER, PATH
from taintwarden.kube.calls.patching import Fence, patch
from taintwarden.kube.errors import Fenced, KubeError
from taintwarden.kube.http.client import Client
from taintwarden.kube.wire.kinds import version_number
from taintwarden_placement.node_labels.notices import LabelsContested, NotMirrored
from taintwarden_placement.node_labels.wanted import Label, placed_keys, published_labels, wanted_labels

MAX_WRITES = 4
"""Maximum number of concurrent writes."""
DOMAIN = "taintwarden.io/"
"""Part of the key of every label that the labeller writes."""
MAX_REPORTED_FAULTS = 10_000
"""Maximum number of nodes whose failures are remembered, so that each is logged once. Each takes some dozen bytes."""
MAX_COMPARED_AT_ONCE = 20
"""Maximum number of nodes compared before other tasks run, after a change of policies or of the leader."""
MAX_REPETITIONS = 3
"""Maximum number of repetitions of a write without delay. A person or a starting kubelet reverts labels once."""
CONTESTED_SECONDS = (1.0, 300.0)
"""First and longest delay before a write is repeated that another client has reverted too often."""
CALM_SECONDS = 1800.0
"""Seconds without a revert until the delays begin with the first one again."""
TIMINGS = Timings()
RETRY_SECONDS = {
    WriteOutcome.OUTDATED: TIMINGS.write_outdated,
    WriteOutcome.FAILED: TIMINGS.write_failed,
    WriteOutcome.REFUSED: TIMINGS.write_refused,
    WriteOutcome.GONE: TIMINGS.write_refused,
}
"""First and longest delay after a failed write, as in the machine. A deletion of the node ends the delay."""

log = structlog.get_logger()

LabelChange = Mapping[str, str | None]
"""New value of each label to write; None removes the label."""


class _Labelled(msgspec.Struct, eq=False):
    """State of one node."""

    node: Node
    """The node as the stream has delivered it."""
    pending: LabelChange = {}
    """Label changes that were written and not delivered yet. The scheduler may already have placed pods by them."""
    version: int = -1
    """resourceVersion of the node after that write."""
    is_busy: bool = False
    """True if a write is in progress."""
    pause: asyncio.TimerHandle | None = None
    """Timer that starts the next write."""
    failures: int = 0
    faults: Sequence[tuple[Taint | Label, str]] = ()
    """The reported taints and labels that labels of placement cannot express."""
    written: Mapping[str, str] = {}
    """The labels of the last write; ``written_at`` is its time on the event loop's clock, in seconds."""
    written_at: float = 0.0
    reverts: int = 0
    """Number of times in a row that another client has reverted ``written``."""

    @property
    def labels(self) -> dict[str, str]:
        """The delivered labels with the changes that were written since."""
        if not self.pending:
            return self.node.labels
        return _kept({**self.node.labels, **self.pending})

    def cancel_pause(self) -> None:
        """Cancel the timer of the next write."""
        if self.pause is not None:
            self.pause.cancel()
            self.pause = None


class Labeller:
    """Writes the labels of nodes while this process is the leader.

    Args:
        client: sends the writes.
        leads: returns True if this process holds the lease now.
        report: receives notices.
        spawn: starts the tasks.

    """

    def __init__(self, client: Client, leads: Fence, report: Callable[[Sequence[object]], None], spawn: Spawn) -> None:
        self._client, self._leads, self._report, self._spawn = client, leads, report, spawn
        self._nodes: dict[str, _Labelled] = {}
        self._policies: tuple[Policy, ...] = ()
        self._derived: Derivations = {}
        self._has_placement = False
        self._is_synced = self._is_leading = False
        self._reported_faults = ReportedFaults(MAX_REPORTED_FAULTS)
        self._slots = asyncio.Semaphore(MAX_WRITES)
        self._waiting: dict[str, None] = {}
        """Names of nodes to compare, after a change of policies or of the leader."""

    def take(self, event: Event) -> None:
        """Apply an event, which the machine receives afterwards."""
        match event:
            case events.NodeSeen(node, listed):
                self._store_node(node, listed=listed)
            case events.NodeGone(name):
                self._forget(name)
            case events.NodesListed(names):
                for name in [name for name in self._nodes if name not in names]:
                    self._forget(name)
            case events.PoliciesChanged(policies):
                self._policies, self._derived = policies, derivations(policies)
                self._has_placement = bool(placed_keys(policies) or published_labels(policies))
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

    # -- delivered nodes ------------------------------------------------------------------------------------------

    def _store_node(self, node: Node, *, listed: bool) -> None:
        state = self._nodes.get(node.name)
        if state is None or state.node.uid != node.uid:
            self._forget(node.name)
            state = self._nodes[node.name] = _Labelled(node)
        elif not listed and node.resource_version < state.node.resource_version:
            return
        else:
            known, state.node = state.node, node
            if state.pending and (listed or node.resource_version >= state.version):
                state.pending = {}
            elif known.labels == node.labels and known.taints == node.taints and known.values == node.values:
                return
        self._compare(state)

    def _forget(self, name: str) -> None:
        """Drop the state of a node. A write in progress for it is ignored when it ends."""
        state = self._nodes.pop(name, None)
        if state is not None:
            state.cancel_pause()

    def _compare_all(self) -> None:
        is_idle = not self._waiting
        self._waiting.update(dict.fromkeys(self._nodes))
        if is_idle and self._waiting:
            self._spawn(self._compare_waiting())

    async def _compare_waiting(self) -> None:
        while self._waiting:
            for name in list(islice(self._waiting, MAX_COMPARED_AT_ONCE)):
                del self._waiting[name]
                if (state := self._nodes.get(name)) is not None:
                    self._compare(state)
            await asyncio.sleep(0)

    # -- comparison -----------------------------------------------------------------------------------------------

    def _compare(self, state: _Labelled) -> None:
        """Start a write if the labels of a node differ from the wanted ones, unless the write has to wait."""
        if not (self._is_synced and self._is_leading) or state.is_busy:
            return
        change = self._change(state)
        if not change and not state.failures:
            state.cancel_pause()
        elif change and not self._has_to_wait(state, change):
            self._start_write(state)

    def _change(self, state: _Labelled) -> LabelChange:
        """Return all wanted labels, and None for each label to remove; empty if the node needs no change."""
        labels = state.labels
        if not self._has_placement and not any(DOMAIN in label for label in labels):
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

    def _has_to_wait(self, state: _Labelled, change: LabelChange) -> bool:
        """True if the write waits for its timer: after a failure, or while another client keeps reverting it."""
        wanted = _kept(change)
        if state.pause is not None and (state.failures or wanted == state.written):
            return True
        state.cancel_pause()
        is_revert = wanted == state.written and _now() <= state.written_at + CALM_SECONDS
        state.reverts = state.reverts + 1 if is_revert else 0
        if state.reverts <= MAX_REPETITIONS:
            return False
        delay = self._pause(state, CONTESTED_SECONDS, state.reverts - MAX_REPETITIONS)
        labels = {label: text for label, text in state.labels.items() if label in change}
        differing = dict.fromkeys(label for label, _ in sorted(wanted.items() ^ labels.items()))
        self._report([LabelsContested(state.node.name, state.node.uid, tuple(differing), state.reverts, delay)])
        return True

    def _pause(self, state: _Labelled, bounds: tuple[float, float], attempts: int) -> float:
        delay = retry_delay(bounds, attempts, state.node.name)
        state.pause = asyncio.get_running_loop().call_later(delay, self._start_write, state)
        return delay

    # -- writes ---------------------------------------------------------------------------------------------------

    def _start_write(self, state: _Labelled) -> None:
        state.cancel_pause()
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
                    state.written, state.written_at = _kept(change), _now()
                    labels = {"metadata": {"labels": dict(change)}}
                    saved = await patch(
                        self._client, path, labels, lambda: self._may_write(state), uid=node.uid, manager=FIELD_MANAGER
                    )
                    state.version = version_number(saved, unreadable=-1)
                    state.pending = {**state.pending, **change} if state.version > state.node.resource_version else {}
            except Fenced:
                outcome = WriteOutcome.FAILED
            except KubeError as error:
                outcome = outcome_of(error)
                is_fault = outcome not in (WriteOutcome.GONE, WriteOutcome.OUTDATED)
                if is_fault and self._reported_faults.is_new(node.uid, kind_of(error)):
                    log.warning("node-labels-not-written", node=node.name, reason=str(error))
        state.is_busy = False
        if self._nodes.get(node.name) is not state:
            return
        if outcome is WriteOutcome.DONE:
            state.failures = 0
            self._reported_faults.forget(node.uid)
            self._compare(state)
        else:
            state.failures += 1
            self._pause(state, RETRY_SECONDS[outcome], state.failures)

    def _may_write(self, state: _Labelled) -> bool:
        """True if this process is the leader and ``state`` is still the state of the node."""
        return self._leads() and self._nodes.get(state.node.name) is state


def _kept(change: LabelChange) -> dict[str, str]:
    """Return the labels that a change sets, without those that it removes."""
    return {label: text for label, text in change.items() if text is not None}


def _now() -> float:
    return asyncio.get_running_loop().time()
