"""Bounds on the memory that one object may use. The API server itself only limits an object to 1.5 MB."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from taintwarden.api.tolerations import PATH
from taintwarden.engine.model import Owner, Toleration, Tolerations
from taintwarden.fields.field_errors import FieldError
from taintwarden.fields.text import printable
from taintwarden.kube.wire.kinds import (
    MAX_POD_ENTRIES,
    OwnerReference,
    PodObject,
    SelectorObject,
)

MAX_NAME = 317
"""Maximum length of an owner's name, of its UID, and of its kind with its group. No existing object exceeds it."""
MIN_TEXT = 64
"""Minimum number of characters that a text counts as, since each string has a fixed cost in memory."""
MAX_CHARACTERS = MAX_POD_ENTRIES * MIN_TEXT
"""Maximum number of characters kept of one pod. Ordinary pods have far fewer."""
TOLERATES_ALL: Final = Tolerations(annotated=(Toleration(operator="Exists"),))
"""Tolerations of a pod that is too large. Only quarantines ignore them. No profile narrows extended tolerations."""
MAX_SELECTED = 1_000
"""Maximum number of labels, keys and values of one selector. Selectors written by hand have fewer."""


def resource_claims(obj: PodObject) -> list[str]:
    """Return the names of the ResourceClaims of a pod in a PodGroup; none for other pods."""
    named = (*obj.spec.resource_claims, *obj.status.resource_claim_statuses) if obj.spec.scheduling_group else ()
    return [claim.resource_claim_name for claim in named if claim.resource_claim_name]


def fault(obj: PodObject, extended: Iterable[Toleration]) -> FieldError | None:
    """Return an error about the largest field of a pod that is too large; None for other pods.

    ``extended``: the tolerations of its annotation.
    """
    sizes = {
        path: sum(max(len(text), MIN_TEXT) for text in islice(texts, MAX_POD_ENTRIES + 1))
        for path, texts in _texts(obj, extended).items()
    }
    if sum(sizes.values()) <= MAX_CHARACTERS:
        return None
    reason = (
        f"at most {MAX_CHARACTERS} characters of labels, tolerations, selectors and claims of a pod are kept (each "
        f"text counts as {MIN_TEXT} or more): the pod counts as one that has none of these and tolerates every taint"
    )
    largest = max(sizes, key=sizes.__getitem__)
    return FieldError(largest, sizes[largest], reason, "shorten this field")


def _texts(obj: PodObject, extended: Iterable[Toleration]) -> dict[str, Iterable[str]]:
    """Return the texts kept of a pod, by field. A label with its value is one text."""
    spread = obj.spec.topology_spread_constraints
    selectors = [constraint.label_selector for constraint in spread if constraint.label_selector is not None]
    requirements = (part for selector in selectors for part in selector.match_expressions)
    return {
        "metadata.labels": (key + value for key, value in obj.metadata.labels.items()),
        "spec.tolerations": _texts_of(obj.spec.tolerations),
        PATH: _texts_of(extended),
        "spec.topologySpreadConstraints": chain(
            (text for constraint in spread for text in (constraint.topology_key, *constraint.match_label_keys)),
            (text for selector in selectors for pair in selector.match_labels.items() for text in pair),
            (text for requirement in requirements for text in (requirement.key, *requirement.values)),
        ),
        "spec.resourceClaims": resource_claims(obj),
    }


def _texts_of(tolerations: Iterable[Toleration]) -> Iterator[str]:
    for toleration in tolerations:
        yield toleration.key + toleration.operator + toleration.value + toleration.effect
        yield from toleration.values


def owner(kind: str, reference: OwnerReference) -> Owner:
    """Return an owner of this kind, with texts that can be shown. The object need not exist, and may have any name."""
    return Owner(printable(kind, MAX_NAME), printable(reference.name, MAX_NAME), reference.uid[:MAX_NAME])


def size_of_selector(selector: SelectorObject) -> int:
    """Return the number of labels, keys and values of a selector."""
    return len(selector.match_labels) + sum(max(1, len(part.values)) for part in selector.match_expressions)
