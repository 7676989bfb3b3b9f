"""Settings of the processes that answer over HTTPS, validated once."""

from typing import Annotated, Literal

import msgspec

from taintwarden.settings import CommonSettings

WebhookCertificates = Literal["own", "external"]
Placement = Literal["labels", "extender"]


class ServedSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of the processes that answer over HTTPS: the webhook, and the scheduler extender."""

    webhook_port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 9443
    """Port on which the process serves HTTPS."""
    webhook_service: Annotated[str, msgspec.Meta(min_length=1)]
    """Name of the Service of the process, and of the Secret with its certificate."""
    webhook_certificates: WebhookCertificates = "own"
    """"own" if the process creates the certificate, "external" if another program writes the Secret and caBundle."""
    webhook_client_ca: str | None = None
    """Path of a CA bundle: the process serves only callers with a certificate that one of these CAs signed. Without
    it, every client that can connect is served."""
    webhook_client_names: str = ""
    """Common names that the certificates of callers may have, separated by commas; empty for any."""


class WebhookSettings(ServedSettings, frozen=True, kw_only=True):
    """Settings of ``taintwarden webhook``."""

    webhook_service: Annotated[str, msgspec.Meta(min_length=1)] = "taintwarden-webhook"
    placement: Placement = "labels"
    """Mechanism that keeps pods off unsuitable nodes: node affinity added by the webhook, or the scheduler extender."""


class ExtenderSettings(ServedSettings, frozen=True, kw_only=True):
    """Settings of ``taintwarden scheduler-extender``."""

    webhook_service: Annotated[str, msgspec.Meta(min_length=1)] = "taintwarden-scheduler-extender"
