"""A first policy and profile as YAML, with a comment for each choice: what ``init`` prints."""

import json
import sys
import time
from collections.abc import Iterator, Sequence

import click

from taintwarden.api.text import printable
from taintwarden.api.types import GROUP, POLICY_KIND, PROFILE_KIND, VERSION
from taintwarden.cli.cluster_session import ask, settings_of
from taintwarden.cli.failures import fail
from taintwarden.cli.files.first_policy import Beginning, Beginnings, Workload, beginnings
from taintwarden.controller.wording import pods, several
from taintwarden.engine.model import Effect
from taintwarden.rehearsal.reading import read_for_policies

API_VERSION = f"{GROUP}/{VERSION}"
NAMED = 3
"""How many nodes or workloads a comment names."""
FINE, NOTHING = 0, 10


def show(keys: tuple[str, ...], **flags: object) -> None:
    """Carry out ``taintwarden init``."""
    settings, now = settings_of(flags), time.time()
    snapshot = ask(settings, lambda session: read_for_policies(session, now))
    found = beginnings(snapshot, keys)
    if not found.keys:
        left = "; ".join(f"{printable(key)}: {why}" for key, why in found.left_out.items())
        named = f" (left out: {left})" if left else ""
        fail(f"no node has a taint for which to write a policy: name one by --key{named}", NOTHING)
    click.echo(text(found), nl=False)
    sys.exit(FINE)


def text(found: Beginnings) -> str:
    """All documents."""
    lines: list[str] = []
    for key, why in found.left_out.items():
        lines.append(f"# {printable(key)} is left out: {printable(why)}.")
    for one in found.keys:
        lines += ["---", *_policy(one)]
        if one.value_type is not None and one.tolerating and not one.comparing:
            lines += ["---", *_profile(one, one.tolerating[0])]
        else:
            lines += _why_no_profile(one)
    return "\n".join(lines) + "\n"


def _policy(one: Beginning) -> Iterator[str]:
    yield f"# The policy for {printable(one.key)}, which {several(one.nodes, 'node')} {_have(one.nodes)}."
    yield f"apiVersion: {API_VERSION}"
    yield f"kind: {POLICY_KIND}"
    yield "metadata:"
    yield f"  name: {one.name}"
    yield "spec:"
    yield "  # It reports which pods it would evict, in Events and in taintwarden status, and evicts none."
    yield "  # Set Enforce when these are the right ones."
    yield "  mode: DryRun"
    yield "  taints:"
    yield f"    - key: {_quoted(one.key)}"
    if one.effects != (Effect.NO_EXECUTE.value,):
        yield "      # The effects that the nodes have. Without this field it acts on NoExecute only."
        yield f"      effects: [{', '.join(one.effects)}]"
    yield from _values(one)
    yield "      # The scheduler keeps pods off nodes whose value they do not tolerate: else they come back to"
    yield "      # the node that they have to leave. Their namespace needs the label taintwarden.io/inject=true,"
    yield "      # and the webhook has to run."
    yield "      placement: true"
    yield "  timing:"
    yield "    # From a bad value to the eviction, for pods whose tolerations set no grace."
    yield "    violationGraceSeconds: 60"
    yield "    # A value that recovers within this time evicts no pod."
    yield "    stabilizationWindowSeconds: 30"
    yield "  # Rates, the guard against mass evictions and zone health have their defaults: see limits."


def _values(one: Beginning) -> Iterator[str]:
    if one.value_type is None:
        yield "      # Most values are neither integers nor versions: only Equal and Exists tolerate them."
        yield "      valueType: String"
        return
    same = one.lowest == one.highest
    told = f"all are {printable(one.lowest)}" if same else f"from {printable(one.lowest)} to {printable(one.highest)}"
    yield f"      # The type of the values: {told}. Any other value is a mistake, and pods are"
    yield "      # judged by the last valid one."
    if one.invalid:
        named = ", ".join(f"{printable(taint.value) or 'none'} on {name}" for name, taint in one.invalid[:NAMED])
        more = f" and {len(one.invalid) - NAMED} more" if len(one.invalid) > NAMED else ""
        yield f"      # Not of this type: {named}{more}. Correct them first."
    yield f"      valueType: {one.value_type.value}"


def _profile(one: Beginning, workload: Workload) -> Iterator[str]:
    yield f"# {_named(workload)} tolerate every value of {printable(one.key)} now. This decides instead,"
    yield "# without a change to their templates; their own toleration satisfies the scheduler."
    if others := one.tolerating[1:]:
        named = "; ".join(_named(other) for other in others[:NAMED])
        more = f"; and {len(others) - NAMED} more" if len(others) > NAMED else ""
        yield f"# For others copy it: {named}{more}."
    yield f"apiVersion: {API_VERSION}"
    yield f"kind: {PROFILE_KIND}"
    yield "metadata:"
    yield f"  name: {one.name}"
    yield f"  namespace: {workload.namespace}"
    yield "spec:"
    if workload.label is None:
        yield "  # These pods have no label app: all pods of the namespace are selected."
        yield "  podSelector: {}"
    else:
        yield "  podSelector:"
        yield "    matchLabels:"
        yield f"      {workload.label[0]}: {_quoted(workload.label[1])}"
    yield "  tolerations:"
    for effect in one.effects:
        yield f"    - key: {_quoted(one.key)}"
        yield f"      # Pods stay while the value of the node is above this one; {_opposite(one.operator)}: below."
        yield f"      operator: {one.operator}"
        yield f"      # All nodes are, as the lowest has {printable(one.lowest)}: raise it to what the pods need."
        yield f"      value: {_quoted(one.threshold)}"
        yield f"      effect: {effect}"
        yield "      # They leave so many seconds after the value became too low."
        yield "      violationGraceSeconds: 30"


def _why_no_profile(one: Beginning) -> Sequence[str]:
    if one.comparing:
        return (f"# {pods(one.comparing)} compare the value already, so no profile is needed.",)
    if one.tolerating:
        named = "; ".join(_named(other) for other in one.tolerating[:NAMED])
        return (f"# No profile, as the values cannot be compared. It is tolerated by: {named}.",)
    return (
        "# No profile: no pod tolerates the taint. With NoExecute the cluster's own controller evicts such pods",
        "# at once: first give pods a toleration with operator Exists, then write a TolerationProfile.",
    )


def _named(workload: Workload) -> str:
    label = "" if workload.label is None else f" with {workload.label[0]}={workload.label[1]}"
    return f"{pods(workload.pods)} of namespace {workload.namespace}{label}"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _opposite(operator: str) -> str:
    return operator.replace("Gt", "Lt")


def _quoted(value: str) -> str:
    """A scalar that YAML reads as this text, whatever it looks like."""
    return json.dumps(value)
