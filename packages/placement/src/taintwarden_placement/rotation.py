"""The next content of the Secret of a Service: a plan, from its content and from what API servers trust.

An authority signs the certificate that is served. What API servers trust is the certificate of the authority, which is
written at installation, by another account: a new certificate of the server changes no configuration. The authority
that follows is published first and signs only when every configuration has carried it for a while, so that no replica
ever serves what an API server does not trust yet.
"""

from collections.abc import Mapping, Sequence

import msgspec

from taintwarden.serving.pairs import (
    Pair,
    UnusablePair,
    is_contained,
    make_authority,
    make_pair,
    read_authority,
    read_pair,
    trusts,
)

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Served now. The names are those of Kubernetes' TLS Secrets, which cert-manager writes, too."""
AUTHORITY, AUTHORITY_KEY = "authority.crt", "authority.key"
"""Signs what is served. A Secret of version 0.1 has none: what was served there signed itself."""
NEXT_AUTHORITY, NEXT_AUTHORITY_KEY = "next-authority.crt", "next-authority.key"
TRUSTED = "ca.crt"
"""What the API servers shall trust: the authority, and the one that follows."""
TRUST_SECONDS = 60.0
"""From the moment when the configurations contain a certificate until every API server has certainly received it."""
RENEWAL_SHARE = 1 / 3
"""The next one is made when this share of a certificate's life is left."""

Content = Mapping[str, bytes]


class RotationPlan(msgspec.Struct, frozen=True):
    """What to write into the Secret (None takes a key away; nothing to write: empty), and why."""

    changes: dict[str, bytes | None] = {}
    reason: str = ""
    is_repair: bool = False
    """The stored certificate cannot be used, which is reported."""


class _State(msgspec.Struct, frozen=True):
    """What a Secret holds that can be used."""

    current: Pair | None
    problem: str
    """Why there is no ``current``."""
    authority: Pair | None
    following: Pair | None
    anchor: bytes
    """What has to be trusted for what is served."""


def plan(stored: Content, names: Sequence[str], now: float, trusted_since: float | None) -> RotationPlan:
    """The next step from what is ``stored``, for a server under ``names``.

    ``trusted_since``: when every configuration was first seen with the authority that follows; None if one is without.
    """
    state = _read(stored, names, now)
    made = _step(stored, state, names, now, trusted_since)
    return msgspec.structs.replace(made, changes=_changed(made.changes, stored)) if made.changes else made


def is_rotating(stored: Content) -> bool:
    """Whether an authority waits for being trusted."""
    return bool(stored.get(NEXT_AUTHORITY))


def _step(
    stored: Content, state: _State, names: Sequence[str], now: float, trusted_since: float | None
) -> RotationPlan:
    if state.current is None:
        return _replaced(stored, state, names, now)
    if state.authority is not None and not is_contained(state.anchor, stored.get(TRUSTED, b"")):
        bundle = state.anchor + (state.following.certificate if state.following else b"")
        return RotationPlan({TRUSTED: bundle}, f"{TRUSTED} lacks what has to be trusted", is_repair=True)
    if state.authority is None or _is_old(state.authority, now):
        if state.following is None or not is_contained(state.following.certificate, stored[TRUSTED]):
            return _published(stored, state.anchor, names, now)
        if trusted_since is not None and now - trusted_since >= TRUST_SECONDS:
            return _promoted(state.following, names, now, "the next authority is trusted everywhere")
    can_renew = state.authority is not None and state.authority.ends_at > state.current.ends_at
    if state.authority is not None and can_renew and _is_old(state.current, now):
        return RotationPlan(_served(state.authority, names, now), "a third of its life is left")
    return RotationPlan()


def _read(stored: Content, names: Sequence[str], now: float) -> _State:
    authority = _authority(stored, AUTHORITY, AUTHORITY_KEY, now)
    following = _authority(stored, NEXT_AUTHORITY, NEXT_AUTHORITY_KEY, now)
    current, problem = _current(stored, names, now)
    if current is not None and authority is not None and not trusts(authority.certificate, current.certificate):
        current, problem = None, f"the certificate is not signed by {AUTHORITY}"
    elif current is not None and authority is None and not trusts(stored.get(TRUSTED, b""), current.certificate):
        current, problem = None, f"{AUTHORITY} cannot be used"
    anchor = stored.get(TRUSTED, b"") if authority is None else authority.certificate
    return _State(current, problem, authority, following, anchor)


def _authority(stored: Content, certificate: str, key: str, now: float) -> Pair | None:
    try:
        found = read_authority(stored.get(certificate, b""), stored.get(key, b""))
    except UnusablePair:
        return None
    return found if found.ends_at > now else None


def _current(stored: Content, names: Sequence[str], now: float) -> tuple[Pair | None, str]:
    """What is served; or None and why it cannot be."""
    try:
        pair = read_pair(stored.get(CERTIFICATE, b""), stored.get(KEY, b""))
    except UnusablePair as error:
        return None, str(error)
    if missing := [name for name in names if name not in pair.names]:
        return None, f"the certificate is not for {missing[0]}"
    if pair.ends_at <= now:
        return None, "the certificate has expired"
    return pair, ""


def _is_old(pair: Pair, now: float) -> bool:
    return pair.ends_at - now <= pair.lifetime * RENEWAL_SHARE


# -- steps ------------------------------------------------------------------------------------------------------------


def _replaced(stored: Content, state: _State, names: Sequence[str], now: float) -> RotationPlan:
    """What is served cannot be used: another one of the same authority, or of the next, or all of it again."""
    is_empty = not any(stored.values())
    reason = "the Secret is empty" if is_empty else state.problem
    if state.authority is not None:
        changes = _served(state.authority, names, now)
        if not is_contained(state.authority.certificate, stored.get(TRUSTED, b"")):
            changes[TRUSTED] = state.authority.certificate
        return RotationPlan(changes, reason, is_repair=True)
    if state.following is not None and is_contained(state.following.certificate, stored.get(TRUSTED, b"")):
        return msgspec.structs.replace(_promoted(state.following, names, now, reason), is_repair=True)
    made = make_authority(names[0], now)
    changes = _promoted(made, names, now, reason).changes | {TRUSTED: made.certificate}
    return RotationPlan(changes, reason, is_repair=not is_empty)


def _published(stored: Content, anchor: bytes, names: Sequence[str], now: float) -> RotationPlan:
    made = make_authority(names[0], now)
    is_broken = bool(stored.get(NEXT_AUTHORITY) or stored.get(NEXT_AUTHORITY_KEY))
    changes: dict[str, bytes | None] = {
        NEXT_AUTHORITY: made.certificate,
        NEXT_AUTHORITY_KEY: made.key,
        TRUSTED: anchor + made.certificate,
    }
    reason = f"{NEXT_AUTHORITY} cannot be used" if is_broken else "an authority has to follow"
    return RotationPlan(changes, reason, is_repair=is_broken)


def _promoted(following: Pair, names: Sequence[str], now: float, reason: str) -> RotationPlan:
    changes: dict[str, bytes | None] = {
        AUTHORITY: following.certificate,
        AUTHORITY_KEY: following.key,
        NEXT_AUTHORITY: None,
        NEXT_AUTHORITY_KEY: None,
    }
    return RotationPlan(changes | _served(following, names, now), reason)


def _served(authority: Pair, names: Sequence[str], now: float) -> dict[str, bytes | None]:
    made = make_pair(names, now, authority)
    return {CERTIFICATE: made.certificate, KEY: made.key}


def _changed(changes: dict[str, bytes | None], stored: Content) -> dict[str, bytes | None]:
    """Without the removal of what is not there, with that of what version 0.1 has left."""
    left = dict.fromkeys(("next.crt", "next.key"))
    return {key: value for key, value in (left | changes).items() if value is not None or key in stored}
