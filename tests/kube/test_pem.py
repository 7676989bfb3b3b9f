"""Certificates into a context, with and without files in memory."""

import ssl
import time

import pytest

from taintwarden.kube.auth.pem import load_chain
from taintwarden.serving.key_pairs import make_key_pair


def context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_pair_is_loaded_with_and_without_files_in_memory(monkeypatch, in_memory):
    if not in_memory:
        monkeypatch.delattr("os.memfd_create")
    pair = make_key_pair(("a",), time.time())
    load_chain(context(), pair.certificate + pair.key)


def test_a_pair_that_does_not_fit_is_not_loaded():
    one, other = (make_key_pair(("a",), time.time()) for _ in range(2))
    with pytest.raises(ssl.SSLError):
        load_chain(context(), one.certificate + other.key)
