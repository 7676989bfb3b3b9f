"""One history of events has one trace, whatever the hash seed of the process."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import random
from simulated import Simulation, policy
from taintwarden.engine.machine import events
from taintwarden.engine.machine import Outcome

chance = random.Random(7)
policies = [
    policy("sla", taints=[{"key": "sla"}], timing={"violationGraceSeconds": 3},
           limits={"evictionsPerSecond": 5, "burst": 3}),
    policy("rest", taints=[{"key": "example.com/*"}], namespaceSelector={"matchLabels": {"team": "a"}}),
    policy("dry", taints=[{"key": "*"}], mode="DryRun"),
]
sim = Simulation(policies, overall_rate=8.0, max_in_flight=4, slice_size=7)
seen = []
carry_out = sim._carry_out
sim._carry_out = lambda command: (seen.append((sim.at, command)), carry_out(command))[1]
sim.judge = lambda pod, delete: (
    events.Settled(pod["metadata"]["uid"], chance.choice([Outcome.FAILED, Outcome.BLOCKED, Outcome.THROTTLED]), "no")
    if chance.random() < 0.3 else None
)
for number in range(12):
    sim.create_node(f"n{number}", labels={"zone": chance.choice("abc")})
sim.start()
for name in ("shop", "bank", "play"):
    sim.feed(events.NamespaceSeen(name, {"team": chance.choice("ab")}))
for number in range(120):
    tolerations = [{"key": "sla", "operator": "Gt", "value": str(chance.randrange(900, 999))}]
    sim.create_pod(f"p{number}", f"n{chance.randrange(12)}", tolerations, namespace=chance.choice(("shop", "bank")),
                   priority=chance.randrange(3), labels={"app": chance.choice("xyz")})
for step in range(60):
    taints = [{"key": key, "value": str(chance.randrange(900, 999)), "effect": "NoExecute"}
              for key in ("sla", "example.com/a", "example.com/b", "other") if chance.random() < 0.4]
    sim.set_taints(f"n{chance.randrange(12)}", taints)
    if step % 20 == 19:
        sim.feed(events.PoliciesChanged(tuple(chance.sample(policies, len(policies)))))
        sim.feed(events.NodesListed(frozenset(sim.nodes)))
        sim.feed(sim.pods_listed())
    if step == 30:
        sim.restart(1.0)
    sim.run(sim.at + chance.choice([0.1, 0.5, 2.0]))
sim.run(sim.at + 60)
for at, command in seen:
    print(round(at, 6), command)
print(len(seen))
"""


def trace(seed: str) -> list[str]:
    tests = Path(__file__).parent.parent
    environment = dict(os.environ) | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(tests)}
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, timeout=240
    )
    return said.stdout.splitlines()


def test_two_hash_seeds_have_one_trace():
    first, second = trace("1"), trace("2")
    assert int(first[-1]) > 300
    assert first == second
