"""Objects that nobody can read: the operator counts and skips them, too."""

from collections.abc import Iterator

from taintwarden.cli.diagnosis.checks import Check
from taintwarden.cli.diagnosis.finding import Found, Severity
from taintwarden.cli.diagnosis.ground import Look


def _unreadable(look: Look) -> Iterator[Found]:
    for subject, why in look.snapshot.unreadable:
        yield Found(subject, f"cannot be read: {why}")


CHECKS = (
    Check(
        id="object-unreadable",
        severity=Severity.WARNING,
        finds="objects that are not what Kubernetes says they are; the operator leaves such pods alone",
        remedy="look at it with kubectl get -o yaml, and write it anew",
        needs=(),
        run=_unreadable,
    ),
)
