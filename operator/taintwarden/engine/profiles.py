"""Which profiles of tolerations concern a pod, and what the pod tolerates with them."""

from collections.abc import Iterable

from taintwarden.engine.model import PodClass, Profile, Tolerations


def matching(profiles: Iterable[Profile], pod_class: PodClass) -> tuple[Profile, ...]:
    """Those for pods of this class, by name: the order in which their tolerations are tried."""
    found = (
        profile
        for profile in profiles
        if profile.namespace == pod_class.namespace and profile.selector.selects(pod_class.labels)
    )
    return tuple(sorted(found, key=lambda profile: profile.name))


def effective(pod_class: PodClass, profiles: Iterable[Profile]) -> Tolerations:
    """All that pods of a class tolerate: what they say themselves, then the ``profiles`` that match, in this order."""
    own = pod_class.tolerations
    more = tuple(toleration for profile in profiles for toleration in profile.tolerations)
    return Tolerations(own.native, own.extended + more) if more else own
