"""Which of the shipped rights the operator has: those of ``deploy/base/rbac.yaml``."""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import yaml

import taintwarden
from taintwarden_cli.doctor.doctor_snapshot import Missing, Rights
from taintwarden_cli.rehearsal.session import ClusterError, Session

_PACKAGE = Path(taintwarden.__file__).parent
PLACES = (_PACKAGE / "rbac.yaml", _PACKAGE.parent.parent / "deploy" / "base" / "rbac.yaml")
"""Next to the package in a wheel, in ``deploy/`` of a checkout."""
ACCOUNT = "taintwarden"
AT_ONCE = 8
OPTIONAL_ROLES = ("taintwarden-delete", "taintwarden-devices")
"""Bound by separate components, if policies delete pods or select taints of devices."""


class MissingRoleError(Exception):
    """The manifest does not exist; the message names the paths."""


class Right(msgspec.Struct, frozen=True):
    """One verb on one resource. ``namespace`` is empty for the whole cluster."""

    group: str
    resource: str
    subresource: str
    verb: str
    namespace: str = ""
    name: str = ""


def shipped_rights(namespace: str, places: Iterable[Path] = PLACES) -> list[Right]:
    """The rights in the roles that are bound to the service account, for an operator in ``namespace``.

    Raises:
        MissingRoleError: the manifest is in none of ``places``.

    """
    places = tuple(places)
    for place in places:
        if place.is_file():
            documents = [one for one in yaml.safe_load_all(place.read_text("utf-8")) if one]
            return list(dict.fromkeys(_rights(documents, namespace)))
    msg = f"found no rbac.yaml in {' and '.join(map(str, places))}: install the package again"
    raise MissingRoleError(msg)


def _rights(documents: list[dict[str, Any]], namespace: str) -> Iterator[Right]:
    for role in documents:
        if role["metadata"]["name"] in OPTIONAL_ROLES:
            yield from _of_role(role, "")
    roles = {(one["kind"], one["metadata"]["name"]): one for one in documents if "rules" in one}
    for binding in documents:
        if not any(subject.get("name") == ACCOUNT for subject in binding.get("subjects", ())):
            continue
        role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        here = namespace if binding["kind"] == "RoleBinding" else ""
        yield from _of_role(role, here)


def _of_role(role: dict[str, Any], namespace: str) -> Iterator[Right]:
    for rule in role["rules"]:
        names = rule.get("resourceNames") or [""]
        for group, resource, verb, name in product(rule["apiGroups"], rule["resources"], rule["verbs"], names):
            whole, _, sub = resource.partition("/")
            yield Right(group, whole, sub, verb, namespace, name)


class _ReviewStatus(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


async def read_rights(session: Session, namespace: str, account: str) -> Rights:
    """Which of the shipped rights the operator's service account does not have.

    Raises:
        ClusterError: this user may not create access reviews.

    """
    try:
        rights = shipped_rights(namespace)
    except MissingRoleError as error:
        raise ClusterError(str(error)) from error
    turn = asyncio.Semaphore(AT_ONCE)

    async def ask(right: Right) -> bool:
        async with turn:
            return await _is_allowed(session, namespace, account, right)

    # The first one alone: if the user may not create reviews, that is reported once, not for every request.
    allowed = [await ask(right) for right in rights[:1]]
    allowed += await asyncio.gather(*(ask(right) for right in rights[1:]))
    missing = [right for right, has in zip(rights, allowed, strict=True) if not has]
    return Rights(f"{namespace}/{account}", len(rights), tuple(_by_resource(missing)), len(missing))


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
