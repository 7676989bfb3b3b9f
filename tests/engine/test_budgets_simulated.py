"""What budgets say is known: the API server is seldom asked in vain, and asked it is."""

from random import Random

import msgspec
import pytest

from simulated import Simulation, policy
from simulated.budgets import Budgets
from simulated.cluster import Json
from simulated.histories import BAD, TOLERATION, histories
from simulated.trace import Started
from simulated.workloads import Workloads, is_ready
from taintwarden.engine.machine import Outcome, commands, events
from taintwarden.engine.model import EvictionSettings, Method


class Drain:
    """Every second node is drained at once, and nothing but budgets says how fast."""

    def __init__(self, seed: int, **eviction: object) -> None:
        chance = Random(seed)
        drains = msgspec.structs.replace(policy(taints=[{"key": "sla"}]), eviction=EvictionSettings(**eviction))
        self.sim = Simulation([drains])
        for number in range(8):
            self.sim.create_node(f"n{number}")
        self.workloads = Workloads(self.sim, chance)
        self.budgets = Budgets(self.sim, self.workloads)
        for number in range(4):
            template = {"namespace": "shop", "labels": {"app": f"a{number}"}, "tolerations": [TOLERATION]}
            self.workloads.create(f"w{number}", chance.randint(4, 10), **template)
            self.budgets.create(f"b{number}", "shop", f"a{number}", chance.choice([1, 2, 3]))
        self.sim.judge = self.judge
        self.beyond: list[str] = []
        self.sim.start()
        self.sim.run(3)
        for number in range(0, 8, 2):
            self.sim.set_taints(f"n{number}", [BAD])

    def judge(self, pod: Json, delete: bool) -> events.Settled | None:
        """The budgets' answer; and an account of what it leaves of the workload."""
        answer = self.budgets.judge(pod, delete)
        workload = self.workloads.all[f"w{pod['metadata']['labels']['app'][1:]}"]
        budget = self.budgets.all[f"b{workload.name[1:]}"]
        healthy = sum(is_ready(one) for one in self.workloads.pods(workload) if one is not pod)
        if answer is None and is_ready(pod) and healthy < workload.replicas - budget.max_unavailable:
            self.beyond.append(pod["metadata"]["name"])
        return answer

    def standing(self) -> list[str]:
        bad = [name for name, node in self.sim.nodes.items() if node["spec"]["taints"]]
        return [name for name, pod in self.sim.pods.items() if pod["spec"]["nodeName"] in bad]


seeds = pytest.mark.parametrize("seed", range(12))


@seeds
def test_a_drain_under_budgets_ends_without_asking_much_in_vain(seed):
    drain = Drain(seed)
    drain.sim.run(300)
    assert drain.standing() == []
    assert drain.budgets.refusals <= len(drain.sim.evicted) // 10 + 1


@seeds
def test_no_budget_is_passed_by(seed):
    drain = Drain(seed)
    drain.sim.run(300)
    assert drain.beyond == []
    assert not any(delete for _, _, delete in drain.sim.calls)


@seeds
def test_a_budget_that_allows_nothing_spares_all_requests_and_allows_them_all_once_it_is_gone(seed):
    drain = Drain(seed)
    drain.budgets.all["b0"].max_unavailable = 0
    drain.workloads.scale("w0", drain.workloads.all["w0"].replicas)
    drain.sim.touch_pod(drain.standing()[0])
    drain.budgets.delete("b0")
    drain.budgets.create("b0", "shop", "a0", 0)
    drain.sim.run(200)
    asked = drain.budgets.refusals
    assert all("w0" in name for name in drain.standing())
    drain.sim.run(400)
    assert drain.budgets.refusals == asked
    drain.budgets.delete("b0")
    drain.sim.judge = drain.budgets.judge
    drain.sim.run(drain.sim.at + 30)
    assert drain.standing() == []


@seeds
def test_who_is_blocked_for_long_is_deleted_where_the_policy_says_so(seed):
    drain = Drain(seed, method=Method.EVICT_THEN_DELETE, pdb_timeout_seconds=50)
    drain.budgets.delete("b0")
    drain.budgets.create("b0", "shop", "a0", 0)
    drain.sim.run(40)
    blocked = [name for name in drain.standing() if "w0" in name]
    deleted = {uid: at for at, uid, delete in drain.sim.calls if delete}
    assert deleted == {}
    drain.sim.run(120)
    assert not set(blocked) & set(drain.standing())
    assert all(at >= 50 for at, _, delete in drain.sim.calls if delete)


def test_nobody_is_asked_for_while_the_status_of_its_budget_allows_nobody():
    for history in histories("budget", ("clock",)):
        for moment, known in history.moments():
            if isinstance(moment.what, commands.Evict) and not moment.what.delete:
                pod = known.pods[moment.what.pod.uid]
                here = [one for one in known.budgets.values() if one.namespace == pod.namespace]
                its = [one for one in here if one.selector.selects(pod.shared.labels)]
                spares = [one for one in its if one.allowed > 0 or (one.healthy_enough and not pod.ready)]
                assert len(its) < 2, (history, moment.at)
                assert spares == its, (history, moment.at)


def test_nobody_is_deleted_whom_no_budget_has_blocked_for_long():
    for history in histories("budget", ("clock",)):
        blocked: dict[str, float] = {}
        for moment, known in history.moments():
            match moment.what:
                case Started():
                    blocked = {}
                case commands.HeldByBudget(pod):
                    blocked.setdefault(pod.uid, moment.at)
                case events.Settled(uid, Outcome.BLOCKED | Outcome.MISCONFIGURED):
                    blocked.setdefault(uid, moment.at)
                case commands.Evict(pod, delete=True):
                    one = known.policies[moment.what.verdict.policy.name]
                    settings = one.eviction
                    if settings.method is not Method.DELETE and one.reclaim is None:
                        assert settings.method is Method.EVICT_THEN_DELETE, (history, moment.at)
                        assert moment.at >= blocked[pod.uid] + settings.pdb_timeout_seconds - 0.01, (history, moment.at)


def test_the_histories_meet_budgets():
    blocked = [
        moment
        for history in histories("budget", ("clock",))
        for moment in history.trace
        if isinstance(moment.what, commands.HeldByBudget)
        or (isinstance(moment.what, events.Settled) and moment.what.outcome is Outcome.BLOCKED)
    ]
    assert len(blocked) > 10
