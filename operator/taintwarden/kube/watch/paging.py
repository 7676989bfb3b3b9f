"""The number of objects to request for each page of a list, which follows from the size of the previous page.

A tenant may write pods and profiles of up to 1.5 MB each. The first page therefore has few objects, each page has at
most ``GROWTH`` times as many as the previous one, and a page that is too large is requested again with fewer.
"""

from typing import Final

from taintwarden.kube.http.messages import MAX_ANSWER_BYTES

FIRST_LIMIT: Final = 20
LARGEST_LIMIT: Final = 2_000
GROWTH: Final = 8
"""Maximum ratio of the number of objects in a page to that in the previous page."""
PAGE_BYTES: Final = 4 * 2**20
"""Target size of a page. Larger pages are faster, since the API server reads all remaining objects for each page."""
MAX_OBJECT_BYTES: Final = 32 * 2**20
"""Maximum size of a page with one object. The maximum of etcd can be set. A larger page is not read at all."""


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
        """Maximum bytes of the next page. A single object may have more, since it cannot be split."""
        return self._max_answer_bytes if self.objects > 1 else MAX_OBJECT_BYTES

    def adapt(self, page_bytes: int) -> None:
        """Adapt the limit to the size of the last page, which had the present limit."""
        fitting = self.objects * PAGE_BYTES // max(1, page_bytes)
        self.objects = max(1, min(LARGEST_LIMIT, self.objects * GROWTH, fitting))

    def shrink(self) -> bool:
        """Divide the limit by ``GROWTH`` after a page that was too large. Return False if the limit was 1 already."""
        was, self.objects = self.objects, max(1, self.objects // GROWTH)
        return was > 1
