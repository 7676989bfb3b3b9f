"""The number of objects to request for each page of a list. Only the previous page shows how large they are.

A tenant decides about the size of its pods and profiles, up to 1.5 MB each. So the first page has few objects, a page
has at most several times as many as the previous one, and one that is too long is requested again in smaller parts.
"""

from typing import Final

from taintwarden.kube.http.messages import MAX_ANSWER_BYTES

FIRST_LIMIT: Final = 20
LARGEST_LIMIT: Final = 2_000
GROWTH: Final = 8
"""Maximum ratio of the number of objects in a page to that in the previous page."""
PAGE_BYTES: Final = 4 * 2**20
"""Intended size of a page. For each page the API server reads all objects that follow: large pages are faster."""
MAX_OBJECT_BYTES: Final = 4 * MAX_ANSWER_BYTES
"""Maximum size of a page with one object. The 1.5 MB of an object in etcd may be several times as long in JSON."""


class PageLimit:
    """The limit of the next page of one list.

    Args:
        objects: number of objects in the first page.
        max_answer_bytes: maximum size of a page with several objects.

    Attributes:
        objects: number of objects to request.

    """

    def __init__(self, objects: int = FIRST_LIMIT, max_answer_bytes: int = MAX_ANSWER_BYTES) -> None:
        self.objects = objects
        self._max_answer_bytes = max_answer_bytes

    @property
    def max_bytes(self) -> int:
        """The maximum size of the page."""
        return self._max_answer_bytes if self.objects > 1 else MAX_OBJECT_BYTES

    def adapt(self, page_bytes: int) -> None:
        """Set the limit of the next page, after a page of this limit had ``page_bytes``."""
        fitting = self.objects * PAGE_BYTES // max(1, page_bytes)
        self.objects = max(1, min(LARGEST_LIMIT, self.objects * GROWTH, fitting))

    def shrink(self) -> bool:
        """Reduce the limit of a page that was too long. Return False if it already was 1."""
        was, self.objects = self.objects, max(1, self.objects // GROWTH)
        return was > 1
