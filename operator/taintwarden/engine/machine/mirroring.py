"""The labels of a node that repeat what the scheduler has to compare, and the writes that they need."""

from collections.abc import Iterable

from taintwarden.engine.machine import commands
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.machine.outbox import Outbox, labels_key
from taintwarden.engine.machine.stepping import Step
from taintwarden.engine.model import Mode, Node, Policy, Taint
from taintwarden.engine.placement import Label, NodeLabels, is_mirror_label, node_labels, version_labels


class Mirroring:
    """Compares the labels of nodes with those they should have.

    It writes at once, even during a wave: the scheduler places the replacements of evicted pods by these labels.

    Args:
        step: the current step.
        outbox: writes the labels.

    """

    def __init__(self, step: Step, outbox: Outbox) -> None:
        self._step = step
        self._outbox = outbox
        self._reported: dict[str, tuple[tuple[Taint | Label, str], ...]] = {}

    def restart(self) -> None:
        """Leadership begins: what other leaders reported does not count."""
        self._reported = {}

    def forget(self, node: str) -> None:
        """The node is gone, or another one has its name."""
        self._reported.pop(node, None)
        self._outbox.forget(labels_key(node))

    def mirror(self, state: NodeState, policies: Iterable[Policy]) -> None:
        """Write the labels that the node lacks."""
        node = state.node
        if node is None or not self._step.leading:
            return
        wanted = wanted_labels(node, policies)
        present = {label: value for label, value in node.labels.items() if is_mirror_label(label)}
        # A write in progress may be stored already although the stream has not delivered it yet.
        under_way = self._outbox.under_way(labels_key(node.name))
        if wanted is None and not present and under_way is None:
            return
        labels, faults = (wanted.labels, wanted.faults) if wanted is not None else ({}, ())
        if self._reported.get(node.name, ()) != faults:
            self._reported[node.name] = faults
            self._step.report(*(commands.NotMirrored(node.name, node.uid, *fault) for fault in faults))
        if labels == present and under_way is None:
            self._outbox.withdraw(labels_key(node.name))
            return
        known: dict[str, str | None] = dict(present)
        if isinstance(under_way, commands.SaveLabels):
            known |= under_way.labels
        gone: dict[str, str | None] = {label: None for label in known if label not in labels}
        self._outbox.put(commands.SaveLabels(node.name, node.uid, {**gone, **labels}))


def wanted_labels(node: Node, policies: Iterable[Policy]) -> NodeLabels | None:
    """The Taintwarden labels that a node should have; None if no policy requests any.

    It does not matter whether a policy selects the node: what pods tolerate does not depend on that.
    """
    enforced = [policy for policy in policies if policy.mode is not Mode.DRY_RUN]
    selectors = [selector for policy in enforced for selector in policy.taints if selector.placement]
    keys = dict.fromkeys(key for policy in enforced for key in policy.version_labels)
    if not (selectors or keys):
        return None
    of_taints = node_labels([taint for taint, _ in node.taints], selectors)
    of_labels = version_labels(node.labels, keys)
    return NodeLabels(of_taints.labels | of_labels.labels, of_taints.faults + of_labels.faults)
