"""Reads the sources of the checks, and nothing else. Pods and pod templates are counted page by page, and not kept."""

from collections.abc import Iterable

from taintwarden.cli.doctor import probing
from taintwarden.cli.doctor.doctor_snapshot import DoctorSnapshot, FullBudget, PublisherObject, WebhookConfiguration
from taintwarden.cli.doctor.inventory import Inventory
from taintwarden.rehearsal.deployments import has_extender
from taintwarden.rehearsal.liveness import watch_lease
from taintwarden.rehearsal.reading import Progress, Reader
from taintwarden.rehearsal.session import ClusterError, ForbiddenError, NotServedError, Session
from taintwarden.rehearsal.sources import DEVICES, OBJECTS, WORKLOADS, Source

MAX_CONNECTIONS = 12
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"


async def read_for(wanted: Iterable[Source], session: Session, found: DoctorSnapshot, progress: Progress) -> None:
    """Read these sources concurrently.

    Raises:
        ClusterError: none of them can be read.

    """
    wanted = frozenset(wanted)
    reader = _DoctorReader(session, found, progress)
    await reader.read(wanted)
    if wanted and found.problems.keys() >= wanted - frozenset(DEVICES):  # these are read after the policies
        raise ClusterError(next(iter(found.problems.values())))
    found.take(reader.inventory)


class _DoctorReader(Reader):
    def __init__(self, session: Session, found: DoctorSnapshot, progress: Progress) -> None:
        super().__init__(session, found, progress)
        self.inventory = Inventory(found.now)
        self._all = found
        self._budget_type = FullBudget

    async def _read(self, source: Source) -> None:
        session, found = self._session, self._all
        match source:
            case Source.PODS:
                await self._pages(source, OBJECTS[source], self.inventory.add_pods)
            case Source.PENDING:
                await self._pages(source, OBJECTS[source], self.inventory.add_pending)
            case _ if source in WORKLOADS:
                listing = WORKLOADS[source]
                await self._pages(source, listing, lambda page: self.inventory.add_workloads(listing, page))
            case Source.MUTATING:
                found.mutating = await self._webhooks(source)
            case Source.VALIDATING:
                found.validating = await self._webhooks(source)
            case Source.PUBLISHERS:
                await self._publishers(source)
            case Source.LEASE:
                found.lease, found.lease_is_late = await watch_lease(session, found.namespace, found.now)
            case Source.OPERATOR:
                found.operator = await probing.read_operator(session, found.namespace)
                found.has_extender = await has_extender(session, found.namespace)
            case Source.BUILT_IN:
                found.built_in, found.built_in_for_devices = await probing.read_built_in(session, found.now)
            case Source.TRIAL:
                found.trials = await probing.try_pods(session)
                found.webhooks_answer = await probing.try_webhooks(session)
            case Source.RIGHTS:
                found.rights = await probing.read_rights(session, found.namespace)
            case _:
                await super()._read(source)

    async def _publishers(self, source: Source) -> None:
        try:
            self._all.publishers = await self._objects(source, PublisherObject)
        except NotServedError:
            return  # the kind is optional
        except ForbiddenError:
            self._all.publishers_hidden = True  # RBAC answers before the kind is looked up
            raise

    async def _webhooks(self, source: Source) -> list[WebhookConfiguration]:
        return await self._session.items(f"{WEBHOOKS}/{source}", WebhookConfiguration, source.value)
