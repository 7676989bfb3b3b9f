"""All objects of one kind, in order, with their recent history and their listeners.

Forbidden here: choosing revisions, and changing what is written.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from localcluster.store.entries import Change, Entry, Key

Listener = Callable[[Change], None]


class Collection:
    """All objects of one kind, and their recent changes."""

    def __init__(
        self,
        name: str,
        *,
        revision: int,
        history_limit: int,
        group: str = "",
        namespaced: bool = True,
        generation: bool = False,
        fields: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.name = name
        self.group = group
        self.namespaced = namespaced
        self.generation = generation
        self.fields = {"metadata.name": ("metadata", "name"), **(fields or {})}
        if namespaced:
            self.fields["metadata.namespace"] = ("metadata", "namespace")
        self.entries: dict[Key, Entry] = {}
        self.order: list[Key] = []
        self.history: deque[Change] = deque()
        self.history_limit = history_limit
        self.oldest = revision  # all changes after this revision are kept
        self.listeners: list[Listener] = []

    def record(self, change: Change) -> None:
        """Make the change the newest state, add it to the history, and notify all listeners, in this order."""
        key = change.key
        if change.after is None:
            del self.entries[key]
            del self.order[bisect_left(self.order, key)]
        else:
            if key not in self.entries:
                insort(self.order, key)
            self.entries[key] = change.after
        self.history.append(change)
        while len(self.history) > self.history_limit:
            self.oldest = self.history.popleft().revision
        for listener in tuple(self.listeners):
            listener(change)

    def since(self, revision: int) -> Iterable[Change]:
        """All changes after a revision, oldest first; the caller has compared with `oldest`."""
        later = []
        for change in reversed(self.history):
            if change.revision <= revision:
                break
            later.append(change)
        return reversed(later)

    def state_at(self, revision: int) -> list[Entry]:
        """Every entry as it was, ordered by key; the caller has compared with `oldest`."""
        changed: dict[Key, Entry | None] = {}
        for change in reversed(self.history):
            if change.revision <= revision:
                break
            changed[change.key] = change.before
        if not changed:
            return [self.entries[key] for key in self.order]
        keys = sorted(self.entries.keys() | changed.keys())
        states = (changed[key] if key in changed else self.entries[key] for key in keys)
        return [entry for entry in states if entry is not None]
