"""What admission has to know of the cluster: policies, profiles, and the labels of namespaces."""

from taintwarden.engine.machine import events
from taintwarden.engine.model import Policy
from taintwarden.engine.profile_selection import Profiles


class Known:
    """The state of the webhook's process. It decides about no pod that runs, so it knows neither pods nor nodes."""

    def __init__(self) -> None:
        self.policies: tuple[Policy, ...] = ()
        """Those in force, by name."""
        self.profiles = Profiles()
        """Those of all namespaces."""
        self._namespaces: dict[str, dict[str, str] | None] = {}

    def feed(self, event: events.Event) -> None:
        """Take in what happened. Events about anything else do not matter here."""
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
        """The labels of a namespace; None if it is not known."""
        return self._namespaces.get(name)
