"""What a close look at the cluster finds for one policy. The structs are what ``-o json`` prints."""

import msgspec

from taintwarden.controller.words.wording import pods
from taintwarden_cli.rehearsal.staying import Staying
from taintwarden_cli.status.problems import Problem


class Removal(msgspec.Struct, rename="camel"):
    """A node that is removed, by ``reclaim`` of a policy."""

    node: str
    at: str
    pods: int
    """Pods that have to leave, or terminate."""
    missed: int = 0
    """Those of them that are not evicted in time, as a plan from now on says."""
    cut: int = 0
    """Those of them that get less time to stop than they ask for."""
    held_by: list[str] = []
    """The budgets, or limits, that keep those that are not evicted in time."""


class Missed(msgspec.Struct, frozen=True, rename="camel"):
    """Pods that missed the end of their node, as Events of the last hour say."""

    not_evicted: int = 0
    cut: int = 0
    recent: bool = False
    """So recently that a person has to look."""


class PolicyLook(msgspec.Struct, rename="camel"):
    """What a look at the cluster adds to the status of a policy. ``staying`` None: not counted."""

    problems: list[Problem] = []
    """What a person has to correct or check, the worst first."""
    removals: list[Removal] = []
    missed: Missed = Missed()
    staying: list[Staying] | None = None


def in_words(missed: Missed) -> str:
    """How many pods missed the end of their node; empty: none."""
    parts = (
        f"{pods(missed.not_evicted)} not evicted before the node was removed" if missed.not_evicted else "",
        f"{pods(missed.cut)} with a grace that was cut" if missed.cut else "",
    )
    text = ", ".join(filter(None, parts))
    return f"{text}, in the last hour" if text else ""
