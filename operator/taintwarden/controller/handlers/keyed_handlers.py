"""Handlers that compare complete lists themselves, and pass each object on to the machine in an event of its own."""

from collections.abc import Callable, Collection, Mapping
from sys import intern
from typing import Any, Generic

from taintwarden.controller.decoding import decoding, deployments
from taintwarden.controller.handlers.stream_handlers import StreamHandler
from taintwarden.engine import events
from taintwarden.engine.events import Event, Feed
from taintwarden.engine.model import Budget, WorkloadKey
from taintwarden.engine.policy import Policy, has_replace_first, labels_of
from taintwarden.kube.wire.kinds import (
    BudgetObject,
    DeploymentObject,
    Identity,
    NamespaceObject,
    Object,
    WorkloadObject,
)
from taintwarden.kube.wire.resources import REPLICA_SETS
from taintwarden.telemetry.metrics import Metrics


class KeyedHandler(StreamHandler[Object], Generic[Object]):
    """Base of handlers that keep the keys of the objects passed on, and compare complete lists with them."""

    gone: Callable[[Any], Event]
    """Returns the event that withdraws the object with a key."""

    def __init__(self, resource: str, feed: Feed, metrics: Metrics) -> None:
        super().__init__(resource, feed, metrics)
        self._passed_on: dict[Any, object] = {}

    def withdraw(self, key: Any) -> None:
        """Withdraw a deleted object, if it was passed on."""
        if key in self._passed_on:
            del self._passed_on[key]
            self.feed(self.gone(key))

    def compare(self, listed: Mapping[Any, Any], version: int) -> None:
        """Withdraw all objects passed on that the complete list does not contain."""
        for key in [key for key in self._passed_on if key not in listed]:
            self.withdraw(key)


class NamespaceHandler(KeyedHandler[NamespaceObject]):
    """Receives the namespace stream."""

    gone = events.NamespaceSeen

    def pass_on(self, key: str, obj: NamespaceObject) -> None:
        """Pass on the labels of a namespace."""
        self._passed_on[key] = None
        self.feed(events.NamespaceSeen(key, obj.metadata.labels))

    def undecodable(self, what: Identity, reason: str) -> None:
        """Report the namespace. It still exists, so it is not withdrawn at the end of a list that contains it."""
        super().undecodable(what, reason)
        self._listed[what.name] = None


DESIRED: dict[str, Callable[[WorkloadObject], int]] = {
    "replicasets": lambda workload: workload.spec.replicas,
    "statefulsets": lambda workload: workload.spec.replicas,
    "replicationcontrollers": lambda workload: workload.spec.replicas,
    "daemonsets": lambda workload: workload.status.desired_number_scheduled,
    "jobs": decoding.desired_parallelism,
}
"""Name of a resource -> function that returns the number of pods that one of its objects should have."""


class WorkloadHandler(KeyedHandler[WorkloadObject]):
    """Receives the stream of one kind of controllers of pods, such as ReplicaSets."""

    gone = events.WorkloadSeen

    def __init__(self, resource: str, feed: Feed, metrics: Metrics) -> None:
        super().__init__(resource, feed, metrics)
        self._desired = DESIRED[resource]
        self._labels: tuple[str, ...] = ()
        """Keys of pod labels that policies name in ``perWorkload.label``."""
        self._reads_revisions = False
        """True if these are ReplicaSets, and a policy asks Deployments for replacements."""

    def follow(self, policies: Collection[Policy]) -> bool:
        """Read the labels and revisions that these policies need. Return True if all objects have to be read again."""
        before = self._labels, self._reads_revisions
        self._labels = labels_of(policies)
        self._reads_revisions = self.resource == REPLICA_SETS.name and has_replace_first(policies)
        if before == (self._labels, self._reads_revisions):
            return False
        self._passed_on = dict.fromkeys(self._passed_on)
        return bool(self._labels) or self._reads_revisions

    def key(self, obj: WorkloadObject) -> WorkloadKey:
        """Return namespace and UID. The namespace is interned, as that of pods, because the machine keeps the key."""
        return intern(obj.metadata.namespace), obj.metadata.uid

    def key_of(self, what: Identity) -> WorkloadKey | None:
        """Return namespace and UID; None if one of them is unknown."""
        return (what.namespace, what.uid) if what.namespace and what.uid else None

    def pass_on(self, key: WorkloadKey, obj: WorkloadObject) -> None:
        """Pass on the desired pods, labels and revision if they changed. Most changes concern the status only."""
        labels = tuple([(name, value) for name in self._labels if (value := obj.template_label(name))])
        revision = deployments.revision(obj) if self._reads_revisions else None
        seen = events.WorkloadSeen(key, self._desired(obj), labels, revision)
        passed_on = (seen.replicas, labels, revision) if labels or revision else seen.replicas
        if self._passed_on.get(key) != passed_on:
            self._passed_on[key] = passed_on
            self.feed(seen)

    def undecodable(self, what: Identity, reason: str) -> None:
        """Report the object and withdraw it, because its last known number of pods may be out of date."""
        self.withdraw(self.key_of(what))
        super().undecodable(what, reason)


class DeploymentHandler(KeyedHandler[DeploymentObject]):
    """Receives the stream of Deployments, which is followed while a policy asks them for replacements.

    Only pods of such a policy wait for it, and no longer than the timeout of the policy: the stream needs a right that
    not every operator has.
    """

    _is_known = False
    """True if the stream is up to date. It is not among those whose loss holds all pods, so ``is_live`` stays True."""

    def key(self, obj: DeploymentObject) -> tuple[str, str]:
        """Return namespace and UID."""
        return obj.metadata.namespace, obj.metadata.uid

    def key_of(self, what: Identity) -> tuple[str, str] | None:
        """Return namespace and UID; None if one of them is unknown."""
        return (what.namespace, what.uid) if what.namespace and what.uid else None

    def pass_on(self, key: tuple[str, str], obj: DeploymentObject) -> None:
        """Pass on each version: a request names the one that was seen."""
        self._passed_on[key] = None
        self.feed(events.DeploymentSeen(deployments.deployment(obj)))

    def gone(self, key: tuple[str, str]) -> Event:
        """Return the event that withdraws a Deployment."""
        return events.DeploymentGone(*key)

    def live(self, *, live: bool) -> None:
        """Pass on whether Deployments are up to date. Only pods of policies that ask for replacements wait."""
        self._is_known = live
        self.feed(events.DeploymentsKnown(live))

    def restarted(self, reason: str, detail: str) -> None:
        """Report why Deployments cannot be read. A refused watch alone is not a reason: the next one resumes it."""
        super().restarted(reason, detail)
        if reason == "refused" and not self._is_known:
            self.feed(events.DeploymentsKnown(is_known=False, problem=detail))

    def undecodable(self, what: Identity, reason: str) -> None:
        """Report the Deployment and withdraw it, since its known version is out of date."""
        self.withdraw(self.key_of(what))
        super().undecodable(what, reason)


class BudgetHandler(KeyedHandler[BudgetObject]):
    """Receives the stream of PodDisruptionBudgets."""

    def key_of(self, what: Identity) -> str | None:
        """Return ``namespace/name``; None if one of them is unknown."""
        return str(what) if what.namespace and what.name else None

    def pass_on(self, key: str, obj: BudgetObject) -> None:
        """Pass on a budget even if it is unchanged: to the machine, each version is a new count of its controller."""
        try:
            budget = decoding.budget(obj)
        except ValueError as error:
            self._unreadable(key, obj.metadata.namespace, obj.metadata.name)
            self.report_fault(key, str(error))
            return
        if budget is None:
            self.withdraw(key)
        else:
            self._pass_on(key, budget)

    def gone(self, key: str) -> Event:
        """Return the event that withdraws a budget that was deleted or selects no pods any more."""
        namespace, _, name = key.partition("/")
        return events.BudgetGone(namespace, name)

    def undecodable(self, what: Identity, reason: str) -> None:
        """Report the budget. Until it can be decoded, it allows no eviction in its namespace."""
        if (key := self.key_of(what)) is not None:
            self._listed[key] = None
            self._unreadable(key, what.namespace, what.name)
        super().undecodable(what, reason)

    def _unreadable(self, key: str, namespace: str, name: str) -> None:
        """Pass on a budget that allows no eviction in its namespace: its unknown selector may match every pod."""
        self._pass_on(key, Budget(namespace, name, selector=None, allowed=0))

    def _pass_on(self, key: str, budget: Budget) -> None:
        self._passed_on[key] = None
        self.feed(events.BudgetSeen(budget))
