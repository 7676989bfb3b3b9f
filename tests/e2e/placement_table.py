"""Outcomes for pods of each kind of owner in each event of the life of placement.

The stories with the real scheduler, controllers and kubelet see each entry of the table.
"""

from enum import StrEnum


class Owner(StrEnum):
    """The kind that creates a pod. A Job and a StatefulSet behave as a Deployment here."""

    DEPLOYMENT = "Deployment"
    DAEMON_SET = "DaemonSet"
    BARE = "no owner"


class Event(StrEnum):
    """A change of the cluster that may affect pods with placement."""

    FALLS_NO_EXECUTE = "the value falls, `NoExecute`, the policy evicts"
    FALLS_NO_SCHEDULE = "the value falls, `NoSchedule`"
    EDITED = "the policy is edited: `placement` dropped"
    DELETED = "the policy is deleted"
    WEBHOOK_AWAY = "created while the webhook is away"
    OPERATOR_AWAY = "the operator is away, the value falls"
    KUBELET_FALLEN = "the kubelet restarts after the value fell"


class Outcome(StrEnum):
    """Result for the pods."""

    STAYS = "stays, matches its node"
    STAYS_FALLEN = "stays, no longer matches its node"
    REPLACED = "is evicted, replaced on a suitable node"
    GONE = "is evicted"
    REMOVED = "is deleted at once by its controller"
    SPREADS = "stays; pods on all nodes"
    PENDING = "Pending"
    NONE = "no pod"
    FAILED = "fails at once: `NodeAffinity`"
    FAILED_REPLACED = "fails at once: `NodeAffinity`; replaced"


def _row(of_all: Outcome, **others: Outcome) -> dict[Owner, Outcome]:
    return {owner: others.get(owner.name, of_all) for owner in Owner}


TABLE: dict[Event, dict[Owner, Outcome]] = {
    Event.FALLS_NO_EXECUTE: _row(Outcome.REPLACED, DAEMON_SET=Outcome.REMOVED, BARE=Outcome.GONE),
    Event.FALLS_NO_SCHEDULE: _row(Outcome.STAYS_FALLEN, DAEMON_SET=Outcome.REMOVED),
    Event.EDITED: _row(Outcome.STAYS, DAEMON_SET=Outcome.SPREADS),
    Event.DELETED: _row(Outcome.STAYS),
    Event.WEBHOOK_AWAY: _row(Outcome.PENDING, DAEMON_SET=Outcome.NONE),
    Event.OPERATOR_AWAY: _row(Outcome.STAYS),
    Event.KUBELET_FALLEN: _row(Outcome.FAILED_REPLACED, BARE=Outcome.FAILED, DAEMON_SET=Outcome.REMOVED),
}
