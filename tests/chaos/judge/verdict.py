"""The judge's findings about one run of one fault."""

from dataclasses import dataclass, field

COUNTS = ("lost", "wrong", "early", "doubled", "over", "not_leader")
"""Counts for which zero is promised, unless a fault states a reason."""


@dataclass
class Verdict:
    """Counts, and for each thing that should not be a sentence that says what was seen."""

    evictions: int = 0
    """Accepted by the API server, and judged. All other calls are judged, too."""
    unjudged: int = 0
    """Accepted, of pods whose creation was never answered and which nothing else names."""
    lost: int = 0
    """Pods that had to leave and were still there at the end of the bound, or, without a fault, while nothing held."""
    wrong: int = 0
    """Evictions of pods that might stay, also by the truth of the stated staleness before."""
    early: int = 0
    doubled: int = 0
    """Calls for a pod of which an answer said that it leaves, or is gone."""
    over: int = 0
    """Calls that a row of the law surely held; deletions, which no budget sees; turns that were not theirs."""
    not_leader: int = 0
    latest_seconds: float = 0.0
    leaderless_seconds: float = 0.0
    calls_per_second: int = 0
    settled_seconds: float = 0.0
    """Seconds from the end of the changes until no pod had to leave."""
    findings: list[str] = field(default_factory=list)

    def count(self, column: str, finding: str) -> None:
        setattr(self, column, getattr(self, column) + 1)
        self.findings.append(f"{column}: {finding}")

    def breaches(self) -> dict[str, int]:
        """The counts that are not zero."""
        return {name: value for name in COUNTS if (value := getattr(self, name))}
