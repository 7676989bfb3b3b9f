"""The next content of the Secret of the webhooks: a plan, from its content and from what API servers trust.

The certificate that follows is published first and served only when every configuration has carried it for a while, so
that no replica ever serves what an API server does not trust yet. The one before stays trusted: replicas that have not
read the Secret yet still serve it.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from taintwarden.certificates.pairs import Pair, UnusablePair, make_pair, read_pair

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Served now. The names are those of Kubernetes' TLS Secrets, which cert-manager writes, too."""
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"
TRUSTED = "ca.crt"
"""What the API servers shall trust: the certificate that is served, and the one before it or after it."""
TRUST_SECONDS = 60.0
"""From the moment when the configurations contain a certificate until every API server has certainly received it."""
RENEWAL_SHARE = 1 / 3
"""The next one is made when this share of a certificate's life is left."""

Content = Mapping[str, bytes]
Make = Callable[[Sequence[str], float], Pair]


class Plan(msgspec.Struct, frozen=True):
    """What to write into the Secret (None takes a key away; nothing to write: empty), and why."""

    changes: dict[str, bytes | None] = {}
    reason: str = ""
    is_repair: bool = False
    """The stored certificate cannot be used, which is reported."""


def plan(
    stored: Content, names: Sequence[str], now: float, trusted_since: float | None, make: Make = make_pair
) -> Plan:
    """The next step from what is ``stored``, for a server under ``names``.

    ``trusted_since``: when every configuration was first seen with all of ``ca.crt``; None if one is without it.
    """
    following, fault = _usable(stored, NEXT_CERTIFICATE, NEXT_KEY, names, now)
    current, problem = _usable(stored, CERTIFICATE, KEY, names, now)
    if current is None:
        if following is not None and following.certificate in stored.get(TRUSTED, b""):
            return msgspec.structs.replace(_promoted(following, problem), is_repair=True)
        return _anew(stored, names, now, problem, make)
    if current.certificate not in stored.get(TRUSTED, b""):
        changes = {TRUSTED: current.certificate, NEXT_CERTIFICATE: None, NEXT_KEY: None}
        return Plan(_changed(changes, stored), f"{TRUSTED} lacks the certificate that is served", is_repair=True)
    if current.ends_at - now > current.lifetime * RENEWAL_SHARE:
        return Plan()
    if following is None or following.certificate not in stored[TRUSTED]:
        made = make(names, now)
        is_broken = bool(stored.get(NEXT_CERTIFICATE) or stored.get(NEXT_KEY))
        changes = {
            NEXT_CERTIFICATE: made.certificate,
            NEXT_KEY: made.key,
            TRUSTED: current.certificate + made.certificate,
        }
        reason = f"{NEXT_CERTIFICATE} cannot be used: {fault}" if is_broken else "a third of its life is left"
        return Plan(changes, reason, is_repair=is_broken)
    if trusted_since is not None and now - trusted_since >= TRUST_SECONDS:
        return _promoted(following, "the next one is trusted everywhere")
    return Plan()


def is_rotating(stored: Content) -> bool:
    """Whether a next certificate waits for being trusted."""
    return bool(stored.get(NEXT_CERTIFICATE))


def _usable(stored: Content, certificate: str, key: str, names: Sequence[str], now: float) -> tuple[Pair | None, str]:
    """The pair under these two keys; or None and why not."""
    try:
        pair = read_pair(stored.get(certificate, b""), stored.get(key, b""))
    except UnusablePair as error:
        return None, str(error)
    if missing := [name for name in names if name not in pair.names]:
        return None, f"the certificate is not for {missing[0]}"
    if pair.ends_at <= now:
        return None, "the certificate has expired"
    return pair, ""


def _promoted(following: Pair, reason: str) -> Plan:
    changes = {CERTIFICATE: following.certificate, KEY: following.key, NEXT_CERTIFICATE: None, NEXT_KEY: None}
    return Plan(changes, reason)


def _anew(stored: Content, names: Sequence[str], now: float, problem: str, make: Make) -> Plan:
    made = make(names, now)
    is_empty = not any(stored.values())
    changes = {
        CERTIFICATE: made.certificate,
        KEY: made.key,
        TRUSTED: made.certificate,
        NEXT_CERTIFICATE: None,
        NEXT_KEY: None,
    }
    reason = "the Secret is empty" if is_empty else problem
    return Plan(_changed(changes, stored), reason, is_repair=not is_empty)


def _changed(changes: dict[str, bytes | None], stored: Content) -> dict[str, bytes | None]:
    """Without the removal of what is not there."""
    return {key: value for key, value in changes.items() if value is not None or key in stored}
