"""An installation writes the bundle by which API servers trust the webhooks."""

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


async def test_only_webhooks_of_the_operator_get_the_bundle(api):
    lines = await trust(api)
    assert api.bundles() == {"one": b"one", "two": b"one", "three": b"one", "theirs": None}
    assert lines == [
        "ValidatingWebhookConfiguration taintwarden has the certificate now",
        "MutatingWebhookConfiguration taintwarden has the certificate now",
    ]


async def test_a_second_run_writes_nothing(api):
    await trust(api)
    written = list(api.writes)
    assert all(line.endswith("already") for line in await trust(api))
    assert api.writes == written


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_write_leaves_no_managed_fields_and_keeps_those_of_others(api, is_new):
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


async def test_a_secret_without_an_authority_is_an_error(api):
    api.secret = {"tls.crt": b"own", "ca.crt": b"own"}
    with pytest.raises(UntrustedError, match="the Secret home/webhook has no authority"):
        await trust(api)


async def test_an_empty_secret_is_awaited(api):
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


async def test_a_secret_that_stays_empty_is_an_error_that_names_its_writer(api):
    api.secret = {}
    with pytest.raises(UntrustedError, match="taintwarden webhook writes one"):
        await trust(api, 10.0)


async def test_a_missing_secret_is_reported_with_the_message_of_the_api_server(api):
    api.secret = None
    with pytest.raises(KubeError, match='secrets "webhook" not found'):
        await trust(api, 10.0)


async def test_a_missing_configuration_is_an_error_with_the_remedy(api):
    api.configurations = {VALIDATING: None, MUTATING: None}
    with pytest.raises(UntrustedError, match=r"apply deploy/base/webhooks\.yaml"):
        await trust(api)


async def test_a_refusal_is_reported(api):
    api.configurations_refused = refusal(403, "cannot list")
    with pytest.raises(KubeError, match="cannot list"):
        await trust(api)
