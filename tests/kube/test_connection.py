"""Kubeconfigs of every sort: usable ones are used, others end in one line that says where and why."""

import base64
import json
import ssl
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from kubernetes import config

from taintwarden.kube import connection
from taintwarden.kube.connection import Connection
from taintwarden.kube.errors import ConfigError


def kubeconfig(
    path: Path, user: Any = None, server: str = "https://10.0.0.1:6443/", cluster: Any = None, **more: Any
) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": {"server": server} | (cluster or {})}],
        "users": [{"name": "me", "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": "one", "user": "me"}} for name in ("one", "two")],
    }
    file = path / "config"
    file.write_text(yaml.safe_dump(content | more))
    return str(file)


@pytest.fixture(scope="module")
def certificate() -> tuple[bytes, bytes]:
    """A certificate and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return made.public_bytes(encoding), key.private_bytes(encoding, form, serialization.NoEncryption())


@pytest.fixture(autouse=True)
def _outside_a_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(config.incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "no-token"))


def test_a_token_is_used(tmp_path):
    used = Connection.load(kubeconfig(tmp_path, {"token": "secret"}))
    assert used.authorization() == "Bearer secret"


def test_the_server_stands_without_a_final_slash(tmp_path):
    assert Connection.load(kubeconfig(tmp_path)).server == "https://10.0.0.1:6443"


def test_without_credentials_nothing_is_sent(tmp_path):
    assert Connection.load(kubeconfig(tmp_path)).authorization() is None


def test_a_token_file_is_used(tmp_path):
    (tmp_path / "token").write_text("from-file")
    used = Connection.load(kubeconfig(tmp_path, {"tokenFile": str(tmp_path / "token")}))
    assert used.authorization() == "Bearer from-file"


def test_a_client_certificate_is_used(tmp_path, certificate):
    data = [base64.b64encode(part).decode() for part in certificate]
    user = {"client-certificate-data": data[0], "client-key-data": data[1]}
    used = Connection.load(kubeconfig(tmp_path, user, cluster={"certificate-authority-data": data[0]}))
    assert used.authorization() is None
    assert isinstance(used.ssl, ssl.SSLContext)
    assert [authority["serialNumber"] for authority in used.ssl.get_ca_certs()] in ([], ["01"])
    assert used.ssl.verify_mode is ssl.CERT_REQUIRED


def test_an_insecure_cluster_is_not_verified(tmp_path):
    used = Connection.load(kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True}))
    assert isinstance(used.ssl, ssl.SSLContext)
    assert (used.ssl.verify_mode, used.ssl.check_hostname) == (ssl.CERT_NONE, False)


def test_plain_http_needs_no_tls(tmp_path):
    assert Connection.load(kubeconfig(tmp_path, server="http://127.0.0.1:8080")).ssl is False


def test_another_server_name_is_verified(tmp_path):
    used = Connection.load(kubeconfig(tmp_path, cluster={"tls-server-name": "kubernetes"}))
    assert used.tls_server_name == "kubernetes"


def exec_plugin(path: Path, answer: object, code: int = 0) -> dict[str, Any]:
    """A credential plugin that answers so, and counts how often it was asked."""
    plugin = path / "plugin"
    plugin.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        f"open({str(path / 'asked')!r}, 'a').write('x')\n"
        f"print({json.dumps(answer)!r})\n"
        f"sys.exit({code})\n"
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(plugin),
            "interactiveMode": "Never",
        }
    }


def credential(**status: str) -> dict[str, Any]:
    return {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}


def test_an_exec_plugin_gives_the_token(tmp_path):
    used = Connection.load(kubeconfig(tmp_path, exec_plugin(tmp_path, credential(token="from-plugin"))))
    assert used.authorization() == "Bearer from-plugin"


def test_an_exec_plugin_is_not_asked_for_every_request(tmp_path):
    used = Connection.load(kubeconfig(tmp_path, exec_plugin(tmp_path, credential(token="t"))))
    before = (tmp_path / "asked").read_text()
    for _ in range(20):
        used.authorization()
    assert len((tmp_path / "asked").read_text()) <= len(before) + 1


def test_a_token_that_ran_out_is_asked_for_again(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(connection.time, "monotonic", lambda: now[0])
    used = Connection.load(kubeconfig(tmp_path, {"token": "first"}))
    assert used.authorization() == "Bearer first"
    renewed = {"BearerToken": "Bearer second"}
    used.configuration.refresh_api_key_hook = lambda loaded: loaded.api_key.update(renewed)
    now[0] += connection.TOKEN_LIFETIME_SECONDS - 1
    assert used.authorization() == "Bearer first"
    now[0] += 2
    assert used.authorization() == "Bearer second"


def test_a_context_is_chosen(tmp_path):
    clusters = [
        {"name": "one", "cluster": {"server": "https://one"}},
        {"name": "two", "cluster": {"server": "https://two"}},
    ]
    contexts = [{"name": name, "context": {"cluster": name, "user": "me"}} for name in ("one", "two")]
    file = kubeconfig(tmp_path, clusters=clusters, contexts=contexts)
    assert Connection.load(file, "two").server == "https://two"
    assert Connection.load(file).server == "https://one"


def test_inside_a_cluster_the_service_account_is_used(tmp_path, monkeypatch, certificate):
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("service-account")
    authority.write_bytes(certificate[0])
    monkeypatch.setattr(config.incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(config.incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    loader = config.incluster_config.InClusterConfigLoader
    monkeypatch.setattr(
        config.incluster_config,
        "load_incluster_config",
        lambda client_configuration: loader(str(token), str(authority)).load_and_set(client_configuration),
    )
    monkeypatch.setattr(config, "load_incluster_config", config.incluster_config.load_incluster_config)
    used = Connection.load()
    assert used.server == "https://10.96.0.1:443"
    assert used.authorization() == "bearer service-account"


def test_a_kubeconfig_goes_before_the_service_account(tmp_path, monkeypatch):
    token = tmp_path / "token"
    token.write_text("service-account")
    monkeypatch.setattr(config.incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    assert Connection.load(kubeconfig(tmp_path, {"token": "mine"})).authorization() == "Bearer mine"


# -- what cannot be used --------------------------------------------------------------------------------------------


def refused(file: str | None, context: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        Connection.load(file, context)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 500
    return said


def test_a_missing_file_is_named(tmp_path):
    assert str(tmp_path / "nothing") in refused(str(tmp_path / "nothing"))


def test_a_directory_is_no_kubeconfig(tmp_path):
    assert str(tmp_path) in refused(str(tmp_path))


@pytest.mark.parametrize(
    "text",
    ["{{ not: [yaml", "", "just text", "[]", "7", "apiVersion: v1\nkind: Config\n", "\x00", "clusters: 7\nusers: 7\n"],
    ids=["not-yaml", "empty", "text", "list", "number", "nothing-in-it", "binary", "numbers"],
)
def test_what_is_no_kubeconfig_is_named(tmp_path, text):
    file = tmp_path / "config"
    file.write_text(text)
    assert str(file) in refused(str(file))


def test_bytes_that_are_no_text_are_no_kubeconfig(tmp_path):
    file = tmp_path / "config"
    file.write_bytes(b"\xff\xfe\x00clusters")
    assert str(file) in refused(str(file))


def test_a_missing_context_is_named(tmp_path):
    assert "three" in refused(kubeconfig(tmp_path), "three")


def test_a_context_without_its_cluster_is_refused(tmp_path):
    refused(kubeconfig(tmp_path, clusters=[]))


def test_a_cluster_without_a_server_is_refused(tmp_path):
    refused(kubeconfig(tmp_path, clusters=[{"name": "one", "cluster": {}}]))


def test_an_authority_that_is_missing_is_refused(tmp_path):
    refused(kubeconfig(tmp_path, cluster={"certificate-authority": str(tmp_path / "no-ca.crt")}))


def test_an_authority_that_is_none_is_refused(tmp_path):
    data = base64.b64encode(b"no certificate").decode()
    refused(kubeconfig(tmp_path, cluster={"certificate-authority-data": data}))


def test_a_certificate_that_is_none_is_refused(tmp_path):
    data = base64.b64encode(b"no certificate").decode()
    refused(kubeconfig(tmp_path, {"client-certificate-data": data, "client-key-data": data}))


def test_data_that_is_no_base64_is_refused(tmp_path):
    refused(kubeconfig(tmp_path, cluster={"certificate-authority-data": "&&&"}))


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "interactiveMode": "Never"}


def test_a_plugin_that_is_missing_leaves_us_without_credentials_and_is_told(tmp_path, caplog):
    """The loader of the kubernetes package says so in the log and goes on; the server's 401 ends the process."""
    assert Connection.load(kubeconfig(tmp_path, {"exec": PLUGIN})).authorization() is None
    assert "no-such-plugin" in caplog.text


@pytest.mark.parametrize(("answer", "code"), [(credential(token="t"), 1), ({}, 0), ("text", 0)])
def test_a_plugin_that_fails_leaves_us_without_credentials_and_is_told(tmp_path, caplog, answer, code):
    used = Connection.load(kubeconfig(tmp_path, exec_plugin(tmp_path, answer, code)))
    assert used.authorization() is None
    assert "exec" in caplog.text
