"""Objects that cannot be decoded: the operator counts and skips them, too."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity
from taintwarden.cli.doctor.context import Context


def _unreadable(context: Context) -> Iterator[Found]:
    for subject, why in context.snapshot.unreadable:
        yield Found(subject, f"cannot be read: {why}")


CHECKS = (
    Check(
        id="object-unreadable",
        severity=Severity.WARNING,
        finds="objects that are not what Kubernetes says they are; the operator leaves such pods alone",
        remedy="look at it with kubectl get -o yaml, and correct it",
        needs=(),
        run=_unreadable,
    ),
)
