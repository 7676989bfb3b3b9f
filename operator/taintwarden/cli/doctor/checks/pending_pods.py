"""Pods for which the scheduler found no node, by what has to be done about them."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity
from taintwarden.cli.doctor.checks.nowhere import unplaceable
from taintwarden.cli.doctor.context import Context
from taintwarden.rehearsal.obstacles import ObstacleKind
from taintwarden.rehearsal.sources import EVALUATION, OWNERS, TEMPLATES, Source

_DAEMON_SET = "DaemonSet"
_REST = (None, ObstacleKind.TAINT, ObstacleKind.AFFINITY, ObstacleKind.VOLUME, ObstacleKind.INEXPRESSIBLE)
"""Kinds that are no fault of what was written, or that other checks report node by node."""


def of_kind(context: Context, *kinds: ObstacleKind | None) -> Iterator[Found]:
    """The pods that wait because of these kinds of obstacles."""
    for pods, found in context.pending:
        if found.kind in kinds and not found.has_node and not _waits(pods.subject.kind, found.kind):
            yield Found(pods.subject, found.reason, found.remedy, pods=pods.count)


def _nowhere(context: Context) -> Iterator[Found]:
    """The others; without those that are found by their template."""
    found = list(of_kind(context, *_REST))
    known = {one.subject for one in unplaceable(context)} if found else set()
    yield from (one for one in found if one.subject not in known)


def _waiting(context: Context) -> Iterator[Found]:
    for pods, found in context.pending:
        if not found.has_node and _waits(pods.subject.kind, found.kind):
            yield Found(pods.subject, found.reason, found.remedy, pods=pods.count)


def _waits(owner: str, kind: ObstacleKind | None) -> bool:
    """Whether it is a pod of a DaemonSet that its node does not suit."""
    return owner == _DAEMON_SET and kind in _REST


_NEEDS = (*EVALUATION, Source.PENDING)
CHECKS = (
    Check(
        id="pending-unwritten",
        severity=Severity.WARNING,
        finds="Pending pods that no node matches, since what restricts them to nodes could not be written",
        remedy="correct what the finding names, then create the pods again",
        needs=_NEEDS,
        uses=OWNERS,
        run=lambda context: of_kind(context, ObstacleKind.IMPOSSIBLE),
    ),
    Check(
        id="pending-outdated",
        severity=Severity.WARNING,
        finds="Pending pods with a node affinity of an earlier policy, profile or version: it is never changed",
        remedy="delete the pods, so that their controller creates them again",
        needs=_NEEDS,
        uses=OWNERS,
        run=lambda context: of_kind(context, ObstacleKind.OUTDATED),
    ),
    Check(
        id="pending-unpublished",
        severity=Severity.WARNING,
        finds="Pending pods that compare the version of a label which no policy lists",
        remedy="list the label under versionLabels of a policy",
        needs=_NEEDS,
        uses=OWNERS,
        run=lambda context: of_kind(context, ObstacleKind.UNPUBLISHED),
    ),
    Check(
        id="pending-nowhere",
        severity=Severity.WARNING,
        finds="Pending pods that no node may get by taints and labels, and whose template does not show it",
        remedy="add a node, correct a value or label, or loosen the toleration; resources were not looked at",
        needs=_NEEDS,
        uses=(*TEMPLATES, Source.MUTATING),
        run=_nowhere,
    ),
    Check(
        id="daemonset-waits",
        severity=Severity.WARNING,
        finds="pods of DaemonSets that wait for a node which does not suit them: a rolling update waits, too",
        remedy="give the template node affinity (placement), or raise updateStrategy.rollingUpdate.maxUnavailable",
        needs=_NEEDS,
        uses=OWNERS,
        run=_waiting,
    ),
)
