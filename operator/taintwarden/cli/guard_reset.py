"""Looks at what an open guard holds, and asks the operator to let it go."""

import msgspec

from taintwarden.api.status import GuardStatus
from taintwarden.cli.session import ClusterError, Session
from taintwarden.cli.stored_policy import StoredPolicy, change_policy, read_policy, until_unchanged
from taintwarden.controller.wording import pods
from taintwarden.kube.policies import GUARD_RESET_ANNOTATION


class OpenGuard(msgspec.Struct):
    """An open guard as its policy tells of it; ``message`` is the condition's."""

    policy: str
    generation: int
    guard: GuardStatus
    message: str


async def look(session: Session, name: str) -> OpenGuard:
    """What the open guard of a policy holds.

    Raises:
        ClusterError: there is no such policy, its guard is not open, or the operator has not seen its newest version.

    """
    return _open_guard(await read_policy(session, name))


async def reset(session: Session, seen: OpenGuard) -> str:
    """Ask for the reset, if the guard is still the one that was looked at; returns what is to be told.

    Raises:
        ClusterError: it is not, or the policy was not changed.

    """

    async def attempt() -> str:
        stored = await read_policy(session, seen.policy)
        now = _open_guard(stored)
        if (now.guard.since, now.generation) != (seen.guard.since, seen.generation):
            msg = f"the guard of policy {seen.policy} is not the one that was shown any more: look again"
            raise ClusterError(msg)
        asked = {GUARD_RESET_ANNOTATION: str(now.generation)}
        await change_policy(session, stored, {"metadata": {"annotations": asked}})
        return f"the operator is asked to let {pods(now.guard.would_evict or 0)} of policy {seen.policy} go"

    return await until_unchanged(attempt)


def _open_guard(stored: StoredPolicy) -> OpenGuard:
    name, generation, status = stored.metadata.name, stored.metadata.generation, stored.status
    if generation != status.observed_generation:
        msg = (
            f"the operator has not seen generation {generation} of policy {name} yet, but {status.observed_generation}:"
            " try again in some seconds, or see whether it runs"
        )
        raise ClusterError(msg)
    if status.guard is None or not status.guard.open:
        msg = f"the guard of policy {name} is not open: there is nothing to reset"
        raise ClusterError(msg)
    condition = stored.condition("GuardOpen")
    return OpenGuard(name, generation, status.guard, condition.message if condition else "")
