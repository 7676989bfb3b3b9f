"""Everything that can happen to a fleet, each with how often."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from simulated.fleet import objects
from simulated.fleet.replica import all_streams
from taintwarden.engine.model import Mode

if TYPE_CHECKING:
    from simulated.fleet.turmoil import Turmoil

HOUR = 3_600.0
BAD, GOOD = ("900", "940"), ("960", "980")


def wave(fleet: "Turmoil") -> None:
    """Many nodes turn bad, one after the other or at once."""
    gap = fleet.chance.choice([0.0, 0.0, 0.3])
    for name in sorted(fleet.server.objects["nodes"]):
        if fleet.chance.random() < 0.8:
            fleet.taint(name, "sla", fleet.chance.choice(BAD))
            fleet.server.run(gap)


def taint(fleet: "Turmoil") -> None:
    """One node turns bad, is flagged, or will be reclaimed."""
    key = fleet.chance.choice(["sla", "flag", "spot"])
    fleet.taint(fleet.node(), key, fleet.chance.choice(BAD) if key == "sla" else "x")


def recover(fleet: "Turmoil") -> None:
    """Some nodes, or all, are good again."""
    nodes = sorted(fleet.server.objects["nodes"])
    for name in nodes if fleet.chance.random() < 0.4 else fleet.chance.sample(nodes, 1):
        fleet.taint(name, "sla", fleet.chance.choice([None, *GOOD]))
        if fleet.chance.random() < 0.5:
            fleet.taint(name, "flag", None)
            fleet.taint(name, "spot", None)


def blip(fleet: "Turmoil") -> None:
    """A node is good for a moment, or its taint is taken away and put back."""
    name, chance = fleet.node(), fleet.chance
    node = fleet.server.get("nodes", name)
    key = chance.choice([one[0] for one in node["taints"]] or ["sla"]) if node else "sla"
    fleet.taint(name, key, chance.choice([None, *GOOD]) if key == "sla" else None)
    fleet.server.run(chance.choice([0.0, 0.05, 3.0]))
    fleet.taint(name, key, chance.choice(BAD) if key == "sla" else "x")


def change_pod(fleet: "Turmoil") -> None:
    """A pod may not be evicted any more, or may; it tolerates another time; it is deleted; another comes."""
    pods = sorted(fleet.server.objects["pods"])
    what = fleet.chance.choice(["opt", "opt", "flag", "delete", "create"])
    if what == "create" or not pods:
        fleet.create_pod(fleet.chance.choice(["web", "api", ""]))
        return
    uid = fleet.chance.choice(pods)
    pod = fleet.server.objects["pods"][uid]
    match what:
        case "opt":
            fleet.server.change("pods", uid, opted_out=not pod["opted_out"])
        case "flag":
            fleet.server.change("pods", uid, flag_seconds=fleet.chance.choice([None, 0, 20]))
        case _:
            fleet.server.delete("pods", uid)


def change_nodes(fleet: "Turmoil") -> None:
    """A node comes, goes with its pods, or is made again under its name."""
    server, chance = fleet.server, fleet.chance
    if len(server.objects["nodes"]) < 3 or chance.random() < 0.3:
        server.put("nodes", server.name("n"), objects.node_object(chance, server.name("node-")))
        return
    name = fleet.node()
    server.delete("nodes", name)
    if chance.random() < 0.4:
        server.run(chance.choice([0.0, 0.5]))
        server.put("nodes", name, objects.node_object(chance, server.name("node-")))
        return
    for uid in [uid for uid, pod in server.objects["pods"].items() if pod["node"] == name]:
        server.delete("pods", uid)


def change_namespace(fleet: "Turmoil") -> None:
    """A namespace belongs to another team."""
    name = fleet.chance.choice(objects.NAMESPACES)
    fleet.server.change("namespaces", name, labels={"team": fleet.chance.choice("ab")})


def edit(fleet: "Turmoil") -> None:
    """A policy has another mode, or other settings."""
    name = fleet.chance.choice(["p", "q", "r"])
    if fleet.chance.random() < 0.5:
        modes = [Mode.ENFORCE, Mode.ENFORCE, Mode.DRY_RUN, Mode.PAUSED]
        fleet.edit_policy(name, mode=fleet.chance.choice(modes))
    else:
        fleet.edit_policy(name, **objects.draw_settings(fleet.chance))


def replace_policy(fleet: "Turmoil") -> None:
    """A policy is deleted, and made again or not; or a missing one comes."""
    name, key = fleet.chance.choice([("p", "sla"), ("q", "flag"), ("r", "spot")])
    was_there = fleet.server.get("policies", name) is not None
    fleet.server.delete("policies", name)
    if not was_there or fleet.chance.random() < 0.6:
        fleet.server.run(fleet.chance.choice([0.0, 0.3, 3.0]))
        fleet.create_policy(name, key)


def reset(fleet: "Turmoil") -> None:
    """Somebody releases what the guards hold."""
    for name in sorted(fleet.server.objects["policies"]):
        fleet.server.change("policies", name, reset=True)


def fail_stream(fleet: "Turmoil") -> None:
    """A watch hangs, which is noticed or not, and misses something; it resumes where it was, or lists again."""
    chance = fleet.chance
    replica = chance.choice(fleet.replicas)
    if replica.machine is None:
        return
    life = replica.life
    streams = all_streams(replica)
    seconds = chance.choice([0.5, 5.0, 40.0])
    resumes = chance.random() < 0.6
    for stream in streams if chance.random() < 0.3 else chance.sample(streams, 1):
        stream.hang()
        if chance.random() < 0.5:
            stream.cut()

        def mend(stream: object = stream) -> None:
            if replica.life == life:
                stream.cut()  # type: ignore[attr-defined]
                stream.resume() if resumes else stream.list()  # type: ignore[attr-defined]

        fleet.server.later(seconds, mend)
    unseen = chance.choice([None, blip, blip, taint, recover, wave])
    if unseen is not None:
        unseen(fleet)


def back_up(fleet: "Turmoil") -> None:
    """The store is copied."""
    fleet.server.back_up()


def restore(fleet: "Turmoil") -> None:
    """The store is what it was when it was copied: who was stopping then has stopped meanwhile."""
    if fleet.server.restore():
        for uid, pod in sorted(fleet.server.objects["pods"].items()):
            if pod["stopping"]:
                fleet.server.delete("pods", uid)


def flap(fleet: "Turmoil") -> None:
    """The leader loses its lease, notices it at once or late, and gets it back."""
    leader = fleet.leader
    if leader is None:
        return
    fleet.api.holder = None
    fleet.server.run(fleet.chance.choice([0.0, 0.3, 2.0]))
    leader.lead(leading=False)
    fleet.server.run(fleet.chance.choice([0.0, 0.05, 4.0]))
    fleet.give_lease(leader if leader.machine is not None else None)


def take_over(fleet: "Turmoil") -> None:
    """The other replica leads."""
    others = [one for one in fleet.replicas if one is not fleet.leader and one.machine is not None]
    fleet.give_lease(None)
    fleet.server.run(fleet.chance.choice([0.0, 0.5, 16.0]))
    if others:
        fleet.give_lease(others[0])


def kill(fleet: "Turmoil") -> None:
    """A replica is killed, and started again or not; the other takes over."""
    replica = fleet.chance.choice(fleet.replicas)
    was_leader = replica is fleet.leader
    replica.kill()
    if fleet.chance.random() < 0.7:
        fleet.server.run(fleet.chance.choice([0.0, 0.5, 5.0]))
        replica.start()
    if was_leader:
        fleet.server.run(fleet.chance.choice([0.1, 1.0, 16.0]))
        living = [one for one in fleet.replicas if one.machine is not None]
        fleet.give_lease(fleet.chance.choice(living) if living else None)


def step_clock(fleet: "Turmoil") -> None:
    """The clock of a replica is set wrong, or right, by hours."""
    replica = fleet.chance.choice(fleet.replicas)
    replica.clock_step = fleet.chance.choice([-3 * HOUR, -HOUR, -30.0, 0.0, 0.0, 30.0, HOUR, 3 * HOUR])
    fleet.largest_step = max(fleet.largest_step, abs(replica.clock_step))


def change_faults(fleet: "Turmoil") -> None:
    """The API server fails often, or works again."""
    fleet.api.fault_rate = 0.0 if fleet.api.fault_rate else fleet.chance.choice([0.1, 0.5])


HAPPENINGS: dict[str, tuple[float, Callable[["Turmoil"], None]]] = {
    "wave": (3, wave),
    "taint": (4, taint),
    "recover": (2, recover),
    "blip": (3, blip),
    "change_pod": (3, change_pod),
    "change_nodes": (1, change_nodes),
    "change_namespace": (2, change_namespace),
    "edit": (2, edit),
    "replace_policy": (1, replace_policy),
    "reset": (1, reset),
    "fail_stream": (5, fail_stream),
    "back_up": (1, back_up),
    "restore": (1, restore),
    "flap": (1, flap),
    "take_over": (2, take_over),
    "kill": (2, kill),
    "step_clock": (0.5, step_clock),
    "change_faults": (2, change_faults),
}
