"""Leader election on a ``coordination.k8s.io`` Lease, with client-go's rules and numbers.

That of the library is not used, because it continues to act after the lease expired when the API server hangs.
The rule that matters: a leader stops *acting* when it has not renewed for some time, long before others may take over.
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
"""``leaseTransitions`` is an int32: API servers refuse what is greater."""
RELEASE_SECONDS = 3.0
"""How long giving it up may take: a pod that stops has half a minute for everything."""


LEASE_SECONDS = 15
"""How long a lease lasts for others after its last renewal."""
RENEW_DEADLINE_SECONDS = 10.0
"""How long its holder relies on it. The difference is what clocks may run apart and a call may take."""
RETRY_SECONDS = 2.0
"""Seconds between tries to get or renew it."""
SLOW_SECONDS = 2.0
"""Seconds without an answer after which a renewal counts as failed, until it is answered."""


class LeaseTimings(msgspec.Struct, frozen=True, kw_only=True):
    """Durations in seconds. One value that is handed in, so that tests hand in a shorter one."""

    lasts: int = LEASE_SECONDS
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
    """A ``coordination.k8s.io/v1`` Lease. The metadata go back as they came: they carry the resourceVersion."""

    metadata: dict[str, Any]
    spec: LeaseSpec | None = None


class Lease:
    """One candidate for one Lease.

    Args:
        client: the session to use.
        namespace: where the Lease lives.
        name: its name.
        identity: ours, unique among all candidates that live at a time, for example the pod's name and UID.
        monotonic: the clock that the deadline is measured with.
        on_change: called with True when leadership is gained and False when it is lost.
        on_error: called with the reason why it was not renewed.
        on_renewal: called with True when the API server answers a try, and False when one fails or is slow.
        timings: how long it lasts and is relied on.

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
        """What ``on_renewal`` was called with last."""
        self._renewed_at: float | None = None
        self._seen = LeaseSpec(lease_transitions=-1)
        """The lease as it was read last; before, one that does not exist yet."""
        self._observed: tuple[str, float] = ("", float("-inf"))
        self._expires: float | None = None
        """When another holder's lease runs out as far as we have seen."""
        self._led_at = float("-inf")
        """When we last saw that another candidate holds it and lives; before, when we began to look."""
        self._announced = False
        self._may_be_stored = False
        """Whether the server may say that we hold it, whatever we know: the answer to a write may not have come."""
        self.term = 0
        """The number of changes of the holder, as of the last time that we got the lease."""

    @property
    def held(self) -> bool:
        """Whether we may act now. Asked before every single write."""
        return self._left() > 0

    @property
    def is_led(self) -> bool:
        """Whether a live candidate holds it: we, or another that has renewed it not long ago."""
        return self.held or self._monotonic() < self._led_at + self._timings.lasts + self._timings.renew_deadline

    def _left(self) -> float:
        """How many seconds we may still act."""
        if self._renewed_at is None:
            return 0.0
        return self._renewed_at + self._timings.renew_deadline - self._monotonic()

    async def is_confirmed(self) -> bool:
        """Whether the API server says, too, that we hold it, since the term in which we got it."""
        try:
            lease = await self._read()
        except KubeError:
            return False
        spec = LeaseSpec() if lease is None or lease.spec is None else lease.spec
        is_ours = spec.holder_identity == self._identity and (spec.lease_transitions or 0) == self.term
        return self.held and is_ours

    async def run(self) -> None:
        """Try to get the lease and keep it, forever."""
        self._led_at = self._monotonic()
        while True:
            began = self._monotonic()
            slow = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._note_answer, False)  # noqa: FBT003
            try:
                # No longer than the lease is held: its end must be reported at once.
                patience = self._timings.renew_deadline / 2
                async with asyncio.timeout(min(patience, self._left()) if self.held else patience):
                    won = await self._try()
            except (KubeError, TimeoutError) as error:
                self._on_error(str(error) or type(error).__name__)
                self._note_answer(False)  # noqa: FBT003 - a callback's one argument
            else:
                self._note_answer(True)  # noqa: FBT003
                # Counted from before the call: the server's clock for it cannot have started earlier.
                self._renewed_at = began if won else None
            finally:
                slow.cancel()
            self._announce()
            await self._sleep()

    async def release(self) -> None:
        """Give the lease up, so that another takes over at once. Failing to is no error: it runs out.

        A write that was in progress when ``run`` was cancelled may be stored meanwhile.
        """
        if not self._may_be_stored:
            return
        self._renewed_at = None
        self._announce()
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                while not await self._is_released():
                    pass
        except (KubeError, TimeoutError) as error:
            self._on_error(str(error) or "not released in time")

    async def _is_released(self) -> bool:
        """Write that no candidate holds it, if we do. False: another write was faster, perhaps our last renewal."""
        lease = await self._read()
        if lease is None or lease.spec is None or lease.spec.holder_identity != self._identity:
            return True
        lease.spec.holder_identity, lease.spec.lease_duration_seconds = "", 1
        lease.spec.renew_time = exactly(time.time())
        return await self._write("PUT", f"{self._path}/{self._name}", lease)

    async def _sleep(self) -> None:
        """Until the next try, or until leadership runs out, ours or another's, whichever comes first."""
        seconds = self._timings.retry
        if self.held:
            seconds = min(seconds, self._left())
        elif self._expires is not None and (left := self._expires - self._monotonic()) > 0:
            seconds = min(seconds, left)
        await asyncio.sleep(seconds)
        self._announce()

    def _note_answer(self, is_answered: bool) -> None:  # noqa: FBT001 - a callback's one argument
        if is_answered != self._is_answered:
            self._is_answered = is_answered
            self._on_renewal(is_answered)

    def _announce(self) -> None:
        held = self.held
        if held != self._announced:
            self._announced = held
            self._on_change(held)

    async def _try(self) -> bool:
        lease = await self._read()
        if lease is not None:
            self._seen = lease.spec or LeaseSpec()
        spec = self._seen  # also of a Lease that was deleted: its holder may act until it would have run out
        seen = msgspec.json.encode(spec).decode()
        is_of_another = spec.holder_identity not in (None, "", self._identity)
        if seen != self._observed[0]:
            # Others' clocks are not compared with ours: what counts is how long *we* have seen no renewal.
            self._observed = (seen, self._monotonic())
            self._led_at = self._monotonic() if is_of_another else self._led_at
        # A stored duration beyond ours is no replica's: believed, one write would keep all of us from leading.
        expires = self._observed[1] + min(spec.lease_duration_seconds or self._timings.lasts, self._timings.lasts)
        if is_of_another and self._monotonic() < expires:
            self._expires = expires
            self._may_be_stored = False
            return False
        renewed = self._renewed(spec)
        self._may_be_stored = True
        if lease is None:
            fresh = LeaseObject({"name": self._name}, renewed)
            return self._won(spec, await self._write("POST", self._path, fresh))
        done = await self._write("PUT", f"{self._path}/{self._name}", LeaseObject(lease.metadata, renewed))
        if not done:  # a PUT is sent again if its connection ended, and conflicts with itself if it was done
            stored = await self._read()
            done = stored is not None and stored.spec == renewed
        return self._won(spec, done)

    def _won(self, before: LeaseSpec, won: bool) -> bool:  # noqa: FBT001 - of a write
        """Note what the lease was before, if we have it now and had not."""
        if won and not self.held:
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
        mine = spec.holder_identity == self._identity
        transitions = spec.lease_transitions or 0
        return LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=self._timings.lasts,
            acquire_time=spec.acquire_time if mine else exactly(time.time()),
            renew_time=exactly(time.time()),
            lease_transitions=transitions if mine else transitions + 1 if transitions < MAX_TRANSITIONS else 0,
        )
