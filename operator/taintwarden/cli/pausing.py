"""Stops a policy and sets it going again; what it did before is remembered in an annotation of its own."""

from taintwarden.api.types import GROUP
from taintwarden.cli.stored_policy import change_policy, read_policy, until_unchanged
from taintwarden.engine.model import Mode
from taintwarden.rehearsal.session import ClusterError, Session

PAUSED_MODE_ANNOTATION = f"{GROUP}/paused-mode"


async def pause(session: Session, name: str) -> str:
    """Set the mode to Paused; returns what is to be told.

    Raises:
        ClusterError: there is no such policy, or it was not changed.

    """

    async def attempt() -> str:
        stored = await read_policy(session, name)
        mode = stored.spec.mode
        if mode == Mode.PAUSED:
            return f"policy {name} is paused already"
        body = {"metadata": {"annotations": {PAUSED_MODE_ANNOTATION: mode}}, "spec": {"mode": Mode.PAUSED.value}}
        await change_policy(session, stored, body)
        return f"policy {name} is paused; its mode was {mode}"

    return await until_unchanged(attempt)


async def resume(session: Session, name: str, mode: str | None) -> str:
    """Set the mode to ``mode``, or to what it was; returns what is to be told.

    Raises:
        ClusterError: there is no such policy, nobody knows its mode, or it was not changed.

    """

    async def attempt() -> str:
        stored = await read_policy(session, name)
        if stored.spec.mode != Mode.PAUSED:
            return f"policy {name} is not paused: its mode is {stored.spec.mode}"
        before = mode or stored.metadata.annotations.get(PAUSED_MODE_ANNOTATION, "")
        if before not in (Mode.ENFORCE, Mode.DRY_RUN):
            msg = f"policy {name} does not tell which mode it had: say --mode Enforce or --mode DryRun"
            raise ClusterError(msg)
        body = {"metadata": {"annotations": {PAUSED_MODE_ANNOTATION: None}}, "spec": {"mode": before}}
        await change_policy(session, stored, body)
        return f"policy {name} is in mode {before} again"

    return await until_unchanged(attempt)
