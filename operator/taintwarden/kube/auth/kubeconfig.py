"""Address and credentials of the API server, from kubeconfigs and service accounts.

As in client-go, several files of ``KUBECONFIG`` are merged, and paths in a file are relative to its folder.
"""

import base64
import binascii
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from taintwarden.kube.auth.proxies import proxy_for

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a kubelet mounts the token and the authority of a pod's service account."""
IN_CLUSTER = "service account of the pod"
"""Origin of a connection with the service account."""

DEFAULT = Path("~/.kube/config")


class PemSource(msgspec.Struct, frozen=True):
    """PEM data, or the path of a file that contains it and may change. False if it is neither."""

    file: str = ""
    content: bytes = b""

    def __bool__(self) -> bool:
        return bool(self.file or self.content)

    def read(self) -> bytes:
        """Return the current bytes. Raises OSError."""
        return Path(self.file).read_bytes() if self.file else self.content


class Plugin(msgspec.Struct, frozen=True):
    """A program that provides credentials (client-go's ``exec``)."""

    command: tuple[str, ...]
    api_version: str
    environment: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    """Hint to show if the program is missing."""
    cluster: Mapping[str, Any] | None = None
    """Description of the cluster for the plugin, if the kubeconfig has ``provideClusterInfo``."""


class ClusterSource(msgspec.Struct, frozen=True):
    """One cluster and one user. The first of token file, token and password is used, or the plugin if alone."""

    server: str
    origin: str = ""
    """Origin of this struct, for people: ``context NAME`` or ``service account of the pod``."""
    namespace: str = ""
    """Default namespace; empty if none is set."""
    authority: PemSource = PemSource()
    is_verified: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    certificate: PemSource = PemSource()
    key: PemSource = PemSource()
    token: str = ""
    token_file: str = ""
    basic: str = ""
    """``user:password``."""
    plugin: Plugin | None = None
    impersonation: tuple[tuple[str, str], ...] = ()
    """Headers that name the user to act as."""


def in_cluster(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> ClusterSource:
    """Return the service account of the pod in which this process runs.

    Raises:
        ValueError: the variables of the API server's Service are not set.

    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        msg = "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
        raise ValueError(msg)
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    space = folder / "namespace"
    return ClusterSource(
        server,
        origin=IN_CLUSTER,
        namespace=space.read_text().strip() if space.exists() else "",
        authority=PemSource(str(folder / "ca.crt")),
        token_file=str(folder / "token"),
        proxy=proxy_for(server, environment),
    )


def from_files(paths: Sequence[Path], context: str | None, environment: Mapping[str, str]) -> ClusterSource:
    """Merge these files and return the cluster and the user of the context; an empty name selects the current context.

    Raises:
        OSError: a file cannot be read.
        ValueError: they contain no usable cluster and user.

    """
    merged = _merge([_read(path) for path in paths if len(paths) == 1 or path.exists()])
    name = context or str(merged["current-context"] or "")
    if not name:
        msg = "it has no current context: name one"
        raise ValueError(msg)
    chosen = _entry(merged, "contexts", name, "context")
    cluster = _entry(merged, "clusters", str(chosen.get("cluster", "")), "cluster")
    user = _entry(merged, "users", str(chosen["user"]), "user") if chosen.get("user") else {}
    found = _source(cluster, user, environment)
    return msgspec.structs.replace(found, origin=f"context {name}", namespace=str(chosen.get("namespace") or ""))


def default_paths(environment: Mapping[str, str]) -> list[Path]:
    """Return the files that kubectl would read; none if the user has no home, such as user 65532 of the image."""
    listed = [Path(path) for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]
    try:
        return listed or [DEFAULT.expanduser()]
    except RuntimeError:
        return []


def _read(path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - a pod has no kubeconfig, and the import is slow

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # four times as fast, if libyaml is there
    with path.open("rb") as file:
        try:
            content = yaml.load(file, loader)  # noqa: S506 - it is a safe loader
        except yaml.YAMLError as error:
            raise ValueError(str(error)) from error
    if not isinstance(content, dict):
        msg = "it is not a kubeconfig"
        raise ValueError(msg)
    for kind, inner in (("clusters", "cluster"), ("users", "user")):
        for entry in _list(content, kind):
            if isinstance(entry.get(inner), dict):
                entry[inner][_FOLDER] = str(path.absolute().parent)
    return content


_HEADER_CHARACTERS = "!#$&'*+-.^_`|~"
"""Characters of header names besides letters and digits. client-go escapes all others, and the percent sign."""
_FOLDER = "\0folder"
"""Key under which an entry keeps the folder of its file. No field of a kubeconfig has this name."""


def _merge(files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Merge kubeconfigs. The first entry of each name counts, and the first current context that is set."""
    merged: dict[str, Any] = {
        kind: [entry for content in files for entry in _list(content, kind)]
        for kind in ("clusters", "users", "contexts")
    }
    merged["current-context"] = next(filter(None, (content.get("current-context") for content in files)), "")
    return merged


def _list(content: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    entries = content.get(kind) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        msg = f"{kind} is not a list of objects"
        raise ValueError(msg)
    return entries


def _entry(merged: Mapping[str, Any], kind: str, name: str, inner: str) -> dict[str, Any]:
    for entry in merged[kind]:
        if entry.get("name") == name:
            found = entry.get(inner)
            if isinstance(found, dict):
                return found
    msg = f"it has no {inner} named {name}"
    raise ValueError(msg)


def _source(cluster: Mapping[str, Any], user: Mapping[str, Any], environment: Mapping[str, str]) -> ClusterSource:
    server = str(cluster.get("server") or "").rstrip("/")
    if not server:
        msg = "its cluster has no server"
        raise ValueError(msg)
    if user.get("auth-provider"):
        msg = "auth-provider is not supported, as in kubectl since 1.26: use an exec plugin"
        raise ValueError(msg)
    username, password = user.get("username"), user.get("password")
    plugin = user.get("exec")
    return ClusterSource(
        server,
        authority=_pem_source(cluster, "certificate-authority"),
        is_verified=not cluster.get("insecure-skip-tls-verify"),
        tls_server_name=cluster.get("tls-server-name") or None,
        proxy=cluster.get("proxy-url") or proxy_for(server, environment),
        certificate=_pem_source(user, "client-certificate"),
        key=_pem_source(user, "client-key"),
        token=str(user.get("token") or ""),
        token_file=_path(user, "tokenFile"),
        basic=f"{username}:{password}" if username and password else "",
        plugin=None if plugin is None else _plugin(plugin, user, cluster, server),
        impersonation=tuple(_impersonation(user)),
    )


def _impersonation(user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the headers for the fields ``as`` and ``as-...``, as client-go does (``transport/round_trippers.go``)."""
    name, uid = str(user.get("as") or ""), str(user.get("as-uid") or "")
    groups, extra = user.get("as-groups") or [], user.get("as-user-extra") or {}
    if not name and (uid or groups or extra):
        msg = "its user has as-uid, as-groups or as-user-extra, and no as: name the user to act as"
        raise ValueError(msg)
    if (
        not isinstance(groups, list)
        or not isinstance(extra, dict)
        or not all(isinstance(v, list) for v in extra.values())
    ):
        msg = "as-groups is not a list, or as-user-extra is not a map of lists"
        raise ValueError(msg)
    found = [("User", name), ("Uid", uid), *(("Group", str(group)) for group in groups)]
    for key, values in extra.items():
        found += [(f"Extra-{quote(str(key), _HEADER_CHARACTERS)}", str(value)) for value in values]
    for header, value in found:
        if not (value.isascii() and value.isprintable()):
            msg = f"a value for Impersonate-{header} has a control character, or one outside ASCII"
            raise ValueError(msg)
        if value:
            yield f"Impersonate-{header}", value


def _path(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return str(Path(entry.get(_FOLDER, "."), str(value))) if value else ""


def _pem_source(entry: Mapping[str, Any], name: str) -> PemSource:
    data = entry.get(f"{name}-data")
    if not data:
        return PemSource(_path(entry, name))
    try:
        return PemSource(content=base64.b64decode(str(data), validate=True))
    except binascii.Error as error:
        msg = f"{name}-data is not base64"
        raise ValueError(msg) from error


def _plugin(given: Any, user: Mapping[str, Any], cluster: Mapping[str, Any], server: str) -> Plugin:
    if not isinstance(given, dict) or not given.get("command"):
        msg = "exec has no command"
        raise ValueError(msg)
    arguments, variables = given.get("args") or [], _list(given, "env")
    if not isinstance(arguments, list) or not all(variable.get("name") for variable in variables):
        msg = "exec has args that are not a list, or an env without names"
        raise ValueError(msg)
    command = str(given["command"])
    if os.sep in command:  # as in client-go, a path is relative to the kubeconfig; a name is found by PATH
        command = str(Path(user.get(_FOLDER, "."), command))
    described = {"server": server} | {
        name: cluster[name]
        for name in ("tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
        if cluster.get(name)
    }
    return Plugin(
        (command, *map(str, arguments)),
        str(given.get("apiVersion") or "client.authentication.k8s.io/v1"),
        tuple((str(variable["name"]), str(variable.get("value", ""))) for variable in variables),
        str(given.get("installHint") or ""),
        described if given.get("provideClusterInfo") else None,
    )
