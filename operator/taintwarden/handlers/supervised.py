"""kopf for ``taintwarden run``: the handlers, the app they are called with, and a supervisor that runs them."""

from collections.abc import Awaitable, Callable

import kopf

from taintwarden.handlers.lifecycle import Runnable, run_with_kopf
from taintwarden.handlers.supervisor import Supervisor
from taintwarden.handlers.watching import watch_policies, watch_profiles


def supervised(
    app: Runnable, *, identity: str, monotonic: Callable[[], float], served: Callable[[], Awaitable[bool]]
) -> Supervisor:
    """A supervisor for an app that its owner starts and stops; the other arguments are those of ``Supervisor``."""
    registry = kopf.OperatorRegistry()
    run_with_kopf(registry)
    watch_policies(registry)
    watch_profiles(registry)
    return Supervisor(registry, kopf.Memo(app=app), identity=identity, monotonic=monotonic, served=served)
