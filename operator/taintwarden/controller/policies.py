"""The policies in force: what is stored, what of it is valid, and the last valid version of what is not."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from taintwarden.api.errors import InvalidObject
from taintwarden.api.policies import parse_policy
from taintwarden.controller.status import Standing
from taintwarden.engine.model import Policy


class PolicyBook:
    """Stored policies in, valid ones out.

    An invalid policy keeps its last valid version in force; a deleted one stops acting at once.

    Args:
        changed: receives all policies in force whenever they change.
        issue: told name, UID and reason when a policy cannot be accepted.

    """

    def __init__(self, changed: Callable[[tuple[Policy, ...]], None], issue: Callable[[str, str, str], None]) -> None:
        self.standings: dict[str, Standing] = {}
        self._valid: dict[str, Policy] = {}
        self._uids: dict[str, str] = {}
        self._changed = changed
        self._issue = issue

    def load(self, stored: Iterable[Mapping[str, Any]]) -> None:
        """Take over a complete list, and tell of it once."""
        for obj in stored:
            self._take(obj)
        self._publish()

    def seen(self, obj: Mapping[str, Any]) -> None:
        """A policy was listed, added or modified."""
        if self._take(obj):
            self._publish()

    def gone(self, name: str) -> None:
        """A policy was deleted."""
        self.standings.pop(name, None)
        self._uids.pop(name, None)
        if self._valid.pop(name, None) is not None:
            self._publish()

    def _take(self, obj: Mapping[str, Any]) -> bool:
        """Whether what is in force changed."""
        meta = obj["metadata"]
        name, uid, generation = meta["name"], meta.get("uid", ""), meta.get("generation", 0)
        if self._uids.get(name, uid) != uid:  # another policy of the same name inherits nothing
            self._valid.pop(name, None)
        self._uids[name] = uid
        try:
            policy = parse_policy(obj)
        except InvalidObject as error:
            known = self.standings.get(name)
            if known is None or (known.generation, known.problem) != (generation, str(error)):
                self._issue(name, uid, str(error))
            self.standings[name] = Standing(generation, str(error), _conditions(obj))
            return False
        self.standings[name] = Standing(generation, conditions=_conditions(obj))
        changed = self._valid.get(name) != policy
        self._valid[name] = policy
        return changed

    def _publish(self) -> None:
        self._changed(tuple(self._valid.values()))


def _conditions(obj: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    stored = obj.get("status", {}).get("conditions") or []
    return {one["type"]: (one["status"], one["lastTransitionTime"]) for one in stored}
