"""Reads of a cluster besides its lists: the operator, the built-in controller, gates and rights."""

import asyncio
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from taintwarden.api.tolerations import TOLERATIONS_ANNOTATION
from taintwarden.cli.doctor.doctor_snapshot import BuiltIn, Missing, OperatorSettings, Rights, Trial
from taintwarden.cli.doctor.injected_namespaces import OURS
from taintwarden.cli.doctor.rights import ACCOUNT, MissingRoleError, Right, shipped_rights
from taintwarden.cli.serve.run import run
from taintwarden.controller.times import moment
from taintwarden.engine.model import Operator
from taintwarden.engine.operators import ROWS
from taintwarden.kube.errors import ApiError
from taintwarden.rehearsal.deployments import Container, Deployment, Template, read_deployments
from taintwarden.rehearsal.liveness import read_lease
from taintwarden.rehearsal.session import ClusterError, Session
from taintwarden.settings import Settings, SettingsError, load_settings

EXPIRED_SECONDS = 300.0
"""A kube-controller-manager renews its lease every few seconds; after this time without renewal it is not running."""
AT_ONCE = 8
LIMITED = Right("taintwarden.io", "accounts", "", "limit")
"""By this right, which gives nothing, the admission policies find the operator's account."""
LIMITS = ("taintwarden-nodes", "taintwarden-pods", "taintwarden-policies")
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_TRIAL_NAMESPACE = "default"
_TRIAL_PATH = f"/api/v1/namespaces/{_TRIAL_NAMESPACE}/pods"


class _Pods(msgspec.Struct):
    items: list[Template] = []


async def read_operator(session: Session, namespace: str) -> OperatorSettings | None:
    """The operator's settings in its Deployment; None if no Deployment is found.

    Raises:
        ClusterError: Deployments cannot be read.

    """
    deployments = await read_deployments(session, namespace)
    found = next(((one, container) for one in deployments for container in one.running("run")), None)
    return None if found is None else _operator(*found)


def _operator(deployment: Deployment, container: Container) -> OperatorSettings:
    words, spec = container.words, deployment.spec.template.spec
    settings = _settings(words[words.index("run") + 1 :], {one.name: one.value for one in container.env})
    gates = settings.gates
    name, replicas = deployment.metadata.name, deployment.spec.replicas
    return OperatorSettings(name, gates, settings.dry_run, replicas, spec.service_account_name)


def _settings(words: list[str], environment: Mapping[str, str]) -> Settings:
    """The settings as the operator itself reads them. It does not run with settings that it refuses."""
    try:
        # Without flags for help: click would cache those of this first call for all later ones.
        flags = run.make_context("run", list(words), resilient_parsing=True, help_option_names=[]).params
        return load_settings(environment, **flags)
    except (SettingsError, click.ClickException):
        return Settings()


async def read_built_in(session: Session, now: float) -> tuple[BuiltIn, BuiltIn]:
    """Whether the built-in taint eviction controllers run, for nodes and for devices.

    By the manager's lease, and its flags if they can be read.

    Raises:
        ClusterError: neither can be read.

    """
    lease = await read_lease(session, "kube-system", "kube-controller-manager")
    if lease is None or lease.spec is None or _has_expired(lease.spec.renew_time, now):
        return BuiltIn.ABSENT, BuiltIn.ABSENT
    selector = {"labelSelector": "component=kube-controller-manager"}
    found = await session.read("/api/v1/namespaces/kube-system/pods", _Pods, "pods of kube-system", selector)
    commands = [container.words for pod in (found.items if found else ()) for container in pod.spec.containers]

    def state(controller: str) -> BuiltIn:
        if not commands:
            return BuiltIn.PERHAPS
        return BuiltIn.RUNS if any(_is_on(command, controller) for command in commands) else BuiltIn.ABSENT

    return state("taint-eviction-controller"), state("device-taint-eviction-controller")


def _has_expired(renewed: str | None, now: float) -> bool:
    try:
        return now - moment(renewed or "") > EXPIRED_SECONDS
    except ValueError:
        return True


def _is_on(command: list[str], controller: str) -> bool:
    """As ``IsControllerEnabled`` of k8s.io/controller-manager: by name, else by the star."""
    flags = [word.partition("=")[2] for word in command if word.startswith("--controllers=")]
    names = [name for flag in flags for name in flag.split(",")] or ["*"]
    return controller in names or (f"-{controller}" not in names and "*" in names)


async def try_pods(session: Session) -> list[Trial]:
    """Check by a dry run whether the server accepts pods with operators that not every server supports.

    Raises:
        ClusterError: it refuses the pods for another reason, or this user may not create pods.

    """
    return [await _try(session, one, ROWS[one].family.example) for one in (Operator.GT, Operator.SEMVER_GT)]


async def try_webhooks(session: Session) -> bool | None:
    """Check by a dry run whether the webhooks reject a pod with an invalid annotation; None if others reject it."""
    body = _pod()
    body["metadata"]["annotations"] = {TOLERATIONS_ANNOTATION: "invalid"}
    try:
        await session.review(_TRIAL_PATH, body, msgspec.Raw, "try the webhooks (a dry run)", {"dryRun": "All"})
    except ClusterError as error:
        return True if OURS in str(error.__cause__) else None
    return False


async def _try(session: Session, operator: Operator, value: str) -> Trial:
    action = f"try pods with {operator} in namespace {_TRIAL_NAMESPACE} (a dry run)"
    body = _pod()
    toleration = {"key": "taintwarden.io/doctor", "operator": operator, "value": value, "effect": "NoSchedule"}
    body["spec"]["tolerations"] = [toleration]
    try:
        await session.review(_TRIAL_PATH, body, msgspec.Raw, action, {"dryRun": "All"})
    except ClusterError as error:
        refusal = error.__cause__
        if isinstance(refusal, ApiError) and refusal.code == 422:
            fields = [cause.field for cause in refusal.causes]
            if fields and all(field.startswith("spec.tolerations") for field in fields):
                return Trial(operator, accepted=False)
        raise
    return Trial(operator, accepted=True)


def _pod() -> dict[str, Any]:
    """A pod that the strictest pod security standard accepts, and that would run nothing."""
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    resources = {name: {"cpu": "1m", "memory": "1Mi"} for name in ("requests", "limits")}
    container = {
        "name": "none",
        "image": "registry.k8s.io/pause:3.10",
        "resources": resources,
        "securityContext": security,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "taintwarden-doctor-"},
        "spec": {"containers": [container], "automountServiceAccountToken": False},
    }


class _ReviewStatus(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


async def read_rights(session: Session, namespace: str) -> Rights:
    """Which of the shipped rights the operator's service account does not have.

    Raises:
        ClusterError: this user may not create access reviews.

    """
    try:
        rights = shipped_rights(namespace)
    except MissingRoleError as error:
        raise ClusterError(str(error)) from error
    account = await _account(session, namespace)
    turn = asyncio.Semaphore(AT_ONCE)

    async def ask(right: Right) -> bool:
        async with turn:
            return await _is_allowed(session, namespace, account, right)

    # The first one alone: if the user may not create reviews, that is reported once, not for every request.
    allowed = [await ask(right) for right in rights[:1]]
    allowed += await asyncio.gather(*(ask(right) for right in rights[1:]))
    missing = [right for right, has in zip(rights, allowed, strict=True) if not has]
    told = "" if len(missing) == len(rights) else await _unlimited(session, namespace, account)
    return Rights(f"{namespace}/{account}", len(rights), tuple(_by_resource(missing)), len(missing), told)


class _BindingSpec(msgspec.Struct, rename="camel"):
    policy_name: str = ""
    validation_actions: list[str] = []


class _Binding(msgspec.Struct):
    spec: _BindingSpec = msgspec.field(default_factory=_BindingSpec)


class _Bindings(msgspec.Struct):
    items: list[_Binding] = []


async def _unlimited(session: Session, namespace: str, account: str) -> str:
    if not await _is_allowed(session, namespace, account, LIMITED):
        return f"no binding gives it the right to {LIMITED.verb} {LIMITED.resource}.{LIMITED.group}"
    try:
        found = await session.read(_BINDINGS, _Bindings, "bindings of admission policies")
    except ClusterError:  # not every user may read them
        return ""
    denied = [one.spec.policy_name for one in (found.items if found else ()) if "Deny" in one.spec.validation_actions]
    missing = [name for name in LIMITS if not any(one.endswith(name) for one in denied)]  # kustomize may prefix them
    return f"no binding denies what {', '.join(missing)} would" if missing else ""


async def _account(session: Session, namespace: str) -> str:
    """The service account in the operator's Deployment; if that cannot be read, the one in the manifest."""
    try:
        operator = await read_operator(session, namespace)
    except ClusterError:
        operator = None
    return operator.account if operator is not None and operator.account else ACCOUNT


async def _is_allowed(session: Session, namespace: str, account: str, right: Right) -> bool:
    attributes = {
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource,
        "verb": right.verb,
        "namespace": right.namespace,
        "name": right.name,
    }
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    user = f"system:serviceaccount:{namespace}:{account}"
    spec = {"user": user, "groups": groups, "resourceAttributes": attributes}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = await session.review(path, body, _Review, "create subjectaccessreviews")
    return answer.status.allowed


def _by_resource(missing: list[Right]) -> list[Missing]:
    found: dict[tuple[str, str], list[str]] = {}
    for right in missing:
        resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
        resource = f"{resource}.{right.group}" if right.group else resource
        name = f" {right.name}" if right.name else ""
        place = f"{name} in {right.namespace}" if right.namespace else name
        found.setdefault((resource, place), []).append(right.verb)
    return [Missing(resource, tuple(verbs), place) for (resource, place), verbs in found.items()]
