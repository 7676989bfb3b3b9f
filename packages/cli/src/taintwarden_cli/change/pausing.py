"""Pauses and resumes policies: ``spec.paused``, which stops a policy whatever its mode.

A field of its own, so that applying the policy's file again does not resume it. It is set by server-side apply, so that
another client that applies another value gets a conflict.
"""

import sys
import time
from collections.abc import Sequence

import click
import msgspec

from taintwarden.controller.words.policy_changes import PAUSED_BY_ANNOTATION
from taintwarden.engine import times
from taintwarden.engine.model import Mode
from taintwarden_cli.change.stored_policy import (
    StoredPolicy,
    apply_policy,
    change_policy,
    read_policies,
    read_policy,
    until_unchanged,
)
from taintwarden_cli.cluster_session import REFUSED, ask, confirm, settings_of
from taintwarden_cli.output import printable, write
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_cli.rendering import render, rows

FIELD_MANAGER = "taintwarden-pause"
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


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


async def look_all(session: Session, *, resume: bool) -> Switches:
    """What pausing or resuming every policy would do.

    Raises:
        ClusterError: they cannot be read.

    """
    judge = _resumed if resume else _paused
    return Switches(session.cluster, [judge(one) for one in await read_policies(session)])


class SwitchOutcome(msgspec.Struct):
    """The result for one policy: the message to print, and whether the change failed."""

    told: str
    failed: bool = False


async def switch(session: Session, names: Sequence[str], *, resume: bool, reason: str = "") -> list[SwitchOutcome]:
    """Pause or resume policies. A failure does not stop the others. ``reason``: why they are paused."""
    by = "" if resume else await _told_by(session, reason)
    found = []
    for name in names:
        try:
            told = await (_resume(session, name) if resume else _pause(session, name, by))
            found.append(SwitchOutcome(f"{told} (cluster {session.cluster})"))
        except ClusterError as error:
            found.append(SwitchOutcome(str(error), failed=True))
    return found


async def _pause(session: Session, name: str, by: str) -> str:
    stored = await read_policy(session, name)
    wanted = _paused(stored)
    if wanted.mode is not None:
        body = {"metadata": {"annotations": {PAUSED_BY_ANNOTATION: by}}, "spec": {"paused": True}}
        await apply_policy(session, stored, body, FIELD_MANAGER)
    return wanted.told


async def _resume(session: Session, name: str) -> str:
    async def attempt() -> str:
        stored = await read_policy(session, name)
        wanted = _resumed(stored)
        if wanted.mode is not None:
            body = {"metadata": {"annotations": {PAUSED_BY_ANNOTATION: None}}, "spec": {"paused": None}}
            await change_policy(session, stored, body, FIELD_MANAGER)
        return wanted.told

    return await until_unchanged(attempt)


def _paused(stored: StoredPolicy) -> Switch:
    name, mode = stored.metadata.name, stored.spec.mode
    if stored.spec.paused:
        by = stored.metadata.annotations.get(PAUSED_BY_ANNOTATION)
        told = f"policy {name} is paused already" + (f", by {by}" if by else "")
        return Switch(name, Mode.PAUSED.value, None, told)
    return Switch(name, mode, Mode.PAUSED.value, f"policy {name} is paused; its mode stays {mode}")


def _resumed(stored: StoredPolicy) -> Switch:
    name, mode = stored.metadata.name, stored.spec.mode
    if not stored.spec.paused:
        return Switch(name, mode, None, f"policy {name} is not paused: its mode is {mode}")
    progress = stored.status.condition("Progressing")
    due = f"; {progress.message.removeprefix('paused, ')}" if progress and progress.reason == "Paused" else ""
    others = ", ".join(sorted(stored.metadata.owners("spec", "paused") - {FIELD_MANAGER}))
    again = f"; {others} sets spec.paused, too: remove it there, or the next apply pauses the policy again"
    told = f"policy {name} is in mode {mode} again{due}{again if others else ''}"
    return Switch(name, Mode.PAUSED.value, mode, told)


async def _told_by(session: Session, reason: str) -> str:
    """The text of the annotation. An API server older than 1.28 does not say who the user is."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        user = (await session.review(_REVIEWS, body, _Review, "ask who you are")).status.user_info.username
    except ClusterError:
        user = ""
    told = f"{user or 'an unknown user'} at {times.at(time.time())}"
    return f"{told}: {reason}" if reason else told


class _User(msgspec.Struct):
    username: str = ""


class _ReviewStatus(msgspec.Struct, rename="camel"):
    user_info: _User = msgspec.field(default_factory=_User)


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


def switch_policies(
    policies: tuple[str, ...],
    *,
    resume: bool,
    reason: str = "",
    every: bool,
    dry_run: bool,
    yes: bool,
    **flags: object,
) -> None:
    """Pause or resume policies that are named, or every policy."""
    if bool(policies) == every:
        raise click.UsageError("name policies, or pass --all")
    if dry_run and not every:
        raise click.UsageError("--dry-run belongs to --all")
    settings, verb = settings_of(flags), "resume" if resume else "pause"
    if every:
        found = ask(settings, lambda session: look_all(session, resume=resume))
        write(_table(found))
        if dry_run or not found.changed:
            return
        confirm(f"{verb.capitalize()} these policies?", f"{verb} them", yes=yes)
        policies = tuple(one.policy for one in found.changed)
    outcomes = ask(settings, lambda session: switch(session, policies, resume=resume, reason=reason))
    for one in outcomes:
        if one.failed:
            click.echo(f"taintwarden: {printable(one.told)}", err=True)
        else:
            write(printable(one.told))
    if any(one.failed for one in outcomes):
        sys.exit(REFUSED)


def _table(found: Switches) -> str:
    """What would change in each policy."""
    shown = [(one.policy, one.before, one.mode or "unchanged", one.told) for one in found.policies]
    return f"Cluster {printable(found.cluster)}\n" + render(rows(("POLICY", "MODE", "BECOMES", "THEN"), shown))
