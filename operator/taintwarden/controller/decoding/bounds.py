"""What one object may weigh. The API server limits it to 1.5 MB and nothing else; what counts stays in memory."""

from collections.abc import Iterator, Mapping

from taintwarden.engine.model import Owner
from taintwarden.fields.field_errors import FieldError
from taintwarden.kube.wire.kinds import (
    MAX_OF_A_POD,
    MAX_SPREAD_CONSTRAINTS,
    OwnerReference,
    PodObject,
    SelectorObject,
    SpreadObject,
)

MAX_NAME = 317
"""Of a kind with its group, a name or a UID: longer than those of any object that exists."""
MAX_SELECTED = 1_000
"""Labels, keys and values of one selector: more than any that was written by hand."""


def labels(obj: PodObject) -> Mapping[str, str]:
    """The labels of a pod that count: the first ones by key."""
    found = obj.metadata.labels
    return found if len(found) <= MAX_OF_A_POD else dict(sorted(found.items())[:MAX_OF_A_POD])


def claims(obj: PodObject) -> list[str]:
    """The names of the claims of a pod of a PodGroup, of which the first ones count."""
    named = (*obj.spec.resource_claims, *obj.status.resource_claim_statuses) if obj.spec.scheduling_group else ()
    return [one.resource_claim_name for one in named if one.resource_claim_name]


def spread(obj: PodObject) -> list[SpreadObject]:
    """The topology spread constraints of a pod that count: the first ones whose selectors are small together."""
    left, found = MAX_OF_A_POD, []
    for one in obj.spec.topology_spread_constraints[:MAX_SPREAD_CONSTRAINTS]:
        if (size := _size_of_spread(one)) <= left:
            left -= size
            found.append(one)
    return found


def _size_of_spread(one: SpreadObject) -> int:
    selector = one.label_selector
    return len(one.match_label_keys) + (0 if selector is None else size_of_selector(selector))


def faults(obj: PodObject) -> Iterator[FieldError]:
    """What of a pod does not count."""
    for path, items in (
        ("metadata.labels", obj.metadata.labels),
        ("spec.tolerations", obj.spec.tolerations),
        ("spec.resourceClaims", claims(obj)),
    ):
        if len(items) > MAX_OF_A_POD:
            reason = f"has more than {MAX_OF_A_POD} items, and only the first {MAX_OF_A_POD} count"
            yield FieldError(path, len(items), reason)
    size = sum(map(_size_of_spread, obj.spec.topology_spread_constraints))
    if size > MAX_OF_A_POD:
        reason = (
            f"has selectors with more than {MAX_OF_A_POD} labels and values together, and the constraints beyond that "
            "do not count"
        )
        yield FieldError("spec.topologySpreadConstraints", size, reason)


def owner(kind: str, reference: OwnerReference) -> Owner:
    """An owner of this kind. Nothing of it need exist."""
    return Owner(kind[:MAX_NAME], reference.name[:MAX_NAME], reference.uid[:MAX_NAME])


def size_of_selector(selector: SelectorObject) -> int:
    """How many labels, keys and values it has."""
    return len(selector.match_labels) + sum(max(1, len(one.values)) for one in selector.match_expressions)
