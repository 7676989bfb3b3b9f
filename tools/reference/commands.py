"""The page about the command line: the help of each command, and the flags of processes with their variables."""

import copy
import re
from collections.abc import Iterator

import click

from reference.markdown import block, code, plain, table
from taintwarden.settings import PREFIX, CommonSettings, Settings
from taintwarden_cli.main import main
from taintwarden_placement.settings import WebhookSettings

WIDTH = 100
HEAD = """\
The help of every command, in the version of this page. `kubectl taintwarden` is the same command, where `taintwarden`
is on the `PATH`. Exit codes are part of the interface; 2 is always a wrong flag, an unusable file or kubeconfig.

Most commands also have `--kubeconfig` and `--context` (by default as kubectl), `--operator-namespace`
(`taintwarden-system`), `-o`, `--output` (`table`, `json`, `yaml`), and `-h`.
"""
SETTINGS = """\
A flag overrides its variable, and the variable overrides the default. Policies are objects of the cluster, not flags.
"""
PROCESSES: dict[str, CommonSettings] = {"run": Settings(), "webhook": WebhookSettings()}
COMMON = {"--kubeconfig", "--context", "--operator-namespace", "--output"}
"""Options of most commands. Only the head of the page describes them."""


def commands_page() -> str:
    """Return the body of the page, without title and note."""
    parts = [HEAD]
    whole = click.Context(main, info_name="taintwarden", terminal_width=WIDTH, **main.context_settings)
    paths: dict[str, str] = {}
    for context in _contexts(whole):
        text = _help(context)
        same = paths.setdefault(_kind(context, text), context.command_path)
        parts.append(f"## {context.command_path}\n")
        parts.append(block(text) if same == context.command_path else f"As `{same}`.\n")
        if settings := PROCESSES.get(context.command.name or ""):
            rows = [_setting(one, settings) for one in context.command.params if isinstance(one, click.Option)]
            parts += [SETTINGS, table(("flag", "variable", "default", "meaning"), rows)]
    return "\n".join(parts)


def _help(context: click.Context) -> str:
    """Return the output of ``--help``, without options that the page's head or a table describes."""
    if context.parent is None:
        return context.get_help()
    command = copy.copy(context.command)
    command.add_help_option = False
    has_table = (context.command.name or "") in PROCESSES
    command.params = [one for one in command.params if not has_table and COMMON.isdisjoint(one.opts)]
    shown = click.Context(command, info_name=context.info_name, parent=context.parent, terminal_width=WIDTH)
    return command.get_help(shown)


def _kind(context: click.Context, text: str) -> str:
    """Return a text that is equal for commands whose help differs only by their name."""
    return " ".join(text.lower().replace(context.command.name or "", "").replace("-", "").split())


def _contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None and not command.hidden:
                yield from _contexts(click.Context(command, info_name=name, parent=context, terminal_width=WIDTH))


def _setting(option: click.Option, settings: CommonSettings) -> tuple[str, str, str, str]:
    """Return the row of a process's flag, which is a field with the same name in its settings."""
    name = str(option.name)
    value = getattr(settings, name)
    meaning, default = option.help or "", ""
    if found := re.search(r"\s*(\[default: .*\]|Default: .*)$", meaning):
        meaning, default = meaning[: found.start()], plain(found[1].strip("[]").partition(": ")[2].rstrip("."))
    if isinstance(option.type, click.Choice):
        meaning = " ".join([meaning, f"One of {', '.join(code(str(one)) for one in option.type.choices)}."]).strip()
    else:
        meaning = plain(meaning)
    if value not in (None, ""):
        default = code(
            str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
        )
    return ", ".join(map(code, (*option.opts, *option.secondary_opts))), code(PREFIX + name.upper()), default, meaning
