"""Settings: flags over the environment over defaults, and errors that name both."""

import math

import pytest

from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.machine import Machine
from taintwarden.settings import MAX_IN_FLIGHT, PREFIX, Settings, SettingsError, load_settings


def refused(environment: dict[str, str] | None = None, **flags: object) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(environment or {}, **flags)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_without_anything_the_defaults_hold():
    settings = load_settings({}, identity="me")
    assert settings == Settings(identity="me")


@pytest.mark.parametrize("name", [name for name in Settings.__struct_fields__ if name != "identity"])
def test_flags_that_are_not_given_are_none(name):
    assert getattr(load_settings({}, **{name: None}), name) == getattr(Settings(), name)


def test_the_environment_overrides_defaults():
    assert load_settings({"TAINTWARDEN_HTTP_PORT": "9090"}).http_port == 9090


def test_flags_override_the_environment():
    assert load_settings({"TAINTWARDEN_HTTP_PORT": "9090"}, http_port=7070).http_port == 7070


@pytest.mark.parametrize("value", [False, 0, 0.0, ""])
def test_a_flag_that_is_false_is_given(value):
    names = {bool: "numeric_operators", int: "http_port", float: "max_evictions_per_second", str: "context"}
    name = names[type(value)]
    assert getattr(load_settings({PREFIX + name.upper(): "1"}, **{name: value}), name) == value


def test_other_variables_are_ignored():
    assert load_settings({"TAINTWARDEN_HTTP_PROT": "9090", "HTTP_PORT": "1"}).http_port == 8080


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("True", True), ("1", True), ("false", False), ("0", False)]
)
def test_switches_in_the_environment(text, value):
    assert load_settings({"TAINTWARDEN_SEMVER_OPERATORS": text}).semver_operators is value


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("HTTP_PORT", "nine"),
        ("HTTP_PORT", "-1"),
        ("HTTP_PORT", "65536"),
        ("HTTP_PORT", "80.5"),
        ("HTTP_PORT", ""),
        ("MAX_EVICTIONS_PER_SECOND", "-1"),
        ("MAX_EVICTIONS_PER_SECOND", "fast"),
        ("MAX_EVICTIONS_PER_SECOND", "nan"),
        ("MAX_EVICTIONS_PER_SECOND", "inf"),
        ("EVENTS_PER_SECOND", "0"),
        ("EVENTS_PER_SECOND", "-3"),
        ("NUMERIC_OPERATORS", "off"),
        ("LOG_FORMAT", "xml"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_a_bad_value_is_named_with_its_flag_and_its_variable(variable, text):
    said = refused({PREFIX + variable: text})
    assert f"--{variable.lower().replace('_', '-')}" in said
    assert PREFIX + variable in said
    assert repr(text) in said


def test_a_bad_flag_is_named_too():
    said = refused(http_port=70_000)
    assert "--http-port" in said
    assert "70000" in said
    assert "65535" in said


def test_choices_are_listed():
    said = refused({"TAINTWARDEN_LOG_FORMAT": "xml"})
    for choice in ("auto", "json", "console"):
        assert choice in said


# -- who and where ----------------------------------------------------------------------------------------------------


def test_the_identity_is_made_of_the_pods_name_and_chance():
    first, second = (load_settings({"POD_NAME": "taintwarden-0"}).identity for _ in range(2))
    assert first.startswith("taintwarden-0_")
    assert first != second


def test_a_container_that_starts_again_in_its_pod_is_the_same_holder():
    pod = {"POD_NAME": "taintwarden-0", "POD_UID": "1f0c"}
    assert load_settings(pod).identity == load_settings(pod).identity == "taintwarden-0_1f0c"
    assert load_settings(pod | {"POD_UID": "2e1d"}).identity == "taintwarden-0_2e1d"


def test_outside_a_pod_the_identity_is_made_of_the_hosts_name():
    assert len(load_settings({}).identity) > len("_12345678")


def test_an_identity_can_be_given():
    assert load_settings({"POD_NAME": "x"}, identity="me").identity == "me"
    assert load_settings({"TAINTWARDEN_IDENTITY": "me"}).identity == "me"


@pytest.mark.parametrize(("environment", "flags"), [({"TAINTWARDEN_IDENTITY": ""}, {}), ({}, {"identity": ""})])
def test_an_empty_identity_is_none(environment, flags):
    """A Lease without a holder is free: two replicas without an identity would both hold it."""
    assert load_settings(environment, **flags).identity


def test_the_namespace_is_the_pods_unless_given():
    assert load_settings({"POD_NAMESPACE": "ops"}).namespace == "ops"
    assert load_settings({"POD_NAMESPACE": "ops"}, namespace="mine").namespace == "mine"
    assert load_settings({"POD_NAMESPACE": "ops", "TAINTWARDEN_NAMESPACE": "theirs"}).namespace == "theirs"
    assert load_settings({}).namespace == "taintwarden-system"


# -- what follows from them -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "cap"), [(50.0, 50.0), (0.5, 0.5), (0.0, None)])
def test_no_rate_is_no_cap(rate, cap):
    assert Settings(max_evictions_per_second=rate).overall_rate == cap


@pytest.mark.parametrize("rate", [0.0, 0.001, 1.0, 50.0, 300.0, 10_000.0, 1e300])
def test_calls_in_progress_are_enough_for_the_rate_and_bounded(rate):
    settings = Settings(max_evictions_per_second=rate)
    assert 1 <= settings.max_in_flight <= MAX_IN_FLIGHT
    if settings.overall_rate is not None:
        assert settings.max_in_flight >= min(MAX_IN_FLIGHT, math.ceil(rate / 10))


@pytest.mark.parametrize("rate", [0.0, 0.001, 50.0, 10_000.0])
def test_every_rate_makes_a_machine(rate):
    settings = Settings(max_evictions_per_second=rate)
    Machine(overall_rate=settings.overall_rate, max_in_flight=settings.max_in_flight)
    if settings.overall_rate is not None:
        assert TokenBucket(settings.overall_rate, 1, empty_at=0.0).available_at(0.0) > 0.0
