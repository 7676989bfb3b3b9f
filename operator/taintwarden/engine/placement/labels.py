"""The labels that repeat a taint or a version on its node. A function returns None where the prefix is too long.

Taints with ``PreferNoSchedule`` have labels of their own: the scheduler must not need what it only prefers.
"""

from collections.abc import Iterable

from taintwarden.engine.model import Effect

VALUE_DOMAIN = "value.taintwarden.io"
VERSION_DOMAIN = "version.taintwarden.io"
EFFECT_DOMAIN = "effect.taintwarden.io"
PREFER_VALUE_DOMAIN = "prefer-value.taintwarden.io"
PREFER_VERSION_DOMAIN = "prefer-version.taintwarden.io"
LABEL_VERSION_DOMAIN = "label-version.taintwarden.io"
_DOMAINS = (
    VALUE_DOMAIN,
    VERSION_DOMAIN,
    EFFECT_DOMAIN,
    PREFER_VALUE_DOMAIN,
    PREFER_VERSION_DOMAIN,
    LABEL_VERSION_DOMAIN,
)

# Of a label's key: apimachinery's util/validation, IsQualifiedName. A dot separates the taint's prefix from the domain.
_MAX_PREFIX_LENGTH = 253
MAX_KEY_PREFIX_LENGTH = _MAX_PREFIX_LENGTH - max(map(len, _DOMAINS)) - 1
"""Keys with a longer prefix cannot be mirrored: 223 characters."""

NO_EFFECT = "None"
"""The effects of a taint that the node does not have. A node without the label was not looked at yet."""


def value_label(key: str) -> str | None:
    """The label with the value of the taint ``key``, as text without changes."""
    return _label(key, VALUE_DOMAIN)


def version_label(key: str) -> str | None:
    """The label with the version in the value of the taint ``key`` as an integer."""
    return _label(key, VERSION_DOMAIN)


def effect_label(key: str) -> str | None:
    """The label with the effects of the taint ``key``, see :func:`effect_text`."""
    return _label(key, EFFECT_DOMAIN)


def prefer_value_label(key: str) -> str | None:
    """As :func:`value_label`, of the taint with ``PreferNoSchedule``."""
    return _label(key, PREFER_VALUE_DOMAIN)


def prefer_version_label(key: str) -> str | None:
    """As :func:`version_label`, of the taint with ``PreferNoSchedule``."""
    return _label(key, PREFER_VERSION_DOMAIN)


def label_version_label(key: str) -> str | None:
    """The label with the version in the value of another label, ``key``, as an integer."""
    return _label(key, LABEL_VERSION_DOMAIN)


def effect_text(effects: Iterable[str]) -> str | None:
    """The label value for these effects; None if the label is omitted: for ``NoExecute`` and no other effect."""
    found = sorted(set(effects))
    return None if found == [Effect.NO_EXECUTE] else "_".join(found) or NO_EFFECT


def is_mirror_label(label: str) -> bool:
    """Whether a node's label is a Taintwarden label, for any taint: no other actor may write it."""
    prefix, has_prefix, _ = label.partition("/")
    return bool(has_prefix) and any(prefix == domain or prefix.endswith(f".{domain}") for domain in _DOMAINS)


def _label(key: str, domain: str) -> str | None:
    prefix, has_prefix, name = key.rpartition("/")
    if len(prefix) > MAX_KEY_PREFIX_LENGTH:
        return None
    return f"{prefix}.{domain}/{name}" if has_prefix else f"{domain}/{name}"
