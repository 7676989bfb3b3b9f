"""Decoders of label selectors and topology spread constraints."""

from collections.abc import Mapping, Sequence

from taintwarden.engine.model import SpreadConstraint
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.kube.wire.kinds import SelectorObject, SpreadObject


def label_selector(obj: SelectorObject) -> LabelSelector:
    """Return one selector for ``matchLabels`` and ``matchExpressions``."""
    exact = [Requirement(key, SelectorOperator.IN, (value,)) for key, value in obj.match_labels.items()]
    return LabelSelector((*exact, *obj.match_expressions))


def spread(constraints: Sequence[SpreadObject], labels: Mapping[str, str]) -> tuple[SpreadConstraint, ...]:
    """Decode the topology spread constraints of a pod with these labels, and merge their ``matchLabelKeys``.

    A constraint without a selector counts no pods and is left out. Since 1.34 the API server itself merges
    ``matchLabelKeys`` into the selector of each pod that it creates.
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
