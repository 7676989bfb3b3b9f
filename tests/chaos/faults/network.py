"""Faults of the network between the operator and the API server."""

from chaos.faults.base import Fault, Scene
from controlplane.network import Link

SILENT_STREAM_SECONDS = 5
"""A node whose stream has been silent for longer is read before a pod is evicted from it, by the documents."""


HELD = {
    "not_leader": "a request that the network holds arrives when another replica may lead",
    "doubled": "the replica that leads then may have evicted the pod: it is terminating",
}


class Networked(Fault):
    """A fault of all links at once."""

    def start(self, scene: Scene) -> None:
        for link in scene.replicas.links():
            self.spoil(link)

    def end(self, scene: Scene) -> None:
        for link in scene.replicas.links():
            self.repair(link)

    def spoil(self, link: Link) -> None:
        """Break one."""

    def repair(self, link: Link) -> None:
        """Repair one."""


class Cut(Networked):
    """Every connection is reset, every two seconds."""

    name = "cut"

    def prepare(self, scene: Scene) -> None:
        self._cuts = 0

    def tick(self, scene: Scene, elapsed_seconds: float) -> None:
        if elapsed_seconds >= 2 * self._cuts:
            self._cuts += 1
            for link in scene.replicas.links():
                link.cut()


class HalfOpen(Networked):
    """Every connection stays open and carries nothing any more, without FIN or RST; new ones work."""

    name = "half-open"
    seconds = 35
    staleness_seconds = SILENT_STREAM_SECONDS + 2

    def spoil(self, link: Link) -> None:
        link.lose()


class Silent(Networked):
    """Nothing passes, on old and new connections, without FIN or RST; then everything that was held arrives."""

    name = "silent"
    seconds = 30
    staleness_seconds = 30 + 2
    in_flight = 40
    excused = HELD

    def spoil(self, link: Link) -> None:
        link.conditions.is_silent = True

    def repair(self, link: Link) -> None:
        link.conditions.is_silent = False


class Partitioned(Fault):
    """The leader alone is cut off, silently, for half a minute; then it is back."""

    name = "partitioned"
    seconds = 30
    staleness_seconds = 30 + 2
    in_flight = 40
    excused = HELD

    def start(self, scene: Scene) -> None:
        self._link = scene.replicas.leader().link
        self._link.conditions.is_silent = True

    def end(self, scene: Scene) -> None:
        self._link.conditions.is_silent = False


class Delayed(Networked):
    """Everything takes a second longer in each direction."""

    name = "delayed"
    staleness_seconds = 2 + 2
    in_flight = 40

    def spoil(self, link: Link) -> None:
        link.conditions.delay_seconds = 1.0

    def repair(self, link: Link) -> None:
        link.conditions.delay_seconds = 0.0


class DelayedMuch(Delayed):
    """Everything takes three seconds longer in each direction: too long to renew the Lease."""

    name = "delayed-much"
    staleness_seconds = 2 + 6

    def spoil(self, link: Link) -> None:
        link.conditions.delay_seconds = 3.0


class Narrow(Networked):
    """Answers come at 100 kB/s, all together; one replica has to list everything again."""

    name = "narrow"
    seconds = 30
    staleness_seconds = SILENT_STREAM_SECONDS + 2

    def start(self, scene: Scene) -> None:
        super().start(scene)
        scene.replicas.leader().link.cut()

    def spoil(self, link: Link) -> None:
        link.conditions.bytes_per_second = 100_000

    def repair(self, link: Link) -> None:
        link.conditions.bytes_per_second = 0


class Errors(Networked):
    """Three of ten requests get 500, 429 with Retry-After, or 504."""

    name = "errors"
    seconds = 25

    def spoil(self, link: Link) -> None:
        link.conditions.error_share = 0.3

    def repair(self, link: Link) -> None:
        link.conditions.error_share = 0.0
