"""TaintPublishers whose key something else has, or that do not publish."""

from collections.abc import Iterator

from taintwarden.api.types import PUBLISHER_KIND
from taintwarden.cli.doctor.check import Check, Found, Severity
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.doctor_snapshot import PublisherObject
from taintwarden.controller.times import moment
from taintwarden.controller.wording import duration
from taintwarden.rehearsal.sources import Source, Subject

PATIENCE_SECONDS = 180.0
"""The publisher renews a status every minute at most; its clock may differ."""
_QUIET = ("DryRun", "KeyTaken")
"""Reasons that are intended, or that other checks report."""


def _shared(context: Context) -> Iterator[Found]:
    first: dict[str, str] = {}
    for one in sorted(context.snapshot.publishers, key=_age):
        owner = first.setdefault(one.spec.key, one.metadata.name)
        if owner != one.metadata.name:
            yield Found(_subject(one), f"names the key {one.spec.key}, which the older publisher {owner} has")


def _read_from_nodes(context: Context) -> Iterator[Found]:
    policies: dict[str, str] = {}
    for policy in context.policies:
        for selector in policy.taints:
            if selector.source is not None:
                policies.setdefault(selector.key, policy.name)
    for one in context.snapshot.publishers:
        if policy_name := policies.get(one.spec.key):
            yield Found(_subject(one), f"names the key {one.spec.key}, which policy {policy_name} reads from nodes")


def _stuck(context: Context) -> Iterator[Found]:
    for one in context.snapshot.publishers:
        if told := _trouble(one, context.snapshot.now):
            yield Found(_subject(one), told)


def _trouble(one: PublisherObject, now: float) -> str:
    if not one.metadata.deletion_timestamp:
        return _silence(one, now) or _refusal(one)
    since = _seconds_since(one.metadata.deletion_timestamp, now)  # its status is not written any more
    told = f"was deleted {duration(since)} ago, and its taints are not removed"
    return f"{told}: its Events say why, if a publisher runs" if since > _patience(one) else ""


def _patience(one: PublisherObject) -> float:
    return PATIENCE_SECONDS + 2 * one.spec.interval_seconds


def _silence(one: PublisherObject, now: float) -> str:
    """Why its status is that of no running publisher; empty if it may be."""
    patience, status = _patience(one), one.status
    age = _seconds_since(one.metadata.creation_timestamp, now)
    if not status.conditions:
        return "has no status: no publisher has looked at it" if age > patience else ""
    if status.observed_generation < one.metadata.generation:
        return "has a status of an earlier version of its spec"
    answers = any(condition.type == "Answered" and condition.status == "True" for condition in status.conditions)
    since_answer = _seconds_since(status.last_answer_time, now)
    if answers and since_answer > patience:
        return f"has a status that is {duration(since_answer)} old: no publisher renews it"
    return ""


def _refusal(one: PublisherObject) -> str:
    """The first condition that does not hold, as the publisher words it."""
    failed = next((condition for condition in one.status.conditions if condition.status != "True"), None)
    return "" if failed is None or failed.reason in _QUIET else f"{failed.type} is {failed.status}: {failed.message}"


def _seconds_since(time: str, now: float) -> float:
    try:
        return now - moment(time)
    except ValueError:
        return 0.0


def _age(one: PublisherObject) -> tuple[str, str]:
    return one.metadata.creation_timestamp, one.metadata.name


def _subject(one: PublisherObject) -> Subject:
    return Subject(PUBLISHER_KIND, one.metadata.name)


CHECKS = (
    Check(
        id="publisher-key-shared",
        severity=Severity.WARNING,
        finds="TaintPublishers that name the key of an older one, with any effects: only the oldest publishes it",
        remedy="choose another key, or delete one of the two",
        needs=(Source.PUBLISHERS,),
        run=_shared,
    ),
    Check(
        id="publisher-key-derived",
        severity=Severity.WARNING,
        finds="TaintPublishers that name a key which a policy reads from nodes (from): they do not publish it",
        remedy="choose another key for the publisher, or remove from in the policy",
        needs=(Source.PUBLISHERS, Source.POLICIES),
        run=_read_from_nodes,
    ),
    Check(
        id="publisher-stuck",
        severity=Severity.WARNING,
        finds="TaintPublishers whose status says that they do not publish, or that no publisher renews it, or whose "
        "deletion does not end",
        remedy="kubectl describe taintpublisher NAME; look at the publisher's log; docs/runbooks/publisher-stuck.md",
        needs=(Source.PUBLISHERS,),
        run=_stuck,
    ),
)
