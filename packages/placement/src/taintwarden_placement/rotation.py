"""The next content of the Secret of a Service: a plan, from what it holds.

An authority for ten years signs the certificate that is served. What callers trust is the certificate of the authority,
which another account writes at installation: a new certificate of the server changes no configuration.
"""

from collections.abc import Mapping, Sequence

import msgspec

from taintwarden.serving.pairs import (
    Pair,
    UnusablePair,
    is_contained,
    make_authority,
    make_pair,
    read_pair,
    trusts,
)

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Served now. The names are those of Kubernetes' TLS Secrets, which cert-manager writes, too."""
AUTHORITY, AUTHORITY_KEY = "authority.crt", "authority.key"
"""Signs what is served."""
TRUSTED = "ca.crt"
"""What callers shall trust: the authority."""
RENEWAL_SHARE = 1 / 3
"""The next one is made when this share of a certificate's life is left."""

Content = Mapping[str, bytes]


class RotationPlan(msgspec.Struct, frozen=True):
    """What to write into the Secret (nothing to write: empty), and why."""

    changes: dict[str, bytes] = {}
    reason: str = ""
    is_repair: bool = False
    """The stored certificate cannot be used, which is reported."""


def plan(stored: Content, names: Sequence[str], now: float) -> RotationPlan:
    """The next step from what is ``stored``, for a server under ``names``."""
    authority = _authority(stored, now)
    if authority is None:
        made = make_authority(names[0], now)
        changes = {AUTHORITY: made.certificate, AUTHORITY_KEY: made.key, TRUSTED: made.certificate}
        is_empty = not any(stored.values())
        reason = "the Secret is empty" if is_empty else f"{AUTHORITY} cannot be used"
        return RotationPlan(changes | _served(made, names, now), reason, is_repair=not is_empty)
    is_published = is_contained(authority.certificate, stored.get(TRUSTED, b""))
    published = {} if is_published else {TRUSTED: authority.certificate}
    current, problem = _current(stored, authority, names, now)
    if current is None:
        return RotationPlan(published | _served(authority, names, now), problem, is_repair=True)
    if published:
        return RotationPlan(published, f"{TRUSTED} lacks what has to be trusted", is_repair=True)
    is_old = current.ends_at - now <= current.lifetime * RENEWAL_SHARE
    if is_old and authority.ends_at > current.ends_at:
        return RotationPlan(_served(authority, names, now), "a third of its life is left")
    return RotationPlan()


def _authority(stored: Content, now: float) -> Pair | None:
    """What signs; None if it cannot be used."""
    try:
        found = read_pair(stored.get(AUTHORITY, b""), stored.get(AUTHORITY_KEY, b""), is_authority=True)
    except UnusablePair:
        return None
    return found if found.ends_at > now else None


def _current(stored: Content, authority: Pair, names: Sequence[str], now: float) -> tuple[Pair | None, str]:
    """What is served; or None and why it cannot be."""
    try:
        pair = read_pair(stored.get(CERTIFICATE, b""), stored.get(KEY, b""))
    except UnusablePair as error:
        return None, str(error)
    if missing := [name for name in names if name not in pair.names]:
        return None, f"the certificate is not for {missing[0]}"
    if pair.ends_at <= now:
        return None, "the certificate has expired"
    if not trusts(authority.certificate, pair.certificate):
        return None, f"the certificate is not signed by {AUTHORITY}"
    return pair, ""


def _served(authority: Pair, names: Sequence[str], now: float) -> dict[str, bytes]:
    made = make_pair(names, now, authority)
    return {CERTIFICATE: made.certificate, KEY: made.key}
