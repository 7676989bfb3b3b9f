"""What a person has selected in ``top``, and what each key does. Nothing here reads a terminal or a cluster."""

from enum import StrEnum

import msgspec

from taintwarden_cli.top.looking import Look, NodeLook, PodLook

HELP = "q quit  / filter  j k select  e explain"


class Wish(StrEnum):
    """What has to be done outside: the picture alone cannot."""

    QUIT = "quit"
    EXPLAIN = "explain"


class State(msgspec.Struct):
    """The selection. ``typing``: the filter is being typed."""

    filter: str = ""
    selected: int = 0
    typing: bool = False
    unseen: str = ""
    """Why the last look failed, so that the picture is as old as the one before."""
    message: str = ""
    """Why the last wish was not fulfilled."""
    text: str = ""
    """An explanation, shown in place of the nodes until a key is pressed."""

    def nodes(self, look: Look) -> list[NodeLook]:
        """The nodes that the filter selects, with the pods that it selects: by node, zone, namespace or pod."""
        if not self.filter:
            return look.nodes
        found = []
        for node in look.nodes:
            if self.filter in node.name or self.filter in node.zone:
                found.append(node)
            elif pods := [pod for pod in node.pods if self.filter in str(pod)]:
                found.append(msgspec.structs.replace(node, pods=pods))
        return found

    def leaving(self, look: Look) -> list[PodLook]:
        """The pods with a deadline: enforced ones first, the earliest first."""
        pods = [pod for node in self.nodes(look) for pod in node.pods if pod.due_at is not None]
        return sorted(pods, key=lambda pod: (pod.due_at or 0.0, str(pod)))

    def pod(self, look: Look) -> PodLook | None:
        """The selected pod."""
        leaving = self.leaving(look)
        return leaving[min(self.selected, len(leaving) - 1)] if leaving else None

    def press(self, key: str, look: Look) -> Wish | None:
        """Apply a key; returns what has to be done, if anything."""
        if self.typing:
            self._type(key)
            return None
        self.message, was_text, self.text = "", bool(self.text), ""
        if was_text and key in ("\x1b", "e", "\r"):
            return None
        return self._command(key, look)

    def _type(self, key: str) -> None:
        if key in ("\r", "\n"):
            self.typing = False
        elif key == "\x1b":
            self.filter, self.typing = "", False
        elif key in ("\x7f", "\b"):
            self.filter = self.filter[:-1]
        elif key.isprintable():
            self.filter += key
        self.selected = 0

    def _command(self, key: str, look: Look) -> Wish | None:
        match key:
            case "q" | "\x03":
                return Wish.QUIT
            case "/":
                self.typing, self.filter = True, ""
            case "\x1b":
                self.filter = ""
            case "j" | "down":
                self.selected = min(self.selected + 1, max(len(self.leaving(look)) - 1, 0))
            case "k" | "up":
                self.selected = max(self.selected - 1, 0)
            case "e" | "\r":
                return Wish.EXPLAIN if self.pod(look) is not None else None
            case _:
                pass
        return None
