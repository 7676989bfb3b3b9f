"""Pods whose node Kueue chooses (topology-aware scheduling), and what it makes of their tolerations.

What is said here of Kueue was read in its versions 0.17 to 0.19. Its node controller reads the native tolerations in
the workload's template, not those of the pods, and gives the place of a pod that ended to another node only if it
regards the node as failed.
"""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity, about
from taintwarden.cli.doctor.checks.usage import comparisons, texts
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.injected_namespaces import injects
from taintwarden.cli.doctor.inventory import PodGroup
from taintwarden.engine.model import Operator, Taint
from taintwarden.engine.operators import applies
from taintwarden.engine.scheduling import REPELLING
from taintwarden.rehearsal.returning import compared_taints
from taintwarden.rehearsal.sources import EVALUATION, TEMPLATES, Source

_HOSTNAME = "kubernetes.io/hostname"
_ADMITTED_EACH = ("Deployment", "ReplicaSet", "Pod")
"""Kinds whose pods are workloads of their own: Kueue admits one that replaces another by its own affinity."""
_PAGE = "docs/neighbours.md#kueue"


def _compares(context: Context) -> Iterator[Found]:
    for group in context.groups:
        if group.shape.kueue_assigns:
            native = comparisons(group.pod_class.tolerations.native)
            if stored := [one for one in native if one.effect in ("", *REPELLING)]:
                told = "once its pods have ended, a node with the taint counts as failed, whatever the value"
                yield about(group, f"{texts(stored)}: {told}")


def _pinned(context: Context) -> Iterator[Found]:
    for group in context.groups:
        if not _is_assigned_for_good(group):
            continue
        taints = [one for one in compared_taints(context.view, group.pod_class) if _is_ignored(context, group, one)]
        if keys := sorted({one.key for one in taints}):
            message = f"for Kueue a node is not failed because of {', '.join(keys)}: it assigns the same node again"
            yield about(group, message)


def _is_assigned_for_good(group: PodGroup) -> bool:
    """Whether a pod that replaces another gets the same node."""
    if not group.shape.kueue_assigns or group.subject.kind in _ADMITTED_EACH:
        return False
    return group.template or any(label == _HOSTNAME for label, _ in group.shape.place.selector)


def _is_ignored(context: Context, group: PodGroup, taint: Taint) -> bool:
    """Whether Kueue knows nothing of the taint, or takes it for tolerated without end."""
    if taint.source:
        return True
    if not group.template and injects(context, group):
        return False  # the webhook may have added the toleration, which Kueue does not see
    endless = (one for one in group.pod_class.tolerations.native if one.toleration_seconds is None)
    return any(one.operator == Operator.EXISTS and applies(one, taint) for one in endless)


CHECKS = (
    Check(
        id="kueue-native-comparison",
        severity=Severity.WARNING,
        finds="pods that Kueue assigns to nodes, and that compare natively: it compares when it admits, and not later",
        remedy=f"use a taint that only nodes to be left have, or accept it: {_PAGE}",
        needs=(Source.PODS,),
        uses=TEMPLATES,
        run=_compares,
    ),
    Check(
        id="kueue-pinned",
        severity=Severity.WARNING,
        finds="pods that Kueue assigns to the node again from which they are evicted: they come back, or stay Pending",
        remedy=f"give Kueue a taint that the template does not tolerate, or for a limited time only: {_PAGE}",
        needs=EVALUATION,
        uses=(*TEMPLATES, Source.MUTATING),
        run=_pinned,
    ),
)
