"""State of the cluster for webhooks: policies, profiles, labels of namespaces. The extender needs only the profiles."""

from taintwarden.engine import events
from taintwarden.engine.policy import Policy
from taintwarden.engine.profile_selection import Profiles


class ClusterState:
    """Policies, profiles and namespaces. Pods and nodes are not part of it, since no admission decision needs them."""

    def __init__(self) -> None:
        self.policies: tuple[Policy, ...] = ()
        """The policies in force, sorted by name."""
        self.profiles = Profiles()
        """The profiles of all namespaces."""
        self._namespaces: dict[str, dict[str, str] | None] = {}

    def feed(self, event: events.Event) -> None:
        """Apply an event. Events about other objects are ignored."""
        match event:
            case events.PoliciesChanged(policies):
                self.policies = tuple(sorted(policies, key=lambda policy: policy.name))
            case events.ProfileSeen(profile):
                self.profiles.put(profile.namespace, profile.name, profile)
            case events.ProfileGone(namespace, name):
                self.profiles.put(namespace, name, None)
            case events.NamespaceSeen(name, None):
                self._namespaces.pop(name, None)
            case events.NamespaceSeen(name, labels):
                self._namespaces[name] = labels
            case _:
                pass

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """Return the labels of a namespace; None if it is not known."""
        return self._namespaces.get(name)
