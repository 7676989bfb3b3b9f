"""Valid kubeconfigs are used; others are errors of one line that names the place and the reason."""

import asyncio
import base64
import json
import shlex
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from structlog.testing import capture_logs

from patience import until
from taintwarden.kube.auth.connection import FILES_SECONDS, RETRY_SECONDS, Connection
from taintwarden.kube.auth.credentials import TOKEN_FILE_SECONDS, CredentialsError, read_credentials
from taintwarden.kube.auth.kubeconfig import ClusterSource, from_files
from taintwarden.kube.auth.proxies import proxy_for
from taintwarden.kube.errors import ConfigError

TLS = "https://10.0.0.1:6443/"
"""Address for tests without TLS: a TLS context reads all authorities of the machine, which is slow."""


def kubeconfig(
    path: Path, user: Any = None, server: str = "http://10.0.0.1:6443/", cluster: Any = None, **more: Any
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


def shown(used: Connection) -> str | None:
    """The Authorization header that the connection would send now."""
    return asyncio.run(used.authorization())


def test_a_client_certificate_is_used(tmp_path, certificate):
    data = [base64.b64encode(part).decode() for part in certificate]
    user = {"client-certificate-data": data[0], "client-key-data": data[1]}
    used = Connection.load(kubeconfig(tmp_path, user, cluster={"certificate-authority-data": data[0]}, server=TLS))
    assert shown(used) is None
    assert isinstance(used.ssl, ssl.SSLContext)
    assert [authority["serialNumber"] for authority in used.ssl.get_ca_certs()] in ([], ["01"])
    assert used.ssl.verify_mode is ssl.CERT_REQUIRED


def test_an_insecure_cluster_is_not_verified(tmp_path):
    used = Connection.load(kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True}, server=TLS))
    assert isinstance(used.ssl, ssl.SSLContext)
    assert (used.ssl.verify_mode, used.ssl.check_hostname) == (ssl.CERT_NONE, False)


def test_a_scheme_in_capitals_is_the_same():
    assert isinstance(Connection(ClusterSource("HTTPS://a")).ssl, ssl.SSLContext)


@pytest.mark.parametrize(
    "server", ["localhost:6443", "127.0.0.1", "ftp://a", "https://", "https://a:99999", "unix:///a"]
)
def test_a_server_that_cannot_be_used_is_refused(server):
    with pytest.raises(ConfigError, match=f"the server {server} cannot be used"):
        Connection(ClusterSource(server))


def test_a_server_with_a_password_is_refused_without_showing_it(tmp_path):
    shown = refused(kubeconfig(tmp_path, server="https://me:hidden-word@10.0.0.1:6443"))
    assert "the server https://...@10.0.0.1:6443 cannot be used: it contains a user or a password" in shown
    assert "hidden-word" not in shown


@pytest.mark.parametrize("name", ["a\0", ".x", "a..b", "x" * 64])
def test_a_tls_server_name_that_cannot_be_one_is_refused(name):
    with pytest.raises(ConfigError, match=r"the tls-server-name .* cannot be used"):
        Connection(ClusterSource("https://a", tls_server_name=name))


def test_another_server_name_is_verified(tmp_path):
    used = Connection.load(kubeconfig(tmp_path, cluster={"tls-server-name": "kubernetes"}, server=TLS))
    assert used.tls_server_name == "kubernetes"


def exec_plugin(path: Path, answer: object, code: int = 0) -> dict[str, Any]:
    """A credential plugin with this answer, which counts its calls in the file `asked`."""
    plugin = path / "plugin"
    plugin.write_text(
        "#!/bin/sh\n"
        f"printf x >> {shlex.quote(str(path / 'asked'))}\n"
        f"printf %s {shlex.quote(json.dumps(answer))}\n"
        f"exit {code}\n"
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


def test_an_exec_plugin_is_not_asked_for_every_request(tmp_path):
    used = Connection.load(kubeconfig(tmp_path, exec_plugin(tmp_path, credential(token="t"))))
    for _ in range(20):
        shown(used)
    assert (tmp_path / "asked").read_text() == "x"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_a_token_file_is_read_again(tmp_path, clock):
    file = tmp_path / "token"
    file.write_text("first\n")
    used = Connection.load(kubeconfig(tmp_path, {"tokenFile": "token", "token": "never"}))
    assert shown(used) == "Bearer first"
    file.write_text("second")
    clock[0] += TOKEN_FILE_SECONDS - 1
    assert shown(used) == "Bearer first"
    clock[0] += 2
    assert shown(used) == "Bearer second"


def test_an_empty_token_file_is_an_error_until_it_is_filled(tmp_path, clock):
    file = tmp_path / "token"
    file.write_text("")
    used = Connection.load(kubeconfig(tmp_path, {"tokenFile": str(file)}))
    with pytest.raises(CredentialsError, match=f"the token file {file} is empty"):
        shown(used)
    file.write_text("there")
    assert shown(used) == "Bearer there"


def test_while_a_token_file_is_empty_the_token_before_is_used(tmp_path, clock):
    file = tmp_path / "token"
    file.write_text("first")
    used = Connection.load(kubeconfig(tmp_path, {"tokenFile": str(file)}))
    shown(used)
    file.write_text("")
    clock[0] += TOKEN_FILE_SECONDS + 1
    with capture_logs() as logs:
        assert shown(used) == "Bearer first"
        assert shown(used) == "Bearer first"
    assert [line["event"] for line in logs] == ["credentials-not-renewed"]
    file.write_text("second")
    clock[0] += RETRY_SECONDS + 1
    assert shown(used) == "Bearer second"


def test_a_401_reads_the_token_file_again(tmp_path, clock):
    file = tmp_path / "token"
    file.write_text("first")
    used = Connection.load(kubeconfig(tmp_path, {"tokenFile": str(file)}))
    assert shown(used) == "Bearer first"
    assert not asyncio.run(used.renew_after_401("Bearer first"))
    file.write_text("second")
    assert asyncio.run(used.renew_after_401("Bearer first"))
    assert shown(used) == "Bearer second"
    assert asyncio.run(used.renew_after_401("Bearer first"))  # another request was refused at the same time


def test_a_token_in_the_kubeconfig_is_not_renewed_by_a_401(tmp_path):
    used = Connection.load(kubeconfig(tmp_path, {"token": "secret"}))
    shown(used)
    assert not asyncio.run(used.renew_after_401("Bearer secret"))


def test_a_plugin_is_called_again_when_its_token_expires_and_after_a_401(tmp_path, clock):
    ends = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    used = Connection.load(kubeconfig(tmp_path, exec_plugin(tmp_path, credential(token="t", expirationTimestamp=ends))))
    asked = tmp_path / "asked"
    shown(used)
    clock[0] += 3_000
    shown(used)
    assert asked.read_text() == "x"
    clock[0] += 601
    shown(used)
    assert asked.read_text() == "xx"
    asyncio.run(used.renew_after_401("Bearer t"))
    assert asked.read_text() == "xxx"


async def test_a_plugin_does_not_block_the_event_loop(tmp_path):
    plugin = exec_plugin(tmp_path, credential(token="t"))
    script, begun, go = (tmp_path / name for name in ("plugin", "begun", "go"))
    waits = f"touch {begun}\nwhile [ ! -e {go} ]; do sleep 0.01; done\nexit"
    script.write_text(script.read_text().replace("exit", waits))
    used = Connection.load(kubeconfig(tmp_path, plugin))
    coming = asyncio.create_task(used.authorization())
    await until(begun.exists)
    go.touch()
    assert await coming == "Bearer t"


def test_a_plugin_may_give_a_certificate(tmp_path, certificate):
    parts = {"clientCertificateData": certificate[0].decode(), "clientKeyData": certificate[1].decode()}
    used = Connection.load(kubeconfig(tmp_path, exec_plugin(tmp_path, credential(**parts)), server=TLS))
    before = used.ssl
    assert shown(used) is None
    assert used.ssl is not before


def test_certificates_that_change_are_loaded_again(tmp_path, clock, certificate):
    for name, content in (("c.pem", certificate[0]), ("k.pem", certificate[1]), ("ca.pem", certificate[0])):
        (tmp_path / name).write_bytes(content)
    user = {"client-certificate": "c.pem", "client-key": "k.pem"}
    used = Connection.load(kubeconfig(tmp_path, user, cluster={"certificate-authority": "ca.pem"}, server=TLS))
    shown(used)
    first = used.ssl
    clock[0] += FILES_SECONDS + 1
    shown(used)
    assert used.ssl is first
    (tmp_path / "c.pem").write_bytes(certificate[0] + b"\n")
    clock[0] += FILES_SECONDS + 1
    shown(used)
    second = used.ssl
    assert second is not first
    (tmp_path / "ca.pem").write_bytes(b"")
    clock[0] += FILES_SECONDS + 1
    with capture_logs() as logs:
        shown(used)
    assert used.ssl is second
    assert [line["event"] for line in logs] == ["certificates-not-renewed"]
    (tmp_path / "ca.pem").write_bytes(certificate[0] + b"\n")
    clock[0] += FILES_SECONDS + 1
    shown(used)
    assert used.ssl is not second


def test_certificates_need_no_key_identifiers(tmp_path):
    """Python 3.13 asks for them by default, and those of many clusters have none."""
    context = Connection.load(kubeconfig(tmp_path, server=TLS)).ssl
    default = ssl.create_default_context()
    assert isinstance(context, ssl.SSLContext)
    assert context.verify_flags == default.verify_flags & ~ssl.VERIFY_X509_STRICT
    assert (context.verify_mode, context.check_hostname) == (default.verify_mode, default.check_hostname)


def test_several_files_are_merged_and_the_first_counts(tmp_path, monkeypatch):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    first = kubeconfig(folders[0], {"token": "first"}, clusters=[])
    second = kubeconfig(folders[1], {"token": "second"}, server="http://second")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path}/nothing:{second}")
    used = Connection.load()
    assert (used.server, shown(used)) == ("http://second", "Bearer first")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder in a pod."""
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.9")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return home


@pytest.fixture
def account(tmp_path: Path, home: Path, certificate: tuple[bytes, bytes]) -> Path:
    """The service account of that pod."""
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("of the account")
    (account / "namespace").write_text("mine")
    (account / "ca.crt").write_bytes(certificate[0])
    return account


@pytest.mark.parametrize(
    ("host", "server"), [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_without_a_kubeconfig_the_service_account_is_used(account, monkeypatch, host, server):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    used = Connection.load(service_account=account)
    assert (used.server, used.origin, used.namespace) == (server, "service account of the pod", "mine")
    assert shown(used) == "Bearer of the account"


def test_a_service_account_without_the_variables_of_its_cluster_is_an_error(account, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST"):
        Connection.load(service_account=account)


def test_a_user_without_a_home_has_the_service_account(account, monkeypatch):
    """User 65532 of the image has no entry in /etc/passwd, and a runtime need not set HOME."""

    def nowhere(_: Path) -> Path:
        msg = "Could not determine home directory."
        raise RuntimeError(msg)

    monkeypatch.setattr(Path, "expanduser", nowhere)
    assert Connection.load(service_account=account).origin == "service account of the pod"


def test_kubeconfig_of_the_environment_goes_before_the_service_account(account, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, server=TLS))
    used = Connection.load(service_account=account)
    assert (used.server, used.origin) == ("https://10.0.0.1:6443", "context one")


def test_kubeconfig_of_the_home_folder_goes_before_the_service_account(home, account):
    kubeconfig(home / ".kube", server="http://home")
    assert Connection.load(service_account=account).server == "http://home"


def test_a_named_kubeconfig_that_does_not_exist_is_an_error_that_names_it(account, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/absent/config")
    with pytest.raises(ConfigError, match="cannot use /absent/config: there is no such file"):
        Connection.load(service_account=account)


# -- proxies ----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def test_the_proxy_of_the_kubeconfig_goes_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://other:3128")
    assert Connection.load(kubeconfig(tmp_path, server=TLS)).proxy == "http://other:3128"
    assert (
        Connection.load(kubeconfig(tmp_path, cluster={"proxy-url": "http://mine:1"}, server=TLS)).proxy
        == "http://mine:1"
    )


@pytest.mark.parametrize("url", ["socks5://proxy:1080", "ftp://proxy", "http://[", "http://"])
def test_a_proxy_that_cannot_be_used_is_refused(tmp_path, url):
    assert f"the proxy {url} cannot be used" in refused(kubeconfig(tmp_path, cluster={"proxy-url": url}, server=TLS))


PASSWORDS = [
    "socks5://me:hidden-word@proxy:1080",
    "http://me:hidden-word@proxy:port",
    "http://me:hidden-word@proxy:99999",
    "http://me:hidden-word/more@proxy:1",
    "http://me:hidden-word#@proxy:port",
    "http://me:@hidden-word@proxy:port",
    "http://me:a hidden-word@[",
    "me:hidden-word@proxy:3128",
]


@pytest.mark.parametrize("url", PASSWORDS)
def test_the_password_of_a_proxy_that_cannot_be_used_is_not_shown(tmp_path, url):
    assert "hidden-word" not in refused(kubeconfig(tmp_path, cluster={"proxy-url": url}, server=TLS))


@pytest.mark.parametrize(
    ("server", "excepted", "is_used"),
    [
        ("https://10.0.0.1:6443", "", True),
        ("https://10.0.0.1:6443", "10.0.0.1", False),
        ("https://10.0.0.1:6443", "10.0.0.0/8", False),
        ("https://10.0.0.1:6443", "192.168.0.0/16, 10.0.0.1:6443", False),
        ("https://10.0.0.1:6443", "10.0.0.1:443", True),
        ("https://10.0.0.1:6443", "*", False),
        ("https://10.0.0.1:6443", "0.0.1,nonsense/99", True),
        ("https://api.example.com", "example.com", False),
        ("https://api.example.com", ".example.com", False),
        ("https://api.example.com", "*.example.com", False),
        ("https://example.com", ".example.com", True),
        ("https://notexample.com", "example.com", True),
        ("https://API.example.com", "api.EXAMPLE.com", False),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://[fd00::1]:6443", "fd00::2", True),
        ("https://localhost:6443", "", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://[::1]:6443", "", False),
        ("http://10.0.0.1", "", False),
    ],
)
def test_no_proxy_is_read_as_go_does(server, excepted, is_used):
    for variables in (str.upper, str.lower):
        environment = {variables("https_proxy"): "proxy:3128", variables("no_proxy"): excepted}
        assert proxy_for(server, environment) == ("http://proxy:3128" if is_used else None)


def test_a_context_is_chosen(tmp_path):
    clusters = [
        {"name": "one", "cluster": {"server": "http://one"}},
        {"name": "two", "cluster": {"server": "http://two"}},
    ]
    contexts = [{"name": name, "context": {"cluster": name, "user": "me"}} for name in ("one", "two")]
    file = kubeconfig(tmp_path, clusters=clusters, contexts=contexts)
    assert Connection.load(file, "two").server == "http://two"
    assert Connection.load(file).server == "http://one"


def test_impersonation_is_sent_as_kubectl_sends_it(tmp_path):
    extra = {"reason": ["on call", "night"], "example.com/50%": ["x"]}
    user = {"token": "t", "as": "jane", "as-uid": "7", "as-groups": ["dev", "ops"], "as-user-extra": extra}
    assert Connection.load(kubeconfig(tmp_path, user)).impersonation == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-example.com%2F50%25", "x"),
        ("Impersonate-Extra-reason", "on call"),
        ("Impersonate-Extra-reason", "night"),
    )


@pytest.mark.parametrize(
    ("user", "named"),
    [
        ({"as-groups": ["dev"]}, "no as"),
        ({"as": "jane", "as-groups": "dev"}, "as-groups"),
        ({"as": "jane", "as-user-extra": {"reason": "x"}}, "as-user-extra"),
        ({"as": "jane\nHost: x"}, "Impersonate-User"),
    ],
)
def test_impersonation_that_cannot_be_sent_is_named(tmp_path, user, named):
    """Without it the command would act as the owner of the file."""
    with pytest.raises(ConfigError, match=named):
        Connection.load(kubeconfig(tmp_path, user))


# -- invalid kubeconfigs --------------------------------------------------------------------------------------------


def refused(file: str | None, context: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        Connection.load(file, context)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 500
    return said


@pytest.mark.parametrize(
    "text",
    ["{{ not: [yaml", "", "just text", "[]", "7", "apiVersion: v1\nkind: Config\n", "\x00", "clusters: 7\nusers: 7\n"],
    ids=["not-yaml", "empty", "text", "list", "number", "nothing-in-it", "binary", "numbers"],
)
def test_a_file_that_is_no_kubeconfig_is_an_error_that_names_it(tmp_path, text):
    file = tmp_path / "config"
    file.write_text(text)
    assert str(file) in refused(str(file))


def test_bytes_that_are_no_text_are_no_kubeconfig(tmp_path):
    file = tmp_path / "config"
    file.write_bytes(b"\xff\xfe\x00clusters")
    assert str(file) in refused(str(file))


def test_a_missing_context_is_named(tmp_path):
    assert "three" in refused(kubeconfig(tmp_path), "three")


NO_CERTIFICATE = base64.b64encode(b"no certificate").decode()


@pytest.mark.parametrize(
    "wrong",
    [
        {"clusters": []},
        {"clusters": [{"name": "one", "cluster": {}}]},
        {"cluster": {"certificate-authority": "/absent/ca.crt"}},
        {"cluster": {"certificate-authority-data": NO_CERTIFICATE}},
        {"cluster": {"certificate-authority-data": "&&&"}},
        {"user": {"client-certificate-data": NO_CERTIFICATE, "client-key-data": NO_CERTIFICATE}},
    ],
)
def test_a_missing_or_invalid_field_is_an_error(tmp_path, wrong):
    refused(kubeconfig(tmp_path, server=TLS, **wrong))


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "installHint": "get it there"}


def test_a_plugin_that_is_missing_is_named_with_its_hint(tmp_path):
    used = Connection.load(kubeconfig(tmp_path, {"exec": PLUGIN}))
    with pytest.raises(CredentialsError, match=r"no-such-plugin gives no credentials: .* get it there"):
        shown(used)


@pytest.mark.parametrize(("answer", "code"), [(credential(token="t"), 1), (credential(), 0), ({}, 0), ("text", 0)])
def test_a_plugin_that_fails_is_an_error(tmp_path, answer, code):
    used = Connection.load(kubeconfig(tmp_path, exec_plugin(tmp_path, answer, code)))
    with pytest.raises(CredentialsError, match="plugin gives no credentials: it"):
        shown(used)


def test_no_error_shows_the_stderr_of_a_plugin(tmp_path):
    plugin = exec_plugin(tmp_path, {}, 1)
    path = Path(plugin["exec"]["command"])
    path.write_text(path.read_text().replace("exit", "echo hidden-word >&2\nexit"))
    used = Connection.load(kubeconfig(tmp_path, plugin))
    with pytest.raises(CredentialsError, match="it exited with 1; run it yourself to see why") as caught:
        shown(used)
    assert "hidden-word" not in str(caught.value)


def test_no_error_shows_the_arguments_of_a_plugin_that_hangs(tmp_path):
    plugin = PLUGIN | {"command": "sleep", "args": ["5.0000001"]}
    source = from_files([Path(kubeconfig(tmp_path, {"exec": plugin}))], None, {})
    with pytest.raises(CredentialsError, match=r"sleep gives no credentials: it did not end within 0.05 s$") as caught:
        read_credentials(source, plugin_seconds=0.05)
    assert "5.0000001" not in str(caught.value)


COMMAND = {"command": "c"}
UNUSABLE = [
    {"auth-provider": {"name": "gcp"}},
    {"exec": {}},
    {"exec": 7},
    {"exec": COMMAND | {"args": 7}},
    {"exec": COMMAND | {"env": 7}},
    {"exec": COMMAND | {"env": ["a"]}},
    {"exec": COMMAND | {"env": [{"value": "a"}]}},
]


@pytest.mark.parametrize("user", UNUSABLE)
def test_invalid_credentials_are_refused(tmp_path, user):
    refused(kubeconfig(tmp_path, user))
