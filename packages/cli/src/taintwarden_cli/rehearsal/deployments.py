"""The Deployments of the project in a cluster, and the commands that their containers run."""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from taintwarden_cli.rehearsal.session import Page, Session
from taintwarden_cli.rehearsal.sources import Named

EXTENDER = "scheduler-extender"
"""The command of the scheduler extender."""
WEBHOOK = "webhook"
"""The command of the webhooks."""
WEBHOOK_DEPLOYMENT = ", the webhook"
"""Clause that only the :func:`webhook_problem` of a Deployment that exists contains."""
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_SELECTOR = {"labelSelector": "app.kubernetes.io/name=taintwarden"}


class Env(msgspec.Struct):
    """An item of ``env``."""

    name: str = ""
    value: str = ""


class Container(msgspec.Struct):
    """The command line and environment of a container."""

    command: list[str] = []
    args: list[str] = []
    env: list[Env] = []

    @property
    def words(self) -> list[str]:
        """The command line."""
        return [*self.command, *self.args]


class ContainersSpec(msgspec.Struct, rename="camel"):
    """``spec`` of a pod, or of a template."""

    containers: list[Container] = []
    service_account_name: str = ""


class Template(msgspec.Struct):
    """A pod, or a template."""

    spec: ContainersSpec = msgspec.field(default_factory=ContainersSpec)


class DeploymentSpec(msgspec.Struct):
    """``spec`` of a Deployment."""

    template: Template = msgspec.field(default_factory=Template)
    replicas: int = 1


class Deployment(Named):
    """A Deployment."""

    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: dict[str, Any] = msgspec.field(default_factory=dict)

    def containers_running(self, command: str) -> Iterator[Container]:
        """The containers that run this command."""
        return (container for container in self.spec.template.spec.containers if command in container.words)


async def read_deployments(session: Session, namespace: str) -> list[Deployment]:
    """Read the project's Deployments in the operator's namespace. Raises ClusterError if they cannot be read."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    found = await session.read(path, Page[Deployment], f"deployments of {namespace}", _SELECTOR)
    return found.items if found else []


async def read_webhook_problem(session: Session, namespace: str) -> str:
    """Read the :func:`webhook_problem`; empty if the webhook is not installed at all. Raises ClusterError."""
    why = webhook_problem(await read_deployments(session, namespace), namespace)
    if not why or WEBHOOK_DEPLOYMENT in why:
        return why
    found = await session.items(_CONFIGURATIONS, dict[str, Any], "mutatingwebhookconfigurations")
    return why if b".taintwarden.io" in msgspec.json.encode(found) else ""


def webhook_problem(deployments: Collection[Deployment], namespace: str) -> str:
    """Why the webhook completes no new pods: no replica is ready, or Deployments exist and none runs it. Else empty."""
    found = [deployment for deployment in deployments if any(deployment.containers_running(WEBHOOK))]
    unready = next((item.metadata.name for item in found if not item.status.get("readyReplicas")), None)
    why = "" if found or not deployments else f"no Deployment of namespace {namespace} runs the webhook"
    if unready is not None:
        why = f"no replica of Deployment {namespace}/{unready}{WEBHOOK_DEPLOYMENT}, is ready"
    return why and f"{why}: new pods get no placement and no native tolerations"


def runs_extender(deployments: Collection[Deployment]) -> bool:
    """True if one of the Deployments runs a scheduler extender."""
    return any(deployment.spec.replicas and any(deployment.containers_running(EXTENDER)) for deployment in deployments)
