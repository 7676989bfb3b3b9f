"""The processes that make certificates take the time from the API server."""

import time

import pytest

from localcluster import LocalCluster
from taintwarden.controller.clock import system_clock
from taintwarden.engine.model import Instant, WallTime
from taintwarden.kube.auth.connection import Connection
from taintwarden_placement.settings import WebhookSettings
from taintwarden_placement.webhook_process import WebhookApp


@pytest.mark.parametrize("hours", [9, -9])
async def test_a_clock_that_is_wrong_makes_certificates_of_the_right_time(hours, tmp_path):
    def wrong() -> Instant:
        now = system_clock()
        return Instant(WallTime(now.wall + hours * 3600), now.monotonic)

    async with LocalCluster().serve() as server:
        connection = Connection.load(str(server.write_kubeconfig(tmp_path / "kubeconfig")), None)
        process = WebhookApp(WebhookSettings(), connection, wrong)
        async with process.client:
            await process.client.request("GET", "/api/v1/nodes")  # as the Secret is read first
    assert process.server.keeper._clock().wall == pytest.approx(time.time(), abs=10)
