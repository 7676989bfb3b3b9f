"""The durable clock: which nodes' histories have to be saved, and when."""

from collections.abc import Iterator

from taintwarden.engine.machine.commands import SaveHistory
from taintwarden.engine.machine.inventory import NodeState


class Histories:
    """Saves urgent ones at once, the others when no wave is under way."""

    def __init__(self) -> None:
        self._later: dict[str, None] = {}
        """Nodes whose history is not urgent: nobody on them has a deadline ahead that a restart could move."""

    def __bool__(self) -> bool:
        return bool(self._later)

    def later(self, node: str) -> None:
        """Save it when there is time."""
        self._later[node] = None

    def take(self) -> list[str]:
        """There is time: the nodes to be saved now."""
        nodes, self._later = list(self._later), {}
        return nodes

    def save(self, state: NodeState) -> Iterator[SaveHistory]:
        """What has to be written of this node now, if anything; one write at a time."""
        if state.node is None or state.saving is not None or state.policies is None:
            return  # it is called again when what is missing is there
        text = state.history_text()
        if text != state.saved:
            state.saving = text
            yield SaveHistory(state.name, state.node.uid, text)

    def saved(self, state: NodeState, *, succeeded: bool) -> Iterator[SaveHistory]:
        """A write ended."""
        if state.saving is None:
            return
        if succeeded:
            state.saved = state.saving
        state.saving = None
        if succeeded:
            yield from self.save(state)
