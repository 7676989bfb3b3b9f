"""Renewal of the certificate with which a Service answers API servers or schedulers.

Every replica reads the Secret repeatedly, carries out the plan of ``rotation``, and checks whether the webhook
configurations trust the served certificate. It cannot write these: ``trust`` does, with another account.
There is no leader. A write names the resourceVersion of the Secret on which it is based, so if two replicas write at
the same moment, one fails and reads what the other has written.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from taintwarden.controller.clock import Clock
from taintwarden.controller.reported_faults import ReportedFaults
from taintwarden.kube.errors import KubeError
from taintwarden.kube.http.client import Client
from taintwarden.serving.key_pairs import KeyPair, UnusableKeyPair, read_key_pair, trusts
from taintwarden_placement.rotation import CERTIFICATE, KEY, Content, plan
from taintwarden_placement.webhook_calls import (
    ConfigurationKind,
    Secret,
    read_configurations,
    read_secret,
    write_secret,
)

READ_SECONDS = 10.0
"""Seconds between two reads of the Secret and of the configurations."""
RETRY_SECONDS = 5.0
"""Seconds between two reads while there is no certificate to serve, or after a failure."""

log = structlog.get_logger()


class CertificateKeeper:
    """Keeps the certificate of one replica valid.

    Args:
        client: the session with the API server.
        namespace: where the Service and the Secret are.
        service: the name of both.
        makes_own: True if this process creates the certificates, False if another program writes the Secret.
        serve: starts to serve with a certificate, or raises UnusableKeyPair.
        report_expiry: called with the end of the served certificate, in seconds since 1970.
        clock: wall and monotonic time.
        kinds: the configurations whose webhooks call the Service; empty if API servers do not call it.
        report_configured: called with a kind, and True if a configuration of that kind calls the Service.
        report_trusted: called with a kind, and True if API servers trust the served certificate.

    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        service: str,
        makes_own: bool,
        serve: Callable[[KeyPair], None],
        report_expiry: Callable[[float], None],
        clock: Clock,
        kinds: Sequence[ConfigurationKind] = (),
        report_configured: Callable[[str, bool], None] = lambda _kind, _exists: None,
        report_trusted: Callable[[str, bool], None] = lambda _kind, _is_trusted: None,
    ) -> None:
        self.served: KeyPair | None = None
        self._client = client
        self._location = (namespace, service)
        self._names = (f"{service}.{namespace}.svc", f"{service}.{namespace}", service)
        self._makes_own = makes_own
        self._serve = serve
        self._report_expiry = report_expiry
        self._clock = clock
        self._kinds = kinds
        self._report_configured = report_configured
        self._report_trusted = report_trusted
        self._reported_faults = ReportedFaults()

    async def run(self) -> None:
        """Check the certificate repeatedly, until cancelled."""
        while True:
            pause = await self.check()
            await asyncio.sleep(pause)

    async def check(self) -> float:
        """Check the certificate once, and renew it if necessary. Returns the seconds until the next check."""
        try:
            secret = await read_secret(self._client, *self._location)
            self._use_content(await self._follow_plan(secret) if self._makes_own else secret.content)
        except KubeError as error:
            if self._reported_faults.is_new("secret", str(error)):
                log.warning("certificate-not-kept", secret=self._secret, reason=str(error))
            return RETRY_SECONDS
        self._reported_faults.forget("secret")
        if self.served is None:
            return RETRY_SECONDS
        await self._check_trust(self.served)
        return READ_SECONDS

    async def _follow_plan(self, secret: Secret) -> Content:
        """Carry out the next step of the rotation. Returns the content of the Secret afterwards."""
        made = plan(secret.content, self._names, self._clock().wall)
        if not made.changes:
            return secret.content
        if not await write_secret(self._client, *self._location, made.changes, secret.metadata.resource_version):
            return (await read_secret(self._client, *self._location)).content
        if made.is_repair:
            log.warning("certificate-repaired", secret=self._secret, reason=made.reason)
        else:
            log.info("certificate-made", secret=self._secret, reason=made.reason)
        return secret.content | made.changes

    def _use_content(self, content: Content) -> None:
        """Serve with the certificate in the Secret. If it is unusable, the one served before stays in use."""
        try:
            pair = read_key_pair(content.get(CERTIFICATE, b""), content.get(KEY, b""))
            if pair != self.served:
                self._serve(pair)
        except UnusableKeyPair as error:
            if self._reported_faults.is_new("certificate", str(error)):
                log.warning("certificate-unusable", secret=self._secret, reason=str(error))
            return
        self._reported_faults.forget("certificate")
        if pair == self.served:
            return
        self.served = pair
        self._report_expiry(pair.ends_at)
        days = round((pair.ends_at - self._clock().wall) / 86400, 1)
        log.info("certificate-served", secret=self._secret, days_left=days)

    async def _check_trust(self, served: KeyPair) -> None:
        """Report kinds of configurations that are missing, or whose caBundle does not trust the served certificate."""
        try:
            found = {kind: await read_configurations(self._client, kind, *self._location) for kind in self._kinds}
        except KubeError as error:
            if self._reported_faults.is_new("trust", str(error)):
                log.warning("webhook-configuration-not-read", reason=str(error))
            return
        self._reported_faults.forget("trust")
        for kind, configurations in found.items():
            bundles = [bundle for configuration in configurations for bundle in configuration.bundles.values()]
            self._report_configured(kind.value, bool(bundles))
            if not bundles:  # no API server calls these webhooks, so none has to trust them
                if self._reported_faults.is_new(kind.value, "missing"):
                    remedy = f"apply deploy/base/webhooks.yaml: none of this kind calls the Service {self._secret}"
                    log.warning("webhook-configuration-missing", configuration=kind.value, remedy=remedy)
                continue
            is_trusted = all(trusts(bundle, served.certificate) for bundle in bundles)
            self._report_trusted(kind.value, is_trusted)
            if is_trusted:
                self._reported_faults.forget(kind.value)
                continue
            reason = "caBundle is of another certificate" if all(bundles) else "caBundle is missing"
            if self._reported_faults.is_new(kind.value, reason):
                log.warning("webhook-untrusted", configuration=kind.value, reason=reason, remedy=self._remedy)

    @property
    def _remedy(self) -> str:
        if self._makes_own:
            return "install again with kubectl or helm, or run taintwarden webhook-trust"
        return "look at what writes caBundle, such as cert-manager's cainjector"

    @property
    def _secret(self) -> str:
        return "/".join(self._location)
