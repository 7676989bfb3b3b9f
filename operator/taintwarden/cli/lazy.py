"""A group of commands that are imported when they are used: listing or completing them imports none."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Entry(NamedTuple):
    """The location of a command, and its line in the help of its group: its own ``short_help``."""

    place: str
    """``module:attribute``, in this package."""
    short_help: str


class LazyGroup(click.Group):
    """A group that has only the ``entries`` of its commands until one of them is used."""

    def __init__(self, *args: Any, entries: Mapping[str, Entry], **more: Any) -> None:
        super().__init__(*args, **more)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in order."""
        return sorted(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself, imported."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        command: click.Command = getattr(import_module(f"{__package__}.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.entries[name].short_help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Names of commands, or the group's own options."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - called by shells only

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self.entries[name].short_help) for name in names]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]
