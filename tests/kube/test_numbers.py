"""Numbers of any size come from a server that is hostile, or none: each decodes within 64 bits, or is a fault."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from kube.scripted import EndOfScriptError, ScriptedClient
from taintwarden.api import status
from taintwarden.kube.calls import access, lease, own_kinds
from taintwarden.kube.calls.lease import LeaseTimings
from taintwarden.kube.errors import ApiStatus
from taintwarden.kube.wire import kinds, resources
from taintwarden.kube.wire.answers import read_refusal
from taintwarden.kube.wire.kinds import version_number
from taintwarden_placement import webhook_calls

MODULES = (access, lease, kinds, own_kinds, status, webhook_calls)
LARGE = 10**400


def structs() -> Iterator[type[msgspec.Struct]]:
    for module in MODULES:
        for value in vars(module).values():
            is_own = isinstance(value, type) and value.__module__ == module.__name__
            if is_own and issubclass(value, msgspec.Struct) and value is not LeaseTimings:  # which is not decoded
                yield value
    yield ApiStatus


def numbers(found: inspect.Type, path: str, seen: set[type]) -> Iterator[tuple[str, Any]]:
    match found:
        case inspect.IntType() | inspect.FloatType():
            yield path, found
        case inspect.StructType(cls=cls, fields=fields) if cls not in seen:
            seen.add(cls)
            for field in fields:
                yield from numbers(field.type, f"{cls.__name__}.{field.name}", seen)
        case inspect.ListType(item_type=inner) | inspect.VarTupleType(item_type=inner):
            yield from numbers(inner, path, seen)
        case inspect.DictType(value_type=inner):
            yield from numbers(inner, path, seen)
        case inspect.UnionType(types=types):
            for one in types:
                yield from numbers(one, path, seen)
        case inspect.Metadata(type=inner):
            yield from numbers(inner, path, seen)
        case _:
            pass


DECODED = {
    path: found
    for one in structs()
    if not getattr(one, "__parameters__", ())
    for path, found in numbers(inspect.type_info(one), one.__name__, set())
}


def test_there_are_some() -> None:
    assert {"LeaseSpec.lease_duration_seconds", "Toleration.toleration_seconds", "PodSpec.priority"} <= set(DECODED)


@pytest.mark.parametrize("path", sorted(DECODED))
def test_a_whole_number_has_64_bits(path: str) -> None:
    found = DECODED[path]
    assert isinstance(found, inspect.IntType)
    assert found.ge is not None or found.gt is not None
    assert found.le is not None or found.lt is not None


@pytest.mark.parametrize("text", ["9" * 400, "9" * 5_000, "-" + "9" * 400])
def test_a_version_of_many_digits_is_none(text: str) -> None:
    assert version_number(text, unreadable=-1) == -1


@pytest.mark.parametrize(("asked", "waits"), [(2**62, 300.0), (-(2**62), 0.0), (-1, 0.0), (7, 7.0)])
def test_the_time_that_a_server_asks_to_wait_is_bounded(asked: int, waits: float) -> None:
    body = msgspec.json.encode({"message": "later", "details": {"retryAfterSeconds": 0}})
    error = read_refusal(429, body.replace(b":0}", b":%d}" % asked))
    assert (error.message, error.retry_after) == ("later", waits)


@pytest.mark.parametrize("digits", [400, 5_000])
def test_a_refusal_with_a_number_of_many_digits_is_quoted(digits: int) -> None:
    body = b'{"message": "later", "details": {"retryAfterSeconds": ' + b"9" * digits + b"}}"
    error = read_refusal(429, body)
    assert error.retry_after is None
    assert "later" in error.message


async def test_a_lease_of_any_length_is_none() -> None:
    answer = b'{"metadata": {"name": "x"}, "spec": {"leaseDurationSeconds": %d}}' % LARGE
    errors: list[str] = []
    one = lease.Lease(
        ScriptedClient(answer),  # type: ignore[arg-type]
        namespace="ns",
        name="x",
        identity="me",
        monotonic=lambda: 0.0,
        on_change=lambda _: None,
        on_error=errors.append,
        timings=LeaseTimings(retry=0.0),
    )
    with pytest.raises(EndOfScriptError):
        await one.run()
    assert "is not a valid lease" in errors[0]


@pytest.mark.parametrize("resource", [own_kinds.POLICIES, resources.PODS, resources.NODES, resources.JOBS])
def test_every_followed_kind_is_checked(resource: resources.Resource[Any]) -> None:
    assert resource.type in list(structs())
