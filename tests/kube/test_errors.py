"""Refusals are read by code and reason, and cut, for every body."""

import msgspec
import pytest

from kube.wire_format import enveloped, message
from taintwarden.fields.text import MAX_QUOTED
from taintwarden.kube.errors import MAX_MESSAGE_LENGTH, ApiError, ApiStatus, StatusCause
from taintwarden.kube.wire.answers import read_refusal

STATUS = b"""{"kind":"Status","status":"Failure","message":"pods \\"a\\" not found","reason":"NotFound","code":404}"""


def test_a_refusal_is_shown_as_code_reason_and_message():
    assert str(read_refusal(404, STATUS)) == '404 NotFound: pods "a" not found'


def test_the_http_code_overrides_that_of_the_status():
    assert read_refusal(502, STATUS).code == 502


@pytest.mark.parametrize(
    "body",
    [b"<html><body>502 Bad Gateway</body></html>", b"not json", b'["list"]', b'{"message":7}', b'"text"'],
)
def test_a_body_that_is_no_status_is_quoted(body):
    error = read_refusal(502, body)
    assert str(error) == f"502: {body.decode()}"


def test_a_long_body_is_quoted_shortly():
    told = str(read_refusal(502, b"upstream connect error: " + b"<p>" * 10_000 + b"CERTIFICATE_VERIFY_FAILED"))
    assert len(told) <= MAX_QUOTED + len("502: ")
    assert told.startswith("502: upstream connect error: ")
    assert told.endswith("CERTIFICATE_VERIFY_FAILED")


def test_a_long_message_is_cut():
    error = read_refusal(500, b'{"message":"failed calling webhook: ' + b"m" * 10_000 + b': EOF"}')
    assert (len(error.message), error.message[:23], error.message[-5:]) == (
        MAX_MESSAGE_LENGTH,
        "failed calling webhook:",
        ": EOF",
    )


@pytest.mark.parametrize("body", [b"", b"{}", b'{"message":""}'])
def test_a_refusal_without_a_message_is_shown_by_its_code(body):
    assert str(read_refusal(503, body)) == "503: HTTP status 503"


@pytest.mark.parametrize("body", [b"\xff\xfe", b'{"message":"\xff"}'])
def test_a_body_that_is_not_utf8_is_read(body):
    assert read_refusal(500, body).code == 500


def test_causes_are_read():
    body = b'{"details":{"causes":[{"reason":"R","message":"m","field":"f"},{}]}}'
    assert read_refusal(422, body).causes == (StatusCause("R", "m", "f"), StatusCause())


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        ("7", b"{}", 7.0),
        ("", b'{"details":{"retryAfterSeconds":10}}', 10.0),
        ("3", b'{"details":{"retryAfterSeconds":10}}', 3.0),
        ("301", b"{}", 300.0),
        ("99999999999", b"{}", 300.0),
        ("", b'{"details":{"retryAfterSeconds":86400}}', 300.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", b"{}", None),
        ("-1", b"{}", None),
        ("1e9", b"{}", None),
        ("\u0667", b"{}", None),
        ("", b"{}", None),
    ],
)
def test_retry_after_comes_from_the_header_or_the_status(header, body, expected):
    assert read_refusal(429, body, header).retry_after == expected


@pytest.mark.parametrize(
    ("body", "expected"), [(STATUS, True), (b"404 page not found\n", False), (b"<html>no such host</html>", False)]
)
def test_only_a_404_of_the_api_server_means_that_an_object_is_gone(body, expected):
    error = read_refusal(404, body)
    assert (error.is_not_found, error.is_object_gone) == (expected, expected)


@pytest.mark.parametrize(
    ("code", "field", "expected"),
    [
        (422, "metadata.uid", True),
        (422, "metadata.name", False),
        (422, "", False),
        (400, "metadata.uid", False),
    ],
)
def test_an_invalid_uid_means_another_object(code, field, expected):
    body = f'{{"details":{{"causes":[{{"field":"{field}"}}]}}}}'.encode()
    assert read_refusal(code, body).is_object_gone is expected


def test_control_characters_of_a_message_are_escaped():
    causes = [{"reason": "R\x1b", "message": "m\x9b" * 1_000, "field": "f\n"}] * 50
    status = {"message": "denied \x1b[2J\x07", "reason": "Bad\x1b", "details": {"causes": causes}}
    error = read_refusal(422, msgspec.json.encode(status))
    assert str(error) == r"422 Bad\x1b: denied \x1b[2J\x07"
    assert len(error.causes) == 10
    assert all(text.isprintable() for cause in error.causes for text in (cause.reason, cause.message, cause.field))
    assert len(error.causes[0].message) == MAX_MESSAGE_LENGTH


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("the UID in the precondition (a) does not match the UID in record (b)", True),
        ("Precondition failed: UID in precondition: a, UID in object meta: b", True),
        ("uid mismatch: the provided object specified uid a, and no existing object was found", True),
        ("the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2)", False),
        ("the object has been modified; please apply your changes to the latest version and try again", False),
        ("", False),
    ],
)
def test_a_conflict_is_about_another_object_or_another_version(message, expected):
    error = ApiError(409, ApiStatus(message))
    assert (error.is_object_gone, error.is_conflict) == (expected, not expected)


def test_a_refusal_in_protobuf_is_read() -> None:
    body = enveloped(message({3: "nodes is forbidden: no right to watch", 4: "Forbidden", 6: 403}))
    error = read_refusal(403, body)
    assert str(error) == "403 Forbidden: nodes is forbidden: no right to watch"


@pytest.mark.parametrize("body", [b"k8s\x00", b"k8s\x00\xff\xff", b"k8s", b"\x00"])
def test_a_body_that_only_begins_like_protobuf_is_quoted(body: bytes) -> None:
    assert str(read_refusal(502, body)).startswith("502: ")
