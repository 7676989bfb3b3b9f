"""TolerationProfile: extended tolerations for the pods of a namespace that a selector chooses."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from taintwarden.api.errors import FieldError, InvalidObject
from taintwarden.api.objects import label_selector, read_object
from taintwarden.api.tolerations import ExtendedToleration, check_toleration, toleration
from taintwarden.api.types import PROFILE_KIND, LabelSelectorSpec, ObjectMeta, Spec, checked
from taintwarden.engine.model import Profile

MAX_TOLERATIONS = 64
MAX_ENTRIES_IN_NAMESPACE = 1000
"""Of all profiles of a namespace: what a pod may be asked. Entries are described at :func:`entries`."""


def check_tolerations(tolerations: tuple[ExtendedToleration, ...]) -> Iterator[FieldError]:
    """An entry that stands twice changes nothing: it was meant to be another one."""
    for index, one in enumerate(tolerations):
        first = tolerations.index(one)
        if first != index:
            reason = f"stands in [{first}] and again in [{index}]"
            yield FieldError("", str(toleration(one)), reason, "write each toleration once")


class ProfileSpec(Spec, frozen=True):
    """The ``spec`` of a TolerationProfile."""

    tolerations: Annotated[
        tuple[Annotated[ExtendedToleration, checked(check_toleration)], ...],
        checked(check_tolerations, min_length=1, max_length=MAX_TOLERATIONS),
    ]
    pod_selector: LabelSelectorSpec = LabelSelectorSpec()


class ProfileObject(Spec, frozen=True):
    """A whole TolerationProfile. Its ``status`` is ours and is not read back here."""

    api_version: Literal["taintwarden.io/v1alpha1"]
    kind: Literal["TolerationProfile"]
    metadata: ObjectMeta
    spec: ProfileSpec
    status: Any = None


def parse_profile(obj: Mapping[str, Any]) -> Profile:
    """The profile in ``obj``, a whole object as the API server or a YAML parser gives it.

    Unlike an annotation it is valid or invalid as a whole: the API server rejects errors when it is applied.

    Raises:
        InvalidObject: with every fault of the object.

    """
    read = read_object(obj, ProfileObject, PROFILE_KIND)
    return Profile(
        read.metadata.namespace,
        read.metadata.name,
        label_selector(read.spec.pod_selector),
        tuple(toleration(one) for one in read.spec.tolerations),
    )


def entries(profile: Profile) -> int:
    """How large a profile is: its tolerations, and the values (or keys alone) that its selector names."""
    asked = sum(max(1, len(requirement.values)) for requirement in profile.selector.requirements)
    return len(profile.tolerations) + asked


def check_room(profile: Profile, used: int) -> None:
    """Check that ``profile`` fits the bound of its namespace, where other profiles have ``used`` entries.

    Raises:
        InvalidObject: there is none.

    """
    size = entries(profile)
    if used + size > MAX_ENTRIES_IN_NAMESPACE:
        reason = (
            f"the profiles of namespace {profile.namespace} would have {used + size} entries with it, and at most "
            f"{MAX_ENTRIES_IN_NAMESPACE} count (tolerations, and labels and values of podSelector)"
        )
        remedy = "delete profiles that are not needed, or write one for several workloads"
        raise InvalidObject(PROFILE_KIND, profile.name, [FieldError("spec", size, reason, remedy)])
