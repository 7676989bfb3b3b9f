"""Outcomes of an eviction call and their consequences, in one table. Wording, Events, alerts and metrics use it.

``outcome_of`` in ``kube/calls/evictor.py`` derives outcomes from the answers of the API server.
"""

from enum import Enum, StrEnum, auto

import msgspec


class Outcome(StrEnum):
    """Outcome of an eviction call, as far as the machine distinguishes it."""

    ACCEPTED = "accepted"
    """2xx. Only watch events or a read show if the pod leaves."""
    WITHOUT_EFFECT = "without-effect"
    """2xx, and a read shows that the pod still runs: an admission webhook made the call a dry run, or moves the pod."""
    ASKED = "asked"
    """2xx: the Deployment of the pod was asked for a replacement, and removes the pod when the replacement is Ready."""
    NOT_REPLACED = "not-replaced"
    """The request for a replacement was refused, so the pod is evicted like any other."""
    GONE = "gone"
    """404, or 409 or 422 about the UID: the pod that was to be evicted no longer exists."""
    BLOCKED = "blocked"
    """429 or 403 by a PodDisruptionBudget."""
    THROTTLED = "throttled"
    """429 by the API server's flow control."""
    MISCONFIGURED = "misconfigured"
    """500, since more than one PodDisruptionBudget selects the pod: permanent until a person changes something."""
    DENIED = "denied"
    """An admission webhook or policy rejects the eviction: permanent until a person changes something."""
    POSTPONED = "postponed"
    """An admission webhook answers 429 for now, as that of KubeVirt does while it migrates a virtual machine."""
    WEBHOOK_FAILED = "webhook-failed"
    """An admission webhook does not answer, or answers with an error."""
    REFUSED = "refused"
    """403, 422 and other client errors, as for a pod that is too large: permanent until a person changes something."""
    NAMESPACE_TERMINATING = "namespace-terminating"
    """403: a namespace that is being deleted accepts no new object, so no eviction. Its controller deletes the pods."""
    FAILED = "failed"
    """Timeout, 5xx or a lost connection: the call may or may not have been carried out."""
    NOT_SENT = "not-sent"
    """Nothing was done: just before the call the decision no longer held or the lease was lost, or the pod had
    changed when the API server compared it (409).
    """

    @property
    def row(self) -> "OutcomeRow":
        """Consequences of the outcome."""
        return OUTCOMES[self]


class CallAnswer(Enum):
    """Conclusion from the answer to a call about the other calls of its lane.

    No conclusion about other lanes is safe, since a tenant or a kubelet can shape the answer.
    """

    FINE = auto()
    """The call succeeded, or concerns its pod alone."""
    FAILS = auto()
    """Other calls of the lane may fail, too."""
    NONE = auto()
    """No call was made, or the server was too busy to process it."""


class OutcomeRow(msgspec.Struct, frozen=True):
    """Consequences of an outcome.

    ``why``: reason of the delay, in the words of status and ``explain``. ``answer``: conclusion about other calls.
    ``back_off``: first and longest seconds until the next call for the pod, if the outcome concerns the pod alone.
    ``by_budget``: a PodDisruptionBudget is the cause. ``pauses``: all calls wait. ``stays``: the call is known
    not to have evicted the pod. ``kept_by_webhook``: an admission webhook may move the pod by itself.
    """

    why: str = ""
    back_off: tuple[float, float] = (0.0, 0.0)
    answer: CallAnswer = CallAnswer.FINE
    by_budget: bool = False
    pauses: bool = False
    stays: bool = False
    kept_by_webhook: bool = False


POD_SECONDS = (5.0, 60.0)
"""First and longest seconds until the next call for a pod, if the last answer concerns that pod alone."""

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
