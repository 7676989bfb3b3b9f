"""Carries out ``placement remove`` and ``placement labels``."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from taintwarden.controller.words.wording import several
from taintwarden.engine.policy import Mode, TaintSelector
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden.kube.wire.resources import NODES, PODS
from taintwarden_cli.cluster_session import REFUSED, USAGE, ask, confirm, settings_of
from taintwarden_cli.output import fail, listed, printable, write
from taintwarden_cli.rehearsal.changes import parse_removal, parse_taint
from taintwarden_cli.rehearsal.manifests import BadInput
from taintwarden_cli.rehearsal.node_requirements import FullPod, FullPodSpec
from taintwarden_cli.rehearsal.rehearsal import namespaced_name
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_cli.rehearsal.sources import NOT_FINISHED, WORKLOADS, Listing, Subject
from taintwarden_cli.rendering import Lines, render
from taintwarden_placement.admission.annotated_objects import pod_in
from taintwarden_placement.admission.checking import mapping, value_at
from taintwarden_placement.node_labels import neutral_labels, node_labels
from taintwarden_placement.node_labels.names import LabelSubject, subjects_of

FIELD_MANAGER = "taintwarden-placement"
MAX_ROUNDS = 5
PAUSE_SECONDS = 1.0
"""Seconds between two rounds. A write of the operator may be in progress."""
MAX_EXAMPLES = 10
"""Maximum number of objects named; the others are counted."""
_Object = TypeVar("_Object")


# -- labels -----------------------------------------------------------------------------------------------------------


def print_labels(taints: tuple[str, ...]) -> None:
    """Carry out ``taintwarden placement labels``."""
    try:
        found = labels_for(taints)
    except BadInput as error:
        fail(printable(str(error)), USAGE)
    write("\n".join(f"{label}={value}" for label, value in found.items()))


def labels_for(taints: Iterable[str]) -> dict[str, str]:
    """The labels of a node that has the taints ``KEY=VALUE:EFFECT``, and no taint of the keys ``KEY``.
    Raises BadInput if a taint cannot be read, or labels cannot express it.
    """
    written = [parse_taint(taint) for taint in taints if ":" in taint]
    absent = [parse_removal(taint)[0] for taint in taints if ":" not in taint]
    labels = node_labels(written, [TaintSelector(taint.key, placement=True) for taint in written])
    for subject, why in labels.faults:
        raise BadInput(f"{subject}: {why}")
    return {**neutral_labels(absent), **labels.labels}


# -- remove -----------------------------------------------------------------------------------------------------------


class Uses:
    """The objects that use the labels of placement of one key: the key of a taint, or of a label."""

    def __init__(self, key: str) -> None:
        self.keys = (LabelSubject(key), LabelSubject(key, of_label=True))
        self.policies: list[str] = []
        """Policies that place by the key, or list it in ``versionLabels``, with their mode unless it is Enforce."""
        self.nodes: set[str] = set()
        self.users: dict[str, list[str]] = {"Pods": [], "Templates": []}
        """The objects whose node affinity names the labels."""

    def add_policy(self, stored: Mapping[str, Any]) -> None:
        """Add a stored policy, valid or not."""
        spec, name = mapping(stored.get("spec")), namespaced_name(stored)[1]
        taints, labels = spec.get("taints"), spec.get("versionLabels")
        placed = (taint for taint in _as_list(taints) if value_at(taint, "placement") is True)
        used = [LabelSubject(str(value_at(taint, "key"))) for taint in placed]
        used += [LabelSubject(str(label), of_label=True) for label in _as_list(labels)]
        if any(subject in self.keys for subject in used):
            mode = spec.get("mode", Mode.ENFORCE.value)
            self.policies.append(name if mode == Mode.ENFORCE else f"{name} ({mode})")

    def add_node(self, node: NodeObject) -> None:
        """Add a node, if it has the labels."""
        if self._match_key(node.metadata.labels):
            self.nodes.add(node.metadata.name)

    def add_pod(self, pod: FullPod) -> None:
        """Add a pod that has not finished, if its node affinity names the labels."""
        if self._match_key(pod.spec.node_requirements.labels):
            self.users["Pods"].append(f"{pod.metadata.namespace}/{pod.metadata.name}")

    def add_workload(self, listing: Listing, workload: Mapping[str, Any]) -> None:
        """Add a workload, if its template names the labels and is not that of a controller above it."""
        namespace, name = namespaced_name(workload)
        owners = _as_list(value_at(workload, "metadata", "ownerReferences"))
        if any(value_at(owner, "controller") is True for owner in owners):
            return
        template = pod_in(workload, listing.group, listing.kind)
        if self._match_key(msgspec.convert(value_at(template, "spec") or {}, FullPodSpec).node_requirements.labels):
            self.users["Templates"].append(str(Subject(listing.kind, name, namespace)))

    def _match_key(self, labels: Iterable[str]) -> bool:
        return any(subject in self.keys for subject in subjects_of(labels))


async def read_uses(session: Session, key: str) -> Uses:
    """Read all objects that may have or name labels of placement.
    Raises ClusterError if some cannot be read: they may use the labels.
    """
    found = Uses(key)

    async def read(path: str, kind: type[_Object], what: str, add: Callable[[_Object], None], fields: str = "") -> None:
        async for page in session.pages(path, kind, what, fields):
            for obj in page:
                add(obj)

    listings = ((one, source.value, partial(found.add_workload, one)) for source, one in WORKLOADS.items())
    stored, *_ = await asyncio.gather(
        session.policies(dict[str, Any]),
        read(NODES.path, NodeObject, NODES.name, found.add_node),
        read(PODS.path, FullPod, PODS.name, found.add_pod, NOT_FINISHED),
        *(read(listing.path, dict, what, add) for listing, what, add in listings),
    )
    for policy in stored:
        found.add_policy(policy)
    return found


def remove(key: str, force: bool, yes: bool, **flags: object) -> None:
    """Carry out ``taintwarden placement remove``: show what uses the labels, ask, and remove them."""
    settings = settings_of(flags)
    uses = ask(settings, lambda session: read_uses(session, key))
    if uses.policies:
        named, them = ("policy {} uses", "it") if len(uses.policies) == 1 else ("policies {} use", "them")
        words = f"{named.format(', '.join(uses.policies))} the key {key}"
        words += f": remove placement or versionLabels from {them} first"
        fail(printable(words), REFUSED)
    if not uses.nodes:
        fail(printable(f"no node carries labels of placement for {key}"), REFUSED)
    write(render(_describe_uses(key, uses).grid))
    if any(uses.users.values()) and not force:
        fail("the labels are in use: restart what names them, and try again; or use --force", REFUSED)
    confirm("Remove the labels?", "remove the labels", yes=yes)
    nodes = ask(settings, lambda session: remove_labels(session, uses.keys))
    write(printable(f"the labels of {key} were removed from {several(nodes, 'node')}"))


def _describe_uses(key: str, uses: Uses) -> Lines:
    lines = Lines()
    lines.add("Key", key, "bold")
    lines.add("Nodes", str(len(uses.nodes)))
    for label, users in uses.users.items():
        if users:
            lines.add(label, f"{len(users)}: {listed(users, MAX_EXAMPLES)}", "yellow")
    lines.add("Note", "templates of kinds that Kubernetes does not define are not checked")
    return lines


async def remove_labels(session: Session, keys: Sequence[LabelSubject], pause_seconds: float = PAUSE_SECONDS) -> int:
    """Remove the labels of these keys until no node has one. Returns the number of nodes.

    Raises ClusterError if some nodes still carry them.
    """
    changed, problem = set[str](), ""
    for _ in range(MAX_ROUNDS):
        nodes = await _labelled_nodes(session, keys)
        if not nodes:
            return len(changed)
        changed |= nodes.keys()
        problem = await _remove_from_nodes(session, nodes)
        await asyncio.sleep(pause_seconds)
    if not (nodes := await _labelled_nodes(session, keys)):
        return len(changed)
    why = problem or "another client writes them"
    msg = f"labels remain on {several(len(nodes), 'node')}: {why}. Run the command again"
    raise ClusterError(msg)


async def _labelled_nodes(session: Session, keys: Sequence[LabelSubject]) -> dict[str, list[str]]:
    """The nodes with labels of these keys, and these labels."""
    found: dict[str, list[str]] = {}
    async for page in session.pages(NODES.path, NodeObject, NODES.name):
        for node in page:
            if labels := [label for label in node.metadata.labels if any(one in keys for one in subjects_of((label,)))]:
                found[node.metadata.name] = labels
    return found


async def _remove_from_nodes(session: Session, nodes: dict[str, list[str]]) -> str:
    """Remove labels from nodes. Returns why one of the nodes could not be changed; empty if all were."""

    async def change(name: str, labels: list[str]) -> str:
        try:
            path, body = f"{NODES.path}/{quote(name, safe='')}", {"metadata": {"labels": dict.fromkeys(labels)}}
            await session.patch(path, body, f"node {name}", FIELD_MANAGER)
        except ClusterError as error:  # the node may be gone
            return str(error)
        return ""

    return next(filter(None, await asyncio.gather(*(change(*pair) for pair in nodes.items()))), "")


def _as_list(found: object) -> Iterator[Any]:
    yield from found if isinstance(found, list) else ()
