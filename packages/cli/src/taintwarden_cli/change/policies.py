"""Carries out ``pause``, ``resume`` and ``guard reset``: each reads a policy and changes the version that it has read.

A pause is ``spec.paused``, which stops a policy whatever its mode: applying the policy's file again does not resume it,
and a server-side apply of another value gets a conflict.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import click
import msgspec

from taintwarden.api.status import PolicyStatus
from taintwarden.controller.words.policy_changes import PAUSED_BY_ANNOTATION
from taintwarden.controller.words.wording import pods, without_advice
from taintwarden.engine import rfc3339
from taintwarden.engine.limit_settings import ALL_PERCENT
from taintwarden.engine.limits.refusal import GUARD, ZONE
from taintwarden.engine.policy import Mode, Policy
from taintwarden.kube.calls.own_kinds import GUARD_RESET_ANNOTATION, POLICIES
from taintwarden_cli.cluster_session import REFUSED, ask, confirm, settings_of
from taintwarden_cli.output import printable, write
from taintwarden_cli.rehearsal.session import ChangedMeanwhileError, ClusterError, Session
from taintwarden_cli.rehearsal.shadowing import acting_first, valid_policies, why_first
from taintwarden_cli.rehearsal.snapshot import is_kept_from_enforcing
from taintwarden_cli.rendering import Lines, render

TRIES = 5
"""Maximum number of attempts to patch a policy. Each status that the operator writes changes its version."""
FIELD_MANAGER = "taintwarden-pause"
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class StoredMeta(msgspec.Struct, rename="camel"):
    """``metadata`` of a policy."""

    name: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    annotations: dict[str, str] = {}


class StoredSpec(msgspec.Struct):
    """The fields of ``spec`` that commands change or show, or that say if there is a guard."""

    mode: str = "Enforce"
    paused: bool = False
    limits: dict[str, Any] | None = None
    reclaim: dict[str, Any] | None = None


class StoredPolicy(msgspec.Struct):
    """A TaintEvictionPolicy, valid or not."""

    metadata: StoredMeta
    spec: StoredSpec = msgspec.field(default_factory=StoredSpec)
    status: PolicyStatus = PolicyStatus()

    @property
    def has_guard(self) -> bool:
        """True if the policy has a guard, without which the operator releases no pods."""
        guard = (self.spec.limits or {}).get("guard") or {}
        return self.spec.reclaim is None and guard.get("maxPercent") != ALL_PERCENT


async def read_policy(session: Session, name: str) -> StoredPolicy:
    """Read the policy ``name``. Raises ClusterError if it does not exist, or cannot be read."""
    found = await session.read(f"{POLICIES.path}/{quote(name, safe='')}", StoredPolicy, POLICIES.name)
    if found is None:
        raise ClusterError(f"there is no TaintEvictionPolicy {name} in the cluster at {session.server}")
    return found


async def patch_policy(
    session: Session,
    name: str,
    build: Callable[[StoredPolicy], tuple[Mapping[str, Any] | None, str]],
    manager: str,
    tries: int = TRIES,
) -> str:
    """Patch a policy with the body that ``build`` makes for it, unless that is None. Returns the message of ``build``.

    If another client writes the policy meanwhile, it is read and patched again.

    Raises ClusterError if the policy does not exist, was not changed, or the outcome is unknown.
    """
    stored = await read_policy(session, name)
    body, text = build(stored)
    if body is None:
        return text
    meta = {"uid": stored.metadata.uid, "resourceVersion": stored.metadata.resource_version}
    whole = {**body, "metadata": meta | body["metadata"]}
    try:
        await session.patch(f"{POLICIES.path}/{quote(name, safe='')}", whole, POLICIES.name, manager)
    except ChangedMeanwhileError:
        if tries == 1:
            raise
        return await patch_policy(session, name, build, manager, tries - 1)
    return text


# -- pause and resume -------------------------------------------------------------------------------------------------


def switch_policies(
    policies: tuple[str, ...], *, resume: bool, reason: str = "", every: bool, yes: bool, **flags: object
) -> None:
    """Pause or resume the named policies, or every policy. After a failure the others are still changed."""
    if bool(policies) == every:
        raise click.UsageError("name policies, or pass --all")
    settings, verb = settings_of(flags), "resume" if resume else "pause"
    if every:
        cluster, stored = ask(settings, _list_policies)
        policies = tuple(sorted(policy.metadata.name for policy in stored if policy.spec.paused is resume))
        write(printable(f"Policies to {verb} in {cluster}: {', '.join(policies) or 'none'}"))
        if not policies:
            return
        confirm(f"{verb.capitalize()} these policies?", f"{verb} them", yes=yes)
    if not all(ask(settings, lambda session: _switch(session, policies, resume=resume, reason=reason))):
        sys.exit(REFUSED)


async def _list_policies(session: Session) -> tuple[str, list[StoredPolicy]]:
    return session.cluster, await session.policies(StoredPolicy)


async def _switch(session: Session, names: tuple[str, ...], *, resume: bool, reason: str) -> list[bool]:
    """Pause or resume policies, and print each result. Returns True for each success, False for each failure."""
    by, found = "" if resume else await _author(session, reason), []
    build = _resumed if resume else lambda one: _paused(one, by)
    for name in names:
        try:
            text = await patch_policy(session, name, build, FIELD_MANAGER)
            write(printable(f"{text} (cluster {session.cluster})"))
            found.append(True)
        except ClusterError as error:
            click.echo(f"taintwarden: {printable(str(error))}", err=True)
            found.append(False)
    await _warn_of_others(session, names, resume=resume)
    return found


async def _warn_of_others(session: Session, names: tuple[str, ...], *, resume: bool) -> None:
    """Warn of policies that act first on the same taints, so that the change has no effect. Needs the right to list."""
    with contextlib.suppress(ClusterError):
        stored = await session.policies(dict[str, Any])
        policies = valid_policies(one for one in stored if not is_kept_from_enforcing(one))
        for policy in (one for one in policies if one.name in names):
            for other, key in acting_first(policy, policies):
                if resume or other.mode is Mode.ENFORCE:
                    write(printable(f"{why_first(policy, other, key)}: {_consequence(policy, other, resume=resume)}"))


def _consequence(policy: Policy, other: Policy, *, resume: bool) -> str:
    """The consequence for pods that both policies select, and how to change it."""
    if not resume:
        return f"it still evicts pods that both select. To stop it: taintwarden pause {other.name}"
    if other.mode is Mode.ENFORCE:
        edit = f"kubectl edit taintevictionpolicy {policy.name}"
        return f"it evicts pods that both select, {policy.name} does not. To change that: {edit}"
    to = "taintwarden resume" if other.mode is Mode.PAUSED else "kubectl edit taintevictionpolicy"
    return f"its mode is {other.mode}, so pods that both select stay. To change that: {to} {other.name}"


def _paused(stored: StoredPolicy, by: str) -> tuple[Mapping[str, Any] | None, str]:
    name = stored.metadata.name
    if stored.spec.paused:
        before = stored.metadata.annotations.get(PAUSED_BY_ANNOTATION)
        return None, f"policy {name} is paused already" + (f", by {before}" if before else "")
    body = {"metadata": {"annotations": {PAUSED_BY_ANNOTATION: by}}, "spec": {"paused": True}}
    return body, f"policy {name} is paused; its mode stays {stored.spec.mode}"


def _resumed(stored: StoredPolicy) -> tuple[Mapping[str, Any] | None, str]:
    name, mode, progress = stored.metadata.name, stored.spec.mode, stored.status.message_if("Progressing", "Paused")
    if not stored.spec.paused:
        return None, f"policy {name} is not paused: its mode is {mode}"
    due = f"; it was {progress}" if progress else ""
    body = {"metadata": {"annotations": {PAUSED_BY_ANNOTATION: None}}, "spec": {"paused": None}}
    return body, f"policy {name} is in mode {mode} again{due}"


async def _author(session: Session, reason: str) -> str:
    """The text of the annotation that names the user. API servers before 1.28 do not say who the user is."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        review = await session.review(_REVIEWS, body, "ask who you are")
    except ClusterError:
        review = {}
    user = review.get("userInfo", {}).get("username") or "an unknown user"
    return f"{user} at {rfc3339.at(time.time())}" + (f": {reason}" if reason else "")


# -- guard reset ------------------------------------------------------------------------------------------------------


def show_and_reset(policy: str, yes: bool, **flags: object) -> None:
    """Carry out ``taintwarden guard reset``: show what is held, ask, and request its release."""
    settings = settings_of(flags)
    cluster, found = ask(settings, lambda session: read_halted_policy(session, policy))
    write(_review_text(cluster, found))
    confirm("Release them?", "release them", yes=yes)

    def build(stored: StoredPolicy) -> tuple[Mapping[str, Any], str]:
        if check_halted(stored) != check_halted(found):
            raise ClusterError(f"policy {policy} or its guard has changed since you were asked: run the command again")
        text = f"the operator of {cluster} is asked to release what is held of policy {policy}"
        return {"metadata": {"annotations": {GUARD_RESET_ANNOTATION: str(stored.metadata.generation)}}}, text

    write(printable(ask(settings, lambda session: patch_policy(session, policy, build, "taintwarden"))))


async def read_halted_policy(session: Session, name: str) -> tuple[str, StoredPolicy]:
    """Read a policy to reset, and the name of its cluster. Raises ClusterError as :func:`check_halted` does."""
    stored = await read_policy(session, name)
    check_halted(stored)
    return session.cluster, stored


def check_halted(stored: StoredPolicy) -> tuple[int, str | None]:
    """Check that the guard has tripped, or that all nodes are unhealthy. Returns the generation, and when it tripped.
    Raises ClusterError if neither is the case, or the operator has not read the newest version.
    """
    name, generation, status = stored.metadata.name, stored.metadata.generation, stored.status
    if generation != status.observed_generation:
        seen = f"the operator has not observed generation {generation} of policy {name} yet"
        raise ClusterError(f"{seen}: try again in some seconds, or check that it runs")
    if not stored.has_guard:
        raise ClusterError(f"policy {name} has no guard, so there is nothing to reset")
    tripped_at, condition = status.guard.tripped_at if status.guard else None, status.condition("GuardTripped")
    if tripped_at is None and (condition is None or condition.reason != "AllNodesUnhealthy"):
        raise ClusterError(f"policy {name} holds no pods: its guard has not tripped, and none waits for healthy nodes")
    return generation, tripped_at


def _review_text(cluster: str, found: StoredPolicy) -> str:
    """Text that users review before they confirm the evictions. Pods that are not due yet are released, too."""
    (generation, tripped_at), status, lines = check_halted(found), found.status, Lines()
    held = sum(limit.pods for limit in status.limits if limit.limit in (GUARD, ZONE))  # zones refuse before the guard
    lines.add("Cluster", cluster)
    lines.add("Policy", f"{found.metadata.name}, generation {generation}", "bold")
    lines.add("Tripped", None if (at := rfc3339.read_time(tripped_at)) is None else rfc3339.at(at))
    would = status.message_if("Progressing", "Paused").removeprefix("paused, ")  # no limit holds pods meanwhile
    due = f"{pods(held)} due now" + ("" if tripped_at else ", because all nodes are unhealthy")
    lines.add("Held", would or due, "yellow")
    lines.add("Mode", None if found.spec.paused else status.message_if("Enforcing", "False"), "yellow")
    if found.spec.paused:
        lines.add("Paused", f"none is evicted before you resume it: taintwarden resume {found.metadata.name}", "yellow")
    if status.guard is not None and tripped_at:
        cause = status.guard.cause
        lines.add("Cause", f"when it tripped: {cause}" if cause else "not reported yet")
    says = without_advice(status.message_if("GuardTripped", "True"), found.metadata.name)
    lines.add("Message", says.partition(". Only if you want")[0])  # the rest advises this command
    return render(lines.grid)
