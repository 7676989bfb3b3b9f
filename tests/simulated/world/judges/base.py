"""What judges have in common: what they are told, and how they state a breach."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulated.world.adapter import Notice, Order
from simulated.world.wire import Request

if TYPE_CHECKING:
    from simulated.world.judges import Judges
    from simulated.world.replica import Replica


@dataclass(frozen=True)
class Breach:
    """A rule that was broken: which judge found it, when, and a sentence."""

    judge: str
    at: float
    sentence: str
    whom: str = ""
    """The name of the object that it is about."""

    def __str__(self) -> str:
        return f"{self.judge} at {self.at:.3f}: {self.sentence}"


class Judge:
    """Is told of everything that happens in a world. The docstring of each judge is the rule it judges by."""

    name = ""

    def __init__(self, judges: "Judges") -> None:
        self.judges = judges
        self.world = judges.world
        self._stated: dict[str, None] = {}

    def breach(self, whom: str, sentence: str) -> None:
        """State a breach, once for each subject."""
        if whom not in self._stated:
            self._stated[whom] = None
            self.judges.breaches.append(Breach(self.name, self.world.agenda.now, sentence, whom))

    # -- the cluster --------------------------------------------------------------------------------------------------

    def stored(self, kind: str, key: str, before: Any, after: Any) -> None:
        """An object changed in the store."""

    def restored(self) -> None:
        """The store was replaced by an older one."""

    # -- an operator --------------------------------------------------------------------------------------------------

    def told(self, replica: "Replica", kind: str, key: str, before: Any, after: Any, listed: bool) -> None:
        """A replica processes what it was told of an object, by a watch or a list."""

    def led(self, replica: "Replica", term: int) -> None:
        """A replica processes that it leads, or (0) leads no longer."""

    def lease_changed(self) -> None:
        """The lease has another holder, or none."""

    def about_to_die(self, replica: "Replica") -> None:
        """A process is killed."""

    def noticed(self, replica: "Replica", notice: Notice) -> None:
        """A machine reports something."""

    # -- requests -----------------------------------------------------------------------------------------------------

    def ordered(self, replica: "Replica", order: Order) -> None:
        """A machine orders a call."""

    def sent(self, request: Request) -> None:
        """The bytes of a request are handed to its socket."""

    def withheld(self, request: Request) -> None:
        """A request is not handed to its socket, since its order stands no longer."""

    def arrives(self, request: Request) -> None:
        """The API server is about to carry a request out."""

    def effect(self, request: Request, code: int) -> None:
        """It did, with this result."""

    def answered(self, request: Request, code: int) -> None:
        """The replica that made a request processes its answer; 0: there was none."""

    # -- the end ------------------------------------------------------------------------------------------------------

    def calm_begins(self) -> None:
        """Inputs are frozen, and faults have stopped."""

    def calm_ends(self) -> None:
        """So it was for long."""

    def lifted(self) -> None:
        """For long, there has been no limit."""

    def quiet_begins(self) -> None:
        """From here on nothing may be commanded."""

    def quiet_ends(self) -> None:
        """The end."""
