"""Every replica serves what the API servers trust: filled, read, published, followed by the next, and repaired."""

import asyncio
from functools import cache

import pytest
from structlog.testing import capture_logs

from controller import NOW, Clock
from kube.scripted import ScriptedClient, refusal
from kube.stored_webhooks import MUTATING, VALIDATING, StoredWebhooks
from taintwarden.certificates.pairs import LIFETIME_SECONDS, Pair, make_pair
from taintwarden.certificates.rotation import TRUST_SECONDS
from taintwarden.controller.certificates import READ_SECONDS, RETRY_SECONDS, ROTATING_SECONDS, CertificateKeeper
from taintwarden.kube.webhooks import ConfigurationKind
from taintwarden.telemetry.metrics import Metrics

pytestmark = pytest.mark.looptime

NAMES = ("webhook.home.svc", "webhook.home", "webhook")
OLD = NOW - LIFETIME_SECONDS * 0.7


@cache
def pair(made_at: float = NOW) -> Pair:
    return make_pair(NAMES, made_at)


class Replica:
    """One keeper, and what it serves."""

    def __init__(self, api: StoredWebhooks, *, makes_own: bool = True) -> None:
        self.api = api
        self.loaded: list[Pair] = []
        self.clock = Clock()
        self.metrics = Metrics()
        self.keeper = CertificateKeeper(
            ScriptedClient(default=api),
            namespace="home",
            service="webhook",
            makes_own=makes_own,
            serve=self.loaded.append,
            expires=self.metrics.webhook_certificate_expiry.set,
            clock=self.clock,
            kinds=tuple(ConfigurationKind),
            configured=lambda kind, exists: self.metrics.webhook_configured.labels(kind).set(exists),
        )

    async def look(self) -> float:
        return await self.keeper.look()

    def pass_time(self, seconds: float) -> None:
        self.clock.wall += seconds


@pytest.fixture
def api() -> StoredWebhooks:
    return StoredWebhooks()


def hold(api: StoredWebhooks, current: Pair, trusted: bytes = b"") -> None:
    api.put(tls_crt=current.certificate, tls_key=current.key, ca_crt=trusted or current.certificate)


async def test_an_empty_secret_becomes_a_trusted_certificate_in_one_look(api):
    replica = Replica(api)
    assert await replica.look() == READ_SECONDS
    (served,) = replica.loaded
    assert served.names == NAMES
    assert api.secret["tls.crt"] == served.certificate
    assert api.bundles() == {
        "one": served.certificate,
        "two": served.certificate,
        "three": served.certificate,
        "theirs": None,
    }


async def test_looking_again_writes_nothing(api):
    replica = Replica(api)
    await replica.look()
    written = list(api.writes)
    await replica.look()
    assert api.writes == written
    assert len(replica.loaded) == 1


async def test_what_is_there_is_served_and_not_written_again(api):
    hold(api, pair())
    replica = Replica(api)
    await replica.look()
    assert replica.loaded == [pair()]
    assert "secret" not in api.writes


async def test_two_that_fill_it_at_once_serve_the_same(api):
    replica = Replica(api)
    api.before_write = lambda: hold(api, pair())
    await replica.look()
    assert replica.loaded == [pair()]
    assert "secret" not in api.writes


async def test_rotation_serves_the_next_only_when_it_was_trusted_for_a_minute(api):
    hold(api, pair(OLD))
    leader, other = Replica(api), Replica(api)
    await other.look()
    assert await leader.look() == ROTATING_SECONDS
    both = api.secret["ca.crt"]
    assert both == pair(OLD).certificate + api.secret["next.crt"]
    assert set(api.bundles().values()) == {both, None}
    await leader.look()
    leader.pass_time(TRUST_SECONDS - 1)
    await leader.look()
    assert leader.loaded == [pair(OLD)]
    leader.pass_time(1)
    assert await leader.look() == READ_SECONDS
    assert leader.loaded[-1].certificate in both
    assert leader.loaded[-1] != pair(OLD)
    await other.look()
    assert other.loaded[-1] == leader.loaded[-1]
    assert api.bundles()["one"] == both


async def test_the_minute_begins_again_when_a_configuration_loses_it(api):
    hold(api, pair(OLD))
    leader = Replica(api)
    await leader.look()
    await leader.look()
    leader.pass_time(TRUST_SECONDS)
    api.configurations[MUTATING][0]["clientConfig"].pop("caBundle")
    await leader.look()
    await leader.look()
    leader.pass_time(TRUST_SECONDS - 1)
    await leader.look()
    assert leader.loaded == [pair(OLD)]


async def test_a_replica_that_starts_begins_the_minute_anew(api):
    hold(api, pair(OLD))
    await Replica(api).look()
    successor = Replica(api)
    successor.pass_time(TRUST_SECONDS)
    await successor.look()
    assert successor.loaded == [pair(OLD)]


async def test_a_broken_secret_is_made_anew_with_a_warning_that_names_it(api):
    api.put(tls_crt=b"nonsense", tls_key=b"nonsense", ca_crt=b"nonsense")
    replica = Replica(api)
    with capture_logs() as logs:
        await replica.look()
    (warning,) = (line for line in logs if line["event"] == "certificate-repaired")
    assert warning["secret"] == "home/webhook"
    assert warning["reason"] == "the certificate cannot be read, or names no server"
    assert len(replica.loaded) == 1


async def test_an_expired_certificate_is_made_anew(api):
    hold(api, pair(NOW - LIFETIME_SECONDS - 1))
    replica = Replica(api)
    await replica.look()
    assert replica.loaded[-1].ends_at > NOW


async def test_what_is_missing_is_told_once_and_we_try_again_soon(api):
    api.secret = None
    replica = Replica(api)
    with capture_logs() as logs:
        assert await replica.look() == RETRY_SECONDS
        await replica.look()
    assert [line["event"] for line in logs] == ["certificate-not-kept"]
    assert 'secrets "webhook" not found' in logs[0]["reason"]


async def test_configurations_that_cannot_be_read_keep_nobody_from_serving(api):
    api.configurations_refused = refusal(403)
    replica = Replica(api)
    with capture_logs() as logs:
        await replica.look()
    assert len(replica.loaded) == 1
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["webhook-configuration-not-read"]


async def test_what_was_loaded_stays_while_the_server_is_away(api):
    replica = Replica(api)
    await replica.look()
    api.refused = refusal(500)
    assert await replica.look() == RETRY_SECONDS
    assert replica.keeper.served is not None


async def test_a_configuration_that_is_not_there_is_told_once_with_the_remedy_and_the_other_is_kept(api):
    api.configurations[VALIDATING] = None
    replica = Replica(api)
    with capture_logs() as logs:
        await replica.look()
        await replica.look()
    (warning,) = (line for line in logs if line["log_level"] == "warning")
    assert warning["event"] == "webhook-configuration-missing"
    assert warning["configuration"] == "ValidatingWebhookConfiguration"
    assert "deploy/base/webhooks.yaml" in warning["remedy"]
    assert api.bundles()["three"]


async def test_a_configuration_without_a_webhook_of_ours_is_not_configured(api):
    api.configurations[MUTATING] = [StoredWebhooks.webhook("theirs", "another")]
    replica = Replica(api)
    await replica.look()
    configured = replica.metrics.registry.get_sample_value
    name = "taintwarden_webhook_configured"
    assert configured(name, {"configuration": "MutatingWebhookConfiguration"}) == 0
    assert configured(name, {"configuration": "ValidatingWebhookConfiguration"}) == 1


async def test_a_bundle_that_somebody_else_wrote_is_put_right(api):
    replica = Replica(api)
    await replica.look()
    api.configurations[VALIDATING][1]["clientConfig"]["caBundle"] = "bm9uc2Vuc2U="
    await replica.look()
    assert api.bundles()["two"] == replica.loaded[0].certificate


async def test_certificates_of_others_are_only_read(api):
    api.put(tls_crt=pair().certificate, tls_key=pair().key)
    replica = Replica(api, makes_own=False)
    assert await replica.look() == READ_SECONDS
    assert replica.loaded == [pair()]
    assert api.writes == []
    assert set(api.bundles().values()) == {None}


async def test_one_of_others_that_is_not_there_yet_is_awaited(api):
    replica = Replica(api, makes_own=False)
    with capture_logs() as logs:
        assert await replica.look() == RETRY_SECONDS
    assert [line["event"] for line in logs] == ["certificate-unusable"]
    assert api.secret == {}


async def test_a_broken_one_of_others_leaves_the_last_in_use(api):
    hold(api, pair())
    replica = Replica(api, makes_own=False)
    await replica.look()
    api.put(tls_key=b"")
    await replica.look()
    assert replica.keeper.served == pair()


async def test_when_it_expires_is_a_metric(api):
    hold(api, pair())
    replica = Replica(api)
    await replica.look()
    name = "taintwarden_webhook_certificate_expiry_timestamp_seconds"
    assert replica.metrics.registry.get_sample_value(name) == pair().ends_at


async def test_a_replica_looks_again_and_again(api):
    hold(api, pair())
    replica = Replica(api)
    running = asyncio.create_task(replica.keeper.run())
    await asyncio.sleep(1)
    assert set(api.writes) == {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
    hold(api, pair(NOW + 1))
    await asyncio.sleep(READ_SECONDS)
    assert replica.loaded == [pair(), pair(NOW + 1)]
    running.cancel()
