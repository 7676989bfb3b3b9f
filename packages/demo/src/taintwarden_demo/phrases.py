"""Short forms of the operator's Events for the timeline, which has separate columns for time, node and pods."""

import re

_REASON = re.compile(r"taint (?P<taint>[^ :]+)\S* is not tolerated \((?P<why>.*?)\)(?:, \d+ s of grace)? \(policy")
_GRACE = re.compile(r", (?P<seconds>\d+ s) of grace")
_BUDGET = re.compile(r"disruption budget (?P<name>\S+) needs (?P<wanted>\d+) healthy pods and has (?P<has>\d+)")
_HELD = re.compile(r"PodDisruptionBudget (?:\S+/)?(?P<name>\S+) (?P<why>.*?)\. It ")
_EFFECT = re.compile(r":NoExecute")


def short(reason: str, note: str) -> str:
    """Return an Event as one clause; empty if it needs no line, as ``Evicted``: the pod's deletion has a line."""
    if reason == "EvictionScheduled":
        return f"must leave{_within(note)}: {_why(note)}"
    if reason == "EvictionCancelled":
        return "may stay: the eviction is cancelled"
    if reason == "EvictionBlocked":
        return f"blocked: {_refusal(note)}"
    if reason == "InvalidTaintValue":
        return "cannot be compared: judged by the last valid value"
    if reason in ("EvictionFailed", "InvalidToleration"):
        return f"{reason}: {note}"
    return ""


def _within(note: str) -> str:
    grace = _GRACE.search(note)
    return f" in {grace['seconds']}" if grace else ""


def _why(note: str) -> str:
    found = _REASON.search(note)
    text = f"{found['taint']}, but {found['why']}" if found else _after(note, ": ")
    return _EFFECT.sub("", text)


def _refusal(note: str) -> str:
    if found := _BUDGET.search(note):
        return f"budget {found['name']} needs {found['wanted']} healthy pods and has {found['has']}"
    if found := _HELD.search(note):
        return f"budget {found['name']} {found['why']}"
    return _after(note, ": ").removesuffix(". It is retried.")


def _after(text: str, mark: str) -> str:
    return text.partition(mark)[2] or text
