"""The rights that the operator is shipped with, read from the manifest itself: ``deploy/base/rbac.yaml``."""

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import yaml

import taintwarden

_PACKAGE = Path(taintwarden.__file__).parent
PLACES = (_PACKAGE / "rbac.yaml", _PACKAGE.parent.parent / "deploy" / "base" / "rbac.yaml")
"""Next to the package in a wheel, in ``deploy/`` of a checkout."""
ACCOUNT = "taintwarden"
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
