"""What was parsed of annotations, each text once: the pods of a workload have the same."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

MAX_CHARACTERS = 4 * 2**20
"""A tenant can write many different ones."""

Parsed = TypeVar("Parsed")


class Remembered(Generic[Parsed]):
    """A function of a text that stores its results, the oldest of which are dropped.

    Args:
        parse: the function.
        max_characters: the total size of the texts whose result is stored.

    """

    def __init__(self, parse: Callable[[str], Parsed], *, max_characters: int = MAX_CHARACTERS) -> None:
        self._parse = parse
        self._max_characters = max_characters
        self._found: OrderedDict[str, Parsed] = OrderedDict()
        self._characters = 0

    def __call__(self, text: str) -> Parsed:
        """What the text means."""
        found = self._found.get(text)
        if found is None:
            found = self._found[text] = self._parse(text)
            self._characters += len(text)
            while self._characters > self._max_characters:
                oldest, _ = self._found.popitem(last=False)
                self._characters -= len(oldest)
        return found
