"""Notices about the labels of a node, each with its log line and its Event."""

import msgspec

from taintwarden.controller.words.notifier import NODE, Notifier, Report, row
from taintwarden.controller.words.wording import duration
from taintwarden.engine.model import Taint
from taintwarden.kube.calls.recorder import WARNING
from taintwarden_placement.node_labels.wanted import Label


class NotMirrored(msgspec.Struct, frozen=True):
    """Notice: labels cannot express ``subject``, so pods whose comparison needs them are kept off the node."""

    node: str
    node_uid: str
    subject: Taint | Label
    reason: str


class LabelsContested(msgspec.Struct, frozen=True):
    """Notice: another client has reverted labels of placement ``number`` times in a row.

    ``labels`` are the names of those that differ. They are written again after ``after`` seconds.
    """

    node: str
    node_uid: str
    labels: tuple[str, ...]
    number: int
    after: float


@row(
    NotMirrored,
    NODE,
    "warning",
    "taint-not-mirrored label-not-mirrored",
    WARNING,
    "TaintNotMirrored LabelNotMirrored",
    "Evaluate",
)
def _not_mirrored(_: Notifier, n: NotMirrored) -> Report:
    what = "Taint" if isinstance(n.subject, Taint) else "Label"
    note = (
        f"{what} {n.subject} cannot be repeated in labels of placement: {n.reason}. "
        f"New pods whose comparison needs them are kept off this node"
    )
    return Report({what.lower(): str(n.subject), "reason": n.reason}, note, int(what == "Label"))


@row(LabelsContested, NODE, "warning", "node-labels-contested", WARNING, "LabelsContested", "Evaluate")
def _labels_contested(_: Notifier, n: LabelsContested) -> Report:
    labels, after = list(n.labels), round(n.after)
    note = (
        f"Another client has changed labels of placement {n.number} times: {', '.join(labels)}. "
        f"They are written again after {duration(after)}; until then the scheduler uses what the other "
        f"client wrote. To find it: kubectl get node {n.node} -o yaml --show-managed-fields"
    )
    return Report({"labels": labels, "times": n.number, "after": after}, note)
