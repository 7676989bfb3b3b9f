"""Leader election on a ``coordination.k8s.io`` Lease, with client-go's rules and numbers.

The package ``kubernetes`` is not used: its leader continues to act after the lease expired, if the API server hangs.
Here a leader stops *acting* when it has not renewed for some time, long before others may take over.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from taintwarden.engine.model import Int64
from taintwarden.engine.rfc3339 import exactly
from taintwarden.kube.errors import ApiError, KubeError
from taintwarden.kube.http.client import Client
from taintwarden.kube.wire.answers import decoded

LEASE_NAME = "taintwarden"
MAX_TRANSITIONS = 2**31 - 1
"""Maximum ``leaseTransitions``, an int32. API servers refuse greater numbers."""
RELEASE_SECONDS = 3.0
"""Maximum seconds for releasing the lease. A pod that stops has half a minute for everything."""


LEASE_SECONDS = 15
"""Seconds after the last renewal until other candidates may take the lease."""
RENEW_DEADLINE_SECONDS = 10.0
"""Seconds after the last renewal until the holder stops acting. The difference allows for clock drift and slow calls.
"""
RETRY_SECONDS = 2.0
"""Seconds between attempts to get or renew the lease."""
SLOW_SECONDS = 2.0
"""Seconds without an answer after which an attempt counts as failed, until it is answered."""


class LeaseTimings(msgspec.Struct, frozen=True, kw_only=True):
    """Durations in seconds. Tests pass shorter ones."""

    duration: int = LEASE_SECONDS
    renew_deadline: float = RENEW_DEADLINE_SECONDS
    retry: float = RETRY_SECONDS


class LeaseSpec(msgspec.Struct, rename="camel"):
    """``spec`` of a Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: Int64 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: Int64 | None = None


class LeaseObject(msgspec.Struct):
    """A ``coordination.k8s.io/v1`` Lease. Its metadata, with the resourceVersion, is sent back unchanged."""

    metadata: dict[str, Any]
    spec: LeaseSpec | None = None


class Lease:
    """One candidate for one Lease.

    Args:
        identity: unique among all candidates that run at the same time, for example the pod's name and UID.
        monotonic: the clock that measures the deadline.
        on_change: called with True when leadership is gained and False when it is lost.
        on_error: called with the reason when an attempt to get or renew the lease fails.
        on_renewal: called with False when an attempt fails or is slow, and with True when one is answered after that.

    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str,
        monotonic: Callable[[], float],
        on_change: Callable[[bool], None],
        on_error: Callable[[str], None],
        on_renewal: Callable[[bool], None] = lambda _: None,
        timings: LeaseTimings = LeaseTimings(),  # noqa: B008 - it is frozen
    ) -> None:
        self._timings = timings
        self._client = client
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._identity = identity
        self._monotonic = monotonic
        self._on_change = on_change
        self._on_error = on_error
        self._on_renewal = on_renewal
        self._is_answered = True
        """Last argument of ``on_renewal``."""
        self._renewed_at: float | None = None
        self._last_read = LeaseSpec(lease_transitions=-1)
        """The lease as it was last read. Before the first read, one that does not exist."""
        self._observed: tuple[str, float] = ("", float("-inf"))  # the spec as text, and when it was first read
        self._expires: float | None = None
        """Time at which the lease of another holder expires, by the local clock."""
        self._rival_at = float("-inf")
        """Time of the last known renewal by another candidate; before the first, the time at which ``run`` began."""
        self._announced = False
        self._may_be_stored = False
        """True if the server may have stored this holder: the answer to a write may not have arrived."""
        self.term = 0
        """``leaseTransitions`` of the Lease when this candidate last got it."""

    @property
    def is_held(self) -> bool:
        """True if this candidate may act now. Checked before each write."""
        return self._seconds_left() > 0

    @property
    def has_leader(self) -> bool:
        """True if this candidate leads, or another renewed the lease recently. Also for a while after ``run`` began."""
        ends_at = self._rival_at + self._timings.duration + self._timings.renew_deadline
        return self.is_held or self._monotonic() < ends_at

    def _seconds_left(self) -> float:
        if self._renewed_at is None:
            return 0.0
        return self._renewed_at + self._timings.renew_deadline - self._monotonic()

    async def is_confirmed(self) -> bool:
        """Return True if the API server confirms that this candidate has held the lease since it got it."""
        try:
            lease = await self._read()
        except KubeError:
            return False
        spec = LeaseSpec() if lease is None or lease.spec is None else lease.spec
        is_own = spec.holder_identity == self._identity and (spec.lease_transitions or 0) == self.term
        return self.is_held and is_own

    async def run(self) -> None:
        """Get the lease and renew it, without end."""
        self._rival_at = self._monotonic()
        while True:
            began = self._monotonic()
            slow = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._note_answer, False)  # noqa: FBT003
            try:
                # Not longer than the lease is held, because its end must be reported at once.
                patience = self._timings.renew_deadline / 2
                async with asyncio.timeout(min(patience, self._seconds_left()) if self.is_held else patience):
                    won = await self._acquire_or_renew()
            except (KubeError, TimeoutError) as error:
                self._on_error(str(error) or type(error).__name__)
                self._note_answer(False)  # noqa: FBT003 - a callback's one argument
            else:
                self._note_answer(True)  # noqa: FBT003
                # Counted from before the call: other candidates cannot have seen the renewal earlier.
                self._renewed_at = began if won else None
            finally:
                slow.cancel()
            self._announce()
            await self._sleep()

    async def release(self) -> None:
        """Release the lease, so that another candidate takes over at once. After a failure it expires instead.

        A write that was in progress when ``run`` was cancelled may be stored meanwhile.
        """
        if not self._may_be_stored:
            return
        self._renewed_at = None
        self._announce()
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                while not await self._clear_holder():
                    pass
        except (KubeError, TimeoutError) as error:
            self._on_error(str(error) or "not released in time")

    async def _clear_holder(self) -> bool:
        """Clear the holder if it is this candidate. Return False if another write was faster, perhaps a renewal."""
        lease = await self._read()
        if lease is None or lease.spec is None or lease.spec.holder_identity != self._identity:
            return True
        lease.spec.holder_identity, lease.spec.lease_duration_seconds = "", 1
        lease.spec.renew_time = exactly(time.time())
        return await self._write("PUT", f"{self._path}/{self._name}", lease)

    async def _sleep(self) -> None:
        """Wait until the next attempt, or until the lease expires, whichever comes first."""
        seconds = self._timings.retry
        if self.is_held:
            seconds = min(seconds, self._seconds_left())
        elif self._expires is not None and (left := self._expires - self._monotonic()) > 0:
            seconds = min(seconds, left)
        await asyncio.sleep(seconds)
        self._announce()

    def _note_answer(self, is_answered: bool) -> None:  # noqa: FBT001 - a callback's one argument
        if is_answered != self._is_answered:
            self._is_answered = is_answered
            self._on_renewal(is_answered)

    def _announce(self) -> None:
        held = self.is_held
        if held != self._announced:
            self._announced = held
            self._on_change(held)

    async def _acquire_or_renew(self) -> bool:
        lease = await self._read()
        if lease is not None:
            self._last_read = lease.spec or LeaseSpec()
        spec = self._last_read  # also after a Lease was deleted: its holder may act until it would have expired
        seen = msgspec.json.encode(spec).decode()
        is_of_another = spec.holder_identity not in (None, "", self._identity)
        if seen != self._observed[0]:
            # The clocks of replicas are not compared: what counts is how long *this one* has read no renewal.
            self._observed = (seen, self._monotonic())
            self._rival_at = self._monotonic() if is_of_another else self._rival_at
        # No replica stores a longer duration. Without a limit, one foreign write could keep all from leading.
        expires = self._observed[1] + min(spec.lease_duration_seconds or self._timings.duration, self._timings.duration)
        if is_of_another and self._monotonic() < expires:
            self._expires = expires
            self._may_be_stored = False
            return False
        renewed = self._renewed(spec)
        self._may_be_stored = True
        if lease is None:
            fresh = LeaseObject({"name": self._name}, renewed)
            return self._note_term(spec, await self._write("POST", self._path, fresh))
        done = await self._write("PUT", f"{self._path}/{self._name}", LeaseObject(lease.metadata, renewed))
        if not done:  # aiohttp may send a PUT twice: the second one conflicts with the first
            stored = await self._read()
            done = stored is not None and stored.spec == renewed
        return self._note_term(spec, done)

    def _note_term(self, before: LeaseSpec, won: bool) -> bool:  # noqa: FBT001 - of a write
        """Note the term if the lease was ``won`` and not held before. Return ``won``."""
        if won and not self.is_held:
            self.term = self._renewed(before).lease_transitions or 0
        return won

    async def _read(self) -> LeaseObject | None:
        try:
            body = await self._client.request("GET", f"{self._path}/{self._name}")
        except ApiError as error:
            if error.is_not_found:
                return None
            raise
        return decoded(body, LeaseObject, "lease")

    async def _write(self, method: str, path: str, lease: LeaseObject) -> bool:
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": lease.metadata, "spec": lease.spec}
        try:
            await self._client.request(method, path, body=body)
        except ApiError as error:
            if error.code == 409:  # another replica was faster
                return False
            raise
        return True

    def _renewed(self, spec: LeaseSpec) -> LeaseSpec:
        is_own = spec.holder_identity == self._identity
        transitions = spec.lease_transitions or 0
        return LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=self._timings.duration,
            acquire_time=spec.acquire_time if is_own and self.is_held else exactly(time.time()),
            renew_time=exactly(time.time()),
            lease_transitions=transitions if is_own else transitions + 1 if transitions < MAX_TRANSITIONS else 0,
        )
