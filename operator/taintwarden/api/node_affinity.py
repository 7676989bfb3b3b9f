"""Node affinity with versions: the annotation ``taintwarden.io/node-affinity``, and a profile's ``nodeAffinity``.

It has the structure of ``spec.affinity.nodeAffinity``. One invalid requirement makes all of it invalid: if only that
was dropped, a pod could run on nodes that it must not use.
"""

from collections.abc import Iterator
from typing import Annotated

from msgspec import UNSET, Meta

from taintwarden.api.annotations import bounded, read_json
from taintwarden.api.decode import decode
from taintwarden.engine.affinity import (
    COMPARING_NODE_OPERATORS,
    NOWHERE,
    SEMVER_NODE_OPERATORS,
    NodeAffinity,
    NodeOperator,
    NodeRequirement,
    Preference,
    Term,
)
from taintwarden.engine.numeric import explain_integer
from taintwarden.engine.versions import explain_version
from taintwarden.fields.field_errors import FieldError, forbidden
from taintwarden.fields.names import check_label_value
from taintwarden.fields.spec import LabelKey, Spec, checked

AFFINITY_ANNOTATION = "taintwarden.io/node-affinity"
PATH = f"metadata.annotations[{AFFINITY_ANNOTATION}]"
MAX_TERMS = 16
MAX_REQUIREMENTS = 16
"""Maximum number of requirements of one term."""
MAX_VALUES = 32
MAX_VALUE_LENGTH = 128
"""Maximum length of a value. Values of labels have at most 63 characters."""
_TERM = '{"matchExpressions": [{"key": "example.com/kubelet", "operator": "SemverGt", "values": ["1.31.99"]}]}'
_EXAMPLE = f'write for example {{"requiredDuringSchedulingIgnoredDuringExecution": {{"nodeSelectorTerms": [{_TERM}]}}}}'


class NodeRequirementSpec(Spec, frozen=True):
    """An entry of ``matchExpressions``."""

    key: LabelKey
    operator: NodeOperator
    values: Annotated[tuple[Annotated[str, Meta(max_length=MAX_VALUE_LENGTH)], ...], Meta(max_length=MAX_VALUES)] = ()


def check_node_requirement(requirement: NodeRequirementSpec) -> Iterator[FieldError]:
    """Check that the number of values is as in Kubernetes, and that the operator can compare with each of them."""
    operator, values = requirement.operator, requirement.values
    if operator in (NodeOperator.EXISTS, NodeOperator.DOES_NOT_EXIST):
        if values:
            yield forbidden("values", f"may not be specified when operator is {operator}", "remove them")
    elif not values:
        yield FieldError("values", UNSET, f"must be specified when operator is {operator}")
    elif operator in COMPARING_NODE_OPERATORS and len(values) > 1:
        yield FieldError("values", values, f"must have one item when operator is {operator}", "write a term for each")
    else:
        yield from (fault.below("values") for value in values for fault in _check_value(operator, value))


def _check_value(operator: NodeOperator, value: str) -> Iterator[FieldError]:
    if operator not in COMPARING_NODE_OPERATORS:
        yield from check_label_value(value)
    elif fault := explain_version(value) if operator in SEMVER_NODE_OPERATORS else explain_integer(value):
        yield FieldError("", value, fault)


class NodeTermSpec(Spec, frozen=True):
    """Requirements that all have to hold."""

    match_expressions: Annotated[
        tuple[Annotated[NodeRequirementSpec, checked(check_node_requirement)], ...],
        Meta(min_length=1, max_length=MAX_REQUIREMENTS),
    ]


class NodeSelectorSpec(Spec, frozen=True):
    """Terms of which one has to match."""

    node_selector_terms: Annotated[tuple[NodeTermSpec, ...], Meta(min_length=1, max_length=MAX_TERMS)]


class PreferenceSpec(Spec, frozen=True):
    """A term that raises the score of nodes."""

    weight: Annotated[int, Meta(ge=1, le=100)]
    preference: NodeTermSpec


class NodeAffinitySpec(Spec, frozen=True):
    """A pod's node affinity."""

    required_during_scheduling_ignored_during_execution: NodeSelectorSpec | None = None
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferenceSpec, ...], Meta(max_length=MAX_TERMS)
    ] = ()


Parsed = tuple[NodeAffinity, tuple[FieldError, ...]]
"""The affinity and its errors. With errors, the affinity is ``NOWHERE``."""


def parse_node_affinity(text: str) -> Parsed:
    """Parse the annotation of a pod."""
    given, fault = read_json(text, PATH, _EXAMPLE)
    if fault is None and not isinstance(given, dict):
        fault = FieldError(PATH, given, "must be a JSON object", _EXAMPLE)
    if fault is not None:
        return NOWHERE, (fault,)
    read, errors = decode(given, NodeAffinitySpec, PATH)
    return (NOWHERE, bounded(list(errors), 0, PATH, len(errors))) if read is None else (node_affinity(read), ())


def node_affinity(read: NodeAffinitySpec) -> NodeAffinity:
    """Convert the affinity into that of the engine."""
    required = read.required_during_scheduling_ignored_during_execution
    preferred = read.preferred_during_scheduling_ignored_during_execution
    return NodeAffinity(
        None if required is None else _terms(required),
        tuple(Preference(preference.weight, _term(preference.preference)) for preference in preferred),
    )


def _terms(selector: NodeSelectorSpec) -> tuple[Term, ...]:
    return tuple(map(_term, selector.node_selector_terms))


def _term(term: NodeTermSpec) -> Term:
    return tuple(NodeRequirement(one.key, one.operator, one.values) for one in term.match_expressions)
