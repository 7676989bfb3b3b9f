"""Carries out ``repair``: finds the last good values of taints, prints the commands that restore them, or sets them."""

import sys
import time

import click
import msgspec

from taintwarden.cli.change.taint_writes import set_taints
from taintwarden.cli.cluster_session import REFUSED, ask, confirm, settings_of
from taintwarden.cli.data_output import write_data
from taintwarden.cli.failures import fail
from taintwarden.cli.output import printable, write
from taintwarden.controller.wording import at, duration, pods
from taintwarden.engine.model import Taint
from taintwarden.rehearsal.reading import read_snapshot
from taintwarden.rehearsal.rehearsal import taught
from taintwarden.rehearsal.repairing import Other, Repair, others, repairs
from taintwarden.settings import Settings

FINE, PERSON = 0, 10


class _Repairs(msgspec.Struct):
    at: str
    policy: str
    repairs: list[Repair]
    others: list[Other]

    @property
    def resource_names(self) -> list[str]:
        """The nodes with a bad value."""
        nodes = [*(one.node for one in self.repairs), *(one.node for one in self.others)]
        return [f"node/{name}" for name in dict.fromkeys(nodes)]


def repair(policy: str, applied: bool, yes: bool, output: str, **flags: object) -> None:
    """Carry out the command."""
    if applied and output != "table":
        raise click.UsageError("--apply prints commands: leave out --output")
    settings, now = settings_of(flags), time.time()
    found, rest = _find(settings, policy, now)
    if output != "table":
        write_data(_Repairs(at(now), policy, found, rest), output)
    else:
        context = f" --context {settings.context}" if settings.context else ""
        lines = [*_lines(found, context), *map(_line, rest)]
        write("\n".join(lines) or f"# policy {printable(policy)}: no bad value")
    good = [one for one in found if one.value is not None]
    if applied and good:
        confirm(f"Set these {len(good)} taints?", "set them", yes=yes)
        failures = ask(settings, lambda session: set_taints(session, good))
        for failure in failures:
            click.echo(f"taintwarden: {printable(failure)}", err=True)
        if failures:
            sys.exit(REFUSED)
    sys.exit(FINE if len(good) == len(found) and not rest else PERSON)


def _find(settings: Settings, name: str, now: float) -> tuple[list[Repair], list[Other]]:
    snapshot = ask(settings, lambda session: read_snapshot(session, settings.namespace, now), max_connections=12)
    gates = settings.gates
    rehearsal = taught(snapshot, gates)
    policy = next((one for one in rehearsal.view.policies if one.name == name), None)
    if policy is None:
        why = rehearsal.policy_problems.get(name, "it does not exist")
        fail(f"cannot use TaintEvictionPolicy {name}: {why}", REFUSED)
    return repairs(rehearsal.view, policy, gates, now), others(rehearsal.view, policy)


def _lines(found: list[Repair], context: str) -> list[str]:
    lines = []
    for one in found:
        current = Taint(one.key, one.current, one.effect)
        told = f"# {one.node}: {current} for {duration(one.seconds)}, {_leave(one.leaving)}"
        if one.value is None:
            lines.append(printable(f"{told}; no earlier good value is known"))
            continue
        after = f", {one.leaving_after} with {one.value}" if one.leaving_after else f"; {one.value} before"
        lines.append(printable(told + after))
        lines.append(printable(f"kubectl taint node {one.node} {one.taint} --overwrite{context}"))
    return lines


def _line(one: Other) -> str:
    """What makes pods leave, and who writes it."""
    writer = "its driver or a DeviceTaintRule writes it"
    if one.source:
        writer = f"it is read from {one.source} of the node"
    return printable(f"# {one.node}: {one.taint}, {_leave(one.leaving)}; {writer}: no command restores it")


def _leave(number: int) -> str:
    return f"{pods(number)} {'has' if number == 1 else 'have'} to leave"
