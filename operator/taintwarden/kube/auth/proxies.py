"""Selection of the proxy for a server by the variables of Go and curl (golang.org/x/net/http/httpproxy)."""

import ipaddress
from collections.abc import Mapping

from yarl import URL


def proxy_for(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the proxy in ``HTTPS_PROXY`` (http: ``HTTP_PROXY``); None if the host is local or in ``NO_PROXY``."""
    url = URL(server)
    name = "HTTPS_PROXY" if url.scheme == "https" else "HTTP_PROXY"
    proxy = environment.get(name) or environment.get(name.lower())
    host = url.host or ""
    address = _address(host)
    is_local = host == "localhost" or (address is not None and address.is_loopback)
    excepted = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not proxy or is_local or any(_matches(one.strip(), host, url.port) for one in excepted.split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _matches(entry: str, host: str, port: int | None) -> bool:
    """Return True if an entry of ``NO_PROXY`` names the host: ``*``, address, network or domain, and perhaps a port."""
    if entry in ("", "*"):
        return entry == "*"
    address = _address(host)
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, wanted = entry, None
    head, colon, tail = entry.rpartition(":")
    if colon and tail.isdigit() and (":" not in head or head.startswith("[")):
        name, wanted = head, int(tail)
    if wanted is not None and wanted != port:
        return False
    named = _address(name.strip("[]"))
    if named is not None or address is not None:
        return named is not None and named == address
    name, host = name.lower().removeprefix("*"), host.lower()
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
