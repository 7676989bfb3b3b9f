"""Formats of texts: taint and label keys, label values, namespaces, percentages.

The regular expressions are those of apimachinery's ``util/validation``. The CRDs repeat them. Match the full text,
since ``$`` accepts a final newline, and check the length first, since long texts match slowly.
"""

import re
from collections.abc import Iterator

from msgspec import UNSET

from taintwarden.fields.field_errors import FieldError

MAX_PREFIX_LENGTH = 253
MAX_NAME_LENGTH = 63
MAX_PLACED_PREFIX_LENGTH = 223
"""Maximum length of a key's prefix that placement can copy to a label, whose prefix is up to 30 characters longer."""
MAX_KEY_LENGTH = MAX_PREFIX_LENGTH + 1 + MAX_NAME_LENGTH

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
KEY = rf"({DNS_SUBDOMAIN}/)?{_NAME}"
KEY_SELECTOR = rf"\*|({DNS_SUBDOMAIN}/)?{_NAME}|{DNS_SUBDOMAIN}/\*"
LABEL_VALUE = rf"({_NAME})?"
NAMESPACE = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
PERCENTAGE = r"[1-9][0-9]?%|100%"

_KEY_RULE = "no more than 63 alphanumeric characters, '-', '_' or '.', optionally after a DNS prefix and '/'"
_SAME_ENDS = "starting and ending with an alphanumeric character"


def check_key_selector(text: str) -> Iterator[FieldError]:
    """Check the key in a policy's ``taints``: a key, ``prefix/*`` or ``*``."""
    if _matches(KEY_SELECTOR, text):
        return
    if not text:
        yield FieldError("", UNSET, "must be the key of a taint", "write a key, prefix/* or *")
    elif "=" in text or ":" in text:
        yield FieldError(
            "", text, "must be a key without value and effect", f"write {re.split('[=:]', text)[0] or '*'}"
        )
    elif "*" in text:
        yield FieldError("", text, "must be *, or end in /* after a whole prefix", "write prefix/* or *")
    else:
        yield FieldError(
            "", text, f"must be the key of a taint: {_KEY_RULE}", "write for example sla or example.com/sla"
        )


def is_key(text: str) -> bool:
    """Return True if this is the key of a label or of a toleration."""
    return _matches(KEY, text)


def is_label_value(text: str) -> bool:
    """Return True if this is the value of a label or of a taint."""
    return re.fullmatch(LABEL_VALUE, text) is not None


def is_placeable(key: str) -> bool:
    """Return True if placement can copy this key to a label."""
    return key.rfind("/") <= MAX_PLACED_PREFIX_LENGTH


def check_key(text: str) -> Iterator[FieldError]:
    """Check the key of a label or of a toleration."""
    if not is_key(text):
        yield FieldError("", text, f"must be a key: {_KEY_RULE}", "write for example sla or example.com/sla")


def check_label_key(text: str) -> Iterator[FieldError]:
    """Check the key of a pod label."""
    if not is_key(text):
        key = text.partition("=")[0]
        example = key if key != text and is_key(key) else "for example app.kubernetes.io/instance"
        yield FieldError("", text, f"must be the key of a label: {_KEY_RULE}", f"write {example}")


def check_label_value(text: str) -> Iterator[FieldError]:
    """Check the value of a label or of a taint."""
    if not is_label_value(text):
        yield FieldError(
            "",
            text,
            f"must be empty, or no more than 63 alphanumeric characters, '-', '_' or '.', {_SAME_ENDS}",
        )


def check_namespace(text: str) -> Iterator[FieldError]:
    """Check the name of a namespace. Patterns are not supported."""
    if not re.fullmatch(NAMESPACE, text):
        yield FieldError(
            "",
            text,
            f"must be the name of a namespace: no more than 63 lower case alphanumeric characters or '-', {_SAME_ENDS}",
            "list each namespace, or use namespaceSelector" if "*" in text else "",
        )


def check_object_name(text: str) -> Iterator[FieldError]:
    """Check the name of a policy or another object."""
    if not re.fullmatch(DNS_SUBDOMAIN, text):
        yield FieldError("", text, f"must consist of lower case alphanumeric characters, '-' or '.', {_SAME_ENDS}")


def check_driver(text: str) -> Iterator[FieldError]:
    """Check the name of the driver of a device."""
    if not re.fullmatch(DNS_SUBDOMAIN, text):
        yield FieldError("", text, "must be the name of a driver", "write for example gpu.example.com, or leave it out")


def check_percentage(text: str) -> Iterator[FieldError]:
    """Check a percentage, for example of the pods of a workload."""
    if re.fullmatch(PERCENTAGE, text):
        return
    if re.fullmatch(r"[1-9][0-9]{0,6}", text):
        share = f', or "{text}%" for a share' if int(text) <= 100 else ""
        yield FieldError("", text, "must be a percentage", f"write {text}, without quotes{share}")
    elif found := re.fullmatch(r"([1-9][0-9]?)\.[0-9]+%", text):
        yield FieldError("", text, "must be a whole percentage", f'write "{found[1]}%"')
    else:
        yield FieldError("", text, "must be a percentage between 1% and 100%, inclusive", 'write for example "25%"')


def _matches(pattern: str, key: str) -> bool:
    return bool(re.fullmatch(pattern, key)) and key.find("/") <= MAX_PREFIX_LENGTH
