"""The next content of the Secret, step by step and from every state that it may be in."""

import functools

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.serving.key_pairs import (
    AUTHORITY_SECONDS,
    LIFETIME_SECONDS,
    SLACK_SECONDS,
    KeyPair,
    make_authority,
    make_key_pair,
    trusts,
)
from taintwarden_placement.rotation import RotationPlan, plan

NAMES = ("webhook", "webhook.home", "webhook.home.svc")
NOW = 1_800_000_000.0
LATE = NOW + LIFETIME_SECONDS * 0.7
AFTER = NOW + LIFETIME_SECONDS + 1


made_authority = functools.cache(make_authority)
made_pair = functools.cache(make_key_pair)


def authority(made_at: float = NOW) -> KeyPair:
    return made_authority("webhook", made_at)


def pair(made_at: float = NOW, names: tuple[str, ...] = NAMES, by: float | None = NOW) -> KeyPair:
    """A cached key pair, signed by the authority of the time `by`, or by itself."""
    return made_pair(names, made_at, None if by is None else authority(by))


def secret(current: KeyPair, by: KeyPair, **other: bytes) -> dict[str, bytes]:
    """A Secret with a key pair and its authority."""
    found = {"tls.crt": current.certificate, "tls.key": current.key, "ca.crt": by.certificate}
    found |= {"authority.crt": by.certificate, "authority.key": by.key}
    return found | {name.replace("_", "."): value for name, value in other.items()}


def then(stored: dict[str, bytes], made: RotationPlan) -> dict[str, bytes]:
    """The Secret after a merge patch."""
    return {**stored, **made.changes}


# -- the certificate of the server ------------------------------------------------------------------------------------


def test_an_empty_secret_is_filled_without_a_repair():
    made = plan({}, NAMES, NOW)
    after = then({}, made)
    assert set(after) == {"tls.crt", "tls.key", "ca.crt", "authority.crt", "authority.key"}
    assert after["ca.crt"] == after["authority.crt"]
    assert trusts(after["ca.crt"], after["tls.crt"])
    assert (made.reason, made.is_repair) == ("the Secret is empty", False)


def test_an_authority_whose_key_needs_no_hash_signs_a_certificate(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(ec, "generate_private_key", lambda _: ed25519.Ed25519PrivateKey.generate())
        other = make_authority("webhook", NOW)
    made = plan({"authority.crt": other.certificate, "authority.key": other.key}, NAMES, NOW)
    assert trusts(other.certificate, made.changes["tls.crt"])


def test_a_filled_secret_is_not_changed():
    filled = then({}, plan({}, NAMES, NOW))
    assert plan(filled, NAMES, NOW) == RotationPlan()


def test_a_good_certificate_stays_until_a_third_of_its_life_is_left():
    almost = NOW + LIFETIME_SECONDS * 0.6
    assert plan(secret(pair(), authority()), NAMES, almost) == RotationPlan()


def test_a_late_certificate_is_renewed_by_the_same_authority():
    stored = secret(pair(), authority())
    made = plan(stored, NAMES, LATE)
    after = then(stored, made)
    assert made.changes.keys() == {"tls.crt", "tls.key"}
    assert after["tls.crt"] != stored["tls.crt"]
    assert trusts(stored["ca.crt"], after["tls.crt"])
    assert not made.is_repair
    assert plan(after, NAMES, LATE) == RotationPlan()


def test_the_bundle_does_not_change_for_years():
    stored, now = then({}, plan({}, NAMES, NOW)), NOW
    trusted = stored["ca.crt"]
    while now < NOW + AUTHORITY_SECONDS * 0.6:
        stored = then(stored, plan(stored, NAMES, now))
        assert stored["ca.crt"] == trusted
        now += 20 * 86400.0


BROKEN = {
    "no key": ({"tls_key": b""}, "the key is missing"),
    "not PEM": ({"tls_crt": b"nonsense"}, "the certificate cannot be read"),
    "the key of another": ({"tls_key": make_key_pair(NAMES, NOW).key}, "the key is that of another certificate"),
    "another service": (
        {"tls_crt": pair(NOW, ("window.home.svc",)).certificate, "tls_key": pair(NOW, ("window.home.svc",)).key},
        "the certificate is not for webhook",
    ),
    "another authority": (
        {"tls_crt": pair(NOW, NAMES, LATE).certificate, "tls_key": pair(NOW, NAMES, LATE).key},
        "the certificate is not signed by authority.crt",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_unusable_certificate_is_repaired_with_its_reason_and_the_bundle_stays(name):
    broken, reason = BROKEN[name]
    stored = secret(pair(), authority(), **broken)
    made = plan(stored, NAMES, NOW)
    assert made.is_repair
    assert reason in made.reason
    assert made.changes.keys() == {"tls.crt", "tls.key"}
    assert plan(then(stored, made), NAMES, NOW) == RotationPlan()


def test_an_expired_certificate_is_renewed():
    made = plan(secret(pair(), authority()), NAMES, AFTER)
    assert made.reason == "the certificate has expired"


def test_a_certificate_of_a_clock_that_was_ahead_is_replaced():
    stored = secret(pair(NOW + 2 * SLACK_SECONDS), authority())
    made = plan(stored, NAMES, NOW)
    assert made.reason == "the certificate is not valid yet"
    assert plan(then(stored, made), NAMES, NOW) == RotationPlan()


def test_an_authority_that_is_not_in_the_bundle_is_published():
    stored = secret(pair(), authority(), ca_crt=authority(LATE).certificate)
    made = plan(stored, NAMES, NOW)
    assert made.is_repair
    assert then(stored, made)["ca.crt"] == authority().certificate


def test_a_lost_authority_replaces_the_bundle():
    stored = secret(pair(), authority(), authority_key=b"")
    made = plan(stored, NAMES, NOW)
    after = then(stored, made)
    assert made.is_repair
    assert after["ca.crt"] == after["authority.crt"] != stored["authority.crt"]


def test_an_expired_authority_is_replaced():
    stored, late = secret(pair(), authority()), authority().ends_at + 1
    made = plan(stored, NAMES, late)
    assert (made.reason, made.is_repair) == ("authority.crt cannot be used", True)
    assert plan(then(stored, made), NAMES, late) == RotationPlan()


def test_a_certificate_that_ends_with_its_authority_is_not_renewed_again():
    stored = secret(pair(), authority())
    after = then(stored, plan(stored, NAMES, authority().ends_at - 86400.0))
    late = authority().ends_at - 3600.0
    assert plan(after, NAMES, late).changes.keys() & {"tls.crt"} == set()


@given(st.data())
def test_any_secret_is_repaired_in_few_steps_and_serves_only_trusted_certificates(data):
    pairs = (pair(), pair(LATE), pair(by=None), pair(NOW, ("window.home.svc",)), authority(), authority(LATE))
    pieces = [b"", b"nonsense", *(one.certificate for one in pairs), *(one.key for one in pairs)]
    parts = [f"{name}.{part}" for name in ("tls", "authority") for part in ("crt", "key")]
    keys = (*parts, "ca.crt")
    stored = {key: data.draw(st.sampled_from(pieces), label=key) for key in keys}
    now = data.draw(st.sampled_from((NOW, LATE, AFTER)))
    for _ in range(4):
        after = then(stored, plan(stored, NAMES, now))
        assert trusts(after["ca.crt"], after["tls.crt"])
        stored = after
    assert plan(stored, NAMES, now) == RotationPlan()
