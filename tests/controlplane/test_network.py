"""The proxy does what its name says, and nothing while it is asked for nothing."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urllib3

from controlplane.api_server import LOOPBACK
from controlplane.certificates import Authority
from controlplane.network import Link, Network

BODY = b"x" * 20_000


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    pair = Authority(tmp_path).server("server", ("localhost",), (LOOPBACK,))
    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        with Network(f"https://{LOOPBACK}:{server.server_port}", tmp_path / "ca.crt", pair) as network:
            yield network
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def link(network: Network) -> Link:
    return Link(network)


@pytest.fixture
def pool(tmp_path: Path, link: Link) -> Iterator[urllib3.PoolManager]:
    with urllib3.PoolManager(ca_certs=str(tmp_path / "ca.crt"), retries=False, timeout=60) as pool:
        yield pool


def post(pool: urllib3.PoolManager, link: Link, seconds: float = 60) -> urllib3.BaseHTTPResponse:
    return pool.request("POST", f"{link.url}/", body=b"hello", timeout=seconds)


def test_the_proxy_passes_and_counts_requests(pool: urllib3.PoolManager, link: Link) -> None:
    assert [post(pool, link).data for _ in range(3)] == [BODY] * 3
    assert len(link.requests) == 3


def test_a_cut_ends_open_connections(pool: urllib3.PoolManager, link: Link, tmp_path: Path) -> None:
    tls = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    port = urlsplit(link.url).port
    with (
        socket.create_connection((LOOPBACK, port), 60) as plain,
        tls.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        assert connection.recv(1)
        link.cut()
        with suppress(OSError):
            while connection.recv(2**16):
                pass
    assert post(pool, link).data == BODY


def test_errors_are_answers_of_the_proxy(pool: urllib3.PoolManager, link: Link) -> None:
    link.conditions.error_share = 1.0
    answers = [post(pool, link) for _ in range(20)]
    assert {answer.status for answer in answers} == {500, 429, 504}
    assert all(answer.headers["Retry-After"] == "1" for answer in answers if answer.status == 429)
