"""Reasons for a missing answer of Prometheus. Pure."""

from enum import StrEnum

from taintwarden.fields.text import printable

MAX_MESSAGE = 1000
"""Maximum number of characters in the message of an error."""


class Trouble(StrEnum):
    """Reason for a missing answer, used in the condition ``Answered``."""

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
    """There is no usable answer. The message is a sentence for users."""

    def __init__(self, trouble: Trouble, message: str) -> None:
        self.trouble = trouble
        super().__init__(printable(message, MAX_MESSAGE))
