"""Which nodes have to be labelled anew because a taint with ``placement`` came, changed or went."""

from collections.abc import Iterator, Sequence

from taintwarden.engine.machine.commands import MirrorTaints, NotMirrored
from taintwarden.engine.machine.inventory import NodeState
from taintwarden.engine.model import Mode, Node, Policy, Taint
from taintwarden.engine.placement import is_mirror_label, node_labels


class Mirrors:
    """Compares the labels that nodes have with those they should have. One write a node at a time.

    At once, also while a wave is under way: whoever replaces an evicted pod is placed by these labels.
    """

    def __init__(self) -> None:
        self._writing: dict[str, dict[str, str]] = {}
        """Node -> the labels that it is being given."""
        self._refused: dict[str, dict[str, str]] = {}
        """Node -> the labels that the API server did not take: no use trying again before others are wanted."""
        self._told: dict[str, tuple[tuple[Taint, str], ...]] = {}

    def restart(self) -> None:
        """We lead anew: what was begun before does not count."""
        self._writing, self._refused, self._told = {}, {}, {}

    def forget(self, node: str) -> None:
        """The node is gone, or another one has its name."""
        for known in (self._writing, self._refused, self._told):
            known.pop(node, None)

    def look(self, state: NodeState, policies: Sequence[Policy]) -> Iterator[MirrorTaints | NotMirrored]:
        """What has to be written on the node now, if anything; ``policies`` are those that select it."""
        if state.node is None or state.name in self._writing:
            return  # it is looked at again when what is missing is there
        present = {label: value for label, value in state.node.labels.items() if is_mirror_label(label)}
        yield from self._look(state.node, policies, present)

    def written(
        self, state: NodeState, policies: Sequence[Policy], *, succeeded: bool
    ) -> Iterator[MirrorTaints | NotMirrored]:
        """A write ended. What has to be written next, since something else is wanted by now."""
        labels = self._writing.pop(state.name, None)
        if labels is None or state.node is None:
            return
        if not succeeded:
            self._refused[state.name] = labels
        # What was written may be news to the stream: it would be written again and again until it is heard of.
        yield from self._look(state.node, policies, labels)

    def _look(
        self, node: Node, policies: Sequence[Policy], present: dict[str, str]
    ) -> Iterator[MirrorTaints | NotMirrored]:
        enforced = [policy for policy in policies if policy.mode is not Mode.DRY_RUN]
        selectors = [selector for policy in enforced for selector in policy.taints if selector.placement]
        if not present and not selectors:
            return
        wanted = node_labels([taint for taint, _ in node.taints], selectors)
        if self._told.get(node.name, ()) != wanted.faults:
            self._told[node.name] = wanted.faults
            yield from (NotMirrored(node.name, node.uid, taint, reason) for taint, reason in wanted.faults)
        if wanted.labels not in (present, self._refused.get(node.name)):
            self._refused.pop(node.name, None)
            self._writing[node.name] = wanted.labels
            gone: dict[str, str | None] = {label: None for label in present if label not in wanted.labels}
            yield MirrorTaints(node.name, node.uid, {**gone, **wanted.labels})
