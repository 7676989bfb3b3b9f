"""Formats of texts: taint and label keys, label values, namespaces, percentages.

The expressions for names are those of apimachinery's ``util/validation``. The CRD repeats all of them. They match the
full text, after a check of its length: ``$`` would accept a final newline, and a long text would match slowly.
"""

import re
from collections.abc import Iterator

from msgspec import UNSET

from taintwarden.fields.field_errors import FieldError

MAX_PREFIX_LENGTH = 253
MAX_NAME_LENGTH = 63
MAX_PLACED_PREFIX_LENGTH = 223
"""Maximum length of the prefix of a key that labels of placement repeat: their prefixes are up to 30 characters longer.
"""
MAX_KEY_LENGTH = MAX_PREFIX_LENGTH + 1 + MAX_NAME_LENGTH

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
KEY = rf"({DNS_SUBDOMAIN}/)?{_NAME}"
KEY_SELECTOR = rf"\*|({DNS_SUBDOMAIN}/)?{_NAME}|{DNS_SUBDOMAIN}/\*"
LABEL_VALUE = rf"({_NAME})?"
NAMESPACE = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
PERCENTAGE = r"[1-9][0-9]?%|100%"

_KEY_RULE = "letters, digits, '-', '_' and '.', at most 63, optionally after a DNS prefix and '/'"


def check_key_selector(text: str) -> Iterator[FieldError]:
    """Check the key in a policy's ``taints``: a key, ``prefix/*`` or ``*``."""
    if _matches(KEY_SELECTOR, text):
        return
    if not text:
        yield FieldError("", UNSET, "the key of a taint", "write a key, prefix/* or *")
    elif "=" in text or ":" in text:
        yield FieldError(
            "", text, "must be a key without value and effect", f"write {re.split('[=:]', text)[0] or '*'}"
        )
    elif "*" in text:
        yield FieldError("", text, "a star stands alone or after a whole prefix", "write prefix/* or *")
    else:
        yield FieldError("", text, f"is not a taint key: {_KEY_RULE}", "write for example sla or example.com/sla")


def is_key(text: str) -> bool:
    """Return True if this is the key of a label or of a toleration."""
    return _matches(KEY, text)


def is_label_value(text: str) -> bool:
    """Return True if this is the value of a label or of a taint."""
    return re.fullmatch(LABEL_VALUE, text) is not None


def is_placeable(key: str) -> bool:
    """Return True if labels of placement can repeat this key."""
    return key.rfind("/") <= MAX_PLACED_PREFIX_LENGTH


def check_key(text: str) -> Iterator[FieldError]:
    """Check the key of a label or of a toleration."""
    if not is_key(text):
        yield FieldError("", text, f"is not a key: {_KEY_RULE}", "write for example sla or example.com/sla")


def check_label_key(text: str) -> Iterator[FieldError]:
    """Check the key of a label of pods."""
    if not is_key(text):
        key = text.partition("=")[0]
        example = key if key != text and is_key(key) else "for example app.kubernetes.io/instance"
        yield FieldError("", text, f"is not the key of a label: {_KEY_RULE}", f"write {example}")


def check_label_value(text: str) -> Iterator[FieldError]:
    """Check the value of a label or of a taint."""
    if not is_label_value(text):
        yield FieldError(
            "",
            text,
            "must be empty, or at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
        )


def check_namespace(text: str) -> Iterator[FieldError]:
    """Check the name of a namespace. Patterns are not supported."""
    if not re.fullmatch(NAMESPACE, text):
        yield FieldError(
            "",
            text,
            "is not a namespace name: at most 63 lower-case letters, digits and '-'",
            "list each namespace, or use namespaceSelector" if "*" in text else "",
        )


def check_object_name(text: str) -> Iterator[FieldError]:
    """Check the name of a policy."""
    if not re.fullmatch(DNS_SUBDOMAIN, text):
        yield FieldError("", text, "is not an object name: lower-case letters, digits, '-' and '.'")


def check_driver(text: str) -> Iterator[FieldError]:
    """Check the name of the driver of a device."""
    if not re.fullmatch(DNS_SUBDOMAIN, text):
        yield FieldError("", text, "is not the name of a driver", "write for example gpu.example.com, or leave it out")


def check_percentage(text: str) -> Iterator[FieldError]:
    """Check a percentage, for example of the pods of a workload."""
    if re.fullmatch(PERCENTAGE, text):
        return
    if re.fullmatch(r"[1-9][0-9]{0,6}", text):
        share = f', or "{text}%" for a share' if int(text) <= 100 else ""
        yield FieldError("", text, "is no percentage", f"write {text}, without quotes{share}")
    elif found := re.fullmatch(r"([1-9][0-9]?)\.[0-9]+%", text):
        yield FieldError("", text, "must be a whole percentage", f'write "{found[1]}%"')
    else:
        yield FieldError("", text, "must be a percentage from 1% to 100%", 'write for example "25%"')


def _matches(pattern: str, key: str) -> bool:
    return bool(re.fullmatch(pattern, key)) and key.find("/") <= MAX_PREFIX_LENGTH
