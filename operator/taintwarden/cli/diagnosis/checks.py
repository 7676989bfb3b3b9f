"""What a check is."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from taintwarden.cli.diagnosis.census import Group
from taintwarden.cli.diagnosis.finding import Found, Severity
from taintwarden.cli.diagnosis.ground import Look
from taintwarden.cli.diagnosis.sources import Source


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to look for.

    ``needs`` must have been read for it; without one of ``uses`` it looks at less. ``finds`` and ``remedy`` are what
    people read.
    """

    id: str
    severity: Severity
    finds: str
    remedy: str
    needs: Sequence[Source]
    uses: Sequence[Source] = ()
    run: Callable[[Look], Iterator[Found]]


def about(group: Group, message: str, remedy: str = "", *, severity: Severity | None = None) -> Found:
    """A finding about all pods of a group, or about a template."""
    return Found(group.subject, message, remedy, severity, pods=group.count, template=group.template)
