"""Replacements that a Deployment starts before its only pod is removed (``eviction.replaceFirst``).

An eviction of the only pod of a Deployment is an outage, or a PodDisruptionBudget blocks it forever. Instead, the
operator sets the annotation ``kubectl.kubernetes.io/restartedAt`` of the pod template, as ``kubectl rollout restart``
does, and the Deployment removes the pod when its replacement is Ready. A pod that still runs after the timeout is
evicted as any other.

The annotation is the memory: a pod was asked for if the pod template of its Deployment has another value than that of
its ReplicaSet. A process asks once for each pod, whatever the answer was. The first time that it sees counts, so a
client that writes the annotation repeatedly keeps no pod.
"""

import math
from collections.abc import Iterable

from taintwarden.engine.evaluate import Grounds, TaintVerdict
from taintwarden.engine.limits.budgets import Budgets
from taintwarden.engine.limits.protocol import EvictionRequest, FreedKeys, Limit, Replacement
from taintwarden.engine.limits.refusal import VIEW, WORKLOAD, Refusal, RefusalScope
from taintwarden.engine.model import Deployment, Effect, Instant, MonotonicTime, Pod, Revision, WorkloadKey, later
from taintwarden.engine.operators import Match, match
from taintwarden.engine.policy import Policy, TaintSelector, has_replace_first
from taintwarden.engine.rfc3339 import at, read_time

FORGOTTEN_SECONDS = 60.0
"""Seconds after which a request that was not sent no longer counts: its pod did not have to leave meanwhile."""
UNKNOWN_KEY = "deployments"
"""Key of the refusal of all pods while Deployments are not known."""
UNKNOWN = "the list of Deployments is not up to date"


class Replacements(Limit):
    """Deployments, and the pods for which they were asked.

    Args:
        freed: receives the key of pods that wait for the list of Deployments.
        budgets: retries the pods that they block, when a Deployment may replace these.

    """

    def __init__(self, freed: FreedKeys, budgets: Budgets) -> None:
        self._freed = freed
        self._budgets = budgets
        self._is_used = False
        self._unknown_since: MonotonicTime | None = None
        """When Deployments became unknown, since their stream is not up to date; None: they are known."""
        self.changed: set[str] = set()
        """Namespaces with Deployments or ReplicaSets that changed."""
        self.problem = ""
        """Why Deployments cannot be read, such as a missing right: their pods are evicted as any other."""
        self.last_refusal = ""
        """Why the API server refused the last request for a replacement; empty if it did not."""
        self._deployments: dict[tuple[str, str], Deployment] = {}
        """By namespace and UID."""
        self._revisions: dict[WorkloadKey, Revision] = {}
        """By ReplicaSet."""
        self._asked: dict[str, MonotonicTime] = {}
        """UIDs of pods -> when their Deployments were asked; -inf: the API server refused."""
        self._not_sent: dict[str, tuple[MonotonicTime, MonotonicTime]] = {}
        """UIDs of pods -> first and last request in a row that was not sent, or named an old version."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Drop all data if no policy asks for replacements any more."""
        was_used, self._is_used = self._is_used, has_replace_first(policies)
        if not self._is_used:
            for kept in (self._deployments, self._revisions, self._asked, self._not_sent):
                kept.clear()
        elif not was_used:
            self._unknown_since = now.monotonic

    def concerns(self, policy: Policy) -> bool:
        """Return True if the policy asks for replacements."""
        return policy.eviction.replace_first is not None

    def why_not(self) -> str:
        """Return why Deployments are not asked; empty if they are asked."""
        refused = self.last_refusal and f"the last request was refused: {self.last_refusal}"
        return self.problem or refused or (UNKNOWN if self._unknown_since is not None else "")

    # -- what streams deliver -------------------------------------------------------------------------------------

    def set_known(self, problem: str, now: Instant, *, is_known: bool) -> None:
        """Record whether all Deployments are known, or why they cannot be read."""
        if is_known:
            self._unknown_since = None
        elif self._unknown_since is None:
            self._unknown_since = now.monotonic
        if self.problem:  # the rights to read and to ask are granted together
            self.last_refusal = ""
        self.problem = problem
        self._freed.add(UNKNOWN_KEY)

    def put(self, deployment: Deployment) -> None:
        """Store a Deployment."""
        key = deployment.namespace, deployment.uid
        before, self._deployments[key] = self._deployments.get(key), deployment
        if before is None or _essence(before) != _essence(deployment):
            self.changed.add(deployment.namespace)

    def drop(self, namespace: str, uid: str) -> None:
        """Forget a Deployment that was deleted."""
        self._deployments.pop((namespace, uid), None)

    def set_revision(self, replica_set: WorkloadKey, revision: Revision | None) -> None:
        """Store which Deployment controls a ReplicaSet; None: none does, or no policy needs it."""
        if self._revisions.get(replica_set) == revision:
            return
        self.changed.add(replica_set[0])
        if revision is not None:
            self._revisions[replica_set] = revision
        else:
            self._revisions.pop(replica_set, None)

    def retry_changed(self) -> None:
        """Retry the pods that a budget blocks in namespaces where a Deployment may replace them by now."""
        while self.changed:
            self._budgets.retry_namespace(self.changed.pop())

    # -- which pods are replaced ----------------------------------------------------------------------------------

    def of(self, grounds: Grounds, pod: Pod, now: Instant) -> Replacement | None:
        """The Deployment that is to be asked for a replacement of the pod, or was; None: the pod is evicted."""
        policy, key = grounds.policy, pod.shared.workload
        revision = self._revisions.get(key) if key is not None else None
        if revision is None:
            return None
        deployment = self._deployments.get((pod.namespace, revision.deployment))
        if deployment is None:
            return None
        asked_at = self._asked.get(pod.uid)
        if asked_at is None and deployment.restarted_at != revision.restarted_at:
            asked_at = _when_asked(deployment.restarted_at, now)
        if asked_at is not None:
            until = min(later(asked_at, policy.replacement_seconds), _last_at(grounds, pod, now))
            return Replacement(deployment, asked_at, until) if now.monotonic < until else None
        if now.monotonic >= later(self._not_sent_since(pod, now), policy.replacement_seconds):
            return None
        is_asked = deployment.can_replace and pod.ready and not self.problem and _fits(grounds, pod, now)
        return Replacement(deployment) if is_asked and any(_keeps_away(one, pod) for one in grounds.verdicts) else None

    def note_asked(self, pod: Pod, now: Instant) -> None:
        """Count the time of a pod from now on: its Deployment was asked, or the request has no answer."""
        self._asked[pod.uid], self.last_refusal = now.monotonic, ""

    def note_refused(self, pod: Pod, reason: str) -> None:
        """Evict a pod as any other, since the API server refuses the request for a replacement."""
        self._asked[pod.uid], self.last_refusal = MonotonicTime(-math.inf), reason

    def note_not_sent(self, pod: Pod, now: Instant) -> None:
        """Count the time of a pod whose Deployment changes before each request: it is evicted after the timeout."""
        self._not_sent[pod.uid] = self._not_sent_since(pod, now), now.monotonic

    def _not_sent_since(self, pod: Pod, now: Instant) -> MonotonicTime:
        first_at, last_at = self._not_sent.get(pod.uid, (now.monotonic, now.monotonic))
        return first_at if now.monotonic < later(last_at, FORGOTTEN_SECONDS) else now.monotonic

    def gone(self, pod: Pod, now: Instant) -> None:
        """Forget a pod that is gone or terminates."""
        del now
        self._asked.pop(pod.uid, None)
        self._not_sent.pop(pod.uid, None)

    # -- the limit ------------------------------------------------------------------------------------------------

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse a pod for whose replacement its Deployment was asked, until the timeout has passed.

        While Deployments are not known, refuse each pod. After the timeout the newest versions that were seen count.
        """
        if self._unknown_since is not None and not self.problem:
            ends_at = later(self._unknown_since, request.policy.replacement_seconds)
            if request.now.monotonic < ends_at:
                return Refusal(VIEW, ends_at, RefusalScope.PODS, UNKNOWN_KEY, UNKNOWN)
        found = request.replacement
        if found is None or found.asked_at is None or found.until is None:
            return None
        self._asked[request.pod.uid] = found.asked_at  # the first time counts: a later annotation prolongs no wait
        asked_at, until = (at(request.now.wall_at(moment)) for moment in (found.asked_at, found.until))
        detail = f"asked Deployment {found.deployment.name} for a replacement at {asked_at}, waits for it until {until}"
        key = f"replacement/{request.policy.name}/{request.pod.uid}"
        return Refusal(WORKLOAD, found.until, RefusalScope.PODS, key, detail)


def _when_asked(restarted_at: str, now: Instant) -> MonotonicTime:
    """When an annotation was written; now if it is unreadable or in the future."""
    written_at = read_time(restarted_at)
    return now.monotonic if written_at is None else min(now.monotonic, now.monotonic_at(written_at))


def _fits(grounds: Grounds, pod: Pod, now: Instant) -> bool:
    """Return True if the node is not removed before the timeout has passed and the pod has stopped."""
    return later(now.monotonic, grounds.policy.replacement_seconds) <= _last_at(grounds, pod, now)


def _last_at(grounds: Grounds, pod: Pod, now: Instant) -> MonotonicTime:
    """When a pod has to be evicted at the latest to stop before its node is removed, if it is."""
    hard_at, given = grounds.hard_at, grounds.policy.eviction.grace_period_seconds or 0
    grace = max(given, pod.shared.grace_seconds)
    return MonotonicTime(math.inf) if hard_at is None else later(now.monotonic_at(hard_at), -grace)


def _keeps_away(verdict: TaintVerdict, pod: Pod) -> bool:
    """Return True if the taint keeps the replacement off the node, from which it would be evicted again."""
    taint = verdict.taint
    selector = verdict.policy.selector_for(taint)
    if taint.origin is not None or (isinstance(selector, TaintSelector) and selector.placement):
        return True
    is_seen = not taint.source and taint.effect != Effect.PREFER_NO_SCHEDULE
    return is_seen and not any(match(toleration, taint) is Match.HOLDS for toleration in pod.shared.tolerations.native)


def _essence(deployment: Deployment) -> tuple[bool, str]:
    """The fields that decide if its pods are replaced."""
    return deployment.can_replace, deployment.restarted_at
