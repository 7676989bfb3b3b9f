"""How long the Lease lasts and is relied on: client-go's numbers."""

import msgspec

LEASE_SECONDS = 15
"""How long a lease lasts for others after its last renewal."""
RENEW_DEADLINE_SECONDS = 10.0
"""How long its holder relies on it. The difference is what clocks may run apart and a call may take."""
RETRY_SECONDS = 2.0
"""Between tries to get or renew it."""


class LeaseTimings(msgspec.Struct, frozen=True, kw_only=True):
    """Durations in seconds. One value that is handed in, so that tests hand in a shorter one."""

    lasts: int = LEASE_SECONDS
    renew_deadline: float = RENEW_DEADLINE_SECONDS
    retry: float = RETRY_SECONDS
