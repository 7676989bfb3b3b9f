"""What one replica was told, and what follows by the plainest rules: no code is shared with the engine.

Pods of a fleet tolerate ``sla`` above 950. They tolerate ``flag`` for ``flag_seconds``, or not at all where that is
None, and no other taint. Each policy acts on one key.
"""

from typing import Any

Json = dict[str, Any]
NEVER = float("-inf")


class Node:
    """A node as it was told last, and since when each taint has been like that at the earliest."""

    def __init__(self, obj: Json) -> None:
        self.obj = obj
        self.since: dict[str, tuple[bool, float]] = {}
        """Key -> whether a pod tolerates it, and a time before which it was not like that."""


class Known:
    """Nodes, pods, namespaces and policies by the newest that was delivered."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Json] = {}
        self.namespaces: dict[str, Json] = {}
        self.policies: dict[str, Json] = {}

    # -- what is told -------------------------------------------------------------------------------------------------

    def saw(self, kind: str, key: str, obj: Json | None, wall: float, *, listed: bool, leading: bool) -> None:
        """An object is like this, or gone. ``wall``: what the replica's clock shows."""
        if kind == "nodes":
            self._saw_node(key, obj, wall, listed=listed, leading=leading)
        elif obj is None:
            getattr(self, kind).pop(key, None)
        else:
            getattr(self, kind)[key] = obj

    def listed(self, kind: str, keys: frozenset[str]) -> None:
        """What the list does not name is gone."""
        told: dict[str, Any] = getattr(self, kind)
        for key in [key for key in told if key not in keys]:
            del told[key]

    def _saw_node(self, name: str, obj: Json | None, wall: float, *, listed: bool, leading: bool) -> None:
        known = self.nodes.get(name)
        if obj is None:
            self.nodes.pop(name, None)
            return
        if known is not None and not listed and obj["version"] < known.obj["version"]:
            return  # a fresh read was newer
        is_new = known is None or known.obj["uid"] != obj["uid"]
        if known is None or is_new:
            known = self.nodes[name] = Node(obj)
        written = is_new or (obj["knew"] is not known.obj["knew"] and (listed or not leading))
        added_before = {key: added for key, _, added in known.obj["taints"]}
        before, known.since, known.obj = known.since, {}, obj
        for key, value, added in obj["taints"]:
            good = tolerates(key, value)
            was, wrote = before.get(key), obj["knew"].get(key) if written else None
            if listed and added > added_before.get(key, added) + 1.0:
                was = None  # it was taken away and put back unseen
            since = was[1] if was is not None and was[0] == good else wall
            if was is None:
                since = min(added, wall)
            if wrote is not None and wrote[0] == good:
                since = min(wrote[1], wall)  # as the clock of the other replica shows it
            known.since[key] = (good, since)

    # -- what follows -------------------------------------------------------------------------------------------------

    def since(self, node: str) -> dict[str, tuple[bool, float]]:
        """What is known of a node's taints now, for whoever reads what is written with it."""
        known = self.nodes.get(node)
        return dict(known.since) if known is not None else {}

    def earliest(self, uid: str, policy: str) -> float | None:
        """When this policy may evict the pod at the earliest, seconds since the epoch; None: it does not want to."""
        pod, stored = self.pods.get(uid), self.policies.get(policy)
        node = self.nodes.get(pod["node"]) if pod is not None else None
        if pod is None or stored is None or node is None or pod["stopping"] or pod["opted_out"]:
            return None
        if stored["mode"] != "Enforce" or not self._selects(stored, pod):
            return None
        key = stored["key"]
        if not any(one == key for one, _, _ in node.obj["taints"]) or node.since[key][0]:
            return None
        since, bound_at = node.since[key][1], pod["bound_at"]
        if key == "flag" and pod["flag_seconds"] is not None:
            return max(since, bound_at) + pod["flag_seconds"]
        if stored["reclaim"]:  # the end of the node may come before that of the grace
            return max(since, bound_at) if since > NEVER else NEVER
        return max(since, bound_at) + stored["grace"]

    def _selects(self, stored: Json, pod: Json) -> bool:
        if stored["team"] is None:
            return True
        namespace = self.namespaces.get(pod["namespace"])
        return namespace is not None and namespace["labels"].get("team") == stored["team"]


def tolerates(key: str, value: str) -> bool:
    """Whether every pod of a fleet stays on a node with this taint."""
    return key == "sla" and int(value) > 950
