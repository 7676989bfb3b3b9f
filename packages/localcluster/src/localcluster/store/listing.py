"""Lists of the newest state, in pages of one consistent snapshot.

Rules: "Retrieving large results sets in chunks" of the Kubernetes API concepts, and `apiserver/pkg/storage` for tokens
and messages. Lists of a given revision are refused. Forbidden here: encoding objects.
"""

import base64
from bisect import bisect_right
from typing import NamedTuple

import msgspec

from localcluster.errors import bad_request, gone, not_served
from localcluster.store.collection import Collection
from localcluster.store.entries import Entry, Key, Selection

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)


class Page(NamedTuple):
    """A page of a list: entries, the list's revision, and the token of the next page."""

    entries: list[Entry]
    revision: int
    token: str = ""


def page(
    collection: Collection, selection: Selection, newest: int, *, limit: int = 0, token: str = "", revision: str = ""
) -> Page:
    """Return a page of the state at `newest`, or at the revision of the token. Raises 400, 410 and 501."""
    if revision not in {"", "0"}:
        raise not_served("lists of a given resourceVersion")
    after: Key | None = None
    if token:
        newest, after = _read(token)
        if newest < collection.oldest:
            raise gone(_EXPIRED)
    entries = collection.state_at(newest)
    start = bisect_right(entries, after, key=_key_of) if after else 0
    chosen = [entry for entry in entries[start:] if selection.includes(entry)]
    if revision == "0" or not 0 < limit < len(chosen):  # upstream's watch cache, which serves 0, ignores the limit
        return Page(chosen, newest)
    return Page(chosen[:limit], newest, _token(newest, chosen[limit - 1].key))


def _token(revision: int, key: Key) -> str:
    """Return a continue token: JSON in unpadded URL-safe base64, as upstream."""
    return base64.urlsafe_b64encode(msgspec.json.encode({"rv": revision, "start": key})).rstrip(b"=").decode()


def _read(token: str) -> tuple[int, Key]:
    try:
        body = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = body["start"]
        return int(body["rv"]), (namespace, name)
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request(f"continue key is not valid: {error}") from error


def _key_of(entry: Entry) -> Key:
    return entry.key
