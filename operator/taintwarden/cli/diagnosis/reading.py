"""Reads what checks look at, and nothing else, with the rights of whoever asks. One thing that fails costs no other."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from taintwarden.cli.cluster import stored_policies, stored_profiles
from taintwarden.cli.diagnosis import probing
from taintwarden.cli.diagnosis.census import Census
from taintwarden.cli.diagnosis.snapshot import FullBudget, Snapshot, WebhookConfiguration
from taintwarden.cli.diagnosis.sources import OBJECTS, WORKLOADS, Listing, Source
from taintwarden.cli.diagnosis.subjects import UNREADABLE, Subject, identity
from taintwarden.cli.session import ClusterError, Session
from taintwarden.kube.custom import GROUP_PATH
from taintwarden.kube.lease import LEASE_NAME
from taintwarden.kube.objects import NamespaceObject, NodeObject
from taintwarden.kube.profiles import PLURAL as PROFILES

MAX_CONNECTIONS = 12
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
T = TypeVar("T")
Progress = Callable[[str], None]


class _WebhookList(msgspec.Struct):
    items: list[WebhookConfiguration] = []


class Reader:
    """One reading of one cluster.

    Args:
        session: whom to ask.
        namespace: where the operator is looked for.
        now: the time, in seconds since the epoch.
        progress: told what goes on.

    """

    def __init__(self, session: Session, namespace: str, now: float, progress: Progress = lambda _: None) -> None:
        self._session = session
        self._progress = progress
        self._census = Census(now)
        self._unreadable: list[tuple[Subject, str]] = []
        self._problems: dict[Source, str] = {}
        self._snapshot = Snapshot(now, session.server, namespace)

    async def read(self, wanted: Iterable[Source]) -> Snapshot:
        """Read these, all at once.

        Raises:
            ClusterError: not one of them can be read.

        """
        sources = [source for source in Source if source in frozenset(wanted)]
        await asyncio.gather(*(self._attempt(source) for source in sources))
        if sources and len(self._problems) == len(sources):
            raise ClusterError(self._problems[sources[0]])
        self._census.close()
        found = self._snapshot
        found.groups, found.pods, found.templates = self._census.groups, self._census.pods, self._census.templates
        found.unreadable = [*self._unreadable, *self._census.unreadable]
        # In the order of the sources, not in that of the answers.
        found.problems = {source: self._problems[source] for source in sources if source in self._problems}
        return found

    async def _attempt(self, source: Source) -> None:
        try:
            await self._read(source)
        except ClusterError as error:
            self._problems[source] = str(error)

    async def _read(self, source: Source) -> None:
        session, found = self._session, self._snapshot
        match source:
            case Source.PODS:
                await self._pages(source, OBJECTS[source], self._census.add_pods)
            case _ if source in WORKLOADS:
                listing = WORKLOADS[source]
                await self._pages(source, listing, lambda page: self._census.add_workloads(listing, page))
            case Source.NODES:
                found.nodes = await self._objects(source, NodeObject)
            case Source.NAMESPACES:
                found.namespaces = await self._objects(source, NamespaceObject)
            case Source.BUDGETS:
                found.budgets = await self._objects(source, FullBudget)
            case Source.POLICIES:
                found.policies = await stored_policies(session)
            case Source.PROFILES:
                found.profiles = await stored_profiles(session, f"{GROUP_PATH}/{PROFILES}")
            case Source.MUTATING:
                found.mutating = await self._webhooks(source)
            case Source.VALIDATING:
                found.validating = await self._webhooks(source)
            case _:
                await self._probe(source)

    async def _probe(self, source: Source) -> None:
        session, found = self._session, self._snapshot
        match source:
            case Source.LEASE:
                found.lease = await probing.read_lease(session, found.namespace, LEASE_NAME)
            case Source.OPERATOR:
                found.operator = await probing.read_operator(session, found.namespace)
            case Source.BUILT_IN:
                found.built_in = await probing.read_built_in(session, found.now)
            case Source.TRIAL:
                found.trials = await probing.try_pods(session)
            case _:
                found.rights = await probing.read_rights(session, found.namespace)

    async def _pages(self, source: Source, listing: Listing, take: Callable[[list[bytes]], Any]) -> None:
        count = 0
        async for page in self._session.pages(listing.path, msgspec.Raw, source.value, listing.field_selector):
            take([bytes(one) for one in page])
            count += len(page)
            self._progress(f"reading the cluster: {count} {source}")

    async def _objects(self, source: Source, kind: type[T]) -> list[T]:
        """All of a list that are what they should be; the others are noted."""
        listing = OBJECTS[source]
        decoder, found = msgspec.json.Decoder(kind), []

        def take(page: list[bytes]) -> None:
            for raw in page:
                try:
                    found.append(decoder.decode(raw))
                except UNREADABLE as error:
                    self._unreadable.append((identity(listing.kind, raw), " ".join(str(error).split())))

        await self._pages(source, listing, take)
        return found

    async def _webhooks(self, source: Source) -> list[WebhookConfiguration]:
        found = await self._session.read(f"{WEBHOOKS}/{source}", _WebhookList, source.value)
        if found is None:
            msg = f"the cluster at {self._session.server} does not serve {source}"
            raise ClusterError(msg)
        return found.items
