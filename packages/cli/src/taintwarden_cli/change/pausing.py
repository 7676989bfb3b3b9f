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
from taintwarden.controller.words.wording import no_longer_paused
from taintwarden.engine import rfc3339
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

FIELD_MANAGER = "taintwarden-pause"
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


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
    if stored.spec.paused:
        before = stored.metadata.annotations.get(PAUSED_BY_ANNOTATION)
        return f"policy {name} is paused already" + (f", by {before}" if before else "")
    body = {"metadata": {"annotations": {PAUSED_BY_ANNOTATION: by}}, "spec": {"paused": True}}
    await apply_policy(session, stored, body, FIELD_MANAGER)
    return f"policy {name} is paused; its mode stays {stored.spec.mode}"


async def _resume(session: Session, name: str) -> str:
    async def attempt() -> str:
        stored = await read_policy(session, name)
        if not stored.spec.paused:
            return f"policy {name} is not paused: its mode is {stored.spec.mode}"
        body = {"metadata": {"annotations": {PAUSED_BY_ANNOTATION: None}}, "spec": {"paused": None}}
        await change_policy(session, stored, body, FIELD_MANAGER)
        return _resumed(stored)

    return await until_unchanged(attempt)


def _resumed(stored: StoredPolicy) -> str:
    progress = stored.status.condition("Progressing")
    due = ""
    if progress and progress.reason == "Paused":
        due = f"; {no_longer_paused(progress.message, enforces=stored.spec.mode == Mode.ENFORCE)}"
    others = ", ".join(sorted(stored.metadata.owners("spec", "paused") - {FIELD_MANAGER}))
    again = f"; {others} sets spec.paused, too: remove it there, or the next apply pauses the policy again"
    return f"policy {stored.metadata.name} is in mode {stored.spec.mode} again{due}{again if others else ''}"


async def _told_by(session: Session, reason: str) -> str:
    """The text of the annotation. An API server older than 1.28 does not say who the user is."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        user = (await session.review(_REVIEWS, body, _Review, "ask who you are")).status.user_info.username
    except ClusterError:
        user = ""
    told = f"{user or 'an unknown user'} at {rfc3339.at(time.time())}"
    return f"{told}: {reason}" if reason else told


class _User(msgspec.Struct):
    username: str = ""


class _ReviewStatus(msgspec.Struct, rename="camel"):
    user_info: _User = msgspec.field(default_factory=_User)


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


async def _look(session: Session) -> tuple[str, list[StoredPolicy]]:
    return session.cluster, await read_policies(session)


def switch_policies(
    policies: tuple[str, ...],
    *,
    resume: bool,
    reason: str = "",
    every: bool,
    yes: bool,
    **flags: object,
) -> None:
    """Pause or resume policies that are named, or every policy."""
    if bool(policies) == every:
        raise click.UsageError("name policies, or pass --all")
    settings, verb = settings_of(flags), "resume" if resume else "pause"
    if every:
        cluster, stored = ask(settings, _look)
        policies = tuple(one.metadata.name for one in stored if one.spec.paused is resume)
        write(printable(f"Policies to {verb} in {cluster}: {', '.join(policies) or 'none'}"))
        if not policies:
            return
        confirm(f"{verb.capitalize()} these policies?", f"{verb} them", yes=yes)
    outcomes = ask(settings, lambda session: switch(session, policies, resume=resume, reason=reason))
    for one in outcomes:
        if one.failed:
            click.echo(f"taintwarden: {printable(one.told)}", err=True)
        else:
            write(printable(one.told))
    if any(one.failed for one in outcomes):
        sys.exit(REFUSED)
