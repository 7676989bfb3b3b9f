"""The profiles of tolerations in force."""

from collections.abc import Callable, Mapping

from taintwarden.api.profiles import parse_profile
from taintwarden.controller.loop import Feed
from taintwarden.controller.stores import Store
from taintwarden.engine.machine import events
from taintwarden.engine.model import Profile


class ProfileStore(Store[Profile]):
    """Stored profiles in, events about valid ones out.

    Args:
        feed: takes the events.
        issue: told ``namespace/name``, UID and reason when a profile cannot be accepted.

    """

    def __init__(self, feed: Feed, issue: Callable[[str, str, str], None]) -> None:
        super().__init__(parse_profile, issue)
        self._feed = feed

    def _tell(self, changes: Mapping[str, Profile | None]) -> None:
        for key, profile in changes.items():
            namespace, _, name = key.partition("/")
            self._feed(events.ProfileGone(namespace, name) if profile is None else events.ProfileSeen(profile))
