"""Settings of the publisher, validated once."""

from collections.abc import Mapping
from typing import Any

from taintwarden.settings import CommonSettings, load


class PublisherSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of ``taintwarden publisher``. Secrets with credentials are in its ``namespace``."""


def load_publisher_settings(environment: Mapping[str, str], **flags: Any) -> PublisherSettings:
    """Load settings: flags that are not None take precedence over ``TAINTWARDEN_*`` variables, these over defaults.

    Raises:
        SettingsError: a value is of the wrong type or out of range.

    """
    return load(PublisherSettings, environment, **flags)
