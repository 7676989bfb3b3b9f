"""Templates of DaemonSets: their controller reads nothing else, so what pods get later is too late."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity, about
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.injected_namespaces import injects
from taintwarden.cli.doctor.inventory import PodGroup
from taintwarden.engine.model import Operator
from taintwarden.engine.placement import Kept
from taintwarden.placement.admission.own_objects import INJECT
from taintwarden.rehearsal.sources import EVALUATION, Source

_KIND = "DaemonSet"


def _incomplete(context: Context) -> Iterator[Found]:
    for group in context.groups:
        if group.template and group.subject.kind == _KIND:
            told = _fault(context, group)
            if told:
                yield about(group, told, _remedy(context, group))


def _fault(context: Context, group: PodGroup) -> str:
    written = context.written(group).written
    compared = written.compared_keys
    native = group.pod_class.tolerations.native
    if injects(context, group) and (missing := written.missing_natives()):
        keys = ", ".join(dict.fromkeys(str(one["key"]) for one in missing))
        return (
            f"its template has no native toleration for {keys}: its controller creates no pod on nodes with the taint"
        )
    entered = [
        key for key in compared if any(one.key in ("", key) and one.operator == Operator.EXISTS for one in native)
    ]
    if unplaced := [key for key in entered if key not in written.keys]:
        return f"nothing in its template keeps pods off nodes whose value of {', '.join(unplaced)} is not tolerated"
    gone = [key for key in written.ended() if Kept(key) not in context.carried]
    if outdated := [*written.outdated(), *gone]:
        return f"the node affinity of its template is not the one that it would get now, for {', '.join(outdated)}"
    return ""


def _remedy(context: Context, group: PodGroup) -> str:
    restart = f"kubectl rollout restart daemonset/{group.subject.name} -n {group.subject.namespace}"
    placed = {selector.key for policy in context.policies for selector in policy.taints if selector.placement}
    missing = [key for key in context.written(group).written.compared_keys if key not in placed]
    steps = [f"set placement for {', '.join(missing)} in a policy"] if missing else []
    if not injects(context, group):
        steps.append(f"kubectl label namespace {group.subject.namespace} {INJECT}=true")
    return "; then ".join([*steps, restart])


CHECKS = (
    Check(
        id="daemonset-incomplete",
        severity=Severity.WARNING,
        finds="templates of DaemonSets without what extended tolerations need: their controller reads nothing else",
        remedy="restart the DaemonSet in a namespace with injection: the webhook then completes its template",
        needs=(*EVALUATION, Source.MUTATING, Source.DAEMON_SETS),
        run=_incomplete,
    ),
)
