"""How long streams wait for what. One value that is handed in, so that tests hand in a shorter one."""

import msgspec


class StreamTimings(msgspec.Struct, frozen=True, kw_only=True):
    """Durations in seconds."""

    gap: float = 2.0
    """What was complete so long ago, or less, still counts as up to date while no watch is open."""
    watch: tuple[int, int] = (12, 18)
    """The server ends a watch after a random time in this range, so that watches spread over its replicas.

    Less than ``idle``: of a resource that never changes it sends nothing, not even bookmarks, unless etcd tells it of
    progress (every ten minutes by default). Then only the end that was asked for shows that a connection works. To
    open a watch again costs both sides less than a millisecond.
    """
    short_watch: int = 4
    """Length of the first watch after a gap. The server sends a bookmark two seconds before the end of a watch."""
    opening: float = 15.0
    """The server answers a watch at once; its flow control may let it wait for some seconds."""
    idle: float = 22.0
    """A connection silent for longer is dead: the server should have ended the watch.

    Well below the shortest notice that a cloud gives before it removes a node (30 s).
    """
    back_off: tuple[float, float] = (0.25, 5.0)
    """First and longest pause. Not longer, because no pod is evicted while the view is not up to date."""
    longest_asked: float = 15.0
    """The longest pause that a server or a load balancer gets by asking for it (``Retry-After``)."""
    empty_watch: float = 1.0
    """A watch that ends sooner without a frame counts as a failure, or a broken server would be hammered."""
    forgiven: float = 5.0
    """A watch that has worked for so long clears the record of failures before it."""
