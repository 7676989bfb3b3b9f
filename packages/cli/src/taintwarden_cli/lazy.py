"""Imports on use, so that help and completion load neither the engine nor the cluster's client.

The module of a command has its flags and help. Another module of the same package carries the command out, with
ordinary imports; only :func:`imported` leads from the first to the second.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from taintwarden_cli.output import fail


def imported(target: str, *, with_rich: bool = True) -> Any:
    """Import a module and return an attribute of it.

    Args:
        target: ``module:attribute``, with the full name of the module.
        with_rich: False to hide rich during the import. structlog imports rich, if it is installed, for tracebacks that
            are not used here: a sixth of the operator's imports.

    """
    module, _, attribute = target.partition(":")
    with nullcontext() if with_rich else _rich_hidden():
        return getattr(import_module(module), attribute)


@contextmanager
def _rich_hidden() -> Iterator[None]:
    modules: dict[str, Any] = sys.modules
    if "rich" in modules:
        yield
        return
    modules["rich"] = None  # ``import rich`` raises ModuleNotFoundError
    try:
        yield
    finally:
        del modules["rich"]


class CommandEntry(NamedTuple):
    """The location of a command, and its ``short_help``, which the help of its group lists."""

    target: str
    """``module:attribute``."""
    short_help: str
    install: str = ""
    """How to install the package of the command, if it is a separate one, which images and clusters do not need."""


class LazyGroup(click.Group):
    """A group that imports a command when it is used. Until then it has only the entry of the command."""

    def __init__(self, *args: Any, entries: Mapping[str, CommandEntry], **more: Any) -> None:
        super().__init__(*args, **more)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, sorted."""
        return sorted(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of this name."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        try:
            command: click.Command = imported(entry.target)
        except ModuleNotFoundError as error:
            if not entry.install or error.name != entry.target.partition(".")[0]:
                raise
            return _missing(cmd_name, entry)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.entries[name].short_help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands, and the group's own options."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self.entries[name].short_help) for name in names]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]


def _missing(name: str, entry: CommandEntry) -> click.Command:
    """A command that says how to install its package."""

    def fail_to_run(words: tuple[str, ...]) -> None:
        fail(f"taintwarden {name} is not installed: {entry.install}", 1)

    words = click.Argument(["words"], nargs=-1, metavar="")
    text = f"{entry.short_help}\n\nThis is not installed: {entry.install}."
    settings = {"ignore_unknown_options": True}
    return click.Command(name, settings, fail_to_run, [words], help=text, short_help=entry.short_help)
