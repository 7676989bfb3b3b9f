"""What an installation writes so that API servers trust the webhooks."""

import pytest

from kube.scripted import ScriptedClient, refusal
from kube.stored_webhooks import MUTATING, VALIDATING, StoredWebhooks
from taintwarden.kube.errors import KubeError
from taintwarden_placement.trust import UntrustedError, write_bundles

pytestmark = pytest.mark.looptime


@pytest.fixture
def api() -> StoredWebhooks:
    made = StoredWebhooks()
    made.put(authority_crt=b"one", ca_crt=b"one")
    return made


async def trust(api: StoredWebhooks, wait_seconds: float = 0.0) -> list[str]:
    return await write_bundles(ScriptedClient(default=api), "home", "webhook", wait_seconds)


async def test_every_webhook_of_ours_gets_the_bundle_and_no_other(api):
    told = await trust(api)
    assert api.bundles() == {"one": b"one", "two": b"one", "three": b"one", "theirs": None}
    assert told == [
        "ValidatingWebhookConfiguration taintwarden has the certificate now",
        "MutatingWebhookConfiguration taintwarden has the certificate now",
    ]


async def test_the_second_time_it_writes_nothing(api):
    await trust(api)
    written = list(api.writes)
    assert all(line.endswith("already") for line in await trust(api))
    assert api.writes == written


@pytest.mark.parametrize("is_new", [True, False])
async def test_it_owns_no_bundle_afterwards_and_others_own_what_they_owned(api, is_new):
    if not is_new:
        api.trust(b"one")
        api.managed_fields[MUTATING].append({"manager": "taintwarden-webhooks"})
    await trust(api)
    assert api.managed_fields == {VALIDATING: [{"manager": "helm"}], MUTATING: [{"manager": "helm"}]}


@pytest.mark.parametrize("names", [(), ("two",)])
async def test_another_bundle_is_replaced(api, names):
    api.trust(b"one")
    api.trust(b"another", *names)
    await trust(api)
    assert set(api.bundles().values()) == {b"one", None}


async def test_a_secret_without_an_authority_is_trusted_by_nobody(api):
    api.secret = {"tls.crt": b"own", "ca.crt": b"own"}
    with pytest.raises(UntrustedError, match="the Secret home/webhook has no authority"):
        await trust(api)


async def test_it_waits_for_the_process_that_makes_the_certificate(api):
    api.secret = {}
    calls = 0

    def answer(call):
        nonlocal calls
        calls += 1
        if calls == 3:
            api.put(authority_crt=b"late", ca_crt=b"late")
        return api(call)

    await write_bundles(ScriptedClient(default=answer), "home", "webhook", 60.0)
    assert api.bundles()["one"] == b"late"


async def test_it_does_not_wait_for_ever_and_says_who_would_make_it(api):
    api.secret = {}
    with pytest.raises(UntrustedError, match="taintwarden webhook writes one"):
        await trust(api, 10.0)


async def test_a_secret_that_is_missing_is_told_as_the_api_server_tells_it(api):
    api.secret = None
    with pytest.raises(KubeError, match='secrets "webhook" not found'):
        await trust(api, 10.0)


async def test_no_configuration_is_told_with_the_remedy(api):
    api.configurations = {VALIDATING: None, MUTATING: None}
    with pytest.raises(UntrustedError, match=r"apply deploy/base/webhooks\.yaml"):
        await trust(api)


async def test_a_refusal_is_told(api):
    api.configurations_refused = refusal(403, "cannot list")
    with pytest.raises(KubeError, match="cannot list"):
        await trust(api)
