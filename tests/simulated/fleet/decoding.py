"""What is stored on the server, in the values of the engine."""

from simulated.fleet.server import Json
from taintwarden.engine.interning import Interner
from taintwarden.engine.machine import events
from taintwarden.engine.model import Effect, Node, Operator, Owner, Pod, Taint, Toleration, Tolerations

ABOVE_950 = Toleration(key="sla", operator=Operator.GT, value="950")


def node_of(name: str, obj: Json) -> Node:
    """A node."""
    taints = tuple((Taint(key, value, Effect.NO_EXECUTE), added) for key, value, added in obj["taints"])
    return Node(name, obj["uid"], obj["labels"], taints, obj["version"], obj["history"])


def pod_event(uid: str, obj: Json, interner: Interner) -> events.Event:
    """A pod; None of it is left to evict once it is stopping."""
    if obj["stopping"]:
        return events.PodGone(uid, obj["node"])
    flag = () if obj["flag_seconds"] is None else (_for_a_while(obj["flag_seconds"]),)
    owner = Owner("ReplicaSet", obj["owner"], f"uid-{obj['owner']}") if obj["owner"] else None
    shared = interner.pod_class(
        obj["namespace"],
        {},
        Tolerations((ABOVE_950, *flag)),
        do_not_evict=obj["opted_out"],
        owner=owner,
        grace_seconds=obj["grace"],
    )
    return events.PodSeen(Pod(uid, uid, obj["node"], shared, obj["bound_at"], obj["version"], ready=True))


def _for_a_while(seconds: int) -> Toleration:
    return Toleration(key="flag", operator=Operator.EXISTS, toleration_seconds=seconds)
