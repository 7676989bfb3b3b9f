"""Carries out ``explain``: reads a pod or a node, explains it, and exits with the code of the result."""

import sys
import time

import click

from taintwarden_cli.cluster_session import REFUSED, USAGE, ask, settings_of
from taintwarden_cli.data_output import write_answer
from taintwarden_cli.explain import explaining_pods
from taintwarden_cli.explain.explaining import explain
from taintwarden_cli.explain.explanation import Fate
from taintwarden_cli.explain.explanation_table import parts
from taintwarden_cli.output import fail, printable
from taintwarden_cli.rehearsal.files import snapshot_from_files
from taintwarden_cli.rehearsal.manifests import BadInput, read_documents
from taintwarden_cli.rehearsal.reading import read_node, read_pod
from taintwarden_cli.rendering import render

STAYS, LEAVES, SILENT, NOWHERE = 0, 10, 11, 12
"""Exit codes: the pod stays; it has to leave; no operator is at work; no node fits the Pending pod."""
_LEAVING = (Fate.LEAVES, Fate.TERMINATES)


def explain_pod(
    pod: str, pod_namespace: str | None, files: tuple[str, ...], at: float | None, output: str, **flags: object
) -> None:
    """Explain one pod, of a cluster or of files."""
    within, name = _split(pod, pod_namespace)
    if files and (flags["kubeconfig"] or flags["context"]):
        raise click.UsageError("-f reads files and no cluster: leave out --kubeconfig and --context")
    now = time.time() if at is None else at
    settings = settings_of(flags)
    try:
        if files:
            documents = [document for file in files for document in read_documents(file)]
            snapshot = snapshot_from_files(documents, within or "default", name, now)
        else:
            snapshot = ask(settings, lambda session: read_pod(session, settings.namespace, within, name, now))
        answer = explain(snapshot, settings.gates)
    except BadInput as error:
        fail(printable(str(error)), USAGE if files else REFUSED)
    write_answer(answer, output, lambda: render(*parts(answer)))
    nowhere = answer.fate is Fate.PENDING and all(node.refusals for node in answer.nodes)
    sys.exit(SILENT if answer.problem else LEAVES if answer.fate in _LEAVING else NOWHERE if nowhere else STAYS)


def explain_node(name: str, output: str, **flags: object) -> None:
    """Explain the pods of a node."""
    settings, now = settings_of(flags), time.time()
    snapshot = ask(settings, lambda session: read_node(session, settings.namespace, name, now))
    try:
        answer = explaining_pods.explain_pods(snapshot, name, settings.gates)
    except BadInput as error:
        fail(printable(str(error)), REFUSED)
    write_answer(answer, output, lambda: render(*explaining_pods.parts(answer)))
    sys.exit(SILENT if answer.problem else STAYS if answer.drained else LEAVES)


def _split(pod: str, namespace: str | None) -> tuple[str, str]:
    """Namespace and name, from ``NS/NAME`` or from two values. Else that of the context, or of files ``default``."""
    space, slash, name = pod.rpartition("/")
    if slash and namespace and namespace != space:
        raise click.UsageError(f"{pod} and --namespace {namespace} name two namespaces")
    space = space or namespace or ""
    if not name or "/" in space or (slash and not space):
        raise click.UsageError(f"write NAMESPACE/NAME, or NAME with --namespace: {pod!r} is neither")
    return space, name
