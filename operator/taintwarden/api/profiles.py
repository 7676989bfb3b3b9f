"""TolerationProfile: extended tolerations and node affinity for the pods of a namespace that a selector chooses."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET

from taintwarden.api.node_affinity import NodeAffinitySpec, node_affinity
from taintwarden.api.objects import label_selector, read_object
from taintwarden.api.tolerations import ExtendedToleration, check_toleration, toleration
from taintwarden.api.types import PROFILE_KIND, LabelSelectorSpec, ObjectMeta
from taintwarden.engine.affinity import NodeAffinity
from taintwarden.engine.model import Profile
from taintwarden.fields.field_errors import FieldError, InvalidObject, duplicate
from taintwarden.fields.spec import Spec, checked

MAX_TOLERATIONS = 64
MAX_ENTRIES_IN_NAMESPACE = 1000
"""Maximum number of entries (:func:`count_entries`) of all profiles of a namespace, which limits the work for a pod."""


def check_tolerations(tolerations: tuple[ExtendedToleration, ...]) -> Iterator[FieldError]:
    """Yield an error for each entry that repeats another one. It has no effect, so a different one was meant."""
    for index, entry in enumerate(tolerations):
        first = tolerations.index(entry)
        if first != index:
            reason = f"is listed in [{first}] and [{index}]"
            yield duplicate("", str(toleration(entry)), reason, "write each toleration once")


class ProfileSpec(Spec, frozen=True):
    """The ``spec`` of a TolerationProfile."""

    tolerations: Annotated[
        tuple[Annotated[ExtendedToleration, checked(check_toleration)], ...],
        checked(check_tolerations, min_length=1, max_length=MAX_TOLERATIONS),
    ] = ()
    node_affinity: NodeAffinitySpec | None = None
    pod_selector: LabelSelectorSpec = LabelSelectorSpec()


def check_profile(spec: ProfileSpec) -> Iterator[FieldError]:
    """Yield an error for a profile without any setting."""
    if not spec.tolerations and spec.node_affinity is None:
        yield FieldError("tolerations", UNSET, "must specify tolerations, nodeAffinity, or both")


class ProfileObject(Spec, frozen=True):
    """A whole TolerationProfile. Taintwarden writes its ``status``, and does not read it here."""

    api_version: Literal["taintwarden.io/v1alpha1"]
    kind: Literal["TolerationProfile"]
    metadata: ObjectMeta
    spec: Annotated[ProfileSpec, checked(check_profile)]
    status: Any = None


def parse_profile(obj: Mapping[str, Any]) -> Profile:
    """Parse the profile in ``obj``, a whole object from the API server or a YAML parser.

    Unlike an annotation it is valid or invalid as a whole, because the API server rejects errors when it is applied.

    Raises:
        InvalidObject: with every fault of the object.

    """
    read = read_object(obj, ProfileObject, PROFILE_KIND)
    return Profile(
        read.metadata.namespace,
        read.metadata.name,
        label_selector(read.spec.pod_selector),
        tuple(toleration(one) for one in read.spec.tolerations),
        None if read.spec.node_affinity is None else node_affinity(read.spec.node_affinity),
    )


def count_entries(profile: Profile) -> int:
    """Return the number of entries of a profile.

    A toleration, or a requirement of selector or affinity, counts as one for each listed value, and at least as one.
    """
    asked = sum(max(1, len(requirement.values)) for requirement in profile.selector.requirements)
    affinity = profile.affinity or NodeAffinity()
    terms = (*(affinity.required or ()), *(preference.term for preference in affinity.preferred))
    compared = sum(max(1, len(requirement.values)) for term in terms for requirement in term)
    tolerated = sum(max(1, len(one.values)) for one in profile.tolerations)
    return tolerated + asked + compared


def check_size(profile: Profile, used: int) -> None:
    """Check that ``profile`` is within the limit of its namespace, where other profiles have ``used`` entries.

    Raises:
        InvalidObject: it exceeds the limit.

    """
    size = count_entries(profile)
    if used + size > MAX_ENTRIES_IN_NAMESPACE:
        reason = (
            f"the profiles of namespace {profile.namespace} would have {used + size} entries with it, and at most "
            f"{MAX_ENTRIES_IN_NAMESPACE} count (tolerations, labels and values of podSelector and nodeAffinity)"
        )
        remedy = "delete profiles that are not needed, or write one for several workloads"
        raise InvalidObject(PROFILE_KIND, profile.name, [FieldError("spec", size, reason, remedy)])
