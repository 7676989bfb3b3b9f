"""The collection of all objects of one kind, with their recent history and listeners.

Forbidden here: choosing revisions, and changing written objects.
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
        self.oldest = revision  # the history has all changes after this revision
        self.listeners: list[Listener] = []

    def record(self, change: Change) -> None:
        """Apply a change to the newest state, add it to the history, and notify all listeners, in this order."""
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
        """Return all changes after a revision, oldest first. The revision must not be before `oldest`."""
        later = []
        for change in reversed(self.history):
            if change.revision <= revision:
                break
            later.append(change)
        return reversed(later)

    def state_at(self, revision: int) -> list[Entry]:
        """Return all entries at a revision, ordered by key. The revision must not be before `oldest`."""
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
