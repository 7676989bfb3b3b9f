"""Whether evictions kept to the limits that the policies state."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from chaos.judge.audit import Record
from chaos.judge.history import History, Pod, Policy


class Eviction(NamedTuple):
    """An accepted eviction, with the policy by which the pod had to leave; None if none said so."""

    record: Record
    pod: Pod
    policy: Policy | None
    history: History
    """What was true at its time."""


def breaches(
    evictions: Sequence[Eviction],
    history: History,
    in_flight: int,
    staleness_seconds: float,
    held: Collection[str] = (),
) -> Iterator[str]:
    """One sentence for each eviction over a limit.

    `in_flight` is how many calls the network or the server may hold back and let go at once. `staleness_seconds` is for
    what other clients do: it excuses nothing that the operator counts itself. `held` are the UIDs of pods whose
    evictions were held back until another replica led.
    """
    by_policy: dict[str, list[Eviction]] = defaultdict(list)
    for one in evictions:
        if one.policy:
            by_policy[one.policy.name].append(one)
    for found in by_policy.values():
        policy = found[0].policy
        assert policy is not None
        times = [one.record.received for one in found]
        yield from rate_breaches(times, policy, in_flight)
        for number in sorted({history.incarnation(policy, time) for time in times}):
            yield from guard_breaches([time for time in times if history.incarnation(policy, time) == number], policy)
    for one in evictions:
        if (
            one.policy
            and one.pod.uid not in held
            and (sentence := _over_share(one, one.policy, missing(one, staleness_seconds)))
        ):
            yield sentence


def rate_breaches(times: Sequence[float], policy: Policy, in_flight: int) -> Iterator[str]:
    """A token bucket: evictions in any time t are at most burst + rate x t."""
    tokens, last = policy.burst + in_flight + 0.0, -math.inf
    for time in times:
        tokens = min(policy.burst + in_flight, tokens + (time - last) * policy.rate)
        last = time
        tokens -= 1
        if tokens < -1e-6:
            yield f"policy {policy.name}: more than {policy.rate:g} a second, burst {policy.burst}"
            tokens = 0.0


def guard_breaches(times: Sequence[float], policy: Policy) -> Iterator[str]:
    """Not more than the guard allows in any window."""
    if math.isinf(policy.guard_pods):
        return
    allowed, begin = int(policy.guard_pods), 0
    for index, time in enumerate(times):
        while times[begin] <= time - policy.guard_seconds:
            begin += 1
        if index - begin + 1 > allowed:
            yield f"policy {policy.name}: {index - begin + 1} in {policy.guard_seconds:g} s, {allowed} are allowed"


def _over_share(one: Eviction, policy: Policy, missing: int) -> str:
    """Why this was one pod too many of its workload; empty if it was not."""
    replicas = one.history.replicas.get(one.pod.owner, 0)
    allowed = max(1, int(replicas * policy.share))
    return f"{one.pod.key}: {missing} of {replicas} are missing, {allowed} are allowed" if missing > allowed else ""


def missing(one: Eviction, staleness_seconds: float) -> int:
    """How many pods of its workload were missing with this one; 0 if it was not there, or has no workload.

    Pods that other clients removed within the stated staleness do not count, since the operator cannot have seen that.
    Those that it evicted itself count from the request.
    """
    history, before = one.history, one.record.received
    replicas = history.replicas.get(one.pod.owner)
    if replicas is None or one.pod.ready > one.record.completed:
        return 0
    ready = [
        pod
        for pod in history.by_owner[one.pod.owner]
        if pod is not one.pod
        and pod.ready <= one.record.completed
        and pod.removed > before - staleness_seconds
        and not any(each.received <= before for each in pod.evicted)
    ]
    return replicas - len(ready)
