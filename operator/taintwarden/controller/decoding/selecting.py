"""Which pods an object selects: its label selector, and those of topology spread constraints."""

from collections.abc import Mapping, Sequence

from taintwarden.engine.model import SpreadConstraint
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.kube.wire.kinds import SelectorObject, SpreadObject

MAX_REMEMBERED_WORKLOADS = 1_000
"""A list usually contains the pods of a workload one after another, so a few are enough."""


def label_selector(obj: SelectorObject) -> LabelSelector:
    """``matchLabels`` and ``matchExpressions`` in one."""
    exact = [Requirement(key, SelectorOperator.IN, (value,)) for key, value in obj.match_labels.items()]
    return LabelSelector((*exact, *obj.match_expressions))


def spread(constraints: Sequence[SpreadObject], labels: Mapping[str, str]) -> tuple[SpreadConstraint, ...]:
    """The topology spread constraints of a pod with these labels.

    One without a selector counts no pods, and is left out.

    Since 1.34 the API server itself merges ``matchLabelKeys`` into the selector, for pods that it creates.
    """
    found = []
    for one in constraints:
        if one.label_selector is not None:
            selector = label_selector(one.label_selector)
            merged = (
                Requirement(key, SelectorOperator.IN, (labels[key],)) for key in one.match_label_keys if key in labels
            )
            more = tuple(requirement for requirement in merged if requirement not in selector.requirements)
            found.append(SpreadConstraint(one.topology_key, LabelSelector(selector.requirements + more)))
    return tuple(found)


class Spreads:
    """Makes them once for all pods of a workload that have the same: it is the most expensive part of a pod.

    Args:
        max_workloads: of how many those that were made are remembered.

    """

    def __init__(self, *, max_workloads: int = MAX_REMEMBERED_WORKLOADS) -> None:
        self._max_workloads = max_workloads
        self._known: dict[str, tuple[Sequence[SpreadObject], list[str | None], tuple[SpreadConstraint, ...]]] = {}

    def of(
        self, owner_uid: str, constraints: Sequence[SpreadObject], labels: Mapping[str, str]
    ) -> tuple[SpreadConstraint, ...]:
        """As :func:`spread`."""
        values = [labels.get(key) for one in constraints for key in one.match_label_keys]
        known = self._known.get(owner_uid)
        if known is not None and known[0] == constraints and known[1] == values:
            return known[2]
        if len(self._known) >= self._max_workloads:
            self._known.clear()
        made = spread(constraints, labels)
        self._known[owner_uid] = (constraints, values, made)
        return made
