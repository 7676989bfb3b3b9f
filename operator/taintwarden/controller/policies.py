"""The policies in force: what is stored, what of it is valid, and the last valid version of what is not."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from taintwarden.api.errors import InvalidObject
from taintwarden.api.policies import parse_policy
from taintwarden.controller.guards import GuardBook, version_number
from taintwarden.controller.status import Standing
from taintwarden.engine.model import Policy


class PolicyBook:
    """Stored policies in, valid ones out.

    An invalid policy keeps its last valid version in force; a deleted one stops acting at once.

    Args:
        changed: receives all policies in force whenever they change.
        issue: told name, UID and reason when a policy cannot be accepted.
        guards: follows what is stored of guards, if anybody does.

    """

    def __init__(
        self,
        changed: Callable[[tuple[Policy, ...]], None],
        issue: Callable[[str, str, str], None],
        guards: GuardBook | None = None,
    ) -> None:
        self.standings: dict[str, Standing] = {}
        self._valid: dict[str, Policy] = {}
        self._uids: dict[str, str] = {}
        self._loaded = False
        self._newest = 0
        self._changed = changed
        self._issue = issue
        self._guards = guards

    def load(self, stored: Iterable[Mapping[str, Any]], resource_version: str = "") -> None:
        """Take over a complete list, and tell of it once if it changes anything. What it does not name is gone.

        A list that is older than something the watch brought meanwhile is of no use.
        """
        if version_number(resource_version) < self._newest:
            return
        changed, named = not self._loaded, set()
        self._loaded = True
        for obj in stored:
            named.add(obj["metadata"]["name"])
            changed |= self._take(obj)
        for name in [name for name in self.standings if name not in named]:
            changed |= self._forget(name)
        self._publish(changed=changed)

    def seen(self, obj: Mapping[str, Any]) -> None:
        """A policy was listed, added or modified."""
        self._newest = max(self._newest, version_number(obj["metadata"].get("resourceVersion")))
        self._publish(changed=self._take(obj))

    def gone(self, obj: Mapping[str, Any]) -> None:
        """A policy was deleted."""
        self._newest = max(self._newest, version_number(obj["metadata"].get("resourceVersion")))
        self._publish(changed=self._forget(obj["metadata"]["name"]))

    def _forget(self, name: str) -> bool:
        self.standings.pop(name, None)
        self._uids.pop(name, None)
        if self._guards is not None:
            self._guards.gone(name)
        return self._valid.pop(name, None) is not None

    def _take(self, obj: Mapping[str, Any]) -> bool:
        """Whether what is in force changed."""
        meta = obj["metadata"]
        name, uid, generation = meta["name"], meta.get("uid", ""), meta.get("generation", 0)
        replaced = False
        if self._uids.get(name, uid) != uid:  # another policy of the same name inherits nothing
            replaced = self._forget(name)
        self._uids[name] = uid
        if self._guards is not None:
            self._guards.seen(obj)
        try:
            policy = parse_policy(obj)
        except InvalidObject as error:
            known = self.standings.get(name)
            if known is None or (known.generation, known.problem) != (generation, str(error)):
                self._issue(name, uid, str(error))
            self.standings[name] = Standing(generation, str(error), _conditions(obj))
            return replaced
        self.standings[name] = Standing(generation, conditions=_conditions(obj))
        changed = replaced or self._valid.get(name) != policy
        self._valid[name] = policy
        return changed

    def _publish(self, *, changed: bool) -> None:
        if changed:
            self._changed(tuple(self._valid.values()))
        if self._guards is not None:
            self._guards.heed()


def _conditions(obj: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    stored = obj.get("status", {}).get("conditions") or []
    return {one["type"]: (one["status"], one["lastTransitionTime"]) for one in stored}
