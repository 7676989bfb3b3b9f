"""What keeps a pod that is to be scheduled off a node, by who can remove it."""

from enum import StrEnum

import msgspec


class ObstacleKind(StrEnum):
    """The kinds of obstacles, in the order in which they are reported. The last two are what you may have intended."""

    IMPOSSIBLE = "impossible"
    """What restricts the pod could not be written, so no node matches."""
    NATIVE = "native"
    """A taint that only an extended toleration tolerates: the native one is missing."""
    LABELS = "labels"
    """The labels of the node do not say what its taints say."""
    OUTDATED = "outdated"
    """The node affinity of the pod is not the one that it would get now."""
    UNPUBLISHED = "unpublished"
    """A version of a label is compared that no policy lists."""
    VOLUME = "volume"
    """The node affinity of its volume does not match."""
    INEXPRESSIBLE = "inexpressible"
    """Labels cannot express a value of the node, or a toleration of the pod."""
    TAINT = "taint"
    """A taint is not tolerated."""
    AFFINITY = "affinity"
    """Its own nodeSelector or node affinity does not match."""


class Obstacle(msgspec.Struct, frozen=True):
    """One reason why the pod may not be scheduled on a node: what does not match, and why, if that is known."""

    kind: ObstacleKind
    mismatch: str
    cause: str = ""

    @property
    def text(self) -> str:
        """Both."""
        return f"{self.mismatch}: {self.cause}" if self.cause else self.mismatch
