"""What admission has to know of the cluster: policies, profiles, and the labels of namespaces."""

from collections.abc import Sequence

from taintwarden.engine.machine import events
from taintwarden.engine.model import PodClass, Policy, Profile
from taintwarden.engine.profile_selection import Profiles
from taintwarden_placement.admission.placing import ConcerningPolicies, acting
from taintwarden_placement.node_labels.wanted import published_labels


class Known:
    """The state of the webhook's process. It decides about no pod that runs, so it knows neither pods nor nodes."""

    def __init__(self) -> None:
        self.policies: tuple[Policy, ...] = ()
        """Those in force, by name."""
        self.profiles = Profiles()
        """Those of all namespaces."""
        self._namespaces: dict[str, dict[str, str]] = {}

    def feed(self, event: events.Event) -> None:
        """Take in what happened. Events about anything else do not matter here."""
        match event:
            case events.PoliciesChanged(policies):
                self.policies = tuple(sorted(policies, key=lambda policy: policy.name))
            case events.ProfileSeen(profile):
                self.profiles.put(profile.namespace, profile.name, profile)
            case events.ProfileGone(namespace, name):
                self.profiles.put(namespace, name, None)
            case events.NamespaceSeen(name, labels):
                self._namespaces[name] = labels
            case events.NamespaceGone(name):
                self._namespaces.pop(name, None)
            case _:
                pass

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """The labels of a namespace; None if it is not known."""
        return self._namespaces.get(name)

    def profiles_in(self, namespace: str) -> Sequence[Profile]:
        """The profiles of a namespace, by name."""
        return self.profiles.in_namespace(namespace)

    def version_labels(self) -> tuple[str, ...]:
        """The labels of nodes whose versions the operator repeats as numbers."""
        return published_labels(self.policies)

    def acting_on(self, pod_class: PodClass) -> ConcerningPolicies:
        """The policies that concern pods of a class."""
        return acting(self.policies, pod_class, self.namespace_labels(pod_class.namespace))
