"""The placement labels of nodes, compared with those that the operator would write now."""

from collections.abc import Iterator, Mapping

from taintwarden.cli.diagnosis.check import Check, Found, Severity
from taintwarden.cli.diagnosis.context import Context
from taintwarden.engine.placement import is_mirror_label
from taintwarden.rehearsal.sources import Source, Subject


def _stale(context: Context) -> Iterator[Found]:
    for name, node in context.nodes.items():
        wanted = context.view.placement_labels(name)
        present = {label: value for label, value in node.node.labels.items() if is_mirror_label(label)}
        told = ", ".join(_differences(present, wanted.labels if wanted else {}))
        if told:
            yield Found(Subject("Node", name), f"its labels for placement are not in step: {told}")


def _inexpressible(context: Context) -> Iterator[Found]:
    for name in context.nodes:
        wanted = context.view.placement_labels(name)
        for subject, reason in wanted.faults if wanted else ():
            yield Found(Subject("Node", name), f"{subject}: {reason}")


def _differences(present: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[str]:
    for label, value in present.items():
        if label not in wanted:
            yield f"{label}={value} is left over"
    for label, value in wanted.items():
        if label not in present:
            yield f"{label}={value} is missing"
        elif present[label] != value:
            yield f"{label} is {present[label]} and should be {value}"


CHECKS = (
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
)
