"""A plan: everything that happens in a history, as data that was drawn before anything ran.

Nothing in it depends on what an engine does. So it can be cut down to what a failure needs, be played with one tenant
more, or with the last of several edits only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Happening:
    """``what`` is a name in ``happenings.HAPPENINGS``, ``given`` its arguments, ``at`` seconds since the start."""

    at: float
    what: str
    given: Mapping[str, Any]

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.given.items())
        return f"{self.at:9.3f} {self.what}({given})"


@dataclass(frozen=True)
class Plan:
    """A history before it is played.

    Args:
        seed: of everything that is left to chance while it is played: delays, and who is placed where.
        theme: the name of what it is drawn from.
        happenings: in the order of their times.
        freeze_at: when inputs end and faults stop.
        skews: of the wall clock of each replica, in seconds; there are as many replicas.
        options: of the machine.
        api_skew: of the clock of the API server.
        writer_skew: of the clock of the client that taints nodes.
        event_seconds: of the processor, for one event.
        wake_seconds: of the processor, for one wake that the machine wants at once.
        replaced_within: the longest time until a controller replaces a pod.
        calm_seconds: how long the calm after the end lasts.
        has_devices: whether operators follow devices.

    """

    seed: int
    theme: str
    happenings: tuple[Happening, ...]
    freeze_at: float
    skews: tuple[float, ...] = (0.0, 0.0)
    options: Mapping[str, Any] = field(default_factory=dict)
    api_skew: float = 0.0
    writer_skew: float = 0.0
    event_seconds: float = 0.0
    wake_seconds: float = 0.0
    replaced_within: float = 3.0
    calm_seconds: float = 400.0
    has_devices: bool = False

    def __str__(self) -> str:
        return "\n".join(map(str, self.happenings))
