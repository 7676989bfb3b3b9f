"""Store of policies, which also follows the stored records of their guards."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from taintwarden.api.policies import parse_policy
from taintwarden.controller.stores.guard_store import GuardStore
from taintwarden.controller.stores.object_store import Store
from taintwarden.controller.words.policy_changes import PolicyChanges
from taintwarden.engine.derived import source_conflicts
from taintwarden.engine.policy import Mode, Policy


class PolicyStore(Store[Policy]):
    """Receives stored policies, and passes on the valid ones.

    Args:
        changed: receives all policies in force whenever they change.
        issue: called with name, UID and reason when a policy cannot be accepted.
        guards: reads the stored records of guards, if given.
        changes: reports the changes of specs, if given.
        dry_run: True to treat policies in mode Enforce as DryRun.

    """

    def __init__(
        self,
        changed: Callable[[tuple[Policy, ...]], None],
        issue: Callable[[str, str, str], None],
        guards: GuardStore | None = None,
        changes: PolicyChanges | None = None,
        *,
        dry_run: bool = False,
    ) -> None:
        super().__init__(self._parsed, issue)
        self._dry_run = dry_run
        self._changed = changed
        self._conflicts: dict[str, str] = {}
        """Policies that read a key from another source than an older policy does: name -> why they are refused."""
        self._guards = guards
        self._changes = changes

    def _object_seen(self, obj: Mapping[str, Any]) -> None:
        if self._guards is not None:
            self._guards.seen(obj)

    def _parsed(self, obj: Mapping[str, Any]) -> Policy:
        """Parse a policy whose spec is new. With ``dry_run``, Enforce becomes DryRun; a paused one stays paused."""
        if self._changes is not None:
            self._changes.seen(obj)
        policy = parse_policy(obj)
        if not self._dry_run:
            return policy
        mode = Mode.DRY_RUN if policy.mode is Mode.ENFORCE else policy.mode
        return msgspec.structs.replace(policy, mode=mode, rehearses=True)

    def _forget(self, key: str) -> None:
        super()._forget(key)
        if self._guards is not None:
            self._guards.gone(key)
        if self._changes is not None:
            self._changes.gone(key)

    def _apply(self, changes: Mapping[str, Policy | None]) -> None:
        before, self._conflicts = self._conflicts, source_conflicts(self.valid.values())
        for name in self.valid:
            if self._guards is not None and name in before and name not in self._conflicts:
                self._guards.restore_records(name)  # its guard is created again, and needs its stored record
            if self.observed[name].problem not in ("", before.get(name)):
                continue  # its newest version is invalid, and `valid` has an earlier one
            if name in self._conflicts:
                self._refuse(name, self._conflicts[name])
            elif name in before:
                self._accept(name)
        self._changed(tuple(policy for name, policy in self.valid.items() if name not in self._conflicts))

    def _publish(self) -> None:
        super()._publish()
        if self._guards is not None:
            self._guards.apply_resets()
