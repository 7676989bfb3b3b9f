"""Taints that policies read from nodes: values that are not there, or that another taint hides."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity
from taintwarden.cli.doctor.context import Context
from taintwarden.controller.wording import no_value
from taintwarden.engine.derived import derivations
from taintwarden.rehearsal.sources import Source, Subject


def _missing(context: Context) -> Iterator[Found]:
    for policy in context.policies:
        selected = [context.nodes[name].node for name in context.selecting(policy)]
        for selector in policy.taints:
            source = selector.source
            if source is not None and not any(source in node.values for node in selected):
                told = no_value(str(source), selector.key, len(selected))
                yield Found(Subject("TaintEvictionPolicy", policy.name), told)


def _hidden(context: Context) -> Iterator[Found]:
    derived = derivations(context.policies)
    for name, node in context.nodes.items():
        for taint, _ in node.taints:
            one = derived.get(taint.key)
            if not taint.source and one is not None and taint.effect in one.effects and one.source in node.node.values:
                told = (
                    f"{taint} is in its spec, and counts instead of {node.node.values[one.source].text} from {one.text}"
                )
                yield Found(Subject("Node", name), told)


CHECKS = (
    Check(
        id="source-without-value",
        severity=Severity.WARNING,
        finds="policies that read a taint from nodes (from), where no node that they select has such a value",
        remedy="compare it with: kubectl get nodes -o yaml; a condition is there once a component sets it",
        needs=(Source.POLICIES, Source.NODES),
        run=_missing,
    ),
    Check(
        id="source-hidden",
        severity=Severity.WARNING,
        finds="taints in the spec of a node that hide what a policy reads from the node for the same key and effect",
        remedy="kubectl taint node NODE KEY:EFFECT-, if the value that the node carries is meant",
        needs=(Source.POLICIES, Source.NODES),
        run=_hidden,
    ),
)
