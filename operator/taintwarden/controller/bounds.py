"""What one pod may weigh. The API server limits an object to 1.5 MB and nothing else; what counts stays in memory."""

from collections.abc import Iterator, Mapping
from itertools import islice

from taintwarden.api.field_errors import FieldError
from taintwarden.engine.model import Owner, Toleration
from taintwarden.kube.wire.kinds import MAX_OF_A_POD, OwnerReference, PodObject, SelectorObject

MAX_NAME = 317
"""Of a kind with its group, a name or a UID: longer than those of any object that exists."""
MAX_SELECTED = 1_000
"""Labels, keys and values of one selector."""


def labels(obj: PodObject) -> Mapping[str, str]:
    """The labels of a pod that count: the first ones by key."""
    found = obj.metadata.labels
    return found if len(found) <= MAX_OF_A_POD else dict(sorted(found.items())[:MAX_OF_A_POD])


def tolerations(obj: PodObject) -> tuple[Toleration, ...]:
    """The native tolerations of a pod that count: the first ones."""
    return tuple(obj.spec.tolerations[:MAX_OF_A_POD])


def claims(obj: PodObject) -> Iterator[str]:
    """The names of the claims of a pod of a PodGroup that count: the first ones."""
    return islice(_claims(obj), MAX_OF_A_POD)


def _claims(obj: PodObject) -> Iterator[str]:
    named = (*obj.spec.resource_claims, *obj.status.resource_claim_statuses) if obj.spec.scheduling_group else ()
    return (one.resource_claim_name for one in named if one.resource_claim_name)


def faults(obj: PodObject) -> Iterator[FieldError]:
    """What of a pod does not count."""
    for path, items in (
        ("metadata.labels", obj.metadata.labels),
        ("spec.tolerations", obj.spec.tolerations),
        ("spec.resourceClaims", list(_claims(obj))),
    ):
        if len(items) > MAX_OF_A_POD:
            reason = f"has more than {MAX_OF_A_POD} items, and only the first {MAX_OF_A_POD} count"
            yield FieldError(path, len(items), reason)


def owner(kind: str, reference: OwnerReference) -> Owner:
    """An owner of this kind. Nothing of it need exist."""
    return Owner(kind[:MAX_NAME], reference.name[:MAX_NAME], reference.uid[:MAX_NAME])


def is_too_large(selector: SelectorObject) -> bool:
    """Whether a selector names more than any that was written by hand."""
    values = sum(max(1, len(one.values)) for one in selector.match_expressions)
    return len(selector.match_labels) + values > MAX_SELECTED
