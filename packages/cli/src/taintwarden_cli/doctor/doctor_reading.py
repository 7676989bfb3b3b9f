"""Reads the sources of the checks. Pods and pod templates are counted page by page, and not kept."""

import re
from collections.abc import Iterable, Mapping

import click

from taintwarden.engine.model import Gates
from taintwarden.engine.rfc3339 import read_time
from taintwarden.settings import Settings, SettingsError, load_settings
from taintwarden_cli.doctor.doctor_snapshot import (
    RIGHTS,
    BuiltIn,
    DoctorSnapshot,
    MissingRights,
    OperatorSettings,
    WebhookConfiguration,
)
from taintwarden_cli.doctor.inventory import Inventory
from taintwarden_cli.rehearsal.deployments import Deployment, Template, read_deployments, runs_extender, webhook_problem
from taintwarden_cli.rehearsal.liveness import read_lease, watch_lease
from taintwarden_cli.rehearsal.reading import Reader
from taintwarden_cli.rehearsal.session import ClusterError, Page, Session
from taintwarden_cli.rehearsal.sources import DEVICES, OBJECTS, WORKLOADS, Source
from taintwarden_cli.serve.serve_commands import run
from taintwarden_cli.status.event_timeline import KEPT_SECONDS, read_events
from taintwarden_cli.status.inspection import inspect_cluster

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
EXPIRED_SECONDS = 300.0
"""Seconds without renewal of its Lease after which kube-controller-manager counts as stopped."""
CANCELLED = "EvictionCancelled"
"""Reason of the Events that are read."""
_ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def read_sources(wanted: Iterable[Source], session: Session, found: DoctorSnapshot) -> None:
    """Read these sources into ``found``, concurrently. Raises ClusterError if none of them can be read."""
    wanted = frozenset(wanted)
    reader = _DoctorReader(session, found)
    await reader.read(wanted)
    if wanted and found.problems.keys() >= wanted - {*DEVICES, Source.INSPECTION}:  # read after the policies, if at all
        raise ClusterError(next(iter(found.problems.values())))
    found.add_inventory(reader.inventory)
    if Source.INSPECTION in wanted:
        gates = found.operator.gates if found.operator is not None else Gates()
        inspection = await inspect_cluster(session, found.policies, gates, found.now)
        found.findings = inspection.by_policy
        if inspection.unread:
            found.problems = {**found.problems, Source.INSPECTION: "; ".join(inspection.unread)}


class _DoctorReader(Reader):
    after_policies = DEVICES  # Deployments are always read, for their templates

    def __init__(self, session: Session, found: DoctorSnapshot) -> None:
        super().__init__(session, found)
        self.inventory = Inventory(found.now)
        self._all = found

    async def _read(self, source: Source) -> None:
        session, found = self._session, self._all
        match source:
            case Source.PODS:
                await self._pages(source, OBJECTS[source], self.inventory.add_pods)
            case _ if source in WORKLOADS:
                listing = WORKLOADS[source]
                await self._pages(source, listing, lambda page: self.inventory.add_workloads(listing, page))
            case Source.MUTATING:
                found.mutating = await self._webhooks(source)
            case Source.VALIDATING:
                found.validating = await self._webhooks(source)
            case Source.EVENTS:
                events = await read_events(session, found.now - KEPT_SECONDS, CANCELLED)
                found.cancelled = [happening for _, happening in events]
            case Source.LEASE:
                found.lease, found.lease_is_late = await watch_lease(session, found.namespace, found.now)
            case Source.OPERATOR:
                deployments = await read_deployments(session, found.namespace)
                found.operator = operator_in(deployments)
                found.has_extender = runs_extender(deployments)
                found.webhook_problem = webhook_problem(deployments, found.namespace)
            case Source.BUILT_IN:
                found.built_in, found.built_in_for_devices = await read_built_in(session, found.now)
            case Source.INSPECTION:
                pass  # ``read_sources`` reads it after the policies
            case Source.RIGHTS:
                found.rights = await read_missing_rights(session, found.namespace)
            case _:
                await super()._read(source)

    async def _webhooks(self, source: Source) -> list[WebhookConfiguration]:
        return await self._session.items(f"{WEBHOOKS}/{source}", WebhookConfiguration, source.value)


def operator_in(deployments: Iterable[Deployment]) -> OperatorSettings | None:
    """The operator's settings in its Deployment; None if there is no Deployment of the operator."""
    found = next(((one, container) for one in deployments for container in one.containers_running("run")), None)
    if found is None:
        return None
    deployment, container = found
    words = container.words
    settings = _settings(words[words.index("run") + 1 :], {variable.name: variable.value for variable in container.env})
    account = deployment.spec.template.spec.service_account_name
    name, replicas = deployment.metadata.name, deployment.spec.replicas
    return OperatorSettings(name, settings.gates, replicas, account, settings.drained_condition)


def _settings(words: list[str], environment: Mapping[str, str]) -> Settings:
    """The settings as the operator reads them; the defaults if they are invalid, since it does not start with them."""
    try:
        # Without help options, which click would cache for all later calls.
        flags = run.make_context("run", list(words), resilient_parsing=True, help_option_names=[]).params
        return load_settings(environment, **flags)
    except (SettingsError, click.ClickException):
        return Settings()


async def read_missing_rights(session: Session, namespace: str) -> MissingRights:
    """The rights that the operator's service account lacks: that of its Deployment, else ``taintwarden``.
    Raises ClusterError if access reviews cannot be created.
    """
    try:
        operator = operator_in(await read_deployments(session, namespace))
    except ClusterError:
        operator = None
    account = operator.account if operator is not None and operator.account else "taintwarden"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    missing = []
    for right in RIGHTS:
        resource, _, sub = right.resource.partition("/")
        attributes = {"group": right.group, "resource": resource, "subresource": sub, "verb": right.verb}
        user = f"system:serviceaccount:{namespace}:{account}"
        spec = {"user": user, "groups": groups, "resourceAttributes": attributes}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = await session.review(_ACCESS, body, "create subjectaccessreviews")
        missing += [] if answer.get("allowed") else [right]
    return MissingRights(f"{namespace}/{account}", tuple(missing))


async def read_built_in(session: Session, now: float) -> tuple[BuiltIn, BuiltIn]:
    """The states of the built-in taint eviction controllers for nodes and for devices.

    Read from the Lease of kube-controller-manager and the flags of its pods. Raises ClusterError if either read fails.
    """
    lease = await read_lease(session, "kube-system", "kube-controller-manager")
    if lease is None or lease.spec is None or now - (read_time(lease.spec.renew_time) or 0.0) > EXPIRED_SECONDS:
        return BuiltIn.ABSENT, BuiltIn.ABSENT
    selector = {"labelSelector": "component=kube-controller-manager"}
    found = await session.read("/api/v1/namespaces/kube-system/pods", Page[Template], "pods of kube-system", selector)
    commands = [container.words for pod in (found.items if found else ()) for container in pod.spec.containers]

    def state(controller: str) -> BuiltIn:
        if not commands:
            return BuiltIn.PERHAPS
        return BuiltIn.RUNS if any(_is_enabled(command, controller) for command in commands) else BuiltIn.ABSENT

    return state("taint-eviction-controller"), state("device-taint-eviction-controller")


def _is_enabled(command: list[str], controller: str) -> bool:
    """True if the flags enable a controller, by name or by ``*``, as in Kubernetes' ``IsControllerEnabled``."""
    flags = re.findall(r"--controllers[ =](\S+)", " ".join(command))
    names = [name for flag in flags for name in flag.split(",")] or ["*"]
    return controller in names or (f"-{controller}" not in names and "*" in names)
