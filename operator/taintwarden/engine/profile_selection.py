"""Selection of pods by profiles, and the tolerations that pods have with them."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from operator import attrgetter
from weakref import WeakKeyDictionary, WeakValueDictionary

from taintwarden.engine.model import PodClass, Profile, SharedTolerations, Toleration, Tolerations
from taintwarden.engine.selectors import LabelSelector, SelectorOperator

Anchor = tuple[str, str | None] | None
"""Label that a selected pod must have: its key with a value, or with any (None); None: no particular label."""


_NAME = attrgetter("name")


def matching(profiles: Iterable[Profile], pod_class: PodClass) -> tuple[Profile, ...]:
    """Return the profiles for pods of this class, sorted by name. Their tolerations are tried in this order."""
    found = (profile for profile in profiles if selects(profile, pod_class))
    return tuple(sorted(found, key=_NAME))


def selects(profile: Profile, pod_class: PodClass) -> bool:
    """Return True if the profile selects pods of this class."""
    return profile.namespace == pod_class.namespace and profile.selector.selects(pod_class.labels)


def effective(pod_class: PodClass, profiles: Iterable[Profile]) -> Tolerations:
    """Return all tolerations of pods of a class: their own, then those of the matching ``profiles``, in this order."""
    return _joined(pod_class, SharedTolerations(_entries(profiles)))


def _entries(profiles: Iterable[Profile]) -> tuple[Toleration, ...]:
    return tuple(toleration for profile in profiles for toleration in profile.tolerations)


def _joined(pod_class: PodClass, shared: SharedTolerations) -> Tolerations:
    return Tolerations(pod_class.tolerations.native, pod_class.tolerations.annotated, shared)


class Profiles:
    """Profiles of all namespaces, by a label that their selectors require."""

    def __init__(self) -> None:
        self.named: dict[str, Mapping[str, Profile]] = {}
        """Namespace -> name -> profile. Each change replaces the mapping of the namespace."""
        self._anchored: dict[str, dict[Anchor, dict[str, Profile]]] = {}
        """Namespace -> anchor -> name -> profile."""
        self._number = 0
        """Number of changes."""
        self._changes: dict[str, dict[str, int]] = {}
        """Namespace -> name -> value of ``_number`` when the profile last changed, the latest last."""
        self._found: WeakKeyDictionary[PodClass, tuple[int, tuple[Profile, ...], Tolerations]] = WeakKeyDictionary()
        """Class -> value of ``_number`` when its profiles were computed, these profiles, and all its tolerations."""
        self._shared: WeakValueDictionary[tuple[Profile, ...], SharedTolerations] = WeakValueDictionary()
        """Profiles -> their tolerations, which are evaluated once for all pods that these profiles select."""

    def __iter__(self) -> Iterator[Profile]:
        for namespace in sorted(self.named):
            yield from self.in_namespace(namespace)

    def in_namespace(self, namespace: str) -> tuple[Profile, ...]:
        """Return the profiles of one namespace, sorted by name."""
        return tuple(profile for _, profile in sorted(self.named.get(namespace, {}).items()))

    def put(self, namespace: str, name: str, profile: Profile | None) -> Profile | None:
        """Store a profile, or remove it (None). Returns the previous one."""
        named, anchored = dict(self.named.get(namespace, {})), self._anchored.setdefault(namespace, {})
        before, changes = named.pop(name, None), self._changes.setdefault(namespace, {})
        changes.pop(name, None)
        for anchor in () if before is None else _anchors(before.selector):
            del anchored[anchor][name]
            if not anchored[anchor]:
                del anchored[anchor]
        self._number += 1
        if profile is not None:
            named[name] = profile
            changes[name] = self._number
            for anchor in _anchors(profile.selector):
                anchored.setdefault(anchor, {})[name] = profile
        self.named[namespace] = named
        if not named:
            del self.named[namespace], self._anchored[namespace], self._changes[namespace]
        return before

    def of(self, pod_class: PodClass) -> tuple[Profile, ...]:
        """Return the profiles that select pods of a class, sorted by name."""
        return self._found[pod_class][1] if self._update_profiles(pod_class) else ()

    def tolerations(self, pod_class: PodClass) -> Tolerations:
        """Return all tolerations of pods of a class: their own and those of its profiles."""
        return self._found[pod_class][2] if self._update_profiles(pod_class) else pod_class.tolerations

    def _update_profiles(self, pod_class: PodClass) -> bool:
        """Compute the profiles of a class if any has changed. Returns True if its namespace has profiles."""
        named = self.named.get(pod_class.namespace)
        if named is None:
            return False
        seen, before, tolerations = self._found.get(pod_class, (0, (), pod_class.tolerations))
        if seen == self._number:
            return True
        if not seen:
            found = matching(_candidates(self._anchored[pod_class.namespace], pod_class), pod_class)
        else:  # only changed profiles are evaluated: a tenant may have a thousand others
            changes = self._changes[pod_class.namespace]
            kept = [profile for profile in before if changes.get(profile.name, self._number + 1) <= seen]
            new = takewhile(lambda name: changes[name] > seen, reversed(changes))
            came = [named[name] for name in new if selects(named[name], pod_class)]
            found = tuple(sorted(kept + came, key=_NAME)) if came or len(kept) < len(before) else before
        if found != before:
            shared = self._shared.get(found)
            if shared is None:
                shared = self._shared[found] = SharedTolerations(_entries(found))
            tolerations = _joined(pod_class, shared) if found else pod_class.tolerations
        self._found[pod_class] = self._number, found, tolerations
        return True


def _candidates(anchored: dict[Anchor, dict[str, Profile]], pod_class: PodClass) -> Iterator[Profile]:
    yield from anchored.get(None, {}).values()
    for key, value in pod_class.labels.items():
        yield from anchored.get((key, value), {}).values()
        yield from anchored.get((key, None), {}).values()


def _anchors(selector: LabelSelector) -> tuple[Anchor, ...]:
    """Return the anchors of a selector. All have one key, so a pod matches at most one of them."""
    asked = [one for one in selector.requirements if one.operator is SelectorOperator.IN]
    if asked:
        fewest = min(asked, key=lambda requirement: len(requirement.values))
        return tuple((fewest.key, value) for value in dict.fromkeys(fewest.values))
    for requirement in selector.requirements:
        if requirement.operator is SelectorOperator.EXISTS:
            return ((requirement.key, None),)
    return (None,)
