"""Any server at the address of Prometheus: values or one reason why there are none, in bounded time and memory."""

import base64
import gzip
import json
import time
import tracemalloc

import pytest
from aiohttp import web

from publisher.answering import endless, never, trickling, vector
from taintwarden.serving.key_pairs import make_authority
from taintwarden_publisher.prometheus import MAX_BODY_BYTES, Access, run_query
from taintwarden_publisher.troubles import NoAnswerError, Trouble

NOW = 1_800_000_000.0


async def trouble(session, url, access=Access(), now=None, **more):  # noqa: B008 - it is frozen
    with pytest.raises(NoAnswerError) as raised:
        await run_query(session, url, "up", access, time.time() if now is None else now, **more)
    return raised.value.trouble, str(raised.value)


async def test_series_have_labels_value_and_time(session, prometheus):
    prometheus.says(vector({"a1": "939.6", "a2": "NaN", "a3": "+Inf"}, at=NOW))
    first, second, third = await run_query(session, prometheus.url, "up", Access(), NOW)
    assert (first.labels, first.value, first.at) == ({"node": "a1", "job": "node"}, 939.6, NOW)
    assert second.value != second.value
    assert third.value == float("inf")


async def test_a_query_is_one_request_without_credentials(session, prometheus):
    prometheus.says(vector({"a1": 1}))
    await run_query(session, f"{prometheus.url}/sub/", 'up{job="node"}', Access(), time.time())
    [request] = prometheus.requests
    assert (request.method, request.path) == ("GET", "/sub/api/v1/query")
    assert request.query["query"] == 'up{job="node"}'
    assert "Authorization" not in request.headers


async def test_credentials_of_a_secret_are_sent(session, prometheus):
    prometheus.says(vector({"a1": 1}))
    await run_query(
        session, prometheus.url, "up", Access.of_secret("s", {"token": base64.b64encode(b"abc\n")}), time.time()
    )
    assert prometheus.requests[0].headers["Authorization"] == "Bearer abc"


async def test_a_refused_connection_is_unreachable(session):
    assert (await trouble(session, "http://127.0.0.1:1"))[0] is Trouble.UNREACHABLE


async def test_an_answer_that_does_not_come_ends_in_time(session, prometheus):
    """The limit is ten seconds for users: a query that takes thirty is not awaited."""
    prometheus.handler = never
    assert await trouble(session, prometheus.url, timeout_seconds=0.1) == (
        Trouble.TIMED_OUT,
        f"{prometheus.url} did not answer the query within 0.1 s",
    )
    assert prometheus.requests[0].query["timeout"] == "0.1s"


async def test_an_answer_that_trickles_ends_in_time(session, prometheus):
    prometheus.handler = trickling
    assert (await trouble(session, prometheus.url, timeout_seconds=0.2))[0] is Trouble.TIMED_OUT


async def test_a_redirection_is_not_followed_and_sees_no_credentials(session, prometheus):
    async def elsewhere(_):
        return web.Response(status=302, headers={"Location": f"{prometheus.url}/stolen"})

    prometheus.handler = elsewhere
    found, said = await trouble(session, prometheus.url, Access("Bearer abc"))
    assert found is Trouble.REDIRECTED
    assert "is not followed" in said
    assert [request.path for request in prometheus.requests] == ["/api/v1/query"]


async def test_an_answer_of_a_gigabyte_is_read_only_up_to_the_limit(session, prometheus):
    prometheus.handler = endless
    tracemalloc.start()
    found, said = await trouble(session, prometheus.url)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is Trouble.TOO_LARGE
    assert "more than 16 MiB" in said
    assert peak < 4 * MAX_BODY_BYTES


async def test_nothing_is_decompressed(session, prometheus):
    async def bomb(request):
        assert request.headers["Accept-Encoding"] == "identity"
        return web.Response(body=gzip.compress(b" " * 2**24), headers={"Content-Encoding": "gzip"})

    prometheus.handler = bomb
    assert (await trouble(session, prometheus.url))[0] is Trouble.WRONG_CONTENT


@pytest.mark.parametrize(
    "content",
    [
        "<html>login</html>",
        "",
        "[]",
        "{}",
        "\x00",
        '{"status": "success"}',
        '{"status": "success", "data": {"resultType": "vector", "result": {}}}',
        '{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1, "x"]}]}}',
        '{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": 1}]}}',
        '{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"a": 1}, "value": [1, "1"]}]}}',
        "[" * 100_000,
        '{"status": "error", "errorType": "internal", "error": "disk"}',
    ],
)
async def test_other_content_is_no_answer(session, prometheus, content):
    prometheus.says(content)
    assert (await trouble(session, prometheus.url))[0] is Trouble.WRONG_CONTENT


async def test_a_query_that_does_not_parse_is_reported_with_the_message_of_prometheus(session, prometheus):
    error = {"status": "error", "errorType": "bad_data", "error": "1:4: parse error: unexpected <aggr:sum>"}
    prometheus.says(error, 400)
    assert await trouble(session, prometheus.url) == (
        Trouble.QUERY_INVALID,
        "Prometheus cannot answer the query: 1:4: parse error: unexpected <aggr:sum>",
    )


@pytest.mark.parametrize("kind", ["matrix", "scalar", "string"])
async def test_a_query_that_gives_no_vector_is_invalid(session, prometheus, kind):
    prometheus.says({"status": "success", "data": {"resultType": kind, "result": [1, "1"]}})
    found, said = await trouble(session, prometheus.url)
    assert found is Trouble.QUERY_INVALID
    assert f"gives a {kind}" in said


async def test_an_empty_result_is_no_answer(session, prometheus):
    prometheus.says(vector({}))
    assert await trouble(session, prometheus.url) == (Trouble.EMPTY, "the query gives no series")


@pytest.mark.parametrize("status", [401, 403])
async def test_refused_credentials_are_reported_as_refused(session, prometheus, status):
    prometheus.says("no", status)
    assert (await trouble(session, prometheus.url))[0] is Trouble.REFUSED


@pytest.mark.parametrize(("at", "said"), [(NOW - 61, "61 s before now"), (NOW + 61, "61 s after now")])
async def test_samples_of_another_time_are_not_used(session, prometheus, at, said):
    """A clock may be wrong, or a cache may answer."""
    prometheus.says(vector({"a1": 1}, at=at))
    found, text = await trouble(session, prometheus.url, now=NOW)
    assert found is Trouble.CLOCK_SKEW
    assert said in text


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0.0), ("-1.5", -1.5), ("1e+06", 1e6), ("5e-324", 5e-324), ("-Inf", float("-inf"))]
)
async def test_numbers_in_the_format_of_prometheus_are_read(session, prometheus, text, value):
    prometheus.says(vector({"a1": text}, at=NOW))
    [one] = await run_query(session, prometheus.url, "up", Access(), NOW)
    assert one.value == value


@pytest.mark.parametrize("text", ["1_0", " 5 ", "5\n", "\u0661\u0662", "", ".", "1e", "0x10", "infinity", "nan", "1,5"])
async def test_a_text_that_is_no_number_of_prometheus_is_no_sample(session, prometheus, text):
    prometheus.says(vector({"a1": text}, at=NOW))
    assert (await trouble(session, prometheus.url, now=NOW))[0] is Trouble.WRONG_CONTENT


@pytest.mark.parametrize("at", ["NaN", "Infinity", "1e400"])
async def test_samples_without_a_valid_time_are_not_used(session, prometheus, at):
    prometheus.says(json.dumps(vector({"a1": 1}, at=NOW)).replace("1800000000.0", at))
    assert (await trouble(session, prometheus.url, now=NOW))[0] in (Trouble.WRONG_CONTENT, Trouble.CLOCK_SKEW)


async def test_control_characters_of_an_answer_are_escaped(session, prometheus):
    prometheus.says({"status": "error", "error": "\x1b[31m" + "x" * 10_000}, 400)
    _, said = await trouble(session, prometheus.url)
    assert said.isprintable()
    assert len(said) < 500


# -- Secrets ----------------------------------------------------------------------------------------------------------


def secret(**texts: str) -> dict[str, str]:
    return {key.replace("_", "."): base64.b64encode(text.encode()).decode() for key, text in texts.items()}


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (secret(token="abc"), "Bearer abc"),
        (secret(username="u", password="p"), "Basic dTpw"),
        (secret(ca_crt="x"), ""),
    ],
)
def test_a_secret_has_a_token_or_a_password_or_an_authority(data, wanted):
    assert Access.of_secret("s", data).authorization == wanted


@pytest.mark.parametrize(
    "data",
    [
        {},
        secret(other="x"),
        secret(username="u"),
        secret(token="a\r\nX-Evil: 1"),
        secret(username="a:b", password="p"),
        {"token": "%"},
        {"token": base64.b64encode(b"\xff").decode()},
    ],
)
def test_an_unusable_secret_is_an_error_that_does_not_show_its_content(data):
    with pytest.raises(NoAnswerError) as raised:
        Access.of_secret("s", data)
    assert raised.value.trouble is Trouble.SECRET_UNUSABLE
    assert "Evil" not in str(raised.value)


def test_comments_beside_an_authority_may_contain_any_text():
    pem = make_authority("prometheus", time.time()).certificate.decode()
    assert Access(ca=f"# Főtanúsítvány\n{pem}").tls().cert_store_stats()["x509_ca"]


def test_an_invalid_authority_is_an_error():
    with pytest.raises(NoAnswerError, match="is not a certificate"):
        Access(ca="x").tls()
