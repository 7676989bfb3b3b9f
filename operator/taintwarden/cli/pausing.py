"""Pauses and resumes policies; their previous mode is recorded in an annotation of the policy."""

from collections.abc import Sequence

import msgspec

from taintwarden.api.types import GROUP
from taintwarden.cli.stored_policy import StoredPolicy, change_policy, read_policies, read_policy, until_unchanged
from taintwarden.engine.model import Mode
from taintwarden.rehearsal.session import ClusterError, Session

PAUSED_MODE_ANNOTATION = f"{GROUP}/paused-mode"
"""``MODE@GENERATION``: the mode before the pause, and the generation that the pause made. It does not
apply to another generation: the policy, and perhaps its mode, has changed since."""
_MODES = (Mode.ENFORCE, Mode.DRY_RUN)


class Switch(msgspec.Struct):
    """The change of one policy. ``mode`` is None if nothing changes, and ``told`` is the reason."""

    policy: str
    before: str
    mode: str | None
    told: str


class Switches(msgspec.Struct):
    """The changes of several policies of a cluster."""

    cluster: str
    policies: list[Switch]

    @property
    def changed(self) -> list[Switch]:
        """The policies that change."""
        return [one for one in self.policies if one.mode is not None]


async def look_all(session: Session, *, resume: bool, mode: str | None = None) -> Switches:
    """What pausing or resuming every policy would do.

    Raises:
        ClusterError: they cannot be read.

    """
    judge = _resumed if resume else _paused
    return Switches(session.cluster, [judge(one, mode) for one in await read_policies(session)])


class Outcome(msgspec.Struct):
    """The result for one policy: the message to print, and whether the change failed."""

    told: str
    failed: bool = False


async def switch(session: Session, names: Sequence[str], *, resume: bool, mode: str | None = None) -> list[Outcome]:
    """Pause policies, or set paused ones to ``mode`` or to their previous mode. A failure does not stop the others."""
    found = []
    for name in names:
        try:
            found.append(Outcome(await _switch(session, name, resume=resume, mode=mode)))
        except ClusterError as error:
            found.append(Outcome(str(error), failed=True))
    return found


async def _switch(session: Session, name: str, *, resume: bool, mode: str | None = None) -> str:
    async def attempt() -> str:
        stored = await read_policy(session, name)
        wanted = _resumed(stored, mode) if resume else _paused(stored, None)
        if wanted.mode is None:
            if resume and (stored.spec.mode == Mode.PAUSED or mode not in (None, stored.spec.mode)):
                raise ClusterError(wanted.told)
            return f"{wanted.told} (cluster {session.cluster})"
        kept = None if resume else f"{wanted.before}@{stored.metadata.generation + 1}"
        body = {"metadata": {"annotations": {PAUSED_MODE_ANNOTATION: kept}}, "spec": {"mode": wanted.mode}}
        await change_policy(session, stored, body)
        return f"{wanted.told} (cluster {session.cluster})"

    return await until_unchanged(attempt)


def _paused(stored: StoredPolicy, _: str | None) -> Switch:
    name, mode = stored.metadata.name, stored.spec.mode
    if mode == Mode.PAUSED:
        return Switch(name, mode, None, f"policy {name} is paused already")
    return Switch(name, mode, Mode.PAUSED.value, f"policy {name} is paused; its mode was {mode}")


def _resumed(stored: StoredPolicy, mode: str | None) -> Switch:
    name, current = stored.metadata.name, stored.spec.mode
    if current != Mode.PAUSED:
        told = f"policy {name} is not paused: its mode is {current}"
        if mode not in (None, current):
            told += f'; to change it: kubectl patch tep {name} --type=merge -p \'{{"spec":{{"mode":"{mode}"}}}}\''
        return Switch(name, current, None, told)
    before, _, generation = stored.metadata.annotations.get(PAUSED_MODE_ANNOTATION, "").partition("@")
    wanted = mode or (before if generation == str(stored.metadata.generation) else "")
    if wanted not in _MODES:
        if before in _MODES:
            told = f"policy {name} was changed after it was paused, when its mode was {before}"
        else:
            told = f"policy {name} does not state which mode it had"
        return Switch(name, current, None, f"{told}: pass --mode Enforce or --mode DryRun")
    progress = stored.condition("Progressing")
    due = f"; {progress.message.removeprefix('paused, ')}" if progress and progress.reason == "Paused" else ""
    return Switch(name, current, wanted, f"policy {name} is in mode {wanted} again{due}")
