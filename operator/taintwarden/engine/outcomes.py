"""How an eviction call can end, and what follows: one table. Wording, Events, alerts and metrics have a row for each.

``outcome_of`` in ``kube/calls/evictor.py`` derives them from the answers of the API server.
"""

from enum import Enum, StrEnum, auto

import msgspec


class Outcome(StrEnum):
    """How an eviction call ended, as far as it matters to the machine."""

    ACCEPTED = "accepted"
    """2xx. Whether the pod leaves is seen, not answered."""
    WITHOUT_EFFECT = "without-effect"
    """2xx, and a read shows that the pod runs on: an admission webhook made a dry run of it, or takes the pod over."""
    ASKED = "asked"
    """2xx: the Deployment of the pod was asked for a replacement, and removes the pod when that is Ready."""
    NOT_REPLACED = "not-replaced"
    """The request for a replacement was refused: the pod is evicted as any other."""
    GONE = "gone"
    """404, or 409 on the UID: the pod that was to be evicted no longer exists."""
    BLOCKED = "blocked"
    """429 or 403 by a PodDisruptionBudget."""
    THROTTLED = "throttled"
    """429 by the API server's flow control."""
    MISCONFIGURED = "misconfigured"
    """500, more than one PodDisruptionBudget: permanent until a person changes something."""
    DENIED = "denied"
    """An admission webhook or policy rejects it: permanent until a person changes something."""
    POSTPONED = "postponed"
    """An admission webhook answers 429: later. That of KubeVirt does so while it migrates a virtual machine."""
    WEBHOOK_FAILED = "webhook-failed"
    """An admission webhook does not answer, or answers with an error."""
    REFUSED = "refused"
    """403, 422 and other client errors; a pod too large to be changed: permanent until a person changes something."""
    NAMESPACE_TERMINATING = "namespace-terminating"
    """403: a namespace that is being deleted takes nothing new, and so no eviction. Its controller deletes the pods."""
    FAILED = "failed"
    """Timeout, 5xx or a lost connection: the call may or may not have been carried out."""
    NOT_SENT = "not-sent"
    """Nothing was done: just before the call the decision no longer held or the lease was not held, or the pod had
    changed when the API server looked (409).
    """

    @property
    def row(self) -> "OutcomeRow":
        """What follows from it."""
        return OUTCOMES[self]


class CallAnswer(Enum):
    """What the answer to a call says of other calls of its lane.

    It says nothing of other lanes, since a tenant or a kubelet can shape it.
    """

    FINE = auto()
    """The call succeeded, or concerns its pod alone."""
    FAILS = auto()
    """Other calls of the lane may fail, too."""
    NONE = auto()
    """No call was made, or the server was too busy to look at it."""


class OutcomeRow(msgspec.Struct, frozen=True):
    """What follows from an outcome.

    ``why`` it delays pods, in the words of status and ``explain``. ``answer``: what it says of other calls.
    ``back_off``: first and longest seconds until the next call for the pod, if it concerns the pod alone.
    ``by_budget``: a PodDisruptionBudget is the cause. ``pauses``: all calls wait. ``stays``: the call certainly did not
    evict the pod. ``kept_by_webhook``: an admission webhook may move the pod by itself.
    """

    why: str = ""
    back_off: tuple[float, float] = (0.0, 0.0)
    answer: CallAnswer = CallAnswer.FINE
    by_budget: bool = False
    pauses: bool = False
    stays: bool = False
    kept_by_webhook: bool = False


POD_SECONDS = (5.0, 60.0)
"""First and longest seconds until the next call for a pod whose answer concerns it alone."""

OUTCOMES: dict[Outcome, OutcomeRow] = {
    Outcome.ACCEPTED: OutcomeRow(),
    Outcome.WITHOUT_EFFECT: OutcomeRow(
        "the eviction was accepted without effect, and an admission webhook may move the pod itself",
        POD_SECONDS,
        kept_by_webhook=True,
    ),
    Outcome.ASKED: OutcomeRow("its Deployment was asked for a replacement"),
    Outcome.NOT_REPLACED: OutcomeRow("the API server refuses to ask its Deployment for a replacement", stays=True),
    Outcome.GONE: OutcomeRow(stays=True),
    Outcome.BLOCKED: OutcomeRow(
        "a PodDisruptionBudget allows no disruption now", POD_SECONDS, by_budget=True, stays=True
    ),
    Outcome.MISCONFIGURED: OutcomeRow(
        "more than one PodDisruptionBudget selects the pod", POD_SECONDS, by_budget=True, stays=True
    ),
    Outcome.POSTPONED: OutcomeRow(
        "an admission webhook wants the eviction later (429)", POD_SECONDS, kept_by_webhook=True
    ),
    Outcome.NOT_SENT: OutcomeRow(
        "the decision no longer held just before the call", (1.0, 1.0), answer=CallAnswer.NONE, stays=True
    ),
    Outcome.THROTTLED: OutcomeRow(
        "the API server requests a pause (429)", answer=CallAnswer.NONE, pauses=True, stays=True
    ),
    Outcome.DENIED: OutcomeRow(
        "an admission webhook or policy rejects the eviction", answer=CallAnswer.FAILS, kept_by_webhook=True
    ),
    Outcome.WEBHOOK_FAILED: OutcomeRow("an admission webhook fails", answer=CallAnswer.FAILS),
    Outcome.REFUSED: OutcomeRow("the API server refuses the eviction", answer=CallAnswer.FAILS),
    Outcome.NAMESPACE_TERMINATING: OutcomeRow(
        "the namespace is being deleted, and its pods with it", answer=CallAnswer.FAILS
    ),
    Outcome.FAILED: OutcomeRow(
        "the call fails: a time-out, an error of the server, or a lost connection", answer=CallAnswer.FAILS
    ),
}
