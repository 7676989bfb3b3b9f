"""The output of answers: the format ``json``, for scripts, or text with the flags that its commands need."""

import re
import shlex
from collections.abc import Callable

import click
import msgspec

from taintwarden_cli.options import with_root_flags
from taintwarden_cli.output import write

_COMMAND = re.compile(r"\b(?:kubectl|taintwarden) [-a-z]")


def write_answer(data: msgspec.Struct, form: str, text: Callable[[], str]) -> None:
    """Print ``data`` as JSON in ASCII if ``form`` is ``json``, else what ``text`` returns."""
    if form != "json":
        write(_with_flags(text()))
        return
    found = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    write("".join(one if one < "\x7f" else _escaped(one) for one in found))


def _with_flags(shown: str) -> str:
    """Add the flags that select the cluster, without which the commands in a text would be about another one."""
    context = click.get_current_context(silent=True)
    flags = {} if context is None or "kubeconfig" not in context.params else with_root_flags(context.params)
    given = [f"--{name} {shlex.quote(str(flags[name]))}" for name in ("kubeconfig", "context") if flags.get(name)]
    return f"{shown}\n\nCommands above need: {' '.join(given)}" if given and _COMMAND.search(shown) else shown


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))
