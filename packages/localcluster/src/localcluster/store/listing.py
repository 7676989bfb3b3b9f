"""Lists: newest, at a revision, page by page over one consistent snapshot.

Rules: "Resource Versions" and "Retrieving large results sets in chunks" of the Kubernetes API concepts, and
`apiserver/pkg/storage` for tokens and messages. Forbidden here: encoding objects; a page is made of stored bytes.
"""

import base64
from bisect import bisect_left
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from localcluster.errors import ApiError, bad_request, gone
from localcluster.store.collection import Collection
from localcluster.store.entries import Entry, Key, Selection
from localcluster.store.store import Store

_SNAPSHOTS_MAX = 16
_LATEST = -1

_EXPIRED_LIST = "The resourceVersion for the provided list is too old."
_EXPIRED_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Page(NamedTuple):
    """Some entries of a list, the list's revision, and how to continue."""

    entries: list[Entry]
    revision: int
    token: str = ""
    remaining: int | None = None


class Token(NamedTuple):
    """The content of a continue token: start after `key` in the state at `revision` (or the newest)."""

    revision: int
    key: Key

    def encoded(self) -> str:
        """Unpadded URL-safe base64 of JSON, as upstream."""
        start = "/".join(part for part in self.key if part) + "\0"
        body = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": self.revision, "start": start})
        return base64.urlsafe_b64encode(body).rstrip(b"=").decode()

    @classmethod
    def parse(cls, text: str, *, namespaced: bool) -> "Token":
        """Decode a token. Raises a 400 for one that no server of this kind has issued."""
        try:
            body = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            revision, start = int(body["rv"]), str(body["start"])
        except (ValueError, KeyError, TypeError) as error:
            raise bad_request(f"continue key is not valid: {error}") from error
        start = start.rstrip("\0")
        namespace, _, name = start.rpartition("/") if namespaced else ("", "", start)
        return cls(revision, (namespace, name))


class Lister:
    """Lists over a store; keeps the few snapshots that clients are reading page by page."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots: OrderedDict[tuple[str, int], list[Entry]] = OrderedDict()

    def page(
        self,
        collection: Collection,
        selection: Selection,
        *,
        limit: int = 0,
        token: str = "",
        revision: str = "",
        match: str = "",
    ) -> Page:
        """One page. Raises 410 for a snapshot that is gone, 504 for a future revision, 400 for invalid options."""
        if token:
            if revision not in {"", "0"}:
                raise bad_request("specifying resource version is not allowed when using continue")
            return self._continued(collection, selection, Token.parse(token, namespaced=collection.namespaced), limit)
        if match and not revision:
            raise _match_without_revision(match)
        if match == "Exact":
            wanted = _number(revision)
            self._check_future(wanted)
            if wanted < collection.oldest:
                raise gone(_EXPIRED_LIST)
            return self._page(collection, selection, wanted, 0, limit)
        self._check_future(_number(revision))
        if revision == "0":
            limit = 0  # served from the watch cache upstream, which does not page
        return self._page(collection, selection, self._store.revision, 0, limit)

    def _continued(self, collection: Collection, selection: Selection, token: Token, limit: int) -> Page:
        revision = self._store.revision if token.revision == _LATEST else token.revision
        if revision < collection.oldest:
            raise gone(_EXPIRED_CONTINUE, token=Token(_LATEST, token.key).encoded())
        entries = self._snapshot(collection, revision)
        keys_after = bisect_left(entries, (token.key[0], token.key[1] + "\0"), key=_key_of)
        return self._page(collection, selection, revision, keys_after, limit)

    def _page(self, collection: Collection, selection: Selection, revision: int, start: int, limit: int) -> Page:
        entries = self._snapshot(collection, revision) if limit or start else collection.state_at(revision)
        if not limit:
            return Page([entry for entry in entries[start:] if selection.passes(entry)], revision)
        chosen: list[Entry] = []
        for position in range(start, len(entries)):
            if selection.passes(entries[position]):
                if len(chosen) == limit:
                    remaining = None if not selection.everything else _left(entries, position, selection)
                    return Page(chosen, revision, Token(revision, chosen[-1].key).encoded(), remaining)
                chosen.append(entries[position])
        return Page(chosen, revision)

    def _snapshot(self, collection: Collection, revision: int) -> list[Entry]:
        key = (collection.name, revision)
        known = self._snapshots.get(key)
        if known is None:
            known = self._snapshots[key] = collection.state_at(revision)
            while len(self._snapshots) > _SNAPSHOTS_MAX:
                self._snapshots.popitem(last=False)
        self._snapshots.move_to_end(key)
        return known

    def _check_future(self, revision: int) -> None:
        if revision > self._store.revision:
            message = f"Timeout: Too large resource version: {revision}, current: {self._store.revision}"
            causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
            raise ApiError(504, "Timeout", message, details={"causes": causes}, retry_after_seconds=1)


def _key_of(entry: Entry) -> Key:
    return entry.key


def _left(entries: list[Entry], position: int, selection: Selection) -> int:
    if not selection.namespace:
        return len(entries) - position
    return sum(selection.passes(entry) for entry in entries[position:])


def _number(revision: str) -> int:
    if not revision:
        return 0
    if not (revision.isascii() and revision.isdigit()):
        raise bad_request(f'Invalid value: "{revision}": strconv.ParseUint: parsing "{revision}": invalid syntax')
    return int(revision)


def _match_without_revision(match: str) -> ApiError:
    field = "resourceVersionMatch"
    message = f"{field}: Forbidden: {field} is forbidden unless resourceVersion is provided"
    causes = [
        {
            "reason": "FieldValueForbidden",
            "message": f"Forbidden: {field} is forbidden unless resourceVersion is provided",
            "field": field,
        }
    ]
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes}
    return ApiError(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {message} ({match})', details=details)
