"""Rotation of certificates: plans the next content of a Service's Secret from its present content.

A certificate authority that is valid for ten years signs the served certificate. Callers trust the authority: another
account writes its certificate into caBundle at installation. Renewing the served certificate needs no such write.
"""

from collections.abc import Mapping, Sequence

import msgspec

from taintwarden.serving.key_pairs import (
    KeyPair,
    UnusableKeyPair,
    is_contained,
    make_authority,
    make_key_pair,
    read_key_pair,
    trusts,
)

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Keys of the served certificate and its private key, as in a Secret of type ``kubernetes.io/tls``."""
AUTHORITY, AUTHORITY_KEY = "authority.crt", "authority.key"
"""Keys of the certificate and private key of the authority, which signs the served certificate."""
TRUSTED = "ca.crt"
"""Key of the certificates that callers have to trust, which contain that of the authority."""
RENEWAL_SHARE = 1 / 3
"""Remaining share of a certificate's lifetime at which the next one is created."""

Content = Mapping[str, bytes]


class RotationPlan(msgspec.Struct, frozen=True):
    """Changes to write into the Secret, and the reason; no changes if nothing has to be written."""

    changes: dict[str, bytes] = {}
    reason: str = ""
    is_repair: bool = False
    """True if the stored content is unusable, which is logged as a warning."""


def plan(stored: Content, names: Sequence[str], now: float) -> RotationPlan:
    """Return what to write next over the ``stored`` content, for a server with these DNS names."""
    authority = _authority(stored, now)
    if authority is None:
        made = make_authority(names[0], now)
        changes = {AUTHORITY: made.certificate, AUTHORITY_KEY: made.key, TRUSTED: made.certificate}
        is_empty = not any(stored.values())
        reason = "the Secret is empty" if is_empty else f"{AUTHORITY} cannot be used"
        return RotationPlan(changes | _new_certificate(made, names, now), reason, is_repair=not is_empty)
    is_published = is_contained(authority.certificate, stored.get(TRUSTED, b""))
    published = {} if is_published else {TRUSTED: authority.certificate}
    current, problem = _current(stored, authority, names, now)
    if current is None:
        return RotationPlan(published | _new_certificate(authority, names, now), problem, is_repair=True)
    if published:
        return RotationPlan(published, f"{TRUSTED} lacks the authority", is_repair=True)
    is_old = current.ends_at - now <= current.lifetime * RENEWAL_SHARE
    if is_old and authority.ends_at > current.ends_at:
        return RotationPlan(_new_certificate(authority, names, now), "a third of its lifetime is left")
    return RotationPlan()


def _authority(stored: Content, now: float) -> KeyPair | None:
    """Return the stored authority; None if it is unusable."""
    try:
        found = read_key_pair(stored.get(AUTHORITY, b""), stored.get(AUTHORITY_KEY, b""), is_authority=True)
    except UnusableKeyPair:
        return None
    return found if found.ends_at > now else None


def _current(stored: Content, authority: KeyPair, names: Sequence[str], now: float) -> tuple[KeyPair | None, str]:
    """Return the stored certificate of the server; or None, and why it is unusable."""
    try:
        pair = read_key_pair(stored.get(CERTIFICATE, b""), stored.get(KEY, b""))
    except UnusableKeyPair as error:
        return None, str(error)
    if missing := [name for name in names if name not in pair.names]:
        return None, f"the certificate is not for {missing[0]}"
    if not pair.begins_at <= now < pair.ends_at:
        return None, "the certificate has expired" if pair.ends_at <= now else "the certificate is not valid yet"
    if not trusts(authority.certificate, pair.certificate):
        return None, f"the certificate is not signed by {AUTHORITY}"
    return pair, ""


def _new_certificate(authority: KeyPair, names: Sequence[str], now: float) -> dict[str, bytes]:
    made = make_key_pair(names, now, authority)
    return {CERTIFICATE: made.certificate, KEY: made.key}
