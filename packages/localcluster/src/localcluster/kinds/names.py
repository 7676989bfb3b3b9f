"""The syntax of metadata: names, labels, annotations and owner references.

Rules and wording: `k8s.io/apimachinery/pkg/util/validation` and `.../api/validation`. Forbidden here: kinds.
"""

import re
from collections.abc import Mapping
from typing import Any

from localcluster.errors import Cause, required, wrong

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_NAME})?"
_ANNOTATIONS_BYTES_MAX = 256 * 1024

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_NAME_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def subdomain_problems(name: str) -> list[str]:
    """Return why a name is not an RFC 1123 subdomain; empty if it is one."""
    problems = [_too_long(253)] if len(name) > 253 else []
    return problems if re.fullmatch(_SUBDOMAIN, name) else [*problems, _SUBDOMAIN_TEXT]


def label_problems(name: str) -> list[str]:
    """Return why a name is not an RFC 1123 label; empty if it is one."""
    problems = [_too_long(63)] if len(name) > 63 else []
    return problems if re.fullmatch(_LABEL, name) else [*problems, _LABEL_TEXT]


def value_problems(value: str) -> list[str]:
    """Return why a text is not a label value; empty if it is one."""
    problems = [_too_long(63)] if len(value) > 63 else []
    return problems if re.fullmatch(_VALUE, value) else [*problems, _VALUE_TEXT]


def key_problems(key: str) -> list[str]:
    """Return why a key of a label or annotation is not a qualified name; empty if it is one."""
    prefix, slash, name = key.rpartition("/")
    problems = []
    if "/" in prefix:
        return [f"a qualified name {_NAME_TEXT.removeprefix('name part ')} with an optional DNS subdomain prefix"]
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif prefix:
        problems += [f"prefix part {text}" for text in subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part " + _too_long(63))
    if not re.fullmatch(_NAME, name):
        problems.append(_NAME_TEXT)
    return problems


def check_key(key: str, path: str) -> list[Cause]:
    """Check the key of a taint, a toleration or a label."""
    return [wrong(path, key, text) for text in key_problems(key)]


def check_metadata(meta: Mapping[str, Any], *, is_dns_label: bool = False) -> list[Cause]:
    """Check the name, which has to be a DNS label if `is_dns_label`, labels, annotations and owner references."""
    name = meta.get("name", "")
    problems = label_problems(name) if is_dns_label else subdomain_problems(name)
    causes = [wrong("metadata.name", name, text) for text in problems]
    for key, value in (meta.get("labels") or {}).items():
        causes += check_key(key, "metadata.labels")
        causes += [wrong("metadata.labels", value, text) for text in value_problems(value)]
    annotations = meta.get("annotations") or {}
    for key in annotations:
        causes += [wrong("metadata.annotations", key, text) for text in key_problems(key.lower())]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _ANNOTATIONS_BYTES_MAX:
        text = f"Too long: may not be more than {_ANNOTATIONS_BYTES_MAX} bytes"
        causes.append(Cause("FieldValueTooLong", text, "metadata.annotations"))
    for index, owner in enumerate(meta.get("ownerReferences") or ()):
        causes += [
            required(f"metadata.ownerReferences[{index}].{field}", f"{field} must not be empty")
            for field in ("apiVersion", "kind", "name", "uid")
            if not owner.get(field)
        ]
    return causes
