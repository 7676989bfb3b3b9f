"""The placement labels of nodes: compared with those that the operator would write now, and what needs them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from taintwarden.cli.doctor.check import Check, Found, Severity, about
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.injected_namespaces import injects, mutating, opted_in
from taintwarden.controller.wording import pods as count_of_pods
from taintwarden.engine.machine import NodeView
from taintwarden.engine.placement import Kept, NodeLabels, is_mirror_label, keys_of
from taintwarden.placement.admission.placing import placed_keys, published_labels
from taintwarden.rehearsal.places import Place
from taintwarden.rehearsal.returning import REMEDY, Returning
from taintwarden.rehearsal.sources import EVALUATION, OWNERS, TEMPLATES, Source, Subject

_KEY = "Key"
"""The kind of subject of findings about a key as a whole."""
_VOLUME = "PersistentVolume"


def _stale(context: Context) -> Iterator[Found]:
    for name, node in context.nodes.items():
        wanted = context.view.placement_labels(name)
        told = ", ".join(_differences(node.node.labels, wanted)) if wanted else ""
        if told:
            yield Found(Subject("Node", name), f"its labels for placement are not in step: {told}")


def _inexpressible(context: Context) -> Iterator[Found]:
    for name in context.nodes:
        wanted = context.view.placement_labels(name)
        for subject, reason in wanted.faults if wanted else ():
            yield Found(Subject("Node", name), f"{subject}: {reason}")


def _differences(labels: Mapping[str, str], wanted: NodeLabels) -> Iterator[str]:
    for label in wanted.owned:
        value, present = wanted.labels.get(label), labels.get(label)
        if value is None and present is not None:
            yield f"{label}={present} is left over"
        elif value is not None and present is None:
            yield f"{label}={value} is missing"
        elif value != present:
            yield f"{label} is {present} and should be {value}"


def _mismatch(context: Context) -> Iterator[Found]:
    """A kubelet checks the node affinity of running pods again when it restarts."""
    for group in context.running:
        place = group.shape.place
        if not any(map(is_mirror_label, place.labels)):
            continue
        for name, count in sorted(group.pods.items()):
            node = context.nodes.get(name)
            if node is not None and not _matches(context, place, node):
                message = f"do not match the labels of their node {name} any more: a kubelet that restarts ends them"
                yield Found(group.subject, message, pods=count)


def _matches(context: Context, place: Place, node: NodeView) -> bool:
    """Whether pods match their node, or will as soon as the operator has written its labels."""
    name, labels = node.node.name, node.node.labels
    wanted = context.view.placement_labels(name)
    return place.fits(name, labels) or (wanted is not None and place.fits(name, wanted.on(labels)))


def _ended(context: Context) -> Iterator[Found]:
    users = _users(context)
    for kept in sorted(context.carried - _active(context)):
        if kept.of_label and any(one.subject.kind == _VOLUME for one in users.get(kept, ())):
            continue  # it cannot be removed: see placement-volumes
        told = "no policy places by it, or repeats its versions, and nodes carry its labels"
        remove = f"taintwarden placement remove {kept.key}"
        named = users.get(kept, [])
        pods = sum(one.pods for one in named)
        objects = list(dict.fromkeys(str(one.subject) for one in named))
        if objects:
            more = f" and {len(objects) - 10} more" if len(objects) > 10 else ""
            told += f"; these name them: {', '.join(objects[:10])}{more}"
        remedy = f"restart the workloads that name them, then: {remove}" if objects else remove
        yield Found(Subject(_KEY, kept.key), told, remedy, pods=pods)


def _active(context: Context) -> set[Kept]:
    """The keys that policies use now."""
    enforced = [policy for policy in context.policies if policy.places]
    of_labels = (Kept(key, of_label=True) for key in published_labels(enforced))
    return {*map(Kept, placed_keys(enforced)), *of_labels}


class _User(NamedTuple):
    """An object that names labels, and how many pods that are."""

    subject: Subject
    pods: int = 0


def _users(context: Context) -> dict[Kept, list[_User]]:
    """What names the labels of each key."""
    found: dict[Kept, list[_User]] = {}

    def add(labels: Iterable[str], user: _User) -> None:
        for kept in keys_of(labels):
            found.setdefault(kept, []).append(user)

    for group in context.groups:
        add(group.shape.place.labels, _User(group.subject, group.count))
    for pods in context.snapshot.pending:
        add(pods.pod.spec.place.labels, _User(pods.subject, pods.count))
    for volume in context.snapshot.volumes:
        add(volume.place.labels, _User(Subject(_VOLUME, volume.metadata.name)))
    return found


def _volumes(context: Context) -> Iterator[Found]:
    published, carrying = published_labels(context.policies), context.carried
    for volume in context.snapshot.volumes:
        for key in [one.key for one in keys_of(volume.place.labels) if one.of_label and one.key not in published]:
            is_there = Kept(key, of_label=True) in carrying
            now = (
                "nodes keep its number until it is removed" if is_there else "no node has its number: it cannot be used"
            )
            message = f"its node affinity, which Kubernetes does not change, needs the version of label {key}: {now}"
            subject = Subject(_VOLUME, volume.metadata.name)
            remedy = f"list {key} under versionLabels of a policy"
            yield Found(subject, message, remedy, None if is_there else Severity.ERROR)


def _too_large(context: Context) -> Iterator[Found]:
    for group in context.groups:
        if group.template and injects(context, group):
            problem = context.written(group).written.problem
            if problem:
                yield about(group, f"its pods are not placed: {problem}")


def _spread(context: Context) -> Iterator[Found]:
    """Without node affinity, a node that an extended toleration excludes counts as a domain: the native one holds."""
    for group in context.groups:
        if not group.shape.honors_taints:
            continue
        written = context.written(group).written
        placed = {*written.keys, *(written.wanted.keys if injects(context, group) else ())}
        keys = [key for key in written.compared_keys if key not in placed]
        if keys:
            yield about(
                group,
                f"nodeTaintsPolicy Honor evaluates native tolerations: nodes whose value of {', '.join(keys)} is not "
                f"tolerated count as domains, and pods may stay Pending ({count_of_pods(group.count)} now)",
            )


def _unplaced(context: Context) -> Iterator[Found]:
    injected = opted_in(context) if mutating(context) is not None or not context.knows(Source.MUTATING) else []
    has_extender = context.snapshot.has_extender
    returning = Returning(context.view, context.gates, frozenset(injected), has_extender=has_extender)
    for group in context.groups:
        if group.pod_class.daemon_set or group.subject.kind == "Pod":
            continue  # they are not replaced on another node
        keys = returning.keys(group.pod_class, group.shape.place)
        if keys:
            told = ", ".join(keys)
            yield about(group, f"the scheduler does not compare {told}: evicted pods may come back to the same node")


CHECKS = (
    Check(
        id="placement-missing",
        severity=Severity.WARNING,
        finds="workloads whose evicted pods the scheduler may put on the same node again, as it reads no comparison",
        remedy=f"{REMEDY}: docs/placement.md, docs/scheduling.md",
        needs=EVALUATION,
        uses=(*TEMPLATES, Source.MUTATING, Source.OPERATOR),
        run=_unplaced,
    ),
    Check(
        id="placement-labels",
        severity=Severity.WARNING,
        finds="nodes whose labels for the scheduler do not say what their taints and version labels say (placement)",
        remedy="the operator writes them while it leads: look at its log, and at its right to patch nodes",
        needs=(Source.NODES, Source.POLICIES),
        run=_stale,
    ),
    Check(
        id="placement-inexpressible",
        severity=Severity.WARNING,
        finds="taints with placement, and version labels, whose values labels cannot express: such nodes are left out",
        remedy="use values that the scheduler can compare: integers, or versions of ordinary length",
        needs=(Source.NODES, Source.POLICIES),
        run=_inexpressible,
    ),
    Check(
        id="placement-mismatch",
        severity=Severity.WARNING,
        finds="running pods that do not match their node any more: the kubelet ends them when it restarts",
        remedy="let the policy evict them, or delete them one by one, before a kubelet restarts; or raise the value",
        needs=EVALUATION,
        uses=OWNERS,
        run=_mismatch,
    ),
    Check(
        id="placement-ended",
        severity=Severity.INFO,
        finds="keys by which no policy places any more, whose labels stay on nodes for what names them",
        remedy="restart the workloads that name them, then: taintwarden placement remove KEY",
        needs=EVALUATION,
        uses=(*TEMPLATES, Source.PENDING, Source.VOLUMES),
        run=_ended,
    ),
    Check(
        id="placement-volumes",
        severity=Severity.WARNING,
        finds="PersistentVolumes whose node affinity needs the version of a label that no policy lists",
        remedy="list the label under versionLabels of a policy",
        needs=(Source.NODES, Source.POLICIES, Source.VOLUMES),
        run=_volumes,
    ),
    Check(
        id="placement-too-large",
        severity=Severity.WARNING,
        finds="templates whose pods are not placed, because that takes more than 64 nodeSelectorTerms",
        remedy="use fewer nodeSelectorTerms in the template, or fewer comparisons for one key",
        needs=(*EVALUATION, Source.MUTATING),
        uses=TEMPLATES,
        run=_too_large,
    ),
    Check(
        id="spread-honors-taints",
        severity=Severity.WARNING,
        finds="topology spread with nodeTaintsPolicy Honor that counts nodes which an extended toleration excludes",
        remedy="set nodeTaintsPolicy to Ignore and select the nodes by affinity, or use placement",
        needs=EVALUATION,
        uses=(*TEMPLATES, Source.MUTATING),
        run=_spread,
    ),
)
