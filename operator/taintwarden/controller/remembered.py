"""What was parsed of annotations, each text once: the pods of a workload have the same."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

MAX_CHARACTERS = 4 * 2**20
"""Total size of the texts whose result is stored. A tenant can write many different ones."""

Parsed = TypeVar("Parsed")


class Remembered(Generic[Parsed]):
    """A function of a text that stores its results, the oldest of which are dropped.

    Args:
        parse: the function.

    """

    def __init__(self, parse: Callable[[str], Parsed]) -> None:
        self._parse = parse
        self._found: OrderedDict[str, Parsed] = OrderedDict()
        self._characters = 0

    def __call__(self, text: str) -> Parsed:
        """What the text means."""
        found = self._found.get(text)
        if found is None:
            found = self._found[text] = self._parse(text)
            self._characters += len(text)
            while self._characters > MAX_CHARACTERS:
                oldest, _ = self._found.popitem(last=False)
                self._characters -= len(oldest)
        return found
