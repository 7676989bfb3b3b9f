"""Events that clients can cause are logged once in a while."""

from taintwarden.serving.log_limiter import LOG_SECONDS, LogLimiter


def test_each_event_is_logged_again_after_a_while():
    now = [100.0]
    is_due = LogLimiter(lambda: now[0])
    assert [is_due(about) for about in ("a", "a", "b", None)] == [True, False, True, True]
    now[0] += LOG_SECONDS
    assert is_due("a")
