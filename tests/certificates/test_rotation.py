"""What the Secret holds next, step by step and from every state it may be left in."""

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.certificates.pairs import LIFETIME_SECONDS, Pair, make_pair
from taintwarden.certificates.rotation import TRUST_SECONDS, Plan, is_rotating, plan

NAMES = ("webhook", "webhook.home", "webhook.home.svc")
NOW = 1_800_000_000.0
LATE = NOW + LIFETIME_SECONDS * 0.7
AFTER = NOW + LIFETIME_SECONDS + 1


@functools.cache
def pair(made_at: float = NOW, names: tuple[str, ...] = NAMES) -> Pair:
    return make_pair(names, made_at)


def secret(current: Pair | None = None, following: Pair | None = None, **other: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    if current:
        found |= {"tls.crt": current.certificate, "tls.key": current.key, "ca.crt": current.certificate}
    if following:
        found |= {"next.crt": following.certificate, "next.key": following.key}
        found["ca.crt"] = found.get("ca.crt", b"") + following.certificate
    return found | {name.replace("_", "."): value for name, value in other.items()}


def then(stored: dict[str, bytes], made: Plan) -> dict[str, bytes]:
    """The Secret after a merge patch."""
    merged: dict[str, Any] = {**stored, **made.changes}
    return {key: value for key, value in merged.items() if value is not None}


def test_an_empty_secret_is_filled_and_that_is_no_repair():
    made = plan({}, NAMES, NOW, None)
    assert set(then({}, made)) == {"tls.crt", "tls.key", "ca.crt"}
    assert (made.reason, made.is_repair) == ("the Secret is empty", False)


def test_what_was_filled_stays():
    filled = then({}, plan({}, NAMES, NOW, None))
    assert plan(filled, NAMES, NOW, None) == Plan()


def test_a_good_certificate_stays_until_a_third_of_its_life_is_left():
    almost = NOW + LIFETIME_SECONDS * 0.6
    assert plan(secret(pair()), NAMES, almost, NOW) == Plan()


def test_then_the_next_is_published_beside_it_and_not_served():
    stored = secret(pair())
    after = then(stored, plan(stored, NAMES, LATE, NOW))
    assert after["tls.crt"] == stored["tls.crt"]
    assert after["ca.crt"] == stored["tls.crt"] + after["next.crt"]
    assert is_rotating(after)


@pytest.mark.parametrize("trusted_since", [None, LATE - TRUST_SECONDS + 1])
def test_the_next_is_not_served_before_it_was_trusted_for_a_minute(trusted_since):
    assert plan(secret(pair(), pair(LATE)), NAMES, LATE, trusted_since) == Plan()


def test_after_a_minute_it_is_served_and_the_one_before_stays_trusted():
    stored = secret(pair(), pair(LATE))
    after = then(stored, plan(stored, NAMES, LATE, LATE - TRUST_SECONDS))
    assert after["tls.crt"] == stored["next.crt"]
    assert after["tls.key"] == stored["next.key"]
    assert after["ca.crt"] == stored["ca.crt"]
    assert not is_rotating(after)
    assert plan(after, NAMES, LATE, LATE) == Plan()


BROKEN = {
    "no key": (secret(pair(), tls_key=b""), "the key is missing"),
    "not PEM": (secret(pair(), tls_crt=b"nonsense"), "the certificate cannot be read"),
    "the key of another": (secret(pair(), tls_key=make_pair(NAMES, NOW).key), "the key is that of another certificate"),
    "another service": (secret(pair(NOW, ("window.home.svc",))), "the certificate is not for webhook"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_served_is_made_anew_and_told(name):
    stored, told = BROKEN[name]
    made = plan(stored, NAMES, NOW, NOW)
    assert made.is_repair
    assert told in made.reason
    assert plan(then(stored, made), NAMES, NOW, None) == Plan()


def test_an_expired_one_is_made_anew():
    made = plan(secret(pair()), NAMES, AFTER, NOW)
    assert made.reason == "the certificate has expired"


def test_an_expired_one_gives_way_to_a_next_that_was_published():
    stored = secret(pair(), pair(LATE))
    assert plan(stored, NAMES, AFTER, None).changes["tls.crt"] == pair(LATE).certificate


def test_a_certificate_that_nobody_is_told_to_trust_is_published():
    stored = secret(pair(), ca_crt=pair(LATE).certificate)
    made = plan(stored, NAMES, NOW, NOW)
    assert made.is_repair
    assert then(stored, made)["ca.crt"] == pair().certificate


def test_a_broken_next_is_made_anew_and_told():
    stored = secret(pair(), pair(LATE), next_key=b"")
    made = plan(stored, NAMES, LATE, LATE - TRUST_SECONDS)
    assert made.reason == "next.crt cannot be used: the key is missing"
    assert made.is_repair
    assert then(stored, made)["tls.crt"] == stored["tls.crt"]


@given(st.data())
def test_whatever_is_stored_a_few_steps_lead_to_rest_and_never_serve_what_is_not_published(data):
    pool = (pair(), pair(LATE), pair(NOW, ("window.home.svc",)))
    pieces = [b"", b"nonsense", *(one.certificate for one in pool), *(one.key for one in pool)]
    keys = ("tls.crt", "tls.key", "next.crt", "next.key", "ca.crt")
    stored = {key: data.draw(st.sampled_from(pieces), label=key) for key in keys}
    now = data.draw(st.sampled_from((NOW, LATE, AFTER)))
    make = functools.cache(make_pair)
    for _ in range(4):
        made = plan(stored, NAMES, now, now - TRUST_SECONDS, lambda names, at: make(tuple(names), at))
        served_before = stored.get("tls.crt")
        after = then(stored, made)
        assert after["tls.crt"] in after["ca.crt"]
        is_promoted = stored.get("next.crt") and after["tls.crt"] == stored["next.crt"]
        if after["tls.crt"] != served_before and is_promoted:
            assert after["tls.crt"] in stored["ca.crt"]
        stored = after
    assert plan(stored, NAMES, now, None) == Plan()
