"""Replicas fill, renew and repair one Secret, serve its certificate, and report configurations that do not trust it."""

import asyncio
from functools import cache

import pytest
from structlog.testing import capture_logs

from controller import NOW, Clock
from kube.scripted import ScriptedClient, refusal
from kube.stored_webhooks import MUTATING, VALIDATING, StoredWebhooks
from taintwarden.serving.key_pairs import (
    AUTHORITY_SECONDS,
    LIFETIME_SECONDS,
    KeyPair,
    make_authority,
    make_key_pair,
    trusts,
)
from taintwarden.telemetry.metrics import Metrics
from taintwarden_placement.certificate_keeper import READ_SECONDS, RETRY_SECONDS, CertificateKeeper
from taintwarden_placement.webhook_calls import ConfigurationKind

pytestmark = pytest.mark.looptime

NAMES = ("webhook.home.svc", "webhook.home", "webhook")
OLD = NOW - AUTHORITY_SECONDS * 0.7
made_authority = cache(make_authority)
made_pair = cache(make_key_pair)


def authority(made_at: float = NOW) -> KeyPair:
    return made_authority("webhook", made_at)


def pair(made_at: float = NOW, by: float = NOW) -> KeyPair:
    return made_pair(NAMES, made_at, authority(by))


class Replica:
    """A certificate keeper and the key pairs that it serves."""

    def __init__(self, api: StoredWebhooks, *, makes_own: bool = True) -> None:
        self.api = api
        self.loaded: list[KeyPair] = []
        self.clock = Clock()
        self.metrics = Metrics()
        self.keeper = CertificateKeeper(
            ScriptedClient(default=api),
            namespace="home",
            service="webhook",
            makes_own=makes_own,
            serve=self.loaded.append,
            report_expiry=self.metrics.webhook_certificate_expiry.set,
            clock=self.clock,
            kinds=tuple(ConfigurationKind),
            report_configured=lambda kind, exists: self.metrics.webhook_configured.labels(kind).set(exists),
            report_trusted=lambda kind, is_trusted: self.metrics.webhook_trusted.labels(kind).set(is_trusted),
        )

    async def check(self) -> float:
        return await self.keeper.check()

    def pass_time(self, seconds: float) -> None:
        self.clock.wall += seconds

    def trusted(self, kind: ConfigurationKind = ConfigurationKind.MUTATING) -> float | None:
        return self.metrics.registry.get_sample_value("taintwarden_webhook_trusted", {"configuration": kind.value})


@pytest.fixture
def api() -> StoredWebhooks:
    return StoredWebhooks()


def hold(api: StoredWebhooks, current: KeyPair, by: KeyPair | None = None, trusted: bytes = b"") -> None:
    by = by or authority()
    api.put(tls_crt=current.certificate, tls_key=current.key, ca_crt=trusted or by.certificate)
    api.put(authority_crt=by.certificate, authority_key=by.key)


async def test_an_empty_secret_is_filled_and_served_by_one_check(api):
    replica = Replica(api)
    assert await replica.check() == READ_SECONDS
    (served,) = replica.loaded
    assert served.names == NAMES
    assert api.secret["tls.crt"] == served.certificate
    assert trusts(api.secret["ca.crt"], served.certificate)


async def test_checks_never_write_a_configuration(api):
    """The account has no right to do it."""
    replica = Replica(api)
    for _ in range(3):
        await replica.check()
        replica.pass_time(LIFETIME_SECONDS)
    assert set(api.writes) == {"secret"}
    assert set(api.bundles().values()) == {None}


async def test_a_valid_certificate_is_served_and_not_written_again(api):
    hold(api, pair())
    replica = Replica(api)
    await replica.check()
    assert replica.loaded == [pair()]
    assert "secret" not in api.writes


async def test_two_replicas_that_fill_the_secret_at_once_serve_the_same_certificate(api):
    replica = Replica(api)
    api.before_write = lambda: hold(api, pair())
    await replica.check()
    assert replica.loaded == [pair()]
    assert "secret" not in api.writes


async def test_a_certificate_that_ends_soon_is_renewed_by_its_authority(api):
    fresh = authority(OLD + AUTHORITY_SECONDS * 0.2)
    old = made_pair(NAMES, NOW - LIFETIME_SECONDS * 0.7, fresh)
    hold(api, old, fresh)
    api.trust(fresh.certificate)
    replica = Replica(api)
    assert await replica.check() == READ_SECONDS
    (served,) = replica.loaded
    assert served.ends_at > old.ends_at
    assert trusts(fresh.certificate, served.certificate)
    assert replica.trusted() == 1


UNTRUSTED = {"caBundle is missing": b"", "caBundle is of another certificate": authority(OLD).certificate}


@pytest.mark.parametrize("reason", UNTRUSTED)
async def test_a_configuration_without_the_bundle_is_logged_once_with_the_remedy(api, reason):
    api.trust(UNTRUSTED[reason])
    replica = Replica(api)
    with capture_logs() as logs:
        await replica.check()
        await replica.check()
    lines = [line for line in logs if line["event"] == "webhook-untrusted"]
    assert [(line["configuration"], line["reason"]) for line in lines] == [(kind, reason) for kind in ConfigurationKind]
    assert all("taintwarden webhook-trust" in line["remedy"] for line in lines)
    assert [replica.trusted(kind) for kind in ConfigurationKind] == [0, 0]


async def test_a_lost_bundle_is_logged_again_after_it_was_trusted(api):
    replica = Replica(api)
    with capture_logs() as logs:
        for bundle in (b"", None, b""):
            api.trust(api.secret["ca.crt"] if bundle is None else bundle)
            await replica.check()
    assert [line["event"] for line in logs].count("webhook-untrusted") == 2 * len(ConfigurationKind)


async def test_a_failure_is_logged_again_after_a_success(api):
    replica = Replica(api, makes_own=False)
    with capture_logs() as logs:
        for error in (refusal(403), None) * 2:
            hold(api, pair())
            api.configurations_refused = error
            await replica.check()
            api.put(tls_key=pair().key if error is None else b"nonsense")
            await replica.check()
            api.refused = error
            await replica.check()
            api.refused = None
    lines = [line["event"] for line in logs]
    failures = ("certificate-not-kept", "webhook-configuration-not-read", "certificate-unusable")
    assert [lines.count(event) for event in failures] == [2, 2, 2]


async def test_a_configuration_is_trusted_if_all_its_webhooks_are(api):
    replica = Replica(api)
    await replica.check()
    api.trust(api.secret["ca.crt"])
    api.trust(authority(OLD).certificate, "two")
    await replica.check()
    assert [replica.trusted(kind) for kind in ConfigurationKind] == [0, 1]


async def test_an_untrusted_bundle_of_cert_manager_names_its_writer_in_the_remedy(api):
    hold(api, pair())
    replica = Replica(api, makes_own=False)
    with capture_logs() as logs:
        await replica.check()
    assert "cainjector" in next(line["remedy"] for line in logs if line["event"] == "webhook-untrusted")


async def test_a_broken_secret_is_filled_again_with_a_warning_that_names_it(api):
    api.put(tls_crt=b"nonsense", tls_key=b"nonsense", ca_crt=b"nonsense")
    replica = Replica(api)
    with capture_logs() as logs:
        await replica.check()
    (warning,) = (line for line in logs if line["event"] == "certificate-repaired")
    assert warning["secret"] == "home/webhook"
    assert warning["reason"] == "authority.crt cannot be used"
    assert len(replica.loaded) == 1


async def test_a_missing_secret_is_logged_once_and_read_again_soon(api):
    api.secret = None
    replica = Replica(api)
    with capture_logs() as logs:
        assert await replica.check() == RETRY_SECONDS
        await replica.check()
    assert [line["event"] for line in logs] == ["certificate-not-kept"]
    assert 'secrets "webhook" not found' in logs[0]["reason"]


async def test_a_certificate_is_served_even_if_configurations_cannot_be_read(api):
    api.configurations_refused = refusal(403)
    replica = Replica(api)
    with capture_logs() as logs:
        await replica.check()
    assert len(replica.loaded) == 1
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["webhook-configuration-not-read"]


async def test_the_last_certificate_is_served_while_the_api_server_is_away(api):
    replica = Replica(api)
    await replica.check()
    api.refused = refusal(500)
    assert await replica.check() == RETRY_SECONDS
    assert replica.keeper.served is not None


async def test_a_missing_configuration_is_logged_once_with_the_remedy_and_the_other_is_checked(api):
    api.configurations[VALIDATING] = None
    replica = Replica(api)
    with capture_logs() as logs:
        await replica.check()
        await replica.check()
    (warning,) = (line for line in logs if line["event"] == "webhook-configuration-missing")
    assert warning["configuration"] == "ValidatingWebhookConfiguration"
    assert "deploy/base/webhooks.yaml" in warning["remedy"]
    assert replica.trusted() == 0


async def test_a_configuration_without_webhooks_of_the_operator_is_not_configured(api):
    api.configurations[MUTATING] = [StoredWebhooks.webhook("theirs", "another")]
    replica = Replica(api)
    await replica.check()
    configured = replica.metrics.registry.get_sample_value
    name = "taintwarden_webhook_configured"
    assert configured(name, {"configuration": "MutatingWebhookConfiguration"}) == 0
    assert configured(name, {"configuration": "ValidatingWebhookConfiguration"}) == 1


async def test_a_certificate_of_cert_manager_is_only_read(api):
    api.put(tls_crt=pair().certificate, tls_key=pair().key)
    replica = Replica(api, makes_own=False)
    assert await replica.check() == READ_SECONDS
    assert replica.loaded == [pair()]
    assert api.writes == []
    assert set(api.bundles().values()) == {None}


async def test_a_missing_certificate_of_cert_manager_is_awaited(api):
    replica = Replica(api, makes_own=False)
    with capture_logs() as logs:
        assert await replica.check() == RETRY_SECONDS
    assert [line["event"] for line in logs] == ["certificate-unusable"]
    assert api.secret == {}


async def test_a_broken_certificate_of_cert_manager_leaves_the_last_in_use(api):
    hold(api, pair())
    replica = Replica(api, makes_own=False)
    await replica.check()
    api.put(tls_key=b"")
    await replica.check()
    assert replica.keeper.served == pair()


async def test_the_expiry_of_the_certificate_is_a_metric(api):
    hold(api, pair())
    replica = Replica(api)
    await replica.check()
    name = "taintwarden_webhook_certificate_expiry_timestamp_seconds"
    assert replica.metrics.registry.get_sample_value(name) == pair().ends_at


async def test_a_replica_checks_repeatedly(api):
    hold(api, pair())
    replica = Replica(api)
    running = asyncio.create_task(replica.keeper.run())
    await asyncio.sleep(1)
    hold(api, pair(NOW + 1))
    await asyncio.sleep(READ_SECONDS)
    assert replica.loaded == [pair(), pair(NOW + 1)]
    running.cancel()
