"""The tutorial docs/slo-tutorial.md as a person follows it, on what `make cluster ARGS=--slo` starts."""

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane import Cluster, sleep_until
from controlplane.to_try import NAMESPACE, ToTry
from docs.pages import HEADING, ROOT, Page
from e2e.runbook import SHOWN, Desk, Done

PAGE = Page(ROOT / "docs" / "slo-tutorial.md")
PUBLISHED, FELL, RECOVERED, WRONG = "Publish the values", "Two nodes fall", "The nodes recover", "A wrong query"
LONGEST_SECONDS = 150
"""Maximum duration of a command; commands of the page that wait have a shorter timeout of their own."""
OBSERVED_SECONDS = 8
"""Seconds for which no pod may move once all nodes are good again."""
CHANGING = {
    r"\b(web|batch)-[a-z0-9]{5,10}-[a-z0-9]{5}\b": "POD",
    r"\bnode-zone-[abc]-[01]\b": "NODE",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ": "TIME",
    r"\b(\d+[hms])+\b": "AGE",
    r"from [\d.]+": "from VALUE",
    r" +": " ",
}
"""Texts that differ from run to run, each with its replacement."""


@dataclass(frozen=True)
class Step:
    """A command of the page, or the lines of a block, and the lines that the page shows of its output."""

    section: str
    command: str
    shown: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.section}: {self.command.splitlines()[0][:60]}"


@dataclass(frozen=True)
class State:
    """Taints and pods of a cluster at one moment."""

    taints: Mapping[str, str]
    """The value of `sla` by node."""
    pods: Mapping[str, tuple[str, str]]
    """App and node of each pod that is not terminating, by UID."""

    def nodes(self, app: str) -> Counter[str]:
        """Number of pods of an app on each node."""
        return Counter(node for name, node in self.pods.values() if name == app)


@dataclass
class Played:
    """Commands that were run, and what was observed. Moments are of the monotonic clock."""

    done: dict[Step, Done] = field(default_factory=dict)
    began: dict[str, float] = field(default_factory=dict)
    """Moment of the first command of each section."""
    after: dict[str, State] = field(default_factory=dict)
    """State of the cluster at the end of each section."""


def steps() -> list[Step]:
    """Commands of the page that are typed once the cluster runs, in order."""
    titles = {number: found[2] for number, line in enumerate(PAGE.prose, 1) if (found := HEADING.match(line))}
    found: list[Step] = []
    for block in PAGE.blocks:
        began = int(block.where.rpartition(":")[2])
        section = titles[max(number for number in titles if number < began)]
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                command, *shown = part.rstrip().splitlines()
                found.append(Step(section, command, tuple(line for line in shown if line not in ("", "..."))))
        elif block.language == "sh" and not block.text.startswith("make "):
            found.append(Step(section, block.text))
    return found


STEPS = steps()


def play(found: ToTry, desk: Desk) -> Played:
    """Type all commands of the page, and wait a while after the nodes have recovered.

    Raises AssertionError with what a command said that failed.
    """
    played = Played()
    for step in STEPS:
        played.began.setdefault(step.section, time.monotonic())
        done = played.done[step] = desk.run(step.command, LONGEST_SECONDS)
        assert done.code in SHOWN, done
        if step is [one for one in STEPS if one.section == step.section][-1]:
            if step.section == RECOVERED:
                sleep_until(time.monotonic() + OBSERVED_SECONDS)
            played.after[step.section] = state(found.cluster.client)
    return played


def state(client: Cluster) -> State:
    """Return the current taints and pods."""
    taints = {
        node["metadata"]["name"]: taint["value"]
        for node in client.items("nodes")
        for taint in node["spec"].get("taints", ())
        if taint["key"] == "sla"
    }
    pods = {
        pod["metadata"]["uid"]: (pod["metadata"]["labels"]["app"], pod["spec"].get("nodeName", ""))
        for pod in client.items("pods", NAMESPACE)
        if "deletionTimestamp" not in pod["metadata"]
    }
    return State(taints, pods)


def unseen(step: Step, done: Done) -> list[str]:
    """Lines that the page shows and the command did not print, apart from names, times and measured values.

    A line that ends in `...` is the beginning of one.
    """
    printed = [_plain(line) for line in done.output.splitlines()]
    return [line for line in map(_plain, step.shown) if not any(_is_shown(line, one) for one in printed)]


def _is_shown(line: str, printed: str) -> bool:
    return printed.startswith(line.removesuffix("...")) if line.endswith("...") else line == printed


def _plain(line: str) -> str:
    for pattern, word in CHANGING.items():
        line = re.sub(pattern, word, line)
    return line.strip()
