"""Settings of the publisher, validated once."""

from collections.abc import Mapping
from typing import Any

from taintwarden.settings import CommonSettings, load


class PublisherSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of ``taintwarden publisher``, whose ``namespace`` has the Secrets with credentials."""


def load_publisher_settings(environment: Mapping[str, str], **flags: Any) -> PublisherSettings:
    """Flags that are not None, then ``TAINTWARDEN_*`` variables, then defaults.

    Raises:
        SettingsError: a value is of the wrong type or out of range.

    """
    return load(PublisherSettings, environment, **flags)
