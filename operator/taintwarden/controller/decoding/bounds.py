"""What one object may weigh. The API server limits it to 1.5 MB and nothing else; what counts stays in memory."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from taintwarden.api.tolerations import PATH
from taintwarden.engine.model import Owner, Toleration, Tolerations
from taintwarden.fields.field_errors import FieldError
from taintwarden.kube.wire.kinds import (
    MAX_POD_ENTRIES,
    OwnerReference,
    PodObject,
    SelectorObject,
)

MAX_NAME = 317
"""Of a kind with its group, a name or a UID: longer than those of any object that exists."""
MIN_TEXT = 64
"""What a short text counts for: it takes as much memory of its own."""
MAX_CHARACTERS = MAX_POD_ENTRIES * MIN_TEXT
"""Maximum size of what is kept of one pod, more than pods that are meant to run have."""
TOLERATES_ALL: Final = Tolerations(annotated=(Toleration(operator="Exists"),))
"""The tolerations of a pod that is too large. So no taint evicts it on data that were cut, but a quarantine does, which
accepts no toleration. They are extended ones, so that no profile narrows them.
"""
MAX_SELECTED = 1_000
"""Labels, keys and values of one selector: more than any that was written by hand."""


def claims(obj: PodObject) -> list[str]:
    """The names of the claims of a pod of a PodGroup."""
    named = (*obj.spec.resource_claims, *obj.status.resource_claim_statuses) if obj.spec.scheduling_group else ()
    return [one.resource_claim_name for one in named if one.resource_claim_name]


def fault(obj: PodObject, extended: Iterable[Toleration]) -> FieldError | None:
    """Why a pod is too large, in its largest field; None if it is not. ``extended``: the tolerations it annotates."""
    sizes = {
        path: sum(max(len(text), MIN_TEXT) for text in islice(texts, MAX_POD_ENTRIES + 1))
        for path, texts in _texts(obj, extended).items()
    }
    if sum(sizes.values()) <= MAX_CHARACTERS:
        return None
    reason = (
        f"at most {MAX_CHARACTERS} characters of labels, tolerations, selectors and claims of a pod are kept, of which "
        f"each text counts for {MIN_TEXT} or more: the pod counts as one without them that tolerates every taint"
    )
    largest = max(sizes, key=sizes.__getitem__)
    return FieldError(largest, sizes[largest], reason, "shorten this field")


def _texts(obj: PodObject, extended: Iterable[Toleration]) -> dict[str, Iterable[str]]:
    """What is kept of a pod, by field: a label with its value is one text."""
    spread = obj.spec.topology_spread_constraints
    selectors = [one.label_selector for one in spread if one.label_selector is not None]
    requirements = (part for one in selectors for part in one.match_expressions)
    return {
        "metadata.labels": (key + value for key, value in obj.metadata.labels.items()),
        "spec.tolerations": _texts_of(obj.spec.tolerations),
        PATH: _texts_of(extended),
        "spec.topologySpreadConstraints": chain(
            (text for one in spread for text in (one.topology_key, *one.match_label_keys)),
            (text for one in selectors for pair in one.match_labels.items() for text in pair),
            (text for one in requirements for text in (one.key, *one.values)),
        ),
        "spec.resourceClaims": claims(obj),
    }


def _texts_of(tolerations: Iterable[Toleration]) -> Iterator[str]:
    for one in tolerations:
        yield one.key + one.operator + one.value + one.effect
        yield from one.values


def owner(kind: str, reference: OwnerReference) -> Owner:
    """An owner of this kind. Nothing of it need exist."""
    return Owner(kind[:MAX_NAME], reference.name[:MAX_NAME], reference.uid[:MAX_NAME])


def size_of_selector(selector: SelectorObject) -> int:
    """How many labels, keys and values it has."""
    return len(selector.match_labels) + sum(max(1, len(one.values)) for one in selector.match_expressions)
