"""Why there is no answer of Prometheus. Pure."""

from enum import StrEnum

from taintwarden.fields.text import printable

MAX_MESSAGE = 1000
"""Characters of a sentence."""


class Trouble(StrEnum):
    """Why there is no answer: reasons of the condition ``Answered``."""

    QUERY_INVALID = "QueryInvalid"
    SECRET_UNUSABLE = "SecretUnusable"  # noqa: S105 - not one
    UNREACHABLE = "Unreachable"
    TIMED_OUT = "TimedOut"
    REFUSED = "Refused"
    REDIRECTED = "Redirected"
    TOO_LARGE = "TooLarge"
    WRONG_CONTENT = "WrongContent"
    PARTIAL = "Partial"
    EMPTY = "Empty"
    CLOCK_SKEW = "ClockSkew"


class NoAnswerError(Exception):
    """There is nothing to publish; the message is a sentence for people."""

    def __init__(self, trouble: Trouble, message: str) -> None:
        self.trouble = trouble
        super().__init__(printable(message, MAX_MESSAGE))
