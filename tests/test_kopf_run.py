"""The operator under ``kopf run``: start, stop and login as kopf calls them."""

import itertools
import ssl
from typing import Any

import kopf
import pytest

from kube import wire
from taintwarden.kopf_run import connection_info, host
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.auth.kubeconfig import ClusterSource
from taintwarden.kube.errors import ConfigError


class App:
    """Stands in for the operator."""

    def __init__(self, error: Exception | None = None) -> None:
        self.connection = wire.connection("http://10.0.0.1", token="secret")
        self.error = error
        self.calls: list[str] = []

    async def start(self) -> None:
        if self.error is not None:
            raise self.error
        self.calls.append("start")

    async def stop(self) -> None:
        self.calls.append("stop")


class Kopf:
    """Calls the activities of a registry as kopf would."""

    def __init__(self, app: App | None = None) -> None:
        self.app = app or App()
        self.settings = kopf.OperatorSettings()
        self.memo = kopf.Memo()
        registry = kopf.OperatorRegistry()

        async def make_app() -> App:
            return self.app

        host(registry, make_app)
        self._handlers = {handler.fn.__name__: handler.fn for handler in registry._activities.get_all_handlers()}

    async def start(self) -> None:
        await self._handlers["start"](settings=self.settings, memo=self.memo)

    async def stop(self) -> None:
        await self._handlers["stop"](memo=self.memo)

    def login(self) -> kopf.ConnectionInfo:
        info: Any = self._handlers["login"](memo=self.memo)
        return info


async def test_plain_kopf_run_starts_and_stops_an_app():
    run = Kopf()
    await run.start()
    await run.stop()
    assert run.app.calls == ["start", "stop"]


async def test_kopf_writes_no_events_and_looks_for_no_peers():
    run = Kopf()
    await run.start()
    assert run.settings.posting.enabled is False
    assert run.settings.peering.standalone is True


async def test_kopf_follows_no_object():
    registry = kopf.get_default_registry()
    assert list(registry._watching.get_all_handlers()) == []
    assert list(registry._spawning.get_all_handlers()) == []
    assert list(registry._changing.get_all_handlers()) == []


async def test_an_operator_that_did_not_start_is_stopped_once():
    run = Kopf(App(ConfigError("cannot use kubeconfig: no such file")))
    with pytest.raises(kopf.PermanentError):
        await run.start()
    await run.stop()
    assert run.app.calls == ["stop"]


async def test_kopf_waits_for_an_api_server_indefinitely():
    run = Kopf()
    await run.start()
    waits = list(itertools.islice(run.settings.networking.error_backoffs, 1_000))
    assert len(waits) == 1_000
    assert max(waits) <= 10
    assert list(itertools.islice(run.settings.networking.error_backoffs, 1)) == waits[:1]  # from the beginning again


async def test_a_cluster_that_cannot_be_used_ends_kopf_with_one_line():
    run = Kopf(App(ConfigError("cannot use kubeconfig: no such file")))
    with pytest.raises(kopf.PermanentError, match=r"^cannot use kubeconfig: no such file$"):
        await run.start()


async def test_login_uses_the_apps_connection():
    run = Kopf()
    await run.start()
    assert run.login().server == "http://10.0.0.1"


# -- credentials ------------------------------------------------------------------------------------------------------


def test_a_token_keeps_its_scheme():
    told = connection_info(wire.connection("http://10.0.0.1", token="secret"))
    assert (told.scheme, told.token) == ("Bearer", "secret")


def test_without_a_token_there_is_none():
    told = connection_info(wire.connection("http://10.0.0.1"))
    assert (told.scheme, told.token) == (None, None)


def test_kopf_verifies_servers_as_the_operator_does():
    own = wire.connection("https://10.0.0.1")
    info = connection_info(own)
    assert info.as_ssl_context() is own.ssl
    assert not info.as_ssl_context().verify_flags & ssl.VERIFY_X509_STRICT


def test_kopf_uses_the_proxy_too():
    ours = Connection(ClusterSource("https://10.0.0.1", proxy="http://proxy:3128"))
    assert connection_info(ours).proxy_url == "http://proxy:3128"
