"""What an operator can know of the past of a node: what it was told, and what a leader has written down before it."""

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from simulated.world.adapter import Order
from simulated.world.agenda import EPOCH
from simulated.world.judges.base import Judge
from simulated.world.objects import Node, Pod
from simulated.world.wire import Request

if TYPE_CHECKING:
    from simulated.world.judges import Judges
    from simulated.world.replica import Replica

States = list[tuple[float, Node]]


class Knowledge(Judge):
    """Follows which states of nodes are durable: a leader that was told of them has stored the history since.

    A history that is overwritten by somebody else, or by an older etcd, makes nothing durable.
    """

    name = "knowledge"

    def __init__(self, judges: "Judges") -> None:
        super().__init__(judges)
        self.durable: dict[str, dict[int, float]] = {}
        """Node -> serials of its states, each with the true time since which it is durable."""
        self._told: dict[int, dict[int, float]] = {}
        """id of an order -> what its replica had been told of the node."""
        self._watched: dict[str, dict[int, int]] = {}
        """Name of a replica -> serials that a watch brought it, each with its life then."""
        self._gaps: dict[int, None] = {}
        """Serials of states that a replica has met in a list first: what came before them it cannot know."""
        self._writing = ""
        self._runs: dict[str, tuple[list[int], list[Any]]] = {}
        """Node -> for each of its states the index of the first one of that node, and all states with their times."""

    def ordered(self, replica: "Replica", order: Order) -> None:
        if order.what == "history":
            self._told[id(order)] = replica.told.serials.get(order.key, {}) | replica.told.parts

    def told(self, replica: "Replica", kind: str, key: str, before: Any, after: Any, listed: bool) -> None:
        if kind not in ("nodes", "slices", "rules") or after is None:
            return
        watched = self._watched.setdefault(replica.name, {})
        if not listed:
            watched[after.serial] = replica.life
        elif watched.get(after.serial) != replica.life and after.serial not in self.durable.get(key, {}):
            self._gaps[after.serial] = None

    def arrives(self, request: Request) -> None:
        if request.order.what == "history":
            self._writing = request.order.key

    def effect(self, request: Request, code: int) -> None:
        if request.order.what != "history":
            return
        self._writing = ""
        if code == 200:
            known = self.durable.setdefault(request.order.key, {})
            for serial in self._told.get(id(request.order), {}):
                known.setdefault(serial, self.world.agenda.now)

    def stored(self, kind: str, key: str, before: Any, after: Any) -> None:
        if kind != "nodes" or self._writing == key:
            return
        if before is None or after is None or before.history != after.history:
            self.durable.pop(key, None)

    def restored(self) -> None:
        self.durable.clear()

    # -- states of a node ---------------------------------------------------------------------------------------------

    def states(self, name: str, moment: float) -> States:
        """The states of the node of this name up to a moment, with true times as seconds since 1970."""
        past = self.world.store.past["nodes"].get(name)
        if past is None:
            return []
        runs, states = self._runs.setdefault(name, ([], []))
        for index in range(len(states), len(past.times)):
            node, before = past.states[index], past.states[index - 1] if index else None
            goes_on = node is not None and before is not None and node.uid == before.uid
            runs.append(runs[-1] if goes_on else index)
            states.append((EPOCH + past.times[index], node))
        last = bisect_right(past.times, moment) - 1
        if last < 0 or past.states[last] is None:
            return []
        return states[runs[last] : last + 1]

    def states_for(self, pod: Pod, moment: float, uses_at: float | None = None) -> States:
        """The states of the node of a pod, with the taints of the devices that the pod has then, or at ``uses_at``."""
        uses_at = moment if uses_at is None else uses_at
        return self.world.devices.states(pod, self.states(pod.node, moment), moment, uses_at)

    def known(self, replica: "Replica", states: States) -> States:
        """Those of ``states`` that a replica was told of, or that were durable before."""
        told = replica.told.serials
        name = states[-1][1].name if states else ""
        known = {**self.durable.get(name, {}), **told.get(name, {}), **replica.told.parts}
        return [one for one in states if known.keys() >= {one[1].serial, *one[1].parts}]

    def late(self, replica: "Replica", states: States) -> States:
        """The same states with the latest times that an operator may take: when it learned of them.

        A ``timeAdded`` that changed in a gap, or while the device was in no slice, may mean that the taint was added
        again: that its writer renews it is not remembered of a device that no pod has.
        """
        name = states[-1][1].name if states else ""
        durable, mine = self.durable.get(name, {}), replica.told.serials.get(name, {}) | replica.told.parts
        found: States = []
        for at, node in states:
            if found and self._may_be_another(found[-1][1], node) and _is_dated_anew(found, node):
                found = []
            learned = [
                min((EPOCH + one[serial] for one in (durable, mine) if serial in one), default=at)
                for serial in (node.serial, *node.parts)
            ]
            later = max(learned)
            found.append((max(later, found[-1][0]) if found else later, node))
        return found

    def _may_be_another(self, before: Node, after: Node) -> bool:
        """Whether a taint of a state may not be the one that it was before, by what a replica knows."""
        parts = (after.serial, *(one for one in after.parts if one not in before.parts))
        return bool(before.unpublished) or any(one in self._gaps for one in parts)


def _is_dated_anew(before: States, after: Node) -> bool:
    known: dict[tuple[str, str, str], float | None] = {}
    for _, node in before:
        of_missing_devices = {key: added for key, added in known.items() if key[2] in node.unpublished}
        known = of_missing_devices | {(one.key, one.effect, one.device): one.added for one in node.taints}
    return any(known.get((one.key, one.effect, one.device), one.added) != one.added for one in after.taints)
