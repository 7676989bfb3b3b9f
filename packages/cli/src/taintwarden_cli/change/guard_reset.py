"""Reads which pods a tripped guard, or zones that are all Full, hold, and requests their release."""

import msgspec

from taintwarden.api.status import GuardStatus
from taintwarden.controller.words.wording import pods
from taintwarden.engine.limits.refusal import GUARD, ZONE
from taintwarden.kube.calls.own_kinds import GUARD_RESET_ANNOTATION
from taintwarden_cli.change.stored_policy import StoredPolicy, change_policy, read_policy, until_unchanged
from taintwarden_cli.cluster_session import ask, confirm, settings_of
from taintwarden_cli.output import printable, write
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_cli.rendering import Lines, render


class Halted(msgspec.Struct):
    """What stops all evictions of a policy, by its status; ``message`` is that of the condition."""

    cluster: str
    policy: str
    generation: int
    guard: GuardStatus
    pods: int
    """The number of due pods that are held. Those that are not due yet are released, too."""
    message: str
    zones_full: bool = False
    """Every zone is Full, and the guard itself is armed."""


async def look(session: Session, name: str) -> Halted:
    """What stops a policy, and how many of its pods are held.

    Raises:
        ClusterError: the policy does not exist, nothing is held, or the operator has not read its newest version.

    """
    return _halted(session, await read_policy(session, name))


async def reset(session: Session, seen: Halted) -> str:
    """Request the reset if the guard is still as it was read; returns the message to print.

    Raises:
        ClusterError: the guard has changed since, or the policy was not changed.

    """

    async def attempt() -> str:
        stored = await read_policy(session, seen.policy)
        now = _halted(session, stored)
        if _state(now) != _state(seen):
            msg = f"what holds policy {seen.policy} is not what was shown any more: look again"
            raise ClusterError(msg)
        asked = {GUARD_RESET_ANNOTATION: str(now.generation)}
        await change_policy(session, stored, {"metadata": {"annotations": asked}})
        return f"the operator of {session.cluster} is asked to release what is held of policy {seen.policy}"

    return await until_unchanged(attempt)


def _halted(session: Session, stored: StoredPolicy) -> Halted:
    name, generation, status = stored.metadata.name, stored.metadata.generation, stored.status
    if generation != status.observed_generation:
        msg = (
            f"the operator has not seen generation {generation} of policy {name} yet, but {status.observed_generation}:"
            " try again in some seconds, or see whether it runs"
        )
        raise ClusterError(msg)
    condition = status.condition("GuardTripped")
    message = condition.message if condition else ""
    if not stored.spec.has_guard:
        msg = f"policy {name} has no guard, so there is nothing to reset"
        raise ClusterError(msg)
    guard = status.guard or GuardStatus()
    zones_full = condition is not None and condition.reason == "AllZonesFull" and guard.tripped_at is None
    if zones_full or guard.tripped_at is not None:
        held = stored.held_by(GUARD) + stored.held_by(ZONE)  # a zone holds before the guard does
        return Halted(session.cluster, name, generation, guard, held, message, zones_full)
    msg = f"the guard of policy {name} has not tripped, and not every zone is Full: there is nothing to reset"
    raise ClusterError(msg)


def _state(halted: Halted) -> tuple[str | None, int, bool]:
    return halted.guard.tripped_at, halted.generation, halted.zones_full


def show_and_reset(policy: str, yes: bool, **flags: object) -> None:
    """Carry out ``taintwarden guard reset``: show what is held, ask, and request its release."""
    settings = settings_of(flags)
    found = ask(settings, lambda session: look(session, policy))
    write(_shown(found))
    confirm("Release them?", "release them", yes=yes)
    write(printable(ask(settings, lambda session: reset(session, found))))


def _shown(found: Halted) -> str:
    """What you review before you confirm the evictions."""
    lines, guard = Lines(), found.guard
    lines.add("Cluster", found.cluster)
    lines.add("Policy", f"{found.policy}, generation {found.generation}", "bold")
    if found.zones_full:
        lines.add("Held", f"{pods(found.pods)} due now, since every zone is Full", "yellow")
    else:
        lines.add("Tripped", guard.tripped_at)
        lines.add("Held", f"{pods(found.pods)} due now", "yellow")
        lines.add("Cause", f"when it tripped: {guard.cause}" if guard.cause else "the operator has not told it yet")
    lines.add("It says", found.message)
    return render(lines.grid)
