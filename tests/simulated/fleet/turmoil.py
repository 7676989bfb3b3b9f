"""What happens to a fleet by chance, until it is left alone. One seed gives one history."""

import json
import os
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from random import Random

from simulated.drawing import NO_LIMITS
from simulated.fleet import objects
from simulated.fleet.happenings import HAPPENINGS
from simulated.fleet.known import tolerates
from simulated.fleet.replica import Replica, all_streams
from simulated.fleet.server import Json, Server
from simulated.fleet.writes import Api
from taintwarden.engine.model import Mode

RUNS = int(os.environ.get("SIMULATED_RUNS", "60"))
FIRST_SEED = int(os.environ.get("SIMULATED_SEED", "0"))
KEYS = {"p": "sla", "q": "flag", "r": "spot"}
LONGEST_DELAY = 800.0
"""Seconds after which whatever failed has been tried again."""


class HistoryError(AssertionError):
    """A rule was broken in a history: its seed says which to play again."""


class Turmoil:
    """A server, two operators, and what chance does to them.

    Args:
        seed: of all chance.

    """

    def __init__(self, seed: int) -> None:
        chance = self.chance = Random(seed)
        self.server = Server()
        self.api = Api(self.server, chance)
        self.largest_step = 0.0
        """How far a clock was ever away from the true time, in seconds."""
        options = {"max_in_flight": chance.choice([1, 3, 64]), "slice_size": chance.choice([3, 2_000])}
        self.replicas = [Replica(self.server, self.api, chance, **options) for _ in range(2)]
        self._populate()
        for replica in self.replicas:
            replica.start()
        self.give_lease(self.replicas[0])

    def _populate(self) -> None:
        chance, server = self.chance, self.server
        for name in objects.NAMESPACES:
            server.put("namespaces", name, {"labels": {"team": chance.choice("ab")}})
        for name, key in KEYS.items():
            if name == "p" or chance.random() < 0.7:
                self.create_policy(name, key)
        for _ in range(chance.randint(2, 6)):
            server.put("nodes", server.name("n"), objects.node_object(chance, server.name("node-")))
        for _ in range(chance.randint(2, 12)):
            self.create_pod(chance.choice(["web", "api", ""]))

    # -- what happenings use ------------------------------------------------------------------------------------------

    @property
    def leader(self) -> Replica | None:
        """Who holds the lease, if it lives."""
        return next((one for one in self.replicas if one is self.api.holder and one.machine is not None), None)

    def node(self) -> str:
        """One of the nodes."""
        return self.chance.choice(sorted(self.server.objects["nodes"]))

    def create_policy(self, name: str, key: str) -> None:
        """A policy appears."""
        policy = objects.draw_policy(self.chance, name, key, self.server.name("policy-"), self.server.wall)
        self.server.put("policies", name, objects.policy_object(policy, key))

    def edit_policy(self, name: str, **changes: object) -> None:
        """A policy is another one from now on."""
        stored = self.server.get("policies", name)
        if stored is not None:
            policy = objects.edited(stored["policy"], **changes)
            self.server.put("policies", name, objects.policy_object(policy, stored["key"], stored))

    def create_pod(self, owner: str = "") -> None:
        """A pod appears where the scheduler puts it, which may not have seen a taint yet."""
        nodes = self.server.objects["nodes"]
        is_late = self.chance.random() < 0.3
        fitting = sorted(name for name, node in nodes.items() if is_late or not is_bad(node))
        if fitting:
            uid, node = self.server.name("pod-"), self.chance.choice(fitting)
            self.server.put("pods", uid, objects.pod_object(self.chance, node, owner, self.server.wall))

    def taint(self, name: str, key: str, value: str | None) -> None:
        """A taint is put on a node, gets another value, or is taken away (None)."""
        node = self.server.get("nodes", name)
        if node is None:
            return
        kept = tuple(one for one in node["taints"] if one[0] != key)
        known = next((one for one in node["taints"] if one[0] == key), None)
        added = float(int(self.server.wall)) if known is None else known[2]
        self.server.change("nodes", name, taints=kept if value is None else (*kept, (key, value, added)))

    def give_lease(self, replica: Replica | None) -> None:
        """Another replica leads: the one that did is told before."""
        for one in self.replicas:
            if one is not replica:
                one.lead(leading=False)
        self.api.holder = replica
        if replica is not None:
            replica.lead(leading=True)

    # -- a history ----------------------------------------------------------------------------------------------------

    def play(self, steps: int = 16) -> None:
        """Let things happen."""
        names = sorted(HAPPENINGS)
        weights = [HAPPENINGS[name][0] for name in names]
        for _ in range(steps):
            HAPPENINGS[self.chance.choices(names, weights)[0]][1](self)
            pause = self.chance.choice([0.0, 0.03, 0.4, 2.0, 7.0, 25.0])
            self.server.run(round(self.chance.uniform(0.5, 1.0) * pause, 3))
            self._replace_pods()

    def _replace_pods(self) -> None:
        if len(self.server.objects["pods"]) < 8:
            self.create_pod(self.chance.choice(["web", "api"]))

    def calm(self) -> None:
        """Nothing happens any more, and nothing goes wrong."""
        self.api.fault_rate = 0.0
        for replica in self.replicas:
            replica.clock_step = 0.0
            if replica.machine is None:
                replica.start()
            for stream in all_streams(replica):
                stream.mend()
        self.server.run(10.0)
        self.give_lease(self.leader or self.replicas[0])
        self.server.run(self.largest_step + LONGEST_DELAY)
        self._gone(self._is_free, "hidden")
        self._clocks_are_stored()

    def lift(self) -> None:
        """No limit is left."""
        for name in sorted(self.server.objects["policies"]):
            self.edit_policy(name, limits=NO_LIMITS, windows=(), mode=Mode.ENFORCE)
        self.server.run(LONGEST_DELAY)
        self._gone(lambda _: True, "lost")

    def _gone(self, counts: Callable[[Json], bool], kind: str) -> None:
        """Whoever has to leave is gone: those whom some policy wants gone that ``counts``."""
        policies = {name: one for name, one in self.server.objects["policies"].items() if counts(one)}
        for uid, pod in self.server.objects["pods"].items():
            for name, policy in policies.items():
                if policy["mode"] == "Enforce" and self._wants(policy, pod):
                    raise HistoryError(kind, uid, name, pod, self.server.objects["nodes"][pod["node"]])

    def _clocks_are_stored(self) -> None:
        """Each node carries the value of each taint that a policy acts on, and no other."""
        keys = {policy["key"] for policy in self.server.objects["policies"].values()}
        for name, node in self.server.objects["nodes"].items():
            stored = json.loads(node["history"] or "{}")
            found = {key: one["values"][-1][0] for key, one in stored.items()}
            wanted = {f"{key}:NoExecute": value for key, value, _ in node["taints"] if key in keys}
            if found != wanted:
                raise HistoryError("unsaved", name, node)

    def _is_free(self, policy: Json) -> bool:
        return bool(policy["is_free"])

    def _wants(self, policy: Json, pod: Json) -> bool:
        node = self.server.get("nodes", pod["node"])
        if node is None or pod["stopping"] or pod["opted_out"]:
            return False
        team = self.server.objects["namespaces"][pod["namespace"]]["labels"]["team"]
        if policy["team"] not in (None, team):
            return False
        return any(key == policy["key"] and not tolerates(key, value) for key, value, _ in node["taints"])


def is_bad(node: Json) -> bool:
    """Whether the scheduler puts nothing here."""
    return any(not tolerates(key, value) for key, value, _ in node["taints"])


@lru_cache(maxsize=1_000)
def play(seed: int) -> Counter[str]:
    """One history to its end. Returns how many commands of each kind it held.

    Raises:
        HistoryError: a rule was broken; the message names the seed.

    """
    turmoil = Turmoil(seed)
    try:
        turmoil.play()
        turmoil.calm()
        turmoil.lift()
    except Exception as error:
        msg = f"SIMULATED_SEED={seed} SIMULATED_RUNS=1"
        raise HistoryError(msg) from error
    return sum((replica.commanded for replica in turmoil.replicas), Counter[str]())
