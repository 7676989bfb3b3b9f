"""Interning of pod classes, since 150,000 pods have a few thousand classes."""

from collections.abc import Mapping
from weakref import WeakValueDictionary

from taintwarden.engine.model import Owner, PodClass, SchedulingGroup, SpreadConstraint, Tolerations


class Interner:
    """Returns shared :class:`PodClass` objects, so that verdicts can be shared by identity.

    A class is dropped with its last pod.
    """

    def __init__(self) -> None:
        self._classes: WeakValueDictionary[tuple[object, ...], PodClass] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._classes)

    def pod_class(
        self,
        namespace: str,
        labels: Mapping[str, str],
        tolerations: Tolerations,
        *,
        priority: int = 0,
        daemon_set: bool = False,
        do_not_evict: bool = False,
        do_not_disrupt: bool = False,
        owner: Owner | None = None,
        spread: tuple[SpreadConstraint, ...] = (),
        grace_seconds: int = 30,
        protected_seconds: float = 0.0,
        local_storage: bool = False,
        group: SchedulingGroup | None = None,
    ) -> PodClass:
        """Return the one shared object for these values."""
        opts_out = (do_not_evict, do_not_disrupt)
        rest = (priority, daemon_set, *opts_out, owner, spread, grace_seconds, protected_seconds, local_storage, group)
        key = (namespace, tuple(sorted(labels.items())), tolerations, rest)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = PodClass(namespace, dict(labels), tolerations, *rest)
        return found
