"""One policy as it is stored, for the commands that change policies."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from taintwarden.api.policies import ALL_PERCENT
from taintwarden.api.status import PolicyStatus
from taintwarden.api.types import GROUP, POLICY_KIND, VERSION
from taintwarden.kube.calls.own_kinds import POLICIES
from taintwarden_cli.rehearsal.session import ChangedMeanwhileError, ClusterError, Session

TRIES = 5
"""The operator writes the status of a busy policy every few seconds, which changes its version."""


class ManagedFields(msgspec.Struct, rename="camel"):
    """``metadata.managedFields[]``: which client set which fields."""

    manager: str = ""
    fields_v1: dict[str, Any] = msgspec.field(default={}, name="fieldsV1")

    def has(self, *path: str) -> bool:
        """Whether it set the field at this path."""
        found: Any = self.fields_v1
        for name in path:
            found = found.get(f"f:{name}") if isinstance(found, dict) else None
        return found is not None


class StoredMeta(msgspec.Struct, rename="camel"):
    """``metadata``."""

    name: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    annotations: dict[str, str] = {}
    managed_fields: list[ManagedFields] = []

    def owners(self, *path: str) -> set[str]:
        """The clients that set the field at this path."""
        return {one.manager for one in self.managed_fields if one.has(*path)}


class StoredSpec(msgspec.Struct):
    """The fields of ``spec`` that commands change, and what says whether there is a guard."""

    mode: str = "Enforce"
    paused: bool = False
    limits: dict[str, Any] | None = None
    reclaim: dict[str, Any] | None = None

    @property
    def has_guard(self) -> bool:
        """Whether it has a guard, which the operator needs to release pods."""
        guard = (self.limits or {}).get("guard") or {}
        return self.reclaim is None and guard.get("maxPercent") != ALL_PERCENT


class StoredPolicy(msgspec.Struct):
    """A TaintEvictionPolicy, valid or not."""

    metadata: StoredMeta
    spec: StoredSpec = msgspec.field(default_factory=StoredSpec)
    status: PolicyStatus = PolicyStatus()

    def held_by(self, limit: str) -> int:
        """How many due pods a limit holds."""
        return sum(one.pods for one in self.status.limits if one.limit == limit)


async def read_policy(session: Session, name: str) -> StoredPolicy:
    """The policy ``name``.

    Raises:
        ClusterError: it does not exist, or cannot be read.

    """
    found = await session.read(_path(name), StoredPolicy, "taintevictionpolicies")
    if found is None:
        msg = f"there is no TaintEvictionPolicy {name} in the cluster at {session.server}"
        raise ClusterError(msg)
    return found


async def read_policies(session: Session) -> list[StoredPolicy]:
    """All policies, by name.

    Raises:
        ClusterError: they cannot be read.

    """
    return sorted(await session.policies(StoredPolicy), key=lambda one: one.metadata.name)


async def apply_policy(session: Session, stored: StoredPolicy, body: Mapping[str, Any], manager: str) -> None:
    """Apply ``body`` as ``manager``, whichever client set these fields; to no namesake.

    Raises:
        ClusterError: it was not changed, or the outcome is unknown.

    """
    metadata = {"name": stored.metadata.name, "uid": stored.metadata.uid} | body.get("metadata", {})
    whole = {"apiVersion": f"{GROUP}/{VERSION}", "kind": POLICY_KIND, **body, "metadata": metadata}
    await session.apply(_path(stored.metadata.name), whole, "taintevictionpolicies", manager)


async def change_policy(
    session: Session, stored: StoredPolicy, body: Mapping[str, Any], manager: str = "taintwarden"
) -> None:
    """Merge ``body`` into exactly the version that was read.

    Raises:
        ChangedMeanwhileError: another client has written it since.
        ClusterError: it was not changed, or the outcome is unknown.

    """
    metadata = {"uid": stored.metadata.uid, "resourceVersion": stored.metadata.resource_version}
    metadata |= body.get("metadata", {})
    whole = {**body, "metadata": metadata}
    await session.patch(_path(stored.metadata.name), whole, "taintevictionpolicies", manager)


async def until_unchanged(attempt: Callable[[], Awaitable[str]]) -> str:
    """Read and change, and retry a few times if another client has written meanwhile.

    Raises:
        ClusterError: as ``attempt``.

    """
    for _ in range(TRIES - 1):
        try:
            return await attempt()
        except ChangedMeanwhileError:
            continue
    return await attempt()


def _path(name: str) -> str:
    return f"{POLICIES.path}/{quote(name, safe='')}"
