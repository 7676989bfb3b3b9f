"""Base class of faults, with the tolerances of each."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from chaos.judge import Judge
from chaos.plane import Plane
from chaos.replicas import Replicas
from chaos.world import World
from controlplane.network import Network


@dataclass
class Scene:
    """Everything that a fault can break."""

    plane: Plane
    network: Network
    replicas: Replicas
    world: World
    judge: Judge
    random: random.Random


class Fault:
    """Begins with `start`, is refreshed by `tick` twice a second, and is over after `end`.

    A fault is made for one run, so it may keep what it needs to end.
    """

    name: ClassVar[str]
    seconds: float = 20
    """Seconds for which the fault lasts."""
    after_seconds: ClassVar[float] = 2
    """Seconds for which values change after it has ended."""
    staleness_seconds: ClassVar[float] = 2
    """Maximum age of the state on which an eviction depends. More where the network itself delays messages."""
    in_flight: ClassVar[int] = 10
    """Maximum number of calls that may arrive at once although they were sent apart."""
    bound_seconds: ClassVar[float] = 60
    """Seconds after which every pod that has to leave has left."""
    hinders: ClassVar[bool] = True
    """True if it may make evictions late while it lasts, and until that bound."""
    excused: ClassVar[Mapping[str, str]] = {}
    """Counts of the verdict for which zero is not promised, with the reason."""

    def prepare(self, scene: Scene) -> None:
        """Before anything is judged."""

    def start(self, scene: Scene) -> None:
        """Break something."""

    def tick(self, scene: Scene, elapsed_seconds: float) -> None:
        """Continue the fault; called repeatedly while it lasts."""

    def end(self, scene: Scene) -> None:
        """Repair it."""

    def measured(self) -> str:
        """Measurements of the fault itself, for the person who reads the report."""
        return ""

    def clear(self, scene: Scene) -> None:
        """After everything was judged."""


class Nothing(Fault):
    """No fault, for comparison with the others."""

    name = "none"
    hinders = False
