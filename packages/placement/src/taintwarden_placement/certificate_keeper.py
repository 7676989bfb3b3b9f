"""Keeps a Service served with a certificate that its callers trust: API servers, or schedulers.

Every replica reads the Secret repeatedly, carries out the plan of ``rotation``, and looks whether the webhook
configurations trust what it serves. It cannot write those: ``trust`` does, with another account.
No replica leads: a write names the version of the Secret that it is made from, so of two that plan at the same moment
one reads what the other has written.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from taintwarden.controller.clock import Clock
from taintwarden.controller.complaints import Complaints
from taintwarden.kube.errors import KubeError
from taintwarden.kube.http.client import Client
from taintwarden.serving.pairs import Pair, UnusablePair, read_pair, trusts
from taintwarden_placement.rotation import CERTIFICATE, KEY, Content, plan
from taintwarden_placement.webhook_calls import (
    ConfigurationKind,
    Secret,
    read_configurations,
    read_secret,
    write_secret,
)

READ_SECONDS = 10.0
"""Between two looks at the Secret and at the configurations."""
RETRY_SECONDS = 5.0
"""The same while there is none to serve with, or something failed."""

log = structlog.get_logger()


class CertificateKeeper:
    """One replica's part in keeping the certificate.

    Args:
        client: the session to use.
        namespace: where the Service and the Secret are.
        service: the name of both.
        makes_own: whether this process creates the certificates, or another program writes the Secret.
        serve: takes the certificate to serve with, or raises UnusablePair.
        expires: told when that ends, in seconds since 1970.
        clock: both clocks.
        kinds: the configurations whose webhooks call the Service; none where API servers do not.
        configured: told of each kind whether such a configuration exists.
        trusted: told of each kind whether API servers trust what is served.

    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        service: str,
        makes_own: bool,
        serve: Callable[[Pair], None],
        expires: Callable[[float], None],
        clock: Clock,
        kinds: Sequence[ConfigurationKind] = (),
        configured: Callable[[str, bool], None] = lambda _kind, _exists: None,
        trusted: Callable[[str, bool], None] = lambda _kind, _is_trusted: None,
    ) -> None:
        self.served: Pair | None = None
        self._client = client
        self._place = (namespace, service)
        self._names = (f"{service}.{namespace}.svc", f"{service}.{namespace}", service)
        self._makes_own = makes_own
        self._serve = serve
        self._expires = expires
        self._clock = clock
        self._kinds = kinds
        self._configured = configured
        self._trusted = trusted
        self._complaints = Complaints()

    async def run(self) -> None:
        """Look repeatedly, forever."""
        while True:
            pause = await self.look()
            await asyncio.sleep(pause)

    async def look(self) -> float:
        """Look once, and do what is to be done. Returns the seconds until the next look."""
        try:
            secret = await read_secret(self._client, *self._place)
            self._take(await self._follow_plan(secret) if self._makes_own else secret.content)
        except KubeError as error:
            if self._complaints.is_new("look", str(error)):
                log.warning("certificate-not-kept", secret=self._secret, reason=str(error))
            return RETRY_SECONDS
        self._complaints.settle("look")
        if self.served is None:
            return RETRY_SECONDS
        await self._look_at_trust(self.served)
        return READ_SECONDS

    async def _follow_plan(self, secret: Secret) -> Content:
        """Change the Secret as it has to be. Returns what it holds then."""
        made = plan(secret.content, self._names, self._clock().wall)
        if not made.changes:
            return secret.content
        if not await write_secret(self._client, *self._place, made.changes, secret.metadata.resource_version):
            return (await read_secret(self._client, *self._place)).content
        if made.is_repair:
            log.warning("certificate-repaired", secret=self._secret, reason=made.reason)
        else:
            log.info("certificate-made", secret=self._secret, reason=made.reason)
        return secret.content | made.changes

    def _take(self, content: Content) -> None:
        """Serve with what the Secret holds; with what we have where that cannot be used."""
        try:
            pair = read_pair(content.get(CERTIFICATE, b""), content.get(KEY, b""))
            if pair != self.served:
                self._serve(pair)
        except UnusablePair as error:
            if self._complaints.is_new("certificate", str(error)):
                log.warning("certificate-unusable", secret=self._secret, reason=str(error))
            return
        self._complaints.settle("certificate")
        if pair == self.served:
            return
        self.served = pair
        self._expires(pair.ends_at)
        days = round((pair.ends_at - self._clock().wall) / 86400, 1)
        log.info("certificate-served", secret=self._secret, days_left=days)

    async def _look_at_trust(self, served: Pair) -> None:
        """Report every configuration that is missing, or does not let API servers trust what is served."""
        try:
            found = {kind: await read_configurations(self._client, kind, *self._place) for kind in self._kinds}
        except KubeError as error:
            if self._complaints.is_new("trust", str(error)):
                log.warning("webhook-configuration-not-read", reason=str(error))
            return
        self._complaints.settle("trust")
        for kind, configurations in found.items():
            bundles = [bundle for one in configurations for bundle in one.bundles.values()]
            self._configured(kind.value, bool(bundles))
            if not bundles:  # no API server calls the webhooks because of it, so none has to trust them
                if self._complaints.is_new(kind.value, "missing"):
                    remedy = f"apply deploy/base/webhooks.yaml: no webhook of it calls the Service {self._secret}"
                    log.warning("webhook-configuration-missing", configuration=kind.value, remedy=remedy)
                continue
            is_trusted = all(trusts(bundle, served.certificate) for bundle in bundles)
            self._trusted(kind.value, is_trusted)
            if is_trusted:
                self._complaints.settle(kind.value)
                continue
            reason = "caBundle is of another certificate" if all(bundles) else "caBundle is missing"
            if self._complaints.is_new(kind.value, reason):
                log.warning("webhook-untrusted", configuration=kind.value, reason=reason, remedy=self._remedy)

    @property
    def _remedy(self) -> str:
        if self._makes_own:
            return "install again with kubectl or helm, or run taintwarden webhook-trust"
        return "look at what writes caBundle, such as cert-manager's cainjector"

    @property
    def _secret(self) -> str:
        return "/".join(self._place)
