"""What is imported only when it is used. Help and completion import neither the engine nor the cluster's client.

A module of a command has its flags and its help. Its work stands in a module of the same package, whose imports are
ordinary ones; :func:`imported` is the only way from the first to the second.
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
    """What stands at ``module:attribute``; its module is imported now.

    Args:
        target: the full name of the module, and an attribute of it.
        with_rich: False: hide rich from what is imported. structlog imports it, if it is installed, for tracebacks that
            we do not use: a sixth of the imports of the operator.

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
    modules["rich"] = None  # Python: importing it raises ModuleNotFoundError
    try:
        yield
    finally:
        del modules["rich"]


class CommandEntry(NamedTuple):
    """The location of a command, and its line in the help of its group: its own ``short_help``."""

    target: str
    """``module:attribute``."""
    short_help: str
    install: str = ""
    """How to install its package, if that is a separate one: images and clusters need neither it nor what it needs."""


class LazyGroup(click.Group):
    """A group that has only the ``entries`` of its commands until one of them is used."""

    def __init__(self, *args: Any, entries: Mapping[str, CommandEntry], **more: Any) -> None:
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
        try:
            command: click.Command = imported(entry.target)
        except ModuleNotFoundError as error:
            if not entry.install or error.name != entry.target.partition(".")[0]:
                raise
            return _missing(cmd_name, entry)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.entries[name].short_help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands, or the group's own options."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self.entries[name].short_help) for name in names]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]


def _missing(name: str, entry: CommandEntry) -> click.Command:
    """The command of a package that is not installed."""

    def fail_to_run(words: tuple[str, ...]) -> None:
        fail(f"taintwarden {name} is not installed: {entry.install}", 1)

    words = click.Argument(["words"], nargs=-1, metavar="")
    text = f"{entry.short_help}\n\nThis is not installed: {entry.install}."
    settings = {"ignore_unknown_options": True}
    return click.Command(name, settings, fail_to_run, [words], help=text, short_help=entry.short_help)
