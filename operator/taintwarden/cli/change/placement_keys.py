"""Carries out ``placement list`` and ``placement remove``: shows what uses the labels, asks, and removes them."""

from taintwarden.cli.change.placement_removal import remove as remove_labels
from taintwarden.cli.cluster_session import REFUSED, ask, confirm, settings_of
from taintwarden.cli.data_output import write_data
from taintwarden.cli.failures import fail
from taintwarden.cli.output import printable, write
from taintwarden.cli.rendering import Lines, render, rows
from taintwarden.engine.placement import Kept
from taintwarden.rehearsal.label_uses import KeyUse, KeyUses, Users, read_label_uses

_TEMPLATES_OF_OTHER_KINDS = "templates of kinds that Kubernetes does not define are not looked at"


def list_keys(output: str, **flags: object) -> None:
    """Show the keys whose labels nodes carry, or pods name."""
    found = _read(flags)
    if output != "table":
        write_data(KeyUses(found), output)
        return
    header = ("KEY", "PLACED BY", "NODES", "PODS", "TEMPLATES", "VOLUMES", "WHAT TO DO")
    write(render(rows(header, map(_row, found))) if found else "no node carries labels of placement")


def remove(key: str, force: bool, yes: bool, **flags: object) -> None:
    """Remove the labels of a key from all nodes."""
    uses = [use for use in _read(flags) if use.key == key]
    placing = [policy for use in uses for policy in use.policies]
    if placing:
        told = f"policy {', '.join(placing)} uses the key {key}: remove placement or versionLabels from it first"
        fail(printable(told), REFUSED)
    if not any(use.nodes for use in uses):
        fail(printable(f"no node carries labels of placement for {key}"), REFUSED)
    write(render(_users(key, uses).grid))
    if any(use.is_named for use in uses) and not force:
        fail("the labels are in use: restart what names them, and try again; or use --force", REFUSED)
    confirm("Remove the labels?", "remove the labels", yes=yes)
    kept = [Kept(use.key, use.of_label) for use in uses]
    nodes = ask(settings_of(flags), lambda session: remove_labels(session, kept), max_connections=12)
    write(printable(f"the labels of {key} were removed from {nodes} nodes"))


def _read(flags: dict[str, object]) -> list[KeyUse]:
    return list(ask(settings_of(flags), read_label_uses, max_connections=12))


def _row(use: KeyUse) -> tuple[str, ...]:
    counts = (use.nodes, use.pods.count, use.templates.count, use.volumes.count)
    shown = f"{use.key} (label)" if use.of_label else use.key
    return shown, ", ".join(use.policies) or "-", *map(str, counts), _what_to_do(use)


def _what_to_do(use: KeyUse) -> str:
    remove = f"taintwarden placement remove {use.key}"
    if use.is_placed:
        return "-"
    if use.removing:
        return f"its removal was interrupted: {remove}"
    if not use.nodes:
        return "no node carries the labels: restart what names them"
    return f"restart what names them, then {remove}" if use.is_named else remove


def _users(key: str, uses: list[KeyUse]) -> Lines:
    lines = Lines()
    lines.add("Key", key, "bold")
    lines.add("Nodes", str(sum(use.nodes for use in uses)))
    for use in uses:
        for label, users in (("Pods", use.pods), ("Templates", use.templates), ("Volumes", use.volumes)):
            lines.add(label, _listed(users), "yellow")
    lines.add("Note", _TEMPLATES_OF_OTHER_KINDS)
    return lines


def _listed(users: Users) -> str:
    if not users.count:
        return ""
    more = users.count - len(users.examples)
    return f"{users.count}: {', '.join(users.examples)}" + (f" and {more} more" if more else "")
