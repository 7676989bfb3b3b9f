"""How many objects of a list to request at once. How large they are, only the page before shows.

A tenant decides about the size of its pods and profiles, up to 1.5 MB each. So the first page has few objects, a page
has at most several times as many as the one before, and one that is too long is requested again in smaller parts.
"""

from typing import Final

from taintwarden.kube.http.messages import MAX_ANSWER_BYTES

FIRST_LIMIT: Final = 20
LARGEST_LIMIT: Final = 2_000
GROWTH: Final = 8
"""How many times as many objects as the page before a page may have."""
PAGE_BYTES: Final = 4 * 2**20
"""Of a page. Each page of a list costs the API server a look at all that follow, so it serves few large ones faster."""
MAX_OBJECT_BYTES: Final = 4 * MAX_ANSWER_BYTES
"""Of a page with one object. What etcd holds in 1.5 MB may be several times as long in JSON."""


class PageLimit:
    """The limit of the next page of one list.

    Args:
        objects: of the first page.
        max_answer_bytes: how long a page with several objects may be.

    Attributes:
        objects: how many.

    """

    def __init__(self, objects: int = FIRST_LIMIT, max_answer_bytes: int = MAX_ANSWER_BYTES) -> None:
        self.objects = objects
        self._max_answer_bytes = max_answer_bytes

    @property
    def max_bytes(self) -> int:
        """How long the page may be."""
        return self._max_answer_bytes if self.objects > 1 else MAX_OBJECT_BYTES

    def came(self, size: int) -> None:
        """A page of this limit had so many bytes."""
        fitting = self.objects * PAGE_BYTES // max(1, size)
        self.objects = max(1, min(LARGEST_LIMIT, self.objects * GROWTH, fitting))

    def shrink(self) -> bool:
        """A page was too long. False: it cannot be shorter."""
        was, self.objects = self.objects, max(1, self.objects // GROWTH)
        return was > 1
